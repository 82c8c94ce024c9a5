"""Lengths of time as users write them, to whole numbers in the unit of ts.

"250ms" "30s" "5m" "2h" "1d" "1w", spelt out ("5 minutes", "90 sec", "5min"), ISO 8601 ("PT5M", "P1DT12H"), a timedelta
of Python, NumPy or pandas, or a plain number in the unit of ts. A sign in front turns them round: "-1m" lies ahead.
"""

import datetime
import re
from typing import Any, TypeGuard

import numpy as np

from swag.arguments import is_whole
from swag.errors import BadQuery

Duration = int | str | datetime.timedelta | np.timedelta64

NANOSECONDS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9, "d": 86400 * 10**9}
EXAMPLES = 'a number in the unit of ts, "5m", or a timedelta'
_NUMPY = {**NANOSECONDS, "D": NANOSECONDS["d"], "W": 7 * NANOSECONDS["d"]}
_SPELT = {
    "ns": "nanosecond nanoseconds nanos nsec", "us": "microsecond microseconds micros usec µs",
    "ms": "millisecond milliseconds millis msec", "s": "second seconds sec secs", "m": "minute minutes min mins",
    "h": "hour hours hr hrs", "d": "day days",
}  # fmt: skip
_UNIT = {word: unit for unit, words in _SPELT.items() for word in words.split()} | {unit: unit for unit in NANOSECONDS}
_WEEK = ("w", "week", "weeks")
_NUMBER = r"(\d{1,40}(?:\.\d{1,40})?)"
_DURATION = re.compile(rf"\s*([+-]?)\s*{_NUMBER}\s*([a-zA-Zµ]{{1,20}})\s*")
_ISO = re.compile(rf"\s*([+-]?)P(?:{_NUMBER}W|(?:{_NUMBER}D)?(?:T(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}S)?)?)\s*")
_ISO_UNITS = ("w", "d", "h", "m", "s")
UNITS = ("s", "ms", "us", "ns")  # of Arrow timestamps


def nanoseconds(duration: Any) -> int:
    """The length of a duration that has a unit ("5m", a timedelta), in nanoseconds."""
    if isinstance(duration, str):
        return _read(duration)
    if isinstance(duration, datetime.timedelta) and not hasattr(duration, "to_timedelta64"):
        return (duration.days * 86400 + duration.seconds) * 10**9 + duration.microseconds * 1000
    exact = getattr(duration, "to_timedelta64", lambda: duration)()  # a Timedelta of pandas has nanoseconds
    if not isinstance(exact, np.timedelta64) or np.isnat(exact):
        raise BadQuery(f'{duration!r} is neither a whole number nor a duration such as "5m".', EXAMPLES)
    unit, count = np.datetime_data(exact.dtype)
    if unit not in _NUMPY:
        raise BadQuery(f"{duration!r} can not be told in nanoseconds: its unit is {unit}.", EXAMPLES)
    return int(exact.astype(np.int64)) * count * _NUMPY[unit]


def _read(text: str) -> int:
    sign, amounts = _amounts(text)
    total = sum(_exactly(text, number, unit) for number, unit in amounts)
    return -total if sign == "-" else total


def _amounts(text: str) -> tuple[str, list[tuple[str, str]]]:
    """The sign, and numbers with a unit each: one as people write it, several in ISO 8601."""
    match = _DURATION.fullmatch(text)
    if match is not None:
        unit = match[3] if match[3] in NANOSECONDS else match[3].lower()  # "5M" may mean months
        if unit in _WEEK or (unit in _UNIT and (len(unit) > 1 or unit == match[3])):
            return match[1], [(match[2], "w" if unit in _WEEK else _UNIT[unit])]
    match = _ISO.fullmatch(text)
    found = [] if match is None else zip(match.groups()[1:], _ISO_UNITS, strict=True)
    amounts = [(number, unit) for number, unit in found if number is not None]
    if match is None or not amounts or text.rstrip().endswith("T"):
        units = ", ".join([*NANOSECONDS, "w"])
        raise BadQuery(f'"{text}" is not a duration: a number and one of {units}.', '"5m", "90 seconds", "PT5M"')
    return match[1], amounts


def _exactly(text: str, number: str, unit: str) -> int:
    """In nanoseconds."""
    whole, _, fraction = number.partition(".")
    size = 7 * NANOSECONDS["d"] if unit == "w" else NANOSECONDS[unit]
    part, rest = divmod(int(fraction or 0) * size, 10 ** len(fraction))
    if rest:
        raise BadQuery(f'"{text}" is not a whole number of nanoseconds.', 'sw.Range("5m")')
    return int(whole) * size + part


def is_duration(value: Any) -> TypeGuard[str | datetime.timedelta | np.timedelta64]:
    """Does it have a unit of its own?"""
    return isinstance(value, str | datetime.timedelta | np.timedelta64)


def length(duration: Any, name: str) -> int:
    """How long a duration is: a number as it is, others in nanoseconds. Refused if it is none, or below 0."""
    units = distance(duration, name)
    if units < 0:
        raise BadQuery(f"{name}={duration!r} is negative.", EXAMPLES)
    return units


def distance(duration: Any, name: str) -> int:
    """How far back an edge lies, or ahead if it is negative: as `length`, which is never negative."""
    if not is_whole(duration) and not is_duration(duration):
        raise BadQuery(f'{name}={duration!r} is neither a whole number nor a duration such as "5m".', EXAMPLES)
    return int(duration) if is_whole(duration) else nanoseconds(duration)


def canonical(duration: Duration) -> int | str:
    """A duration as a number in the unit of ts, or as text: the largest unit that it is a whole number of."""
    if is_whole(duration):
        return int(duration)  # type: ignore[arg-type]
    ns = nanoseconds(duration)
    if isinstance(duration, str):
        sign, amounts = _amounts(duration)
        if len(amounts) == 1 and amounts[0][1] in NANOSECONDS:  # in the unit that the user thinks in
            return f"{'-' * (sign == '-')}{amounts[0][0]}{amounts[0][1]}" if ns else 0
    return (
        next((f"{ns // size}{unit}" for unit, size in reversed(NANOSECONDS.items()) if ns % size == 0), 0) if ns else 0
    )


def in_units(duration: Duration, unit: str | None) -> int:
    """A duration in the unit of `ts`: "s" … "ns" of a timestamp, or None for an integer ts."""
    if is_whole(duration):
        return int(duration)  # type: ignore[arg-type]
    if not is_duration(duration):
        raise BadQuery(f'{duration!r} is neither a whole number nor a duration such as "5m".', EXAMPLES)
    if unit is None:
        raise BadQuery(
            f'"{duration}" is a duration, but ts is an integer column, whose unit is not known.',
            "give a number in the unit of ts, e.g. 300, or make ts a timestamp",
            about=duration if isinstance(duration, str) else "",
        )
    ns, size = nanoseconds(duration), NANOSECONDS[unit]
    if ns % size:
        raise BadQuery(
            f'"{duration}" is not a whole number of the unit of ts ({unit}).',
            f"cast ts to a finer unit than {unit}",
            about=duration if isinstance(duration, str) else "",
        )
    return ns // size
