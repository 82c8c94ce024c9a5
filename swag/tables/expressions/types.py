"""Of which type values are that come from several sides: the branches of CASE, the operands of COALESCE and GREATEST.

Whole numbers are int64, beside floats float64, beside decimals decimals; of two units of time the finer one counts.
Text in quotes beside a time is a time. Instants of two zones have the first one that is not UTC. What has nothing in
common is refused: text and numbers stay what they are.
"""

from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from swag.tables.decimals import MOST_DIGITS, as_decimal, as_doubles
from swag.tables.expressions import instants

UNITS = ["s", "ms", "us", "ns"]
DIGITS = 19  # of an int64


def alike(*values: Any) -> list[Any]:
    """The same values, all of one type."""
    values = tuple(instants.read_beside(each, values) for each in values)
    kind = reduce(_common, [each.type for each in values])
    return [each if each.type == kind else _as(each, kind) for each in values]


def _as(values: Any, kind: pa.DataType) -> Any:
    if pa.types.is_decimal(kind) and is_numeric(values.type):
        return as_decimal(values, kind)
    if pa.types.is_decimal(values.type) and pa.types.is_floating(kind):
        return as_doubles(values)
    return pc.cast(values, kind, safe=not pa.types.is_floating(kind))


def is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_numeric(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _common(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """The type that values of two types have together, as in two branches of CASE; refused if there is none."""
    if pa.types.is_null(one) or pa.types.is_null(other):
        known = other if pa.types.is_null(one) else one
        return _alone(known)
    if is_numeric(one) and is_numeric(other):
        return _number(one, other)
    if one == other:
        return one
    if is_text(one) and is_text(other):
        return pa.large_string() if pa.types.is_large_string(one) or pa.types.is_large_string(other) else pa.string()
    found = _time(one, other)
    if found is None:
        raise pa.ArrowTypeError(f"{one} and {other} have no type in common")
    return found


def _alone(kind: pa.DataType) -> pa.DataType:
    return pa.int64() if pa.types.is_integer(kind) and kind != pa.uint64() else kind


def _number(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    if pa.types.is_floating(one) or pa.types.is_floating(other):
        return pa.float64()
    if pa.types.is_integer(one) and pa.types.is_integer(other):
        return pa.int64()
    whole = max(_whole_digits(one), _whole_digits(other))
    scale = max(each.scale for each in (one, other) if pa.types.is_decimal(each))
    return pa.decimal128(min(MOST_DIGITS, whole + scale), scale)


def _whole_digits(kind: pa.DataType) -> int:
    return int(kind.precision - kind.scale) if pa.types.is_decimal(kind) else DIGITS


def _time(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """The type that two dates, times or durations have together, in the finer unit; None if they have none."""
    if pa.types.is_duration(one) and pa.types.is_duration(other):
        return pa.duration(finer(one.unit, other.unit))
    if pa.types.is_time(one) and pa.types.is_time(other):
        return time_of_day(finer(one.unit, other.unit))
    if pa.types.is_date(one) and pa.types.is_date(other):
        return pa.date32()
    zones = [each.tz if pa.types.is_timestamp(each) else None for each in (one, other)]
    times = all(pa.types.is_timestamp(each) or pa.types.is_date(each) for each in (one, other))
    if not times or (zones[0] is None) != (zones[1] is None):
        return None
    units = [each.unit if pa.types.is_timestamp(each) else "s" for each in (one, other)]
    return pa.timestamp(finer(*units), zones[1] if zones[0] == "UTC" else zones[0])


def time_of_day(unit: str) -> pa.DataType:
    return pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)


def finer(one: str, other: str) -> str:
    return UNITS[max(UNITS.index(one), UNITS.index(other))]
