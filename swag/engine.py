"""Continuously: register queries, append events, look answers up. The engine keeps what its windows can still reach."""

import threading
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import pyarrow as pa

from kernels.compile.ahead import rehearsed
from kernels.operators.numbers import EARLIEST
from swag.arguments import LARGEST, as_list, check_flag, check_key, check_name, is_option
from swag.durable import snapshot
from swag.durable.state import State, nested, part, table_from_array, table_to_array, with_arrays
from swag.errors import BadQuery, UnknownQuery, nearest
from swag.explain import Text, explain, many
from swag.first_use import of_append
from swag.live import intake
from swag.live.held import Held, later_of
from swag.live.planner import ALGORITHMS, COMPARED
from swag.query.as_json import duration_from_json, duration_to_json, queries_from_json, query_to_json
from swag.query.query import Query, check_grouping, check_names
from swag.query.reading import Reading
from swag.sql import sql
from swag.tables.answers import filter_table
from swag.tables.columns import clock_of
from swag.tables.durations import Duration, in_units, length
from swag.ticks.emitted import emitted_table
from swag.ticks.live_stream import LiveStream

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

    It owns a stream (swag/ticks/live_stream.py), the events that wait in front of it, and the lock.
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
        self._stream = LiveStream(ts, key, algorithm, epsilon)
        self._held: Held | None = None  # once there is a first event, where there is lateness
        self._advanced: Any = None  # a time given before the first event, whose type nobody knows yet

    # -- queries ------------------------------------------------------------------------------------------------------

    @alone
    def register(self, query: Query | Iterable[Query] | str) -> str | list[str]:
        """Register one query, several, or those of an SQL text; returns the name, or the names. All or none."""
        query = sql(query) if isinstance(query, str) else query
        queries = as_list(query, "queries", EXAMPLE) if isinstance(query, Iterable) else [query]
        check_names(queries, self._stream.queries)
        check_grouping(queries, self.key)
        self._stream.add(queries, self._waiting, self._unread)
        return queries[0].label if isinstance(query, Query) else [q.label for q in queries]

    @alone
    def unregister(self, name: str) -> None:
        """Forget a query, and all that is kept for it alone."""
        self._known(name)
        self._stream.remove(name)

    @property
    def queries(self) -> list[Query]:
        """Those that are registered, in the order in which they were."""
        return list(self._stream.queries.values())

    def _waiting(self, readers: list[Query]) -> pa.Table | None:
        """The events that wait, as these queries will read them when they are due; None if there are none."""
        held = self._held
        if held is None or held.waiting.count == 0:
            return None
        return intake.with_missing(held.waiting.rows.table, Reading(readers, self.ts, self.key))

    def _unread(self, readers: list[Query]) -> int:
        """Events up to this time wait without what new queries read: nobody read it when they came."""
        if self._held is None:
            return EARLIEST
        return self._held.unread(Reading(readers).columns)

    # -- events -------------------------------------------------------------------------------------------------------

    @alone
    @rehearsed(of_append)
    def append(self, events: Any) -> int:
        """Take a batch, whole or not at all; returns how many events were taken."""
        waits = self.lateness is not None or self._stream.is_ticking
        table = intake.read(events, self._stream.reading, keep=waits)
        if table.num_rows == 0:
            return 0
        first = self._stream.core.time.clock is None
        try:
            if first:
                self._start(table)
            if self._held is not None:
                return self._hold(self._held, table)
            self._stream.take(table)
        except Exception:
            if first:
                self._stream.core.restart()
                self._held = None
            raise
        self._stream.decide(self._stream.core.time.closed, kept=True)
        return table.num_rows

    def _start(self, table: pa.Table) -> None:
        """The first batch tells what time is."""
        clock, time = clock_of(table.column(self.ts), self.ts), self._stream.core.time
        self._stream.start(clock)
        promised = EARLIEST if self._advanced is None else clock.instant(self._advanced, "advance")
        if self.lateness is None:
            time.go_on(promised, promised - 1 if promised > EARLIEST else EARLIEST)
        else:
            self._held = Held(in_units(self.lateness, clock.unit))
            self._held.now = promised
            time.go_on(self._held.watermark)

    def _hold(self, held: Held, table: pa.Table) -> int:
        """Events wait until the watermark passes them."""
        self._forget_keys()
        core, emission = self._stream.core, self._stream.emission
        with core.trying(table) as batch:
            self._stream.check(batch, ordered=False)
            assert core.time.clock is not None
            slots, together = emission.steps(core.time.clock.unit), emission.ordered
            taken = held.add(batch.table, batch.ts, batch.ids, core.store.latest, core.store.seen, slots, together)
        core.dictionary.note_types(batch.fields)
        core.dictionary.note_columns(batch.table, self._stream.reading)
        self._pass(int(batch.ts.max(initial=EARLIEST)))
        return taken

    @alone
    def advance(self, ts: Any) -> None:
        """Time passes: nothing older than `ts` is to come (other than what `lateness` allows).

        Rows and keys that no window can reach any more are let go at once.
        """
        clock = self._stream.core.time.clock
        if clock is None:
            self._advanced = later_of(self._advanced, ts)
            return
        self._pass(clock.instant(ts, "advance"))
        self._stream.let_go()
        self._forget_keys()

    def _pass(self, instant: int) -> None:
        """Time goes on to `instant`; what waited for that is applied."""
        held, stream = self._held, self._stream
        if held is None:
            stream.pass_time(instant, instant - 1 if instant > EARLIEST else EARLIEST)
            return
        held.now = max(held.now, instant)
        stream.core.time.go_on(held.watermark)
        due = held.due()
        if due is not None:
            table = intake.with_missing(due[0], stream.reading)
            stream.take_known(table, *due[1:])
            held.released()
        stream.core.store.tidy(0)
        stream.decide(max(EARLIEST, held.watermark - 1), kept=False)

    def _forget_keys(self) -> None:
        """Keys that nobody asks for any more: memory follows what windows hold."""
        waiting = None if self._held is None else self._held.waiting
        kept = self._stream.forget_keys(waiting)
        if kept is not None and waiting is not None:
            waiting.renumber(kept)

    # -- answers ------------------------------------------------------------------------------------------------------

    @alone
    def lookup(self, name: str, key: Any = None, at: Any = None, exact: bool = True) -> Any:
        """The answer of one query: a scalar for one stream or one key, else Table(key, value). `at`: not now.

        With `having`: the keys that pass (a scalar that does not pass is None). exact=False: Table(key) of the keys
        that an index can not rule out, without looking at them.
        """
        query, core = self._known(name), self._stream.core
        if exact is not True:
            check_flag(exact, "exact")
        if name in core.queries:
            return core.lookup(query, key, at, exact)
        return self._stream.lookup(name, key, at, exact)

    @alone
    def lookup_all(self, at: Any = None) -> pa.Table:
        """All queries without `having`: one row (or one per key with an event in some window), one column per query."""
        return self._stream.core.table([q for q in self.queries if q.having is None and q.is_plain], at)

    @alone
    def filters(self, name: str | None = None, *, at: Any = None) -> pa.Table:
        """All queries with `having` at once, or one: the keys that pass, and their values, in a type that holds all."""
        asked = [query for query in self.queries if query.having is not None and query.every is None]
        if name is not None:
            asked = [query for query in asked if query is self._known(name)]
            if not asked:
                raise BadQuery(f'query "{name}" is no filter.', f'engine.lookup("{name}"), or engine.emitted("{name}")')
        return filter_table({query.label: self._stream.passing(query.label, at) for query in asked}, self.key)

    @alone
    def emitted(self, name: str | None = None) -> pa.Table:
        """The ticks decided since the last call: query, tick, ts, [key], value. Until fetched they are kept.

        name: those of one query, values in its own type. The answers of a query come in order of its ticks. An error in
        a tick (an integer sum that does not fit) is raised here, once; the other ticks are there on the next call.
        """
        unfetched = isinstance(name, str) and self._stream.emission.waiting(name)  # maybe of a query that is gone
        if name is not None and not unfetched and self._known(name).every is None:
            raise BadQuery(f'query "{name}" has no `every`, so no ticks.', f'engine.lookup("{name}")')
        return emitted_table(self._stream.emission, name)

    def _known(self, name: str) -> Query:
        queries = self._stream.queries
        if not isinstance(name, str) or name not in queries:
            known = ", ".join(list(queries)[:20]) if queries else "none"
            raise UnknownQuery(
                f'no query is named "{name}"; registered: {known}.',
                nearest(str(name), list(queries)) if queries else "engine.register(…)",
            )
        return queries[name]

    # -- about itself -------------------------------------------------------------------------------------------------

    @alone
    def explain(self) -> Text:
        """Which queries share what, which structure was chosen, why, and what it costs."""
        return Text(explain(self._stream, 0 if self._held is None else self._held.waiting.count))

    def __repr__(self) -> str:
        key = "" if self.key is None else f', key="{self.key}"'
        stats = self.stats()
        said = [many(len(self.queries), "query"), many(stats["events"], "event")]
        said += [many(stats["keys"], "key")] * (self.key is not None)
        return f'<sw.Engine ts="{self.ts}"{key}: {", ".join(said)}>'

    @alone
    def stats(self) -> dict[str, Any]:
        """Counts: events, held, late, keys, kept, structures, bytes, updates, lookups …, complete_since per query."""
        held, stream = self._held, self._stream
        core = stream.core
        return {
            "events": core.store.events + (0 if held is None else held.waiting.count),
            "held": 0 if held is None else held.waiting.count,
            "late": 0 if held is None else held.late,
            "keys": core.store.key_count if self.key is not None else 0,
            "kept": stream.kept,
            "structures": len(core.plan.groups),
            "bytes": stream.bytes,
            "updates": core.plan.updates,
            "lookups": core.asked,
            "undelivered": stream.emission.undelivered,
            "complete_since": stream.complete_since(),
        }

    @alone
    def save(self, path: str | Path) -> None:
        """Write a snapshot; an older one at `path` is replaced in one step."""
        snapshot.write(path, self.state())

    @classmethod
    def load(cls, path: str | Path, queries: Iterable[Query] = ()) -> "Engine":
        """The engine of a snapshot. queries: those with user-defined functions, which a snapshot can not hold."""
        given = as_list(queries, "queries", EXAMPLE)
        check_names(given)
        with snapshot.reading(path) as state:
            return cls._restored(state, given, path)

    @classmethod
    def _restored(cls, state: State, given: list[Query], path: str | Path) -> "Engine":
        header = state[0]
        engine = cls(**header["engine"], lateness=duration_from_json(header["lateness"]))
        engine._stream.add(queries_from_json(header["queries"], given, Path(path)))
        engine.restore(state)
        return engine

    def state(self) -> State:
        """As one plain value: see swag/durable/state.py."""
        core = self._stream.core
        options = {"ts": self.ts, "key": self.key, "algorithm": self.algorithm, "epsilon": core.epsilon}
        header = {
            "engine": options,
            "lateness": duration_to_json(self.lateness),
            "queries": [query_to_json(query) for query in self.queries],
        }
        held = None if self._held is None else self._held.state()
        early = {} if self._advanced is None else {"advanced": table_to_array(pa.table({"ts": [self._advanced]}))}
        return with_arrays(nested(header, {"stream": self._stream.state(), "held": held}), early)

    def restore(self, state: State) -> None:
        """An engine with the same options and queries, and no events, goes on where this state was handed over."""
        header, arrays = state
        self._stream.restore(part(state, "stream"))
        if header["held"] is not None:
            self._held = Held(0)
            self._held.restore(part(state, "held"))
        if "advanced" in arrays:
            self._advanced = table_from_array(arrays["advanced"]).column(0)[0].as_py()
