"""Comparisons that are exact: integers with floats and decimals, of whatever size.

    with a constant     x > 2**53 + 1 of floats: no float is 2**53 + 1, and what is greater is x > 2**53
                        x >= 0.5 of integers: x > 0
    of two columns      by Arrow as long as no integer is too large for a float, else by whole parts and fractions

Null compares as null, and so does NaN: it satisfies no comparison, negated or not.
"""

import datetime
import math
import operator
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swag.tables.columns import one_chunk
from swag.tables.constants import Number, is_number, plain
from swag.tables.decimals import MOST_DIGITS_THERE_ARE, as_decimal, as_doubles

_ARROW = {
    ">": pc.greater, ">=": pc.greater_equal, "<": pc.less, "<=": pc.less_equal, "=": pc.equal, "<>": pc.not_equal,
}  # fmt: skip
_PYTHON = {
    ">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le, "=": operator.eq, "<>": operator.ne,
}  # fmt: skip
_EXACTLY_CAST = (pa.types.is_time, pa.types.is_duration)  # Python's may be coarser, and Arrow refuses what is cut off
_ANY_WORD = pa.decimal128(20, 0)
_BEHIND = {">": "<", ">=": "<=", "<": ">", "<=": ">=", "=": "=", "<>": "<>"}


def compared(op: str, left: Any, right: Any) -> Any:
    """left op right, true, false or null, for each row. Either a column, or a constant of Python."""
    return _compared(op, _known(left), _known(right))


def _known(values: Any) -> Any:
    """NaN as null; half floats as floats, as Arrow compares none."""
    if not _is_column(values) or not pa.types.is_floating(values.type):
        return values
    if pa.types.is_float16(values.type):
        values = pc.cast(values, pa.float32())
    unknown = pc.is_nan(values)
    if not pc.any(unknown).as_py():
        return values
    return pc.if_else(unknown, pa.scalar(None, values.type), values)


def _is_column(values: Any) -> bool:
    return isinstance(values, pa.Array | pa.ChunkedArray | pa.Scalar)


def _compared(op: str, left: Any, right: Any) -> Any:
    if not _is_column(left):
        return _compared(_BEHIND[op], right, left)
    if _is_column(right):
        return _of_columns(op, left, right)
    if is_number(right) and _is_numeric(left.type):
        return _with_number(op, left, right)
    return _ARROW[op](left, _alike(scalar(right), left.type))


def as_written(number: Number, kind: pa.DataType) -> Number:
    """A fraction beside decimals is the one that is written: 1.1, where the float is a little more."""
    fraction = isinstance(number, float) and math.isfinite(number) and pa.types.is_decimal(kind)
    return Decimal(repr(number)) if fraction else number


def within(op: str, threshold: Number, kind: pa.DataType) -> tuple[str, Any]:
    """The same condition on values of a type, with a threshold of that type; op is one of > >= < <=."""
    threshold = as_written(threshold, kind)
    near = nearest(threshold, kind)
    if near == threshold:
        return op, near
    if near < threshold:  # and nothing of that type lies between them
        return (">" if op in (">", ">=") else "<="), near
    return (">=" if op in (">", ">=") else "<"), near


def nearest(number: Number, kind: pa.DataType) -> Any:
    """A value of a type with no other one between it and a number."""
    if pa.types.is_floating(kind):
        try:
            return float(number)
        except OverflowError:
            return math.inf if number > 0 else -math.inf
    if pa.types.is_decimal(kind):
        most = Decimal((0, (9,) * kind.precision, -kind.scale))
        units = math.floor(Fraction(min(max(number, -most), most)) * 10**kind.scale)
        return Decimal(units).scaleb(-kind.scale, Context(prec=99))
    info = np.iinfo(kind.to_pandas_dtype())
    return math.floor(min(max(number, info.min), info.max))


def same(value: Any, kind: pa.DataType) -> pa.Array | None:
    """A value as the one that it equals among those of a type, in a column of one row; None: it equals none of them.

    A whole number stands for a time or a duration of so many units. NaN is NaN here.
    """
    try:
        if isinstance(value, pa.Scalar) and any(of(value.type) and of(kind) for of in _EXACTLY_CAST):
            return pa.array([value.cast(kind)])
        value = plain(value)
        if pa.types.is_date(kind) and isinstance(value, datetime.datetime) and value == _midnight(value):
            value = value.date()
        value = as_written(value, kind)
        near = nearest(value, kind) if is_number(value) and math.isfinite(value) and _is_numeric(kind) else value
        found = pa.array([near], kind)
        if pa.types.is_temporal(kind) and isinstance(value, int):
            return found
        read = found[0].as_py()
    except (pa.ArrowException, TypeError, ValueError, ArithmeticError):  # the two types have nothing in common
        return None
    return found if read is not None and (read == value or (read != read and value != value)) else None


def _midnight(instant: datetime.datetime) -> datetime.datetime:
    return datetime.datetime.combine(instant, datetime.time())


def scalar(constant: Any) -> pa.Scalar:
    """A constant as Arrow has it; an integer that does not fit int64 as a float."""
    large = isinstance(constant, int) and not -(2**63) <= constant < 2**63
    return pa.scalar(nearest(constant, pa.float64()) if large else constant)


def _with_number(op: str, column: Any, number: Number) -> Any:
    """A column compared with a number, exactly: by the nearest number that its type can hold."""
    number = as_written(number, column.type)
    if op in ("=", "<>"):
        near = nearest(number, column.type)
        if near != number:  # it equals nothing of this type
            never = pc.less(column, column)
            return never if op == "=" else pc.invert(never)
    else:
        op, near = within(op, number, column.type)
    return _ARROW[op](column, pa.scalar(near, pa.float64() if isinstance(near, float) else column.type))


def _is_numeric(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _alike(scalar: pa.Scalar, kind: pa.DataType) -> pa.Scalar:
    """An instant in the zone of the column: Arrow refuses to compare those of two zones."""
    zoned = pa.types.is_timestamp(kind) and pa.types.is_timestamp(scalar.type) and kind.tz and scalar.type.tz
    return scalar.cast(pa.timestamp(scalar.type.unit, kind.tz)) if zoned else scalar


def _of_columns(op: str, left: Any, right: Any) -> Any:
    """Two columns compared by Arrow; exactly, where an integer is too large to be a float."""
    if pa.types.is_null(left.type) and pa.types.is_null(right.type):
        left = pc.cast(left, pa.float64())  # Arrow compares nulls of some type only
    if pa.types.is_decimal(left.type) and isinstance(right, pa.Scalar) and pa.types.is_floating(right.type):
        return _with_number(op, left, right.as_py()) if right.is_valid else _ARROW[op](left, right)
    if pa.types.is_floating(left.type) and pa.types.is_decimal(right.type):
        return _of_columns(_BEHIND[op], right, left)
    if pa.types.is_decimal(left.type) and pa.types.is_floating(right.type):
        left = as_doubles(left)
    left, right = _with_points_alike(left, right)
    if pa.types.is_timestamp(left.type) and pa.types.is_timestamp(right.type) and left.type.tz and right.type.tz:
        right = pc.cast(right, pa.timestamp(right.type.unit, left.type.tz))  # Arrow compares those of one zone only
    try:
        return _ARROW[op](left, right)
    except pa.ArrowInvalid:  # an integer beside floats, too large to be one
        if isinstance(right, pa.Scalar):
            return _compared(op, left, right.as_py())
        if isinstance(left, pa.Scalar):
            return _compared(op, left.as_py(), right)
        return _exactly(op, one_chunk(left), one_chunk(right))


def _with_points_alike(left: Any, right: Any) -> tuple[Any, Any]:
    """Decimals with as many digits behind the point; to make them so, Arrow takes 38 digits at most."""
    kinds = [left.type, right.type]
    decimals = [kind for kind in kinds if pa.types.is_decimal(kind)]
    whole = [kind for kind in kinds if pa.types.is_integer(kind)]
    if not decimals or len(decimals) + len(whole) < 2 or (not whole and kinds[0].scale == kinds[1].scale):
        return left, right
    kind = pa.decimal256(MOST_DIGITS_THERE_ARE, max(each.scale for each in decimals))
    return as_decimal(left, kind), as_decimal(right, kind)


def _exactly(op: str, left: pa.Array, right: pa.Array) -> pa.Array:
    """Integers with floats, floats with integers, or integers of which only some fit int64 with others."""
    if pa.types.is_floating(left.type):
        op, left, right = _BEHIND[op], right, left
    if pa.types.is_integer(left.type) and pa.types.is_integer(right.type):
        return _ARROW[op](left.cast(_ANY_WORD), right.cast(_ANY_WORD))
    if not (pa.types.is_integer(left.type) and pa.types.is_floating(right.type)):
        return _ARROW[op](left, right)
    known = np.asarray(pc.and_(left.is_valid(), pc.fill_null(pc.invert(pc.is_nan(right)), False)))
    whole, other = np.asarray(left.fill_null(0)), np.where(known, np.asarray(right.fill_null(0)), 0.0)
    return pa.array(_PYTHON[op](_signs(whole, other), 0), mask=~known)


def _signs(whole: np.ndarray, other: np.ndarray) -> np.ndarray:
    """-1, 0 or 1: how each integer compares with a float that is not NaN."""
    floor, ends = np.floor(other), (0.0, 2.0**64) if whole.dtype == np.uint64 else (-(2.0**63), 2.0**63)
    inside = (floor >= ends[0]) & (floor < ends[1])
    below = np.where(inside, floor, 0).astype(np.uint64 if whole.dtype == np.uint64 else np.int64)
    signs = (whole > below).astype(np.int8) - (whole < below)
    signs -= (signs == 0) & (other > floor)
    return np.where(inside, signs, np.where(other > 0, -1, 1))
