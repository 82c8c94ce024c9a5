"""The core: events of a stream in arrays, and the queries that are answered from them on lookup.

    table --> read: columns, keys, which rows count --> check --> apply --> structures        answer <-- ids, instants

Whoever needs an engine inside owns a core: an Engine (which adds rows that wait, and ticks), the rows that ticks look
back at, streams inside of others, Spark's shards.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any
from weakref import WeakMethod

import numpy as np
import pyarrow as pa

from kernels.operators.numbers import EARLIEST
from swag.durable.state import Parts, State, nested, part, parts, types_from_array, types_to_array, with_arrays
from swag.errors import BadQuery, TooFarBack
from swag.live import intake, window_edges
from swag.live.alerting.alerts import Alerts
from swag.live.answering.composites import answer_before_events, answering, combine, guard_of
from swag.live.filtered.checked_rows import CheckedRows, Incoming
from swag.live.filtered.chosen import Chooser
from swag.live.grouping import Grouping
from swag.live.indexing.rules import Rules
from swag.live.midway.kept_rows import EventNames
from swag.live.time import Time
from swag.live.vocabulary.dictionary import Dictionary
from swag.live.window_edges import Edges
from swag.query.kind import TIME
from swag.query.lowering import measured, simple_ones
from swag.query.query import Query
from swag.query.reading import Reading
from swag.query.windows import Reach, Since, lies_ahead
from swag.tables.answers import ManyAnswers, in_order, own_name
from swag.tables.columns import Clock, Field
from swag.tables.keys import KeyTable
from swag.tables.waiting import NO_IDS

Answered = tuple[list[pa.Array], np.ndarray]  # a column per query; which ids are in the answer, a column per query


class Core:
    """A stream, and queries that have neither `every` nor `source`.

    It owns the time of the stream, its dictionary, its queries, and for each of its groupings (there is one so far) the
    keys, rows, structures and indexes. Asked of it: `add` and `remove` queries; `read`, `check` and `apply` a batch;
    answers (`answer`, `answer_each`, `value`, `passing`); to let go; its `state`.
    """

    def __init__(
        self,
        ts: str,
        key: str | None,
        algorithm: str = "auto",
        epsilon: float = 0.2,
        own_time: bool = False,
        time: Time | None = None,
        by: tuple[str, ...] = (),
    ) -> None:
        """own_time: `now` is another for each key, that of its latest row. time: that of a stream which is grouped in
        other ways, too. by: the columns of a key of several."""
        self.ts, self.key, self.algorithm, self.epsilon = ts, key, algorithm, epsilon
        self.time, self.dictionary = time or Time(), Dictionary()
        self.columns: tuple[str, ...] | None = None  # of its events, where that is known before any has come
        self.queries: dict[str, Query] = {}
        self.grouping = Grouping(key, by, self.time, self.dictionary, algorithm, epsilon, own_time)
        self.asked = 0  # queries that were looked up
        self.missed = 0  # events that came before this grouping was there
        self._readers: list[Query] = []
        self._reading = Reading([], ts or None, key)
        self._value = own_name("value", key)
        self.dictionary.renumbered.append(_weakly(self.grouping.renumber_words))
        answer, answer_each = _weakly(self.answer), _weakly(self.answer_each)
        self.rules = Rules(self.grouping, answer)
        self.alerts = Alerts(self.grouping, answer, answer_each)
        self.store, self.plan, self.filters = self.grouping.store, self.grouping.plan, self.grouping.filters
        self.plan.names = EventNames(ts, by or (() if key is None else (key,)))

    # -- queries ------------------------------------------------------------------------------------------------------

    def check_queries(self, queries: Iterable[Query], waiting: Callable[[list[Query]], pa.Table | None]) -> None:
        """Raise what could not be served later. waiting: the events that wait, with what some queries read of them."""
        simple = simple_ones(queries)
        for query in simple:
            _refuse_window(query, self.algorithm)
            if self.time.clock is not None:
                measured(query, self.time.clock.unit)
        self.plan.check(simple)
        table = waiting(simple)
        if table is not None:
            intake.fields(table, Reading(simple), self.dictionary)
            predicates = tuple(dict.fromkeys(query.where for query in simple if query.where is not None))
            Chooser().told(predicates, table)

    def add(
        self, queries: list[Query], flowing: bool = False, unread: Callable[[Query], int] = lambda query: EARLIEST
    ) -> None:
        """Queries that were checked. flowing: events have come before; unread: up to when some wait that lack its
        columns."""
        self.queries |= {query.label: query for query in queries}
        self.grouping.add(queries, flowing, unread)
        self.alerts.add(queries, int(self.time.now) if flowing else EARLIEST)

    def remove(self, name: str) -> None:
        self.grouping.remove(self.queries.pop(name))
        self.alerts.remove(name)

    @property
    def reading(self) -> Reading:
        """What is read of an event, by a few simple queries, however many queries there are."""
        readers = self.plan.readers
        if self._readers is not readers:
            self._readers, self._reading = readers, Reading(readers, self.ts or None, self.key)
        return self._reading

    # -- batches ------------------------------------------------------------------------------------------------------

    def start(self, clock: Clock) -> None:
        """The first batch tells what time is; queries have been checked against it."""
        self.time.clock = clock
        self.plan.retain()
        self._begin_whole_stream()

    def restart(self) -> None:
        """The first batch was refused: nobody knows what time is again."""
        self.time.clock, self.time.now, self.time.closed, self.store.keys = None, EARLIEST, EARLIEST, None

    def _begin_whole_stream(self) -> None:
        """Without a key there is one substream as soon as there is time, though events may wait still."""
        if self.key is None and self.time.clock is not None:
            self.store.grow_keys()

    def begin_at(self, now: int, missed: int) -> None:
        """It has missed what came up to now, so many events: keys of that time are not known."""
        self.store.forgotten, self.missed = now, missed
        self.store.lost[:] = now
        if self.key is None:
            self.store.latest[0] = now

    @property
    def flowing(self) -> bool:
        """Have events come, here or before it was there?"""
        return self.store.events > 0 or self.store.forgotten > EARLIEST

    def read(self, table: pa.Table | None, once: intake.ReadOnce) -> Incoming:
        """A batch, as far as it can be read; its new keys have been noted, and whoever refuses it takes them back.

        once: what other groupings have read of it already. table: where it is another one than theirs.
        """
        if table is None and once.words is None:
            table = once.table
        if once.empty:
            table = intake.without_foreign_nulls(table, self.dictionary, once.empty)
        fields = intake.fields(table, self.reading, self.dictionary, once)
        known = self.store.key_count
        try:
            ids, told = self.grouping.ids(table, once), self.grouping.told(table, once)
        except Exception:
            self.take_back(known)
            raise
        if self.plan.thresholds.keys:
            fields |= self.plan.thresholds.fields(once.table if table is None else table)
        if self.reading.timed and self.time.clock is not None:
            fields[TIME] = Field(once.ts, None, self.time.clock.type)
        return Incoming(once.ts, ids, fields, told, table=table, latest=once.latest, known=known)

    def take_back(self, known: int) -> None:
        """The keys after the first so many are of a batch that was refused."""
        if self.store.keys is not None:
            self.store.keys.forget_after(known)

    def check(self, batch: Incoming, functions: bool = True, ordered: bool = True) -> None:
        """Raise what is wrong with a batch; nothing is changed. ordered: it is to be applied right away."""
        if ordered:
            batch.by_key = self.store.grouped(batch)
        self.grouping.check(batch, self.reading.lifted if functions else [])

    def would_refuse(self, table: pa.Table) -> None:
        """Raise what is wrong with a table, other than the order and keys of its rows; nothing is changed."""
        assert self.time.clock is not None
        once = intake.ReadOnce(table, self.ts, self.time.clock)
        typed = intake.without_foreign_nulls(table, self.dictionary, once.empty)
        fields = intake.fields(typed, self.reading, self.dictionary)
        rows = CheckedRows(once.ts, once.ts[:0], fields, self.grouping.told(table))
        self.grouping.check(rows, self.reading.lifted)

    def apply(self, batch: Incoming) -> int:
        """Take a batch that was checked. From here on nothing can fail."""
        assert batch.by_key is not None
        self.time.now = max(self.time.now, batch.latest)
        if self.grouping.apply(batch, batch.by_key):
            self.alerts.look_again()
        if self.alerts.active:
            self.alerts.follow(batch.by_key.keys, batch.ts.size)
        return batch.ts.size

    def take(self, table: pa.Table, ts: np.ndarray, ids: np.ndarray) -> None:
        """Rows whose keys and order are known to be right."""
        fields = intake.fields(table, self.reading, self.dictionary)
        if self.reading.timed and self.time.clock is not None:
            fields[TIME] = Field(ts, None, self.time.clock.type)
        latest = int(ts.max(initial=EARLIEST))
        told, known = self.grouping.told(table), self.store.key_count
        if self.plan.thresholds.keys:
            fields |= self.plan.thresholds.fields(table)
        batch = Incoming(ts, ids, fields, told, table=table, latest=latest, known=known)
        batch.by_key = self.store.grouped(batch)
        self.apply(batch)

    def share_keys(self, keys: KeyTable | None) -> None:
        """Keys are numbered by another core's table: make room for all of them."""
        self.store.keys, self.store.owns_keys = keys, False
        self.store.grow_keys()

    # -- letting go ---------------------------------------------------------------------------------------------------

    def keep(self, since: int | None = None, everything: bool | None = None) -> None:
        """Keep more than windows that end now reach: see Retention."""
        now = self.store.retention
        since, everything = now.since if since is None else since, now.everything if everything is None else everything
        self.store.retention = replace(now, since=since, everything=everything)

    def let_go(self) -> None:
        """Of all rows that no window reaches any more, at once."""
        self.store.tidy_all()

    # -- answers ------------------------------------------------------------------------------------------------------

    def ids(self, key: Any = None) -> np.ndarray:
        """The ids of all keys, or of one (none if it was never seen)."""
        return self.grouping.lookups.ids(key, self.key)

    def instant(self, at: Any) -> int:
        """A point in time in the unit of ts; None is now."""
        assert self.time.clock is not None
        return self.time.now if at is None else self.time.clock.instant(at)

    def answer(self, queries: list[Query], ids: np.ndarray, at: Any = None) -> Answered:
        """All of these at one time."""
        if self.time.clock is None or not queries:
            return [pa.nulls(0) for _ in queries], np.zeros((ids.size, len(queries)), bool)
        instant, direct = self.instant(at), are_direct(queries)
        simple = queries if direct else answering(queries)
        columns, present, short = self.grouping.lookups.at(simple, ids, instant)
        if short is not None and instant < self.time.now:
            raise self._too_far_back(simple[short[1]].title, short[0], instant)
        return (columns, present) if direct else combine(queries, simple, columns, present)

    def answer_each(self, queries: list[Query], ids: np.ndarray, instants: np.ndarray) -> Answered:
        """Every id at a time of its own, whose events are still kept."""
        simple = answering(queries)
        columns, present, _ = self.grouping.lookups.each(simple, ids, instants)
        return combine(queries, simple, columns, present)

    def edges(
        self, ids: np.ndarray, windows: list[Reach], lengths: np.ndarray | None, at: int | np.ndarray, titles: list[str]
    ) -> Edges:
        """Where windows begin and end for some keys, all at one time, or each at its own; raises if rows that they need
        are gone. lengths: those of the windows, as `lengths_of` has them, if they are always the same; titles: of
        queries, one for each window."""
        short: tuple[int | None, int] | None
        if isinstance(at, np.ndarray):
            lo, hi, short = window_edges.edges_kept(self.store, ids, windows, at)
            instant = int(at.min(initial=self.time.now))
        else:
            if lengths is None:
                lengths = window_edges.lengths_of(window_edges.as_of(self.store, windows, at))
            lo, hi, short = window_edges.edges(self.store, ids, lengths, at)
            instant = at
        if short is None and instant < self.time.now:
            gone = window_edges.reaches_forgotten(self.store, windows, instant)
            short = None if gone is None else (None, gone)
        if short is not None and instant < self.time.now:
            raise self._too_far_back(titles[short[1]], short[0], instant)
        return lo, hi

    def lookup(self, query: Query, key: Any, at: Any, exact: bool) -> Any:
        """The answer of one query: a scalar for one stream or one key, else Table(key, value)."""
        if key is not None and self.key is None:
            raise BadQuery(f'lookup("{query.label}", key={key!r}): this engine has no key.', 'sw.Engine(key="…")')
        if self.key is not None and key is None:
            return self.passing(query, at, exact)
        return self.value(query, key, at)

    def value(self, query: Query, key: Any, at: Any) -> Any:
        """The answer for one stream, or for one key, as a Python value."""
        columns, present = self.answer([query], self.ids(key), at)
        self.asked += 1  # now: an answer that has to wait until this thread is alone is asked for twice
        if len(columns[0]) == 0:
            return answer_before_events(query)
        return columns[0][0].as_py() if query.having is None or present[0, 0] else None

    def passing(self, query: Query, at: Any, exact: bool = True) -> pa.Table:
        """Table([key], value) of the keys, or the one stream, that have an event in the window and pass `having`."""
        ids = self._candidates(query, at, exact)
        if not exact and query.having is not None:
            self.asked += 1
            return pa.table(self.keyed(ids))
        columns, present = self.answer([query], ids, at)
        self.asked += 1
        chosen = np.flatnonzero(present[:, 0])
        if query.having is not None and query.is_simple and ids.size < self.store.key_count:
            self.filters.checked(query, ids.size, chosen.size)
        value = {self._value: columns[0].take(pa.array(chosen))}
        return pa.table(self.keyed(ids[chosen]) | value)

    def filtered(self, queries: list[Query], at: Any) -> ManyAnswers:
        """Who passes which of these, all at once."""
        self.asked += len(queries)
        names = [query.label for query in queries]
        pieces = [] if self.time.clock is None else self.rules.passing(queries, self.instant(at))
        kinds = {names[piece.speaks_of[0]]: piece.values.type for piece in pieces}
        ids = np.concatenate([NO_IDS, *(piece.ids for piece in pieces)])
        which = np.concatenate([NO_IDS, *(piece.rule for piece in pieces)])
        order = in_order(which, len(names))
        key = self.keyed(ids[order]).get(self.key or "")
        return ManyAnswers(names, kinds, which[order], key, [piece.values for piece in pieces], order)

    def table(self, queries: list[Query], at: Any) -> pa.Table:
        """One row (or one per key with an event in some window), one column per query."""
        ids = self.ids()
        columns, present = self.answer(queries, ids, at)
        self.asked += len(queries)
        names = [query.label for query in queries]
        if self.key is None:
            if self.time.clock is None:
                columns = [pa.array([answer_before_events(query)]) for query in queries]
            return pa.table(dict(zip(names, columns, strict=True)))
        if self.key in names:
            raise BadQuery(f'query "{self.key}" has the name of the key column.', 'sw.Query(…, name="…")')
        some = np.flatnonzero(present.any(axis=1))
        if some.size < ids.size:  # to take them all took as long as to look quantiles up
            columns = [column.take(some) for column in columns]
        return pa.table(self.keyed(ids[some]) | dict(zip(names, columns, strict=True)))

    def keyed(self, ids: np.ndarray) -> dict[str, pa.Array]:
        """The column of keys, if there are any."""
        if self.key is None:
            return {}
        return {self.key: pa.nulls(0) if self.store.keys is None else self.store.keys.column(ids)}

    def _candidates(self, query: Query, at: Any, checked: bool) -> np.ndarray:
        """The keys to look at: those that an index can not rule out, or all. checked: nobody is told of the others."""
        guard, found = None if query.having is None else guard_of(query), None
        if guard is not None and self.time.clock is not None:
            if not checked:
                self.filters.promise(guard)
            found = self.filters.candidates(guard, self.instant(at))
        return self.ids() if found is None else found

    def _too_far_back(self, title: str, key: int | None, instant: int) -> TooFarBack:
        """key: the one whose events are missing; None: one that is not known any more."""
        store, clock = self.store, self.time.clock
        assert clock is not None
        of = "" if store.keys is None else " of keys that are no longer known"
        if store.keys is not None and key is not None:
            of = f" of key {store.keys.column(np.array([key]))[0].as_py()!r}"
        oldest = clock.show(store.forgotten + 1 if key is None else window_edges.kept_from(store, key))
        return TooFarBack(
            f'query "{title}" at {clock.show(instant)} needs events{of} before {oldest}, no longer kept.',
            f"ask for a later time, or register a longer window to keep more (now is {clock.show(self.time.now)})",
        )

    # -- about itself -------------------------------------------------------------------------------------------------

    @property
    def kept(self) -> int:
        """Rows that windows may still ask for."""
        return self.grouping.kept

    @property
    def bytes(self) -> int:
        return self.grouping.bytes + (self.alerts.bytes if self.alerts.active else 0)

    @property
    def key_types(self) -> list[pa.DataType]:
        """Of the columns of its key; null as long as none has come."""
        return [] if self.key is None else [pa.null()] if self.store.keys is None else self.store.keys.types

    @property
    def latest(self) -> int:
        """The newest time of an event that was applied."""
        return max(self.store.forgotten, int(self.store.latest.max(initial=EARLIEST)))

    def complete_since(self) -> dict[str, Any]:
        """Per query: None if complete from the first event, else the time since which its window is all kept."""
        return self.grouping.complete_since(list(self.queries.values()))

    def state(self) -> State:
        """The time of the stream, its dictionary, grouping and alerts; its queries are known to who registered them."""
        header = {"now": self.time.now, "closed": self.time.closed, "asked": self.asked, "missed": self.missed}
        inside: Parts = {
            "dictionary": self.dictionary.state(),
            "groupings": [self.grouping.state()],
            "alerts": self.alerts.state(),
        }
        clock = {} if self.time.clock is None else {"clock": types_to_array({"ts": self.time.clock.type})}
        return with_arrays(nested(header, inside), clock)

    def restore(self, state: State) -> None:
        """Its queries have been added."""
        header, arrays = state
        self.time.now, self.time.closed, self.asked = header["now"], header["closed"], header["asked"]
        self.missed = header.get("missed", 0)
        self.time.clock = Clock(types_from_array(arrays["clock"])["ts"]) if "clock" in arrays else None
        self.dictionary.restore(part(state, "dictionary"))
        (saved,) = parts(state, "groupings")
        self.grouping.restore(saved)
        self._begin_whole_stream()
        if header.get("alerts") is not None:
            self.alerts.restore(part(state, "alerts"))


def _refuse_window(query: Query, algorithm: str) -> None:
    if lies_ahead(query.window):
        raise BadQuery(
            f'query "{query.title}" lies ahead: at a lookup, what its window is to hold has not come yet.',
            "sw.evaluate over stored events",
        )
    if isinstance(query.window, Since) and algorithm == "materialize-all":
        raise BadQuery(f'query "{query.title}": {algorithm} has no windows of the calendar.', 'algorithm="auto"')


def _weakly(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method for who is owned by its owner: in a cycle that one would stay until the garbage collector comes by."""
    reference = WeakMethod(method)

    def call(*args: Any) -> Any:
        found = reference()
        assert found is not None
        return found(*args)

    return call


def are_direct(queries: list[Query]) -> bool:
    """Is what structures answer the answer? Else something is computed from it, or compared."""
    for query in queries:
        if not query.is_simple or query.having is not None:
            return False
    return True
