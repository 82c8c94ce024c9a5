"""When queries with `every` answer: the ticks of a stretch of rows, as vectors (kernels/ticks/schedule.py), and what
they say; and how far the ticks of a stream are: counters per segment, the rows that wait, laid out by segment, and the
horizon.

A segment is a sequence that is counted by itself: the stream, or the rows of one key.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from kernels.operators.numbers import EARLIEST
from kernels.ticks import schedule as kernels
from kernels.ticks.schedule import END, FIRST, LAST, NOW, NUMBER, SEGMENT
from swag.durable.state import State
from swag.errors import BadEvents, BadQuery, SwagError
from swag.live.arena import group
from swag.query.every import Every
from swag.query.windows import Depth, Reach
from swag.tables.columns import Clock, fixed, to_arrow

MOST_TICKS = 2**27  # ticks at once; more are a mistake, such as a slot of a second over a gap of a century
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
class TickAnswers:
    """What ticks say: one row for each of them (and key), in order. speaks: per query, for which rows it has an answer:
    no event, no group; and a condition that does not hold says nothing. errors: why others have none."""

    number: np.ndarray
    now: np.ndarray
    segment: np.ndarray
    keys: pa.Array | None
    columns: list[pa.Array | pa.ChunkedArray]
    speaks: list[np.ndarray]
    errors: list[SwagError] = field(default_factory=list)

    def only(self, rows: np.ndarray) -> "TickAnswers":
        taken = pa.array(rows)
        columns = [each.take(taken) for each in self.columns]
        speaks = [each[rows] for each in self.speaks]
        return TickAnswers(
            self.number[rows], self.now[rows], self.segment[rows], self.keys, columns, speaks, self.errors
        )

    def front(self, clock: Clock, every: Every, tick: str, ts: str, key: str | None) -> pa.Table:
        """Which ticks they are: columns of their number, time and key, with these names."""
        kind = (
            pa.int64() if clock.unit is None and every.anchor == "tick" else clock.type
        )  # a slot may end beyond int32
        columns = {tick: pa.array(self.number), ts: to_arrow(self.now, None, kind)}
        if key is not None:
            assert self.keys is not None
            columns[key] = self.keys.take(pa.array(self.segment))
        return pa.table(columns)


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
    """So many ticks, written by a kernel; refused if they are more than fit at once."""
    if wanted > MOST_TICKS:
        raise BadQuery(
            f"{wanted:,} ticks at once are more than {MOST_TICKS:,}.",
            'a longer slot, a window of time, or sw.Every(…, anchor="tuple"), which skips slots without events',
        )
    out = np.empty((4, wanted), np.int64)
    if wanted:
        fill(out)
    return Ticks(out[NUMBER], out[NOW], out[END], out[SEGMENT])


# -- how far ticks are -------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class StreamProgress:
    """How far a stream is: the latest event of each key and of all, and the time up to which slots are over.

    closed: as Time has it. kept: what is closed never comes. together: nothing older than the latest event of any key
    comes.
    """

    latest: np.ndarray
    top: int
    closed: int
    kept: bool
    together: bool = False

    def done(self, whole: bool) -> np.ndarray:
        """Per segment, the time up to which everything has come. Of an event's own time more may follow."""
        if whole:
            return np.array([self.done_of_all])
        seen = np.maximum(self.top if self.together else self.latest, EARLIEST + 1) - 1
        return np.maximum(seen, np.full(self.latest.size, self.closed))

    @property
    def done_of_all(self) -> int:
        """The same where all keys are in order together."""
        return max(self.closed, self.top - 1 if self.top > EARLIEST else EARLIEST)


@dataclass(eq=False)
class Counters:
    """Per segment: the first tick not decided (NEVER: no row yet), the rows it has had, how many of them wait no
    longer, and the time of the last of those (EARLIEST: none)."""

    next: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    total: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    gone: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    newest: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def bytes(self) -> int:
        return sum(each.nbytes for each in self.state()[1].values())

    def state(self) -> State:
        return {}, {"next": self.next, "total": self.total, "gone": self.gone, "newest": self.newest}

    def restore(self, state: State) -> None:
        arrays = state[1]
        self.next, self.total, self.gone, self.newest = (arrays[n] for n in ("next", "total", "gone", "newest"))

    def grow(self, segments: int, total: np.ndarray | None = None) -> None:
        """Room for more segments. total: how many rows they have had, of which none is here."""
        more = segments - self.next.size
        if more > 0:
            before = np.zeros(more, np.int64) if total is None else total[self.next.size : segments]
            self.next = np.concatenate([self.next, np.full(more, NEVER)])
            self.gone, self.total = np.concatenate([self.gone, before]), np.concatenate([self.total, before])
            self.newest = np.concatenate([self.newest, np.full(more, EARLIEST)])

    def renumber(self, kept: np.ndarray) -> None:
        """Segment kept[i] is segment i from now on."""
        self.grow(int(kept.max(initial=-1)) + 1)
        self.next, self.total = self.next[kept], self.total[kept]
        self.gone, self.newest = self.gone[kept], self.newest[kept]


def new_ids(kept: np.ndarray, count: int) -> np.ndarray:
    """The new id of each of `count` old ones, where key kept[i] is key i from now on; -1: none."""
    new = np.full(max(count, int(kept.max(initial=-1)) + 1), -1)
    new[kept] = np.arange(kept.size)
    return new


@dataclass(eq=False)
class SegmentLayout:
    """The rows that wait, segment by segment, each behind the last one that waits no longer.

    segments: their ids. rows: the place of each among those that wait (-1: it does not).
    """

    segments: np.ndarray
    ts: np.ndarray
    rows: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, segments: np.ndarray, waiting: np.ndarray, ids: np.ndarray, newest: np.ndarray) -> "SegmentLayout":
        """waiting: the times of the rows. ids: which segment each is in."""
        batch = group(ids, np.zeros(newest.size, np.int64))
        runs = np.empty(newest.size, np.int64)
        runs[segments] = -1
        runs[batch.keys] = np.arange(batch.keys.size)
        ts, rows = np.empty((2, waiting.size + segments.size), np.int64)
        starts = np.empty(segments.size + 1, np.int64)
        n = kernels.lay_out(waiting, batch, runs[segments], newest[segments], ts, rows, starts)
        return cls(segments, ts[:n], rows[:n], starts)


@dataclass(eq=False)
class Horizon:
    """What ticks to come can still see: rows that none can are let go, and keys without any other are forgotten.

    whole: one count for all rows. progress: how far the stream is, but for what is of each key. depth: how far back
    windows reach.
    """

    every: Every
    whole: bool
    counters: Counters
    progress: StreamProgress
    depth: Depth
    step: int

    @property
    def far(self) -> int:
        """How far back windows by time go; 0 if there are none."""
        return min(self.depth.time, FARTHEST)

    @property
    def oldest(self) -> int:
        """No window by time will see what is not newer than this, of the whole stream."""
        soonest, undecided = self.progress.top, int(self.counters.next[0])  # no tick to come is before soonest
        if self.far == 0 or undecided == NEVER:
            return NEVER if self.far == 0 else EARLIEST
        if self.every.by_time:
            at_tick = self.every.anchor == "tick"
            soonest = undecided * self.step if at_tick else max(soonest, (undecided - 1) * self.step)
        elif self.progress.kept:
            soonest = max(soonest, self.progress.closed + 1 if self.progress.closed > EARLIEST else EARLIEST)
        return max(EARLIEST, soonest - self.far)

    @property
    def oldest_of_any(self) -> int:
        """No tick to come of any segment will see what is not newer than this, where all are in order together."""
        if self.depth.rows or self.progress.top == EARLIEST:
            return EARLIEST
        undecided = self.counters.next[self.counters.next != NEVER]
        soonest = self.progress.top
        if self.every.by_time and undecided.size:
            soonest = min(soonest, (int(undecided.min()) - 1) * self.step)
        return max(EARLIEST, soonest - self.far)

    @property
    def needed_from(self) -> int:
        """No window by rows will see a row before this one of the whole stream, counted from the first."""
        rows = min(self.depth.rows, FARTHEST)
        if rows == 0:
            return NEVER
        if self.every.by_time:
            return int(self.counters.total[0]) - rows
        undecided = int(self.counters.next[0])
        return (0 if undecided == NEVER else undecided) * self.step - rows

    def is_seen(self, newest: np.ndarray) -> np.ndarray:
        """May a tick to come see the newest row of each key, which is of this time (EARLIEST: there is none)?"""
        if self.depth.rows:
            return newest > EARLIEST
        if self.whole:
            return newest > self.oldest
        stream = self.progress
        over = max(stream.closed, stream.top - 1 if stream.together and stream.top > EARLIEST else EARLIEST)
        as_old_as = EARLIEST if over == EARLIEST else over + 1  # an event to come may be
        soonest = np.full(newest.size, as_old_as)
        undecided = self.counters.next[: newest.size]
        some = np.flatnonzero(undecided != NEVER)
        if self.every.by_time and self.every.anchor == "tick":
            soonest[some] = undecided[some] * self.step
        seen = newest > np.where(soonest < EARLIEST + self.far, EARLIEST, soonest - self.far)
        if self.every.by_time:  # it may be the tuple that stands for a slot
            some = some[newest[some] > EARLIEST]
            seen[some] |= slots_of(newest[some], self.step) >= undecided[some]
        return seen
