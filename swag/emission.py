"""What an engine emits: its tickers, queries over the answers of others, and the ticks that nobody has fetched yet.

      events --> ticker (every 1000 rows) -----------------------------> emitted()
            \\-> ticker of an inner query --> an engine over its ticks --> emitted(), lookups

An inner query's ticks are the events of an engine of its own; so queries nest to any depth.
"""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from swag.columns import Clock, one_chunk
from swag.errors import BadQuery, OutOfOrder, SwagError
from swag.frequency import Every
from swag.jumping import Jumped
from swag.lowering import simple_ones
from swag.nested import front_columns
from swag.query import Query
from swag.store import MIN, Store
from swag.ticker import Progress, Ticker
from swag.windows import reach

if TYPE_CHECKING:
    from swag.engine import Engine


@dataclass(eq=False)
class Inner:
    """The answers of `query` as events of `engine`. waiting: those that others may still come before."""

    query: Query
    ticker: Ticker
    engine: "Engine"
    waiting: pa.Table | None = None

    def due(self, ts: str, key: str | None, promise: int) -> pa.Table:
        """The ticks that go on: all, or those before `promise`, in order, where that of different keys counts."""
        ticks, self.waiting = self.waiting, None
        assert ticks is not None
        if not self.engine._emission.ordered or not self.ticker.every.per_key:
            return ticks
        ticks = ticks.sort_by([(ts, "ascending"), (key, "ascending"), ("tick", "ascending")])
        times = np.asarray(one_chunk(ticks.column(ts)).cast(pa.int64()))
        due = int(np.searchsorted(times, promise, side="left"))
        self.waiting = ticks[due:] if due < ticks.num_rows else None
        return ticks[:due]


@dataclass(eq=False)
class Emission:
    ts: str
    key: str | None
    store: Store
    tickers: dict[Every, Ticker] = field(default_factory=dict)
    inner: dict[Query, Inner] = field(default_factory=dict)
    outer: dict[str, "Engine"] = field(default_factory=dict)  # queries over answers: who answers them
    since: dict[str, int] = field(default_factory=dict)  # queries that came later: the time then
    outbox: list[tuple[str, pa.Table]] = field(default_factory=list)
    errors: list[SwagError] = field(default_factory=list)
    top: int = MIN

    @property
    def queries(self) -> list[Query]:
        """All that read this engine's events here, as simple ones."""
        return simple_ones(query for ticker in self._all() for query in ticker.queries.values())

    @property
    def ordered(self) -> bool:
        """Is the order of events of different keys of importance?"""
        if self.key is None:
            return False
        return any(t.whole for t in self._all()) or any(each.engine._emission.ordered for each in self.inner.values())

    @property
    def steps(self) -> list[int]:
        """The lengths of slots: an event in one that was decided is late. Where answers are a stream, so is any event
        older than what was promised to it."""
        unit = None if self.store.clock is None else self.store.clock.unit
        return [1] if self.inner else sorted({t.every.step(unit) for t in self._all() if t.every.by_time})

    def _all(self) -> list[Ticker]:
        return [*self.tickers.values(), *(each.ticker for each in self.inner.values())]

    # -- registration -------------------------------------------------------------------------------------------------

    def check_queries(self, queries: list[Query]) -> None:
        """What can be known to be wrong at registration."""
        for query in queries:
            while query.source is not None:
                self._check(query)
                query = query.source
            self._check(query)

    def _check(self, query: Query) -> None:
        if query.every is not None and query.every.per_key and self.key is None:
            raise BadQuery(
                f'query "{query.label}": {query.every!r} counts per key, but this engine has none.', 'key="…"'
            )
        if query.every is not None and self.store.clock is not None:
            query.every.step(self.store.clock.unit)
        if self.store.clock is not None:
            for simple in simple_ones([query]):
                reach(simple.window, self.store.clock.unit)
        if query.every is not None and "tick" in (self.ts, self.key):
            raise BadQuery('ticks are numbered in a column "tick", which is the name of ts or key here.', "rename that")

    def add(self, queries: list[Query], flowing: bool, make: Any) -> None:
        """make: an engine for the answers of a query."""
        for query in queries:
            if query.source is not None:
                self.outer[query.label] = self.over(query.source, flowing, make)
                self.outer[query.label].register(replace(query, source=None, name=query.label))
                self._refuse_disorder(query)
            elif query.every is not None:
                self._ticker(self.tickers.setdefault(query.every, Ticker(query.every, self.key)), query, flowing)
            if flowing:
                self.since[query.label] = self.store.now

    def over(self, source: Query, flowing: bool, make: Any) -> "Engine":
        """The engine whose events are the answers of `source`."""
        if source.source is not None:
            host = self.over(source.source, flowing, make)
            return host._emission.over(replace(source, source=None), flowing, make)
        if source not in self.inner:
            every = source.every or Every(1, per_key=self.key is not None)
            ticker = Ticker(every, self.key, empty=source.every is None)
            self._ticker(ticker, replace(source, name=source.column), flowing)
            self.inner[source] = Inner(source, ticker, make())
        return self.inner[source].engine

    def _ticker(self, ticker: Ticker, query: Query, flowing: bool) -> None:
        """Rows that were before count, but are not there any more."""
        if flowing and ticker.next.size == 0:
            rows = self.store.main.arena.rings[: self.store.key_count, 3]
            before = np.array([self.store.events]) if ticker.whole else rows
            ticker.grow(before.size, before)
            self.top = max(self.top, int(self.store.latest.max(initial=MIN)))
        ticker.add(query)

    def _refuse_disorder(self, query: Query) -> None:
        for each in self.inner.values():
            own = each.ticker.every
            if each.engine._emission.ordered and own.per_key and own.by_time and own.anchor == "tick":
                self.remove(query)
                raise BadQuery(
                    f'query "{query.label}" counts rows of all keys, of answers that {own!r} gives key by key: '
                    "a silent key would hold all others up.",
                    'anchor="tuple" in the inner query, or per_key=True in the outer one',
                )

    def remove(self, query: Query) -> None:
        self.since.pop(query.label, None)
        if query.source is not None:
            self.outer.pop(query.label).unregister(query.label)
            self.forget()
        elif query.every is not None:
            ticker = self.tickers[query.every]
            ticker.remove(query.label)
            if not ticker.queries:
                del self.tickers[query.every]

    def forget(self) -> None:
        """Inner queries that nobody reads any more."""
        for source, each in list(self.inner.items()):
            each.engine._emission.forget()
            if not each.engine.queries and not each.engine._emission.inner:
                del self.inner[source]

    # -- events -------------------------------------------------------------------------------------------------------

    def check(self, table: pa.Table, clock: Clock) -> None:
        for ticker in self._all():
            ticker.check(table, clock)

    def check_order(self, ts: np.ndarray) -> None:
        """Where all keys count together, they are in order together."""
        if not self.ordered or ts.size == 0:
            return
        before = np.maximum.accumulate(np.concatenate([[max(self.top, self.store.promised)], ts]))[:-1]
        early = np.flatnonzero(ts < before)
        if early.size:
            clock, row = self.store.clock, int(early[0])
            assert clock is not None
            raise OutOfOrder(
                f"event {row} has ts {clock.show(int(ts[row]))}, after ts {clock.show(int(before[row]))} of another "
                "key was applied; queries with `every` count the rows of all keys.",
                "sort the batch by ts, or Engine(lateness=…), or sw.Every(…, per_key=True)",
            )

    def take(self, table: pa.Table, ts: np.ndarray, ids: np.ndarray) -> None:
        """Rows that were applied."""
        assert self.store.clock is not None
        self.top = max(self.top, int(ts.max(initial=MIN)))
        for ticker in self._all():
            ticker.take(table, ts, ids, self.store.key_count, self.store.clock)

    def decide(self, promise: int, kept: bool) -> None:
        """Answer what is decided. An error waits for `emitted`.

        promise: slots that end before it are over. kept: older events are refused; else late ones may be taken that
        are newer than all that was applied.
        """
        clock, keys = self.store.clock, None
        tickers = self._all()
        if clock is None or not tickers:
            return
        if self.store.keys is not None and any(ticker.ts for ticker in tickers):
            keys = self.store.keys.column()
        latest = self.store.latest[: self.store.key_count]
        progress = Progress(latest, self.top, promise, kept or bool(self.inner))
        for ticker in self.tickers.values():
            jumped = self._decide(ticker, progress, clock, keys)
            if jumped is not None:
                self._send(ticker, front_columns(jumped, clock, ticker.every, self.ts, self.key), jumped)
        for each in self.inner.values():
            together = replace(progress, together=each.engine._emission.ordered)
            jumped = self._decide(each.ticker, together, clock, keys)
            try:
                self._feed(each, jumped, clock, each.ticker.promise(together, clock))
            except SwagError as why:
                self.errors.append(why)

    def _decide(self, ticker: Ticker, progress: Progress, clock: Clock, keys: pa.Array | None) -> Jumped | None:
        try:
            return ticker.decide(progress, clock, keys)
        except SwagError as why:
            self.errors.append(why)
            return None

    def _send(self, ticker: Ticker, front: pa.Table, jumped: Jumped) -> None:
        for query, values, speaks in zip(ticker.queries.values(), jumped.columns, jumped.speaks, strict=True):
            ticks = front.append_column("value", values)
            ticks = ticks if speaks.all() else ticks.filter(pa.array(speaks))
            if ticks.num_rows:
                self.outbox.append((query.label, ticks))

    def _feed(self, inner: Inner, jumped: Jumped | None, clock: Clock, promise: int) -> None:
        """Ticks of an inner query to the engine over them."""
        if jumped is not None and jumped.number.size:
            ticks = front_columns(jumped, clock, inner.ticker.every, self.ts, self.key)
            ticks = ticks.append_column(inner.query.column, jumped.columns[0])
            inner.waiting = ticks if inner.waiting is None else pa.concat_tables([inner.waiting, ticks])
        if inner.waiting is not None:
            inner.engine.append(inner.due(self.ts, self.key, promise))
        if promise > MIN:
            inner.engine.advance(promise)

    # -- out ----------------------------------------------------------------------------------------------------------

    def emitted(self) -> list[tuple[str, pa.Table]]:
        """What nobody has fetched yet, by query."""
        if self.errors:
            raise self.errors.pop(0)
        found = [part for each in self.inner.values() for part in each.engine._emission.emitted()]
        found, self.outbox = self.outbox + found, []
        return found

    @property
    def kinds(self) -> dict[str, pa.DataType]:
        """The types of the answers, as far as they are known."""
        found: dict[str, pa.DataType] = {}
        for ticker in self.tickers.values():
            found |= ticker.kinds
        for each in self.inner.values():
            found |= each.engine._emission.kinds
        return found

    def complete_since(self) -> dict[str, Any]:
        """Per query: None if complete from the first event, else the time since which its rows are all kept."""
        clock, names = self.store.clock, [*self.outer, *(name for t in self.tickers.values() for name in t.queries)]
        return {name: clock.value(self.since[name]) if clock and name in self.since else None for name in names}

    @property
    def undelivered(self) -> int:
        own = sum(ticks.num_rows for _, ticks in self.outbox)
        return own + sum(each.engine._emission.undelivered for each in self.inner.values())

    @property
    def bytes(self) -> int:
        own = sum(ticker.bytes for ticker in self._all()) + sum(ticks.nbytes for _, ticks in self.outbox)
        return own + sum(each.engine.stats()["bytes"] for each in self.inner.values())

    @property
    def kept(self) -> int:
        return sum(ticker.kept for ticker in self._all())

    def explain(self) -> list[str]:
        lines = []
        for ticker in self.tickers.values():
            lines += ["", f"{_often(ticker.every)}: {', '.join(ticker.queries)}", *_ticker(ticker)]
        for each in self.inner.values():
            lines += ["", f"{_often(each.ticker.every)}, as a stream: {each.query.label}", *_ticker(each.ticker)]
            lines += ["    " + line for line in each.engine.explain().split("\n")]
        return lines


def _often(every: Every) -> str:
    much = f"every {every.time} of time" if every.by_time else f"every {every.rows:,} rows"
    anchor = f", anchored at the {every.anchor}" if every.by_time else ""
    return f"{much}{anchor}{', key by key' if every.per_key else ''}"


def _ticker(ticker: Ticker) -> list[str]:
    return [
        f"    pushed down: rows wait untouched, {ticker.kept:,} of them; a tick aggregates those in its window",
        f"    so far: {ticker.ticks:,} answers at ticks",
    ]


def emitted_table(emission: Emission, ts: str, key: str | None) -> pa.Table:
    """Table(query, tick, ts, [key], value) of the ticks that nobody has fetched yet."""
    parts, store = emission.emitted(), emission.store
    kind = common_type([*emission.kinds.values(), *(ticks.schema.field("value").type for _, ticks in parts)])
    schema = [("query", pa.string()), ("tick", pa.int64()), (ts, store.clock.type if store.clock else pa.int64())]
    schema += [] if key is None else [(key, store.keys.type if store.keys else pa.null())]
    tables = [pa.schema([*schema, ("value", kind)]).empty_table()]
    for name, ticks in parts:
        query = pa.DictionaryArray.from_arrays(np.zeros(ticks.num_rows, np.int32), [name]).cast(pa.string())
        value = ticks.column("value").cast(kind, safe=False)
        tables.append(ticks.drop_columns(["value"]).add_column(0, "query", query).append_column("value", value))
    return pa.concat_tables(tables, promote_options="permissive")


def common_type(kinds: list[pa.DataType]) -> pa.DataType:
    """The type of a column for answers of all of them."""
    distinct = {kind for kind in kinds if not pa.types.is_null(kind)}
    if len(distinct) <= 1:
        return distinct.pop() if distinct else pa.float64()
    if all(pa.types.is_integer(kind) for kind in distinct):
        return pa.int64()
    if all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in distinct):
        return pa.float64()
    return pa.string()
