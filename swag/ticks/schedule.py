"""When queries with `every` answer: the ticks of a stretch of rows, as vectors (kernels/ticks/schedule.py)."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from kernels.ticks import schedule as kernels
from kernels.ticks.schedule import END, FIRST, LAST, NOW, NUMBER, SEGMENT
from swag.errors import BadEvents, BadQuery
from swag.query.every import Every
from swag.query.windows import Reach
from swag.tables.columns import fixed

MOST = 2**27  # ticks at once; more are a mistake, such as a slot of a second over a gap of a century
FARTHEST = 2**62  # further back than this is as good as for ever
NEVER = int(np.iinfo(np.int64).max)


@dataclass(eq=False)
class Ticks:
    """Tick `number[i]` at time `now[i]` sees the rows before `end[i]`, of its segment."""

    number: np.ndarray
    now: np.ndarray
    end: np.ndarray
    segment: np.ndarray

    @property
    def count(self) -> int:
        return int(self.number.size)


@dataclass(eq=False)
class Span:
    """Per segment: the ticks to answer, first to last (`bounds`), and how many of its rows are not here any more."""

    bounds: np.ndarray
    before: np.ndarray

    @classmethod
    def of_all(
        cls, every: Every, step: int, ts: np.ndarray, starts: np.ndarray, end: int | None = None, ahead: int = 0
    ) -> "Span":
        """Stored events: their end decides the last slot, of all segments. end: that of the events around these. ahead:
        so far ahead windows see the first one."""
        before = np.zeros(starts.size - 1, np.int64)
        if not every.by_time:
            return cls(np.column_stack([before + 1, np.diff(starts) // step]), before)
        some = np.flatnonzero(np.diff(starts))
        bounds = np.column_stack([before, before - 1])
        if some.size:
            last = ts[starts[some + 1] - 1].max()
            first = ts[starts[some]]
            bounds[some, FIRST] = slots_of(np.where(first < ahead - NEVER, -NEVER, first - ahead), step)
            bounds[some, LAST] = slots_of(np.array([last if end is None else max(last, end)]), step)
        return cls(bounds, before)


def slots_of(ts: np.ndarray, step: int) -> np.ndarray:
    """The slot of each timestamp: j with (j-1) step < ts <= j step."""
    if ts.size and (int(ts.max()) > NEVER - step or int(ts.min()) < step - NEVER):
        raise BadEvents(
            f"a slot of {step} around ts {int(ts.max())} or {int(ts.min())} does not fit int64.", "smaller ts"
        )
    return ts // step + (ts % step != 0)


def schedule(
    every: Every,
    step: int,
    ts: np.ndarray,
    starts: np.ndarray,
    span: Span,
    reaches: Iterable[Reach],
    rows_from: np.ndarray,
) -> Ticks:
    """The ticks of rows that lie segment by segment, in order of time within each.

    rows_from: per segment, since when a window by rows holds one (NEVER: there is none); it matters where a slot ticks
    only if its window holds a row.
    """
    ts = fixed(ts)
    if not every.by_time:
        wanted = int(np.maximum(span.bounds[:, LAST] - span.bounds[:, FIRST] + 1, 0).sum())
        return _filled(wanted, lambda out: kernels.by_rows(ts, starts, span.before, span.bounds, step, out))
    if every.anchor == "tuple":
        return _counted(lambda out: kernels.picked(ts, starts, span.bounds, step, out))
    backs = by_time(reaches)
    return _counted(lambda out: kernels.anchored(ts, starts, span.bounds, backs, rows_from, step, out))


def by_time(reaches: Iterable[Reach]) -> np.ndarray:
    """(far, near) of the windows by time."""
    found = {(min(r.far, FARTHEST), min(r.near, FARTHEST - 1)) for r in reaches if r.by_time}
    return np.array(sorted(found), np.int64).reshape(len(found), 2)


def farthest_ahead(reaches: Iterable[Reach]) -> int:
    """How far ahead windows by time see."""
    return min(max((-r.near for r in reaches if r.by_time), default=0), FARTHEST)


def fewest_rows(reaches: Iterable[Reach]) -> int:
    """How many rows it takes until a window by rows holds one; 0 if there is no such window."""
    return min((min(r.near, FARTHEST) + 1 for r in reaches if not r.by_time), default=0)


def filled_from(ts: np.ndarray, starts: np.ndarray, least: int) -> np.ndarray:
    """Per segment: the time of its row number `least`, since when a window by rows holds one."""
    since = np.full(starts.size - 1, NEVER)
    if least:
        enough = np.flatnonzero(np.diff(starts) >= least)
        since[enough] = ts[starts[enough] + least - 1]
    return since


def per_key(ticks: Ticks, ts: np.ndarray, place: np.ndarray, starts: np.ndarray, reaches: Iterable[Reach]) -> Ticks:
    """Ticks of the whole stream, for every key with a row in its window: `number` is the index of the tick."""
    wanted = list(reaches)
    backs, least = by_time(wanted), fewest_rows(wanted)
    ts, place, seen = fixed(ts), fixed(place), (fixed(ticks.now), fixed(ticks.end))
    return _counted(lambda out: kernels.per_key(ts, place, starts, seen, backs, least, out))


def _counted(fill) -> Ticks:  # type: ignore[no-untyped-def]
    return _filled(int(fill(np.empty((4, 0), np.int64))), fill)


def _filled(wanted: int, fill) -> Ticks:  # type: ignore[no-untyped-def]
    if wanted > MOST:
        raise BadQuery(
            f"{wanted:,} ticks at once are more than {MOST:,}.",
            'a longer slot, a window of time, or sw.Every(…, anchor="tuple"), which skips slots without events',
        )
    out = np.empty((4, wanted), np.int64)
    if wanted:
        fill(out)
    return Ticks(out[NUMBER], out[NOW], out[END], out[SEGMENT])
