"""What stands in brackets: a window, how often it answers, or a frame.

[ROWS 1000]                                   [RANGE 5 MINUTES]          [RANGE 300]
[ROWS 1000 UNTIL 200]                         [RANGE 2 MINUTES UNTIL 1 MINUTE CLOSED LEFT]
[ROWS BETWEEN 1000 AND 200 PRECEDING]         [RANGE BETWEEN 2 MINUTES AND 1 MINUTE PRECEDING]
[RANGE 1 HOUR, FREQUENCY 1000 TUPLES]         [RANGE 1 HOUR, FREQUENCY 1 MINUTE ANCHOR TUPLE PARTITIONED BY site]
[FRAME WHERE drop_pct > 0.3 FOR 2 MINUTES]    [FRAME UNTIL SUM(volume) >= 25]
[FRAME DELTA fl 0.05]                         [FRAME GRID x 4.25, y 4.2]
"""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlglot.tokenizer_core import TokenType

from swag.errors import BadQuery, BadSQL, nearest
from swag.frequency import Every
from swag.sql.places import wrong
from swag.windows import Range, Rows

UNITS = {
    "ns": ("ns", "nanosecond", "nanos"),
    "us": ("us", "microsecond", "micros"),
    "ms": ("ms", "millisecond", "millis"),
    "s": ("s", "second", "sec"),
    "m": ("m", "minute", "min"),
    "h": ("h", "hour", "hr"),
    "d": ("d", "day"),
}
_UNIT = {spelt: unit for unit, all_ in UNITS.items() for name in all_ for spelt in (name, f"{name}s")}
_LONGER = {"week": 7, "weeks": 7}  # in days
_NUMBER = re.compile(r"\d+(\.\d+)?")
HINT = "[RANGE 5 MINUTES], [ROWS 1000], [FREQUENCY 1 MINUTE] or [FRAME …]"


@dataclass
class Clause:
    """What was said in brackets. partition: the column of PARTITIONED BY."""

    start: int = 0
    window: Rows | Range | None = None
    every: Every | None = None
    partition: str | None = None
    frame: Any = None


if TYPE_CHECKING:
    from sqlglot.parser import Parser as _Base
else:
    _Base = object


class Clauses(_Base):
    """Methods of the parser (dialect.py) that read clauses, beginning after the bracket."""

    def clause(self: Any) -> Clause:
        found = Clause(self.here)
        while True:
            start = self.here
            try:
                self._one_clause(found)
            except BadSQL:
                raise
            except BadQuery as why:
                raise wrong(self.sql, start, why.message, HINT) from None
            if not self._match(TokenType.COMMA):
                break
        if not self._match(TokenType.R_BRACKET):
            self.expected("] or ,")
        return found

    def _one_clause(self: Any, found: Clause) -> None:
        twice = found.window is not None or found.frame is not None
        if self._match_text_seq("FRAME"):
            if twice or found.every is not None:
                self.expected("a FRAME clause by itself")
            found.frame = self.frame()
        elif self._match_text_seq("RANGE") and not twice:
            found.window = self._range()
        elif self._match_text_seq("ROWS") and not twice:
            found.window = self._rows()
        elif self._match_text_seq("FREQUENCY") and found.every is None and found.frame is None:
            found.every, found.partition = self._frequency()
        else:
            words = ["RANGE", "ROWS", "FREQUENCY", "FRAME"]
            meant = nearest(self._curr.text, words).strip('"') if self._curr else ""
            self.expected("RANGE, ROWS, FREQUENCY or FRAME", f"[{meant} …]" if meant else HINT)

    def frame(self: Any) -> Any:
        """A spec of frames, from after the word FRAME."""
        from swag.sql.framing import frame_clause

        start = self.here
        try:
            return frame_clause(self)
        except BadSQL:
            raise
        except BadQuery as why:
            raise wrong(self.sql, start, why.message) from None

    def _range(self: Any) -> Range:
        far, near = self._extent(self.duration)
        if self._match_text_seq("CLOSED"):
            if not self._match_texts(("LEFT", "RIGHT", "BOTH", "NONE")):
                self.expected("LEFT, RIGHT, BOTH or NONE")
            return Range(far, near, self._prev.text.lower())
        return Range(far, near)

    def _rows(self: Any) -> Rows:
        return Rows(*self._extent(self._row_count))

    def _row_count(self: Any) -> int:
        count = self.whole("a number of rows")
        self._match_texts(("ROWS", "ROW", "TUPLES", "TUPLE"))
        return int(count)

    def _extent(self: Any, size: Any) -> tuple[Any, Any]:
        """From how far back, and until when: both counted from now."""
        if self._match_text_seq("UNBOUNDED", advance=False):
            self.unsupported("UNBOUNDED", "a window that ends: [RANGE 30 DAYS]")
        if self._match(TokenType.BETWEEN):
            far = size()
            self._match_text_seq("PRECEDING")
            if not self._match(TokenType.AND):
                self.expected("AND")
            if self._match_text_seq("CURRENT", "ROW") or self._match_text_seq("NOW"):
                return far, 0
            near = size()
            if not self._match_text_seq("PRECEDING"):
                self.expected("PRECEDING")
            return far, near
        far = size()
        self._match_text_seq("PRECEDING")
        return far, size() if self._match_text_seq("UNTIL") else 0

    def _frequency(self: Any) -> tuple[Every, str | None]:
        amount = self.duration()
        if isinstance(amount, int) and self._match_texts(("TUPLES", "TUPLE", "ROWS", "ROW")):
            options: dict[str, Any] = {"rows": amount}
        else:
            options = {"time": amount}
        if self._match_texts(("ANCHOR", "ANCHORED")):
            self._match_text_seq("AT")
            if not self._match_texts(("TICK", "TUPLE")):
                self.expected("TICK or TUPLE")
            options["anchor"] = self._prev.text.lower()
        partition = None
        if self._match(TokenType.PARTITION_BY) or self._match_text_seq("PARTITION", "BY"):
            partition = self.name("the name of the key's column")
            options["per_key"] = True
        elif self._match_text_seq("PARTITIONED"):
            options["per_key"] = True
        return Every(**options), partition

    # -- words --------------------------------------------------------------------------------------------------------

    def duration(self: Any) -> int | str:
        """5 MINUTES, 5m, INTERVAL '5 minutes', or a plain number in the unit of ts."""
        self._match(TokenType.INTERVAL)
        if self._match(TokenType.STRING):
            text = self._prev.text
            number, _, unit = text.strip().partition(" ")
            if not unit and self._curr:
                unit = self._unit_word()
        else:
            if not self._match(TokenType.NUMBER):
                self.expected("a number")
            number, unit = self._prev.text, self._unit_word()
        start = self._prev.start
        if not unit:
            if not number.isascii() or not number.isdigit() or len(number) > 18:
                raise wrong(
                    self.sql, start, f"{number} is not a whole number.", "5 MINUTES, or a number in the unit of ts"
                )
            return int(number)
        return self._in_unit(number, unit.strip().lower(), start)

    def _unit_word(self: Any) -> str:
        word = self._curr.text.lower() if self._curr and self._curr.token_type != TokenType.IDENTIFIER else ""
        if word in _UNIT or word in _LONGER or word in ("month", "months", "year", "years", "quarter", "quarters"):
            self._advance()
            return str(word)
        if self._is_name() and word not in CLAUSE_WORDS:
            names = [name for names in UNITS.values() for name in names[1:2] or names]
            self.expected("a unit of time", nearest(word, [f"{name}s" for name in names]).strip('"').upper())
        return ""

    def _in_unit(self: Any, number: str, unit: str, start: int) -> str:
        if not _NUMBER.fullmatch(number) or len(number) > 18:
            raise wrong(self.sql, start, f"{number} {unit} is not a duration.", "5 MINUTES")
        if unit in _LONGER and number.isdigit():
            return f"{int(number) * _LONGER[unit]}d"
        if unit not in _UNIT:
            raise wrong(self.sql, start, f"{unit.upper()} has no fixed length.", "30 DAYS")
        return f"{number}{_UNIT[unit]}"

    def whole(self: Any, what: str) -> int:
        if self._curr.token_type != TokenType.NUMBER or not self._curr.text.isdigit() or len(self._curr.text) > 18:
            self.expected(what)
        self._advance()
        return int(self._prev.text)

    def name(self: Any, what: str) -> str:
        if not self._is_name():
            self.expected(what)
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
    "until", "preceding", "closed", "tuples", "tuple", "rows", "row", "anchor", "anchored", "partitioned", "partition",
    "and", "for", "measure",
)  # fmt: skip
