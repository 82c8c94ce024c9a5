"""Frames meet events of any stream: which of them lie in which frame, and what they add up to."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from frames.intake import ID, NO_KEY, chunks, finder, in_parallel, timed
from frames.intervals import Intervals
from frames.tables import margins, pieces_of, united
from kernels import frame_fill, timeline
from swag.aggregates import Aggregate
from swag.arguments import as_list
from swag.columns import as_table, column, one_chunk, room, taken
from swag.errors import BadQuery
from swag.keys import KeyTable
from swag.windows import Duration


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


def matches(instants: np.ndarray, ids: np.ndarray, frames: Placed) -> tuple[np.ndarray, np.ndarray]:
    """Every (event, frame) that belong together, in order of events; counted first, then written, on all cores."""
    slices = chunks(instants.size)
    nothing = np.zeros(0, np.int64)

    def look(s: slice, row: np.ndarray, frame: np.ndarray) -> int:
        cursor = np.zeros((frames.segments.size, 3), np.int64)
        cursor[:, 2] = np.iinfo(np.int64).max  # nothing found yet: the first search is one
        own = ids[s] if ids.size else ids
        return int(frame_fill.match(instants[s], own, frames.arrays, cursor, row.size, row, frame))

    sizes = in_parallel(lambda s: look(s, nothing, nothing), slices)
    edges = np.concatenate([[0], np.cumsum(sizes)])
    row, frame = room(edges[-1], np.int64), room(edges[-1], np.int64)

    def write(part: int) -> None:
        mine = slice(edges[part], edges[part + 1])
        if mine.stop > mine.start:
            look(slices[part], row[mine], frame[mine])
            row[mine] += slices[part].start

    in_parallel(write, range(len(slices)))
    return row, frames.rows[frame]


def fill(
    frames: Any, events: Any, *, ts: str = "ts", key: str | None = None, before: Duration = 0, after: Duration = 0
) -> pa.Table:
    """The events with start - before <= ts <= end + after of a frame of their key, in input order, with its frame_id.

    An event that lies in several frames comes once for each. O(log frames) per event, less when they are in order.
    """
    table, (_, instants, ids), around = _meet(frames, events, ts, key, before, after)
    check_free(table)
    numbers, frame_ids, count, starts, ends = around
    row, frame = matches(instants, ids, placed(frame_ids, count, starts, ends))
    return tagged(table, row, numbers[frame])


def tagged(table: pa.Table, row: np.ndarray, numbers: np.ndarray) -> pa.Table:
    if row.size == table.num_rows and bool((row == np.arange(row.size)).all()):
        return table.append_column("frame_id", pa.array(numbers))
    return taken(table, row).append_column("frame_id", pa.array(numbers))


def check_free(table: pa.Table) -> None:
    if "frame_id" in table.column_names:
        raise BadQuery(
            "the events have a column frame_id already.", 'rename it, or drop it: events.drop_columns(["frame_id"])'
        )


def summarize(
    frames: Any,
    events: Any,
    aggregates: Sequence[Aggregate] | Aggregate,
    *,
    ts: str = "ts",
    key: str | None = None,
    before: Duration = 0,
    after: Duration = 0,
) -> pa.Table:
    """The frames, with a column per aggregate of the events in each: one lookup per frame and aggregate."""
    wanted = [aggregates] if isinstance(aggregates, Aggregate) else as_list(aggregates, "aggregates", "[sw.count()]")
    whole = united(frames)
    _check_names(wanted, whole.column_names)
    for aggregate, each in zip(wanted, answers(whole, events, wanted, ts, key, before, after), strict=True):
        whole = whole.append_column(str(aggregate), each)
    return whole


def answers(
    frames: Any,
    events: Any,
    aggregates: Sequence[Aggregate],
    ts: str,
    key: str | None,
    before: Duration = 0,
    after: Duration = 0,
) -> list[pa.Array]:
    """A column per aggregate, of the events in each frame."""
    table, (_, instants, ids), (_, frame_ids, count, starts, ends) = _meet(frames, events, ts, key, before, after)
    for aggregate in aggregates:
        for name in aggregate.columns:
            column(table, name, f"{aggregate} reads")
    order, segments = laid_out(instants, ids, count)
    lo, hi = np.empty(starts.size, np.int64), np.empty(starts.size, np.int64)
    frame_fill.spans(instants if order is None else instants[order], segments, frame_ids, starts, ends, lo, hi)
    intervals = Intervals(table, order)
    return [intervals.answer(aggregate, lo, hi) for aggregate in aggregates]


def laid_out(instants: np.ndarray, ids: np.ndarray, count: int) -> tuple[np.ndarray | None, np.ndarray]:
    """The rows by key (only keys 0 .. count - 1), then ts; and where each key begins."""
    if not ids.size:
        ordered = bool((instants[1:] >= instants[:-1]).all())
        segments = np.full(count + 1, instants.size)
        segments[0] = 0
        return (None if ordered else np.argsort(instants, kind="stable")), segments
    rows = None if ids.min() >= 0 else np.flatnonzero(ids >= 0)
    known = ids if rows is None else ids[rows]
    segments = np.concatenate([[0], np.cumsum(np.bincount(known, minlength=count))])
    order, keys, starts = (
        np.empty(known.size, np.int64),
        np.empty(known.size, np.int64),
        np.empty(known.size + 1, np.int64),
    )
    if not bool((known[1:] >= known[:-1]).all()):
        runs = timeline.group_by_key(known, np.zeros(count, np.int64), order, keys, starts)
        if not bool((keys[1:runs] > keys[: runs - 1]).all()):  # runs come by first appearance; segments are by key
            order = np.argsort(known, kind="stable")
    else:
        order = np.arange(known.size)
    order = order if rows is None else rows[order]
    when, who = instants[order], ids[order]
    if not bool(((when[1:] >= when[:-1]) | (who[1:] != who[:-1])).all()):
        order = order[np.lexsort((when, who))]
    return order, segments


def _check_names(aggregates: list[Aggregate], taken: list[str]) -> None:
    seen = set(taken)
    for aggregate in aggregates:
        if not isinstance(aggregate, Aggregate):
            raise BadQuery(
                f"{aggregate!r} is not an aggregate.", 'fr.summarize(frames, events, [sw.mean("x"), sw.count()])'
            )
        if str(aggregate) in seen:
            raise BadQuery(
                f'two columns would be named "{aggregate}".', f'name one apart: sw.{aggregate.kind}(…).alias("…")'
            )
        seen.add(str(aggregate))


def _meet(frames: Any, events: Any, ts: str, key: str | None, before: Duration, after: Duration) -> Any:
    """The events as a table and as arrays, and the frames as numbers, keys and intervals on the same clock."""
    whole, table = united(frames), as_table(events)
    clock, instants = timed(table, ts)
    _, pieces = pieces_of(whole, clock)
    early, late = margins(before, after, clock.unit)
    starts, ends = np.where(pieces.there, pieces.starts - early, 1), np.where(pieces.there, pieces.ends + late, 0)
    if key is None:
        return table, (clock, instants, NO_KEY), (pieces.numbers, np.zeros(starts.size, np.int64), 1, starts, ends)
    own = column(whole, key, "frames are found per")
    keys = KeyTable(own.type)
    frame_ids = keys.encode(own, key)
    array = column(table, key, "key is")
    return (
        table,
        (clock, instants, found_keys(keys, array, key)),
        (pieces.numbers, frame_ids, max(keys.count, 1), starts, ends),
    )


def found_keys(keys: KeyTable, array: pa.ChunkedArray, key: str) -> np.ndarray:
    """The id of each event's key, -1 for keys without frames, on all cores."""
    one, ids = one_chunk(array), room(len(array), ID)
    find = finder(keys, one, key)
    in_parallel(lambda s: find(one[s.start : s.stop], ids[s]), chunks(len(array)))
    return ids
