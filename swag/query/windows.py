"""Over what: windows by rows or by time, ending now or in the past, as frozen values.

Rows(n, until=k)      the last n rows without the last k
Range(t, until=u)     now - t < ts <= now - u         closed="left", "both", "none" move the edges
"""

import datetime
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeGuard

import numpy as np

from swag.arguments import is_option, is_whole
from swag.errors import BadQuery
from swag.query.as_call import as_call

Duration = int | str | datetime.timedelta | np.timedelta64
Closed = Literal["right", "left", "both", "none"]

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


@dataclass(frozen=True)
class Rows:
    """The last n rows (of the key), without the last `until` of them.

    >>> import swag as sw
    >>> events = {"ts": [1, 2, 3, 4], "x": [10, 20, 30, 40]}
    >>> query = sw.Query(sw.sum("x"), sw.Rows(2), name="two")
    >>> sw.evaluate(query, events)["two"].to_pylist()
    [10, 30, 50, 70]
    """

    n: int
    until: int = 0

    def __post_init__(self) -> None:
        for name, value in (("n", self.n), ("until", self.until)):
            if not is_whole(value):
                raise BadQuery(f"Rows counts rows: {name} is {value!r}, not a whole number.", "sw.Rows(1000)")
        if not self.n > self.until >= 0:
            raise BadQuery(
                f"Rows({self.n}, until={self.until}) is no window: n > until >= 0.", "sw.Rows(1000, until=200)"
            )
        object.__setattr__(self, "n", int(self.n))
        object.__setattr__(self, "until", int(self.until))

    __repr__ = as_call

    def __str__(self) -> str:
        return f"[ROWS {self.n} UNTIL {self.until}]" if self.until else f"[ROWS {self.n}]"


@dataclass(frozen=True)
class Range:
    """The rows of the last t, without those of the last `until`; t in the unit of ts, or a duration like "5m".

    now - t < ts <= now - until. closed: which edges belong to the window, "right" (as written), "left", "both", "none".

    >>> import swag as sw
    >>> events = {"ts": [1, 2, 9, 10], "x": [10, 20, 30, 40]}
    >>> query = sw.Query(sw.sum("x"), sw.Range(5), name="lately")
    >>> sw.evaluate(query, events)["lately"].to_pylist()
    [10, 30, 30, 70]
    >>> sw.Range("2m", until="1m")
    sw.Range("2m", until="1m")
    """

    t: Duration
    until: Duration = 0
    closed: Closed = "right"

    def __post_init__(self) -> None:
        if not is_option(self.closed, ("right", "left", "both", "none")):
            raise BadQuery(
                f"closed={self.closed!r} is none of right, left, both, none.", 'sw.Range("5m", closed="left")'
            )
        far, near = length(self.t, "t"), length(self.until, "until")
        if is_whole(self.t) != is_whole(self.until) and near != 0:
            raise BadQuery(
                f"Range({self.t!r}, until={self.until!r}) mixes a plain number with a duration.",
                'sw.Range("2m", until="1m")',
            )
        if not far > near >= 0:
            raise BadQuery(
                f"Range({self.t!r}, until={self.until!r}) is no window: t > until >= 0.", 'sw.Range("2m", until="1m")'
            )
        object.__setattr__(self, "t", canonical(self.t))
        object.__setattr__(self, "until", canonical(self.until))

    __repr__ = as_call

    def __str__(self) -> str:
        edges = "" if self.closed == "right" else f" CLOSED {self.closed.upper()}"
        return f"[RANGE {self.t} UNTIL {self.until}{edges}]" if self.until else f"[RANGE {self.t}{edges}]"


Window = Rows | Range


@dataclass(frozen=True)
class Reach:
    """A window with its lengths in rows or in the unit of ts: what kernels are given.

    By rows: positions m - far .. m - near - 1 of m rows. By time: now - far < ts <= now - near; as timestamps are
    integers, `closed` is folded into far and near.
    """

    by_time: bool
    far: int
    near: int


@lru_cache(maxsize=4096)  # a lookup asks for it twice, and reading "5m" takes as long as the kernels
def reach(window: Window, unit: str | None) -> Reach:
    if isinstance(window, Rows):
        return Reach(False, int(window.n), int(window.until))
    far, near = in_units(window.t, unit), in_units(window.until, unit)
    return Reach(True, far + (window.closed in ("left", "both")), near + (window.closed in ("left", "none")))
