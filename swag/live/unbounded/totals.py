"""The running aggregates of a grouping: the unbounded queries of a plan, each from the total of its rows."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pyarrow as pa

from kernels.operators.numbers import EARLIEST, LATEST
from kernels.rings import substreams
from swag.durable.state import State, nested, parts
from swag.errors import BadQuery, TooFarBack
from swag.live.arena import Batch
from swag.live.filtered.checked_rows import CheckedRows
from swag.live.space import Mask
from swag.live.store import Store
from swag.live.unbounded.accumulators import What, can_run, whats_of
from swag.live.unbounded.answers import in_lists, lowered
from swag.live.unbounded.total import HeldWords, RowsThatCount, Total
from swag.query.aggregates import Aggregate
from swag.query.families import result_type, unit_of
from swag.query.kind import KINDS, TIME, Now
from swag.query.query import Query
from swag.query.windows import Unbounded, reach
from swag.tables.columns import to_arrow
from swag.tables.lists import lists


class Totals:
    """The unbounded queries of a plan. It owns a total for each sort of rows that they are of.

    Asked of it: to follow queries and batches; the answers of queries for some keys (`answer`). A query that comes
    while events flow shares what was kept for an equal one; else it begins with the next event.

    by_position: what is asked for is not how it stood at a time, but after so many rows of a key, as ticks do; rows
    wait until they are settled.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.totals: dict[RowsThatCount, Total] = {}
        self.since: dict[str, int] = {}  # by query: the number of events that do not count for it
        self.queries: dict[str, Query] = {}
        self.by_position = False
        self._known = 0  # columns whose types were looked at
        store.word_holders.add(self)

    # -- queries ------------------------------------------------------------------------------------------------------

    def check(self, query: Query) -> None:
        of = query.aggregate
        if not can_run(of):
            raise BadQuery(
                f'query "{query.title}": an engine keeps no rows for {query.window!r}, and {of} takes them all, as '
                f"quantiles, the mode and exact count_distinct do.",
                "sw.evaluate over stored events, or a window that ends: sw.Range(…)",
            )

    def add(self, query: Query) -> bool:
        """Is all there that it needs from the first event on?"""
        needed = dict.fromkeys(self._whats(query))
        alike = [t for t in self.totals.values() if t.of == self._rows(query, t.of.mask.since)]
        known = [total.of.mask.since for total in alike if needed.keys() <= total.whats.keys()]
        self._note(query, min(known, default=self.store.events))
        return self.since[query.label] == 0

    def _note(self, query: Query, since: int) -> None:
        self.queries[query.label], self.since[query.label] = query, since
        rows, presence = self._rows(query, since), self._presence(query, since)
        for of in (rows, presence):
            self.totals.setdefault(of, Total(of)).grow(self.store.key_count)
        whats = self.totals[rows].whats
        whats |= {what: whats.get(what) for what in self._whats(query)}

    def _whats(self, query: Query) -> tuple[What, ...]:
        """What it is computed from, as far as its columns are known."""
        return whats_of(query.aggregate, self.store.types)

    def remove(self, query: Query) -> None:
        """An unbounded query goes, and with it the totals and partials that no other is computed from."""
        del self.queries[query.label], self.since[query.label]
        needed = self._needed()
        self.totals = {of: total for of, total in self.totals.items() if of in needed}
        for of, total in self.totals.items():
            total.whats = {what: each for what, each in total.whats.items() if what in needed[of]}

    def _needed(self) -> dict[RowsThatCount, dict[What, None]]:
        found: dict[RowsThatCount, dict[What, None]] = {}
        for each in self.queries.values():
            since = self.since[each.label]
            found.setdefault(self._rows(each, since), {}).update(dict.fromkeys(self._whats(each)))
            found.setdefault(self._presence(each, since), {})
        return found

    def _look_at_types(self) -> None:
        """Columns were met for the first time: until now no row has counted for who reads them."""
        if self._known != len(self.store.types):
            self._known = len(self.store.types)
            for of, whats in self._needed().items():
                self.totals[of].whats = {what: self.totals[of].whats.get(what) for what in whats}

    def _rows(self, query: Query, since: int) -> RowsThatCount:
        return RowsThatCount(Mask(query.where, frozenset(query.aggregate.columns), since), query.window.until)

    def _presence(self, query: Query, since: int) -> RowsThatCount:
        return RowsThatCount(Mask(query.where, since=since), query.window.until)

    # -- batches ------------------------------------------------------------------------------------------------------

    def take(self, rows: CheckedRows, batch: Batch) -> None:
        """A batch into every total, each with the delay for which its rows have to wait."""
        store = self.store
        self._look_at_types()
        if self.by_position:
            positions = np.empty(rows.ts.size, np.int64)
            substreams.positions_of(tuple(batch), store.main.arena.rings, positions)
            rows = replace(rows, ts=positions)
        for total in self.totals.values():
            total.grow(store.key_count)
            delay = max(self._near(total.of), store.time.lateness or 0)
            total.take(rows, batch, store.now, delay) if not self.by_position else total.take(rows, batch, EARLIEST, 1)

    def settle(self) -> None:
        """Whoever asks will ask for all rows that are here."""
        for total in self.totals.values():
            total.settle(LATEST)

    def _near(self, of: RowsThatCount) -> int:
        assert self.store.clock is not None
        return reach(Unbounded(of.until), self.store.clock.unit).near

    def renumber(self, kept: np.ndarray) -> None:
        """Key kept[i] is key i from now on."""
        for total in self.totals.values():
            total.renumber(kept)

    def words(self) -> Iterable[HeldWords]:
        return (word for total in self.totals.values() for word in total.words())

    # -- answers ------------------------------------------------------------------------------------------------------

    def answer(
        self, queries: list[Query], ids: np.ndarray, instants: np.ndarray, seen: np.ndarray | None = None
    ) -> tuple[list[pa.Array], np.ndarray]:
        """A column per query, for every (key, instant) one answer; and which have an event in the window. seen: by
        position, how many rows each key had then."""
        upto = seen - 1 if self.by_position and seen is not None else instants
        views: dict[RowsThatCount, Total] = {}
        columns, present = [], np.empty((ids.size, len(queries)), bool)
        for i, query in enumerate(queries):
            since = self.since[query.label]
            rows, presence = self._rows(query, since), self._presence(query, since)
            for of in (rows, presence):
                if of not in views:
                    views[of] = self._at(query, of, ids, upto)
            columns.append(self._column(query, views[rows], instants))
            present[:, i] = views[presence].n > 0
        return columns, present

    def _at(self, query: Query, of: RowsThatCount, ids: np.ndarray, instants: np.ndarray) -> Total:
        total, near = self.totals[of], self._near(of)
        total.grow(self.store.key_count)
        bounds = np.where(instants < EARLIEST + near, EARLIEST, instants - near)
        gone = np.flatnonzero(total.newest[ids] > bounds)
        if gone.size:
            raise self._too_far_back(query, int(instants[gone[0]]), int(total.newest[ids[gone[0]]]) + near)
        return total.at(ids, bounds)

    def _too_far_back(self, query: Query, instant: int, first: int) -> TooFarBack:
        clock = self.store.clock
        assert clock is not None
        return TooFarBack(
            f'query "{query.title}" at {clock.show(instant)}: of an unbounded window only the aggregate is kept, which '
            f"has taken events in since.",
            f"ask for {clock.show(first)} or later (now is {clock.show(self.store.now)}), or sw.evaluate",
        )

    def _column(self, query: Query, view: Total, instants: np.ndarray) -> pa.Array:
        """The answers of an unbounded query, one for each key of `view`, its total as of the time asked for."""
        aggregate, store = query.aggregate, self.store
        kinds = {name: store.types.get(name, pa.null()) for name in (*aggregate.columns, TIME)}
        kind, whats = result_type(aggregate, kinds), whats_of(aggregate, kinds)
        made = [each for what in whats if (each := view.whats.get(what)) is not None]
        if len(made) < len(whats):  # no row that counts has come
            nothing = pa.nulls(view.n.size, kind)
            return nothing.fill_null(0) if KINDS[aggregate.kind].counts else nothing
        if KINDS[aggregate.kind].answers == "lists":
            values, counts = in_lists(aggregate, view.n, made[0].partial().reshape(view.n.size, aggregate.n or 1))
            return lists(self._elements(aggregate, values, None, kind.value_type), counts)
        assert store.clock is not None
        values, valid = lowered(query.title, aggregate, view.n, made, Now(instants, store.clock.unit),
                                widens=pa.types.is_decimal(kind))  # fmt: skip
        if KINDS[aggregate.kind].answers == "as the column":
            return self._elements(aggregate, values, valid, kind)
        unit = unit_of(aggregate, kinds)
        return to_arrow(values if unit == 1 else values / unit, valid, kind)

    def _elements(
        self, aggregate: Aggregate, values: np.ndarray, valid: np.ndarray | None, kind: pa.DataType
    ) -> pa.Array:
        """Values of its first column, which may be the numbers of words."""
        words, name = self.store.dictionary, aggregate.columns[0]
        if name in words.tables:
            return words.values(name, values, np.ones(values.size, bool) if valid is None else valid)
        return to_arrow(values, valid, kind)

    # -- about itself -------------------------------------------------------------------------------------------------

    def named(self, of: RowsThatCount) -> list[str]:
        """The queries that are over these rows."""
        return [label for label, query in self.queries.items() if self._rows(query, self.since[label]) == of]

    @property
    def waiting(self) -> int:
        """Rows that are not folded in yet."""
        return max((total.ts.size for total in self.totals.values()), default=0)

    @property
    def bytes(self) -> int:
        return sum(total.bytes for total in self.totals.values())

    def state(self) -> State:
        names = {
            what: [label, place]
            for label, query in self.queries.items()
            for place, what in enumerate(self._whats(query))
        }
        return nested({"since": self.since}, {"totals": [total.state(names) for total in self.totals.values()]})

    def restore(self, state: State) -> None:
        """Its queries have been added."""
        self.totals = {}
        for query in self.queries.values():
            self._note(query, state[0]["since"][query.label])
        for saved in parts(state, "totals"):
            of = RowsThatCount(Mask.from_json(saved[0]["mask"]), saved[0]["until"])
            self.totals[of].restore(saved, lambda label: self._whats(self.queries[label]))
