"""Answers: the answers of queries, for others to read: as streams, grouped as they are or otherwise, and as relations.

    ticker of (id, site) --> Answers --> a stream of them, by (id, site)        windows over each machine's answers
                                    \\--> a stream of them, by site               windows over a site's
                                    \\--> Answers of a relation, tick by tick --> emitted(), and so on

They are computed once, whoever reads them: also where a query is registered by itself, whose ticker it then is.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from kernels.operators.numbers import EARLIEST, LATEST
from swag.durable.state import State, nested, part, parts, table_from_array, table_to_array, with_arrays
from swag.live.intake import check_there
from swag.query.as_json import source_to_json
from swag.query.groupings import By
from swag.query.kinds import count
from swag.query.lowering import simple_ones
from swag.query.query import ALL, Query, Several, queries_in
from swag.query.reading import Reading
from swag.tables.answers import own_name
from swag.tables.columns import Clock, instants, order_of
from swag.tables.key_columns import apart, joined, key_name
from swag.tables.waiting import Waiting
from swag.ticks.inside.relations import relations
from swag.ticks.schedule import TickAnswers
from swag.ticks.ticker import Ticker

if TYPE_CHECKING:
    from swag.ticks.live_stream import LiveStream

Send = Callable[[str, pa.Table, By], None]


@dataclass(eq=False)
class AnswerStream:
    """Answers as events of `stream`, grouped by `by`. It owns the stream, and the answers that others may still come
    before (`waiting`)."""

    by: By
    stream: "LiveStream"
    waiting: Waiting = field(default_factory=Waiting)

    def feed(self, ticks: pa.Table | None, closed: int, at_once: bool) -> None:
        """closed: every tick up to this time has come. at_once: they come in the order that counts here."""
        if ticks is not None and ticks.num_rows:
            self.waiting.add(joined(ticks, self.by), instants(ticks.column(self.stream.ts), self.stream.ts))
        due = self._due(closed, at_once)
        if due is not None:
            due = self.stream.reading.extended(due) if self.stream.reading.derived else due
            self.stream.take(due, checked=True)  # there is nobody to give an answer back to
        now = EARLIEST if closed == EARLIEST else closed + 1
        self.stream.pass_time(now, closed)

    def _due(self, closed: int, at_once: bool) -> pa.Table | None:
        """The ticks that go on: all, or those up to `closed`, in order."""
        rows = self.waiting.leave(LATEST if at_once else closed)
        if rows is None or at_once:
            return None if rows is None else rows.table
        there = [name for name in (self.stream.key, rows.table.column_names[0]) if name is not None]
        by = [pa.array(rows.ts), *(rows.table.column(name) for name in there)]
        return rows.table.take(pa.array(order_of(*by)))

    def state(self) -> State:
        saved = nested({"by": list(self.by)}, {"stream": self.stream.state()})
        return with_arrays(saved, {"waiting": table_to_array(self.waiting.rows.table)} if self.waiting.count else {})

    def restore(self, state: State) -> None:
        """The queries of its stream have been added."""
        self.stream.restore(part(state, "stream"))
        if "waiting" in state[1]:
            table = table_from_array(state[1]["waiting"])
            self.waiting.add(table, instants(table.column(self.stream.ts), self.stream.ts))


@dataclass(eq=False)
class Answers:
    """What queries answer, together, at each of their ticks (or events). It owns the streams and relations of that, and
    the ticker, unless that is of a registered query (`shared`), or these are a relation, and there is none.

    source: the queries. by: the key columns of their answers. names: how the ticker calls them. labels: under which
    they are registered, where they are a relation, which has no other place. make: a stream, by its grouping.
    """

    source: Query | Several
    by: By
    ts: str
    make: "Callable[[By], LiveStream]"
    ticker: Ticker | None = None
    names: tuple[str, ...] = ()
    shared: bool = False
    labels: list[str] = field(default_factory=list)
    streams: dict[By, AnswerStream] = field(default_factory=dict)
    relations: "dict[Query | Several, Answers]" = field(default_factory=dict)
    kinds: dict[str, pa.DataType] = field(default_factory=dict)  # of a relation's columns, once known

    @property
    def tick(self) -> str:
        return own_name("tick", self.ts, *self.by)

    @property
    def columns(self) -> tuple[str, ...]:
        """What there is to read."""
        each_event = not self.source.at_ticks
        key = key_name(self.by)
        own = (*(() if each_event else (self.tick,)), self.ts, *self.by, *(() if key in (None, *self.by) else (key,)))
        return tuple(name for name in (*own, *(query.column for query in queries_in(self.source))) if name is not None)

    def stream(self, by: By | None) -> "LiveStream":
        """Their answers as a stream; None: grouped as they are."""
        wanted = self.by if by is None else by
        check_there(self.columns, Reading(Query(count(name), ALL, f"GROUP BY {name}") for name in wanted))
        if wanted not in self.streams:
            stream = self.make(wanted)
            key = key_name(wanted)
            stream.core.columns = tuple(dict.fromkeys((*self.columns, *(() if key is None else (key,)))))
            self.streams[wanted] = AnswerStream(wanted, stream)
        return self.streams[wanted].stream

    def relation(self, source: Query | Several) -> "Answers":
        """The answers of queries over the relation of these at each tick."""
        by = self.by if source.by is None else source.by
        grouped = [Query(count(name), ALL, f"GROUP BY {name}") for name in by]
        check_there(self.columns, Reading([*simple_ones(queries_in(source)), *grouped]))
        if source not in self.relations:
            self.relations[source] = Answers(source, by, self.ts, self.make)
        return self.relations[source]

    @property
    def whole(self) -> bool:
        """Do its ticks come in order, whatever the key?"""
        return self.ticker is None or self.ticker.whole

    @property
    def ordered(self) -> bool:
        """Is the order of events of different keys of importance to who groups them otherwise?"""
        return not self.whole and any(by != self.by for by in self.streams)

    @property
    def is_read(self) -> bool:
        return bool(self.labels or self.streams or self.relations)

    def forget(self) -> None:
        """What nobody reads any more."""
        for each in self.streams.values():
            each.stream.emission.forget()
        self.streams = {by: each for by, each in self.streams.items() if each.stream.is_read}
        for relation in self.relations.values():
            relation.forget()
        self.relations = {query: each for query, each in self.relations.items() if each.is_read}

    @property
    def all_streams(self) -> "list[LiveStream]":
        """Of these, and of the relations over them."""
        inside = [stream for each in self.relations.values() for stream in each.all_streams]
        return [each.stream for each in self.streams.values()] + inside

    # -- ticks --------------------------------------------------------------------------------------------------------

    def table(self, answers: TickAnswers, clock: Clock) -> pa.Table:
        """The ticks of its queries, as events: number, ts, key columns, a column for each."""
        assert self.ticker is not None
        places = [list(self.ticker.queries).index(name) for name in self.names]
        key = key_name(self.by)
        front = apart(answers.front(clock, self.ticker.every, own_name("tick", self.ts, key), self.ts, key), self.by)
        for place, query in zip(places, queries_in(self.source), strict=True):
            front = front.append_column(query.column, answers.columns[place])
        speaks = np.logical_or.reduce([answers.speaks[place] for place in places])
        return front if speaks.all() else front.filter(pa.array(speaks))

    def feed(self, ticks: pa.Table | None, closed: int, send: Send) -> None:
        """Ticks to all that reads them. closed: every one up to this time has come. send: what is registered goes."""
        in_order = self.whole or not self.source.at_ticks
        for by, each in self.streams.items():
            same = by == self.by and not each.stream.emission.ordered
            each.feed(ticks, closed, in_order or same)
        for relation in self.relations.values():
            relation.relate(ticks, closed, self.tick, send)

    def relate(self, ticks: pa.Table | None, closed: int, tick: str, send: Send) -> None:
        """The ticks of what this relation is over."""
        if ticks is None or not ticks.num_rows:
            self.feed(None, closed, send)
            return
        queries = queries_in(self.source)
        found = relations(queries, ticks, tick, self.ts, self.by)
        own = [self.tick, self.ts, *self.by, *(query.column for query in queries)]
        found = found.rename_columns(own)
        self.kinds = {query.column: found.column(query.column).type for query in queries}
        self.feed(found, closed, send)
        if self.labels and found.num_rows:
            key = key_name(self.by)
            front = [self.tick, self.ts] + ([] if key is None else [key])
            for label in self.labels:
                send(label, joined(found, self.by).select([*front, queries[0].column]), self.by)

    # -- state --------------------------------------------------------------------------------------------------------

    @property
    def state_name(self) -> Any:
        return source_to_json(self.source)

    def state(self) -> State:
        ticker = None if self.ticker is None or self.shared else self.ticker.state()
        inside = {
            "ticker": ticker, "streams": [each.state() for each in self.streams.values()],
            "relations": [each.state() for each in self.relations.values()],
        }  # fmt: skip
        return nested({"query": self.state_name}, inside)

    def restore(self, state: State) -> None:
        """The queries of its ticker and of its streams have been added."""
        if self.ticker is not None and not self.shared:
            self.ticker.restore(part(state, "ticker"))
        if "stream" in state[0]:  # as older files have it
            self.streams[self.by].restore(state)
            return
        for saved in parts(state, "streams"):
            self.streams[tuple(saved[0]["by"])].restore(saved)
        for relation, saved in zip(self.relations.values(), parts(state, "relations"), strict=True):
            relation.restore(saved)
