"""Streams inside an engine, each the events of an engine of its own: so queries nest to any depth.

events --> ticker of an inner query --> Answers: an engine over its ticks
      \\-> a condition ----------------> Chosen: an engine over the events for which it holds
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from swag.live.store import MIN
from swag.query.aggregates import Aggregate
from swag.query.query import Query
from swag.query.windows import Rows
from swag.tables.answers import own_name
from swag.tables.columns import Clock, one_chunk
from swag.tables.predicate import holds
from swag.ticks.nested import front_columns
from swag.ticks.stored_ticks import Jumped
from swag.ticks.ticker import Ticker

if TYPE_CHECKING:
    from swag.engine import Engine


@dataclass(eq=False)
class Answers:
    """The answers of `query` as events of `engine`. waiting: those that others may still come before."""

    query: Query
    ticker: Ticker
    engine: "Engine"
    waiting: pa.Table | None = None

    def __post_init__(self) -> None:
        self.engine._takes_all = True  # there is nobody to give an answer back to

    def feed(self, jumped: Jumped | None, clock: Clock, promise: int) -> None:
        """Ticks to the engine over them. promise: none before it is still to come."""
        ts, key = self.engine.ts, self.engine.key
        if jumped is not None and jumped.number.size:
            ticks = front_columns(jumped, clock, self.ticker.every, ts, key)
            ticks = ticks.append_column(self.query.column, jumped.columns[0])
            self.waiting = ticks if self.waiting is None else pa.concat_tables([self.waiting, ticks])
        if self.waiting is not None:
            self.engine.append(self._due(promise))
        if promise > MIN:
            self.engine.advance(promise)

    def _due(self, promise: int) -> pa.Table:
        """The ticks that go on: all, or those before `promise`, in order, where that of different keys counts."""
        ts, key = self.engine.ts, self.engine.key
        ticks, self.waiting = self.waiting, None
        assert ticks is not None
        each_event = self.query.every is None  # which come in order, where that counts
        if each_event or not self.engine._emission.ordered or not self.ticker.every.per_key:
            return ticks
        ticks = ticks.sort_by([(ts, "ascending"), (key, "ascending"), (own_name("tick", ts, key), "ascending")])
        times = np.asarray(one_chunk(ticks.column(ts)).cast(pa.int64()))
        due = int(np.searchsorted(times, promise, side="left"))
        self.waiting = ticks[due:] if due < ticks.num_rows else None
        return ticks[:due]


@dataclass(eq=False)
class Chosen:
    """The events for which a condition holds, as events of `engine`."""

    where: str
    engine: "Engine"

    def __post_init__(self) -> None:
        self.engine._takes_all = True  # what `check` did not refuse was applied around here

    @property
    def readers(self) -> list[Query]:
        """Simple queries that read what is needed of an event."""
        condition = Query(Aggregate("count"), Rows(1), f"* WHERE {self.where}", self.where)
        return [condition, *self.engine._readers]

    def check(self, table: pa.Table) -> None:
        self.engine._refuse(self._of(table))

    def take(self, table: pa.Table) -> None:
        """Events that were applied, and found to be right before."""
        self.engine.append(self._of(table))

    def pass_time(self, now: int, promise: int, kept: bool) -> None:
        """Time passes here too, whatever events do not hold."""
        store = self.engine._store
        if store.clock is not None:
            store.now = max(store.now, now)
            self.engine._emission.decide(promise, kept)

    def _of(self, table: pa.Table) -> pa.Table:
        return table.filter(pa.array(holds(self.where, table)))
