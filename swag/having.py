"""`having`: which keys pass. A condition on a query's current answer, as a frozen value."""

import datetime
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swag.answers import common_type, of_common_type, own_name
from swag.errors import BadQuery, BadType

_TESTS = {">": pc.greater, ">=": pc.greater_equal, "<": pc.less, "<=": pc.less_equal}
_THRESHOLDS = int | float | str | bytes | Decimal | datetime.date | datetime.time | datetime.timedelta | np.generic
EXAMPLES = 'having=(">", 10_000), or (">=", v), ("<", v), ("<=", v), ("between", low, high)'


@dataclass(frozen=True)
class Condition:
    """op is one of > >= < <= with `low` as the threshold, or "between" (both ends included)."""

    op: str
    low: Any
    high: Any = None

    def __str__(self) -> str:
        return f"BETWEEN {self.low} AND {self.high}" if self.op == "between" else f"{self.op} {self.low}"

    def holds(self, answers: pa.Array) -> np.ndarray:
        """Which answers pass; null and NaN pass nothing."""
        try:
            if self.op == "between":
                low, high = pc.greater_equal(answers, pa.scalar(self.low)), pc.less_equal(answers, pa.scalar(self.high))
                passed = pc.and_kleene(low, high)
            else:
                passed = _TESTS[self.op](answers, pa.scalar(self.low))
        except (pa.ArrowException, TypeError, OverflowError):
            raise BadType(f"having {self}: an answer of type {answers.type} can not be compared with that.") from None
        return np.asarray(pc.fill_null(passed, False))


def filter_table(passing: dict[str, pa.Table], key: str | None) -> pa.Table:
    """Table(query, [key], value) of what each query lets pass: a table of its keys, if there are any, and values."""
    kind = common_type({name: table.schema.types[-1] for name, table in passing.items()}, "filters")
    names = [own_name("query", key), *([] if key is None else [key]), own_name("value", key)]
    tables = []
    for name, table in passing.items():
        value = of_common_type(name, table.column(table.num_columns - 1), kind, "filters")
        columns = [pa.array([name] * table.num_rows, pa.string()), *table.columns[:-1], value]
        tables.append(pa.table(columns, names=names))
    if not tables:
        return pa.table([pa.array([], pa.string()), *([] if key is None else [pa.nulls(0)]), pa.array([], kind)], names)
    return pa.concat_tables(tables, promote_options="permissive")


def condition(having: Any) -> Condition:
    """A condition as users write it, checked."""
    if not isinstance(having, tuple | list) or not having or not isinstance(having[0], str):
        raise BadQuery(f"having={having!r} is no condition.", EXAMPLES)
    op, *values = having
    if op not in (*_TESTS, "between") or len(values) != (2 if op == "between" else 1):
        raise BadQuery(f"having={having!r} is no condition.", EXAMPLES)
    if not all(isinstance(value, _THRESHOLDS) for value in values):
        raise BadQuery(f"having={having!r}: a threshold is a number, text, a date or a time.", EXAMPLES)
    if any(value is None or value != value for value in values):
        raise BadQuery(f"having={having!r}: nothing compares with null or NaN.", EXAMPLES)
    return Condition(op, *values)
