"""Points in time as users write them, to whole numbers in the unit of ts. What does not fit exactly is refused.

An hour that is cut off, or a zone that is guessed, would be an answer for another time than was asked for.
"""

import datetime
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from swag.arguments import LARGEST, SMALLEST, is_whole
from swag.errors import BadQuery, BadType
from swag.tables.times.durations import NANOSECONDS

_FINER = {"ps": Fraction(1, 10**3), "fs": Fraction(1, 10**6), "as": Fraction(1, 10**9)}
_NUMPY: dict[str, Any] = {**NANOSECONDS, "D": NANOSECONDS["d"], **_FINER}
_PLURALS = {"d": "days", "s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
MOST_PERIODS = 10**12  # years, months or weeks that NumPy can turn into days without wrapping round
_EPOCH = datetime.datetime(1970, 1, 1)


def whole_number(at: Any, what: str) -> int:
    """An integer that int64 holds."""
    if SMALLEST <= at <= LARGEST:
        return int(at)
    raise BadQuery(f"{what}={at} does not fit int64, which ts is kept in.", f"{what}={LARGEST} at most")


def point(at: Any, kind: pa.DataType, unit: str, what: str) -> int:
    """A date, datetime, NumPy or pandas timestamp, or ISO text, in `unit`s since 1970. kind: the type of ts."""
    found = _read(at, what)
    if found is None:
        raise BadType(
            f"{what}={at!r} is no point in time of type {kind}.", "a datetime, or an integer in the unit of ts"
        )
    nanoseconds, zoned = found
    _check_zone(at, zoned, kind, what)
    units, rest = divmod(nanoseconds, NANOSECONDS[unit])
    if rest:
        raise BadQuery(
            f"{what}={at!r} is finer than ts, which counts whole {_PLURALS[unit]} ({kind}).",
            "round it, or cast ts to a finer unit",
        )
    return whole_number(units, what)


def is_point(at: Any) -> bool:
    """Does it stand for a point in time, of whatever zone and however fine?"""
    if isinstance(at, pa.Scalar) and pa.types.is_integer(at.type):
        at = at.as_py()
    if is_whole(at):
        return bool(SMALLEST <= at <= LARGEST)
    try:
        return _read(at, "at") is not None
    except BadType:
        return False


def _read(at: Any, what: str) -> tuple[int | Fraction, bool | None] | None:
    """Nanoseconds since 1970, and whether they are those of UTC (None: a date, which is that of no zone)."""
    if isinstance(at, str):
        try:
            at = datetime.datetime.fromisoformat(at)
        except ValueError:
            raise BadType(f"{what}={at!r} is no point in time.", f'{what}="2024-03-01T09:30:00"') from None
    if isinstance(at, pa.Scalar):
        return _read_scalar(at)
    if isinstance(at, datetime.datetime):
        if at != at:  # pandas' NaT
            return None
        zoned = at.tzinfo is not None and at.utcoffset() is not None
        if hasattr(at, "to_datetime64"):  # of pandas: it has nanoseconds
            return _read_numpy(at.to_datetime64(), zoned)
        return _of_datetime(at), zoned
    if isinstance(at, datetime.date):
        return _of_datetime(datetime.datetime(at.year, at.month, at.day)), None
    if isinstance(at, np.datetime64):
        return _read_numpy(at, False)
    return None


def _read_scalar(at: pa.Scalar) -> tuple[int | Fraction, bool | None] | None:
    kind = at.type
    if not at.is_valid or not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
        return None
    if pa.types.is_date(kind):
        return _read(at.as_py(), "")
    return at.value * NANOSECONDS[kind.unit], kind.tz is not None


def _read_numpy(at: np.datetime64, zoned: bool) -> tuple[int | Fraction, bool] | None:
    """A NumPy timestamp of any unit as nanoseconds since 1970, and `zoned`; None if it is NaT or out of range."""
    if np.isnat(at):
        return None
    unit, count = np.datetime_data(at.dtype)
    if unit in ("Y", "M", "W"):
        if abs(int(at.astype(np.int64))) * count > MOST_PERIODS:
            return None
        at, unit, count = at.astype("datetime64[D]"), "D", 1
    return int(at.astype(np.int64)) * count * _NUMPY[unit], zoned


def _of_datetime(at: datetime.datetime) -> int:
    offset = at.utcoffset() or datetime.timedelta(0)
    since = at.replace(tzinfo=None) - _EPOCH - offset
    return ((since.days * 86400 + since.seconds) * 10**6 + since.microseconds) * 1000


def _check_zone(at: Any, zoned: bool | None, kind: pa.DataType, what: str) -> None:
    """Refuse a point in time with a zone where ts has none, and one without where ts has one."""
    zone = kind.tz if pa.types.is_timestamp(kind) else None
    if zone is not None and not zoned:
        raise BadType(
            f"{what}={at!r} has no time zone, but ts has: {kind}.",
            f'{what}=datetime(…, tzinfo=…), or text with an offset: {what}="2024-03-01T09:30:00+00:00"',
        )
    if zone is None and zoned:
        raise BadType(
            f"{what}={at!r} has a time zone, but ts has none: {kind}.",
            f"{what}=at.replace(tzinfo=None) in the zone that ts is meant in, or give ts a zone",
        )
