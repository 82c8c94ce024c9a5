"""Functions of numbers. Whole numbers stay whole where they can, in int64; NaN goes through everything.

% and // of whole numbers round towards zero, and refuse to divide by it; of floats x % 0 is NaN, as x / 0 is.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swag.arguments import SMALLEST
from swag.tables import arithmetic
from swag.tables.arithmetic import as_float
from swag.tables.columns import one_chunk
from swag.tables.decimals import MOST_DIGITS, MOST_DIGITS_THERE_ARE, roomy
from swag.tables.expressions import times
from swag.tables.expressions.types import alike


def plus(a: Any, b: Any) -> Any:
    return times.plus(a, b) if _has_times(a, b) else arithmetic.add(a, b)


def minus(a: Any, b: Any) -> Any:
    return times.minus(a, b) if _has_times(a, b) else arithmetic.subtract(a, b)


def _has_times(a: Any, b: Any) -> bool:
    return bool(pa.types.is_temporal(a.type) or pa.types.is_temporal(b.type))


def floats(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of floats, whatever numbers it is given."""
    return lambda *operands: function(*map(as_float, operands))


def kept_whole(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """FLOOR, CEIL, TRUNC: of whole numbers, the same."""
    return lambda a: _whole(a) if pa.types.is_integer(a.type) else _with_room(function, _number(a))


def rounded(a: Any, digits: pa.Scalar | None = None) -> Any:
    """Ties away from zero. A negative number of digits rounds to tens, hundreds …"""
    places = 0 if digits is None else _constant(digits, "ROUND")
    if pa.types.is_integer(a.type) and places >= 0:
        return _whole(a)
    a = _whole(a) if pa.types.is_integer(a.type) else _number(a)
    return _with_room(lambda a: pc.round(a, ndigits=places, round_mode="half_towards_infinity"), a)


def _with_room(function: Callable[[Any], Any], a: Any) -> Any:
    """Of decimals the result may have one digit more: 9.9 is about 10.0."""
    if not pa.types.is_decimal(a.type):
        return function(a)
    wide = pa.types.is_decimal256(a.type)
    found = function(roomy(a))
    if wide:
        return pc.cast(found, pa.decimal256(min(a.type.precision + 1, MOST_DIGITS_THERE_ARE), a.type.scale))
    return pc.cast(found, pa.decimal128(min(a.type.precision + 1, MOST_DIGITS), a.type.scale))


def sign(a: Any) -> Any:
    found = pc.sign(_number(a))
    return pc.cast(found, pa.int64()) if pa.types.is_integer(found.type) else found


def remainder(a: Any, b: Any) -> Any:
    """a % b, of the sign of a."""
    if pa.types.is_decimal(a.type) or pa.types.is_decimal(b.type):
        raise pa.ArrowTypeError("% of decimals: CAST(… AS DOUBLE), or AS BIGINT")
    return _divided(np.fmod, a, b)


def quotient(a: Any, b: Any) -> Any:
    """a // b, towards zero."""
    if not all(pa.types.is_integer(each.type) or pa.types.is_null(each.type) for each in (a, b)):
        raise pa.ArrowTypeError("// is for whole numbers: write FLOOR(a / b), or TRUNC(a / b)")
    return _divided(_towards_zero, a, b)


def _divided(function: Callable[..., np.ndarray], a: Any, b: Any) -> Any:
    """Of whole numbers, a division by zero is an error that names the row; of floats it is NaN."""
    a, b = alike(a, b)
    if pa.types.is_floating(a.type) or pa.types.is_null(a.type):
        return _by_numpy(function, as_float(a), as_float(b), 1.0)
    zero = pc.and_(pc.is_valid(a), pc.equal(b, pa.scalar(0, pa.int64())))
    if pc.any(zero).as_py() if not isinstance(zero, pa.Scalar) else zero.as_py():
        raise pa.ArrowInvalid("division by zero")
    return _by_numpy(function, a, b, 1)


def _by_numpy(function: Callable[..., np.ndarray], a: Any, b: Any, harmless: float) -> Any:
    """Nulls are computed with as something harmless."""
    arrays = [pa.array([x.as_py()], x.type) if isinstance(x, pa.Scalar) else one_chunk(x) for x in (a, b)]
    filled = [np.asarray(pc.fill_null(each, pa.scalar(harmless, each.type))) for each in arrays]
    valid = np.logical_and(*(np.asarray(pc.is_valid(each)) for each in arrays))
    with np.errstate(all="ignore"):
        found = pa.array(function(*filled), mask=~valid)
    return found[0] if isinstance(a, pa.Scalar) and isinstance(b, pa.Scalar) else found


def _towards_zero(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if np.any((a == SMALLEST) & (b == -1)):
        raise pa.ArrowInvalid("overflow")
    found: np.ndarray = (a - np.fmod(a, b)) // b
    return found


def greatest(*values: Any) -> Any:
    return _extreme(pc.max_element_wise, values)


def least(*values: Any) -> Any:
    return _extreme(pc.min_element_wise, values)


def _extreme(function: Callable[..., Any], values: tuple[Any, ...]) -> Any:
    """Nulls are skipped. Where one is NaN, so is the answer, as in MIN and MAX."""
    same = alike(*values)
    if pa.types.is_null(same[0].type):
        return same[0]
    kind = same[0].type
    if pa.types.is_timestamp(kind) and kind.tz is not None:  # of which Arrow has no extremes
        instants = [pc.cast(each, pa.timestamp(kind.unit)) for each in same]
        return pc.cast(function(*instants, skip_nulls=True), kind)
    found = function(*same, skip_nulls=True)
    if not pa.types.is_floating(found.type):
        return found
    unknown: Any = pa.scalar(False)
    for each in same:
        unknown = pc.or_(unknown, pc.fill_null(pc.is_nan(each), False))
    return pc.if_else(unknown, pa.scalar(float("nan")), found)


def tested(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """ISNAN, ISINF, ISFINITE."""
    return lambda a: function(as_float(a))


def logarithm(base: Any, of: Any = None) -> Any:
    """LOG(x) is that of base 10, LOG(b, x) of base b."""
    return pc.log10(as_float(base)) if of is None else pc.logb(as_float(of), as_float(base))


def cube_root(a: Any) -> Any:
    return _unary(np.cbrt, a)


def _unary(function: Callable[[np.ndarray], np.ndarray], a: Any) -> Any:
    return _by_numpy(lambda x, _: function(x), as_float(a), pa.scalar(1.0), 1.0)


def _number(a: Any) -> Any:
    if pa.types.is_null(a.type) or pa.types.is_float16(a.type) or pa.types.is_float32(a.type):
        return as_float(a)
    if pa.types.is_floating(a.type) or pa.types.is_decimal(a.type) or pa.types.is_integer(a.type):
        return a
    raise pa.ArrowTypeError(f"{a.type} is no number")


def _whole(a: Any) -> Any:
    return pc.cast(a, pa.int64())


def _constant(value: Any, function: str) -> int:
    if not isinstance(value, pa.Scalar) or not pa.types.is_integer(value.type) or not value.is_valid:
        raise pa.ArrowTypeError(f"{function} takes a whole number there, the same for all rows")
    found: int = value.as_py()
    return found
