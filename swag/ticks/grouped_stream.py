"""A stream whose events are grouped in several ways at once: per card, per merchant, per (card, country), all together.

    table --> read once --> a live stream per grouping, each with keys, rows, structures and ticks of its own
                            all or none of them take a batch; they share what time it is

A live stream has one key column. Where a grouping has several, that column is one of structs, made of them on the way
in and taken apart on the way out (swag/tables/key_columns.py).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kernels.operators.numbers import EARLIEST
from swag.durable.state import State, nested, parts
from swag.errors import SwagError, UnknownQuery, nearest
from swag.live.filtered.checked_rows import Incoming
from swag.live.intake import FewEvents, ReadOnce
from swag.live.midway.kept_rows import KeptTable
from swag.live.time import Time
from swag.query.groupings import By, by_grouping, grouping_of, home_of
from swag.query.lowering import simple_ones
from swag.query.over_frames import OverFrames
from swag.query.query import Query
from swag.query.reading import Reading
from swag.query.windows import Unbounded
from swag.tables.answers import ManyAnswers, merged
from swag.tables.columns import Clock
from swag.tables.key_columns import joined, key_name
from swag.tables.waiting import TimedRows, Waiting
from swag.ticks.emission import Emission
from swag.ticks.held import Held
from swag.ticks.live_stream import LiveStream

Answering = tuple[LiveStream, list[str], list[int]]  # queries of it, and their places among others


class GroupedStream:
    """Events that come in order of time, and queries of any kind over any groupings of them.

    It owns a live stream per grouping, and the time they share. Asked of it: to `add` and `remove` queries; to `take` a
    table, whole or not at all; that time passes; the live stream that answers a query (`of`); its `state`.
    """

    def __init__(self, ts: str, default: By, algorithm: str = "auto", epsilon: float = 0.2) -> None:
        self.ts, self.default = ts, default
        self.time = Time()
        self.events = 0
        self._reading: Reading | None = None
        self._columns: frozenset[str] = frozenset()  # of the last batch, where that is known
        self.version = 0  # changes with the queries
        self._options = (algorithm, epsilon)
        self.main = self._made(default)
        self.streams: dict[By, LiveStream] = {default: self.main}
        self.queries: dict[str, Query] = {}  # as they were given
        self._where: dict[str, By] = {}  # the grouping that each reports
        self._home: dict[str, By] = {}  # and that of the events which it is answered from
        self._filters: dict[By, list[str]] | None = None  # once somebody has asked for them; and those that change
        self._changing: dict[By, list[str]] | None = None
        self._answered: tuple[int, list[str], list[Answering]] = (-1, [], [])  # at which version, and by whom
        self._follow()

    def _made(self, by: By) -> LiveStream:
        return LiveStream(self.ts, key_name(by), *self._options, time=self.time, by=by)

    # -- queries ------------------------------------------------------------------------------------------------------

    def add(self, queries: list[Query], held: Held | None = None) -> None:
        """Queries whose names are new: all or none of them. held: the events that wait in front of it."""
        added: list[tuple[By, str]] = []
        known = dict(self.streams)
        last = None if self._reading is None else self._reading.there
        self._columns = self._columns if last is None else frozenset(last)
        try:
            for by, some in by_grouping(queries, self.default).items():
                self.streams[by] = self._with(by, some, held)
                added += [(by, query.label) for query in some]
        except Exception:
            for by, name in reversed(added):
                self.streams[by].remove(name)
            self.streams = known
            raise
        self.main = self.streams[self.default]
        self.queries |= {query.label: query for query in queries}
        self._note_groupings(queries)
        self._follow()

    def _note_groupings(self, queries: list[Query]) -> None:
        self._where |= {query.label: grouping_of(query, self.default) for query in queries}
        self._home |= {query.label: home_of(query, self.default) for query in queries}

    def _with(self, by: By, queries: list[Query], held: Held | None) -> LiveStream:
        """The live stream of a grouping, with more queries. One that nobody read has missed events: it is made anew,
        unless some of its ticks are still to be fetched."""
        stream = self.streams.get(by)
        if stream is not None and self.events and by not in self.active:
            if stream.emission.undelivered or stream.emission.errors:
                stream.begin_at(self.time.now, self.events - stream.core.store.events)
            else:
                stream = None
        if stream is not None:
            return _added(stream, by, queries, held, self._columns)
        started = self._started(by, queries, held) if self.events else None
        return started or _added(self._begun(by, held), by, queries, held, self._columns)

    def _begun(self, by: By, held: Held | None = None) -> LiveStream:
        """A grouping that comes while events flow: of keys before it nothing is known, nor of those of events that wait
        without its columns."""
        stream = self._made(by)
        if self.time.clock is not None:
            stream.core.start(self.time.clock)
            if self.events:
                stream.begin_at(self.time.now, self.events)
            if held is not None and by:
                core = stream.core
                core.begin_at(max(core.store.forgotten, held.unread([], by)), core.missed)
        return stream

    def _started(self, by: By, queries: list[Query], held: Held | None) -> LiveStream | None:
        """A grouping that comes while events flow, with the rows that another one keeps; None: no other keeps all that
        it reads. What answers at ticks, or of all events there ever were, starts with the next event."""
        if not all(query.is_plain for query in queries):
            return None
        simple = simple_ones(queries)
        endless = any(isinstance(each.window, Unbounded) for each in simple)
        if endless or (held is not None and held.unread(simple, by) > EARLIEST):
            return None
        columns = Reading(simple, self.ts, *by).of_events(self._columns)
        found = [stream.core.plan.kept_table(columns) for stream in self.active.values()]
        kept = min((each for each in found if each is not None), key=lambda each: each.missing, default=None)
        if kept is None:
            return None
        try:
            return self._replayed(by, queries, held, kept)
        except SwagError:  # what it can not take of rows that are kept it need not take of those to come
            return None

    def _replayed(self, by: By, queries: list[Query], held: Held | None, kept: KeptTable) -> LiveStream:
        """A grouping that has taken the rows of another one, in order of time."""
        nobody = self._without_key(kept.table, by)
        kept = kept if nobody is None else kept.some(np.flatnonzero(~nobody))
        kept = kept.some(np.argsort(kept.ts, kind="stable"))
        kept = kept.in_certain_order(self._begun(by).core.grouping.ids(joined(kept.table, by)))
        stream = self._begun(by)
        stream.core.begin_at(kept.missing, self.events - kept.ts.size)
        _added(stream, by, queries, held, self._columns)
        table = joined(stream.core.reading.extended(kept.table), by)
        stream.core.would_refuse(table)
        stream.core.take(table, kept.ts, stream.core.grouping.ids(table))
        return stream

    def remove(self, name: str) -> None:
        by = self._home.pop(name)
        del self.queries[name], self._where[name]
        self.streams[by].remove(name)
        if by != self.default and not self.streams[by].is_read and not self.streams[by].emission.undelivered:
            del self.streams[by]
        self._follow()

    def _follow(self) -> None:
        """What follows from the queries: the streams that have any (else the default one), whether one of them answers
        at ticks, or over the answers of others; who takes events: the cores by themselves where nobody does so."""
        read = {by: stream for by, stream in self.streams.items() if stream.is_read}
        self.active = read or {self.default: self.main}
        self.is_ticking = any(stream.is_ticking for stream in self.active.values())
        self._takers = [stream if stream.is_ticking else stream.core for stream in self.active.values()]
        self._reading = self._filters = self._changing = None
        self.version += 1

    @property
    def reading(self) -> Reading:
        """What is read of an event. Made when the next one comes: thousands of queries may be registered before."""
        if self._reading is None:
            self._reading = self._read()
        return self._reading

    def _read(self) -> Reading:
        """Of all groupings together."""
        readings = [stream.reading for stream in self.active.values()]
        keys = dict.fromkeys(name for by in self.active for name in by)
        return Reading([query for each in readings for query in each.queries], self.ts, *keys)

    @property
    def filters(self) -> dict[By, list[str]]:
        """The names of those that are asked who passes, by their grouping."""
        if self._filters is None:
            self._filters = self._grouped(lambda query: query.having is not None and not query.at_ticks)
        return self._filters

    @property
    def changing(self) -> dict[By, list[str]]:
        """Those of which it is told what has changed: the same, and those over frames."""
        if self._changing is None:
            framed = self._grouped(lambda query: isinstance(query, OverFrames))
            groupings = dict.fromkeys((*self.filters, *framed))
            self._changing = {by: self.filters.get(by, []) + framed.get(by, []) for by in groupings}
        return self._changing

    def _grouped(self, chosen: Callable[[Query], bool]) -> dict[By, list[str]]:
        """The names of some queries, by their grouping."""
        found: dict[By, list[str]] = {}
        for name, query in self.queries.items():
            if chosen(query):
                found.setdefault(self._where[name], []).append(name)
        return found

    def filtered(self, names: list[str], at: Any) -> ManyAnswers:
        """Who passes which of these, which are of one grouping."""
        return self._of_all(names, lambda stream, some: stream.filtered(some, at))

    def changes(self, names: list[str]) -> ManyAnswers:
        """Who began or ceased to pass since it was last told."""
        return self._of_all(names, lambda stream, some: stream.changes(some))

    def tell(self, names: list[str]) -> None:
        """What `changes` gave was told."""
        for stream, own, _ in self._streams_of(names):
            stream.tell(own)

    def _of_all(self, names: list[str], ask: Callable[[LiveStream, list[str]], ManyAnswers]) -> ManyAnswers:
        found = [(places, ask(stream, own)) for stream, own, places in self._streams_of(names)]
        return found[0][1] if len(found) == 1 else merged(names, found)

    def _streams_of(self, names: list[str]) -> "list[Answering]":
        """The live streams that answer queries of one grouping, each with its own, and their places."""
        version, known, answered = self._answered
        if version != self.version or known != names:
            found: dict[int, Answering] = {}
            for place, name in enumerate(names):
                stream = self.of(name)
                _, own, places = found.setdefault(id(stream), (stream, [], []))
                own.append(name)
                places.append(place)
            answered = list(found.values()) or [(self.main, [], [])]
            self._answered = self.version, names, answered
        return answered

    def of(self, name: str) -> LiveStream:
        """The live stream that answers a query."""
        return self.streams[self._home[name]]

    def grouping(self, name: str) -> By:
        """The key columns that a query reports."""
        return self._where[name]

    def home(self, name: str) -> By:
        """Those by which the events are grouped that it is answered from."""
        return self._home[name]

    def known(self, name: Any) -> Query:
        """The query of this name; raises if there is none."""
        if isinstance(name, str) and name in self.queries:
            return self.queries[name]
        meant, known = getattr(name, "label", str(name)), list(self.queries)
        if meant in known:
            raise UnknownQuery("a query is asked for by its name.", repr(meant))
        there = f"registered: {', '.join(known[:20]) or 'none'}"
        hint = nearest(str(name), known) if known else "engine.register(…)"
        raise UnknownQuery(f'no query is named "{name}"; {there}.', hint)

    @property
    def emissions(self) -> dict[By, Emission]:
        """Who may have ticks for somebody: of each grouping with queries, or that had some."""
        return {
            by: stream.emission
            for by, stream in self.streams.items()
            if by in self.active or stream.emission.undelivered or stream.emission.errors
        }

    def emission(self, by: By) -> Emission:
        """That of one grouping."""
        return self.streams[by].emission

    def key_types(self, by: By) -> list[pa.DataType]:
        """Of the key columns of a grouping; null as long as no key has come."""
        if by in self.streams:
            return self.streams[by].core.key_types
        inside = (stream.emission.key_types for stream in self.streams.values())
        return next((types[by] for types in inside if by in types), [pa.null()] * len(by))

    # -- events -------------------------------------------------------------------------------------------------------

    def start(self, clock: Clock) -> None:
        """The first batch tells what time is; raises if a query does not go with that."""
        try:
            for stream in self.streams.values():
                stream.start(clock)
        except SwagError:
            self.restart()
            raise

    def restart(self) -> None:
        """The first batch was refused: nobody knows what time is again."""
        for stream in self.streams.values():
            stream.core.restart()

    def take(self, events: pa.Table | FewEvents) -> int:
        """Events in order, with all that `reading` asks for: whole or not at all. Returns how many they are."""
        self.forget_keys()
        batches = self._tried(events, ordered=True)
        self.apply(batches)
        if self.is_ticking:
            self.decide(self.time.closed, kept=True)
        return batches[0].ts.size

    @contextmanager
    def trying(self, table: pa.Table, ordered: bool = False) -> Iterator[list[Incoming]]:
        """A batch as each grouping reads it; if anything inside raises, new keys are taken back. ordered: it is to be
        applied right away, so that its order is looked at, too."""
        batches = self._tried(table, ordered)
        try:
            yield batches
        except Exception:
            self._take_back(batches)
            raise

    def _tried(self, events: pa.Table | FewEvents, ordered: bool) -> list[Incoming]:
        """All of its streams check a batch before any takes it: what is wrong with it is raised."""
        assert self.time.clock is not None
        once = events if isinstance(events, FewEvents) else ReadOnce(events, self.ts, self.time.clock)
        batches: list[Incoming] = []
        try:
            for (by, stream), taker in zip(self.active.items(), self._takers, strict=True):
                own = joined(once.table, by) if len(by) > 1 and taker is stream else None
                batches.append(stream.core.read(own, once))
                taker.check(batches[-1], ordered=ordered)
        except Exception:
            self._take_back(batches)
            raise
        return batches

    def _take_back(self, batches: list[Incoming]) -> None:
        for stream, batch in zip(self.active.values(), batches, strict=False):
            stream.core.take_back(batch.known)

    def apply(self, batches: list[Incoming]) -> None:
        """A batch that was checked, as each grouping reads it."""
        for taker, batch in zip(self._takers, batches, strict=True):
            taker.apply(batch)
        self.events += batches[0].ts.size

    def take_known(self, rows: TimedRows) -> None:
        """Rows that were checked when they came, and have waited since. Their keys are known where there is one
        grouping; else they are numbered again. A grouping that came later does not know rows without its columns."""
        for by, stream in self.active.items():
            table, ts, ids = rows
            if not ids.size:
                missing = self._without_key(table, by)
                if missing is not None:
                    there = np.flatnonzero(~missing)
                    table, ts = table.take(pa.array(there)), ts[there]
                    if ts.size == 0:
                        continue
                table = joined(table, by)
                ids = stream.core.grouping.ids(table)
            stream.take_known(joined(table, by), ts, ids)
        self.events += rows.ts.size

    def _without_key(self, table: pa.Table, by: By) -> np.ndarray | None:
        missing = [np.asarray(pc.is_null(table.column(name))) for name in by if table.column(name).null_count]
        return np.logical_or.reduce(missing) if missing else None

    def pass_time(self, now: int, closed: int) -> None:
        """Time goes on to `now`, and every event up to `closed` has come: ticks are decided."""
        for stream in self.active.values():
            stream.pass_time(now, closed)

    def decide(self, closed: int, kept: bool) -> None:
        for stream in self.active.values():
            stream.decide(closed, kept)

    # -- letting go ---------------------------------------------------------------------------------------------------

    def tidy(self) -> None:
        """Let go of some rows that no window reaches."""
        for stream in self.active.values():
            stream.core.grouping.tidy(0)

    def forget_keys(self, waiting: Waiting | None = None) -> None:
        """Forget keys that nobody asks for any more, where they are half of all. waiting: rows that are still to come,
        by the numbers of their keys where there is one grouping."""
        for stream in self.active.values():
            kept = stream.forget_keys(waiting) if stream.core.store.emptied else None
            if kept is not None and waiting is not None:
                waiting.renumber(kept)

    def let_go(self) -> None:
        for stream in self.active.values():
            stream.let_go()

    # -- about itself -------------------------------------------------------------------------------------------------

    @property
    def every_stream(self) -> list[LiveStream]:
        return list(self.streams.values())

    @property
    def parts(self) -> "list[tuple[GroupedStream, int]]":
        """The streams that it is made of, itself first, and how many events wait in front of each."""
        return [(self, 0)]

    @property
    def kept(self) -> int:
        return sum(stream.kept for stream in self.streams.values())

    @property
    def bytes(self) -> int:
        return sum(stream.bytes for stream in self.streams.values())

    def complete_since(self) -> dict[str, Any]:
        """Per query: None if complete from the first event, else the time since which its window is all kept."""
        since: dict[str, Any] = {}
        for stream in self.streams.values():
            since |= stream.complete_since()
        return {name: since[name] for name in self.queries}

    def state(self) -> State:
        header = {"groupings": [list(by) for by in self.streams], "events": self.events}
        return nested(header, {"streams": [stream.state() for stream in self.streams.values()]})

    def restore(self, state: State) -> None:
        """Its queries have been added. What older files hold is the state of one live stream."""
        if "groupings" not in state[0]:
            self.main.restore(state)
            self.events = self.main.core.store.events
            return
        self.events = state[0]["events"]
        saved = dict(zip((tuple(by) for by in state[0]["groupings"]), parts(state, "streams"), strict=True))
        if not self.streams.keys() <= saved.keys():
            raise ValueError(f"groupings {list(saved)} were saved, of queries by {list(self.streams)}")
        self.streams |= {by: self._made(by) for by in saved if by not in self.streams}  # whose ticks nobody has fetched
        for by, stream in self.streams.items():
            stream.restore(saved[by])
        self.streams = {by: self.streams[by] for by in saved}
        self._follow()


def _added(stream: LiveStream, by: By, queries: list[Query], held: Held | None, columns: frozenset[str]) -> LiveStream:
    """A live stream, with more queries. columns: those that events have, where that is known."""
    stream.core.plan.names = stream.core.plan.names.seen(columns)
    if held is None:
        stream.add(queries)
    else:
        stream.add(queries, partial(held.as_read, ts=stream.ts, by=by), partial(held.unread, by=by))
    return stream
