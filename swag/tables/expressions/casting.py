"""CAST and TRY_CAST: values of one type as another. What is not exactly a value of it is refused, or null.

Floats are rounded to the nearest whole number (ties to even), decimals and text away from zero, as DuckDB has it. Text
is trimmed. A time with a zone, as one without, is what the clocks of its zone show.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swag.tables.arithmetic import as_float
from swag.tables.columns import one_chunk
from swag.tables.comparing import compared
from swag.tables.decimals import MOST_DIGITS, MOST_DIGITS_THERE_ARE, as_decimal, roomy
from swag.tables.expressions.instants import in_calendar, time_of_day
from swag.tables.expressions.types import is_numeric, is_text

_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$|^[+-]?(?i:nan|inf|infinity)$"
_WHOLE = r"^[+-]?\d+$"
_TRUE, _FALSE = ["true", "t", "yes", "y", "1"], ["false", "f", "no", "n", "0"]
_DATE = r"^\d{4}-\d{2}-\d{2}"


def cast(values: Any, to: pa.DataType) -> Any:
    """CAST(values AS to)."""
    kind = values.type
    if kind == to:
        return values
    if pa.types.is_null(kind):
        return pc.cast(values, to)
    if is_text(kind):
        return _from_text(pc.utf8_trim_whitespace(values), to) if not is_text(to) else pc.cast(values, to)
    if is_text(to):
        return _to_text(values)
    if (is_numeric(kind) or pa.types.is_boolean(kind)) and (is_numeric(to) or pa.types.is_boolean(to)):
        return _number(values, to)
    if pa.types.is_temporal(kind) and pa.types.is_temporal(to):
        return _time(values, to)
    raise pa.ArrowTypeError(f"{kind} can not be cast to {to}")


def try_cast(values: Any, to: pa.DataType) -> Any:
    """TRY_CAST: null where a value can not be cast. First goes what can be told at a glance, as each failure that is
    left is searched for."""
    try:
        return cast(values, to)
    except pa.ArrowTypeError:
        raise
    except pa.ArrowInvalid:
        pass
    if isinstance(values, pa.Scalar):
        return pa.scalar(None, to)
    values = pc.if_else(_plausible(values, to), values, pa.scalar(None, values.type))
    return pa.concat_arrays(_tried(values, to))


def _tried(values: pa.Array, to: pa.DataType) -> list[pa.Array]:
    try:
        return [cast(values, to)]
    except pa.ArrowInvalid:
        if len(values) == 1:
            return [pa.nulls(1, to)]
    middle = len(values) // 2
    return [*_tried(values.slice(0, middle), to), *_tried(values.slice(middle), to)]


def _plausible(values: pa.Array, to: pa.DataType) -> pa.Array:
    """Which values may turn out to be castable: text that looks like a number or a date, numbers in range of `to`."""
    kind = values.type
    if is_text(kind):
        trimmed = pc.utf8_trim_whitespace(values)
        if is_numeric(to):
            return pc.match_substring_regex(trimmed, _NUMBER)
        return pc.match_substring_regex(trimmed, _DATE) if pa.types.is_date(to) or pa.types.is_timestamp(to) else True
    if pa.types.is_floating(to) and pa.types.is_floating(kind):
        return pc.invert(pc.fill_null(_without_room(values, to), False))
    if not pa.types.is_integer(to) or not is_numeric(kind):
        return pa.scalar(True)
    info = np.iinfo(to.to_pandas_dtype())
    if pa.types.is_integer(kind):
        most, least = (pa.scalar(int(end), pa.uint64() if end > 2**63 else pa.int64()) for end in (info.max, info.min))
    else:  # which may be rounded to one of the ends
        most, least = pa.scalar(float(info.max) + 0.5), pa.scalar(float(info.min) - 0.5)
    return pc.and_kleene(compared("<=", values, most), compared(">=", values, least))


# -- from text, and to it ---------------------------------------------------------------------------------------------


def _from_text(values: Any, to: pa.DataType) -> Any:
    """Text cast to true and false, numbers, or times."""
    if pa.types.is_boolean(to):
        return _truth(pc.utf8_lower(values))
    if pa.types.is_integer(to):
        return _whole(values, to)
    if is_numeric(to):
        return _decimal(values, to) if pa.types.is_decimal(to) else pc.cast(_without_plus(values), to)
    if pa.types.is_date(to):
        return _time(pc.cast(values, pa.timestamp("us")), to)
    if pa.types.is_timestamp(to):
        return pc.cast(values, to)
    if pa.types.is_time(to):
        return time_of_day(values)
    raise pa.ArrowTypeError(f"text can not be cast to {to}")


def _without_plus(values: Any) -> Any:
    return pc.replace_substring_regex(values, r"^\+", "")


def _truth(values: Any) -> Any:
    true, false = (pc.is_in(values, pa.array(words)) for words in (_TRUE, _FALSE))
    if _any(pc.and_(pc.is_valid(values), pc.invert(pc.or_(true, false)))):
        raise pa.ArrowInvalid("it is neither true nor false")
    return pc.if_else(pc.is_valid(values), true, pa.scalar(None, pa.bool_()))


def _whole(values: Any, to: pa.DataType) -> Any:
    """Digits exactly; what has a point or an exponent, rounded."""
    values = _without_plus(values)
    whole, none = pc.match_substring_regex(values, _WHOLE), pa.scalar(None, values.type)
    exact = pc.cast(pc.if_else(whole, values, none), to)
    if not _any(pc.invert(whole)):
        return exact
    others = pc.cast(pc.if_else(whole, none, values), pa.float64())
    return pc.coalesce(exact, pc.cast(pc.round(others, round_mode="half_towards_infinity"), to))


def _any(found: Any) -> bool:
    return bool(found.as_py() if isinstance(found, pa.Scalar) else pc.any(found).as_py())


def _decimal(values: Any, to: pa.DataType) -> Any:
    """Of text, without a detour over floats. Digits that make no difference are cut off, and too many refused here:
    Arrow, when it reads a decimal, does not see every overflow."""
    values, none = _without_plus(values), pa.scalar(None, values.type)
    scientific = pc.match_substring_regex(values, "[eE]")
    plain = pc.replace_substring_regex(pc.if_else(scientific, none, values), r"^(-?)0+(\d)", r"\1\2")
    plain = pc.replace_substring_regex(plain, rf"(\.\d{{{to.scale + 1}}})\d+", r"\1")
    if _any(pc.match_substring_regex(plain, rf"^-?[1-9]\d{{{to.precision - to.scale},}}")):
        raise pa.ArrowInvalid(f"it does not fit in precision {to.precision}")
    found = _rescaled(pc.cast(plain, pa.decimal256(MOST_DIGITS_THERE_ARE, to.scale + 1)), to)
    if not _any(scientific):
        return found
    others = pc.if_else(scientific, values, none)
    read = pc.cast(others, pa.decimal256(MOST_DIGITS_THERE_ARE, MOST_DIGITS))
    about, again = pc.cast(others, pa.float64()), pc.cast(read, pa.float64())
    if _any(pc.greater(pc.abs(pc.subtract(about, again)), pc.multiply(pc.abs(about), pa.scalar(1e-9)))):
        raise pa.ArrowInvalid(f"it does not fit in precision {to.precision}")
    return pc.coalesce(found, _rescaled(read, to))


def _to_text(values: Any) -> Any:
    """Values cast to text; of times, without the zeros at the end of fractions."""
    kind = values.type
    if pa.types.is_floating(kind):
        return _fractions(values)
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        raise pa.ArrowTypeError("a time with a zone is not written as text: CAST(… AS TIMESTAMP) is what clocks show")
    found = pc.cast(in_calendar(values), pa.string())
    if pa.types.is_decimal(kind):
        return _without_exponents(values, found)
    if not (pa.types.is_timestamp(kind) or pa.types.is_time(kind)) or kind.unit == "s":
        return found
    return pc.replace_substring_regex(pc.replace_substring_regex(found, r"0+$", ""), r"\.$", "")


def _without_exponents(values: Any, found: Any) -> Any:
    """Decimals as text. (Arrow writes 1E-10, and 0E-10, where there are more than six zeros.)"""
    scientific = pc.match_substring(found, "E")
    if not _any(scientific):
        return found
    if isinstance(values, pa.Scalar):
        return pa.scalar(f"{values.as_py():f}")
    plain = pa.array([f"{each:f}" for each in values.filter(scientific).to_pylist()], pa.string())
    return pc.replace_with_mask(found, pc.fill_null(scientific, False), plain)


def _fractions(values: Any) -> Any:
    """The shortest text that reads back the same, which always has a point or an exponent. (Arrow writes 1.0 as 1.)"""
    array = pa.array([values.as_py()], values.type) if isinstance(values, pa.Scalar) else one_chunk(values)
    found = pa.array(np.asarray(pc.fill_null(array, 0)).astype(str), pa.string())
    found = pc.if_else(pc.is_valid(array), found, pa.scalar(None, pa.string()))
    return found[0] if isinstance(values, pa.Scalar) else found


# -- numbers ----------------------------------------------------------------------------------------------------------


def _number(values: Any, to: pa.DataType) -> Any:
    """Numbers, true and false cast to one another, rounded as DuckDB does."""
    kind = values.type
    if pa.types.is_boolean(to):
        return pc.not_equal(values, pc.cast(pa.scalar("0"), kind))  # 0 itself fits no decimal of few digits
    if pa.types.is_boolean(kind):
        return _number(pc.cast(values, pa.int64()), to) if pa.types.is_decimal(to) else pc.cast(values, to)
    if pa.types.is_floating(to):
        values = as_float(values) if pa.types.is_decimal(kind) else values
        if _any(_without_room(values, to)):
            raise pa.ArrowInvalid(f"it is out of range of {to}")
        return pc.cast(values, to, safe=False)
    if pa.types.is_integer(to):
        if pa.types.is_decimal(kind):
            values = roomy(values)
        mode = "half_to_even" if pa.types.is_floating(kind) else "half_towards_infinity"
        return pc.cast(values if pa.types.is_integer(kind) else pc.round(values, round_mode=mode), to)
    if pa.types.is_integer(kind):
        values = pc.cast(values, pa.decimal256(76, 0))
    elif pa.types.is_floating(kind):
        _refuse_unbounded(values)
        values = pc.cast(pc.round(values, to.scale, round_mode="half_towards_infinity"), pa.decimal256(76, MOST_DIGITS))
    return _rescaled(values, to)


def _without_room(values: Any, to: pa.DataType) -> Any:
    """Which numbers are larger than any of a narrower type of floats, which ±inf and NaN are not."""
    if to == pa.float64() or pa.types.is_integer(values.type):
        return pa.scalar(False)
    return pc.and_(pc.is_finite(as_float(values)), pc.is_inf(pc.cast(values, to, safe=False)))


def _refuse_unbounded(values: Any) -> None:
    if _any(pc.fill_null(pc.invert(pc.is_finite(values)), False)):
        raise pa.ArrowInvalid("it is NaN or infinite")


def _rescaled(values: Any, to: pa.DataType) -> Any:
    if values.type.scale > to.scale:
        values = pc.round(roomy(values), to.scale, round_mode="half_towards_infinity")
    return as_decimal(values, to)


# -- times ------------------------------------------------------------------------------------------------------------


def _time(values: Any, to: pa.DataType) -> Any:
    """Dates and timestamps cast to one another; a time without zone does not become an instant."""
    kind, values = values.type, in_calendar(values)
    if pa.types.is_timestamp(kind) and kind.tz is not None and not (pa.types.is_timestamp(to) and to.tz is not None):
        values = pc.local_timestamp(values)
    elif pa.types.is_timestamp(to) and to.tz is not None and (pa.types.is_date(kind) or kind.tz is None):
        raise pa.ArrowTypeError("a time without zone is no instant: write ts AT TIME ZONE 'UTC'")
    if pa.types.is_timestamp(values.type) and pa.types.is_date(to):
        values = pc.floor_temporal(values, unit="day")
    if pa.types.is_timestamp(to) and pa.types.is_timestamp(values.type):
        return pc.cast(values, pa.timestamp(values.type.unit, to.tz))  # as fine as it is
    return pc.cast(values, to)
