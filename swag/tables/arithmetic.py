"""Arithmetic over Arrow columns, for `where` and for expressions over answers alike: one Arrow call per operator.

Integers of any width are computed in int64, exactly, and refuse to overflow; floats in float64; decimals stay decimals
where their precision allows it. Division is that of floats: by zero it gives ±inf, and 0 / 0 NaN. A column of nulls
alone has no type of its own: it computes, and compares, as any other would.
"""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from swag.tables.columns import is_number


def add(a: Any, b: Any) -> Any:
    return pc.add_checked(*_wide(a, b))


def subtract(a: Any, b: Any) -> Any:
    return pc.subtract_checked(*_wide(a, b))


def multiply(a: Any, b: Any) -> Any:
    return pc.multiply_checked(*_wide(a, b))


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
    if pa.types.is_decimal(a.type) or (is_number(a.type) and not pa.types.is_boolean(a.type)):
        return pc.cast(a, pa.float64(), safe=False)
    raise pa.ArrowTypeError(f"{a.type} is no number")


def _wide(*operands: Any) -> list[Any]:
    """Numbers as they are computed with: the width of a column may be too narrow for the result."""
    if all(each.type == pa.int64() for each in operands):
        return list(operands)
    if any(pa.types.is_floating(each.type) or pa.types.is_null(each.type) for each in operands):
        return [as_float(each) for each in operands]
    return [pc.cast(each, pa.int64()) if pa.types.is_integer(each.type) else each for each in operands]
