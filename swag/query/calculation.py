"""Expressions over columns: one Arrow call per operator, whatever the number of rows. Nulls as in SQL.

NaN satisfies no condition, negated or not. How numbers are computed is said in swag/tables/arithmetic.py.
"""

import re
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swag.errors import BadEvents, BadType, SumOverflow
from swag.query.expression import COMPARISONS, Expression, Operators, Windowed, as_sql, holds_sql
from swag.tables import arithmetic
from swag.tables.arithmetic import TOO_MANY_DIGITS, truth
from swag.tables.columns import decoded, one_chunk
from swag.tables.comparing import compared, scalar
from swag.tables.expressions import instants, numbers, places
from swag.tables.expressions.expression import HINT, RowExpression, compiled, instead
from swag.tables.expressions.rows import BatchRows, RowFailed

_OF_ARROW = re.compile(
    r"Function '\w+' has no kernel matching input types \(((?:[^([,]|\(.*?\)|\[.*?\])+), (.*)\)"
)  # how it says so

Columns = Mapping[Any, Any]  # by leaf: an array, or a scalar

_COMPUTE: dict[str, Callable[..., Any]] = {
    "+": numbers.plus,
    "-": numbers.minus,
    "*": arithmetic.multiply,
    "/": arithmetic.divide,
    "neg": arithmetic.negate,
    "abs": arithmetic.absolute,
    "coalesce": lambda *each: _coalesced(each),
    "and": lambda *each: reduce(pc.and_kleene, each),
    "or": lambda *each: reduce(pc.or_kleene, each),
    "not": pc.invert,
    "is null": pc.is_null,
}
_TEST: dict[str, Callable[..., Any]] = {
    "between": lambda x, low, high: pc.and_kleene(_compared(">=", x, low), _compared("<=", x, high)),
    "in": lambda x, *options: reduce(pc.or_kleene, [_compared("=", x, option) for option in options]),
}


def calculate(term: Any, columns: Columns, wanted: np.ndarray | None = None, asked_by: str = "") -> Any:
    """The value of an expression, from the columns of its aggregates (by Windowed leaf).

    wanted: where it is asked for. Elsewhere it may be anything, and is null where it can not be computed.
    """
    try:
        if holds_sql(term):
            return _by_sql(as_sql(term), columns, wanted, asked_by)
        return _value(term, columns)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as why:
        if "in precision" in str(why) or TOO_MANY_DIGITS in str(why):
            raise SumOverflow(f"{term} has more than 38 digits.", "compute with floats: 1.0 * …") from None
        if "overflow" in str(why) or "not in range" in str(why):
            raise SumOverflow(f"{term} does not fit int64.", "compute with floats: 1.0 * …") from None
        said = _OF_ARROW.sub(r"\1 and \2 do not go together", str(why))
        said = places.told(said, list(map(str, as_sql(term).operands[1:]))) if holds_sql(term) else said
        hint = getattr(why, "hint", "") or HINT
        raise BadType(f"{term} can not be computed of these columns: {said.rstrip('.')}.", hint) from None


def holds(term: Any, columns: Columns, wanted: np.ndarray | None = None, asked_by: str = "") -> np.ndarray:
    """Where a condition is true: neither false nor unknown."""
    found = calculate(term, columns, wanted, asked_by)
    if not pa.types.is_boolean(found.type) and not pa.types.is_null(found.type):
        raise BadType(f"{asked_by}{term} is {found.type}, neither true nor false.", "a comparison of it: … > 1")
    return np.asarray(one_chunk(pc.fill_null(truth(found), False)))


def _by_sql(term: Expression, columns: Columns, wanted: np.ndarray | None, asked_by: str) -> Any:
    """An expression that is SQL, computed as SQL over events is: answers are the rows."""
    text, *aggregates = term.operands
    arrays = [columns[each if isinstance(each, Windowed) else Windowed(each)] for each in aggregates]
    table = pa.table({places.place(i): each for i, each in enumerate(arrays, 1)})
    expression = compiled(text)
    rows = expression.rows(table)
    try:
        return _of_rows(expression, rows, wanted)
    except RowFailed as why:
        names, values = list(map(str, aggregates)), table.slice(why.row, 1).to_pylist()[0].values()
        said = ", ".join(f"{name} = {value!r}" for name, value in zip(names, values, strict=True))
        error = SumOverflow if "overflow" in why.why else BadEvents
        raise error(
            f"{asked_by}{term} can not be computed where {said}: {why.why}.",
            instead(why, places.told(why.what, names)),
        ) from None


def _of_rows(expression: RowExpression, rows: BatchRows, wanted: np.ndarray | None) -> pa.Array:
    """Of all rows at once; where that fails, of those only that are wanted."""
    try:
        return rows.whole(expression.part(rows))
    except RowFailed:
        if wanted is None or wanted.all():
            raise
    some = rows.at(np.flatnonzero(wanted))
    return some.whole(expression.part(some)).take(pa.array(np.cumsum(wanted) - 1, mask=~wanted))


def _value(term: Any, columns: Columns) -> Any:
    """The value of a part of an expression: a column, or the constant that it is."""
    if not isinstance(term, Expression):
        if not isinstance(term, Operators):
            return term
        return decoded(columns[term if isinstance(term, Windowed) else Windowed(term)])
    values = [_value(each, columns) for each in term.operands]
    if term.op in COMPARISONS:
        return _compared(term.op, *values)
    if term.op in _TEST:
        return _TEST[term.op](*values)
    return _COMPUTE[term.op](*(value if _is_column(value) else scalar(value) for value in values))


def _compared(op: str, left: Any, right: Any) -> Any:
    """As numbers and the like are; text beside a time is a time."""
    values = (left, right)
    if any(isinstance(each, str) for each in values) and any(map(_is_time, values)):
        return compared(op, *instants.beside(*(each if _is_column(each) else scalar(each) for each in values)))
    return compared(op, left, right)


def _is_time(value: Any) -> bool:
    return _is_column(value) and pa.types.is_temporal(value.type)


def _is_column(value: Any) -> bool:
    return isinstance(value, pa.Array | pa.ChunkedArray | pa.Scalar)


def _coalesced(values: tuple[Any, ...]) -> Any:
    """The first that is not null. What is not taken needs no room in the type that all have."""
    try:
        return pc.coalesce(*_alike(values))
    except pa.ArrowInvalid:
        taken, left = pa.scalar(False), []
    for each in values:
        left.append(pc.if_else(taken, pa.scalar(None, each.type), each))
        taken = pc.or_(taken, pc.is_valid(each))
    return pc.coalesce(*_alike(tuple(left)))


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
