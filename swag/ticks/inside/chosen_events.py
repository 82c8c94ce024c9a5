"""Chosen: a stream inside of a stream, of the events for which a condition holds, or that a frequency picks."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kernels.operators.numbers import EARLIEST
from swag.durable.state import State, nested, part
from swag.live.intake import with_missing
from swag.query.as_json import source_to_json
from swag.query.lowering import choosers
from swag.query.query import Events, Query
from swag.query.reading import Reading
from swag.tables.columns import Clock
from swag.tables.keys import KeyTable
from swag.tables.predicate import holds
from swag.ticks.inside.picking import Counting, Slots, partition_columns

if TYPE_CHECKING:
    from swag.ticks.live_stream import LiveStream


@dataclass(eq=False)
class Chosen:
    """The events that are chosen by a condition, or picked by a frequency, as events of `stream`, which it owns, as it
    does what the frequency has counted, or not decided yet (`picks`)."""

    events: Events
    stream: "LiveStream"
    picks: Counting | Slots | None = None

    def __post_init__(self) -> None:
        every = self.events.every
        self.by = () if every is None else partition_columns(every, self.stream.key)
        if every is not None:
            self.picks = Slots(self.by) if every.by_time else Counting(self.by)

    @property
    def readers(self) -> list[Query]:
        """Simple queries that read what is needed of an event."""
        return [*choosers(self.events), *self.stream.reading.queries]

    @property
    def ordered(self) -> bool:
        """Does it count the events of several keys together?"""
        return self.events.every is not None and not self.events.every.per_key

    def step(self, unit: str | None) -> int | None:
        """The length of its slots of time, if it has any."""
        every = self.events.every
        return None if every is None or not every.by_time else every.step(unit)

    def check(self, table: pa.Table) -> None:
        """Raise what is wrong with events, of those that may be chosen; nothing is changed."""
        for name in self.by:
            if table.column(name).null_count:
                KeyTable(table.column(name).type).encode(table.column(name), name)  # which says so
        self.stream.would_refuse(self._of(table))

    def take(self, table: pa.Table, ts: np.ndarray, clock: Clock) -> None:
        """Events that were applied, and found to be right before."""
        if self.picks is None:
            self._give(table)
            return
        assert self.events.every is not None
        table, ts = self._parted(table, ts)
        step = self.events.every.step(clock.unit)
        if isinstance(self.picks, Counting):
            self._give(table.take(pa.array(self.picks.take(table, step))))
        else:
            needed = Reading(self.readers, self.stream.ts, self.stream.key, *self.by).columns
            self.picks.take(table.select(list(needed)), ts, step)

    def _parted(self, table: pa.Table, ts: np.ndarray) -> tuple[pa.Table, np.ndarray]:
        """Without those that waited since before anybody asked for their partition: nobody knows it."""
        unknown = [np.asarray(pc.is_null(table.column(name))) for name in self.by if table.column(name).null_count]
        if not unknown:
            return table, ts
        known = ~np.logical_or.reduce(unknown)
        return table.filter(pa.array(known)), ts[known]

    def pass_time(self, now: int, closed: int, kept: bool, clock: Clock) -> None:
        """Time passes here too, whatever events do not hold."""
        step = self.step(clock.unit)
        if isinstance(self.picks, Slots) and step is not None:
            at_once = not self.by or (self.by == (self.stream.key,) and not self.stream.emission.ordered)
            due = self.picks.leave(closed, step, at_once)
            if due is not None:
                self._give(with_missing(due, self.stream.reading))
            closed = closed if closed == EARLIEST else closed // step * step
            now = min(now, closed if closed == EARLIEST else closed + 1)  # a tuple of an earlier time may still come
        if self.stream.core.time.clock is not None:
            self.stream.core.time.go_on(now)
            self.stream.decide(closed, kept)

    def _give(self, table: pa.Table) -> None:
        self.stream.take(self._of(table), checked=True)

    def _of(self, table: pa.Table) -> pa.Table:
        return table if self.events.where is None else table.filter(pa.array(holds(self.events.where, table)))

    def state(self) -> State:
        inside = {"stream": self.stream.state()} | ({} if self.picks is None else {"picks": self.picks.state()})
        return nested({"where": chosen_to_json(self.events)}, inside)

    def restore(self, state: State) -> None:
        """The queries of its stream have been added."""
        self.stream.restore(part(state, "stream"))
        if self.picks is not None:
            self.picks.restore(part(state, "picks"))


def chosen_to_json(events: Events) -> Any:
    """How a state names these: by their condition, where that is all they are chosen by."""
    return events.where if events.every is None else source_to_json(replace(events, source=None, stream=None))
