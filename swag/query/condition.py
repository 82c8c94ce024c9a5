"""`having`: which keys pass. A condition on a query's current answer, as a frozen value."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swag.errors import BadQuery, BadType
from swag.tables.comparing import compared
from swag.tables.constants import is_constant, plain

_TESTS = (">", ">=", "<", "<=")
EXAMPLES = 'having=(">", 10_000), or (">=", v), ("<", v), ("<=", v), ("between", low, high)'
EQUAL = "having=sw.count().eq(5), or .ne(5): == compares queries, not answers"

BESIDE = "a number beside numbers, text in '…' beside text, DATE '2024-03-01' beside dates"


@dataclass(frozen=True)
class Condition:
    """op is one of > >= < <= with `low` as the threshold, or "between" (both ends included)."""

    op: str
    low: Any
    high: Any = None

    @property
    def written(self) -> tuple[Any, ...]:
        """As `having` has it."""
        return (self.op, self.low, self.high) if self.op == "between" else (self.op, self.low)

    def __str__(self) -> str:
        return f"BETWEEN {self.low} AND {self.high}" if self.op == "between" else f"{self.op} {self.low}"

    def holds(self, answers: pa.Array) -> np.ndarray:
        """Which answers pass; null and NaN pass nothing."""
        try:
            if self.op == "between":
                passed = pc.and_kleene(compared(">=", answers, self.low), compared("<=", answers, self.high))
            else:
                passed = compared(self.op, answers, self.low)
        except (pa.ArrowException, TypeError, OverflowError):
            shown = " and ".join(map(repr, self.written[1:]))
            wrong = f"having: an answer of type {answers.type} can not be compared with {shown}."
            raise BadType(wrong, BESIDE, about=f"{self.op} {shown}") from None
        return np.asarray(pc.fill_null(passed, False))


def condition(having: Any) -> Condition:
    """A condition as users write it, checked, its thresholds as plain Python values."""
    if not isinstance(having, tuple | list) or not having or not isinstance(having[0], str):
        raise BadQuery(f"having={having!r} is no condition.", EQUAL if isinstance(having, bool) else EXAMPLES)
    op, *values = having
    if op not in (*_TESTS, "between") or len(values) != (2 if op == "between" else 1):
        equal = op in ("=", "==", "!=", "<>")
        raise BadQuery(f"having={having!r} is no condition.", EQUAL if equal else EXAMPLES)
    values = [plain(value) for value in values]
    if any(value is None or (is_constant(value) and value != value) for value in values):
        raise BadQuery(f"having={having!r}: nothing compares with null or NaN.", EXAMPLES)
    if not all(map(is_constant, values)):
        raise BadQuery(
            f"having={having!r}: a threshold is a number, text, a date, a time, or a duration of whole microseconds.",
            EXAMPLES,
        )
    return Condition(op, *values)
