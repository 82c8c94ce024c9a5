"""Dates, timestamps and intervals: what is added to them, their parts, and where they are cut off.

A timestamp with a zone has the parts that clocks of that zone show. Months and years are no intervals: they differ in
length.
"""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from swag.errors import BadQuery
from swag.tables import arithmetic
from swag.tables.expressions import instants
from swag.tables.expressions.types import alike, finer, time_of_day

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_SECONDS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": 86400, "WEEK": 7 * 86400}
_MICROSECONDS = {"MICROSECOND": 1, "MILLISECOND": 10**3} | {unit: 10**6 * n for unit, n in _SECONDS.items()}
_UP_TO_HOURS = ("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR")  # which no zone's clocks are set by less than
_CUTS = ("MICROSECOND", "MILLISECOND", *_SECONDS, "MONTH", "QUARTER", "YEAR")


def _weeks_between(start: Any, end: Any) -> Any:
    """Seven days each, on whatever day they begin, as DuckDB has it."""
    return pc.divide(pc.days_between(start, end), 7)


def _months_between(start: Any, end: Any) -> Any:
    return pc.add(pc.multiply(pc.years_between(start, end), 12), pc.subtract(pc.month(end), pc.month(start)))


_BETWEEN = {
    "MICROSECOND": pc.microseconds_between, "MILLISECOND": pc.milliseconds_between, "SECOND": pc.seconds_between,
    "MINUTE": pc.minutes_between, "HOUR": pc.hours_between, "DAY": pc.days_between,
    "WEEK": _weeks_between, "MONTH": _months_between, "QUARTER": pc.quarters_between, "YEAR": pc.years_between,
}  # fmt: skip


def interval(amount: str, unit: str) -> pa.Scalar:
    """INTERVAL '5' MINUTES: a duration, in seconds if it is a whole number of them."""
    size = _MICROSECONDS.get(unit.upper().removesuffix("S"))
    if size is None or not amount.removeprefix("-").isdecimal():
        rule = "months and years differ in length" if unit.upper()[:4] in ("MONT", "YEAR") else "it is no interval"
        raise BadQuery(f"INTERVAL '{amount}' {unit}: {rule}.", "INTERVAL '30' DAYS, INTERVAL '90' SECONDS")
    length = int(amount) * size
    return pa.scalar(length // 10**6, pa.duration("s")) if length % 10**6 == 0 else pa.scalar(length, pa.duration("us"))


# -- arithmetic -------------------------------------------------------------------------------------------------------


def plus(a: Any, b: Any) -> Any:
    if pa.types.is_temporal(b.type) and not pa.types.is_temporal(a.type):
        a, b = b, a
    if pa.types.is_date(a.type) and pa.types.is_integer(b.type):
        return _date(arithmetic.add(_days(a), b))
    if pa.types.is_null(b.type) and (instants.is_instant(a.type) or pa.types.is_time(a.type)):
        return pc.if_else(pa.scalar(None, pa.bool_()), a, a)
    if pa.types.is_time(a.type):
        return _on_the_clock(pc.add_checked, a, b)
    return _computed(pc.add_checked, _exact(a), b)


def minus(a: Any, b: Any) -> Any:
    if pa.types.is_date(a.type) and pa.types.is_integer(b.type):
        return _date(arithmetic.subtract(_days(a), b))
    a, b = instants.beside(a, b)
    if pa.types.is_date(a.type) and pa.types.is_date(b.type):
        return arithmetic.subtract(_days(a), _days(b))
    if pa.types.is_time(a.type) and not pa.types.is_time(b.type):
        return _on_the_clock(pc.subtract_checked, a, b)
    return _computed(pc.subtract_checked, _exact(a), _exact(b))


def _computed(function: Callable[..., Any], a: Any, b: Any) -> Any:
    """Arrow adds what lies beneath nulls of times, too: beneath those of pandas that is as much as there can be."""
    try:
        return function(a, b)
    except pa.ArrowInvalid:
        known = pc.and_(pc.is_valid(a), pc.is_valid(b))
        found = function(*(pc.fill_null(each, pa.scalar(0, each.type)) for each in (a, b)))
        return pc.if_else(known, found, pa.scalar(None, found.type))


def _on_the_clock(function: Callable[..., Any], a: Any, b: Any) -> Any:
    """Times of day and intervals: behind midnight a day begins again, as DuckDB has it. (Arrow refuses what is not
    within the day, and takes nulls for midnight there.)"""
    if not pa.types.is_duration(b.type):
        return function(a, b)
    unit = finer(a.type.unit, b.type.unit)
    time, length = pc.cast(a, time_of_day(unit)), pc.cast(b, pa.duration(unit))
    counts = pc.cast(time, pa.int32()) if pa.types.is_time32(time.type) else time
    found = function(pc.cast(counts, pa.int64()), pc.cast(length, pa.int64()))
    day = pa.scalar(_SECONDS["DAY"] * _PER_SECOND[unit])
    found = pc.subtract(found, pc.multiply(pc.divide(found, day), day))
    found = pc.if_else(pc.less(found, pa.scalar(0)), pc.add(found, day), found)
    return pc.cast(pc.cast(found, pa.int32()) if pa.types.is_time32(time.type) else found, time.type)


def _exact(a: Any) -> Any:
    """A date as its midnight."""
    return pc.cast(a, pa.timestamp("s")) if pa.types.is_date(a.type) else a


def _days(a: Any) -> Any:
    return pc.cast(pc.cast(pc.cast(a, pa.date32()), pa.int32()), pa.int64())


def _date(days: Any) -> Any:
    return pc.cast(pc.cast(days, pa.int32()), pa.date32())


# -- parts ------------------------------------------------------------------------------------------------------------


def _sunday_is_zero(a: Any) -> Any:
    return pc.day_of_week(a, count_from_zero=True, week_start=7)


def _within_minute(per_second: int, part: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda a: arithmetic.add(arithmetic.multiply(pc.second(a), pa.scalar(per_second)), part(a))


def _milliseconds(a: Any) -> Any:
    return pc.millisecond(a)


def _microseconds(a: Any) -> Any:
    return arithmetic.add(arithmetic.multiply(pc.millisecond(a), pa.scalar(1000)), pc.microsecond(a))


PARTS: dict[str, Callable[[Any], Any]] = {
    "YEAR": pc.year, "QUARTER": pc.quarter, "MONTH": pc.month, "WEEK": pc.iso_week, "DAY": pc.day, "HOUR": pc.hour,
    "MINUTE": pc.minute, "SECOND": pc.second, "DAYOFWEEK": _sunday_is_zero, "DAYOFYEAR": pc.day_of_year,
    "DAYOFWEEKISO": lambda a: pc.day_of_week(a, count_from_zero=False, week_start=1),
    "MILLISECOND": _within_minute(10**3, _milliseconds), "MICROSECOND": _within_minute(10**6, _microseconds),
    "ISOYEAR": pc.iso_year,
}  # fmt: skip
_OTHER_NAMES = {
    "DOW": "DAYOFWEEK", "WEEKDAY": "DAYOFWEEK", "DOY": "DAYOFYEAR", "ISODOW": "DAYOFWEEKISO", "DAYOFMONTH": "DAY",
    "WEEKOFYEAR": "WEEK", "YEARS": "YEAR", "MONTHS": "MONTH", "DAYS": "DAY", "HOURS": "HOUR", "MINUTES": "MINUTE",
    "SECONDS": "SECOND", "MILLISECONDS": "MILLISECOND", "MICROSECONDS": "MICROSECOND",
}  # fmt: skip


def part(name: str) -> Callable[[Any], Any]:
    """EXTRACT(name FROM …), as a function."""
    name = name.upper()
    name = _OTHER_NAMES.get(name, name)
    if name == "EPOCH":
        return epoch
    if name not in PARTS:
        raise BadQuery(f"there is no part {name} of a time.", f"one of {', '.join([*PARTS, 'EPOCH']).lower()}")
    of = PARTS[name]
    return lambda a: of(_on_a_day(a))


def _instant(a: Any) -> Any:
    if not pa.types.is_temporal(a.type) and not pa.types.is_null(a.type):
        raise pa.ArrowTypeError(f"{a.type} is no date or time")
    return pc.cast(a, pa.timestamp("s")) if pa.types.is_null(a.type) or pa.types.is_date(a.type) else a


def _on_a_day(a: Any) -> Any:
    return instants.in_calendar(_instant(a))


def _day_and_time(a: Any) -> Any:
    """Values as timestamps; times of day and intervals are of no day."""
    a = _on_a_day(a)
    if not pa.types.is_timestamp(a.type):
        raise pa.ArrowTypeError(f"{a.type} is no date, and no time of one")
    return a


def epoch(a: Any) -> Any:
    """Seconds since 1970, or of an interval, as a float."""
    a = _instant(a)
    counts = pc.cast(pc.cast(a, pa.int64()) if a.type.bit_width == 64 else pc.cast(a, pa.int32()), pa.float64(), False)
    return pc.divide(counts, pa.scalar(float(_PER_SECOND[a.type.unit])))


def truncated(unit: str) -> Callable[[Any], Any]:
    """DATE_TRUNC(unit, …), as a function. A week begins on Monday."""
    if unit.upper() not in _CUTS:
        raise BadQuery(f"DATE_TRUNC('{unit}', …): there is no such unit.", f"one of {', '.join(_CUTS).lower()}")
    within_hour = unit.upper() in _UP_TO_HOURS

    def floor(a: Any) -> Any:
        return pc.floor_temporal(a, unit=unit.lower(), week_starts_monday=True)

    def cut_off(a: Any) -> Any:
        a = _day_and_time(a)
        if a.type.tz is None:
            return floor(a)
        shown = pc.local_timestamp(a)  # Arrow refuses to cut off a time that clocks show twice
        cut = floor(shown)
        return pc.subtract(a, pc.subtract(shown, cut)) if within_hour else instants.in_zone(cut, a.type.tz)

    return cut_off


def difference(unit: str) -> Callable[[Any, Any], Any]:
    """DATE_DIFF(unit, from, to): how many such boundaries lie between them."""
    if unit.upper() not in _BETWEEN:
        raise BadQuery(f"DATE_DIFF('{unit}', …): there is no such unit.", f"one of {', '.join(_BETWEEN).lower()}")
    between, cut = _BETWEEN[unit.upper()], truncated(unit)

    def counted(start: Any, end: Any) -> Any:
        start, end = alike(*map(_day_and_time, instants.beside(start, end)))
        if start.type.tz is not None and unit.upper() in _UP_TO_HOURS:  # what passed, whatever clocks were set to
            start, end = (pc.cast(cut(each), pa.timestamp(each.type.unit)) for each in (start, end))
        return between(start, end)

    return counted


def at_zone(zone: str) -> Callable[[Any], Any]:
    """ts AT TIME ZONE …: what its clocks show, or, of a time without zone, the instant at which they show it."""

    def moved(a: Any) -> Any:
        a = _day_and_time(a)
        if a.type.tz is None:
            return instants.in_zone(a, zone)
        return pc.local_timestamp(pc.cast(a, pa.timestamp(a.type.unit, zone)))

    return moved
