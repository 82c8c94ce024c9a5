"""Over what: windows by rows or by time, ending now or in the past, as frozen values.

Rows(n, until=k)      the last n rows without the last k
Range(t, until=u)     now - t < ts <= now - u         closed="left", "both", "none" move the edges
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from swag.arguments import is_option, is_whole
from swag.errors import BadQuery
from swag.query.as_call import as_call
from swag.tables.durations import Duration, canonical, in_units, length

Closed = Literal["right", "left", "both", "none"]


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
