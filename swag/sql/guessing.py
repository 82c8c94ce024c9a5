"""What was meant by brackets that hold no window, and by windows that stand in no brackets."""

from typing import TYPE_CHECKING, Any

from sqlglot.tokenizer_core import TokenType

from swag.query.windows import Rows
from swag.sql.hints import FRAMES, WINDOWS, WORDS, meant

if TYPE_CHECKING:
    from sqlglot.parser import Parser as _Base

    from swag.sql.nodes import Clause
else:
    _Base = object

UNITS = {
    "ns": ("ns", "nanosecond", "nanos"),
    "us": ("us", "microsecond", "micros"),
    "ms": ("ms", "millisecond", "millis"),
    "s": ("s", "second", "sec"),
    "m": ("m", "minute", "min"),
    "h": ("h", "hour", "hr"),
    "d": ("d", "day"),
}
UNIT = {spelt: unit for unit, all_ in UNITS.items() for name in all_ for spelt in (name, f"{name}s")}
ROWS = ("ROWS", "ROW", "TUPLES", "TUPLE")
RANGE_HINT, FREQUENCY_HINT = "[RANGE 5 MINUTES]", "[RANGE 1 HOUR, FREQUENCY 1 MINUTE]"
_GOES_ON = (TokenType.NUMBER, TokenType.BETWEEN, TokenType.STRING, TokenType.INTERVAL, TokenType.VAR)
_ENDS = (
    TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.R_PAREN, TokenType.R_BRACE, TokenType.ORDER_BY,
    TokenType.LIMIT,
)  # fmt: skip


class Guessing(_Base):
    """Methods of the parser (dialect.py)."""

    def _no_window_word(self: Any) -> None:
        comma = TokenType.COMMA in (self._prev.token_type, self._curr.token_type) and not self._is_name()
        self.expected("RANGE, ROWS, FREQUENCY or FRAME", "leave the comma out" if comma else self._guess() or WINDOWS)

    def _guess(self: Any) -> str:
        """What was meant by words that are no clause: [5 MINUTES], [LAST 10 ROWS], [SLIDE 1 HOUR], [ROW 5]."""
        tokens = self._tokens[self._index : self._index + 3]
        words = [token.text.upper() for token in tokens]
        number = next((i for i, token in enumerate(tokens) if token.token_type == TokenType.NUMBER), None)
        if self.word in FRAMES:
            return FRAMES[self.word]
        if self.word in ("TUMBLE", "TUMBLING") and number is not None:
            length = " ".join(words[number : number + 2])
            return f"[RANGE {length}, EVERY {length}]"
        if self.word in ("SLIDE", "SLIDING", "HOP", "HOPPING", "ADVANCE", "STEP"):
            return f"EVERY {' '.join(words[number : number + 2])}" if number is not None else FREQUENCY_HINT
        if number is None:
            word = meant(self.word, WORDS) if self.word else ""
            return f"[{word} …]" if word else ""
        after, word = words[number + 1] if number + 1 < len(words) else "", meant(self.word, WORDS)
        if word in ("FREQUENCY", "EVERY"):
            return " ".join([word, *words[number : number + 2]]).removesuffix("]").rstrip()
        if after in ROWS or word == "ROWS":
            return f"[ROWS {words[number]}]"
        if after.lower() in UNIT:
            return f"[{word or 'RANGE'} {words[number]} {after}]"
        return f"[{word} {words[number]}]" if word else ""

    def _not_closed_here(self: Any, found: "Clause") -> None:
        """Something follows a clause inside of brackets: a comma or a ] was forgotten, or the unit belongs to RANGE."""
        guess = self._guess() if self.word else ""
        if self.word in WORDS or guess.startswith("EVERY"):
            hint = f"a comma before it: [RANGE 1 HOUR, {self.word + ' …' if self.word in WORDS else guess}]"
        elif isinstance(found.window, Rows) and self.word.lower() in UNIT:
            hint = f"[RANGE {found.window.n} {self.word}]"
        elif self.word == "AND":
            hint = "[ROWS BETWEEN 1000 AND 200 PRECEDING]"
        else:
            hint = self.close()
        self.expected("] or a comma", hint)

    def refuse_bare_window(self: Any) -> None:
        """FROM t ROWS 5, FROM t (ROWS 5): a window without its brackets."""
        bracket = self._curr.token_type in (TokenType.L_PAREN, TokenType.L_BRACE)
        word = self._next.text.upper() if bracket else self.word
        first, *rest = self._tokens[self._index + bracket :] or [None]
        bare = word in WORDS and bool(rest) and (bracket or rest[0].token_type in _GOES_ON)
        if bare:
            until = next((i for i, t in enumerate(rest) if t.token_type in _ENDS), len(rest))
            clause = " ".join(token.text for token in [first, *rest[:until]])
            self.expected(f"[ before {word}", f"[{clause}]" if len(clause) < 60 else WINDOWS)
        if self._match(TokenType.L_PAREN, advance=False):
            self.unsupported("a call in FROM", "the name of a stream: FROM trades [RANGE 5 MINUTES]")

    def misplaced_window(self: Any) -> None:
        """A window after an expression, where no OVER was."""
        rest = self._tokens[self._index :]
        until = next((i for i, t in enumerate(rest) if t.token_type == TokenType.R_BRACKET), 0)
        window = self.sql[rest[0].start : rest[until].end + 1] if 0 < until < 9 else RANGE_HINT
        if self.clause_now == "SELECT":
            self.expected("OVER before a window", f"OVER {window}, or FROM t {window}")
        self.expected(f"the window before {self.clause_now}", f"FROM t {window} {self.clause_now} …")


def nearest_unit(word: str) -> str:
    names = [f"{spelt}s".upper() for spelt in ("nanosecond", "microsecond", "millisecond", "second", "minute", "hour")]
    return meant(word, [*names, "DAYS", "WEEKS"], 0.5) or "SECONDS, MINUTES, HOURS or DAYS"
