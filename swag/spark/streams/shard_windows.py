"""The windows of a shard: its streams, the events and requests that wait for the watermark, and what is answered."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kernels.operators.numbers import LATEST
from swag.durable.state import State, nested, parts
from swag.live.answering.composites import answer_before_events
from swag.query.every import Every
from swag.query.query import Query, Several
from swag.spark.streams.cache import Step
from swag.spark.streams.log import Log
from swag.spark.streams.shard_streams import EVENTS, NOTHING, Kept, RecordedStream
from swag.spark.streams.watermark import EventTime, instants_of
from swag.tables.answers import own_name
from swag.tables.columns import Clock
from swag.tables.waiting import TimedRows, Waiting
from swag.ticks.emitted import emitted_table

REQUESTS = "requests"
ANSWERS_TO_SPARK = 1 << 16  # that are handed to Spark at once


@dataclass(frozen=True)
class Windows:
    """What to answer. events: the columns of events as shards keep them; requests: those of requests, if there are."""

    queries: tuple[Query, ...]
    ts: str
    key: str | None
    time: EventTime
    events: pa.Schema
    requests: pa.Schema | None
    value: pa.DataType

    def __call__(self, shard: int) -> "ShardWindows":
        return ShardWindows(self)

    @cached_property
    def names(self) -> list[str]:
        """Of the columns of answers, where there are no requests."""
        query, tick, value = (own_name(name, self.ts, self.key) for name in ("query", "tick", "value"))
        return [query, tick, self.ts, *([] if self.key is None else [self.key]), value]

    @cached_property
    def ticking(self) -> bool:
        return any(query.every is not None for query in self.queries)

    @cached_property
    def steps(self) -> list[int]:
        """The lengths of slots of time."""
        return [every.step(self.time.unit) for query in self.queries for every in frequencies(query) if every.by_time]


def frequencies(query: Query) -> Iterator[Every]:
    """Its own, and those of the streams that it reads."""
    inside: Any = query
    while inside is not None:
        if isinstance(inside, Query | Several) and inside.every is not None:
            yield inside.every
        inside = inside.source


class ShardWindows:
    """The state of a shard of windows. It owns its streams (each with a core), and the rows that wait.

    Asked of it is what a Body owes (swag/spark/streams/cache.py): to take the rows of a trigger and answer, to be made
    again from the log, and to tend it.
    """

    def __init__(self, plan: Windows) -> None:
        self.plan = plan
        self.stream = RecordedStream(plan.ts, plan.key)
        self.stream.add(list(plan.queries))
        self.streams = Kept(self.stream, plan.time.unit).all()
        self.events, self.requests = Waiting(), Waiting()
        self.upto: int | None = None
        self.answered: int | None = None  # the time up to which requests have been
        self.latest: int | None = None
        self.ahead: int | None = None
        self._new = True
        asked = {query.label for query in plan.queries if query.every is None}
        self._asked = [
            [q for q in kept.stream.queries.values() if q.label in asked and q.source is None] for kept in self.streams
        ]
        self._read = [kept for kept, queries in zip(self.streams, self._asked, strict=True) if queries]

    # -- rows in ------------------------------------------------------------------------------------------------------

    def restore(self, state: State) -> None:
        """Streams by their names: of one that a query has been added for since, nothing was written."""
        written = {each[0]["rows"]: each for each in parts(state, "streams")}
        for kept in self.streams:
            if kept.rows in written:
                kept.restore(written[kept.rows])

    def replay(self, tables: dict[str, list[pa.Table]], state: State, upto: int | None) -> None:
        """Bring streams to where the log is: apply events up to the watermark, drop what was answered or sent."""
        self.restore(state)
        self.answered = state[0]["answered"]
        self._promise(upto)
        if self._new:
            self._make_again(tables)
        for table in tables.get(EVENTS, []):
            self.events.add(self._complete(table), instants_of(table.column(self.plan.ts)))
        for table in tables.get(REQUESTS, []):
            self.requests.add(table, instants_of(table.column(self.plan.ts)))
        self._apply(self.events.leave(upto), upto)
        self.requests.leave(self.answered)  # were answered
        self.stream.emission.fetched()  # were sent
        for kept in self.streams:
            kept.stream.replaying = False
            kept.stream.forget_given()
        self.upto, self.ahead, self._new = upto, None, False

    def _make_again(self, tables: dict[str, list[pa.Table]]) -> None:
        """Streams inside have rows of their own in the log: they do not listen while the events are replayed."""
        for kept in reversed(self.streams):
            kept.count_on(tables.get(kept.counts, []))
            kept.start(Clock(self.plan.time.type))
            if kept.above is not None:
                kept.take_again(tables.get(kept.rows, []))
                kept.stream.replaying = True

    def go_ahead(self, upto: int) -> None:
        self.ahead = upto
        self._promise(upto)
        self._apply(self.events.leave(upto), upto)

    def step(self, fresh: dict[str, pa.Table], upto: int | None) -> Step:
        """A trigger: take events and requests, apply what the watermark has passed, answer, and name what to log."""
        self.latest = self.ahead = None
        step = Step(counts={EVENTS: 0, REQUESTS: 0, "late": 0, "lookups": 0})
        self._take(step, fresh.get(EVENTS), self.events, EVENTS, upto)
        self._take(step, fresh.get(REQUESTS), self.requests, REQUESTS, self.answered)
        self._promise(upto)
        due, asked = self.events.leave(upto), self.requests.leave(self.answered)
        self._keep_all(asked is not None)  # they ask for the time before the watermark
        self._apply(due, upto)
        if asked is not None:
            step.answers.append(self._requested(asked.table, late=False))
            self._keep_all(False)
        elif self.plan.requests is None and upto is not None and upto != self.upto:
            step.further = self._counted(step, self._current(upto))
        self.upto, self._new = upto, False
        for kept in self.streams:
            step.log += [] if kept.above is None else kept.given()
            kept.batch = sum(table.num_rows for table in kept.stream.given)
            kept.stream.forget_given()
        self.streams[0].held = self.events.count
        step.counts["lookups"] = sum(table.num_rows for table in step.answers)
        step.counts["held"] = self.events.count + self.requests.count
        step.counts["kept"] = self._kept
        return step

    def _promise(self, upto: int | None) -> None:
        for kept in self.streams:
            kept.stream.watermark = NOTHING if upto is None else upto
        if self.plan.requests is not None and upto is not None:
            self._settle(upto)

    def _settle(self, upto: int) -> None:
        """Requests are answered when every stream that they read is complete; those that are ahead wait for the rest.

        Never earlier than before: a query that was added since may read a stream that is behind.
        """
        complete = [kept.upto(upto) for kept in self._read]
        self.answered = max(min(complete), NOTHING if self.answered is None else self.answered)
        for kept, known in zip(self._read, complete, strict=True):
            kept.stream.core.keep(since=self.answered if self.answered < known else LATEST)

    def _keep_all(self, whether: bool) -> None:
        for kept in self.streams:
            kept.stream.core.keep(everything=whether)

    @property
    def _kept(self) -> int:
        return sum(kept.stream.kept for kept in self.streams)

    def _take(self, step: Step, table: pa.Table | None, waiting: Waiting, kind: str, passed: int | None) -> None:
        """Rows that are not late. Late are events that the watermark has passed, and requests for a time whose windows
        this shard has let go; those are answered at once, with nulls."""
        if table is None:
            return
        instants = instants_of(table.column(self.plan.ts))
        if self.plan.requests is None and instants.size:  # which ask for the time before the next watermark
            self.latest = int(instants.max())
        late = instants <= (NOTHING if passed is None else passed)
        if late.any():
            if kind == REQUESTS:
                step.answers.append(self._requested(table.filter(pa.array(late)), late=True))
            table, instants = table.filter(pa.array(~late)), instants[~late]
        step.counts[kind] += table.num_rows
        step.counts["late"] += int(late.sum())
        step.log.append((kind, table, instants))
        waiting.add(table, instants)

    def _apply(self, due: TimedRows | None, upto: int | None) -> None:
        if due is not None:
            self.stream.take(due.table)
        if upto is not None:
            self.stream.pass_time(upto, upto)

    def _complete(self, table: pa.Table) -> pa.Table:
        """Columns that only later queries read are null in what was logged before."""
        for each in self.plan.events:
            if each.name not in table.column_names:
                table = table.append_column(each, pa.nulls(table.num_rows, each.type))
        return table.select(self.plan.events.names)

    # -- answers out --------------------------------------------------------------------------------------------------

    def _counted(self, step: Step, answers: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in answers:
            step.counts["lookups"] += table.num_rows
            yield table

    def _current(self, upto: int) -> Iterable[pa.Table]:
        """Per query: the keys that rows of this trigger touched, as of the watermark; of a filter, all that pass."""
        found: list[Iterable[pa.Table]] = []
        for kept, asked in zip(self.streams, self._asked, strict=True):
            instant = kept.upto(upto)
            if self.upto is None or instant != kept.upto(self.upto):
                answered = [query for query in asked if query.having is None]
                if answered and kept.stream.given:
                    found.append(self._touched(kept, answered, instant, *kept.stream.touched()))
                found += [self._passing(kept, query, instant) for query in asked if query.having is not None]
        return chain(*found, self._ticks() if self.plan.ticking else [])

    def _ticks(self) -> list[pa.Table]:
        """What the watermark has decided."""
        ticks = emitted_table({() if self.plan.key is None else (self.plan.key,): self.stream.emission}, None)
        return [pa.table([*ticks.columns[:-1], ticks.columns[-1].cast(self.plan.value)], self.plan.names)]

    def _passing(self, kept: Kept, query: Query, instant: int) -> list[pa.Table]:
        if kept.stream.core.store.events == 0:
            return []
        answer = kept.stream.lookup(query.label, at=None if kept.above is None else instant)
        if self.plan.key is None:
            return [] if answer is None else [self._rows(query.label, instant, None, pa.array([answer]))]
        return [self._rows(query.label, instant, answer.column(0), answer.column(1))] if answer.num_rows else []

    def _touched(
        self, kept: Kept, queries: list[Query], instant: int, ids: np.ndarray, keys: pa.Array | None
    ) -> Iterator[pa.Table]:
        """Some keys at a time: Spark works on their answers while the next ones are looked up."""
        some = max(1, ANSWERS_TO_SPARK // len(queries))
        for first in range(0, ids.size, some):
            mine = ids[first : first + some]
            if kept.above is None:
                columns, present = kept.stream.core.answer(queries, mine)
            else:
                columns, present = kept.stream.core.answer_each(queries, mine, np.full(mine.size, instant))
            there = [pa.array(present[:, i] | (keys is None)) for i in range(len(queries))]
            yield pa.concat_tables(
                self._rows(query.label, instant, keys and keys.slice(first, some).filter(chosen), column.filter(chosen))
                for query, column, chosen in zip(queries, columns, there, strict=True)
            )

    def _rows(self, name: str, upto: int, keys: Any, values: Any) -> pa.Table:
        count = len(values)
        when = pa.repeat(pa.scalar(upto, pa.int64()), count)
        own = [] if self.plan.key is None else [keys]
        query, tick = pa.repeat(pa.scalar(name), count), pa.nulls(count, pa.int64())
        return pa.table([query, tick, when, *own, values.cast(self.plan.value)], self.plan.names)

    def _requested(self, asked: pa.Table, late: bool) -> pa.Table:
        """The requests' columns, then one per query: everything with an equal or older ts counts."""
        found: dict[str, Any] = {}
        for kept, queries in zip(self.streams, self._asked, strict=True):
            if queries:
                found |= self._requested_of(kept, queries, asked, late)
        for query in self.plan.queries:
            asked = asked.append_column(query.label, found[query.label])
        return asked

    def _requested_of(self, kept: Kept, queries: list[Query], asked: pa.Table, late: bool) -> dict[str, Any]:
        """One stream's answers at requests, by query: null if late; of a key never seen, as before any event."""
        plan, store = self.plan, kept.stream.core.store
        ids = np.zeros(asked.num_rows, np.int64)
        if store.events == 0 or late:
            ids -= 1
        elif plan.key is not None and store.keys is not None:
            ids = store.keys.find(asked.column(plan.key), plan.key)
        known = np.flatnonzero(ids >= 0)
        place = np.full(ids.size, -1)
        place[known] = np.arange(known.size)
        instants = instants_of(asked.column(plan.ts))[known]
        found: list[Any] = [pa.nulls(0)] * len(queries)
        if known.size:
            columns, present = kept.stream.core.answer_each(queries, ids[known], instants)
            found = [_passing(query, columns[i], present[:, i]) for i, query in enumerate(queries)]
        taken, unknown = pa.array(place, mask=place < 0), pa.array(place < 0)
        answers = {query.label: column.take(taken) for query, column in zip(queries, found, strict=True)}
        for query in queries:
            empty = None if late else answer_before_events(query)
            if empty is not None:  # a key that was never seen; a null of one that was stays
                column = answers[query.label]
                kind = column.type if known.size else pa.scalar(empty).type
                answers[query.label] = pc.if_else(unknown, pa.scalar(empty, kind), column.cast(kind))
        return answers

    # -- what is kept -------------------------------------------------------------------------------------------------

    def tend(self, log: Log) -> None:
        if self.answered is not None:
            log.drop_until(REQUESTS, self.answered)
        if self.upto is not None:
            for kept in self.streams:
                kept.tend(log, self.upto)

    def state(self) -> State:
        return nested({"answered": self.answered}, {"streams": [kept.state() for kept in self.streams]})

    def wakes(self) -> int | None:
        """The first instant not to be slept through if no row comes: for rows that wait, filters, and slots of time."""
        events, asked = self.events.first, self.requests.first
        found = [] if events is None else [events]
        found += [] if asked is None else [max(kept.known_at(asked) for kept in self._read)]
        filters = any(query.having is not None for asked in self._asked for query in asked)
        if self.upto is not None and (filters or self.plan.steps) and self._kept:
            found += [self.upto + 1] if filters else []
            found += [(self.upto // step + 1) * step for step in self.plan.steps]
        return min(found, default=None)

    @property
    def bytes(self) -> int:
        return self.stream.bytes + self.events.bytes + self.requests.bytes


def _passing(query: Query, column: pa.Array, present: np.ndarray) -> pa.Array:
    """`having` at a request: an answer that does not pass is null."""
    if query.having is None:
        return column
    return pc.if_else(pa.array(present), column, pa.scalar(None, column.type))
