"""Expressions over columns: one Arrow call per operator, whatever the number of rows. Nulls as in SQL.

NaN satisfies no condition, negated or not. How numbers are computed is said in swag/tables/arithmetic.py.
"""

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swag.errors import BadType, SumOverflow
from swag.query.expression import COMPARISONS, Expression, Operators, Windowed
from swag.tables import arithmetic
from swag.tables.arithmetic import TOO_MANY_DIGITS
from swag.tables.columns import decoded, one_chunk
from swag.tables.comparing import compared, scalar

Columns = Mapping[Any, Any]  # by leaf: an array, or a scalar

_COMPUTE: dict[str, Callable[..., Any]] = {
    "+": arithmetic.add,
    "-": arithmetic.subtract,
    "*": arithmetic.multiply,
    "/": arithmetic.divide,
    "neg": arithmetic.negate,
    "abs": arithmetic.absolute,
    "coalesce": lambda *each: pc.coalesce(*_alike(each)),
    "and": lambda *each: reduce(pc.and_kleene, each),
    "or": lambda *each: reduce(pc.or_kleene, each),
    "not": pc.invert,
    "is null": pc.is_null,
}
_TEST: dict[str, Callable[..., Any]] = {
    "between": lambda x, low, high: pc.and_kleene(compared(">=", x, low), compared("<=", x, high)),
    "in": lambda x, *options: reduce(pc.or_kleene, [compared("=", x, option) for option in options]),
}


def calculate(term: Any, columns: Columns) -> Any:
    """The value of an expression, from the columns of its aggregates (by Windowed leaf)."""
    try:
        return _value(term, columns)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as why:
        if "in precision" in str(why) or TOO_MANY_DIGITS in str(why):
            raise SumOverflow(f"{term} has more than 38 digits.", "compute with floats: 1.0 * …") from None
        if "overflow" in str(why) or "not in range" in str(why):
            raise SumOverflow(f"{term} does not fit int64.", "compute with floats: 1.0 * …") from None
        raise BadType(f"{term} can not be computed of these columns: {why}.", "numbers with numbers") from None


def holds(term: Any, columns: Columns) -> np.ndarray:
    """Where a condition is true: neither false nor unknown."""
    return np.asarray(one_chunk(pc.fill_null(calculate(term, columns), False)))


def _value(term: Any, columns: Columns) -> Any:
    """The value of a part of an expression: a column, or the constant that it is."""
    if not isinstance(term, Expression):
        if not isinstance(term, Operators):
            return term
        return decoded(columns[term if isinstance(term, Windowed) else Windowed(term)])
    values = [_value(each, columns) for each in term.operands]
    if term.op in COMPARISONS:
        return compared(term.op, *values)
    if term.op in _TEST:
        return _TEST[term.op](*values)
    return _COMPUTE[term.op](*(value if _is_column(value) else scalar(value) for value in values))


def _is_column(value: Any) -> bool:
    return isinstance(value, pa.Array | pa.ChunkedArray | pa.Scalar)


def _alike(values: tuple[Any, ...]) -> list[Any]:
    """coalesce wants one type: that which all have, or wide integers, or floats."""
    kinds = {each.type for each in values if not pa.types.is_null(each.type)}
    if len(kinds) <= 1:
        kind = kinds.pop() if kinds else pa.float64()
    elif all(pa.types.is_integer(kind) for kind in kinds):
        kind = pa.int64()
    elif any(pa.types.is_floating(kind) for kind in kinds):
        kind = pa.float64()
    else:
        return list(values)
    return [pc.cast(each, kind, safe=pa.types.is_integer(kind)) for each in values]
