"""Frames and events on one clock and with one set of keys: what filling and summaries begin with."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from frames.finding.intake import ID, NO_KEY, chunks, finder, has_nulls, in_parallel
from frames.finding.layout import LaidOut, laid_out
from frames.tables import is_untyped, margins, pieces_of, widened
from kernels.frames import fill as frame_fill
from swag.tables.columns import Clock, column, one_chunk, room, timed
from swag.tables.keys import KeyTable
from swag.tables.times.durations import Duration


@dataclass(frozen=True, eq=False)
class Meeting:
    """instants, ids: of the events, -1 where a key has no frames; numbers, keys, starts, ends: of the frames.

    Intervals have their margins, and both ends inside; that of a frame that is not `there` is from 1 to 0. rows: as the
    frames say, or None. moved: margins move an edge. clock: what the times are. half_open: is the end of a frame, as
    its table has it, the next event of the key?
    """

    table: pa.Table
    instants: np.ndarray
    ids: np.ndarray
    count: int
    numbers: np.ndarray
    keys: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    rows: np.ndarray | None
    moved: bool
    clock: Clock
    there: np.ndarray
    half_open: bool

    @classmethod
    def of(
        cls, whole: pa.Table, table: pa.Table, ts: str, key: str | None, before: Duration = 0, after: Duration = 0
    ) -> "Meeting":
        """Frames, with their margins, meet the events of a table: on the clock of ts, by the keys of the frames."""
        clock, instants = timed(table, ts)
        _, pieces = pieces_of(whole, clock)
        early, late = margins(before, after, clock.unit)
        said = rows_of(whole), bool(early or late), clock, pieces.there, pieces.half_open
        intervals = (*widened(pieces, early, late), *said)
        if key is None:
            return cls(table, instants, NO_KEY, 1, pieces.numbers, np.zeros(pieces.numbers.size, np.int64), *intervals)
        own = column(table if is_untyped(whole) else whole, key, "frames are found per")[: whole.num_rows]
        known = KeyTable(own.type)
        keys = known.encode(own, key)
        ids = found_keys(known, column(table, key, "key is"), key)
        return cls(table, instants, ids, max(known.count, 1), pieces.numbers, keys, *intervals)

    @cached_property
    def laid(self) -> LaidOut:
        return laid_out(self.instants, self.ids, self.count)

    @cached_property
    def spans(self) -> tuple[np.ndarray, np.ndarray]:
        """The events of each frame by time: positions lo … hi of the layout."""
        return self.laid.spans(self.keys, self.starts, self.ends)

    @cached_property
    def rises(self) -> bool:
        """Is every event later than the one before? Then none share a ts."""
        return bool(frame_fill.rises(self.instants))


def rows_of(frames: pa.Table) -> np.ndarray | None:
    """How many rows each frame says it has; None if any does not say, or they are no numbers."""
    if "rows" not in frames.column_names:
        return None
    rows = one_chunk(column(frames, "rows", "frames count"))
    return None if rows.null_count or not pa.types.is_integer(rows.type) else np.asarray(rows).astype(np.int64)


def found_keys(keys: KeyTable, array: pa.ChunkedArray, key: str) -> np.ndarray:
    """The id of each event's key, -1 for keys without frames, on all cores."""
    one, ids = one_chunk(array), room(len(array), ID)
    if has_nulls(one):
        keys.find(one, key)  # refused, as a whole: so it is said in which row
    find = finder(keys, one, key)
    in_parallel(lambda s: find(one[s.start : s.stop], ids[s]), chunks(len(array)))
    return ids
