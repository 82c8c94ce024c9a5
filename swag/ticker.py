"""The queries of an engine that share one `every`: rows are stored until a tick is decided, then answered together.

      rows kept     . . . . . . . . .        what undecided ticks can still see
      decided       T       T                by an event or a promise past them: answered in a few kernel calls
      next                          ?        counted on, whatever the batches were

Between ticks nothing happens to a row but that it is kept, and not even that if no tick will see it.
"""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swag.columns import Clock
from swag.errors import BadType
from swag.evaluate import simple_queries
from swag.frequency import Every
from swag.intake import needed
from swag.jumping import Jumped, Stretch, jump
from swag.lowering import simple_ones
from swag.query import Query
from swag.ticks import FARTHEST, NEVER, Span, slots_of
from swag.windows import Reach, reach

MIN = int(np.iinfo(np.int64).min)
FEW = 4096  # rows that are not worth looking through for some to let go


@dataclass(eq=False)
class Progress:
    """How far a stream is: the latest event of each key and of all, and a time before which slots are over.

    kept: nothing older than the promise comes. together: nothing older than the latest event of any key comes.
    """

    latest: np.ndarray
    top: int
    promise: int
    kept: bool
    together: bool = False

    def known(self, whole: bool) -> np.ndarray:
        """Per segment, the time before which everything has come."""
        if whole:
            return np.array([max(self.top, self.promise)])
        return np.maximum(self.top if self.together else self.latest, np.full(self.latest.size, self.promise))


@dataclass(eq=False)
class Ticker:
    """next: per segment, the first tick not decided (NEVER: no row yet). total: the rows it has had, gone: those
    that are not kept. types, kinds: of the columns read, and of the answers. empty: keys without events answer too.
    """

    every: Every
    key: str | None
    queries: dict[str, Query] = field(default_factory=dict)
    empty: bool = False
    chunks: list[pa.Table] = field(default_factory=list)
    ts: list[np.ndarray] = field(default_factory=list)
    ids: list[np.ndarray] = field(default_factory=list)
    next: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    gone: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    total: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    types: dict[str, pa.DataType] = field(default_factory=dict)
    kinds: dict[str, pa.DataType] = field(default_factory=dict)
    ticks: int = 0
    _worth_trimming: int = field(default_factory=lambda: FEW)
    _reads: list[str] | None = None
    _reaches: set[Reach] | None = None

    @property
    def whole(self) -> bool:
        """One count for all rows."""
        return self.key is None or not self.every.per_key

    @property
    def kept(self) -> int:
        return sum(each.size for each in self.ts)

    @property
    def bytes(self) -> int:
        arrays = [*self.ts, *self.ids, self.next, self.gone, self.total]
        return sum(each.nbytes for each in [*self.chunks, *arrays])

    # -- rows in ------------------------------------------------------------------------------------------------------

    def check(self, table: pa.Table, clock: Clock) -> None:
        """Raise if these rows could not be answered from: a column is missing, or of a type that can not be used."""
        columns = self._columns(table)
        for name, kind in ((f.name, f.type) for f in columns.schema):
            known = self.types.get(name, kind)
            if known != kind and not pa.types.is_null(kind) and not pa.types.is_null(known):
                raise BadType(f'column "{name}" is {kind}, but has been {known} so far.', f"cast it to {known}")
        if any(f.name not in self.types for f in columns.schema):
            nothing = np.zeros(0, np.int64)
            given = None if self.key is None else (nothing, pa.nulls(0))
            jumped = self._jump(Stretch(columns.slice(0, 0), clock, nothing, self.key, given), None)
            self.kinds = {name: each.type for name, each in zip(self.queries, jumped.columns, strict=True)}

    def take(self, table: pa.Table, ts: np.ndarray, ids: np.ndarray, segments: int, clock: Clock) -> None:
        """Keep rows that were applied."""
        columns = self._columns(table)
        self.types |= {f.name: f.type for f in columns.schema if not pa.types.is_null(f.type)}
        self.grow(1 if self.whole else segments)
        self.chunks.append(columns)
        self.ts.append(ts)
        self.ids.append(ids)
        if self.whole:
            self.total[0] += ts.size
            first, at = np.array([0]), np.array([0])
        else:
            first, at, counts = np.unique(ids, return_index=True, return_counts=True)
            self.total[first] += counts
        new = self.next[first] == NEVER
        step = self.every.step(clock.unit)
        self.next[first[new]] = slots_of(ts[at[new]], step) if self.every.by_time else self.gone[first[new]] // step + 1

    def grow(self, segments: int, total: np.ndarray | None = None) -> None:
        """Room for more segments. total: how many rows they have had, of which none is here."""
        more = segments - self.next.size
        if more > 0:
            before = np.zeros(more, np.int64) if total is None else total[self.next.size : segments]
            self.next = np.concatenate([self.next, np.full(more, NEVER)])
            self.gone, self.total = np.concatenate([self.gone, before]), np.concatenate([self.total, before])

    def add(self, query: Query) -> None:
        self.queries[query.label] = query
        self._reads, self._reaches = None, None

    def remove(self, name: str) -> None:
        del self.queries[name]
        self._reads, self._reaches = None, None

    def _columns(self, table: pa.Table) -> pa.Table:
        """What queries read; one column in any case, as a table without any has no rows."""
        if self._reads is None:
            self._reads = [name for name in needed(simple_ones(self.queries.values()), "", None) if name]
        return table.select(self._reads or table.column_names[:1])

    # -- ticks out ----------------------------------------------------------------------------------------------------

    def decide(self, progress: Progress, clock: Clock, keys: "pa.Array | None") -> Jumped | None:
        """The ticks decided by now; None if there are none. Whatever happens, they are behind us then."""
        if not self.ts:
            return None
        step = self.every.step(clock.unit)
        last = self._last(progress, step)
        due = np.flatnonzero((self.next != NEVER) & (last >= self.next))
        if due.size == 0:
            self._let_go(progress, clock)
            return None
        first = self.next.copy()
        self.next[due] = last[due] + 1
        try:
            return self._answered(first, last, clock, keys)
        finally:
            self._let_go(progress, clock)

    def _last(self, progress: Progress, step: int) -> np.ndarray:
        """Per segment, the last tick that is decided."""
        if not self.every.by_time:
            return self.total // step
        known = np.maximum(progress.known(self.whole)[: self.next.size], MIN + 1)
        last = (known - 1) // step  # an event at the very end of a slot may be followed by another
        if self.every.anchor == "tuple":  # … but is the one that stands for it
            latest = np.array([progress.top]) if self.whole else progress.latest[: self.next.size]
            last = np.where(latest % step == 0, np.maximum(last, latest // step), last)
        return last

    def _answered(self, first: np.ndarray, last: np.ndarray, clock: Clock, keys: "pa.Array | None") -> Jumped | None:
        self.close_up()
        ts, ids = self.ts[0], self.ids[0]
        given, present = None, np.zeros(0, np.int64)
        if self.key is not None:
            assert keys is not None
            present = np.flatnonzero(np.bincount(ids))
            present = present[np.asarray(pc.sort_indices(keys.take(pa.array(present))))]  # keys by value, in any order
            local = np.empty(len(keys), np.int64)
            local[present] = np.arange(present.size)
            given = local[ids], keys.take(pa.array(present))
        segments = np.zeros(1, np.int64) if self.whole else present
        some = first[segments] != NEVER
        bounds = np.column_stack([np.where(some, first[segments], 0), np.where(some, last[segments], -1)])
        span = Span(bounds, self.gone[segments])
        jumped = self._jump(Stretch(self.chunks[0], clock, ts, self.key, given), span)
        self.ticks += jumped.number.size
        return jumped

    def _jump(self, rows: Stretch, span: Span | None) -> Jumped:
        return jump(list(self.queries.values()), self.every, rows, span, self.empty)

    def close_up(self) -> None:
        """One chunk of each."""
        if len(self.ts) > 1:
            self.chunks = [pa.concat_tables(self.chunks, promote_options="permissive").combine_chunks()]
            self.ts, self.ids = [np.concatenate(self.ts)], [np.concatenate(self.ids)]

    def promise(self, progress: Progress, clock: Clock) -> int:
        """No tick before this time is still to come."""
        known = max(progress.promise, progress.top if self.whole or progress.together else MIN)
        if known == MIN or not self.every.by_time:
            return known
        step = self.every.step(clock.unit)
        over = (known - 1) // step  # the last slot that is
        return (over + 1) * step if self.every.anchor == "tick" else over * step + 1

    # -- rows out -----------------------------------------------------------------------------------------------------

    def _let_go(self, progress: Progress, clock: Clock) -> None:
        """Rows that no undecided tick can see."""
        if self._reaches is None:
            simple = [leaf for query in self.queries.values() for leaf in simple_queries(query)]
            self._reaches = {reach(leaf.window, clock.unit) for leaf in simple}
        far = max((min(r.far, FARTHEST) for r in self._reaches if r.by_time), default=0)
        rows = max((min(r.far, FARTHEST) for r in self._reaches if not r.by_time), default=0)
        step = self.every.step(clock.unit)
        if self.key is None or (self.whole and not rows):
            self._drop_first(int(self._oldest(progress, far, step)[0]), int(self._needed_from(rows, step)[0]))
        elif self.kept > self._worth_trimming:
            self._drop_some(self._oldest(progress, far, step), rows, step)
            self._worth_trimming = max(FEW, 2 * self.kept)

    def _oldest(self, progress: Progress, far: int, step: int) -> np.ndarray:
        """Per segment: no window by time will see what is not newer than this."""
        if far == 0:
            return np.full(self.next.size, NEVER)
        soonest = np.array([progress.top]) if self.whole else progress.latest[: self.next.size]
        undecided = np.where(self.next == NEVER, 0, self.next)  # no tick to come is before soonest
        if self.every.by_time:
            at_tick = self.every.anchor == "tick"
            soonest = undecided * step if at_tick else np.maximum(soonest, (undecided - 1) * step)
        elif progress.kept:
            soonest = progress.known(self.whole)[: self.next.size]
        soonest = np.where(self.next == NEVER, MIN, soonest)
        return np.where(soonest < MIN + far, MIN, soonest - far)

    def _needed_from(self, rows: int, step: int) -> np.ndarray:
        """Per segment: no window by rows will see a row before this one, counted from its first."""
        if rows == 0:
            return np.full(self.next.size, NEVER)
        if self.every.by_time:
            return self.total - rows
        return np.where(self.next == NEVER, 0, self.next) * step - rows

    def _drop_first(self, oldest: int, position: int) -> None:
        """Rows that are both too old and too far back."""
        while self.ts:
            size = self.ts[0].size
            drop = min(position - int(self.gone[0]), int(np.searchsorted(self.ts[0], oldest, side="right")))
            if drop <= 0:
                break
            self.gone[0] += min(drop, size)
            if drop < size:
                self.chunks[0], self.ts[0], self.ids[0] = self.chunks[0][drop:], self.ts[0][drop:], self.ids[0][drop:]
                break
            del self.chunks[0], self.ts[0], self.ids[0]

    def _drop_some(self, oldest: np.ndarray, rows: int, step: int) -> None:
        """Key by key. A tick that is not decided is at a row to come, so the others may go from between."""
        self.close_up()
        ts, ids = self.ts[0], self.ids[0]
        order = np.argsort(ids, kind="stable")
        counts = np.bincount(ids)
        after = np.empty(ids.size, np.int64)  # how many rows of its key come after each
        after[order] = np.repeat(np.cumsum(counts), counts) - np.arange(ids.size) - 1
        if self.whole:
            keep = (ts > oldest[0]) | (after < rows)
            self.gone[0] += ids.size - int(keep.sum())
        else:
            needed_from = self._needed_from(rows, step)
            keep = (ts > oldest[ids]) | (self.total[ids] - 1 - after >= needed_from[ids])
            self.gone += np.bincount(ids[~keep], minlength=self.gone.size)
        left = np.flatnonzero(keep)
        self.chunks, self.ts, self.ids = [self.chunks[0].take(pa.array(left))], [ts[left]], [ids[left]]
