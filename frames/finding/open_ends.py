"""Where frames end with extent="open", of kinds whose scans do not say: with the next event of their key.

      rows of a key   . [A B C] D        the match is certain with C; its end is the ts of D, once that has come

A frame whose last event is the last one of its key waits, as the row that will be reported, until the next one comes.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from frames.finding.intake import NO_TIME
from kernels.frames import framing
from swag.durable.state import State, table_from_array, table_to_array
from swag.tables.columns import Clock, to_arrow
from swag.tables.keys import KeyTable
from swag.tables.waiting import TimedRows


def next_instants(frames: np.ndarray, leads: np.ndarray, rows: TimedRows) -> tuple[np.ndarray, np.ndarray]:
    """The ts of the event behind each frame (rows KEY … AT), and whether there is one among these rows, which are in
    order of ts for each key. leads: how many rows before the one AT a frame began; -1 is behind the last of its key."""
    keys, at, counts = frames[framing.KEY], frames[framing.AT], frames[framing.COUNT]
    ids = rows.ids if rows.ids.size else np.zeros(rows.ts.size, np.int64)
    order, place = np.argsort(ids, kind="stable"), np.zeros(ids.size + 1, np.int64)
    place[order] = np.arange(ids.size)
    ends = np.cumsum(np.bincount(ids, minlength=int(keys.max(initial=0)) + 1))[keys]
    behind = np.where(at < 0, ends, place[at]) - leads + counts
    there = behind < ends
    return np.append(rows.ts[order], 0)[np.where(there, behind, -1)], there


class OpenEnds:
    """Owns the rows of frames whose end is not known yet (`table`). Told of the rows that come out, and of the events
    that came with them, it gives those whose end is known."""

    def __init__(self, key: str | None) -> None:
        self.key = key
        self.table: pa.Table | None = None

    def keys(self, known: KeyTable | None) -> np.ndarray:
        """Of the frames that wait."""
        if self.table is None or self.key is None or known is None:
            return np.zeros(0 if self.table is None else self.table.num_rows, np.int64)
        return known.find(self.table.column(self.key), self.key)

    def starts(self) -> np.ndarray:
        """When the frames that wait begin."""
        return NO_TIME if self.table is None else _numbers(self.table.column("start"))

    def settled(self, found: pa.Table, rows: TimedRows, known: KeyTable | None, clock: Clock, over: bool) -> pa.Table:
        """Of those that waited and those that came out, the ones whose end is known. over: all, some without an end."""
        if self.table is not None:
            firsts = np.zeros(1 if known is None else max(known.count, 1), np.int64)
            there, ids = np.zeros(firsts.size, bool), self.keys(known)
            framing.first_instants(rows.ts, rows.ids, firsts)
            there[rows.ids if rows.ids.size else [0] * bool(rows.ts.size)] = True
            ends = to_arrow(firsts[ids], there[ids], clock.type)
            waited = self.table.set_column(self.table.schema.get_field_index("end"), "end", ends)
            found = pa.concat_tables([waited, found], promote_options="permissive")
        waits = np.zeros(found.num_rows, bool) if over else np.asarray(found.column("end").is_null())
        self.table = found.filter(pa.array(waits)) if waits.any() else None
        return found.filter(pa.array(~waits)) if waits.any() else found

    def state(self) -> State:
        return {}, {} if self.table is None else {"waits": table_to_array(self.table)}

    def restore(self, state: State) -> None:
        saved = state[1].get("waits")
        self.table = None if saved is None else table_from_array(saved)


def _numbers(times: Any) -> np.ndarray:
    kind = times.type
    return np.asarray(times.cast(pa.int32() if kind.bit_width == 32 else pa.int64())).astype(np.int64)
