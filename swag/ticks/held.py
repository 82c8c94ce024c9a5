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
from swag.durable.state import State
from swag.errors import BadType
from swag.live import intake
from swag.live.arena import group
from swag.query.groupings import By
from swag.query.query import Query
from swag.query.reading import Reading
from swag.tables.expressions.derived import derived, with_derived
from swag.tables.key_columns import joined
from swag.tables.waiting import TimedRows, Waiting
from swag.ticks.refused import Refused, due_before

WHY = "older than what was applied when it came"


class Held:
    """The events that wait (`waiting`): the columns that queries need, their timestamps and key ids.

    It owns them until they are released, and the latest time, from which the watermark follows. Asked of it: to take
    events that are not late, and those that are due. The others it gives to `refused`, which is the engine's.
    """

    def __init__(self, lateness: int, refused: Refused) -> None:
        self.lateness, self.refused = lateness, refused
        self.now = EARLIEST  # the latest time known: of an event, held or not, or of `advance`
        self.waiting = Waiting()
        self.missed = EARLIEST  # events up to this time did not wait, as nobody was there who wanted them
        self._lacking: dict[str, int] = {}  # columns that some events came without, and the latest time then

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

        slots: an event in a slot of such a length that was passed is late too. together: keys are judged as one,
        which may then have no ids.
        A column that only events before these have goes, as its reader has: one that comes again has to know that some
        lack it.
        """
        fresh = TimedRows(table, ts, ids)
        late = self._late(ts, ids, latest, seen, slots, together)
        if late.any():
            fresh = fresh.some(np.flatnonzero(~late))
        self.waiting.add(*fresh, narrow=True)
        self.refused.add(table, late, WHY)
        return fresh.ts.size

    @property
    def watermark(self) -> int:
        """The time up to which events have been applied, and as of which lookups answer."""
        return max(EARLIEST, self.now - self.lateness)

    def due(self) -> TimedRows | None:
        """What the watermark has passed, in order of time, ties as they arrived; it waits until it is `released`."""
        return self.waiting.due(self.watermark)

    def released(self) -> None:
        """What was due waits no longer."""
        self.waiting.let_go(self.watermark)

    def forget_ids(self) -> None:
        """Events are grouped in several ways: their keys are numbered when they are due."""
        self.waiting.forget_ids()

    @property
    def has_ids(self) -> bool:
        """Are the keys of those that wait numbered?"""
        return self.waiting.count == 0 or bool(self.waiting.rows.ids.size)

    def as_read(self, readers: list[Query], ts: str, by: By) -> pa.Table | None:
        """The events that wait, as queries of a grouping will read them when they are due; None if there are none."""
        if self.waiting.count == 0:
            return None
        return joined(intake.with_missing(self.waiting.rows.table, Reading(readers, ts, *by), keys=True), by)

    def compute(self, readers: list[Query]) -> None:
        """What is SQL over columns of events that wait is computed now: nobody did so when they came."""
        table, reading = self.waiting.rows.table, Reading(readers)
        there = set(table.column_names)
        wanted = {name: reading.read[name] for name in reading.derived if name not in there and _behind(name) <= there}
        if wanted and self.waiting.count:
            self.waiting.put_columns(with_derived(table, wanted, reading.derived))

    def unread(self, readers: list[Query], by: By) -> int:
        """Events up to this time are missing, or came without what queries of a grouping read: nobody read it then."""
        columns = [*Reading(readers).columns, *by]
        if self.waiting.count:
            there = self.waiting.rows.table.column_names
            self._lacking |= {name: self.now for name in columns if name not in there}
        behind = [each for name in columns for each in _behind(name)]
        return max(self.missed, *(self._lacking.get(name, EARLIEST) for name in (*columns, *behind)), EARLIEST)

    def state(self) -> State:
        header = {"lateness": self.lateness, "now": self.now, "late": self.refused.count, "lacking": self._lacking}
        return header, self.waiting.state()[1]

    def restore(self, state: State) -> None:
        header = state[0]
        self.lateness, self.now, self.refused.count = header["lateness"], header["now"], header["late"]
        self._lacking = header.get("lacking", {})
        self.waiting.restore(state)

    def _late(
        self,
        ts: np.ndarray,
        ids: np.ndarray,
        latest: np.ndarray,
        seen: np.ndarray,
        slots: Iterable[int],
        together: bool,
    ) -> np.ndarray:
        """Which of these events are late: behind what was applied of their key when they came, or in a slot passed."""
        due = due_before(ts, self.now, self.lateness)
        if not (ts < due).any():
            return np.zeros(ts.size, bool)
        missed = np.zeros(ts.size, bool)
        for slot in slots:
            missed |= (-(-ts // slot)) * slot < due
        on_time = np.flatnonzero(~missed)
        ts, ids, due = ts[on_time], ids[on_time] if ids.size else ids, due[on_time]
        _, held, held_ids = self.waiting.rows
        earlier = np.argsort(held, kind="stable")
        all_ts = np.concatenate([held[earlier], ts])
        if together:
            all_ids, latest, seen = np.zeros_like(all_ts), latest.max(keepdims=True), np.zeros(1, np.int64)
        else:
            all_ids = np.concatenate([held_ids[earlier], ids])
        all_due = np.concatenate([np.full(held.size, EARLIEST), due])
        batch = group(all_ids, seen)
        late = np.zeros(all_ts.size, np.bool_)
        waiting = np.empty(all_ts.size, np.int64)
        judge(all_ts, all_due, batch, latest, waiting, late)
        missed[on_time] = late[held.size :]
        return missed


def _behind(name: str) -> frozenset[str]:
    """The columns that one is SQL over, if it is; else itself."""
    expression = derived(name)
    return frozenset([name]) if expression is None else expression.columns


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
