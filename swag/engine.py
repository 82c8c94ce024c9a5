"""Continuously: register queries, append events, look answers up. The engine keeps what its windows can still reach."""

import threading
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
import pyarrow as pa

from kernels.compile.ahead import rehearsed
from swag.arguments import LARGEST, as_list, check_flag, check_key, check_name, is_option
from swag.errors import BadQuery, SwagError, TooFarBack, UnknownQuery, nearest
from swag.explain import Text, explain, many
from swag.first_use import of_append
from swag.live import intake
from swag.live.composites import Shared, answering, check_grouping, combine, guard_of, of_nothing
from swag.live.held import Held, later_of
from swag.live.key_filters import Filters
from swag.live.lookups import Lookups
from swag.live.plan import Plan
from swag.live.planner import ALGORITHMS, COMPARED
from swag.live.space import Batch, Mask
from swag.live.store import MIN, Store
from swag.query.condition import filter_table
from swag.query.lowering import simple_ones
from swag.query.query import Query, check_names
from swag.query.windows import Duration, in_units, length, reach
from swag.sql import sql
from swag.tables.answers import own_name
from swag.ticks.emission import Emission
from swag.ticks.emitted import emitted_table

EXAMPLE = '[sw.Query(sw.sum("volume"), sw.Range("5m"))]'
P = ParamSpec("P")
R = TypeVar("R")


def alone(method: "Callable[Concatenate[Engine, P], R]") -> "Callable[Concatenate[Engine, P], R]":
    """One thread at a time: nobody sees half of a batch, and no batch is taken between the halves of another."""

    @wraps(method)
    def locked(self: "Engine", /, *args: P.args, **options: P.kwargs) -> R:
        with self._lock:
            return method(self, *args, **options)

    return locked


class Engine:
    """Answers any registered window, by rows or by time, ending now or in the past, on lookup.

    ts, key: names of the columns; no key: one stream. lateness: how far out of order events may come. epsilon: how far
    off the candidates of an index over keys may be (a smaller one takes more memory and checks fewer keys). algorithm:
    "auto", or one of swag.live.planner.ALGORITHMS for every group that it can serve.

    With `lateness` answers are as of the watermark, `lateness` before the latest time: all that it has passed is
    applied, so windows are whole. Any number of threads may use one engine; their calls take turns.

    >>> import swag as sw
    >>> engine = sw.Engine(ts="ts", key="symbol")
    >>> engine.register(sw.Query(sw.sum("volume"), sw.Range(300), name="vol"))
    'vol'
    >>> engine.append({"ts": [1, 2, 400], "symbol": ["A", "B", "A"], "volume": [10, 20, 30]})
    3
    >>> engine.lookup("vol", key="A")
    30
    >>> engine
    <sw.Engine ts="ts", key="symbol": 1 query, 3 events, 2 keys>
    """

    def __init__(
        self,
        ts: str = "ts",
        key: str | None = None,
        lateness: Duration | None = None,
        epsilon: float = 0.2,
        algorithm: str = "auto",
    ) -> None:
        check_name(ts, "ts", 'sw.Engine(ts="ts")')
        if key is not None:
            check_key(key, 'sw.Engine(key="symbol")')
        if not is_option(algorithm, ALGORITHMS):
            raise BadQuery(
                f'algorithm="{algorithm}" is none of {", ".join(ALGORITHMS)}.',
                f"algorithm={nearest(str(algorithm), list(ALGORITHMS)) or ALGORITHMS[0]}",
            )
        if algorithm in COMPARED and key is not None:
            raise BadQuery(
                f'algorithm="{algorithm}" is for comparison, on one stream; this engine has key="{key}".',
                'algorithm="auto"',
            )
        self.ts, self.key, self.algorithm, self.lateness = ts, key, algorithm, lateness
        if lateness is not None and length(lateness, "lateness") > LARGEST:
            raise BadQuery(f"lateness={lateness!r} does not fit int64.", 'lateness="10s"')
        self._lock = threading.RLock()
        self._queries: dict[str, Query] = {}
        self._shared = Shared()
        self._store = Store(keyed=key is not None)
        self._plan = Plan(self._store, algorithm)
        self._asked = Lookups(self._store, self._plan)
        self._filters = Filters(self._store, self._plan, epsilon)
        self._emission = Emission(ts, key, self._store)
        self._held: Held | None = None
        self._advanced: Any = None  # a time given before the first event, whose type nobody knows yet
        self._lookups = 0
        self._takes_all = False  # events can not be refused any more: they were checked, or are answers of a query

    # -- queries ------------------------------------------------------------------------------------------------------

    @alone
    def register(self, query: Query | Iterable[Query] | str) -> str | list[str]:
        """Register one query, several, or those of an SQL text; returns the name, or the names. All or none."""
        query = sql(query) if isinstance(query, str) else query
        queries = as_list(query, "queries", EXAMPLE) if isinstance(query, Iterable) else [query]
        check_names(queries, self._queries)
        check_grouping(queries, self.key)
        self._check(queries)
        self._add_emitting([q for q in queries if not _is_plain(q)])
        self._queries |= {q.label: q for q in queries}
        self._plan.add(self._shared.add(filter(_is_plain, queries)), self._reaches, self._flowing, self._unread)
        self._filters.changed = True
        return queries[0].label if isinstance(query, Query) else [q.label for q in queries]

    def _add_emitting(self, queries: list[Query]) -> None:
        """Queries that answer at ticks, or over the answers of others: all or none of them."""
        added: list[Query] = []
        try:
            for query in queries:
                self._emission.add([query], self._flowing, self._over_answers)
                added.append(query)
            waiting = self._waiting(self._readers)
            if waiting is not None and self._store.clock is not None:
                self._emission.check(waiting, self._store.clock)
        except SwagError:
            for query in reversed(added):
                self._emission.remove(query)
            raise

    @property
    def _flowing(self) -> bool:
        """Have events come?"""
        return self._store.events > 0 or self._waiting([]) is not None

    def _unread(self, query: Query) -> int:
        """Events up to this time wait without what a new query reads: nobody read it when they came."""
        waiting = self._waiting([])
        if self._held is None or waiting is None:
            return MIN
        lacks = set(intake.needed([query], self.ts, self.key)) - set(waiting.column_names)
        return self._held.now if lacks else MIN

    @alone
    def unregister(self, name: str) -> None:
        """Forget a query, and what is kept for it alone."""
        query = self._known(name)
        del self._queries[name]
        if not _is_plain(query):
            self._emission.remove(query)
            return
        self._plan.remove(self._shared.remove(query), self._reaches)
        self._filters.register()

    @property
    def queries(self) -> list[Query]:
        """Those that are registered, in the order in which they were."""
        return list(self._queries.values())

    # -- events -------------------------------------------------------------------------------------------------------

    @alone
    @rehearsed(of_append)
    def append(self, events: Any) -> int:
        """Take a batch, whole or not at all; returns how many events were taken."""
        store = self._store
        self._forget()
        table = intake.read(events, self._readers, self.ts, self.key)
        if table.num_rows == 0:
            return 0
        first, known = store.clock is None, store.key_count
        try:
            ts = intake.timestamps(table, self.ts, store)
            if first:
                self._start()
            found = intake.fields(table, self._plan.readers, store)
            ids = intake.key_ids(table, self.key, store)
            store.grow_keys()
            assert store.clock is not None
            self._emission.check(table, store.clock)
            if self._held is None:
                taken = self._apply(table, ts, ids, found)
                self._emission.decide(store.promised, kept=True)
                return taken
            chosen = intake.chosen_rows(self._plan.masks(found), table, found)  # can every `where` be computed?
            self._filters.check(found, chosen)
            self._check_functions(table, found, chosen)
            slots, together = self._emission.steps(store.clock.unit), self._emission.ordered
            taken = self._held.add(table, ts, ids, store.latest, store.seen, slots, together)
        except Exception:
            self._take_back(first, known)
            raise
        store.note_types(found)
        self._pass(int(ts.max(initial=MIN)))
        return taken

    @property
    def _readers(self) -> list[Query]:
        """Simple queries that read what is needed of an event."""
        return [*self._plan.readers, *self._emission.queries]

    @property
    def _is_read(self) -> bool:
        """Does anybody ask for anything here?"""
        return bool(self._queries or self._emission.inner or self._emission.chosen)

    def _refuse(self, table: pa.Table) -> None:
        """Raise what `append` would of these events, other than of their order and keys; nothing is changed."""
        store, first = self._store, self._store.clock is None
        try:
            intake.timestamps(table, self.ts, store)
            if first:
                self._start()
            found = intake.fields(table, self._plan.readers, store)
            assert store.clock is not None
            self._emission.check(table, store.clock)
            chosen = intake.chosen_rows(self._plan.masks(found), table, found)
            self._filters.check(found, chosen)
            self._check_functions(table, found, chosen)
        finally:
            if first:
                self._take_back(first, store.key_count)

    def _take_back(self, first: bool, known: int) -> None:
        """A batch was refused: forget its new keys, and if it was the first one, what time is."""
        store = self._store
        if store.keys is not None:
            store.keys.forget_after(known)
        if first:
            store.clock, store.keys, self._held = None, None, None
            store.now = store.promised = MIN

    @alone
    def advance(self, ts: Any) -> None:
        """Time passes: nothing older than `ts` is to come (other than what `lateness` allows).

        Rows and keys that no window can reach any more are let go at once.
        """
        if self._store.clock is None:
            self._advanced = later_of(self._advanced, ts)
            return
        instant = self._store.clock.instant(ts, "advance")
        if self._held is None:
            self._store.promised = max(self._store.promised, instant)
        self._pass(instant)
        self._let_go()

    def _let_go(self) -> None:
        """Of rows that no window reaches any more, and of keys without rows."""
        self._store.tidy_all()
        self._forget()

    def _pass(self, instant: int) -> None:
        """Time goes on to `instant`; what waited for that is applied."""
        store, held = self._store, self._held
        if held is None:
            store.now = max(store.now, instant)
        else:
            held.now = max(held.now, instant)
            store.now = max(store.now, held.watermark)
            self._release(held)
        store.tidy(0)
        self._emission.decide(store.promised if held is None else held.watermark, kept=held is None)

    def _release(self, held: Held) -> None:
        """Apply what the watermark has passed."""
        due = held.due()
        if due is not None:
            table, ts, ids = due
            table = intake.with_missing(table, self._readers, self.ts, self.key)
            self._apply(table, ts, ids, intake.fields(table, self._plan.readers, self._store))
            held.released()

    def _forget(self) -> None:
        """Forget keys that nobody asks for any more, where they are half of all: memory follows what windows hold."""
        empty = self._store.forgettable()
        if empty is None:
            return
        needed = self._emission.needs(empty.size)
        if self._held is not None:
            needed[self._held.ids] = True
        kept = np.flatnonzero(~empty | needed)
        if 2 * kept.size <= empty.size:
            self._forget_keys(kept)

    def _forget_keys(self, kept: np.ndarray) -> None:
        """Key kept[i] is key i from now on, and there are no others."""
        assert self._store.keys is not None
        self._store.keys.keep(kept)
        self._store.renumber(kept)
        self._plan.renumber(kept)
        self._filters.forget()
        self._emission.renumber(kept)
        if self._held is not None:
            self._held.renumber(kept)

    def _apply(self, table: pa.Table, ts: np.ndarray, ids: np.ndarray, found: dict[str, Any]) -> int:
        masks = self._plan.masks(found)
        rows = intake.rows(ts, ids, found, intake.chosen_rows(masks, table, found))
        batch = self._store.grouped(rows)
        self._took(batch)
        if self._held is None:
            self._emission.check_order(ts)
            self._filters.check(found, rows.chosen)
            if not self._takes_all:
                self._check_functions(table, found, rows.chosen)
        # From here on nothing can fail.
        self._filters.changed |= self._plan.prepare(found)
        self._filters.prepare()
        self._plan.update(self._store.append(rows, batch))
        self._filters.update(rows)
        self._emission.take(table, ts, ids)
        self._store.tidy(ts.size)
        return ts.size

    def _check_functions(self, table: pa.Table, found: dict[str, Any], chosen: dict[Any, Any]) -> None:
        """Raise if a user's function does of any row; nothing is changed."""
        self._plan.check_batch(found, chosen)
        self._emission.check_functions(table)

    def _took(self, batch: Batch) -> None:
        """For those who want to know which keys a batch touches."""

    # -- answers ------------------------------------------------------------------------------------------------------

    @alone
    def lookup(self, name: str, key: Any = None, at: Any = None, exact: bool = True) -> Any:
        """The answer of one query: a scalar for one stream or one key, else Table(key, value). `at`: not now.

        With `having`: the keys that pass (a scalar that does not pass is None). exact=False: Table(key) of the keys
        that an index can not rule out, without looking at them.
        """
        query = self._known(name)
        check_flag(exact, "exact")
        if not _is_plain(query):
            return self._lookup_over_answers(query, key, at, exact)
        self._lookups += 1
        if key is not None and self.key is None:
            raise BadQuery(f'lookup("{name}", key={key!r}): this engine has no key.', 'sw.Engine(key="…")')
        if self.key is not None and key is None:
            return self._passing(query, at, exact)
        columns, present = self._answer([query], self._asked.ids(key, self.key), at)
        if len(columns[0]) == 0:
            return of_nothing(query)
        return columns[0][0].as_py() if query.having is None or present[0, 0] else None

    def _passing(self, query: Query, at: Any, exact: bool = True) -> pa.Table:
        """Table([key], value) of the keys, or the one stream, that have an event in the window and pass `having`."""
        ids = self._candidates(query, at)
        if not exact and query.having is not None:
            return pa.table(self._keyed(ids))
        columns, present = self._answer([query], ids, at)
        chosen = np.flatnonzero(present[:, 0])
        value = {own_name("value", self.key): columns[0].take(pa.array(chosen))}
        return pa.table(self._keyed(ids[chosen]) | value)

    def _candidates(self, query: Query, at: Any) -> np.ndarray:
        """The keys to look at: those that an index can not rule out, or all."""
        found = None
        guard = guard_of(query)
        if guard is not None and self._store.clock is not None:
            found = self._filters.candidates(guard, self._store.now if at is None else self._store.clock.instant(at))
        return self._asked.ids(None, self.key) if found is None else found

    @alone
    def lookup_all(self, at: Any = None) -> pa.Table:
        """All queries without `having`: one row (or one per key with an event in some window), one column per query."""
        queries = [query for query in self.queries if query.having is None and _is_plain(query)]
        self._lookups += len(queries)
        ids = self._asked.ids(None, self.key)
        columns, present = self._answer(queries, ids, at)
        names = [query.label for query in queries]
        if self.key is None:
            if self._store.clock is None:
                columns = [pa.array([of_nothing(query)]) for query in queries]
            return pa.table(dict(zip(names, columns, strict=True)))
        some = np.flatnonzero(present.any(axis=1))
        if self.key in names:
            raise BadQuery(f'query "{self.key}" has the name of the key column.', 'sw.Query(…, name="…")')
        return pa.table(self._keyed(ids[some]) | {n: c.take(some) for n, c in zip(names, columns, strict=True)})

    @alone
    def filters(self, name: str | None = None, *, at: Any = None) -> pa.Table:
        """All queries with `having` at once, or one: the keys that pass, and their values, in a type that holds all."""
        asked = [query for query in self.queries if query.having is not None and query.every is None]
        if name is not None:
            asked = [query for query in asked if query is self._known(name)]
            if not asked:
                raise BadQuery(f'query "{name}" is no filter.', f'engine.lookup("{name}"), or engine.emitted("{name}")')
        self._lookups += len(asked)
        passing = {}
        for query in asked:
            over, instant = self._asked_of(query, at)
            passing[query.label] = over._passing(over._known(query.label), instant)
        return filter_table(passing, self.key)

    @alone
    def emitted(self, name: str | None = None) -> pa.Table:
        """The ticks decided since the last call: query, tick, ts, [key], value. Until fetched they are kept.

        name: those of one query, values in its own type. The answers of a query come in order of its ticks. An error in
        a tick (an integer sum that does not fit) is raised here, once; the other ticks are there on the next call.
        """
        unfetched = isinstance(name, str) and self._emission.waiting(name)  # maybe of a query that is gone
        if name is not None and not unfetched and self._known(name).every is None:
            raise BadQuery(f'query "{name}" has no `every`, so no ticks.', f'engine.lookup("{name}")')
        return emitted_table(self._emission, name)

    def _lookup_over_answers(self, query: Query, key: Any, at: Any, exact: bool) -> Any:
        if query.every is not None:
            raise BadQuery(
                f'query "{query.label}" answers at its ticks, not on lookup.',
                "engine.emitted(), or register it without `every` too",
            )
        over, at = self._asked_of(query, at)
        return over.lookup(query.label, key, at, exact)

    def _asked_of(self, query: Query, at: Any) -> "tuple[Engine, Any]":
        """The engine whose events a query reads, this one or one inside, and the time to ask it for."""
        if query.source is None:
            return self, at
        over = self._emission.outer[query.label]
        if at is None and over._store.clock is not None:
            at = max(self._store.now, over._store.now)
        return over, at

    def _answer(self, queries: list[Query], ids: np.ndarray, at: Any) -> tuple[list[pa.Array], np.ndarray]:
        """A column per query, and which keys are in its answer."""
        store = self._store
        if store.clock is None or not queries:
            return [pa.nulls(0) for _ in queries], np.zeros((ids.size, len(queries)), bool)
        instant = store.now if at is None else store.clock.instant(at)
        simple = answering(queries)
        columns, present, short = self._asked.at(simple, ids, instant)
        if short is not None and instant < store.now:
            raise self._too_far_back(simple[short[1]], short[0], instant)
        self._plan.reconsider()
        return combine(queries, simple, columns, present)

    def _answer_each(
        self, queries: list[Query], ids: np.ndarray, instants: np.ndarray
    ) -> tuple[list[pa.Array], np.ndarray]:
        """As `_answer`, every key at a time of its own, whose events are still kept."""
        simple = answering(queries)
        columns, present, _ = self._asked.each(simple, ids, instants)
        self._plan.reconsider()
        return combine(queries, simple, columns, present)

    def _too_far_back(self, query: Query, key: int | None, instant: int) -> TooFarBack:
        """key: the one whose events are missing; None: one that is not known any more."""
        store = self._store
        assert store.clock is not None
        of = "" if store.keys is None else " of keys that are no longer known"
        if store.keys is not None and key is not None:
            of = f" of key {store.keys.column(np.array([key]))[0].as_py()!r}"
        oldest = store.clock.show(store.forgotten + 1 if key is None else store.kept_from(key))
        return TooFarBack(
            f'query "{query.title}" at {store.clock.show(instant)} needs events{of} before {oldest}, no longer kept.',
            f"ask for a later time, or register a longer window to keep more (now is {store.clock.show(store.now)})",
        )

    # -- about itself -------------------------------------------------------------------------------------------------

    @alone
    def explain(self) -> Text:
        """Which queries share what, which structure was chosen, why, and what it costs."""
        return Text(explain(self))

    def __repr__(self) -> str:
        key = "" if self.key is None else f', key="{self.key}"'
        stats = self.stats()
        said = [many(len(self._queries), "query"), many(stats["events"], "event")]
        said += [many(stats["keys"], "key")] * (self.key is not None)
        return f'<sw.Engine ts="{self.ts}"{key}: {", ".join(said)}>'

    @alone
    def stats(self) -> dict[str, Any]:
        """Counts: events, held, late, keys, kept, structures, bytes, updates, lookups …, complete_since per query."""
        held = self._held
        return {
            "events": self._store.events + (0 if held is None else held.ts.size),
            "held": 0 if held is None else held.ts.size,
            "late": 0 if held is None else held.late,
            "keys": self._store.key_count if self.key is not None else 0,
            "kept": self.kept,
            "structures": len(self._plan.groups),
            "bytes": self._store.bytes + self._plan.bytes + self._filters.bytes + self._emission.bytes,
            "updates": self._plan.updates,
            "lookups": self._lookups,
            "undelivered": self._emission.undelivered,
            "complete_since": self._complete_since(),
        }

    @property
    def kept(self) -> int:
        """Rows that windows may still ask for."""
        return int(self._store.main.arena.kept(self._store.key_count).sum()) + self._emission.kept

    def _complete_since(self) -> dict[str, Any]:
        plain = [query for query in self.queries if _is_plain(query)]
        since = self._shared.complete_since(plain, self._plan) | self._emission.complete_since()
        return {name: since[name] for name in self._queries}

    @alone
    def save(self, path: str | Path) -> None:
        """Write a snapshot; an older one at `path` is replaced in one step."""
        from swag.durable.snapshot import save

        save(self, path)

    @classmethod
    def load(cls, path: str | Path, queries: Iterable[Query] = ()) -> "Engine":
        """The engine of a snapshot. queries: those with user-defined functions, which a snapshot can not hold."""
        from swag.durable.snapshot import load

        return load(path, as_list(queries, "queries", EXAMPLE))

    # -- inside -------------------------------------------------------------------------------------------------------

    def _known(self, name: str) -> Query:
        if not isinstance(name, str) or name not in self._queries:
            names = list(self._queries)
            known = ", ".join(names[:20]) if names else "none"
            raise UnknownQuery(
                f'no query is named "{name}"; registered: {known}.',
                nearest(str(name), names) if names else "engine.register(…)",
            )
        return self._queries[name]

    def _check(self, queries: list[Query]) -> None:
        """What can be known to be wrong at registration: durations on an integer ts, structures that can not serve."""
        if self._store.clock is not None:
            for query in simple_ones(queries):
                reach(query.window, self._store.clock.unit)
        self._emission.check_queries([query for query in queries if not _is_plain(query)])
        plain = simple_ones(filter(_is_plain, queries))
        self._plan.check(plain)
        waiting = self._waiting(plain)
        if waiting is not None:
            found = intake.fields(waiting, plain, self._store)
            intake.chosen_rows([Mask(query.where) for query in plain], waiting, found)

    def _reaches(self, queries: Iterable[Query]) -> list[Any]:
        unit = None if self._store.clock is None else self._store.clock.unit
        return [reach(query.window, unit) for query in queries]

    def _waiting(self, readers: list[Query]) -> pa.Table | None:
        """The events that wait, as these queries will read them when they are due; None if there are none."""
        held = self._held
        if held is None or held.table is None or held.ts.size == 0:
            return None
        return intake.with_missing(held.table, readers, self.ts, self.key)

    def _start(self) -> None:
        """The first batch tells what time is."""
        clock = self._store.clock
        assert clock is not None
        self._check(self.queries)
        promised = MIN if self._advanced is None else clock.instant(self._advanced, "advance")
        if self.lateness is not None:
            self._held = Held(in_units(self.lateness, clock.unit))
            self._held.now = promised
            self._store.now = self._held.watermark
        else:
            self._store.now = self._store.promised = promised
        self._store.retain(self._reaches(self._plan.queries.values()))

    def _over_answers(self, algorithm: str | None = None) -> "Engine":
        """An engine for a part of this one: the answers of a query, say, are its events."""
        return type(self)(self.ts, self.key, epsilon=self._filters.epsilon, algorithm=algorithm or self.algorithm)

    def _keyed(self, ids: np.ndarray) -> dict[str, pa.Array]:
        """The column of keys, if there are any."""
        if self.key is None:
            return {}
        return {self.key: pa.nulls(0) if self._store.keys is None else self._store.keys.column(ids)}


def _is_plain(query: Query) -> bool:
    """Over events, and answered on lookup: what the plan has structures for."""
    return query.every is None and query.source is None
