"""Frames meet events of any stream: which of them lie in which frame, and what they add up to.

Of the stream that they were found in, frames hold their own events (frames/owning/owning.py); of others, all inside.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from frames.finding.intake import ONE_THREAD_BELOW, chunks, in_parallel
from frames.finding.intervals import Times, over_intervals
from frames.owning.meeting import Meeting
from frames.owning.origin import filled_by
from frames.owning.owning import Owner, of_origin, own_spans
from frames.tables import Key, united
from kernels.compile.ahead import rehearsed
from kernels.frames import fill as frame_fill
from kernels.operators.numbers import EARLIEST, LATEST
from swag.arguments import as_list
from swag.errors import BadQuery
from swag.first_use import few
from swag.query.aggregates import Aggregate
from swag.query.calculation import calculate
from swag.query.expression import Operators, leaves
from swag.query.groupings import By
from swag.query.reading import with_aggregated
from swag.tables.columns import as_table, column, one_chunk, room, taken
from swag.tables.key_columns import joined, key_name
from swag.tables.times.durations import Duration


@dataclass(frozen=True)
class Placed:
    """Intervals by key, in order of start; `rows` says which frame each was. Kernels take the other four."""

    segments: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    reach: np.ndarray
    rows: np.ndarray

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        return self.segments, self.starts, self.ends, self.reach


def placed(ids: np.ndarray, count: int, starts: np.ndarray, ends: np.ndarray) -> Placed:
    """Frames laid out for `match`. ids: the keys of the frames, below `count`."""
    order = np.lexsort((starts, ids))
    segments = np.concatenate([[0], np.cumsum(np.bincount(ids, minlength=count))])
    reach = np.empty(order.size, np.int64)
    frame_fill.furthest(segments, ends[order], reach)
    return Placed(segments, starts[order], ends[order], reach, order)


def matches(
    instants: np.ndarray, ids: np.ndarray, frames: Placed, names: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Every (event, frame) that belong together, in order of events, on all cores. names: what frames are called, in
    order of `frames`; else they are called by their rows.

    There is room for one frame of each event. Where these are too few they are counted by then, and listed again.
    """
    slices, called = chunks(instants.size), frames.rows if names is None else names
    begins = frames.segments
    nowhere = np.stack([begins, begins, np.full_like(begins, LATEST), np.full_like(begins, EARLIEST)], axis=1)

    def look(s: slice, row: np.ndarray, frame: np.ndarray) -> int:
        own = ids[s] if ids.size else ids
        return int(frame_fill.match(instants[s], own, s.start, (*frames.arrays, called), nowhere.copy(), row, frame))

    row, frame = room(instants.size, np.int64), room(instants.size, np.int64)
    sizes = in_parallel(lambda s: look(s, row[s], frame[s]), slices)
    edges = np.concatenate([[0], np.cumsum(sizes)])
    if any(size > s.stop - s.start for size, s in zip(sizes, slices, strict=True)):
        row, frame = room(edges[-1], np.int64), room(edges[-1], np.int64)
        places = [slice(*pair) for pair in itertools.pairwise(edges)]
        in_parallel(lambda pair: look(pair[0], row[pair[1]], frame[pair[1]]), zip(slices, places, strict=True))
        return row, frame
    for s, first, size in zip(slices, edges, sizes, strict=False):
        if first < s.start:
            for each in (row, frame):
                each[first : first + size] = each[s.start : s.start + size]
    return row[: edges[-1]], frame[: edges[-1]]


def _filling(frames: Any, events: Any, **options: Any) -> Callable[[], Any]:
    return partial(fill, few(frames), few(events), **options)


@rehearsed(_filling)
def fill(
    frames: Any, events: Any, *, ts: str = "ts", key: Key = None, before: Duration = 0, after: Duration = 0,
    own: bool | None = None,
) -> pa.Table:  # fmt: skip
    """The events with start - before <= ts <= end + after of a frame of their key, in input order, with its frame_id.

    Of frames that were found with extent="open": start - before <= ts < end + after, without an end where that is null.
    key: if not said, what the frames were found per; () takes events of all keys. An event that lies in several frames
    comes once for each. O(log frames) per event, less when they are in order. In the very table that the frames were
    found in (or an equal one), without margins, it is the frame's own events only: not others that share its first or
    last ts. own=False: these too. own=True: any other table is refused.

    >>> import frames as fr
    >>> found = fr.detect(fr.Threshold("load", ">", 0.3), {"ts": [1, 2, 3], "load": [0.1, 0.5, 0.6]})
    >>> fr.fill(found, {"ts": [2, 4], "message": ["hot", "cool"]}).to_pylist()
    [{'ts': 2, 'message': 'hot', 'frame_id': 0}]
    """
    found, table = as_table(frames), as_table(events)
    check_free(table)
    by = filled_by(key, found, table.column_names)
    row, numbers = members(found, table, ts, by, before, after, own)
    return tagged(table, row, numbers)


def members(
    frames: Any, table: pa.Table, ts: str, by: By, before: Duration = 0, after: Duration = 0, own: bool | None = None,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Every (row of an event, frame_id of a frame) that belong together, in order of rows."""
    meeting, owner = meet(frames, table, ts, by, before, after, own)
    if owner is None or not owner.must:
        intervals = placed(meeting.keys, meeting.count, meeting.starts, meeting.ends)
        row, numbers = matches(meeting.instants, meeting.ids, intervals, meeting.numbers[intervals.rows])
        told = meeting.rows is not None and row.size == int(meeting.rows.sum())  # no frame has less than its own,
        told &= not meeting.half_open  # unless it ends where its last event is
        if owner is None or told or meeting.rises:
            return row, numbers
    owned = owner.ask(meeting)
    if owned is None:
        return row, numbers
    row, frame = rows_between(meeting, *owned)
    return row, meeting.numbers[frame]


def rows_between(meeting: Meeting, lo: np.ndarray, hi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows at positions lo … hi of each frame, in order of rows, and the frame of each."""
    frame = np.repeat(np.arange(lo.size), hi - lo)
    at = np.arange(frame.size) - np.repeat(np.cumsum(hi - lo) - hi, hi - lo)
    rows, which = at if meeting.laid.order is None else meeting.laid.order[at], np.full(meeting.instants.size, -1)
    which[rows] = frame
    row = np.flatnonzero(which >= 0)
    if row.size < frame.size:  # some are in several frames
        order = np.lexsort((frame, rows))
        return rows[order], frame[order]
    return row, which[row]


def meet(
    frames: Any, table: pa.Table, ts: str, by: By, before: Duration, after: Duration, own: bool | None
) -> tuple[Meeting, Owner | None]:
    """Frames, put together from their pieces, and events; and who knows which of these are their own."""
    frames = as_table(frames)
    whole = joined(united(frames), by)
    meeting = Meeting.of(whole, joined(table, by), ts, key_name(by), before, after)
    return meeting, of_origin(whole, meeting, ts, by, own, "final" in frames.column_names)


def tagged(table: pa.Table, row: np.ndarray, numbers: np.ndarray) -> pa.Table:
    if row.size == table.num_rows and bool((row == np.arange(row.size)).all()):
        return table.append_column("frame_id", pa.array(numbers))
    if row.size < ONE_THREAD_BELOW:
        return taken(table, row).append_column("frame_id", pa.array(numbers))
    columns = in_parallel(lambda i: taken(table.select([i]), row).column(0), range(table.num_columns))
    return pa.table(columns, schema=table.schema).append_column("frame_id", pa.array(numbers))


def check_free(table: pa.Table) -> None:
    if "frame_id" in table.column_names:
        raise BadQuery(
            "the events have a column frame_id already.", 'rename it, or drop it: events.drop_columns(["frame_id"])'
        )


def _summarizing(frames: Any, events: Any, *what: Any, **options: Any) -> Callable[[], Any]:
    return partial(summarize, few(frames), few(events), *what, **options)


@rehearsed(_summarizing)
def summarize(
    frames: Any, events: Any, aggregates: Sequence[Operators] | Operators, *, ts: str = "ts", key: Key = None,
    before: Duration = 0, after: Duration = 0, own: bool | None = None,
) -> pa.Table:  # fmt: skip
    """The frames, with a column per aggregate of the events in each: one pass over these for all of them.

    In place of an aggregate, what is computed of several: sw.max("load") - sw.min("load").

    Which events these are, and what `key` and `own` mean, is as in `fill`.

    >>> import frames as fr, swag as sw
    >>> events = {"ts": [1, 2, 3], "load": [0.1, 0.5, 0.6]}
    >>> found = fr.detect(fr.Threshold("load", ">", 0.3), events)
    >>> fr.summarize(found, events, sw.max("load"))["max(load)"].to_pylist()
    [0.6]
    """
    wanted = checked_aggregates(aggregates)
    whole, table = united(frames), as_table(events)
    check_names(wanted, whole.column_names)
    by = filled_by(key, whole, table.column_names)
    summary = Summary(*meet(frames, table, ts, by, before, after, own))
    for value, each in zip(wanted, summary.said(wanted), strict=True):
        whole = whole.append_column(str(value), each)
    return whole


class Summary:
    """Aggregates of the events in each frame. Owns the positions lo … hi of these, in the layout of all events."""

    def __init__(self, meeting: Meeting, owner: Owner | None) -> None:
        self.meeting = meeting
        self.lo, self.hi = own_spans(meeting, owner)

    def answers(self, asked: Sequence[tuple[Aggregate, str | None]]) -> list[pa.Array | pa.ChunkedArray]:
        """A column per aggregate; with a predicate: only of events for which it holds."""
        met = self.meeting
        for aggregate, _ in asked:
            for name in aggregate.columns:
                if name.isidentifier() or name in met.table.column_names:  # else it is computed, or refused there
                    column(met.table, name, f"{aggregate} reads")
        table = with_aggregated(met.table, [aggregate for aggregate, _ in asked])
        ends = met.ends
        if met.half_open and met.laid.when.size:  # what is said of a frame is said as of its last event
            ends = np.where(self.hi > self.lo, met.laid.when[self.hi - 1], met.starts)
        times = Times(met.clock, met.instants, ends)
        return over_intervals(asked, table, met.laid.order, (self.lo, self.hi), times)

    def said(self, values: Sequence[Operators]) -> list[pa.Array | pa.ChunkedArray]:
        """A column per value: an aggregate, or what is computed of several."""
        asked = list(dict.fromkeys(leaf for value in values for leaf in leaves(value)))
        answers = self.answers([(leaf.aggregate, leaf.where) for leaf in asked])
        columns = {leaf: one_chunk(each) for leaf, each in zip(asked, answers, strict=True)}
        return [calculate(value, columns) for value in values]


def checked_aggregates(aggregates: Any) -> list[Operators]:
    """Aggregates, and what is computed of them, as a list."""
    hint = 'fr.summarize(frames, events, [sw.mean("x").alias("m"), sw.count()])'
    wanted = [aggregates] if isinstance(aggregates, Operators) else as_list(aggregates, "aggregates", hint)
    for value in wanted:
        if not isinstance(value, Operators):
            raise BadQuery(f"{value!r} is not an aggregate.", hint)
        if any(leaf.window is not None for leaf in leaves(value)):
            raise BadQuery(f"{value}: an aggregate over a frame has no window of its own.", hint)
    return wanted


def check_names(values: list[Operators], taken: list[str]) -> None:
    seen = set(taken)
    for value in values:
        if str(value) in seen:
            kind = next(leaves(value)).aggregate.kind
            raise BadQuery(f'two columns would be named "{value}".', f'name one apart: sw.{kind}(…).alias("…")')
        seen.add(str(value))
