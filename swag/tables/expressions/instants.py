"""Points in time beside others: text in quotes, dates and times without a zone become what they stand beside.

    ts >= '2013-10-08'            of a column of timestamps; in its zone, if it has one and the text none
    ts >= DATE '2013-10-08'       midnight, in the zone of ts

A time that a zone has twice is the later one, and one that its clocks leave out is told by how they stood before, as
DuckDB and Postgres have it.
"""

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_OFFSET = re.compile(r".*\d(Z|z|[+-]\d\d(:?\d\d)?)\s*")


_FIRST_DAY, _LAST_DAY = np.datetime64("-32767-01-01", "s"), np.datetime64("32767-12-31", "s")


def in_calendar(values: Any) -> Any:
    """Dates and timestamps, if their years are those that Arrow's calendar has: it counts others modulo 2^16."""
    times = pc.cast(values, pa.timestamp("s")) if pa.types.is_date(values.type) else values
    if pa.types.is_timestamp(times.type) and times.type.unit != "ns":
        first, last = (pa.scalar(day).cast(times.type) for day in (_FIRST_DAY, _LAST_DAY))
        beyond = pc.or_(pc.less(times, first), pc.greater(times, last))
        if (beyond if isinstance(beyond, pa.Scalar) else pc.any(beyond)).as_py():
            raise pa.ArrowInvalid("it is beyond the years -32767 to 32767, of which there is a calendar")
    return values


def is_instant(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def beside(one: Any, other: Any) -> tuple[Any, Any]:
    """Two values that are compared, or taken from one another: as points of one time, if either is one."""
    one, other = read_beside(one, (other,)), read_beside(other, (one,))
    return _in_zone_of(one, other), _in_zone_of(other, one)


def read_beside(value: Any, others: tuple[Any, ...]) -> Any:
    """A constant of text, as the time that it stands beside."""
    if not isinstance(value, pa.Scalar) or not pa.types.is_string(value.type) or not value.is_valid:
        return value
    kinds = [each.type for each in others if pa.types.is_temporal(each.type)]
    return value if not kinds else read(value.as_py(), kinds[0])


def read(text: str, kind: pa.DataType) -> pa.Scalar:
    """A point in time as text: '2013-10-08', '2013-10-08 01:02:03.5', with an offset or without."""
    try:
        return _read(text.strip(), kind)
    except pa.ArrowInvalid:
        shown = "'09:30:00'" if pa.types.is_time(kind) else "'2024-03-01', or '2024-03-01 09:30:00',"
        raise pa.ArrowTypeError(f"'{text}' is no {kind}: {shown} is one") from None


def _read(text: str, kind: pa.DataType) -> pa.Scalar:
    if pa.types.is_timestamp(kind) and kind.tz is not None and not _OFFSET.fullmatch(text[10:] and text):
        naive = pa.scalar(text).cast(pa.timestamp(unit_of(text)))
        return in_zone(naive, kind.tz)
    if pa.types.is_timestamp(kind):
        return pa.scalar(text).cast(pa.timestamp(unit_of(text), kind.tz))
    if pa.types.is_date(kind):
        return pa.scalar(text).cast(pa.date32() if len(text) <= 10 else pa.timestamp(unit_of(text)))
    if pa.types.is_time(kind):
        return time_of_day(pa.scalar(text))
    raise pa.ArrowTypeError(f"'{text}' is text, and no {kind}: INTERVAL '5' MINUTES is one")


def time_of_day(values: Any) -> Any:
    """Text such as 09:30:00, which Arrow reads behind a date only."""
    some_day, blank = (pa.scalar(each, values.type) for each in ("1970-01-01", " "))
    on_some_day = pc.binary_join_element_wise(some_day, values, blank)
    try:
        return pc.cast(pc.cast(on_some_day, pa.timestamp("us")), pa.time64("us"))
    except pa.ArrowInvalid:
        raise pa.ArrowInvalid("it is no time of day such as 09:30:00") from None


def unit_of(text: str) -> str:
    """As fine as it is written."""
    fraction = re.search(r"\.(\d+)", text)
    return "us" if fraction is None or len(fraction[1]) <= 6 else "ns"


def _in_zone_of(value: Any, other: Any) -> Any:
    zone = other.type.tz if pa.types.is_timestamp(other.type) else None
    if zone is None or not is_instant(value.type) or (pa.types.is_timestamp(value.type) and value.type.tz):
        return value
    if pa.types.is_timestamp(value.type) and not isinstance(value, pa.Scalar):
        raise pa.ArrowTypeError(f"a time without zone beside one of {zone}: write ts AT TIME ZONE '{zone}'")
    return in_zone(value, zone)


def in_zone(value: Any, zone: str) -> Any:
    """A date, or a time without zone, as the instant that the clocks of a zone showed it."""
    if pa.types.is_date(value.type):
        value = pc.cast(value, pa.timestamp("s"))
    found = pc.assume_timezone(value, zone, ambiguous="latest", nonexistent="earliest")
    return pc.add(found, pc.subtract(value, pc.local_timestamp(found)))  # 0, but where clocks never showed it
