"""Where the hours, days, weeks and months of a time zone begin: what `Since` counts from.

A day, week or month begins when its first date is first reached there, so days have 23 or 25 hours where clocks are
changed, and one whose midnight is left out begins with the first instant after the gap. An hour begins whenever the
clock strikes, also where it strikes one twice. Boundaries are worked out once for the span of a batch, by Arrow, and
then searched.
"""

import datetime
import re
from functools import lru_cache
from typing import Any, Literal
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swag.arguments import LARGEST
from swag.errors import BadEvents, BadQuery
from swag.tables.times.durations import NANOSECONDS

Period = Literal["1h", "1d", "1w", "1mo"]
SPELT: dict[Period, tuple[str, ...]] = {
    "1h": ("1h", "hour", "1 hour", "1hour", "pt1h"), "1d": ("1d", "day", "1 day", "1day", "p1d"),
    "1w": ("1w", "week", "1 week", "1week", "p1w"), "1mo": ("1mo", "month", "1 month", "1month", "p1m"),
}  # fmt: skip
HOUR, DAY = 3600, 86400
FARTHEST_OFF_UTC = 36 * HOUR  # further than any zone is off UTC
LONGEST = {"1h": 2 * HOUR, "1d": DAY + 2 * HOUR, "1w": 7 * DAY + 2 * HOUR, "1mo": 31 * DAY + 2 * HOUR}
FIRST_SECOND, LAST_SECOND = -62_135_510_400, 253_402_128_000  # the years 1 to 9999, a day less at both ends
KNOWN_UPTO = 2_145_830_400  # 2037-12-31: later ones, Arrow takes for standard time
_OFFSET = re.compile(r"([+-])(\d{2}):?(\d{2})")


def check_zone(tz: Any) -> None:
    """Refuse what is no time zone."""
    try:
        if _OFFSET.fullmatch(tz) is None:
            ZoneInfo(tz)
    except Exception:
        raise BadQuery(f"tz={tz!r} is no time zone.", 'tz="America/New_York", tz="UTC", tz="+02:00"') from None


def longest(period: Period, unit: str | None) -> int:
    """How long a period may be, in the unit of ts."""
    if unit is None:
        raise BadQuery(
            f'Since("{period}") counts from a date, but ts is an integer column, which has none.',
            "make ts a timestamp, or give a length: sw.Range(86400)",
        )
    return -(-LONGEST[period] * 10**9 // NANOSECONDS[unit])


def period_starts(period: Period, zone: str, unit: str, instants: np.ndarray) -> np.ndarray:
    """Of each instant the last boundary that is not after it; both as int64 in the unit of ts."""
    seconds = _seconds(instants, unit)
    if not seconds.size:
        return instants
    first, last = int(seconds.min()), int(seconds.max())
    if first < FIRST_SECOND or last >= LAST_SECOND:
        beyond = instants.min() if first < FIRST_SECOND else instants.max()
        shown = beyond.astype(f"datetime64[{'D' if unit == 'd' else unit}]")
        raise BadEvents(
            f"ts {shown} is beyond the days whose calendar is known, which are {_day(FIRST_SECOND)} to "
            f"{_day(LAST_SECOND - DAY)}.",
            "leave such events out, or give a length, which needs no calendar: sw.Range(…)",
        )
    if first // DAY == last // DAY:  # the usual lookup
        found = _of_a_day(period, zone, first // DAY)
    elif (last - first) // HOUR <= 4 * seconds.size + 10_000:
        found = _boundaries(period, zone, np.arange(first - FARTHEST_OFF_UTC, last + FARTHEST_OFF_UTC, HOUR))
    else:  # years between them
        found = _boundaries(period, zone, np.unique(seconds // HOUR) * HOUR)
    return _in_unit(found, unit)[np.searchsorted(found, seconds, "right") - 1]


def _day(second: int) -> str:
    return str(np.datetime64(second, "s").astype("datetime64[D]"))


@lru_cache(maxsize=1024)
def _of_a_day(period: Period, zone: str, day: int) -> np.ndarray:
    return _boundaries(period, zone, np.arange(day * DAY, (day + 1) * DAY, HOUR))


def _boundaries(period: Period, zone: str, seconds: np.ndarray) -> np.ndarray:
    """All that may matter around these, in order, in seconds of UTC."""
    step = HOUR if period == "1h" else DAY  # none is left out
    nearby = [_number(period, seconds + shift) for shift in range(-FARTHEST_OFF_UTC, FARTHEST_OFF_UTC + 1, step)]
    local = _begins(period, np.unique(np.concatenate(nearby)))
    early = _as_utc(local, zone, "earliest")
    return np.unique(early if period != "1h" else np.concatenate([early, _as_utc(local, zone, "latest")]))


def _number(period: Period, seconds: np.ndarray) -> np.ndarray:
    """Which hour, day, week (from a Monday on) or month of the local calendar it is."""
    if period == "1mo":
        return seconds.astype("datetime64[s]").astype("datetime64[M]").astype(np.int64)
    days = seconds // DAY
    return seconds // HOUR if period == "1h" else days if period == "1d" else (days + 3) // 7


def _begins(period: Period, number: np.ndarray) -> np.ndarray:
    """The reverse: the local second with which it begins."""
    if period == "1mo":
        return number.astype("datetime64[M]").astype("datetime64[s]").astype(np.int64)
    return number * HOUR if period == "1h" else number * DAY if period == "1d" else (number * 7 - 3) * DAY


def _as_utc(local: np.ndarray, zone: str, ambiguous: str) -> np.ndarray:
    """Local seconds as seconds of UTC; in a gap, the first instant after it."""
    fixed = _OFFSET.fullmatch(zone)
    if zone == "UTC" or fixed is not None:
        offset = 0 if fixed is None else int(fixed[1] + "1") * (int(fixed[2]) * HOUR + int(fixed[3]) * 60)
        return local - offset
    known = np.searchsorted(local, KNOWN_UPTO)
    times = pa.array(local[:known]).cast(pa.timestamp("s"))
    zoned = pc.assume_timezone(times, zone, ambiguous=ambiguous, nonexistent="latest")
    later = [_one_as_utc(second, ZoneInfo(zone), ambiguous) for second in local[known:].tolist()]
    return np.concatenate([zoned.cast(pa.int64()).to_numpy(), np.array(later, np.int64)])


def _one_as_utc(local: int, zone: ZoneInfo, ambiguous: str) -> int:
    shown = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=local)
    return int(shown.replace(tzinfo=zone, fold=int(ambiguous == "latest")).timestamp())


def _seconds(instants: np.ndarray, unit: str) -> np.ndarray:
    return instants * DAY if unit == "d" else instants // (10**9 // NANOSECONDS[unit])


def _in_unit(seconds: np.ndarray, unit: str) -> np.ndarray:
    """The first instant of ts that is not before each; those before all that int64 has are the first of it."""
    if unit == "d":
        return -(-seconds // DAY)
    per_second = 10**9 // NANOSECONDS[unit]
    return np.maximum(seconds, -(LARGEST // per_second)) * per_second
