"""Frames of neighbouring keys become episodes: what overlaps in time, in places that lie next to each other.

detector 1     [======]                        a jam that moves up the road is one episode,
detector 2         [=======]      [==]         though no detector sees all of it
detector 3              [====]
episode        0   0    0         1
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from frames.filling import Placed, placed
from frames.finding.intake import key_ids
from frames.owning.origin import Origin
from frames.space.neighbours import neighbouring
from frames.tables import Key, is_untyped, key_of, pieces_of, shifted, united
from kernels.frames import episodes as frame_episodes
from swag.errors import BadQuery
from swag.query.groupings import By
from swag.tables.columns import as_table, column, one_chunk, to_arrow
from swag.tables.key_columns import joined, key_name
from swag.tables.times.durations import Duration, in_units

EPISODE = "episode"


def connect(frames: Any, neighbours: Any, *, key: Key = None, within: Duration = 0) -> pa.Table:
    """The frames with a column `episode`: frames of neighbouring keys that overlap in time share a number.

    neighbours says which keys lie next to each other, in any order: pairs, as a list or as a table whose first columns
    are one key and whose next ones the other; a mapping from each key to those beside it; or, for keys that are whole
    numbers (the cells of a grid, the places along a line), "sides" for cells that share one (4 in the plane) and
    "corners" for those that share a corner at least (8). A key is its own neighbour only if that is said.

    Two frames overlap if neither starts after the other has ended, or more than `within` later. Episodes are numbered
    in order of their start. key: what frames were found per; those of fr.detect know it. `fr.episodes` has a row for
    each episode; `fr.fill` and `fr.summarize` take the frames as before.

    >>> import frames as fr
    >>> found = {"frame_id": [0, 1, 2], "road": [1, 2, 3], "start": [0, 4, 9], "end": [5, 7, 12], "rows": [6, 4, 4]}
    >>> fr.connect(found, [(1, 2), (2, 3)], key="road")["episode"].to_pylist()
    [0, 0, 1]
    >>> fr.connect(found, "sides", key="road", within=2)["episode"].to_pylist()
    [0, 0, 0]
    """
    whole, by = united(frames), _key_columns(frames, key)
    if EPISODE in whole.column_names:
        raise BadQuery(f'the frames have a column "{EPISODE}" already.', f'frames.drop_columns(["{EPISODE}"])')
    if is_untyped(whole):
        return whole.append_column(EPISODE, pa.array([], pa.int64()))
    keys, ids = key_ids(joined(whole, by), key_name(by), None)
    assert keys is not None
    pairs = neighbouring(neighbours, by, keys)
    there, starts, ends = _intervals(whole, within)
    laid = placed(np.where(there, ids, keys.count), keys.count + 1, starts, ends)
    parent, most = np.arange(ids.size), int(np.diff(laid.segments).max(initial=0))
    frame_episodes.connect(laid.segments, laid.starts, laid.ends, pairs, parent, np.empty((2, most + 1), np.int64))
    numbers = _numbered(laid, parent)
    return whole.append_column(EPISODE, to_arrow(numbers, None if there.all() else there, pa.int64()))


def _key_columns(frames: Any, key: Key) -> By:
    """What frames were found per: as the user says, else as they do."""
    origin = Origin.of(as_table(frames))
    by = key_of(key) or (() if origin is None else origin.by)
    if not by:
        raise BadQuery("episodes are of the frames of several keys; these say of none.", 'key="router"')
    return by


def _intervals(frames: pa.Table, within: Duration) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which frames have begun, from when on, and until when others may begin to be in the same episode.

    A frame whose end is not known yet has none. One that reports the next event as its end (extent="open") is over
    before it.
    """
    clock, pieces = pieces_of(frames, None)
    more = in_units(within, clock.unit)
    if more < 0:
        raise BadQuery(f"within={within!r} is less than nothing.", 'within="2m"')
    ends = np.maximum(pieces.ends, pieces.starts)
    there = np.asarray(pc.is_valid(one_chunk(column(frames, "start", "frames start at"))))
    return there, pieces.starts, np.where(pieces.there, shifted(ends, more)[0], np.iinfo(np.int64).max)


def _numbered(laid: Placed, parent: np.ndarray) -> np.ndarray:
    """The episodes of frames, as rows of their table, in order of the start and then the row of the first of each."""
    roots, which = np.unique(parent, return_inverse=True)
    starts = np.full(roots.size, np.iinfo(np.int64).max)
    np.minimum.at(starts, which, laid.starts)
    rows, first = np.full(roots.size, parent.size), laid.starts == starts[which]
    np.minimum.at(rows, which[first], laid.rows[first])
    numbers, of_frames = np.empty(roots.size, np.int64), np.empty(parent.size, np.int64)
    numbers[np.lexsort((rows, starts))] = np.arange(roots.size)
    of_frames[laid.rows] = numbers[which]
    return of_frames


def episodes(connected: Any, *, key: Key = None) -> pa.Table:
    """One row per episode of the frames from `connect`: episode, start, end, and how many keys, frames and rows.

    >>> import frames as fr
    >>> found = {"frame_id": [0, 1, 2], "road": [1, 2, 3], "start": [0, 4, 9], "end": [5, 7, 12], "rows": [6, 4, 4]}
    >>> fr.episodes(fr.connect(found, "sides", key="road"), key="road").to_pylist()[0]
    {'episode': 0, 'start': 0, 'end': 7, 'keys': 2, 'frames': 2, 'rows': 10}
    """
    table, by = as_table(connected), _key_columns(connected, key)
    if EPISODE not in table.column_names:
        raise BadQuery(f'frames without a column "{EPISODE}" are not connected yet.', "fr.connect(frames, neighbours)")
    for name in ("start", "end", "rows"):
        column(table, name, "episodes have")
    _, ids = key_ids(joined(table, by), key_name(by), None)
    found = table.select([EPISODE, "start", "end", "rows"]).append_column("key", pa.array(ids.astype(np.int64)))
    found = found.filter(pc.is_valid(found[EPISODE])).combine_chunks()
    wanted = [("start", "min"), ("end", "max"), ("key", "count_distinct"), ("start", "count"), ("rows", "sum")]
    said = found.group_by(EPISODE, use_threads=False).aggregate(wanted).sort_by(EPISODE)
    start, end, *counts = (said[f"{name}_{how}"] for name, how in wanted)
    open_ones = pc.unique(found.filter(pc.is_null(found["end"]))[EPISODE])
    end = pc.if_else(pc.is_in(said[EPISODE], open_ones), pa.scalar(None, end.type), end)  # one has not ended, nor they
    return pa.table([said[EPISODE], start, end, *counts], names=[EPISODE, "start", "end", "keys", "frames", "rows"])
