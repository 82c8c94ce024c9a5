"""The queries of an engine that share one `every`: rows wait until a tick is decided; then it is a lookup.

      rows that wait    . . . . . . . . .        as they came; those that no tick will see are let go
      decided                   T       T        by an event or a promise past them
      lookback          [-------]                is given the rows up to the last tick that some window holds

Between ticks nothing happens to a row but that it is kept. A batch that decides ticks costs its rows and the lookups,
however many rows windows hold.
"""

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kernels.operators.numbers import EARLIEST
from swag.durable.state import State, nested, part, types_from_array, types_to_array, with_arrays
from swag.errors import BadType
from swag.live import intake
from swag.live.arena import group
from swag.query.as_json import every_to_json
from swag.query.every import Every
from swag.query.lowering import components, measured, simple_ones
from swag.query.query import Query
from swag.query.reading import Reading
from swag.query.windows import Depth, Reach
from swag.tables.columns import Clock, decoded_type
from swag.tables.keys import KeyTable
from swag.tables.waiting import Waiting
from swag.ticks import schedule as schedules
from swag.ticks.lookback import Asked, Lookback
from swag.ticks.partitioned import PartitionsOfKeys, ends_of, pairs, rows_before
from swag.ticks.schedule import (
    FARTHEST,
    NEVER,
    Counters,
    Horizon,
    SegmentLayout,
    Span,
    StreamProgress,
    TickAnswers,
    Ticks,
    new_ids,
    slots_of,
)
from swag.ticks.stored_ticks import Seen, Stretch, jump

FEW_WAITING = 4096  # rows that may wait for a tick in any case


class Back(NamedTuple):
    """How far back the windows of some queries reach, one by one and together."""

    reaches: set[Reach]
    depth: Depth


@dataclass(eq=False)
class Ticker:
    """The queries with one `every`. It owns the rows that wait, the counters, and the lookback that answers ticks.

    Asked of it: to take rows, the ticks that are decided (`decide`), and up to when all of them are (`closed`). types,
    kinds: of the columns read, and of the answers.
    """

    every: Every
    key: str | None
    lookback: Lookback
    queries: dict[str, Query] = field(default_factory=dict)
    pending: Waiting = field(default_factory=Waiting)
    counters: Counters = field(default_factory=Counters)
    types: dict[str, pa.DataType] = field(default_factory=dict)
    kinds: dict[str, pa.DataType] = field(default_factory=dict)
    ticks: int = 0
    _touched: list[np.ndarray] = field(default_factory=list)
    _horizon: Horizon | None = None  # when ticks were last decided

    def __post_init__(self) -> None:
        self.whole = self.key is None or not (self.every.per_key or self.every.by)  # one count for all rows
        self.ordered = self.key is not None and not self.every.per_key  # events of different keys are in order
        self.partitions = None if self.every.by is None else PartitionsOfKeys(self.every.by)
        self._look_again()

    @property
    def kept(self) -> int:
        return self.pending.count + self.lookback.kept

    @property
    def bytes(self) -> int:
        return self.pending.bytes + self.lookback.bytes + self.counters.bytes

    def add(self, query: Query) -> None:
        self.lookback.add(query)
        self.queries[query.label] = query
        self._look_again()

    def remove(self, name: str) -> None:
        del self.queries[name]
        self.lookback.core.remove(name)
        self._look_again()

    def _look_again(self) -> None:
        """What queries read, and how far back they look, has changed."""
        self.reading = Reading(simple_ones(self.queries.values()))
        self._checked: pa.Schema | None = None  # of rows that are known to be right
        self._typed: pa.Schema | None = None  # of rows whose types are noted
        self._seen_back: tuple[str | None, Back] | None = None

    def _back(self, clock: Clock) -> Back:
        """How far back ticks look."""
        if self._seen_back is None or self._seen_back[0] != clock.unit:
            leaves = [leaf for query in self.queries.values() for leaf in components(query)]
            reaches = {measured(leaf, clock.unit) for leaf in leaves}
            self._seen_back = clock.unit, Back(reaches, Depth.of(reaches))
        return self._seen_back[1]

    # -- rows in ------------------------------------------------------------------------------------------------------

    def check(self, table: pa.Table, clock: Clock) -> None:
        """Raise if these rows could not be answered from: a column is missing, or of a type that can not be used."""
        columns = self._columns(table)
        if columns.schema == self._checked:
            return
        self._check_types(columns, clock)
        wide = [f for f in columns.schema if intake.is_wide(f.type) and f.name in self.reading.computed]
        for column in wide:  # of these every value counts, in every batch
            intake.check_range(columns, column.name)
        self._checked = None if wide else columns.schema

    def _check_types(self, columns: pa.Table, clock: Clock) -> None:
        """Refuse columns of other types than so far; where some are new, find the types of answers without a row."""
        for name, kind in ((f.name, f.type) for f in columns.schema):
            known = self.types.get(name, kind)
            if not pa.types.is_null(kind) and not intake.is_as_known(decoded_type(kind), decoded_type(known)):
                raise BadType(f'column "{name}" is {kind}, but has been {known} so far.', f"cast it to {known}")
        if any(f.name not in self.types for f in columns.schema):
            nothing = np.zeros(0, np.int64)
            given = None if self.key is None else (nothing, pa.nulls(0))
            empty = Stretch(columns.slice(0, 0), clock, nothing, self.key, given)
            answers = jump(list(self.queries.values()), self.every, empty)
            self.kinds = {name: each.type for name, each in zip(self.queries, answers.columns, strict=True)}

    def check_functions(self, table: pa.Table) -> None:
        """Raise what a user's function does of these rows."""
        self.lookback.check(self._columns(table))

    def take(self, table: pa.Table, ts: np.ndarray, ids: np.ndarray, segments: int, clock: Clock) -> None:
        """Keep rows that were applied."""
        columns, counters = self._columns(table), self.counters
        if columns.schema != self._typed:
            self._note_types(columns.schema)
        own = ids if self.partitions is None else self.partitions.of_rows(table, ids)
        counters.grow(1 if self.whole else segments if self.partitions is None else self.partitions.count)
        self.pending.add(columns, ts, ids)
        if self.whole:
            touched, first, counts = np.array([0]), np.array([0]), np.array([ts.size])
        else:
            batch = group(own, np.zeros(counters.next.size, np.int64))
            touched, first, counts = batch.keys, batch.order[batch.starts[:-1]], batch.counts
            self._touched.append(touched)
        counters.total[touched] += counts
        new = counters.next[touched] == NEVER
        if new.any():
            step, some = self.every.step(clock.unit), touched[new]
            by_rows = counters.gone[some] // step + 1
            counters.next[some] = slots_of(ts[first[new]], step) if self.every.by_time else by_rows

    def _note_types(self, schema: pa.Schema) -> None:
        types = self.types | {f.name: f.type for f in schema if not pa.types.is_null(f.type)}
        if types != self.types and schema != self._checked:
            self._checked = None
        self.types, self._typed = types, schema

    def _columns(self, table: pa.Table) -> pa.Table:
        """What queries read; one column in any case, as a table without any has no rows."""
        return table.select(list(self.reading.read) or table.column_names[:1])

    # -- ticks out ----------------------------------------------------------------------------------------------------

    def decide(self, progress: StreamProgress, clock: Clock, keys: KeyTable | None) -> TickAnswers | None:
        """The ticks decided by now; None if there are none. Whatever happens, they are behind us then."""
        step, counters = self.every.step(clock.unit), self.counters
        if counters.next.size == 0:
            return None
        segments, last = self._last(progress, step)
        due = (counters.next[segments] != NEVER) & (last >= counters.next[segments])
        try:
            if not due.any():
                return None
            segments, last = segments[due], last[due]
            bounds = np.column_stack([counters.next[segments], last])
            counters.next[segments] = last + 1
            return self._answered(segments, bounds, clock, keys)
        finally:
            self._let_go(progress, clock, keys)

    def _last(self, progress: StreamProgress, step: int) -> tuple[np.ndarray, np.ndarray]:
        """Segments that may have got further, and the last tick of each that is decided."""
        counters, count = self.counters, self.counters.next.size
        touched, self._touched = self._touched, []
        if not self.every.by_time:
            some = np.arange(count) if self.whole else np.unique(np.concatenate([np.zeros(0, np.int64), *touched]))
            return some, counters.total[some] // step
        done = (
            np.full(count, progress.done_of_all) if self.partitions is not None else progress.done(self.whole)[:count]
        )
        last = done // step  # an event at the very end of a slot may be followed by another
        if self.every.anchor == "tuple":  # … but is the one that stands for it
            latest = np.array([progress.top]) if self.whole else self._latest(progress)
            latest = latest[:count]
            last = np.where(latest % step == 0, np.maximum(last, latest // step), last)
        return np.arange(count), last

    def _latest(self, progress: StreamProgress) -> np.ndarray:
        """The latest event of each segment."""
        if self.partitions is None:
            return progress.latest
        latest = np.full(self.counters.next.size, EARLIEST)
        of_key = self.partitions.of_key[: progress.latest.size]
        known = of_key >= 0
        np.maximum.at(latest, of_key[known], progress.latest[: of_key.size][known])
        return latest

    def _segments(self, ids: np.ndarray) -> np.ndarray:
        """The segments that rows of these keys are in, where each is counted by itself."""
        return ids if self.partitions is None else self.partitions.of_key[ids]

    def _answered(
        self, segments: np.ndarray, bounds: np.ndarray, clock: Clock, keys: KeyTable | None
    ) -> TickAnswers | None:
        """Ticks within the bounds of these segments, scheduled and looked up; None if none has anything to say."""
        own = np.zeros(self.pending.count, np.int64) if self.whole else self._segments(self.pending.rows.ids)
        layout = SegmentLayout.of(segments, self.pending.rows.ts, own, self.counters.newest)
        back = self._back(clock)
        ticks = self._scheduled(layout, bounds, clock, back.depth)
        if ticks.count == 0:
            return None
        self.lookback.ready(clock, keys)
        self.lookback.core.keep(everything=True)  # until all ticks are answered
        try:
            asked = self._asked(layout, ticks, back)
            answers = self.lookback.looked_up(asked, keys, list(self.queries))
        finally:
            self.lookback.core.keep(everything=False)
        self.lookback.tidy(asked.ids)
        self.ticks += answers.number.size
        return answers

    def _asked(self, layout: SegmentLayout, ticks: Ticks, back: Back) -> Asked:
        """Which keys are asked for at these ticks."""
        if self.partitions is not None:
            return self._of_partitions(layout, ticks, back)
        if self.every.own and self.key is not None:
            return self._of_own_key(layout, ticks)
        return (self._of_all if self.lookback.of_all else self._of_segments)(layout, ticks, back)

    def _scheduled(self, layout: SegmentLayout, bounds: np.ndarray, clock: Clock, depth: Depth) -> Ticks:
        """Ticks that may have something to say: of slots, those whose longest window is not empty."""
        newest, starts = self.counters.newest[layout.segments], layout.starts
        span = Span(bounds, self.counters.gone[layout.segments] - (newest != EARLIEST))
        longest = [Reach(True, depth.time, 0)] if depth.time else []
        since = np.full(layout.segments.size, NEVER)
        if depth.rows:
            some = np.flatnonzero(np.diff(starts))
            since[some] = layout.ts[starts[some]]
        return schedules.schedule(self.every, self.every.step(clock.unit), layout.ts, starts, span, longest, since)

    def _of_segments(self, layout: SegmentLayout, ticks: Ticks, back: Back) -> Asked:
        """Of one stream, or of each key by itself."""
        last = layout.starts[:-1].copy()
        last[ticks.segment] = ticks.end
        keep = np.zeros(layout.ts.size, bool)
        keep[Seen.in_segments(layout.ts, layout.starts, ticks, back.reaches).rows] = True
        if self.key is not None:  # rows after a key's last tick wait no longer either: others' ticks would pass by them
            keep |= np.arange(keep.size) >= np.repeat(last, np.diff(layout.starts))
        keep &= layout.rows >= 0
        before = np.concatenate([[0], np.cumsum(keep)])
        rows = before[ticks.end] - before[layout.starts[ticks.segment]]
        rows += self.lookback.rows_of(layout.segments)[ticks.segment]
        if self.key is None:
            self._fold_in(int(last[0]) - int(layout.rows[0] < 0), layout.rows[keep])
        else:
            taken = np.ones(self.pending.count, bool)
            taken[layout.rows[~keep & (layout.rows >= 0)]] = False
            self._fold_in(taken.size, np.flatnonzero(taken))
        return Asked(ticks.number, ticks.now, layout.segments[ticks.segment], rows, layout.rows[ticks.end - 1])

    def _of_own_key(self, layout: SegmentLayout, ticks: Ticks) -> Asked:
        """Of the key alone that the row of the tick has."""
        ends = ticks.end - int(layout.rows[0] < 0)
        ids = self.pending.rows.ids[: int(ends[-1])]
        key = ids[ends - 1]
        order = np.argsort(ids, kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(order.size)
        there = self.lookback.rows_of(key) + rank[ends - 1] - np.searchsorted(ids[order], key) + 1
        self._fold_in(ids.size, np.arange(ids.size))
        return Asked(ticks.number, ticks.now, key, there, np.arange(ticks.count))

    def _of_partitions(self, layout: SegmentLayout, ticks: Ticks, back: Back) -> Asked:
        """Of all keys of a partition: those with a row that may be in the longest window."""
        assert self.partitions is not None
        keep = np.ones(layout.ts.size, bool)
        if not back.depth.rows:
            last = layout.starts[:-1].copy()
            last[ticks.segment] = ticks.end
            keep = np.arange(keep.size) >= np.repeat(last, np.diff(layout.starts))
            keep[Seen.in_segments(layout.ts, layout.starts, ticks, back.reaches).rows] = True
        keep &= layout.rows >= 0
        of_key, where = self.partitions.of_key, np.flatnonzero(keep)
        ids = self.pending.rows.ids[layout.rows[where]]
        order = np.lexsort((where, ids))
        ids, where = ids[order], where[order]
        far = FARTHEST if back.depth.rows else min(back.depth.time, FARTHEST)
        newest = self.lookback.newest(of_key.size)
        some = newest > max(EARLIEST, int(ticks.now.min()) - far)
        some[ids] = True
        segment, candidates = layout.segments[ticks.segment], np.flatnonzero(some)
        own = of_key[candidates]
        key, tick = pairs(np.searchsorted(segment, own), ends_of(segment, own))
        key = candidates[key]
        upto = rows_before(ids, where, key, ticks.end[tick])
        new = upto - np.searchsorted(ids, key)
        there = self.lookback.rows_of(key) + new
        newest, some = newest[key], new > 0
        newest[some] = layout.ts[where[upto[some] - 1]]
        now = ticks.now[tick]
        asked = np.flatnonzero((there > 0) & (newest > np.where(now < EARLIEST + far, EARLIEST, now - far)))
        taken = np.ones(self.pending.count, bool)
        taken[layout.rows[~keep & (layout.rows >= 0)]] = False
        place = layout.rows[ticks.end - 1][tick]
        self._fold_in(taken.size, np.flatnonzero(taken))
        return Asked(ticks.number[tick], now, key, there, place).only(asked)

    def _of_all(self, layout: SegmentLayout, ticks: Ticks, back: Back) -> Asked:
        """Of all keys together: those with a row in the longest window."""
        behind = int(layout.rows[0] < 0)
        ends = ticks.end - behind
        since, depth = np.full(ticks.count, EARLIEST), back.depth
        _, ts, ids = self.pending.rows
        if depth.rows:
            rows = np.arange(int(ends[-1]))
        else:
            far = min(depth.time, FARTHEST)
            since = np.where(ticks.now < EARLIEST + far, EARLIEST, ticks.now - far)
            first_seen = np.repeat(since, np.diff(ends, prepend=0))  # by the next tick; those after it see no more
            rows = np.flatnonzero(ts[: first_seen.size] > first_seen)
        tick, key, there = self.lookback.recent.reported(ts[rows], ids[rows], np.searchsorted(rows, ends), since)
        self._fold_in(int(ends[-1]), rows)
        return Asked(ticks.number[tick], ticks.now[tick], key, there, tick)

    def closed(self, progress: StreamProgress, clock: Clock) -> int:
        """Every tick up to this time has come; EARLIEST: nothing is known."""
        over = progress.done_of_all if self.whole or self.ordered or progress.together else progress.closed
        if over == EARLIEST or not self.every.by_time:
            return over
        step = self.every.step(clock.unit)
        slot = over // step  # the last one that is over
        return (slot + 1) * step - 1 if self.every.anchor == "tick" else slot * step

    # -- keys that come and go ----------------------------------------------------------------------------------------

    def needs(self, count: int) -> np.ndarray:
        """Which of the first `count` keys it has still to do with."""
        needed = np.zeros(count, bool)
        needed[self.pending.rows.ids] = True
        if self.counters.next.size == 0:
            return needed
        if self.partitions is not None:  # others of its partition tick, which see it
            oldest = EARLIEST if self._horizon is None else self._horizon.oldest_of_any
            return needed | (self.lookback.newest(count) > oldest)
        if not self.whole and not self.every.by_time and not self.lookback.empty:  # ticks are counted, and numbered
            needed[np.flatnonzero(self.counters.total[:count])] = True
        newest = self.lookback.newest(count)
        return needed | (newest > EARLIEST if self._horizon is None else self._horizon.is_seen(newest))

    def renumber(self, kept: np.ndarray) -> None:
        """Key kept[i] is key i from now on, and there are no others."""
        if self.partitions is not None:
            self.partitions.renumber(kept)
        elif not self.whole:
            self.counters.renumber(kept)
            new = new_ids(kept, int(max((each.max(initial=-1) for each in self._touched), default=-1)) + 1)
            self._touched = [ids[ids >= 0] for ids in (new[each] for each in self._touched)]
        self.pending.renumber(kept)
        self.lookback.renumber(kept)

    # -- rows out -----------------------------------------------------------------------------------------------------

    def _fold_in(self, count: int, rows: np.ndarray) -> None:
        """The first `count` rows wait no longer; the lookback takes those that a window may hold."""
        waiting, counters = self.pending.rows, self.counters
        if rows.size:
            self.lookback.take(*(waiting.between(0, count) if rows.size == count else waiting.some(rows)))
        if count and not self.whole:
            gone = self._segments(waiting.ids[:count])
            np.add.at(counters.gone, gone, 1)
            counters.newest[gone] = waiting.ts[:count]
            self.pending.drop(count)
        elif count:
            counters.gone[0] += count
            counters.newest[0] = self.pending.drop(count)

    def _let_go(self, progress: StreamProgress, clock: Clock, keys: KeyTable | None) -> None:
        """Rows that no undecided tick can see; where that is not known row by row, many at once wait no longer."""
        depth = self._back(clock).depth
        step, stream = self.every.step(clock.unit), replace(progress, latest=progress.latest[:0])
        self._horizon = Horizon(self.every, self.whole, self.counters, stream, depth, step)
        if self.key is None or (self.whole and not depth.rows):
            self._drop_first(self._horizon)
        elif self.pending.count > FEW_WAITING:
            rows = np.arange(self.pending.count)
            self.lookback.ready(clock, keys)
            if self.lookback.of_all:
                self.lookback.recent.note(*self.pending.rows[1:])
            self._fold_in(rows.size, rows)

    def _drop_first(self, horizon: Horizon) -> None:
        """Rows that are both too old and too far back."""
        drop = min(horizon.needed_from - int(self.counters.gone[0]), self.pending.leading(horizon.oldest))
        if drop > 0:
            self.counters.gone[0] += drop
            self.counters.newest[0] = self.pending.drop(drop)

    # -- state --------------------------------------------------------------------------------------------------------

    def state(self) -> State:
        header = {"every": every_to_json(self.every), "ticks": self.ticks}
        inside = {"pending": self.pending.state(), "counters": self.counters.state(), "lookback": self.lookback.state()}
        inside |= {} if self.partitions is None else {"partitions": self.partitions.state()}
        whole = nested(header, inside)
        return with_arrays(whole, {"types": types_to_array(self.types), "kinds": types_to_array(self.kinds)})

    def restore(self, state: State) -> None:
        """Its queries have been added."""
        header, arrays = state
        self.ticks = header["ticks"]
        self.types, self.kinds = types_from_array(arrays["types"]), types_from_array(arrays["kinds"])
        self.pending.restore(part(state, "pending"))
        self.counters.restore(part(state, "counters"))
        self.lookback.restore(part(state, "lookback"))
        if self.partitions is not None:
            self.partitions.restore(part(state, "partitions"))
