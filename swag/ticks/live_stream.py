"""A stream of events with all its queries: a core that answers on lookup, and an emission that answers at ticks.

An engine is such a stream with rows that wait in front of it. Streams inside of others, and Spark's shards, are such
streams as they are: their events come in order.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from kernels.operators.numbers import EARLIEST
from swag.durable.state import State, nested, part
from swag.errors import BadQuery, SwagError
from swag.live.core import Core
from swag.live.filtered.checked_rows import Incoming
from swag.live.intake import ReadOnce, check_there, check_types
from swag.live.time import Time
from swag.query.lowering import simple_ones
from swag.query.over_frames import OverFrames
from swag.query.query import Query
from swag.query.reading import Reading
from swag.tables.answers import ManyAnswers, answers_of, merged
from swag.tables.columns import Clock, clock_of, to_arrow
from swag.tables.key_columns import key_name
from swag.tables.waiting import Waiting
from swag.ticks.emission import Emission
from swag.ticks.frame_queries import FrameQueries
from swag.ticks.told import Told


class LiveStream:
    """Events that come in order of time, and queries of any kind.

    It owns a core and an emission, and keeps them in step. Asked of it: `add` and `remove` queries; to `take` a table,
    whole or not at all; that time passes (`pass_time`), which decides ticks; answers; its `state`.
    """

    def __init__(
        self, ts: str, key: str | None, algorithm: str = "auto", epsilon: float = 0.2, time: Time | None = None,
        by: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        """time: that of a stream which is grouped in other ways, too. by: the columns of a key of several, which are
        one here; a batch may come without that one where only the core reads it."""
        self.ts, self.key = ts, key
        self.core = Core(ts, key, algorithm, epsilon, time=time, by=by)
        kind = type(self)  # not self: in a cycle it would stay until the garbage collector comes by
        own = by or (() if key is None else (key,))
        self.emission = Emission(self.core, own, lambda by: _inside(kind, ts, by, algorithm, epsilon))
        self.frames = FrameQueries(self.core, own)
        self.queries: dict[str, Query] = {}
        self._told = Told()  # of queries that are compared as a whole
        self._parted: tuple[list[str], tuple[list[str], list[int], list[int]]] | None = None  # filters, as last asked
        self._read_for: list[Reading] = []
        self._reading = Reading([], ts, key)
        self._typed: Reading | None = None  # one whose columns are all of a known type

    # -- queries ------------------------------------------------------------------------------------------------------

    def add(
        self,
        queries: list[Query],
        waiting: Callable[[list[Query]], pa.Table | None] = lambda readers: None,
        unread: Callable[[list[Query]], int] = lambda readers: EARLIEST,
    ) -> None:
        """Queries whose names are new: all or none of them.

        waiting: the events that wait in front of this stream, with what some queries read of them. unread: up to which
        time some of those lack it.
        """
        plain = [query for query in queries if query.is_plain]
        framed = [query for query in queries if isinstance(query, OverFrames)]
        others = [query for query in queries if not query.is_plain and not isinstance(query, OverFrames)]
        self.check_queries(queries, waiting)
        flowing = self.core.flowing or waiting([]) is not None
        self._add_emitting(others, flowing, waiting, unread)
        for each in framed:
            self.frames.add(each, flowing, unread(each.readers))
        self.queries |= {query.label: query for query in queries}
        self._parted = None
        self.core.add(plain, flowing, lambda query: unread([query]))

    def _add_emitting(self, queries: list[Query], flowing: bool, waiting: Any, unread: Any) -> None:
        """Queries that answer at ticks, or over the answers of others: all or none of them."""
        added: list[Query] = []
        try:
            for query in queries:
                self.emission.add([query], flowing)
                added.append(query)
                self.emission.note_unread(query, unread(self.emission.queries))
            table = waiting([*self.core.reading.queries, *self.emission.queries]) if queries else None
            if table is not None and self.core.time.clock is not None:
                self.emission.check(table, self.core.time.clock)
        except Exception:
            for query in reversed(added):
                self.emission.remove(query)
            raise

    def check_queries(
        self, queries: Iterable[Query], waiting: Callable[[list[Query]], pa.Table | None] = lambda readers: None
    ) -> None:
        """What can be known to be wrong at registration: durations on an integer ts, structures that can not serve."""
        framed = [query for query in queries if isinstance(query, OverFrames)]
        for each in framed:
            each.check_by(self.frames.by)
        check_there(self.core.columns, Reading(reader for each in framed for reader in each.readers))
        queries = [query for query in queries if not isinstance(query, OverFrames)]
        over_events = [query for query in queries if query.source is None]
        check_there(self.core.columns, Reading(simple_ones(over_events)))
        self.emission.check_queries([query for query in queries if not query.is_plain])
        self.core.check_queries([query for query in queries if query.is_plain], waiting)

    def remove(self, name: str) -> None:
        query = self.queries.pop(name)
        self._parted = None
        if query.is_plain:
            self.core.remove(name)
        elif name in self.frames.running:
            self.frames.remove(name)
        else:
            self.emission.remove(query)
            self._told.forget(name)

    @property
    def reading(self) -> Reading:
        """What is read of an event, by queries of any kind."""
        if not self.is_ticking:
            return self.core.reading
        sources = self.emission.readings
        sources += [self.core.reading, self.frames.reading]
        if sources != self._read_for:  # whoever changed it: a query may reach a stream inside from far above
            queries = [*self.core.reading.queries, *self.emission.queries, *self.frames.reading.queries]
            self._read_for, self._reading = sources, Reading(queries, self.ts, self.key)
        return self._reading

    @property
    def is_ticking(self) -> bool:
        """Does anybody but the core read events?"""
        emission = self.emission
        return bool(emission.tickers or emission.later or emission.inner or emission.chosen or self.frames.running)

    @property
    def is_read(self) -> bool:
        """Does anybody ask for anything here?"""
        return bool(self.queries or self.emission.inner or self.emission.chosen)

    # -- events -------------------------------------------------------------------------------------------------------

    def start(self, clock: Clock) -> None:
        """The first batch tells what time is; raises if a query does not go with that."""
        self.core.time.clock = clock
        try:
            self.check_queries(self.queries.values())
        except SwagError:
            self.core.time.clock = None
            raise
        self.core.start(clock)

    def begin_at(self, now: int, missed: int) -> None:
        """It has missed what came up to now, so many events."""
        self.core.begin_at(now, missed)
        self.emission.top = now

    def take(self, table: pa.Table, checked: bool = False) -> Incoming | None:
        """Events in order, with all that `reading` asks for: whole or not at all. Ticks are decided when time passes.

        checked: functions of users have been tried with these, or there is nobody to give an error to.
        """
        if table.num_rows == 0:
            return None
        self.forget_keys()
        first = self.core.time.clock is None
        if first:
            self.start(clock_of(table.column(self.ts), self.ts))
        try:
            batch = self._tried(table, functions=not checked)
        except Exception:
            if first:
                self.core.restart()
            raise
        self.apply(batch)
        return batch

    def _tried(self, table: pa.Table, functions: bool) -> Incoming:
        """A batch that was read and checked; the keys that it brought are taken back if it is refused."""
        assert self.core.time.clock is not None
        batch = self.core.read(table, ReadOnce(table, self.ts, self.core.time.clock))
        try:
            self.check(batch, functions)
        except Exception:
            self.core.take_back(batch.known)
            raise
        return batch

    def check(self, batch: Incoming, functions: bool = True, ordered: bool = True) -> None:
        """Raise what is wrong with a batch; nothing is changed."""
        ticking = self.is_ticking
        if ticking:
            assert self.core.time.clock is not None
            check_types(batch.table, self.reading, self.core.dictionary)
            self.emission.check(batch.table, self.core.time.clock)
            if self.frames.running:
                self.frames.check(batch.table, self.core.time.clock)
            if ordered:
                self.emission.check_order(batch.ts)
        self.core.check(batch, functions, ordered)
        if ticking and functions and self.reading.lifted:
            self.emission.check_functions(batch.table)

    def apply(self, batch: Incoming) -> None:
        """Take a batch that was checked."""
        self.core.apply(batch)
        if self.is_ticking:
            reading = self.reading
            if self._typed is not reading and self.core.dictionary.note_columns(batch.table, reading):
                self._typed = reading
            self.emission.take(batch.table, batch.ts, batch.ids)
            if self.frames.running:
                self.frames.take(batch.table, batch.ts, batch.ids, batch.by_key)

    def take_known(self, table: pa.Table, ts: np.ndarray, ids: np.ndarray) -> None:
        """Rows that were checked when they came, and have waited since: in order of time, their keys known."""
        self.core.take(table, ts, ids)
        if self.is_ticking:
            self.emission.take(table, ts, ids)
            if self.frames.running:
                self.frames.take(table, ts, ids)

    def would_refuse(self, table: pa.Table) -> None:
        """Raise what `take` would of these events, other than of their order and keys; nothing is changed."""
        first = self.core.time.clock is None
        if first:
            self.start(clock_of(table.column(self.ts), self.ts))
        try:
            assert self.core.time.clock is not None
            self.core.would_refuse(table)
            self.emission.check(table, self.core.time.clock)
            self.emission.check_functions(table)
            self.frames.check(table, self.core.time.clock)
        finally:
            if first:
                self.core.restart()

    def pass_time(self, now: int, closed: int, kept: bool = True) -> None:
        """Time goes on to `now`, and every event up to `closed` has come: ticks are decided.

        kept: see `Emission.decide`. Without events nobody knows what time is.
        """
        if self.core.time.clock is not None:
            self.core.time.go_on(now, closed)
            self.core.grouping.tidy(0)
            self.emission.decide(self.core.time.closed, kept)
            if self.frames.running:
                self.frames.decide(self.core.time.closed)

    def decide(self, closed: int, kept: bool) -> None:
        """Ticks are decided; but nothing is promised, as late events may still be taken."""
        if self.is_ticking:
            self.emission.decide(closed, kept)
            if self.frames.running:
                self.frames.decide(closed)

    # -- letting go ---------------------------------------------------------------------------------------------------

    def forget_keys(self, waiting: Waiting | None = None) -> np.ndarray | None:
        """Forget keys that nobody asks for any more, where they are half of all.

        waiting: rows of keys that are still to come. Returns the keys that were kept, if any were forgotten.
        """

        def needs(count: int) -> np.ndarray:
            found = self.emission.needs(count) | self.core.alerts.needed(count)
            if self.frames.running:
                found |= self.frames.needs(count)
            if waiting is not None:
                found[waiting.rows.ids] = True
            return found

        kept = self.core.grouping.forget(needs)
        if kept is not None:
            self.emission.renumber(kept)
            self.frames.renumber(kept)
            self.core.alerts.renumber(kept)
        return kept

    def let_go(self) -> None:
        """Of rows that no window reaches any more, here and in the streams inside, and of the keys of those."""
        self.core.let_go()
        for stream in self.emission.streams:
            stream.let_go()
            stream.forget_keys()

    # -- answers ------------------------------------------------------------------------------------------------------

    def lookup(self, name: str, key: Any = None, at: Any = None, exact: bool = True) -> Any:
        """The answer of one query: a scalar for one stream or one key, else Table(key, value). `at`: not now."""
        query = self.queries[name]
        if name in self.frames.running:
            raise BadQuery(f'query "{name}" has a row for each frame, not an answer.', f'engine.emitted("{name}")')
        if query.at_ticks:
            raise BadQuery(
                f'query "{name}" answers at its ticks, not on lookup.',
                "engine.emitted(), or register it without `every` too",
            )
        if query.source is not None:
            over, at = self._asked_of(query, at)
            return over.lookup(name, key, at, exact)
        return self.core.lookup(query, key, at, exact)

    def passing(self, name: str, at: Any = None) -> pa.Table:
        """Table([key], value) of who passes the `having` of a query."""
        query = self.queries[name]
        if query.source is not None:
            over, at = self._asked_of(query, at)
            return over.passing(name, at)
        return self.core.passing(query, at)

    def answering(self, name: str) -> "tuple[LiveStream, Query]":
        """The stream whose rows answer a query on lookup, and the query as that one knows it."""
        stream, query = self, self.queries[name]
        while query.source is not None:
            stream = stream.emission.outer[name]
            query = stream.queries[name]
        return stream, query

    def filtered(self, names: list[str], at: Any = None) -> ManyAnswers:
        """Who passes which of these, all at once; those over the answers of others one by one."""
        return self._of_both(
            names,
            lambda own: self.core.filtered([self.queries[name] for name in own], at),
            lambda name: answers_of(name, self.passing(name, at)),
        )

    def changes(self, names: list[str]) -> ManyAnswers:
        """Who began or ceased to pass since it was last told."""
        return self._of_both(names, self.core.alerts.changes, self._changed)

    def tell(self, names: list[str]) -> None:
        """What `changes` gave was told."""
        own, _, others = self._plain_and_others(names)
        self.core.alerts.tell(own)
        for place in others:
            (self.frames if names[place] in self.frames.running else self._told).tell(names[place])

    def _of_both(
        self, names: list[str], of_own: Callable[[list[str]], ManyAnswers], of_other: Callable[[str], ManyAnswers]
    ) -> ManyAnswers:
        """Answers of the queries that alerts follow, in one piece, and of each of the others."""
        own, plain, others = self._plain_and_others(names)
        found = of_own(own)
        if not others:
            return found
        parts = [(plain, found)] if own else []  # none of its own: the others may be grouped otherwise than the core is
        return merged(names, [*parts, *(([place], of_other(names[place])) for place in others)])

    def _plain_and_others(self, names: list[str]) -> tuple[list[str], list[int], list[int]]:
        """The queries that alerts follow, their places, and those of the others, which are compared as a whole. Of the
        same list it is known from the last time."""
        if self._parted is None or self._parted[0] is not names:
            followed = [self.core.alerts.follows(name) for name in names]
            plain, others = ([i for i, each in enumerate(followed) if each is which] for which in (True, False))
            self._parted = names, ([names[i] for i in plain], plain, others)
        return self._parted[1]

    def _changed(self, name: str) -> ManyAnswers:
        """What differs from what was told of a query that is compared as a whole, or over frames."""
        if name in self.frames.running:
            return self.frames.changes(name)
        time = self.core.time
        when = pa.nulls(1) if time.clock is None else to_arrow(np.array([time.now]), None, time.clock.type)
        return self._told.changed(name, self.passing(name), when, lambda: self._of_everyone(name))

    def _of_everyone(self, name: str) -> pa.Table:
        """Table([key], value) of a query that is compared as a whole, whoever passes."""
        if self.queries[name].source is None:
            return self.core.passing(replace(self.queries[name], having=None), None)
        over, at = self._asked_of(self.queries[name], None)
        if over.queries[name].source is not None:
            return over._of_everyone(name)
        return over.core.passing(replace(over.queries[name], having=None), at)

    def _asked_of(self, query: Query, at: Any) -> "tuple[LiveStream, Any]":
        """The stream inside whose events a query reads, and the time to ask it for."""
        over = self.emission.outer[query.label]
        if at is None and over.core.time.clock is not None:
            at = max(self.core.time.now, over.core.time.now)
        return over, at

    # -- about itself -------------------------------------------------------------------------------------------------

    @property
    def kept(self) -> int:
        """Rows that windows may still ask for."""
        return self.core.kept + self.emission.kept + self.frames.kept

    @property
    def bytes(self) -> int:
        return self.core.bytes + self.emission.bytes + self.frames.bytes

    def complete_since(self) -> dict[str, Any]:
        """Per query: None if complete from the first event, else the time since which its window is all kept."""
        since = self.core.complete_since() | self.emission.complete_since() | self.frames.complete_since()
        return {name: since[name] for name in self.queries}

    def state(self) -> State:
        frames = self.frames.state() if self.frames.running else None
        parts = {"core": self.core.state(), "emission": self.emission.state(), "told": self._told.state()}
        return nested({}, {**parts, "frames": frames})

    def restore(self, state: State) -> None:
        """Its queries have been added."""
        self.core.restore(part(state, "core"))
        self.emission.restore(part(state, "emission"))
        if state[0].get("told") is not None:
            self._told.restore(part(state, "told"))
        if state[0].get("frames") is not None:
            self.frames.restore(part(state, "frames"))


def _inside(kind: type[LiveStream], ts: str, by: tuple[str, ...], algorithm: str, epsilon: float) -> LiveStream:
    """A stream inside of another, of the same kind. Its key of several columns is one, and those are there, too."""
    stream = kind(ts, key_name(by), algorithm, epsilon)
    stream.emission.by = by
    return stream
