"""Disorder: events are held until `now - lateness` passes them, then applied in order of time.

What happens does not depend on how a stream is cut into batches: an event is judged against what had been applied when
it arrived, event by event (in one kernel).
"""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from kernels.timeline import judge
from swag.errors import BadType
from swag.space import group


class Held:
    """The events that wait, in order of arrival: a table of the columns queries need, their timestamps and key ids."""

    def __init__(self, lateness: int) -> None:
        self.lateness = lateness
        self.table: pa.Table | None = None
        self.ts = np.zeros(0, np.int64)
        self.ids = np.zeros(0, np.int64)
        self.late = 0

    def add(
        self,
        table: pa.Table,
        ts: np.ndarray,
        ids: np.ndarray,
        now: int,
        latest: np.ndarray,
        seen: np.ndarray,
        slots: Iterable[int] = (),
        together: bool = False,
    ) -> int:
        """Take what is not late; returns how many that is. latest: per key, the newest timestamp applied.

        slots: an event in a slot of such a length that was passed is late too. together: keys are judged as one.
        """
        late = self._late(ts, ids, now, latest, seen, slots, together)
        fresh = np.flatnonzero(~late)
        table = table if fresh.size == ts.size else table.take(pa.array(fresh))
        self.table = table if self.table is None else _joined(self.table, table)
        self.late += ts.size - fresh.size
        self.ts, self.ids = np.concatenate([self.ts, ts[fresh]]), np.concatenate([self.ids, ids[fresh]])
        return fresh.size

    def passed(self, now: int) -> int:
        """The time up to which events have been applied."""
        return max(int(np.iinfo(np.int64).min), now - self.lateness)

    def release(self, now: int) -> tuple[pa.Table, np.ndarray, np.ndarray] | None:
        """What is due at `now`, in order of time, ties as they arrived."""
        due = self.ts <= self.passed(now)
        if self.table is None or not due.any():
            return None
        rows = np.flatnonzero(due)
        rows = rows[np.argsort(self.ts[rows], kind="stable")]
        released = self.table.take(pa.array(rows)), self.ts[rows], self.ids[rows]
        stay = np.flatnonzero(~due)
        self.table = self.table.take(pa.array(stay))
        self.ts, self.ids = self.ts[stay], self.ids[stay]
        return released

    def _late(
        self,
        ts: np.ndarray,
        ids: np.ndarray,
        now: int,
        latest: np.ndarray,
        seen: np.ndarray,
        slots: Iterable[int],
        together: bool,
    ) -> np.ndarray:
        floor = np.iinfo(np.int64).min
        before = np.maximum.accumulate(np.concatenate([[now], ts]))[:-1]  # `now` as each event arrives
        with np.errstate(over="ignore"):
            due = np.where(before < floor + self.lateness, floor, before - self.lateness)
        if not (ts < due).any():
            return np.zeros(ts.size, bool)
        missed = np.zeros(ts.size, bool)
        for slot in slots:
            missed |= (-(-ts // slot)) * slot < due
        on_time = np.flatnonzero(~missed)
        ts, ids, due = ts[on_time], ids[on_time], due[on_time]
        earlier = np.argsort(self.ts, kind="stable")
        all_ts, all_ids = np.concatenate([self.ts[earlier], ts]), np.concatenate([self.ids[earlier], ids])
        if together:
            all_ids, latest, seen = np.zeros_like(all_ids), latest.max(keepdims=True), np.zeros(1, np.int64)
        all_due = np.concatenate([np.full(self.ts.size, floor), due])
        batch = group(all_ids, seen)
        late = np.zeros(all_ts.size, np.bool_)
        waiting = np.empty(all_ts.size, np.int64)
        judge(all_ts, all_due, batch.order, batch.starts, batch.keys.size, latest, batch.keys, waiting, late)
        missed[on_time] = late[self.ts.size :]
        return missed


def _joined(waiting: pa.Table, table: pa.Table) -> pa.Table:
    """Columns that only one of them has are null in the other: a query came in between."""
    try:
        return pa.concat_tables([waiting, table], promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as why:
        raise BadType(f"the columns are not of the types they had before: {why}.", "cast them") from None
