"""Arithmetic over Arrow columns, for `where` and for expressions over answers alike: one Arrow call per operator.

Integers of any width are computed in int64, exactly, and refuse to overflow; floats in float64; decimals stay decimals,
of at most 38 digits, and refuse to have more. Division is that of floats: by zero it gives ±inf, and 0 / 0 NaN. A
column of nulls alone has no type of its own: it computes, and compares, as any other would.
"""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from swag.tables.columns import is_number
from swag.tables.decimals import MOST_DIGITS, MOST_DIGITS_THERE_ARE, as_doubles

TOO_MANY_DIGITS = "it has more than 38 digits"


def add(a: Any, b: Any) -> Any:
    return _computed(pc.add_checked, a, b)


def subtract(a: Any, b: Any) -> Any:
    return _computed(pc.subtract_checked, a, b)


def multiply(a: Any, b: Any) -> Any:
    return _computed(pc.multiply_checked, a, b)


def _computed(function: Any, a: Any, b: Any) -> Any:
    """Of decimals with as many digits as the type has, that there could be more does not matter, but that there are."""
    a, b = _wide(a, b)
    if not any(pa.types.is_decimal(each.type) for each in (a, b)) or _has_room(function, a.type, b.type):
        return function(a, b)
    for digits in ((MOST_DIGITS, MOST_DIGITS), (MOST_DIGITS - 1, MOST_DIGITS), (MOST_DIGITS, MOST_DIGITS - 1)):
        try:
            narrowed = [_in_256_bits(each, most) for each, most in zip((a, b), digits, strict=True)]
            found = function(*narrowed)
        except pa.ArrowInvalid:
            continue
        if found.type.scale > MOST_DIGITS:
            raise pa.ArrowTypeError(f"{a.type} and {b.type} would give {found.type.scale} digits behind the point")
        return pc.cast(found, pa.decimal128(MOST_DIGITS, found.type.scale))
    raise pa.ArrowInvalid(TOO_MANY_DIGITS)


def _has_room(function: Any, a: pa.DataType, b: pa.DataType) -> bool:
    """Does the type of the result have a place for each digit that there may be?"""
    (p, s), (q, t) = ((each.precision, each.scale) if pa.types.is_decimal(each) else (19, 0) for each in (a, b))
    most = p + q + 1 if function is pc.multiply_checked else max(p - s, q - t) + max(s, t) + 1
    wide = any(pa.types.is_decimal256(each) for each in (a, b))
    return most <= (MOST_DIGITS_THERE_ARE if wide else MOST_DIGITS)


def _in_256_bits(values: Any, digits: int) -> Any:
    if pa.types.is_integer(values.type):
        return pc.cast(values, pa.decimal256(19, 0))
    kind = values.type
    return pc.cast(values, pa.decimal256(min(kind.precision, digits), kind.scale))


def divide(a: Any, b: Any) -> Any:
    return pc.divide(as_float(a), as_float(b))


def negate(a: Any) -> Any:
    return pc.negate_checked(*_wide(a))


def absolute(a: Any) -> Any:
    return pc.abs_checked(*_wide(a))


def both(a: Any, b: Any) -> Any:
    return pc.and_kleene(truth(a), truth(b))


def either(a: Any, b: Any) -> Any:
    return pc.or_kleene(truth(a), truth(b))


def negated(a: Any) -> Any:
    return pc.invert(truth(a))


def truth(a: Any) -> Any:
    """Null is unknown also where it has no type."""
    return pc.cast(a, pa.bool_()) if pa.types.is_null(a.type) else a


def as_float(a: Any) -> Any:
    if a.type == pa.float64():
        return a
    if pa.types.is_decimal(a.type):
        return as_doubles(a)
    if is_number(a.type) and not pa.types.is_boolean(a.type):
        return pc.cast(a, pa.float64(), safe=False)
    raise pa.ArrowTypeError(f"{a.type} is no number")


def _wide(*operands: Any) -> list[Any]:
    """Numbers as they are computed with: the width of a column may be too narrow for the result."""
    if all(each.type == pa.int64() for each in operands):
        return list(operands)
    if any(pa.types.is_floating(each.type) or pa.types.is_null(each.type) for each in operands):
        return [as_float(each) for each in operands]
    return [pc.cast(each, pa.int64()) if pa.types.is_integer(each.type) else each for each in operands]
