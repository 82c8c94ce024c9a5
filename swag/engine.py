"""Continuously: register queries, append events, look answers up. The engine keeps what its windows can still reach."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

from kernels.compile.ahead import rehearsed
from swag.arguments import LARGEST, as_list, check_flag, check_name, is_option, key_columns
from swag.durable import snapshot
from swag.durable.state import State, nested, part
from swag.errors import BadQuery, nearest
from swag.explain import Text, explain, many
from swag.features import Features
from swag.first_use import of_append
from swag.live import intake
from swag.live.planner import ALGORITHMS, COMPARED
from swag.live.turns import Turns, alone, beside, require_alone
from swag.query.as_json import duration_from_json, duration_to_json, queries_from_json, query_to_json
from swag.query.groupings import By, check_apart, grouping_of, levels, one_or_several, shown_by
from swag.query.over_frames import OverFrames
from swag.query.query import Query, check_names
from swag.sql import to_register
from swag.sql.places import placed
from swag.tables.answers import own_name, pieces_table
from swag.tables.key_columns import apart
from swag.tables.times.durations import Duration, length
from swag.tables.wide_rows import Entities
from swag.ticks.arrivals import Arrivals
from swag.ticks.emitted import emitted_table
from swag.ticks.grouped_stream import GroupedStream
from swag.ticks.in_place import InPlaceStream
from swag.ticks.live_stream import LiveStream
from swag.ticks.other_streams import OtherStreams

EXAMPLE = '[sw.Query(sw.sum("volume"), sw.Range("5m"))]'


class Engine:
    """Answers any registered window, by rows or by time, ending now or in the past, on lookup.

    ts, key: names of columns; a key may have several, no key is one stream. A query may be grouped otherwise (`by`);
    all groupings share intake, time, order and lateness. lateness: how far out of order events may come. hold: False
    applies them as they come, late ones in their place. epsilon: how far off the candidates of an index over keys may
    be (a smaller one takes more memory and checks fewer keys). algorithm: "auto", or one of
    swag.live.planner.ALGORITHMS for every group that it can serve.

    With `lateness` answers are as of the watermark, `lateness` before the latest time: all that it has passed is
    applied, so windows are whole. With hold=False they are as of the latest time, and hold what has come so far. Any
    number of threads may use one engine: lookups run beside each other, and see every batch whole.

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

    It owns a stream (swag/ticks/grouped_stream.py), the events that wait in front of it, and who may use it when.
    """

    def __init__(
        self,
        ts: str = "ts",
        key: str | Iterable[str] | None = None,
        lateness: Duration | None = None,
        hold: bool = True,
        epsilon: float = 0.2,
        algorithm: str = "auto",
    ) -> None:
        check_name(ts, "ts", 'sw.Engine(ts="ts")')
        by = key_columns(key, "key", 'sw.Engine(key="symbol")')
        if ts in by:
            raise BadQuery(f'key={key!r}: "{ts}" is the time.', 'sw.Engine(key="symbol")')
        if not is_option(algorithm, ALGORITHMS):
            raise BadQuery(
                f'algorithm="{algorithm}" is none of {", ".join(ALGORITHMS)}.',
                f"algorithm={nearest(str(algorithm), list(ALGORITHMS)) or ALGORITHMS[0]}",
            )
        if algorithm in COMPARED and by:
            raise BadQuery(
                f'algorithm="{algorithm}" is for comparison, on one stream; this engine has key={key!r}.',
                'algorithm="auto"',
            )
        self.ts, self.algorithm, self.lateness, self.hold = ts, algorithm, lateness, hold
        self.key = one_or_several(by)
        if lateness is not None and length(lateness, "lateness") > LARGEST:
            raise BadQuery(f"lateness={lateness!r} does not fit int64.", 'lateness="10s"')
        self._check_hold()
        self.turns = Turns(shared=algorithm not in COMPARED)
        kind = GroupedStream if hold else InPlaceStream
        self._streams, self._epsilon = kind(ts, by, algorithm, epsilon), epsilon
        self._features = Features(self._streams)
        self._arrivals = Arrivals(self._streams, lateness, hold)
        self._others = OtherStreams(self._streams, self._arrivals)

    # -- queries ------------------------------------------------------------------------------------------------------

    @alone
    def register(self, query: Query | Iterable[Query] | str) -> str | list[str]:
        """Register one query, several, or those of an SQL text; returns the name, or the names. All or none.

        A statement may read the answers of another by its name, as a stream: FROM the_name [ROWS 3].
        """
        with placed(query):
            given = to_register(query, self.ts, self._streams.queries) if isinstance(query, str) else query
            return self._register(given)

    def _register(self, given: Any) -> str | list[str]:
        queries: list[Any] = as_list(given, "queries", EXAMPLE) if isinstance(given, Iterable) else [given]
        check_names(queries, self._streams.queries, also=(OverFrames,))
        queries = [each.named() if isinstance(each, OverFrames) else each for each in queries]
        for each in queries:
            self._check_grouping(each)
        check_apart(queries, self.ts, self._streams.default, self._streams.queries, self._streams.streams)
        self._others.check(queries)
        self._arrivals.add(queries)
        self._others.note(queries)
        return queries[0].label if isinstance(given, Query | OverFrames) else [q.label for q in queries]

    def _check_hold(self) -> None:
        """Refuse hold=False without `lateness`, or with an algorithm that takes events in order only."""
        check_flag(self.hold, "hold")
        if self.hold:
            return
        if self.lateness is None:
            raise BadQuery(
                "hold=False puts late events into their place, but without `lateness` none may be late.",
                'sw.Engine(lateness="10s", hold=False)',
            )
        if self.algorithm in COMPARED:
            raise BadQuery(
                f'algorithm="{self.algorithm}" is for comparison, over events that come in order, not hold=False.',
                'algorithm="auto"',
            )

    def _check_grouping(self, query: Query) -> None:
        """Refuse a query that is grouped by the time, or by any key where the engine's algorithm knows one stream."""
        by = grouping_of(query, self._streams.default)
        if self.ts in by:
            raise BadQuery(f'query "{query.label}" groups by "{self.ts}", which is the time.', 'by="…"')
        if self.algorithm in COMPARED and by:
            raise BadQuery(
                f'query "{query.label}" groups by {shown_by(by)}; algorithm="{self.algorithm}" knows one stream.',
                'algorithm="auto"',
            )

    @alone
    def unregister(self, name: str) -> None:
        """Forget a query, and all that is kept for it alone."""
        query = self._known(name)
        reader = next((each.label for each in self.queries if query in levels(each.source)), None)
        reader = reader or self._streams.of(name).emission.contained_in(name)
        if reader is not None:
            raise BadQuery(f'query "{name}" is read by "{reader}".', f'engine.unregister("{reader}") first')
        self._arrivals.remove(name)
        self._others.forget()

    @property
    def queries(self) -> list[Query]:
        """Those that are registered, in the order in which they were."""
        return list(self._streams.queries.values())

    @property
    def _stream(self) -> LiveStream:
        """That of the default grouping."""
        return self._streams.main

    # -- events -------------------------------------------------------------------------------------------------------

    @alone
    @rehearsed(of_append)
    def append(self, events: Any, *, stream: str | None = None) -> int:
        """Take a batch, whole or not at all; returns how many events were taken.

        stream: the name of another stream, which frames are filled from (FILL FROM). It has an order of its own. The
        name by which queries read events means the same as none: those are the engine's own.
        """
        if stream is not None and not self._others.is_own(stream):
            return self._others.take(stream, events)
        streams, clock = self._streams, self._streams.time.clock
        if self.lateness is None and clock is not None and not streams.is_ticking:
            few = intake.few_events(events, streams.reading, self.ts, clock)
            if few is not None:
                return streams.take(few)
        waits = self.lateness is not None and self.hold
        table = intake.read(events, streams.reading, keep=waits or streams.is_ticking)
        if table.num_rows == 0:
            return 0
        return self._arrivals.take(table)

    @alone
    def advance(self, ts: Any) -> None:
        """Time passes: nothing older than `ts` is to come (other than what `lateness` allows).

        Rows and keys that no window can reach any more are let go at once.
        """
        self._arrivals.advance(ts)
        if self._streams.is_ticking:
            self._others.advance(ts)

    # -- answers ------------------------------------------------------------------------------------------------------

    @beside
    def lookup(self, name: str, key: Any = None, at: Any = None, exact: bool = True) -> Any:
        """The answer of one query: a scalar for one stream or one key, else Table(key, value). `at`: not now.

        With `having`: the keys that pass (a scalar that does not pass is None). exact=False: Table(key) of the keys
        that an index can not rule out, without looking at them.
        """
        query = self._known(name)
        if exact is not True:
            check_flag(exact, "exact")
        if query.having is not None:
            require_alone()  # indexes over keys may have to be made
        stream = self._streams.of(name)
        answer = (
            stream.lookup(name, key, at, exact)
            if not query.is_plain
            else stream.core.lookup(stream.queries[name], key, at, exact)
        )
        by = self._streams.grouping(name)
        return apart(answer, by) if len(by) > 1 and isinstance(answer, pa.Table) else answer

    @beside
    def lookup_all(self, at: Any = None, by: str | Iterable[str] | None = None) -> pa.Table:
        """All queries without `having`: one row (or one per key with an event in some window), one column per query.

        by: those of another grouping than the engine's own.
        """
        columns = self._streams.default if by is None else key_columns(by, "by", 'lookup_all(by="card")')
        stream = self._streams.streams.get(columns)
        if stream is None:
            known = "; ".join(shown_by(each) for each in self._streams.streams)
            raise BadQuery(f"no query groups by {shown_by(columns)}; there is: {known}.", "engine.lookup_all(by=…)")
        asked = [q for q in stream.queries.values() if q.having is None and q.is_plain]
        return apart(stream.core.table(asked, at), columns)

    @alone
    def filters(self, name: str | None = None, *, at: Any = None) -> pa.Table:
        """All queries with `having` at once, or one: the keys that pass, and their values, in a type that holds all."""
        asked = self._filters(name)
        parts = {by: self._streams.filtered(some, at) for by, some in asked.items()}
        return pieces_table(parts, self._key_types(asked), [], [], "filters")

    @alone
    def changes(self, name: str | None = None) -> pa.Table:
        """What filters(name) gives otherwise than when last asked here: query, [key], ts, value, passing.

        It is the net difference: who began and ceased again in between is not in it. A row is there also for what time
        alone has changed, as events leave windows.

        passing: has it begun or ceased? value: the answer now, null where no event is left in the window. ts: the first
        instant from which on the answer has passed (or not) at every instant up to now, as of all events that have
        come: that of an event, or the one at which a window let go of one. It is not before the last call, nor before
        the query was registered; what was there before the first call is told as far back as rows were kept.

        Queries over the answers of others (`source`) are compared as a whole, and their ts is that of the call. With
        `lateness`, all is as of the watermark.
        """
        streams, asked = self._streams, self._filters(name, self._streams.changing)
        parts = {by: streams.changes(some) for by, some in asked.items()}
        types = self._key_types(asked)
        keys = [column for by in types for column in by]
        clock = streams.time.clock
        front = [(own_name(self.ts, *keys), clock.type if clock else pa.int64())]
        table = pieces_table(parts, types, front, [(own_name("passing", self.ts, *keys), pa.bool_())], "changes")
        for some in asked.values():
            streams.tell(some)
        return table

    def _filters(self, name: str | None, known: dict[By, list[str]] | None = None) -> dict[By, list[str]]:
        """The names of all queries with `having`, or of one, by their grouping. known: those that may be asked for."""
        filters = self._streams.filters if known is None else known
        if name is None:
            return filters or {self._streams.default: []}
        by = self._streams.grouping(self._known(name).label)
        if name not in filters.get(by, []):
            raise BadQuery(f'query "{name}" is no filter.', f'engine.lookup("{name}"), or engine.emitted("{name}")')
        return {by: [name]}

    def _key_types(self, groupings: Iterable[By]) -> dict[By, list[pa.DataType]]:
        return {by: self._streams.key_types(by) for by in groupings}

    @alone
    def emitted(self, name: str | None = None) -> pa.Table:
        """The ticks decided since the last call: query, tick, ts, [key], value. Until fetched they are kept.

        name: those of one query, values in its own type. The answers of a query come in order of its ticks. An error in
        a tick (an integer sum that does not fit) is raised here, once; the other ticks are there on the next call.
        """
        emissions = self._streams.emissions
        if isinstance(name, str) and isinstance(self._streams.queries.get(name), OverFrames):
            return self._streams.of(name).frames.emitted(name)
        if name is not None:
            waiting = {by: each for by, each in emissions.items() if isinstance(name, str) and each.waiting(name)}
            if not waiting and not self._known(name).at_ticks:  # maybe of a query that is gone
                raise BadQuery(f'query "{name}" has no `every`, so no ticks.', f'engine.lookup("{name}")')
            by = next(iter(waiting)) if waiting else self._streams.home(name)
            emissions = {by: self._streams.emission(by)}
        asked = self._streams.grouping(name) if name in self._streams.queries else None
        return emitted_table(emissions, name, asked)

    @alone
    def refused(self) -> pa.Table:
        """The events that came too late since the last call, with the reason; until fetched, the last million are kept.

        Their columns: ts, key, and what queries read of them.
        """
        streams = self._streams
        known = {name: kind for each in streams.active.values() for name, kind in each.core.dictionary.types.items()}
        for by, stream in streams.active.items():
            known |= dict(zip(by, stream.core.key_types, strict=False))
        if streams.time.clock is not None:
            known[self.ts] = streams.time.clock.type
        return self._arrivals.refused.hand_out({name: known.get(name, pa.null()) for name in streams.reading.columns})

    def features(self, entities: Any, at: Any = None, queries: Iterable[str] | None = None) -> pa.Table:
        """All features of some keys: the columns of `entities`, one row each, then a column per query.

        entities: a table with key columns, e.g. {"card": ["c1"], "merchant": ["m7"]}. Every query without `having` and
        `every` is answered whose key columns are there, whatever its grouping; queries: names of those to answer, which
        may have `having` (null where it does not hold). at: a time, one for each entity, or sw.col("ts"), a column of
        the entities; None: now. A key that is not known, or null, has counts of 0 and nulls.

        >>> import swag as sw
        >>> engine = sw.Engine(key="card")
        >>> engine.register([sw.Query(sw.sum("amount"), sw.Range(60), name="spent"),
        ...                  sw.Query(sw.count(), sw.Range(60), name="sales", by="shop")])
        ['spent', 'sales']
        >>> engine.append({"ts": [1, 2], "card": ["a", "b"], "shop": ["x", "x"], "amount": [5.0, 7.0]})
        2
        >>> engine.features({"card": ["b", "?"], "shop": ["x", "x"]}).to_pylist()[0]
        {'card': 'b', 'shop': 'x', 'spent': 7.0, 'sales': 2}
        """
        names = None if queries is None else as_list(queries, "queries", 'queries=["spent"]')
        return self._features_of(Entities(entities), at, names)

    @beside
    def _features_of(self, entities: Entities, at: Any, names: list[str] | None) -> pa.Table:
        """What users hand in may be readable once only, so it has been read by now: this may run twice."""
        return self._features.of(entities, at, names)

    def _known(self, name: str) -> Query:
        return self._streams.known(name)

    # -- about itself -------------------------------------------------------------------------------------------------

    @alone
    def explain(self) -> Text:
        """Which queries share what, which structure was chosen, why, and what it costs."""
        held = self._arrivals.waiting
        parts = [explain(each.active, held + waits, each.events) for each, waits in self._streams.parts]
        return Text("\n\nonce events have waited:\n".join(parts))

    def __repr__(self) -> str:
        key = "" if self.key is None else f", key={quoted(self.key)}"
        stats = self.stats()
        said = [many(len(self.queries), "query"), many(stats["events"], "event")]
        said += [many(stats["keys"], "key")] * bool(self._streams.default)
        said += [many(len(stats["groupings"]), "grouping")] * (len(stats["groupings"]) > 1)
        return f'<sw.Engine ts="{self.ts}"{key}: {", ".join(said)}>'

    @alone
    def stats(self) -> dict[str, Any]:
        """Counts: events, held, late, keys, kept, structures, bytes, updates, lookups …, complete_since per query.

        keys: of the engine's own grouping; groupings: the keys of each, and what is kept for it, by its key columns.
        """
        streams, held = self._streams, self._arrivals.waiting
        cores = [stream.core for stream in streams.every_stream]
        return {
            "events": streams.events + held,
            "held": held + sum(waits for _, waits in streams.parts),
            "late": self._arrivals.refused.count,
            "keys": streams.main.core.store.key_count if streams.default else 0,
            "kept": streams.kept,
            "structures": sum(len(core.plan.groups) for core in cores),
            "bytes": streams.bytes,
            "updates": sum(core.plan.updates for core in cores),
            "lookups": sum(core.asked for core in cores),
            "undelivered": sum(each.emission.undelivered + each.frames.undelivered for each in streams.every_stream),
            "groupings": _groupings(streams),
            "complete_since": streams.complete_since(),
        }

    @alone
    def save(self, path: str | Path) -> None:
        """Write a snapshot; an older one at `path` is replaced in one step."""
        snapshot.write(path, self.state())

    @classmethod
    def load(cls, path: str | Path, queries: Iterable[Query] = ()) -> "Engine":
        """The engine of a snapshot. queries: those with user-defined functions, which a snapshot can not hold."""
        given = as_list(queries, "queries", EXAMPLE)
        check_names(given, also=(OverFrames,))
        with snapshot.reading(path) as state:
            return cls._restored(state, given, path)

    @classmethod
    def _restored(cls, state: State, given: list[Query], path: str | Path) -> "Engine":
        header = state[0]
        engine = cls(**header["engine"], lateness=duration_from_json(header["lateness"]))
        engine._streams.add(queries_from_json(header["queries"], given, Path(path)))
        engine.restore(state)
        return engine

    def state(self) -> State:
        """As one plain value: see swag/durable/state.py."""
        options = {"ts": self.ts, "key": self.key, "algorithm": self.algorithm, "epsilon": self._epsilon}
        options |= {} if self.hold else {"hold": False}
        header = {
            "engine": options,
            "lateness": duration_to_json(self.lateness),
            "queries": [query_to_json(query) for query in self.queries],
        }
        others = self._others.state() if self._others.now else None
        return nested(header, {"stream": self._streams.state(), "arrivals": self._arrivals.state(), "others": others})

    def restore(self, state: State) -> None:
        """An engine with the same options and queries, and no events, goes on where this state was handed over."""
        self._streams.restore(part(state, "stream"))
        self._arrivals.restore(part(state, "arrivals") if "arrivals" in state[0] else state)
        if state[0].get("others") is not None:
            self._others.restore(part(state, "others"))


def _groupings(streams: GroupedStream) -> dict[By, dict[str, int]]:
    """About each: its queries, keys, and what is kept for it."""
    found: dict[By, dict[str, int]] = {}
    for each, _ in streams.parts:
        for by, stream in each.active.items():
            about = found.setdefault(by, {"queries": 0, "keys": 0, "kept": 0})
            about["queries"] += len(stream.queries)
            about["keys"] = max(about["keys"], stream.core.store.key_count if by else 0)
            about["kept"] += stream.kept
    return found


def quoted(key: Any) -> str:
    """The name of a column, or a tuple of several, as one writes it."""
    return f'"{key}"' if isinstance(key, str) else f"({', '.join(map(quoted, key))})"
