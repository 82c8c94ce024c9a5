"""`having`: which keys pass. A condition on a query's current answer, as a frozen value."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swag.errors import BadQuery, BadType
from swag.tables.answers import common_type, of_common_type, own_name
from swag.tables.comparing import compared
from swag.tables.constants import is_constant, plain

_TESTS = (">", ">=", "<", "<=")
EXAMPLES = 'having=(">", 10_000), or (">=", v), ("<", v), ("<=", v), ("between", low, high)'


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
            raise BadType(f"having {self}: an answer of type {answers.type} can not be compared with that.") from None
        return np.asarray(pc.fill_null(passed, False))


def filter_table(passing: dict[str, pa.Table], key: str | None) -> pa.Table:
    """Table(query, [key], value) of what each query lets pass: a table of its keys, if there are any, and values."""
    kind = common_type({name: table.schema.types[-1] for name, table in passing.items()}, "filters")
    rows = np.repeat(np.arange(len(passing)), [table.num_rows for table in passing.values()])
    columns = {own_name("query", key): pa.array(list(passing), pa.string()).take(rows)}
    if key is not None:
        found = [table.column(0) for table in passing.values() if not pa.types.is_null(table.schema.types[0])]
        chunks = [chunk for keys in found for chunk in keys.chunks]
        columns[key] = pa.chunked_array(chunks, found[0].type if found else pa.null())
    values = [of_common_type(name, table.columns[-1], kind, "filters") for name, table in passing.items()]
    return pa.table(columns | {own_name("value", key): pa.chunked_array(values, kind)})


def condition(having: Any) -> Condition:
    """A condition as users write it, checked, its thresholds as plain Python values."""
    if not isinstance(having, tuple | list) or not having or not isinstance(having[0], str):
        raise BadQuery(f"having={having!r} is no condition.", EXAMPLES)
    op, *values = having
    if op not in (*_TESTS, "between") or len(values) != (2 if op == "between" else 1):
        raise BadQuery(f"having={having!r} is no condition.", EXAMPLES)
    values = [plain(value) for value in values]
    if any(value is None or (is_constant(value) and value != value) for value in values):
        raise BadQuery(f"having={having!r}: nothing compares with null or NaN.", EXAMPLES)
    if not all(map(is_constant, values)):
        raise BadQuery(
            f"having={having!r}: a threshold is a number, text, a date, a time, or a duration of whole microseconds.",
            EXAMPLES,
        )
    return Condition(op, *values)
