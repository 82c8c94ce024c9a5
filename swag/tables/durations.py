"""Lengths of time as users write them ("5m", a timedelta, a number), to whole numbers in the unit of ts."""

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
_DURATION = re.compile(r"\s*(\d{1,40}(?:\.\d{1,40})?)\s*(ns|us|ms|s|m|h|d)\s*")
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
    match = _DURATION.fullmatch(text)
    if match is None:
        raise BadQuery(f'"{text}" is not a duration: a number and one of {", ".join(NANOSECONDS)}.', 'sw.Range("5m")')
    whole, _, fraction = match[1].partition(".")
    unit = NANOSECONDS[match[2]]
    part, rest = divmod(int(fraction or 0) * unit, 10 ** len(fraction))
    if rest:
        raise BadQuery(f'"{text}" is not a whole number of nanoseconds.', 'sw.Range("5m")')
    return int(whole) * unit + part


def is_duration(value: Any) -> TypeGuard[str | datetime.timedelta | np.timedelta64]:
    """Does it have a unit of its own?"""
    return isinstance(value, str | datetime.timedelta | np.timedelta64)


def length(duration: Any, name: str) -> int:
    """How long a duration is: a number as it is, others in nanoseconds. Refused if it is none, or below 0."""
    if not is_whole(duration) and not is_duration(duration):
        raise BadQuery(f'{name}={duration!r} is neither a whole number nor a duration such as "5m".', EXAMPLES)
    units = int(duration) if is_whole(duration) else nanoseconds(duration)
    if units < 0:
        raise BadQuery(f"{name}={duration!r} is negative.", EXAMPLES)
    return units


def canonical(duration: Duration) -> int | str:
    """A duration as a number in the unit of ts, or as text: the largest unit that it is a whole number of."""
    if is_whole(duration):
        return int(duration)  # type: ignore[arg-type]
    ns = nanoseconds(duration)
    if isinstance(duration, str):
        return "".join(duration.split()) if ns else 0
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
            "give a number in the unit of ts, e.g. sw.Range(300), or make ts a timestamp",
        )
    ns, size = nanoseconds(duration), NANOSECONDS[unit]
    if ns % size:
        raise BadQuery(
            f'"{duration}" is not a whole number of the unit of ts ({unit}).', f"cast ts to a finer unit than {unit}"
        )
    return ns // size
