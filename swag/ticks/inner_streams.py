"""Streams inside of a stream: so queries nest to any depth.

events --> ticker of an inner query --> Answers: a stream of its ticks
      \\-> a condition ----------------> Chosen: a stream of the events for which it holds
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from kernels.operators.numbers import EARLIEST, LATEST
from swag.durable.state import State, nested, part, table_from_array, table_to_array, with_arrays
from swag.query.aggregates import Aggregate
from swag.query.as_json import query_to_json
from swag.query.query import Query
from swag.query.windows import Rows
from swag.tables.answers import own_name
from swag.tables.columns import Clock, instants
from swag.tables.keys import order_of
from swag.tables.predicate import holds
from swag.tables.waiting import Waiting
from swag.ticks.schedule import TickAnswers
from swag.ticks.ticker import Ticker

if TYPE_CHECKING:
    from swag.ticks.live_stream import LiveStream


@dataclass(eq=False)
class Answers:
    """The answers of `query` as events of `stream`. It owns both, and the answers that others may still come before
    (`waiting`)."""

    query: Query
    ticker: Ticker
    stream: "LiveStream"
    waiting: Waiting = field(default_factory=Waiting)

    def feed(self, answers: TickAnswers | None, clock: Clock, closed: int) -> None:
        """Ticks to the stream of them. closed: every one up to this time has come."""
        if answers is not None and answers.number.size:
            ticks = answers.front(clock, self.ticker.every, self._tick, self.stream.ts, self.stream.key)
            self.waiting.add(ticks.append_column(self.query.column, answers.columns[0]), answers.now)
        due = self._due(closed)
        if due is not None:
            due = self.stream.reading.extended(due) if self.stream.reading.derived else due
            self.stream.take(due, checked=True)  # there is nobody to give an answer back to
        now = EARLIEST if closed == EARLIEST else closed + 1
        self.stream.pass_time(now, closed)

    @property
    def _tick(self) -> str:
        return own_name("tick", self.stream.ts, self.stream.key)

    def _due(self, closed: int) -> pa.Table | None:
        """The ticks that go on: all, or those up to `closed`, in order, where that of different keys counts."""
        each_event = self.query.every is None  # which come in order, where that counts
        if each_event or not self.stream.emission.ordered or not self.ticker.every.per_key:
            rows = self.waiting.leave(LATEST)
            return None if rows is None else rows.table
        rows = self.waiting.leave(closed)
        if rows is None:
            return None
        by = [pa.array(rows.ts), rows.table.column(self.stream.key), rows.table.column(self._tick)]
        return rows.table.take(pa.array(order_of(*by)))

    def state(self) -> State:
        saved = nested(
            {"query": query_to_json(self.query)}, {"ticker": self.ticker.state(), "stream": self.stream.state()}
        )
        return with_arrays(saved, {"waiting": table_to_array(self.waiting.rows.table)} if self.waiting.count else {})

    def restore(self, state: State) -> None:
        """The queries of its ticker and of its stream have been added."""
        self.ticker.restore(part(state, "ticker"))
        self.stream.restore(part(state, "stream"))
        if "waiting" in state[1]:
            table = table_from_array(state[1]["waiting"])
            self.waiting.add(table, instants(table.column(self.stream.ts), self.stream.ts))


@dataclass(eq=False)
class Chosen:
    """The events for which a condition holds, as events of `stream`, which it owns."""

    where: str
    stream: "LiveStream"

    @property
    def readers(self) -> list[Query]:
        """Simple queries that read what is needed of an event."""
        condition = Query(Aggregate("count"), Rows(1), f"* WHERE {self.where}", self.where)
        return [condition, *self.stream.reading.queries]

    def check(self, table: pa.Table) -> None:
        """Raise what is wrong with events, of those that are chosen; nothing is changed."""
        self.stream.would_refuse(self._of(table))

    def take(self, table: pa.Table) -> None:
        """Events that were applied, and found to be right before."""
        self.stream.take(self._of(table), checked=True)

    def pass_time(self, now: int, closed: int, kept: bool) -> None:
        """Time passes here too, whatever events do not hold."""
        if self.stream.core.time.clock is not None:
            self.stream.core.time.go_on(now)
            self.stream.decide(closed, kept)

    def _of(self, table: pa.Table) -> pa.Table:
        return table.filter(pa.array(holds(self.where, table)))

    def state(self) -> State:
        return nested({"where": self.where}, {"stream": self.stream.state()})

    def restore(self, state: State) -> None:
        """The queries of its stream have been added."""
        self.stream.restore(part(state, "stream"))
