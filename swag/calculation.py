"""Expressions over columns: one Arrow call per operator, whatever the number of rows. Nulls as in SQL.

Integers stay exact and refuse to overflow. Division is that of floats: by zero it gives ±inf, and 0 / 0 NaN. A
comparison with NaN is unknown, so NaN satisfies no condition, negated or not.
"""

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swag.columns import one_chunk
from swag.comparing import compared, scalar
from swag.errors import BadType, SumOverflow
from swag.expression import COMPARISONS, Expression, Operators, Windowed

Columns = Mapping[Any, Any]  # by leaf: an array, or a scalar

_COMPUTE: dict[str, Callable[..., Any]] = {
    "+": pc.add_checked,
    "-": pc.subtract_checked,
    "*": pc.multiply_checked,
    "/": lambda a, b: pc.divide(_float(a), _float(b)),
    "neg": pc.negate_checked,
    "abs": pc.abs_checked,
    "coalesce": lambda *each: pc.coalesce(*_alike(each)),
    "and": lambda *each: reduce(pc.and_kleene, each),
    "or": lambda *each: reduce(pc.or_kleene, each),
    "not": pc.invert,
    "is null": pc.is_null,
}
_TEST: dict[str, Callable[..., Any]] = {
    "between": lambda x, low, high: pc.and_kleene(_compare(">=", x, low), _compare("<=", x, high)),
    "in": lambda x, *options: reduce(pc.or_kleene, [_compare("=", x, option) for option in options]),
}


def calculate(term: Any, columns: Columns) -> Any:
    """The value of an expression, from the columns of its aggregates (by Windowed leaf)."""
    try:
        return _value(term, columns)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as why:
        if "overflow" in str(why):
            raise SumOverflow(f"{term} does not fit int64.", "compute with floats: 1.0 * …") from None
        raise BadType(f"{term} can not be computed of these columns: {why}.") from None


def holds(term: Any, columns: Columns) -> np.ndarray:
    """Where a condition is true: neither false nor unknown."""
    return np.asarray(one_chunk(pc.fill_null(calculate(term, columns), False)))


def _value(term: Any, columns: Columns) -> Any:
    if not isinstance(term, Expression):
        if not isinstance(term, Operators):
            return term
        return columns[term if isinstance(term, Windowed) else Windowed(term)]
    values = [_value(each, columns) for each in term.operands]
    if term.op in COMPARISONS:
        return _compare(term.op, *values)
    if term.op in _TEST:
        return _TEST[term.op](*values)
    return _COMPUTE[term.op](*(value if _is_column(value) else scalar(value) for value in values))


def _is_column(value: Any) -> bool:
    return isinstance(value, pa.Array | pa.ChunkedArray | pa.Scalar)


def _compare(op: str, a: Any, b: Any) -> Any:
    return compared(op, _known(a), _known(b))


def _known(a: Any) -> Any:
    """NaN as null: nothing is known of how it compares."""
    if not _is_column(a) or not pa.types.is_floating(a.type):
        return a
    return pc.if_else(pc.is_nan(a), pa.scalar(None, a.type), a)


def _float(a: Any) -> Any:
    if pa.types.is_floating(a.type) or pa.types.is_integer(a.type) or pa.types.is_null(a.type):
        return pc.cast(a, pa.float64(), safe=False)
    raise pa.ArrowTypeError(f"{a.type} is not divided")


def _alike(values: tuple[Any, ...]) -> list[Any]:
    """Floats, if any of them is one: coalesce wants one type."""
    if any(pa.types.is_floating(each.type) for each in values):
        return [pc.cast(each, pa.float64(), safe=False) for each in values]
    return list(values)
