"""Stored events put in order: rows by (key, time), requests in the same order, and the rows that count for a query."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from kernels.stored import edges
from kernels.stored.edges import Timeline
from swag.errors import BadType, UnknownColumn, nearest
from swag.query.groupings import By
from swag.query.windows import Since
from swag.tables.columns import (
    Clock,
    Field,
    clock_of,
    column,
    decoded,
    decoded_type,
    fixed,
    instants,
    one_chunk,
    ranked_field,
    valid_rows,
)
from swag.tables.columns import field as read_field
from swag.tables.decimals import as_floats, exact, is_wide, limb, limb_of
from swag.tables.key_columns import joined
from swag.tables.keys import KeyTable, is_spelled, joint_name

HEAD = 1 << 16  # rows that most keys are among
MANY_LOOKUPS = 16  # edges per row, from which on more buckets of time pay
SAMPLED_STEPS = 512  # steps in time that show whether events come evenly


def arrange(ts: np.ndarray, ids: np.ndarray | None, segments: int) -> tuple[np.ndarray | None, np.ndarray]:
    """The order of rows by (id, ts), stable (None: they are in it), and where each segment starts."""
    if ids is None:
        starts = np.array([0, ts.size])
        return (None if edges.ordered(fixed(ts), starts) else np.argsort(ts, kind="stable")), starts
    starts = np.concatenate([[0], np.cumsum(np.bincount(ids, minlength=segments))])
    order = None if edges.ordered(fixed(ids), np.array([0, ids.size])) else _grouped(ids, starts)
    if edges.is_sorted(fixed(ts)):  # so are those of each id, then
        return order, starts
    if not edges.ordered(fixed(ts if order is None else ts[order]), starts):
        by_time = np.argsort(ts, kind="stable")
        order = by_time[_grouped(ids[by_time], starts)]
    return order, starts


def _grouped(ids: np.ndarray, starts: np.ndarray) -> np.ndarray:
    order = np.empty(ids.size, np.int64)
    edges.group(ids, starts, order)
    return order


@dataclass(eq=False)
class Stored:
    """Events in order. `order`: the input row of each (None: as they came); segment k of them is key k's.

    as_given: rows are numbered as in the input, of which none was left out. searched: windows are looked for in time,
    and an index of it may pay.
    """

    table: pa.Table
    clock: Clock
    ts: np.ndarray
    starts: np.ndarray
    order: np.ndarray | None
    keys: KeyTable | None
    fields: dict[str, Field] = field(default_factory=dict)
    as_given: bool = True
    searched: bool = True
    _indexed: dict[int, Timeline] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ts = fixed(self.ts)

    @classmethod
    def of(cls, table: pa.Table, ts: str, by: By, fields: dict[str, Field] | None = None) -> "Stored":
        """by: the columns of the key. fields: those that were read already, of the same rows in another order."""
        if len(by) > 1:
            table, by = joined(table, by), (joint_name(by),)
        times = column(table, ts, "ts is")
        clock = clock_of(times, ts)
        keys, ids = None, None
        if by:
            key = column(table, by[0], "key is")
            keys = KeyTable(key.type, by[0])
            if len(key) > 4 * HEAD:  # a table for most keys, rather than for as many as rows: twice as fast, for few
                keys.encode(key[:HEAD], by[0])
            ids = keys.encode(key, by[0])
        instant = instants(times, ts)
        order, starts = arrange(instant, ids, keys.count if keys else 1)
        times_in_order = instant if order is None else instant[order]
        return cls(table, clock, times_in_order, starts, order, keys, {} if fields is None else fields)

    @classmethod
    def in_order(cls, table: pa.Table, order: np.ndarray | None) -> "Stored":
        """Rows that lie in the order they are to have, for requests that know where their windows begin and end."""
        ts = np.broadcast_to(np.int64(0), table.num_rows if order is None else order.size)  # nobody asks for it
        return cls(table, Clock(pa.int64()), ts, np.array([0, ts.size]), order, None)

    @cached_property
    def segments(self) -> np.ndarray:
        """One per key and one more, which is empty: that of all unknown keys. Without an index."""
        segments = np.zeros((self.starts.size + 1, 3), np.int64)
        segments[:, edges.START] = np.append(self.starts, self.starts[-1])
        segments[:, edges.SHIFT] = -1
        return segments

    def indexed(self, per_row: int) -> Timeline:
        """per_row: buckets of time, at most."""
        if per_row not in self._indexed:
            segments = self.segments.copy()
            edges.measure(self.ts, segments, per_row)
            index = np.full(segments[-1, edges.OFFSET], -1, np.int32 if self.ts.size < 2**31 else np.int64)
            edges.fill(self.ts, segments, index)
            self._indexed[per_row] = Timeline(self.ts, segments, index)
        return self._indexed[per_row]

    def timeline(self, lookups: int) -> Timeline:
        """With an index of time, if so many edges are to be found that it pays: it takes as long as a few per event."""
        if self.searched and 4 * lookups >= self.ts.size:
            return self.indexed(edges.BUCKETS if lookups >= MANY_LOOKUPS * self.ts.size else edges.BUCKETS // 2)
        return Timeline(self.ts, self.segments, np.empty(0, np.int32))

    def field(self, name: str, asked_by: str) -> Field:
        if name not in self.fields:
            kind = decoded_type(column(self.table, name, asked_by).type)
            ranked = is_spelled(kind) or is_wide(kind)
            self.fields[name] = (ranked_field if ranked else read_field)(self.table, name, asked_by)
        return self.fields[name]

    def summed(self, name: str, asked_by: str, kept: tuple[str, ...]) -> Field:
        """A column of decimals as it is computed with: from then on what is kept for it is there, its limbs or it as
        floats. Returns one of these."""
        if kept[0] not in self.fields:
            array = decoded(one_chunk(column(self.table, name, asked_by)))
            words, valid = exact(array, name), valid_rows(self.table, name, asked_by)
            for each in kept:
                part = limb_of(each)
                values = as_floats(words, array.type.scale) if part is None else limb(words, part[1])
                self.fields[each] = Field(np.ascontiguousarray(values), valid, array.type)
        return self.fields[kept[0]]

    def present(self, name: str, asked_by: str) -> np.ndarray | None:
        return valid_rows(self.table, name, asked_by)


@dataclass(eq=False)
class Selection:
    """The rows that count, closed up. `rows`: the input row of each; `rank[p]`: how many come before row p of all."""

    stored: Stored
    rows: np.ndarray | None = None
    rank: np.ndarray | None = None
    _columns: dict[str, np.ndarray] = field(default_factory=dict)
    _lock: Any = field(default_factory=threading.Lock)  # chunks ask at the same time

    @classmethod
    def of(cls, stored: Stored, masks: list[np.ndarray]) -> "Selection":
        """The rows that all masks let count; without any, or where all rows count, nothing is copied."""
        chosen = np.logical_and.reduce(masks) if masks else None
        if chosen is None or chosen.all():
            return cls(stored, stored.order)
        order = np.arange(chosen.size) if stored.order is None else stored.order
        rank = np.empty(order.size + 1, np.int32 if order.size < 2**31 else np.int64)
        rows = np.empty(order.size, np.int64)
        return cls(stored, rows[: edges.choose(chosen, order, rank, rows)], rank)

    def column(self, name: str, dtype: Any, a: int, b: int) -> np.ndarray:
        """The values of a column in the rows a … b - 1 of those that count, in order.

        Some at a time are gathered by all threads. Whole columns, put in order, were fresh memory, a quarter of what
        the answers to 40 calls took: 3.2 GB at the peak rather than 2.7. User CPU time stayed the same.
        """
        values = fixed(self.stored.fields[name].values)
        if self.rows is None:
            return fixed(values[a:b].astype(dtype, copy=False))
        found = np.empty(b - a, values.dtype)  # as words, gathered in 6 ns each; NumPy takes 15
        edges.renumber(values.view(np.int64), self.rows[a:b], found.view(np.int64))
        return fixed(found.astype(dtype, copy=False))

    def computed(self, name: str, make: Callable[[], np.ndarray]) -> np.ndarray:
        """A column that is made of others, once."""
        with self._lock:
            if name not in self._columns:
                self._columns[name] = fixed(make())
            return self._columns[name]

    @property
    def times(self) -> np.ndarray:
        """The times of the rows that count, in order."""
        ts, rank = self.stored.ts, self.rank
        return ts if rank is None else self.computed("ts", lambda: ts[np.flatnonzero(np.diff(rank))])

    @property
    def input_rows(self) -> np.ndarray:
        """The input row of each that counts."""
        return self.computed("rows", lambda: np.arange(self.stored.ts.size) if self.rows is None else self.rows)


@dataclass(eq=False)
class Requests:
    """Where answers are asked for, in order: at time now[i], of all rows before end[i] of its segment."""

    now: np.ndarray
    end: np.ndarray
    runs: np.ndarray
    order: np.ndarray | None
    each_event: bool
    apart: bool = False  # windows together hold about as many rows as there are, or fewer
    windows: dict[Any, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)  # edges that are known already
    restarts: list[int] = field(default_factory=list)  # requests at which these go back
    before: dict[Since, np.ndarray] = field(default_factory=dict)  # the last instant before the period of each begins

    def __post_init__(self) -> None:
        self.now = fixed(self.now)

    def look_up(self, since: Since, clock: Clock) -> None:
        """When the periods of a calendar begin in which the requests lie."""
        if since not in self.before:
            self.before[since] = fixed(since.starts(self.now, clock) - 1)

    @property
    def count(self) -> int:
        return int(self.now.size)

    @cached_property
    def uneven(self) -> np.ndarray | None:
        """How many steps in time up to each request are not the usual one; None if it is not usual at all."""
        middle = max(0, self.count // 2 - SAMPLED_STEPS)
        steps = np.diff(self.now[middle : middle + 2 * SAMPLED_STEPS])
        if not steps.size or 2 * np.count_nonzero(steps == (usual := int(np.median(steps)))) < steps.size:
            return None
        uneven = np.empty(self.count, np.int32 if self.count < 2**31 else np.int64)
        edges.count_uneven(self.now, usual, uneven)
        return uneven

    @property
    def request_of(self) -> np.ndarray | None:
        """Which request each input row is; None: they are in order."""
        if self.order is None:
            return None
        found = np.empty(self.count, np.int32 if self.count < 2**31 else np.int64)
        edges.invert(self.order, found)
        return found

    @classmethod
    def at_events(cls, stored: Stored, counted: np.ndarray | None = None) -> "Requests":
        """counted: 1, 2, 3 … for as many as there are, if somebody has them."""
        end = np.arange(1, stored.ts.size + 1) if counted is None else counted
        return cls(stored.ts, end, runs_of(stored.starts), stored.order, True)

    @classmethod
    def at_times(cls, stored: Stored, table: pa.Table, ts: str, by: By) -> "Requests":
        """by: the columns of the key."""
        for name in (ts, *by):
            if name not in table.column_names:
                have = ", ".join(table.column_names)
                raise UnknownColumn(
                    f'requests need a column "{name}", but have: {have}.', nearest(name, table.column_names)
                )
        times = instants(as_clock(column(table, ts, "ts is"), stored.clock, ts), ts)
        segments, ids = 1, None
        if stored.keys is not None:
            if len(by) > 1:
                table, by = joined(table, by), (joint_name(by),)
            segments = stored.keys.count + 1
            ids = stored.keys.find(column(table, by[0], "key is"), by[0])
            ids[ids < 0] = segments - 1
        order, starts = arrange(times, ids, segments)
        requests = cls(
            times if order is None else times[order], np.empty(times.size, np.int64), runs_of(starts), order, False
        )
        edges.by_time(stored.timeline(times.size), requests.runs, requests.now, 0, 0, requests.end)
        return requests

    @classmethod
    def between(cls, window: Any, lo: np.ndarray, hi: np.ndarray) -> "Requests":
        """For `window`, the rows at positions [lo[i], hi[i]), which may lie in any order."""
        forward = ascending_runs(lo, hi)
        order = None if len(forward) == 1 and edges.is_sorted(fixed(forward[0])) else np.concatenate(forward)
        if order is not None:
            lo, hi = lo[order], hi[order]
        restarts = np.cumsum([run.size for run in forward[:-1]], dtype=np.int64).tolist()
        apart = not restarts and bool((lo[1:] >= hi[:-1]).all())
        return cls(lo, hi, np.empty((0, 2), np.int64), order, False, apart, {window: (lo, hi)}, restarts)


def ascending_runs(lo: np.ndarray, hi: np.ndarray) -> list[np.ndarray]:
    """Intervals in runs within which neither edge goes back: as many runs as intervals lie inside each other."""
    left = np.argsort(lo * (hi.max(initial=0) + 1) + hi)  # by lo, then hi: np.lexsort takes five times as long
    found: list[np.ndarray] = []
    while left.size or not found:
        ahead = hi[left] >= np.maximum.accumulate(hi[left])
        found.append(left[ahead])
        left = left[~ahead]
    return found


def runs_of(starts: np.ndarray) -> np.ndarray:
    """One run of requests per segment that has any, and a row for the end."""
    segment = np.flatnonzero(np.diff(starts))
    return np.column_stack([np.append(starts[segment], starts[-1]), np.append(segment, -1)])


def as_clock(times: pa.ChunkedArray, clock: Clock, name: str) -> pa.ChunkedArray:
    """The requests' times in the unit of the events'; refused if they do not fit it."""
    kind = times.type
    if kind == clock.type or (pa.types.is_integer(kind) and clock.unit is None):
        return times
    clock_of(times, name)
    if pa.types.is_null(kind) or pa.types.is_null(clock.type):  # there are none, or no events
        return times
    if (
        pa.types.is_timestamp(kind)
        and pa.types.is_timestamp(clock.type)
        and (kind.tz is None) == (clock.type.tz is None)
    ):
        try:
            return times.cast(clock.type)
        except pa.ArrowInvalid:
            pass
    raise BadType(
        f'"{name}" of the requests is {kind}, that of the events {clock.type}.',
        f"cast both to one type, e.g. {clock.type}",
    )
