"""Jumping windows over rows at hand: ticks first, then they are answered like requests, from the rows they can see.

      rows   . . . . . . . . . . . . . . . .       every 8 rows, the last 3 of them
                       [---T]          [---T]      two ticks, two requests
                       6 7 8           14 15 16    all that is ever gathered

Both `evaluate` and the engine come here: the one with all rows, the other with those that its undecided ticks need.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kernels import edges
from kernels import ticks as kernels
from swag import ticks as schedules
from swag.columns import Clock, clock_of, column, instants
from swag.evaluate import Evaluation, simple_queries
from swag.frequency import Every
from swag.keys import KeyTable
from swag.query import Query
from swag.stored import Requests, Stored, arrange, runs_of
from swag.ticks import Span, Ticks
from swag.windows import Range, Reach, Window, reach

WORTH_SKIPPING = 0.75  # if windows see no more of the rows than this, the others are skipped


@dataclass(eq=False)
class Jumped:
    """What ticks say: one row for each of them (and key), in order. speaks: per query, for which rows it has an answer:
    no event, no group; and a condition that does not hold says nothing."""

    number: np.ndarray
    now: np.ndarray
    segment: np.ndarray
    keys: pa.Array | None
    columns: list[pa.Array | pa.ChunkedArray]
    speaks: list[np.ndarray]

    def only(self, rows: np.ndarray) -> "Jumped":
        taken = pa.array(rows)
        columns = [each.take(taken) for each in self.columns]
        speaks = [each[rows] for each in self.speaks]
        return Jumped(self.number[rows], self.now[rows], self.segment[rows], self.keys, columns, speaks)

    @property
    def key_column(self) -> pa.Array:
        assert self.keys is not None
        return self.keys.take(pa.array(self.segment))


@dataclass(eq=False)
class Stretch:
    """Rows of a stream, in any order within `table` but by time where the whole stream is counted.

    given: the keys if they are known, as `keyed` would find them.
    """

    table: pa.Table
    clock: Clock
    ts: np.ndarray
    key: str | None
    given: tuple[np.ndarray, pa.Array] | None = None

    @classmethod
    def of(cls, table: pa.Table, ts: str, key: str | None, ordered: bool) -> "Stretch":
        times = column(table, ts, "ts is")
        clock, instant = clock_of(times, ts), instants(times, ts)
        if ordered and not edges.ordered(instant, np.array([0, instant.size])):
            rows = np.argsort(instant, kind="stable")
            table, instant = table.take(pa.array(rows)), instant[rows]
        return cls(table, clock, instant, key)

    def only(self, rows: np.ndarray) -> "Stretch":
        given = None if self.given is None else (self.given[0][rows], self.given[1])
        return Stretch(self.table.take(pa.array(rows)), self.clock, self.ts[rows], self.key, given)

    @cached_property
    def keyed(self) -> tuple[np.ndarray | None, pa.Array | None]:
        """The key of each row, as a number in order of the keys' values; and the values."""
        if self.key is None or self.given is not None:
            return self.given or (None, None)
        by = column(self.table, self.key, "key is")
        known = KeyTable(by.type)
        ids = known.encode(by, self.key)
        if known.count == 0:
            return ids, known.column()
        order = np.asarray(pc.sort_indices(known.column()))
        rank = np.empty_like(order)
        rank[order] = np.arange(order.size)
        return rank.astype(np.int64)[ids], known.column().take(pa.array(order))

    @cached_property
    def stored(self) -> Stored:
        ids, keys = self.keyed
        order, starts = arrange(self.ts, ids, 1 if keys is None else len(keys))
        return Stored(self.table, self.clock, self.ts if order is None else self.ts[order], starts, order, None)


def jump(queries: list[Query], every: Every, rows: Stretch, span: "Span | None" = None, empty: bool = False) -> Jumped:
    """All queries at every tick. span: which ticks (None: all there are). empty: also where a key's window is."""
    simple = [leaf for query in queries for leaf in simple_queries(query)]
    reaches = {reach(leaf.window, rows.clock.unit) for leaf in simple}
    whole = rows.key is not None and not every.per_key
    if whole:
        rows, requests, ticks = _whole_stream(every, rows, span, reaches)
    else:
        requests, ticks = _each_segment(every, rows, span, reaches)
    stored = rows.stored
    if rows.key is None or every.per_key or any(not r.by_time for r in reaches):
        stored, requests = _seen_only(stored, requests, reaches)
    evaluation = Evaluation(stored, requests)
    answers = [evaluation.add(query) for query in queries]
    present = _Presence(evaluation, queries, every, rows.key is not None and not empty, whole)
    evaluation.run()
    columns, speaks = [each.array(stored) for each in answers], []
    for i, query in enumerate(queries):
        said = np.ones(ticks.count, bool) if query.having is None else np.asarray(pc.is_valid(columns[i]))
        speaks.append(said & present.of(i))
    jumped = Jumped(ticks.number, ticks.now, ticks.segment, rows.keyed[1], columns, speaks)
    some = np.logical_or.reduce(speaks)
    return jumped if some.all() else jumped.only(np.flatnonzero(some))


class _Presence:
    """Which queries have an event in their windows, where that is not certain from the ticks themselves."""

    def __init__(self, evaluation: Evaluation, queries: list[Query], every: Every, grouped: bool, whole: bool) -> None:
        leaves = [simple_queries(query) for query in queries]
        alone = len(queries) == 1 and len(leaves[0]) == 1
        self.events: list[Any] | None = None
        if grouped:
            surely = alone and leaves[0][0].where is None and (whole or _sees_its_tick(leaves[0][0].window))
            self.events = None if surely else [[evaluation.events(leaf) for leaf in each] for each in leaves]
        elif every.by_time and every.anchor == "tick" and not alone:  # of one stream; `where` does not matter
            self.events = [[evaluation.events(replace(leaf, where=None)) for leaf in each] for each in leaves]

    def of(self, i: int) -> Any:
        return True if self.events is None else np.any([each.values > 0 for each in self.events[i]], axis=0)


def _sees_its_tick(window: Window) -> bool:
    return not window.until and not (isinstance(window, Range) and window.closed in ("left", "none"))


def _each_segment(every: Every, rows: Stretch, span: Span | None, reaches: set[Reach]) -> tuple[Requests, Ticks]:
    """Ticks of one stream, or of every key on its own."""
    stored, step = rows.stored, every.step(rows.clock.unit)
    span = span or Span.of_all(every, step, stored.ts, stored.starts)
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


def _whole_stream(
    every: Every, rows: Stretch, span: Span | None, reaches: set[Reach]
) -> tuple[Stretch, Requests, Ticks]:
    """Ticks of a keyed stream as a whole, then those of each key."""
    step, starts = every.step(rows.clock.unit), np.array([0, rows.ts.size])
    span = span or Span.of_all(every, step, rows.ts, starts)
    since = np.full(1, schedules.NEVER)
    least = schedules.fewest_rows(reaches)
    if least:
        since[0] = schedules.filled_from(rows.stored.ts, rows.stored.starts, least).min(initial=schedules.NEVER)
    ticks = schedules.schedule(every, step, rows.ts, starts, span, reaches, since)
    if not least:  # windows by time alone: what no tick sees is left before keys are even looked at
        rows, ticks = _seen_of_all(rows, ticks, reaches)
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
    return rows, requests, Ticks(number, now, end, segment)


def _runs(segment: np.ndarray, segments: int) -> np.ndarray:
    return runs_of(np.concatenate([[0], np.cumsum(np.bincount(segment, minlength=segments))]))


def _seen_of_all(rows: Stretch, ticks: Ticks, reaches: set[Reach]) -> tuple[Stretch, Ticks]:
    segments = np.array([[0, -1, 0], [rows.ts.size, -1, 0]])
    timeline = rows.ts, segments, np.empty(0, np.int32)
    seen = _seen(timeline, _runs(ticks.segment, 1), ticks.now, ticks.end, reaches)
    if seen is None:
        return rows, ticks
    return rows.only(seen[0]), Ticks(ticks.number, ticks.now, seen[1], ticks.segment)


def _seen_only(stored: Stored, requests: Requests, reaches: set[Reach]) -> tuple[Stored, Requests]:
    seen = _seen(stored.timeline(0), requests.runs, requests.now, requests.end, reaches)
    if seen is None:
        return stored, requests
    rows, ends = seen
    table = stored.table.take(pa.array(rows if stored.order is None else stored.order[rows]))
    starts = np.searchsorted(rows, stored.starts)
    closed_up = Stored(table, stored.clock, stored.ts[rows], starts, None, None)
    return closed_up, Requests(requests.now, ends, requests.runs, requests.order, False)


def _seen(
    timeline: tuple[np.ndarray, np.ndarray, np.ndarray],
    runs: np.ndarray,
    now: np.ndarray,
    end: np.ndarray,
    reaches: Iterable[Reach],
) -> tuple[np.ndarray, np.ndarray] | None:
    """The rows that requests can see, and how many of them each one sees; None if that is most of them."""
    lo, edge = end.copy(), np.empty_like(end)
    for back in {(r.by_time, min(r.far, schedules.FARTHEST)) for r in reaches}:
        if back[0]:
            edges.by_time(*timeline, runs, now, back[1], 0, edge)
        else:
            edges.by_rows(timeline[1], runs, end, back[1], 0, edge)
        np.minimum(lo, edge, out=lo)
    ends = np.empty_like(end)
    wanted = int(kernels.cover(lo, end, np.empty(0, np.int64), ends))
    if wanted > WORTH_SKIPPING * timeline[0].size:
        return None
    rows = np.empty(max(wanted, 1), np.int64)
    kernels.cover(lo, end, rows, ends)
    return rows[:wanted], ends
