"""What stands in brackets: a window, how often it answers, or a frame.

[ROWS 1000]                                   [RANGE 5 MINUTES]          [RANGE 300]
[ROWS 1000 UNTIL 200]                         [RANGE 2 MINUTES UNTIL 1 MINUTE CLOSED LEFT]
[ROWS BETWEEN 1000 AND 200 PRECEDING]         [RANGE BETWEEN 2 MINUTES AND 1 MINUTE PRECEDING]
[ROWS BETWEEN 9 PRECEDING AND 2 FOLLOWING]    [RANGE BETWEEN 5 MINUTES PRECEDING AND 1 MINUTE FOLLOWING]
[UNBOUNDED]                                   [RANGE 5 MINUTES PEERS]    [SINCE 1 DAY AT TIME ZONE 'Europe/Berlin']
[RANGE 1 HOUR, FREQUENCY 1000 TUPLES]         [RANGE 1 HOUR, FREQUENCY 1 MINUTE PARTITIONED BY site]
[RANGE 1 HOUR, EVERY 1 MINUTE]                the same at the end of each minute; FREQUENCY is at a tuple of it
[FRAME WHERE drop_pct > 0.3 FOR 2 MINUTES]    [FRAME UNTIL SUM(volume) >= 25]
[FRAME DELTA fl 0.05]                         [FRAME GRID x 4.25, y 4.2]
[FRAME SESSION 30 MINUTES]                    [FRAME STATE status FOR AT LEAST 3 ROWS AT MOST 1 HOUR]
[FRAME FROM x > 5 TO x < 2]
"""

import re
from typing import Any

from sqlglot.tokenizer_core import TokenType

from swag.errors import BadQuery, BadSQL
from swag.query.every import Every
from swag.query.windows import Range, Rows, Since, Unbounded, Window
from swag.sql.framing import frame_clause
from swag.sql.guessing import FREQUENCY_HINT, RANGE_HINT, ROWS, UNIT, Guessing, nearest_unit
from swag.sql.hints import ANY_FRAME, FRAMES, WINDOWS, WORDS, meant
from swag.sql.nodes import Clause
from swag.sql.places import wrong

_WINDOWS = ("RANGE", "ROWS", "UNBOUNDED", "SINCE")
_OFTEN = {"FREQUENCY": "tuple", "EVERY": "tick"}  # where a slot of time is answered, unless ANCHOR says otherwise
_LONGER = {"week": 7, "weeks": 7}  # in days
_ENDLESS = ("month", "months", "year", "years", "quarter", "quarters")
_NUMBER = re.compile(r"\d+(\.\d+)?")
_HINTS = {
    "ROWS": "[ROWS 1000 UNTIL 200]: from 1000 rows back to 200 rows back",
    "RANGE": "[RANGE 2 MINUTES UNTIL 1 MINUTE]: from two minutes back to one minute back",
    "FREQUENCY": FREQUENCY_HINT,
    "EVERY": FREQUENCY_HINT,
    "SINCE": "[SINCE 1 DAY], or [SINCE 1 DAY AT TIME ZONE 'Europe/Berlin']",
}


class Clauses(Guessing):
    """Methods of the parser (dialect.py) that read clauses, beginning after the bracket."""

    def clause(self: Any) -> Clause:
        """All that stands in a pair of brackets: clauses between commas, up to the ] itself."""
        found = Clause(self.here)
        while True:
            start, word = self.here, self.word
            try:
                self._one_clause(found)
            except BadSQL:
                raise
            except BadQuery as why:
                raise wrong(self.sql, start, why.message, _HINTS.get(word, WINDOWS)) from None
            if not self._match(TokenType.COMMA):
                break
        if not self._match(TokenType.R_BRACKET):
            self._not_closed_here(found)
        return found

    def _one_clause(self: Any, found: Clause) -> None:
        """One clause of a bracket, by its first word: a window, FREQUENCY or FRAME. Of each there is one at most."""
        word = self.word
        if word in _WINDOWS and (found.window is not None or found.frame is not None):
            self.unsupported("a second window", "one window in brackets; another by OVER: SUM(x) OVER [ROWS 1000]")
        if word == "FRAME" and (found.window is not None or found.every is not None):
            self.expected("a FRAME clause by itself", "[FRAME …], without RANGE, ROWS and FREQUENCY")
        if word in _OFTEN and found.every is not None:
            self.expected("FREQUENCY once", FREQUENCY_HINT)
        if word not in WORDS:
            self._no_window_word()
        self._advance()
        if word == "FRAME":
            found.frame, found.fragments = self.frame(), bool(self._match_text_seq("FRAGMENTS"))
        elif word in _WINDOWS:
            found.window = self._window(word)
        else:
            found.every, found.partition = self._frequency(_OFTEN[word])

    def is_frequency(self: Any) -> bool:
        return self.word in _OFTEN and self._next.token_type in (TokenType.NUMBER, TokenType.INTERVAL, TokenType.STRING)

    def results(self: Any) -> Clause | None:
        """FREQUENCY in SELECT, or at the end of the statement: which results are picked."""
        if not self.is_frequency():
            return None
        found, anchor = Clause(self.here), _OFTEN[self.word]
        self._advance()
        found.every, found.partition = self._frequency(anchor)
        return found

    def frame(self: Any) -> Any:
        """A spec of frames, from after the word FRAME."""
        start, word = self.here, self.word
        try:
            return frame_clause(self)
        except BadSQL:
            raise
        except BadQuery as why:
            raise wrong(self.sql, start, why.message, FRAMES.get(word, ANY_FRAME)) from None

    def _window(self: Any, word: str) -> Window:
        if word == "SINCE":
            return self._since()
        if word == "UNBOUNDED":
            until = self.duration() if self._match_text_seq("UNTIL") else 0
            return Unbounded(until, self._match_text_seq("PEERS") or False)
        return self._range() if word == "RANGE" else self._rows()

    def _range(self: Any) -> Range | Unbounded:
        """What follows RANGE: its lengths of time, CLOSED and PEERS."""
        far, near = self._extent(self.duration)
        if far is None:
            return Unbounded(near, self._match_text_seq("PEERS") or False)
        closed: Any = "right"
        if self._match_text_seq("CLOSED"):
            if not self._match_texts(("LEFT", "RIGHT", "BOTH", "NONE")):
                self.expected("LEFT, RIGHT, BOTH or NONE", "[RANGE 5 MINUTES CLOSED LEFT]")
            closed = self._prev.text.lower()
        return Range(far, near, closed, self._match_text_seq("PEERS") or False)

    def _rows(self: Any) -> Rows | Unbounded:
        far, near = self._extent(self._row_count)
        if far is None and near:
            self.unsupported("UNBOUNDED with a number of rows", "[RANGE BETWEEN UNBOUNDED PRECEDING AND 5 PRECEDING]")
        return Unbounded() if far is None else Rows(far, near)

    def _since(self: Any) -> Since:
        """What follows SINCE: a period of the calendar, and AT TIME ZONE."""
        hint = _HINTS["SINCE"]
        if self._curr.text == "1":
            self._advance()
        period, zone = self.word.lower().removesuffix("s"), None
        if period not in ("hour", "day", "week", "month"):
            self.expected("1 HOUR, 1 DAY, 1 WEEK or 1 MONTH", hint)
        self._advance()
        if self._match_text_seq("AT", "TIME", "ZONE"):
            if not self._match(TokenType.STRING):
                self.expected("the name of a time zone in '…'", hint)
            zone = self._prev.text
        return Since(period, zone)

    def _row_count(self: Any) -> int:
        count = self.whole("a number of rows", "[ROWS 1000]")
        self._match_texts(ROWS)
        return int(count)

    def _extent(self: Any, size: Any) -> tuple[Any, Any]:
        """From how far back, and until when: both counted from now; what lies ahead is negative. None: for ever."""
        if not self._match(TokenType.BETWEEN):
            if self._unbounded():
                self._match_text_seq("PRECEDING")
                return None, 0
            far = size()
            self._match_text_seq("PRECEDING")
            return far, size() if self._match_text_seq("UNTIL") else 0
        far = None if self._unbounded() else self._bound(size)
        self._match_text_seq("PRECEDING")
        if not self._match(TokenType.AND):
            self.expected("AND", "[RANGE BETWEEN 2 MINUTES AND 1 MINUTE PRECEDING]")
        if self.word == "UNBOUNDED":
            self.unsupported("UNBOUNDED FOLLOWING", "[RANGE BETWEEN 5 MINUTES PRECEDING AND 30 DAYS FOLLOWING]")
        near = self._bound(size)
        if self._prev.text.upper() not in ("ROW", "NOW", "FOLLOWING") and not self._match_text_seq("PRECEDING"):
            self.expected("PRECEDING", "[RANGE BETWEEN 2 MINUTES AND 1 MINUTE PRECEDING]")
        return far, near

    def _unbounded(self: Any) -> bool:
        return bool(self._match_text_seq("UNBOUNDED"))

    def _bound(self: Any, size: Any) -> Any:
        if self._match_text_seq("CURRENT", "ROW") or self._match_text_seq("NOW"):
            return 0
        edge = size()
        if not self._match_text_seq("FOLLOWING"):
            return edge
        return -edge if isinstance(edge, int) else f"-{edge}"

    def _frequency(self: Any, anchor: str) -> tuple[Every, tuple[str, ...]]:
        """What follows FREQUENCY: so many rows or so much time, ANCHOR, PARTITIONED; and the columns that it names."""
        amount = self.duration(FREQUENCY_HINT)
        if isinstance(amount, int) and self._match_texts(ROWS):
            options: dict[str, Any] = {"rows": amount}
        else:
            options = {"time": amount, "anchor": anchor}
        if self._match_texts(("ANCHOR", "ANCHORED")):
            self._match_text_seq("AT")
            if not self._match_texts(("TICK", "TUPLE")):
                self.expected("TICK or TUPLE", "FREQUENCY 1 MINUTE ANCHOR TICK")
            options["anchor"] = self._prev.text.lower()
        partition = self._partition()
        options["per_key"] = not partition and bool(self._match_text_seq("PARTITIONED"))
        return Every(**options, by=partition or None), partition

    def _partition(self: Any) -> tuple[str, ...]:
        """PARTITIONED BY a, b: up to the next clause."""
        hint, names = "FREQUENCY 10 TUPLES PARTITIONED BY symbol", []
        if self._match(TokenType.PARTITION_BY) or self._match_text_seq("PARTITION", "BY"):
            names.append(self.name("the name of a column", hint))
            while self._is_another_name():
                self._advance()
                names.append(self.name("the name of a column", hint))
        return tuple(names)

    def _is_another_name(self: Any) -> bool:
        quoted = self._next.token_type == TokenType.IDENTIFIER
        clause = self._next.text.upper() in WORDS or self._next.token_type == TokenType.R_BRACKET
        return bool(self._match(TokenType.COMMA, advance=False)) and (quoted or not clause)

    # -- words --------------------------------------------------------------------------------------------------------

    def duration(self: Any, hint: str = RANGE_HINT) -> int | str:
        """5 MINUTES, 5m, INTERVAL '5 minutes', or a plain number in the unit of ts."""
        self._match(TokenType.INTERVAL)
        start = self.here
        if self._match(TokenType.STRING):
            number, _, unit = self._prev.text.strip().partition(" ")
            if not unit and self._curr:
                unit = self._unit_word(hint)
        else:
            if not self._match(TokenType.NUMBER):
                self.expected("a number", hint)
            number, unit = self._prev.text, self._unit_word(hint)
        if unit:
            return self._in_unit(number, unit.strip().lower(), start)
        if not number.isascii() or not number.isdigit() or len(number) > 18:
            message = f'expected a whole number, found "{number[:20]}".'
            raise wrong(self.sql, start, message, "5 MINUTES, or a whole number in the unit of ts")
        return int(number)

    def _unit_word(self: Any, hint: str) -> str:
        word = self._curr.text.lower() if self._curr and self._curr.token_type != TokenType.IDENTIFIER else ""
        if word in UNIT or word in _LONGER or word in _ENDLESS:
            self._advance()
            return str(word)
        if self._is_name() and word not in CLAUSE_WORDS:
            counts = meant(word, ROWS, 0.7) if hint == FREQUENCY_HINT else ""
            self.expected("a unit of time", counts or nearest_unit(word))
        return ""

    def _in_unit(self: Any, number: str, unit: str, start: int) -> str:
        """A number and a word for a unit as a duration: 5 MINUTES is 5m. What has no fixed length is refused."""
        if not _NUMBER.fullmatch(number) or len(number) > 18:
            raise wrong(self.sql, start, f"expected a duration, found {number[:20]} {unit[:20]}.", "5 MINUTES")
        if unit in _LONGER and number.isdigit():
            return f"{int(number) * _LONGER[unit]}d"
        if unit in _ENDLESS:
            raise wrong(self.sql, start, f"{unit.upper()} has no fixed length.", "30 DAYS")
        if unit not in UNIT:
            raise wrong(self.sql, start, f'expected a unit of time, found "{unit[:20]}".', nearest_unit(unit))
        return f"{number}{UNIT[unit]}"

    def whole(self: Any, what: str, hint: str) -> int:
        if self._curr.token_type != TokenType.NUMBER or not self._curr.text.isdigit() or len(self._curr.text) > 18:
            self.expected(what, hint)
        self._advance()
        return int(self._prev.text)

    def name(self: Any, what: str, hint: str) -> str:
        if not self._is_name():
            self.expected(what, hint)
        self._advance()
        return str(self._prev.text)

    def _is_name(self: Any) -> bool:
        """A quoted name, or a word that means nothing else."""
        token = self._curr.token_type
        return bool(self._curr) and (
            token in (TokenType.VAR, TokenType.IDENTIFIER)
            or (token in self.ID_VAR_TOKENS and token not in (TokenType.ROWS, TokenType.RANGE))
        )


CLAUSE_WORDS = (
    "until", "preceding", "following", "peers", "closed", "tuples", "tuple", "rows", "row",
    "anchor", "anchored", "partitioned", "partition",
    "and", "for", "measure", "at", "extent", "fragments", "before", "after",
)  # fmt: skip
