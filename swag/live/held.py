"""Disorder: events are held until `now - lateness` passes them, then applied in order of time.

What happens does not depend on how a stream is cut into batches: an event is judged against what had been applied when
it arrived, event by event (in one kernel).
"""

import datetime
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from kernels.operators.numbers import EARLIEST
from kernels.rings.timeline import judge
from swag.durable.state import State, table_from_array, table_to_array
from swag.errors import BadType
from swag.live.arena import group


class Held:
    """The events that wait, in order of arrival: a table of the columns queries need, their timestamps and key ids.

    It owns them until they are released, and the latest time, from which the watermark follows. Asked of it: to take
    events that are not late, and those that are due.
    """

    def __init__(self, lateness: int) -> None:
        self.lateness = lateness
        self.now = EARLIEST  # the latest time known: of an event, held or not, or of `advance`
        self.table: pa.Table | None = None
        self.ts = np.zeros(0, np.int64)
        self.ids = np.zeros(0, np.int64)
        self.late = 0

    def add(
        self,
        table: pa.Table,
        ts: np.ndarray,
        ids: np.ndarray,
        latest: np.ndarray,
        seen: np.ndarray,
        slots: Iterable[int] = (),
        together: bool = False,
    ) -> int:
        """Take what is not late; returns how many that is. latest: per key, the newest timestamp applied.

        slots: an event in a slot of such a length that was passed is late too. together: keys are judged as one.
        """
        late = self._late(ts, ids, latest, seen, slots, together)
        fresh = np.flatnonzero(~late)
        table = table if fresh.size == ts.size else table.take(pa.array(fresh))
        self.table = table if self.table is None else _joined(self.table, table)
        self.late += ts.size - fresh.size
        self.ts, self.ids = np.concatenate([self.ts, ts[fresh]]), np.concatenate([self.ids, ids[fresh]])
        return fresh.size

    @property
    def watermark(self) -> int:
        """The time up to which events have been applied, and as of which lookups answer."""
        return max(EARLIEST, self.now - self.lateness)

    def due(self) -> tuple[pa.Table, np.ndarray, np.ndarray] | None:
        """What the watermark has passed, in order of time, ties as they arrived; it waits until it is `released`."""
        rows = np.flatnonzero(self.ts <= self.watermark)
        if self.table is None or not rows.size:
            return None
        rows = rows[np.argsort(self.ts[rows], kind="stable")]
        return self.table.take(pa.array(rows)), self.ts[rows], self.ids[rows]

    def released(self) -> None:
        """What was due waits no longer."""
        stay = np.flatnonzero(self.ts > self.watermark)
        if self.table is not None and stay.size < self.ts.size:
            self.table = self.table.take(pa.array(stay))
            self.ts, self.ids = self.ts[stay], self.ids[stay]

    def renumber(self, kept: np.ndarray) -> None:
        """Key kept[i] is key i from now on; those of the events that wait are among them."""
        self.ids = np.searchsorted(kept, self.ids)

    def state(self) -> State:
        arrays = {"ts": self.ts, "ids": self.ids}
        arrays |= {} if self.table is None else {"table": table_to_array(self.table)}
        return {"lateness": self.lateness, "now": self.now, "late": self.late}, arrays

    def restore(self, state: State) -> None:
        header, arrays = state
        self.lateness, self.now, self.late = header["lateness"], header["now"], header["late"]
        self.ts, self.ids = arrays["ts"], arrays["ids"]
        self.table = table_from_array(arrays["table"]) if "table" in arrays else None

    def _late(
        self,
        ts: np.ndarray,
        ids: np.ndarray,
        latest: np.ndarray,
        seen: np.ndarray,
        slots: Iterable[int],
        together: bool,
    ) -> np.ndarray:
        before = np.maximum.accumulate(np.concatenate([[self.now], ts]))[:-1]  # `now` as each event arrives
        with np.errstate(over="ignore"):
            due = np.where(before < EARLIEST + self.lateness, EARLIEST, before - self.lateness)
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
        all_due = np.concatenate([np.full(self.ts.size, EARLIEST), due])
        batch = group(all_ids, seen)
        late = np.zeros(all_ts.size, np.bool_)
        waiting = np.empty(all_ts.size, np.int64)
        judge(all_ts, all_due, batch, latest, waiting, late)
        missed[on_time] = late[self.ts.size :]
        return missed


def _joined(waiting: pa.Table, table: pa.Table) -> pa.Table:
    """Columns that only the new events have are null in those that wait: a query came in between.

    Those that only the old ones have go, as their reader has: one that comes again has to know that some lack them.
    """
    waiting = waiting.select([name for name in waiting.column_names if name in table.column_names])
    try:
        return pa.concat_tables([waiting, table], promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as why:
        raise BadType(f"the columns are not of the types they had before: {why}.", "cast them") from None


def later_of(one: Any, other: Any) -> Any:
    """The later of two times that were given before the first event, whose type nobody knows yet; `one` may be None."""
    new = _instant(other)
    if one is None:
        return new
    try:
        return max(one, new)
    except TypeError:
        raise BadType(
            f"advance({other!r}) after advance({one!r}): these can not be times of one stream.",
            "times of one kind: that of the ts column",
        ) from None


def _instant(at: Any) -> int | datetime.datetime:
    """A whole number, or a datetime: what can be compared, and written down."""
    kind: Any = None
    try:
        value = pa.scalar(datetime.datetime.fromisoformat(at) if isinstance(at, str) else at)
        kind = value.type
        if pa.types.is_integer(kind):
            return int(value.cast(pa.int64()).as_py())
        if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
            zone = kind.tz if pa.types.is_timestamp(kind) else None
            return value.cast(pa.timestamp("us", zone)).as_py()
    except (pa.ArrowException, ValueError, OverflowError, TypeError):
        pass
    raise BadType(f"advance({at!r}) is no point in time.", "a datetime, or a whole number in the unit of ts")
