"""The rows that ticks are looked up from: a core of its own, which is given them when a tick is decided.

A tick then costs a lookup in structures that all its queries share, however many rows its windows hold.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from kernels.operators.numbers import EARLIEST, LATEST
from kernels.rings.timeline import TAIL
from kernels.ticks import recency
from swag.durable.state import State, nested, part
from swag.errors import BadQuery, SwagError
from swag.live import intake
from swag.live.answering.composites import combine
from swag.live.core import Core, are_direct
from swag.live.filtered.chosen import ChosenRows
from swag.query.every import Every
from swag.query.lowering import components
from swag.query.query import Query
from swag.query.windows import Unbounded, Window, lies_ahead, sees_later
from swag.tables.columns import Clock, one_chunk, order_of
from swag.tables.keys import KeyTable
from swag.ticks.schedule import TickAnswers, new_ids

KEYS_AT_ONCE = 1 << 16  # keys reported at once, at least
FEW_KEYS = 4096  # keys that are looked after one by one
Answered = tuple[list[pa.Array], list[np.ndarray]]  # per query: the values, and where it speaks


@dataclass(eq=False)
class Asked:
    """What is to be looked up: tick `number` at time `now`, of key `ids`, its rows before position `seen`.

    place: where the row stands that the tick is anchored at, in the order in which rows came.
    """

    number: np.ndarray
    now: np.ndarray
    ids: np.ndarray
    seen: np.ndarray
    place: np.ndarray

    def only(self, rows: Any) -> "Asked":
        return Asked(self.number[rows], self.now[rows], self.ids[rows], self.seen[rows], self.place[rows])

    @property
    def halves(self) -> "tuple[Asked, Asked]":
        middle = self.ids.size // 2
        return self.only(slice(middle)), self.only(slice(middle, None))


def _ends() -> np.ndarray:
    return np.zeros((1, 2), np.int64)


@dataclass(eq=False)
class Recency:
    """Which keys a tick of the whole stream reports: those seen recently enough (kernels/ticks/recency.py).

    It owns a list of keys, the newest first (`links`), and of each key the time of its last row, and its rows.
    """

    links: np.ndarray = field(default_factory=_ends)
    latest: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    seen: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def bytes(self) -> int:
        return sum(each.nbytes for each in self.state()[1].values())

    def state(self) -> State:
        return {}, {"links": self.links, "latest": self.latest, "seen": self.seen}

    def restore(self, state: State) -> None:
        self.links, self.latest, self.seen = (state[1][name] for name in ("links", "latest", "seen"))

    def grow(self, keys: int) -> None:
        more = max(keys, 2 * self.latest.size) - self.latest.size
        if keys > self.latest.size:
            self.links = np.concatenate([self.links, np.full((more, 2), -1)])
            self.latest = np.concatenate([self.latest, np.full(more, EARLIEST)])
            self.seen = np.concatenate([self.seen, np.zeros(more, np.int64)])

    def renumber(self, kept: np.ndarray) -> None:
        """Key kept[i] is key i from now on."""
        self.grow(int(kept.max(initial=-1)) + 1)
        links = np.empty((kept.size + 1, 2), np.int64)
        recency.renumbered(self.links, new_ids(kept, self.latest.size), links)
        self.links, self.latest, self.seen = links, self.latest[kept], self.seen[kept]

    def reported(
        self, ts: np.ndarray, ids: np.ndarray, ends: np.ndarray, since: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Tick, key and the rows that the key has then: for every tick, the keys with a row newer than `since`."""
        at, found = np.zeros(2, np.int64), [np.empty((3, 0), np.int64)]
        keys = recency.RecentKeys(self.links, self.latest, self.seen)
        while at[recency.TICK] < ends.size:
            room = np.empty((3, max(KEYS_AT_ONCE, self.latest.size)), np.int64)
            n = recency.reported(ts, ids, ends, since, keys, at, room)
            found.append(room[:, :n])
        tick, key, rows = np.concatenate(found, axis=1)
        return tick, key, rows

    def note(self, ts: np.ndarray, ids: np.ndarray) -> None:
        """Rows, without a tick."""
        self.reported(ts, ids, np.array([ts.size]), np.array([LATEST]))


@dataclass(eq=False)
class Lookback:
    """Answers at ticks. It owns a core with the rows that ticks may see; their keys are those of the stream around.

    Asked of it: to take rows, and what ticks say (`looked_up`). empty: an answer for every event, in their order, be
    its window empty. recent: which keys have any event in it, if all are counted.
    """

    every: Every
    key: str | None
    empty: bool = False
    recent: Recency = field(default_factory=Recency)

    def __post_init__(self) -> None:
        self.core = Core("", self.key, own_time=self.key is not None and not self.of_all)
        self.core.plan.totals.by_position = True

    def add(self, query: Query) -> None:
        asked = looked_up(query)
        for each in components(query):
            self._refuse(query, each.window)
        self.core.check_queries([asked], lambda simple: None)
        self.core.add([asked], flowing=self.core.store.events > 0)

    def _refuse(self, query: Query, window: Window) -> None:
        at_slots = self.every.by_time and self.every.anchor == "tick"
        before = isinstance(window, Unbounded) and window.until != 0
        if lies_ahead(window) or before or (sees_later(window) and not at_slots):
            raise BadQuery(
                f'query "{query.title}": at ticks of {self.every!r}, an engine does not answer {window!r}.',
                "sw.evaluate over stored events",
            )

    def ready(self, clock: Clock, keys: KeyTable | None) -> None:
        """The core knows what time is, and has room for all keys."""
        if self.core.time.clock is None:
            self.core.start(clock)
        self.core.share_keys(keys)
        if self.of_all:
            self.recent.grow(self.core.store.key_count)

    @property
    def of_all(self) -> bool:
        """Ticks report every key."""
        return self.key is not None and not self.every.per_key and self.every.by is None and not self.every.own

    @property
    def kept(self) -> int:
        return self.core.kept

    @property
    def bytes(self) -> int:
        return self.core.bytes + self.recent.bytes

    def newest(self, count: int) -> np.ndarray:
        """Of each key, the time of the newest row it has been given (EARLIEST: none)."""
        latest, found = self.core.store.latest[:count], np.full(count, EARLIEST)
        found[: latest.size] = latest
        return found

    def renumber(self, kept: np.ndarray) -> None:
        """Key kept[i] is key i from now on; the table of keys is that of the stream around, which has done so."""
        self.core.grouping.renumber(kept)
        if self.of_all:
            self.recent.renumber(kept)

    def rows_of(self, ids: np.ndarray) -> np.ndarray:
        """How many rows of each key it has been given."""
        rows: np.ndarray = self.core.store.main.arena.rings[ids, TAIL]
        return rows

    def check(self, table: pa.Table) -> None:
        """Raise if a function of a user's does of these rows, of which a tick may see some."""
        core = self.core
        if core.reading.lifted:
            found = intake.fields(table, core.reading, core.dictionary)
            chosen = ChosenRows(table.num_rows, found, core.grouping.told(table))
            core.plan.check_lifted(core.reading.lifted, found, chosen)

    def take(self, table: pa.Table, ts: np.ndarray, ids: np.ndarray) -> None:
        """Rows that a tick may see."""
        self.core.take(intake.with_missing(table, self.core.reading), ts, ids)

    def looked_up(self, asked: Asked, keys: KeyTable | None, names: list[str]) -> TickAnswers:
        """All queries at every tick, in order."""
        segment, values = np.zeros(asked.ids.size, np.int64), None
        if keys is not None:
            segment, values = ranked(asked.ids, keys)
            by = (asked.number, segment, asked.now) if self.every.per_key else (segment, asked.number)
            by = by if self.every.by is None else (segment, asked.number, asked.now)
            order = np.lexsort((asked.place,) if self.empty else by)
            asked, segment = asked.only(order), segment[order]
        errors: list[SwagError] = []
        columns, speaks = self._as_far_as_possible(asked, [self.core.queries[name] for name in names], errors)
        answers = TickAnswers(asked.number, asked.now, segment, values, columns, speaks, errors)
        some = np.logical_or.reduce(speaks)
        return answers if some.all() else answers.only(np.flatnonzero(some))

    def _as_far_as_possible(self, asked: Asked, queries: list[Query], errors: list[SwagError]) -> Answered:
        """An error is that of one query at one tick: what else was asked is answered. errors: one of each query."""
        try:
            return self._answers(asked, queries)
        except SwagError as why:
            if len(queries) > 1:
                each = [self._as_far_as_possible(asked, [query], errors) for query in queries]
                return [columns[0] for columns, _ in each], [speaks[0] for _, speaks in each]
            if asked.ids.size == 1:
                errors.append(why)
                return [pa.nulls(1)], [np.zeros(1, bool)]
        found: list[SwagError] = []
        halves = [self._as_far_as_possible(half, queries, found) for half in asked.halves]
        errors += found[:1]
        both = pa.concat_tables([pa.table({"": columns[0]}) for columns, _ in halves], promote_options="default")
        return [one_chunk(both.column(0))], [np.concatenate([speaks[0] for _, speaks in halves])]

    def _answers(self, asked: Asked, queries: list[Query]) -> Answered:
        """A column per query, and where it speaks: no event, no group; a condition that does not hold says nothing."""
        direct = are_direct(queries)
        simple = queries if direct else list(dict.fromkeys(leaf for query in queries for leaf in components(query)))
        found, present, some = self.core.grouping.lookups.each(simple, asked.ids, asked.now, asked.seen)
        windows = dict(zip(simple, some.T, strict=True))
        columns, present = (found, present) if direct else combine(queries, simple, found, present)
        speaks = []
        for i, query in enumerate(queries):
            if query.having is not None or (self.key is not None and not self.empty):
                speaks.append(present[:, i])
            elif self.key is None and self.every.by_time and self.every.anchor == "tick":
                speaks.append(np.any([windows[leaf] for leaf in components(query)], axis=0))
            else:
                speaks.append(np.ones(asked.ids.size, bool))
        return columns, speaks

    def tidy(self, ids: np.ndarray) -> None:
        store = self.core.store
        if self.core.plan.totals.totals:
            self.core.plan.totals.settle()
        store.tidy_keys(np.unique(ids) if ids.size < FEW_KEYS else np.arange(store.key_count))

    def state(self) -> State:
        """The table of keys is the stream's, and not handed over twice."""
        return nested({}, {"core": self.core.state(), "recent": self.recent.state()})

    def restore(self, state: State) -> None:
        """Its queries have been added."""
        self.core.restore(part(state, "core"))
        self.recent.restore(part(state, "recent"))


def ranked(ids: np.ndarray, keys: KeyTable) -> tuple[np.ndarray, pa.Array]:
    """Keys as numbers, in order of their values; and the values."""
    known, rank = np.zeros(keys.count, bool), np.empty(keys.count, np.int64)
    known[ids] = True
    present = np.flatnonzero(known)
    column = keys.column(present)
    order = order_of(column)
    rank[present[order]] = np.arange(present.size)
    return rank[ids], column.take(pa.array(order))


def looked_up(query: Query) -> Query:
    """The same query, to be asked for at any time."""
    return replace(query, name=query.label, every=None, source=None, index=False)
