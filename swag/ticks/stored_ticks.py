"""Jumping windows over rows at hand: ticks first, then they are answered like requests, from the rows they can see.

      rows   . . . . . . . . . . . . . . . .       every 8 rows, the last 3 of them
                       [---T]          [---T]      two ticks, two requests
                       6 7 8           14 15 16    all that is ever gathered

This is for rows that are all there; those of a stream tick in swag/ticks/ticker.py. When, is told by one schedule.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kernels.stored import direct, edges
from kernels.stored.edges import Timeline
from kernels.ticks import schedule as kernels
from swag.query.every import Every
from swag.query.lowering import components
from swag.query.query import Query
from swag.query.windows import Range, Reach, Since, Window, reach, sees_later
from swag.stored.evaluation import Evaluation
from swag.stored.ordered_rows import Requests, Stored, arrange, runs_of
from swag.tables.columns import Clock, clock_of, column, fixed, instants, one_chunk, order_of, taken
from swag.tables.keys import KeyTable
from swag.ticks import schedule as schedules
from swag.ticks.partitioned import ticks_of_partitions
from swag.ticks.schedule import Span, TickAnswers, Ticks

HARDLY = 1.5  # times as many rows as there are, in all windows together: they hardly overlap
WORTH_SKIPPING = 0.75  # if windows see no more of the rows than this, the others are skipped


@dataclass(eq=False)
class Stretch:
    """Rows of a stream, in any order within `table` but by time where the whole stream is counted.

    given: the keys if they are known, as `keyed` would find them. end: the time of the last event around these, if it
    is not one of them.
    """

    table: pa.Table
    clock: Clock
    ts: np.ndarray
    key: str | None
    given: tuple[np.ndarray, pa.Array] | None = None
    end: int | None = None

    @classmethod
    def of(cls, table: pa.Table, ts: str, key: str | None, ordered: bool, end: int | None = None) -> "Stretch":
        times = column(table, ts, "ts is")
        clock, instant = clock_of(times, ts), instants(times, ts)
        if ordered and not edges.ordered(instant, np.array([0, instant.size])):
            rows = np.argsort(instant, kind="stable")
            table, instant = taken(table, rows), instant[rows]
        return cls(table, clock, instant, key, end=end)

    def only(self, rows: np.ndarray) -> "Stretch":
        given = None if self.given is None else (self.given[0][rows], self.given[1])
        return Stretch(taken(self.table, rows), self.clock, self.ts[rows], self.key, given, self.end)

    def keys_of(self, rows: np.ndarray) -> "Stretch":
        """Some rows, of which only the key will be asked for."""
        assert self.key is not None
        if self.given is not None:  # the table need not hold it then
            return Stretch(self.table, self.clock, self.ts, self.key, (self.given[0][rows], self.given[1]))
        return Stretch(taken(self.table.select([self.key]), rows), self.clock, self.ts, self.key)

    @cached_property
    def keyed(self) -> tuple[np.ndarray | None, pa.Array | None]:
        """The key of each row, as a number in order of the keys' values; and the values."""
        if self.key is None or self.given is not None:
            return self.given or (None, None)
        by = column(self.table, self.key, "key is")
        few = _few_integers(by)
        if few is not None:
            return few
        known = KeyTable(by.type)
        ids = known.encode(by, self.key)
        if known.count == 0:
            return ids, known.column()
        order = order_of(known.column())
        rank = np.empty_like(order)
        rank[order] = np.arange(order.size)
        return rank.astype(np.int64)[ids], known.column().take(pa.array(order))

    @cached_property
    def stored(self) -> Stored:
        ids, keys = self.keyed
        order, starts = arrange(self.ts, ids, 1 if keys is None else len(keys))
        ts = self.ts if order is None else self.ts[order]
        return Stored(self.table, self.clock, ts, starts, order, None, as_given=False)


def _few_integers(by: pa.ChunkedArray) -> tuple[np.ndarray, pa.Array] | None:
    """Keys that are whole numbers close to each other are numbered as they are."""
    if by.type != pa.int64() or by.null_count or len(by) == 0:
        return None
    keys = np.asarray(one_chunk(by))
    low, high = int(keys.min()), int(keys.max())
    if high - low >= max(1024, keys.size // 64):
        return None
    return keys - low, pa.array(np.arange(low, high + 1))


def jump(queries: list[Query], every: Every, rows: Stretch, span: Span | None = None) -> TickAnswers:
    """All queries at every tick. span: those that are wanted, of windows that see later rows; else all."""
    simple = [leaf for query in queries for leaf in components(query)]
    reaches = {reach(leaf.window, rows.clock.unit) for leaf in simple}
    own = rows.key is not None and every.own
    whole = rows.key is not None and not every.per_key and every.by is None and not own
    later = any(sees_later(leaf.window) for leaf in simple)
    ever = Reach(True, schedules.FARTHEST, -max(0, schedules.farthest_ahead(reaches)))
    if every.by is not None:
        stored, (requests, ticks) = rows.stored, _of_partitions(every, rows, {ever} if later else reaches, later)
        stored, requests = (stored, requests) if later else _seen_only(stored, requests, reaches, False)
    elif own:
        stored, (requests, ticks) = rows.stored, _of_own_key(every, rows, reaches, span)
        stored, requests = (stored, requests) if later else _seen_only(stored, requests, reaches, False)
    elif later:
        stored, (requests, ticks) = rows.stored, (_later_of_all if whole else _each_segment)(every, rows, {ever}, span)
    elif whole and all(r.by_time for r in reaches):
        rows, stored, requests, ticks = _by_time(every, rows, reaches, _read_in_place(simple, rows.table))
    else:
        requests, ticks = (_by_rows if whole else _each_segment)(every, rows, reaches)
        stored, requests = _seen_only(rows.stored, requests, reaches, _read_in_place(simple, rows.table))
    evaluation = Evaluation(stored, requests)
    answers = [evaluation.add(query) for query in queries]
    known = not later and all(r.since is None for r in reaches)  # that a window at a tick holds a row
    present = _Presence(evaluation, queries, every, rows.key is not None, known, known and whole and not requests.apart)
    evaluation.run()
    columns, speaks = [each.array(stored) for each in answers], []
    for i, query in enumerate(queries):
        said = np.ones(ticks.count, bool) if query.having is None else np.asarray(pc.is_valid(columns[i]))
        speaks.append(said & present.of(i))
    jumped = TickAnswers(ticks.number, ticks.now, ticks.segment, rows.keyed[1], columns, speaks)
    some = np.logical_or.reduce(speaks)
    return jumped if some.all() else jumped.only(np.flatnonzero(some))


class _Presence:
    """Which queries have an event in their windows, where that is not certain from the ticks themselves."""

    def __init__(
        self, evaluation: Evaluation, queries: list[Query], every: Every, grouped: bool, known: bool, sure: bool
    ) -> None:
        leaves = [components(query) for query in queries]
        alone = known and len(queries) == 1 and len(leaves[0]) == 1
        self.events: list[Any] | None = None
        if grouped:
            surely = (
                alone
                and leaves[0][0].where is None
                and (sure or (every.by is None and _sees_its_tick(leaves[0][0].window)))
            )
            self.events = None if surely else [[evaluation.events(leaf) for leaf in each] for each in leaves]
        elif every.by_time and every.anchor == "tick" and not alone:  # of one stream; `where` does not matter
            self.events = [[evaluation.events(replace(leaf, where=None)) for leaf in each] for each in leaves]

    def of(self, i: int) -> Any:
        return True if self.events is None else np.any([each.values > 0 for each in self.events[i]], axis=0)


def _sees_its_tick(window: Window) -> bool:
    return (
        not isinstance(window, Since)
        and not window.until
        and not (isinstance(window, Range) and window.closed in ("left", "none"))
    )


def _each_segment(every: Every, rows: Stretch, reaches: set[Reach], span: Span | None = None) -> tuple[Requests, Ticks]:
    """Ticks of one stream, or of every key on its own."""
    stored, step = rows.stored, every.step(rows.clock.unit)
    ahead = max(0, schedules.farthest_ahead(reaches))
    span = span or Span.of_all(every, step, stored.ts, stored.starts, rows.end, ahead)
    since = schedules.filled_from(stored.ts, stored.starts, schedules.fewest_rows(reaches))
    ticks = schedules.schedule(every, step, stored.ts, stored.starts, span, reaches, since)
    order = None
    if rows.key is not None:
        by_time = np.lexsort((ticks.number, ticks.segment, ticks.now))
        order = np.empty_like(by_time)
        order[by_time] = np.arange(by_time.size)
    requests = Requests(ticks.now, ticks.end, _runs(ticks.segment, stored.starts.size - 1), order, False)
    if order is not None:
        ticks = Ticks(ticks.number[by_time], ticks.now[by_time], ticks.end[by_time], ticks.segment[by_time])
    return requests, ticks


def _by_rows(every: Every, rows: Stretch, reaches: set[Reach]) -> tuple[Requests, Ticks]:
    """Ticks of a keyed stream as a whole; some window is by rows, which are those of each key."""
    least = schedules.fewest_rows(reaches)
    since = schedules.filled_from(rows.stored.ts, rows.stored.starts, least).min(initial=schedules.NEVER)
    return _each_key(rows, _of_all(every, rows, reaches, int(since)), reaches)


def _by_time(
    every: Every, rows: Stretch, reaches: set[Reach], in_place: bool
) -> tuple[Stretch, Stored, Requests, Ticks]:
    """Ticks of a keyed stream as a whole, windows by time: what none sees is left before keys are even looked at."""
    ticks = _of_all(every, rows, reaches, schedules.NEVER)
    segments = np.array([[0, -1, 0], [rows.ts.size, -1, 0]])
    timeline = Timeline(fixed(rows.ts), segments, np.empty(0, np.int32))
    seen = Seen.of(timeline, _runs(ticks.segment, 1), ticks.now, ticks.end, reaches)
    if seen.apart:
        return _panes(rows, ticks, seen, in_place)
    if seen.few:
        rows, ticks = rows.only(seen.rows), Ticks(ticks.number, ticks.now, seen.ends, ticks.segment)
    return rows, rows.stored, *_each_key(rows, ticks, reaches)


def _of_all(every: Every, rows: Stretch, reaches: set[Reach], since: int, span: Span | None = None) -> Ticks:
    step, starts = every.step(rows.clock.unit), np.array([0, rows.ts.size])
    ahead = max(0, schedules.farthest_ahead(reaches))
    span = span or Span.of_all(every, step, rows.ts, starts, rows.end, ahead)
    return schedules.schedule(every, step, rows.ts, starts, span, reaches, np.array([since]))


def _each_key(rows: Stretch, ticks: Ticks, reaches: set[Reach]) -> tuple[Requests, Ticks]:
    """From ticks of the whole stream to those of each key with a row in its window."""
    stored = rows.stored
    place = np.arange(rows.ts.size) if stored.order is None else stored.order
    each = schedules.per_key(ticks, stored.ts, place, stored.starts, reaches)
    counts = np.bincount(each.number, minlength=ticks.count)
    order = np.empty(each.count, np.int64)
    kernels.places(each.number, np.concatenate([[0], np.cumsum(counts)]), order)
    requests = Requests(each.now, each.end, _runs(each.segment, stored.starts.size - 1), order, False)
    segment = np.empty_like(each.segment)
    segment[order] = each.segment
    number, now, end = (np.repeat(values, counts) for values in (ticks.number, ticks.now, ticks.end))
    return requests, Ticks(number, now, end, segment)


def _of_own_key(every: Every, rows: Stretch, reaches: set[Reach], span: Span | None) -> tuple[Requests, Ticks]:
    """Ticks of a keyed stream as a whole, each for the key of the row that it is at."""
    ticks, (ids, keys), stored = _of_all(every, rows, reaches, schedules.NEVER, span), rows.keyed, rows.stored
    assert ids is not None and keys is not None
    at = ticks.end - 1
    place = np.arange(rows.ts.size)
    if stored.order is not None:
        place[stored.order] = np.arange(rows.ts.size)
    key = ids[at].astype(np.int64)
    order = np.argsort(key, kind="stable")
    requests = Requests(ticks.now[order], place[at][order] + 1, _runs(key[order], len(keys)), order, False)
    return requests, Ticks(ticks.number, ticks.now, place[at] + 1, key)


def _of_partitions(every: Every, rows: Stretch, reaches: set[Reach], later: bool) -> tuple[Requests, Ticks]:
    """Ticks of each partition of a keyed stream, for the keys in it."""
    ids, keys = rows.keyed
    assert ids is not None and keys is not None
    return ticks_of_partitions(every, rows.stored, ids, keys, reaches, rows.end, later)


def _later_of_all(every: Every, rows: Stretch, reaches: set[Reach], span: Span | None) -> tuple[Requests, Ticks]:
    """Ticks of a keyed stream as a whole, where windows hold rows that come later: for all keys there are."""
    ticks, stored = _of_all(every, rows, reaches, schedules.NEVER, span), rows.stored
    place = np.arange(rows.ts.size) if stored.order is None else stored.order
    count, keys = ticks.count, stored.starts.size - 1
    end = np.empty(count * keys, np.int64)
    kernels.seen_of_each(fixed(place), stored.starts, fixed(ticks.end), end)
    order = np.arange(count * keys).reshape(keys, count) % count * keys + np.arange(keys)[:, None]
    requests = Requests(
        np.tile(ticks.now, keys), end, _runs(np.repeat(np.arange(keys), count), keys), order.reshape(-1), False
    )
    number, now, end = (np.repeat(values, keys) for values in (ticks.number, ticks.now, ticks.end))
    return requests, Ticks(number, now, end, np.tile(np.arange(keys), count))


def _panes(rows: Stretch, ticks: Ticks, seen: "Seen", in_place: bool) -> tuple[Stretch, Stored, Requests, Ticks]:
    """Windows that hardly overlap are grouped by key one by one: a run of rows for every tick and key."""
    places, ends, widths = np.empty(0, np.int64), ticks.end, seen.widths
    few = rows
    if seen.few:  # of the others not even the keys are looked at
        places, ends = seen.rows, seen.ends
        few = rows.keys_of(places) if in_place else rows.only(places)
        rows, places = (rows, places) if in_place else (few, np.empty(0, np.int64))
    ids, values = few.keyed
    assert ids is not None and values is not None
    total = int(widths.sum())
    most = min(total, ticks.count * len(values))
    order, starts = np.empty(total, np.int64), np.empty(most + 1, np.int64)
    tick, key = np.empty(most, np.int64), np.empty(most, np.int64)
    runs = direct.group(ids, places, ends, widths, max(len(values), 1), direct.Panes(order, starts, tick, key))
    tick, key, starts = tick[:runs], key[:runs], starts[: runs + 1]
    whole_runs = seen.widest is not None
    # Times are not looked at where windows are known, unless an answer is made of them.
    ts = np.empty(total, np.int64) if whole_runs and in_place else rows.ts[order]
    # A run has one window: there is nothing to search.
    stored = Stored(rows.table, rows.clock, ts, starts, order, None, as_given=False, searched=False)
    each = np.column_stack([np.arange(runs + 1), np.append(np.arange(runs), -1)])
    known = {seen.widest: (starts[:-1], starts[1:])} if whole_runs else {}
    requests = Requests(ticks.now[tick], starts[1:], each, None, False, apart=True, windows=known)
    return few, stored, requests, Ticks(ticks.number[tick], ticks.now[tick], ticks.end[tick], key)


def _runs(segment: np.ndarray, segments: int) -> np.ndarray:
    return runs_of(np.concatenate([[0], np.cumsum(np.bincount(segment, minlength=segments))]))


def _seen_only(stored: Stored, requests: Requests, reaches: set[Reach], in_place: bool) -> tuple[Stored, Requests]:
    """Only the rows that windows see; left where they are if all answers are read from those alone anyway."""
    seen = Seen.of(stored.timeline(0), requests.runs, requests.now, requests.end, reaches)
    if not seen.few or (in_place and seen.apart and stored.order is None):
        known = {} if seen.widest is None else {seen.widest: (seen.lo, seen.end)}
        return stored, replace(requests, apart=seen.apart, windows=known)
    rows = seen.rows
    table = taken(stored.table, rows if stored.order is None else stored.order[rows])
    starts = np.searchsorted(rows, stored.starts)
    closed_up = Stored(table, stored.clock, stored.ts[rows], starts, None, None, as_given=False)
    return closed_up, replace(requests, end=seen.ends, apart=seen.apart)


def _read_in_place(simple: list[Query], table: pa.Table) -> bool:
    """Are all answers read from the rows in windows, without a look at any other?"""
    return all(
        leaf.where is None
        and leaf.aggregate.kind in ("count", "first", "last", "sum", "mean")
        and all(_plain_floats(table.column(name)) for name in leaf.aggregate.columns)
        for leaf in simple
    )


def _plain_floats(values: pa.ChunkedArray) -> bool:
    return values.type == pa.float64() and values.null_count == 0 and values.num_chunks == 1


@dataclass(eq=False)
class Seen:
    """The rows that requests can see: request i, widths[i] of them, up to the ends[i]-th of those that are seen."""

    lo: np.ndarray
    end: np.ndarray
    ends: np.ndarray
    count: int
    total: int
    widest: Reach | None  # the only window there is, if it ends with the newest row

    @classmethod
    def of(
        cls,
        timeline: Timeline,
        runs: np.ndarray,
        now: np.ndarray,
        end: np.ndarray,
        wanted: Iterable[Reach],
    ) -> "Seen":
        """From requests (runs, times, ends) and how far back windows reach: the rows that some window of them sees."""
        reaches = list(wanted)
        lo, edge, ends = end.copy(), np.empty_like(end), np.empty_like(end)
        for back in {(r.by_time, min(r.far, schedules.FARTHEST)) for r in reaches}:
            if back[0]:
                edges.by_time(timeline, runs, fixed(now), back[1], 0, edge)
            else:
                edges.by_rows(timeline.segments, runs, end, back[1], 0, edge)
            np.minimum(lo, edge, out=lo)
        count = int(kernels.cover(lo, end, np.empty(0, np.int64), ends))
        only = reaches[0] if len(reaches) == 1 and reaches[0].near == 0 and reaches[0].since is None else None
        return cls(lo, end, ends, count, timeline.ts.size, only)

    @classmethod
    def in_segments(cls, ts: np.ndarray, starts: np.ndarray, ticks: Ticks, wanted: Iterable[Reach]) -> "Seen":
        """What ticks see of rows that lie segment by segment."""
        segments = np.zeros((starts.size, 3), np.int64)
        segments[:, edges.START], segments[:, edges.SHIFT] = starts, -1
        runs = _runs(ticks.segment, starts.size - 1)
        return cls.of(Timeline(fixed(ts), segments, np.empty(0, np.int32)), runs, ticks.now, ticks.end, wanted)

    @property
    def few(self) -> bool:
        return self.count <= WORTH_SKIPPING * self.total

    @property
    def widths(self) -> np.ndarray:
        return self.end - self.lo

    @property
    def apart(self) -> bool:
        """Do windows hardly overlap?"""
        return int(self.widths.sum()) <= HARDLY * max(self.count, 1)

    @property
    def rows(self) -> np.ndarray:
        rows, ends = np.empty(max(self.count, 1), np.int64), np.empty_like(self.ends)
        kernels.cover(self.lo, self.end, rows, ends)
        return rows[: self.count]
