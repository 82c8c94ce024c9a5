"""The windows of a shard: an engine, the events and requests that wait for the watermark, and what is answered."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kernels.timeline import HEAD, TAIL
from swag.aggregates import count
from swag.composites import of_nothing
from swag.engine import Engine
from swag.keys import KeyTable
from swag.lowering import simple_ones
from swag.query import Query
from swag.spark.event_time import EventTime, instants_of
from swag.spark.shard import Step
from swag.spark.state import HISTORY, Entry, Log
from swag.spark.waiting import Waiting
from swag.windows import Range, Rows, reach

EVENTS, REQUESTS, COUNTS = "events", "requests", "counts"
SWEPT = 1 << 13  # rows that a trigger looks over for those that no window reaches, at least
NOTHING = np.iinfo(np.int64).min


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
    def answered(self) -> list[Query]:
        """Queries that answer for the keys that a trigger touched."""
        return [q for q in self.queries if q.having is None and q.every is None]

    @cached_property
    def filters(self) -> list[Query]:
        return [q for q in self.queries if q.having is not None and q.every is None]

    @cached_property
    def ticking(self) -> list[Query]:
        return [q for q in self.queries if q.every is not None]

    @cached_property
    def counting(self) -> bool:
        """Does a tick depend on how many rows there were?"""
        return any(q.every is not None and not q.every.by_time for q in self.queries)

    @cached_property
    def steps(self) -> list[int]:
        """The lengths of slots of time."""
        return [q.every.step(self.time.unit) for q in self.queries if q.every is not None and q.every.by_time]

    @cached_property
    def keeping(self) -> list[Query]:
        """What undecided ticks can still see, as windows that end now: so the engine keeps it, and the log."""
        windows: set[Rows | Range] = set()
        for query in simple_ones(self.ticking):
            seen = reach(query.window, self.time.unit)
            windows.add(Range(seen.far + max(self.steps, default=0) + 1) if seen.by_time else Rows(seen.far))
        return [Query(count(), window, name=f"kept {window}\0") for window in windows]


class ShardWindows:
    def __init__(self, plan: Windows) -> None:
        self.plan = plan
        self.engine = Engine(ts=plan.ts, key=plan.key)
        self.engine.register(plan.queries)
        self.engine.register(plan.keeping)
        self.events, self.requests = Waiting(plan.ts), Waiting(plan.ts)
        self.upto: int | None = None
        reaches = [reach(query.window, plan.time.unit) for query in simple_ones([*plan.queries, *plan.keeping])]
        self._by_time = max((r.far for r in reaches if r.by_time), default=0)
        self._by_rows = max((r.far for r in reaches if not r.by_time), default=0)
        self._batch, self._swept, self._gone = 0, -1, 0
        self._counts: list[pa.Table] = []
        self._new = True

    # -- rows in ------------------------------------------------------------------------------------------------------

    def replay(self, tables: dict[str, list[pa.Table]], rest: dict[str, Any], upto: int | None) -> None:
        if self._new and self.plan.ticking:
            self._count_on(rest.get("gone", 0), tables.get(COUNTS, []))
        for table in tables.get(EVENTS, []):
            self.events.add(self._complete(table))
        for table in tables.get(REQUESTS, []):
            self.requests.add(table)
        self._apply(self.events.due(upto), upto)
        self.requests.due(upto)  # were answered
        self._ticks(upto)  # were emitted
        self.upto, self._swept, self._gone, self._new = upto, rest.get("swept", -1), rest.get("gone", 0), False

    def step(self, fresh: dict[str, pa.Table], upto: int | None) -> Step:
        step = Step(counts={EVENTS: 0, REQUESTS: 0, "late": 0, "lookups": 0})
        self._take(step, fresh.get(EVENTS), self.events, EVENTS, upto)
        self._take(step, fresh.get(REQUESTS), self.requests, REQUESTS, self.upto)
        due, asked = self.events.due(upto), self.requests.due(upto)
        self._batch = 0 if due is None else due.num_rows
        self.engine._store.keeps_all = asked is not None  # they ask for the time before the watermark
        self._apply(due, upto)
        moved, self.upto, self._new = upto != self.upto, upto, False
        if asked is not None:
            step.answers.append(self._requested(asked, late=False))
            self.engine._store.keeps_all = False
        elif self.plan.requests is None and upto is not None and moved:
            step.answers += self._current(due, upto)
        step.counts["lookups"] = sum(table.num_rows for table in step.answers)
        step.counts["held"] = self.events.count + self.requests.count
        step.counts["kept"] = self.engine.stats()["kept"]
        return step

    def _take(self, step: Step, table: pa.Table | None, waiting: Waiting, kind: str, passed: int | None) -> None:
        """Rows that are not late. Late are events that the watermark has passed, and requests for a time whose windows
        this shard has let go; those are answered at once, with nulls."""
        if table is None:
            return
        instants = instants_of(table.column(self.plan.ts))
        late = instants <= (NOTHING if passed is None else passed)
        if late.any():
            if kind == REQUESTS:
                step.answers.append(self._requested(table.filter(pa.array(late)), late=True))
            table, instants = table.filter(pa.array(~late)), instants[~late]
        step.counts[kind] += table.num_rows
        step.counts["late"] += int(late.sum())
        step.log.append((kind, table, instants))
        waiting.add(table)

    def _apply(self, due: pa.Table | None, upto: int | None) -> None:
        if due is not None:
            self.engine.append(due)
        if upto is not None:
            self.engine.advance(upto)

    def _complete(self, table: pa.Table) -> pa.Table:
        """Columns that only later queries read are null in what was logged before."""
        for each in self.plan.events:
            if each.name not in table.column_names:
                table = table.append_column(each, pa.nulls(table.num_rows, each.type))
        return table.select(self.plan.events.names)

    # -- answers out --------------------------------------------------------------------------------------------------

    def _current(self, due: pa.Table | None, upto: int) -> list[pa.Table]:
        """Per query: the keys that events of this trigger touched, as of the watermark; of a filter, all that pass."""
        found = []
        if due is not None and self.plan.answered:
            found += self._touched(due, upto)
        for query in self.plan.filters:
            answer = self.engine.lookup(query.label)
            if self.plan.key is None:
                found += [] if answer is None else [self._rows(query.label, upto, None, pa.array([answer]))]
            elif answer.num_rows:
                found.append(self._rows(query.label, upto, answer.column(0), answer.column("value")))
        return found + self._ticks(upto)

    def _ticks(self, upto: int | None) -> list[pa.Table]:
        """What the watermark has decided: nothing at or before it is still to come."""
        if not self.plan.ticking or upto is None:
            return []
        self.engine._emission.decide(upto + 1, kept=True)
        ticks = self.engine.emitted()
        return [ticks.set_column(ticks.num_columns - 1, "value", ticks.column("value").cast(self.plan.value))]

    def _touched(self, due: pa.Table, upto: int) -> list[pa.Table]:
        plan, store = self.plan, self.engine._store
        ids, keys = np.zeros(1, np.int64), None
        if plan.key is not None and store.keys is not None:
            keys = pc.unique(due.column(plan.key))
            ids = store.keys.find(keys, plan.key)
        columns, present = self.engine._answer_each(plan.answered, ids, np.full(ids.size, upto))
        tables = []
        for i, (query, column) in enumerate(zip(plan.answered, columns, strict=True)):
            some = pa.array(present[:, i] | (plan.key is None))
            tables.append(self._rows(query.label, upto, keys and keys.filter(some), column.filter(some)))
        return tables

    def _rows(self, name: str, upto: int, keys: Any, values: Any) -> pa.Table:
        count = len(values)
        columns = {
            "query": pa.repeat(pa.scalar(name), count),
            "tick": pa.nulls(count, pa.int64()),
            self.plan.ts: pa.repeat(pa.scalar(upto, pa.int64()), count),
        }
        if self.plan.key is not None:
            columns[self.plan.key] = keys
        return pa.table(columns | {"value": values.cast(self.plan.value)})

    def _requested(self, asked: pa.Table, late: bool) -> pa.Table:
        """The requests' columns, then one per query: everything with an equal or older ts counts."""
        plan, store = self.plan, self.engine._store
        assert plan.requests is not None
        rows = np.arange(asked.num_rows)
        ids = np.zeros(rows.size, np.int64)
        if store.clock is None or late:
            ids -= 1
        elif plan.key is not None and store.keys is not None:
            ids = store.keys.find(asked.column(plan.key), plan.key)
        known = np.flatnonzero(ids >= 0)
        place = np.full(rows.size, -1)
        place[known] = np.arange(known.size)
        instants = instants_of(asked.column(plan.ts))[known]
        found: list[Any] = [pa.nulls(0)] * len(plan.queries)
        if known.size:
            columns, present = self.engine._answer_each(list(plan.queries), ids[known], instants)
            found = [_passing(query, columns[i], present[:, i]) for i, query in enumerate(plan.queries)]
        taken = pa.array(place, mask=place < 0)
        for query, column in zip(plan.queries, found, strict=True):
            answers, empty = column.take(taken), None if late else of_nothing(query)
            if empty is not None:  # a key that was never seen; a null of one that was stays
                unknown = pa.array(place < 0)
                kind = answers.type if known.size else pa.scalar(empty).type
                answers = pc.if_else(unknown, pa.scalar(empty, kind), answers.cast(kind))
            asked = asked.append_column(query.label, answers)
        return asked

    # -- what is kept -------------------------------------------------------------------------------------------------

    def tend(self, log: Log) -> None:
        if self.upto is None:
            return
        log.drop_until(REQUESTS, self.upto)
        gone = self._note_gone if self.plan.counting else None
        if self._by_rows == 0:
            log.drop_until(EVENTS, self.upto - self._by_time, gone)
            log.merge(EVENTS)
        else:
            self._tend_rows(log)
        for table in self._counts:
            log.append(COUNTS, table, np.zeros(1, np.int64))
        self._counts = []
        log.merge(COUNTS, self._added_up)

    def _tend_rows(self, log: Log) -> None:
        """Windows by rows: what is needed of a segment is known row by row only."""
        settled = log.header.following - HISTORY
        entries = [entry for entry in log.header.entries if entry.kind == EVENTS and entry.number < settled]
        needed = self.engine.stats()["kept"] + self.events.count
        merged = log.merge(EVENTS, self._needed)
        if not merged and sum(entry.rows for entry in entries) > 2 * needed + SWEPT:
            self._sweep(log, entries)

    def _sweep(self, log: Log, entries: list[Entry]) -> None:
        """Rows windows: an old segment may hold the last rows of a silent key. Look over a few, in turn."""
        later = [entry for entry in entries if entry.number > self._swept]
        run: list[Entry] = []
        for entry in later or entries:
            if run and sum(each.rows for each in run) + entry.rows > max(2 * self._batch, SWEPT):
                break
            run.append(entry)
        self._swept = run[-1].number
        log.rewrite(run, self._needed)

    def _needed(self, table: pa.Table) -> pa.Table:
        live = self._live(table)
        if self.plan.counting:
            self._note_gone(table.filter(pa.array(~live)))
        return table.filter(pa.array(live))

    def _note_gone(self, table: pa.Table) -> None:
        """Ticks that count rows count those that are gone, too."""
        self._gone += table.num_rows
        if self.plan.key is not None and table.num_rows:
            counted = table.group_by(self.plan.key).aggregate([(self.plan.ts, "count")])
            self._counts.append(counted.rename_columns([self.plan.key, "rows"]))

    def _added_up(self, table: pa.Table) -> pa.Table:
        return table.group_by(self.plan.key).aggregate([("rows", "sum")]).rename_columns([self.plan.key, "rows"])

    def _count_on(self, gone: int, counts: list[pa.Table]) -> None:
        """A new engine goes on where the rows that are gone left its tickers."""
        store, key = self.engine._store, self.plan.key
        before = np.zeros(0, np.int64)
        if key is not None and counts:
            table = self._added_up(pa.concat_tables(counts))
            store.keys = KeyTable(table.schema.field(key).type)
            before = np.zeros(table.num_rows, np.int64)
            before[store.keys.encode(table.column(key), key)] = np.asarray(table.column("rows"))
        for ticker in self.engine._emission.tickers.values():
            own = np.array([gone]) if ticker.whole else before
            ticker.counters.grow(own.size, own)

    def _live(self, table: pa.Table) -> np.ndarray:
        """Which logged events the engine still keeps, or has not yet been given."""
        store, plan = self.engine._store, self.plan
        instants = instants_of(table.column(plan.ts))
        waiting = instants > (NOTHING if self.upto is None else self.upto)
        if store.clock is None:
            return np.ones(instants.size, bool)
        ids = np.zeros(instants.size, np.int64)
        if plan.key is not None and store.keys is not None:
            ids = store.keys.find(table.column(plan.key), plan.key)
        rings = store.main.arena.rings[ids]
        oldest = store.ts.data[rings[:, 0] + (rings[:, HEAD] & (rings[:, 1] - 1))]
        return waiting | ((rings[:, TAIL] > rings[:, HEAD]) & (instants >= oldest) & (ids >= 0))

    def rest(self) -> dict[str, Any]:
        return {"swept": self._swept, "gone": self._gone}

    def wakes(self) -> int | None:
        found = [t for t in (self.events.first, self.requests.first) if t is not None]
        if self.plan.filters and self.upto is not None and self.engine.stats()["kept"]:
            found.append(self.upto + 1)
        if self.plan.steps and self.upto is not None and self.engine.stats()["kept"]:
            found += [(self.upto // step + 1) * step for step in self.plan.steps]
        return min(found, default=None)

    @property
    def bytes(self) -> int:
        return int(self.engine.stats()["bytes"])


def _passing(query: Query, column: pa.Array, present: np.ndarray) -> pa.Array:
    """`having` at a request: an answer that does not pass is null."""
    if query.having is None:
        return column
    return pc.if_else(pa.array(present), column, pa.scalar(None, column.type))
