"""Over what: windows by rows or by time, as frozen values. They end now, in the past, or lie ahead.

Rows(n, until=k)      the last n rows without the last k          k < 0: and the next -k
Range(t, until=u)     now - t < ts <= now - u                     closed="left", "both", "none" move the edges
Unbounded(until=u)    ts <= now - u
Since("1d", tz=…)     from the last midnight there to now
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from swag.arguments import check_flag, is_option, is_whole
from swag.errors import BadQuery
from swag.query.as_call import as_call
from swag.tables.columns import Clock
from swag.tables.times.calendars import SPELT, Period, check_zone, longest, period_starts
from swag.tables.times.durations import Duration, canonical, distance, in_units

Closed = Literal["right", "left", "both", "none"]


@dataclass(frozen=True)
class Rows:
    """The last n rows (of the key), without the last `until` of them. A negative `until` lies ahead: with so many more.

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
        if not self.n > self.until:
            raise BadQuery(f"Rows({self.n}, until={self.until}) is no window: n > until.", "sw.Rows(1000, until=200)")
        object.__setattr__(self, "n", int(self.n))
        object.__setattr__(self, "until", int(self.until))

    __repr__ = as_call

    def __str__(self) -> str:
        return f"[ROWS {self.n} UNTIL {self.until}]" if self.until else f"[ROWS {self.n}]"


@dataclass(frozen=True)
class Range:
    """The rows of the last t, without those of the last `until`; t in the unit of ts, or a duration like "5m".

    now - t < ts <= now - until. closed: which edges belong to the window, "right" (as written), "left", "both", "none".
    A negative `until` lies ahead. peers: the answer at an event also sees those after it that have its ts. SQL's RANGE
    is closed="both", peers=True.

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
    peers: bool = False

    def __post_init__(self) -> None:
        check_flag(self.peers, "peers")
        if not is_option(self.closed, ("right", "left", "both", "none")):
            raise BadQuery(
                f"closed={self.closed!r} is none of right, left, both, none.", 'sw.Range("5m", closed="left")'
            )
        far, near = distance(self.t, "t"), distance(self.until, "until")
        if is_whole(self.t) != is_whole(self.until) and near != 0 and far != 0:
            raise BadQuery(
                f"Range({self.t!r}, until={self.until!r}) mixes a plain number with a duration.",
                'sw.Range("2m", until="1m")',
            )
        if not (far > near or (far == near and self.closed == "both" and self.peers)):
            raise BadQuery(
                f"Range({self.t!r}, until={self.until!r}) is no window: t > until.", 'sw.Range("2m", until="1m")'
            )
        object.__setattr__(self, "t", canonical(self.t))
        object.__setattr__(self, "until", canonical(self.until))

    __repr__ = as_call

    def __str__(self) -> str:
        edges = ("" if self.closed == "right" else f" CLOSED {self.closed.upper()}") + " PEERS" * self.peers
        return f"[RANGE {self.t} UNTIL {self.until}{edges}]" if self.until else f"[RANGE {self.t}{edges}]"


@dataclass(frozen=True)
class Unbounded:
    """Everything up to now, or up to `until` before it. An engine keeps running aggregates for it, and no rows.

    >>> import swag as sw
    >>> events = {"ts": [1, 2, 9, 10], "x": [10, 20, 30, 40]}
    >>> query = sw.Query(sw.sum("x"), sw.Unbounded(), name="so far")
    >>> sw.evaluate(query, events)["so far"].to_pylist()
    [10, 30, 60, 100]
    """

    until: Duration = 0
    peers: bool = False

    def __post_init__(self) -> None:
        check_flag(self.peers, "peers")
        distance(self.until, "until")
        object.__setattr__(self, "until", canonical(self.until))

    __repr__ = as_call

    def __str__(self) -> str:
        return f"[UNBOUNDED{f' UNTIL {self.until}' * bool(self.until)}{' PEERS' * self.peers}]"


@dataclass(frozen=True)
class Since:
    """From the last boundary of the calendar to now: "1h", "1d" (midnight), "1w" (Monday), "1mo", in a time zone.

    tz: that of ts if it has one, else UTC. The boundary itself belongs to the window.

    >>> import swag as sw, numpy as np
    >>> days = np.array(["2024-03-01T10", "2024-03-01T23", "2024-03-02T01"], "datetime64[s]")
    >>> query = sw.Query(sw.count(), sw.Since("1d"), name="today")
    >>> sw.evaluate(query, {"ts": days})["today"].to_pylist()
    [1, 2, 1]
    """

    period: Period
    tz: str | None = None

    def __post_init__(self) -> None:
        period = self.period.strip().lower() if isinstance(self.period, str) else self.period
        texts = SPELT.items() if isinstance(period, str) else ()
        found = next((each for each, words in texts if period in words), None)
        if found is None:
            raise BadQuery(f"Since({self.period!r}): a period is one of 1h, 1d, 1w, 1mo.", 'sw.Since("1d")')
        if self.tz is not None:
            check_zone(self.tz)
        object.__setattr__(self, "period", found)

    __repr__ = as_call

    def __str__(self) -> str:
        return f"[SINCE {self.period}{f' AT TIME ZONE {self.tz!r}' if self.tz else ''}]"

    def starts(self, instants: np.ndarray, clock: Clock) -> np.ndarray:
        """Of each instant the boundary that it is counted from."""
        assert clock.unit is not None
        return period_starts(self.period, self.tz or getattr(clock.type, "tz", None) or "UTC", clock.unit, instants)


Window = Rows | Range | Unbounded | Since
WINDOWS = (Rows, Range, Unbounded, Since)
BEYOND_ALL = 2**64  # longer than any two timestamps lie apart


def lies_ahead(window: Window) -> bool:
    """Does it hold what comes after the instant for which it is asked?"""
    return not isinstance(window, Since) and str(window.until).startswith("-")


def sees_later(window: Window) -> bool:
    """May the answer at an event hold events that come after it?"""
    return lies_ahead(window) or (isinstance(window, Range | Unbounded) and window.peers)


@dataclass(frozen=True)
class Reach:
    """A window with its lengths in rows or in the unit of ts: what kernels are given.

    By rows: positions m - far .. m - near - 1 of m rows. By time: now - far < ts <= now - near; as timestamps are
    integers, `closed` is folded into far and near. A negative near lies ahead. peers: where near is 0, also of later
    rows with the same ts. since: it begins with the calendar's period, and far is how long one can be.
    """

    by_time: bool
    far: int
    near: int
    peers: bool = False
    since: Since | None = None


@lru_cache(maxsize=4096)  # a lookup asks for it twice, and reading "5m" takes as long as the kernels
def reach(window: Window, unit: str | None) -> Reach:
    """A window as kernels are given it, with durations in the unit of ts."""
    if isinstance(window, Rows):
        return Reach(False, int(window.n), int(window.until))
    if isinstance(window, Since):
        return Reach(True, longest(window.period, unit), 0, since=window)
    near = in_units(window.until, unit)
    if isinstance(window, Unbounded):
        return Reach(True, BEYOND_ALL, near, window.peers or near < 0)
    far, left = in_units(window.t, unit) + (window.closed in ("left", "both")), window.closed in ("left", "none")
    return Reach(True, far, near + left, window.peers or near < 0)


def whole_from(window: Window, start: int, clock: Clock) -> int:
    """When a window by time has left all that is not after `start`; an unbounded one never does."""
    if isinstance(window, Unbounded):
        return start
    until = start + reach(window, clock.unit).far
    return until if not isinstance(window, Since) else int(window.starts(np.array([until]), clock)[0])


@dataclass(frozen=True)
class Depth:
    """How far back windows reach, all of them together: the longest by time, and the longest by rows (of a key).

    0: there is none of that sort.
    """

    time: int = 0
    rows: int = 0

    @classmethod
    def of(cls, reaches: Iterable[Reach]) -> "Depth":
        far = [0, 0]
        for each in reaches:
            far[each.by_time] = max(far[each.by_time], each.far)
        return cls(time=far[True], rows=far[False])

    def __or__(self, other: "Depth") -> "Depth":
        return Depth(max(self.time, other.time), max(self.rows, other.rows))
