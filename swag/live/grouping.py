"""One way to group the events of a stream: by a key column, or all of them together."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from swag.durable.state import State, nested, part
from swag.live import intake
from swag.live.answering.composites import Shared
from swag.live.answering.lookups import Lookups
from swag.live.arena import Batch
from swag.live.filtered.checked_rows import CheckedRows
from swag.live.filtered.chosen import NO_PREDICATES, Chooser, Satisfied
from swag.live.indexing.key_filters import Filters
from swag.live.late_rows import displacing, put_in_place
from swag.live.plan import Plan
from swag.live.store import Store
from swag.live.time import Time
from swag.live.vocabulary.dictionary import Dictionary
from swag.live.vocabulary.words import Renumbering
from swag.query.query import Query


class Grouping:
    """The queries of one grouping, and all that is kept for them.

    It owns its keys and rows (`store`), the structures over them (`plan`, `lookups`), the indexes over its keys
    (`filters`) and over the constants of its predicates (`chooser`). Time and dictionary are the stream's, and shared
    with its other groupings. Asked of it: to follow queries and batches, and which of its keys nobody needs any more.
    """

    def __init__(
        self, key: str | None, by: tuple[str, ...], time: Time, dictionary: Dictionary, algorithm: str, epsilon: float,
        own_time: bool,
    ) -> None:  # fmt: skip
        """by: the columns of a key of several."""
        self.key, self.by = key, by
        self.store = Store(key is not None, time, dictionary, own_time)
        self.plan = Plan(self.store, algorithm)
        self.lookups = Lookups(self.store, self.plan)
        self.filters = Filters(self.store, self.plan, epsilon)
        self.chooser = Chooser()
        self.numbering = 0  # how often keys were numbered anew
        self._shared = Shared()

    # -- queries ------------------------------------------------------------------------------------------------------

    def add(self, queries: Iterable[Query], flowing: bool, unread: Callable[[Query], int]) -> None:
        """flowing: events have come before these. unread: up to which time some wait that lack a query's columns."""
        self.plan.add(self._shared.add(queries), flowing, unread)
        self.filters.changed = True

    def remove(self, query: Query) -> None:
        self.plan.remove(self._shared.remove(query))
        self.filters.register()

    def complete_since(self, queries: list[Query]) -> dict[str, Any]:
        return self._shared.complete_since(queries, self.plan)

    # -- batches ------------------------------------------------------------------------------------------------------

    def ids(self, table: pa.Table | None, once: intake.ReadOnce | None = None) -> np.ndarray:
        """A number for the key of every row; new keys get the next ones, and room. once: see `intake.fields`."""
        ids = intake.key_ids(table, self.key, self.by, self.store, once)
        self.store.grow_keys()
        return ids

    def told(self, table: pa.Table | None, once: intake.ReadOnce | None = None) -> Satisfied:
        """Which rows of a batch satisfy which predicates: every `where` is computed, or raises."""
        plan = self.plan
        if not (plan.predicates or plan.thresholds.open or plan.thresholds.keys):
            return NO_PREDICATES
        if table is None:
            assert once is not None
            table = once.table
        if plan.thresholds.open and table.num_rows and plan.thresholds.decide(intake.column_types(table)):
            plan.changed()
            self.filters.changed = True
        predicates = plan.predicates
        if plan.thresholds.keys:
            predicates = plan.thresholds.with_misfits(predicates, table)
        if not predicates:
            return NO_PREDICATES
        shared = None if once is None or once.table is not table else once.holds
        return self.chooser.told(predicates, table, shared)

    def check(self, rows: CheckedRows, lifted: list[Query]) -> None:
        """Raise what an index can not take, and what users' functions raise, of these queries; nothing is changed."""
        if self._has_filters:
            self.filters.check(rows.fields, rows.chosen)
        if lifted:
            self.plan.check_lifted(lifted, rows.fields, rows.chosen)

    def apply(self, rows: CheckedRows, batch: Batch) -> bool:
        """Take a batch that was checked: from here on nothing can fail. Returns whether rows were put before others."""
        store, displaced = self.store, False
        self.filters.changed |= self.plan.prepare(rows.fields)
        filtering = self._has_filters
        if filtering:
            self.filters.prepare()
        if store.time.lateness is None:
            self.plan.update(store.append(rows, batch))
            if filtering:
                self.filters.update(rows)
        else:
            displaced = self._put_in_place(rows, batch, filtering)
        if self.plan.totals.totals:
            self.plan.totals.take(rows, batch)
        self.tidy(rows.ts.size)
        if store.families:
            self.plan.forget_substreams()
        return displaced

    def tidy(self, rows: int) -> None:
        """After a batch of so many rows: what nobody needs goes, a little at a time."""
        if renumbered := self.store.tidy(rows):
            self.plan.read_again(renumbered)

    def renumber_words(self, name: str, renumbering: Renumbering) -> None:
        """The words of a column are called otherwise: rows and structures follow."""
        for data in self.store.numbers_of(name):
            renumbering.apply(data)
        self.plan.read_again({name})

    def _put_in_place(self, rows: CheckedRows, batch: Batch, filtering: bool) -> bool:
        """The same, where some rows may belong before others that are here: do any?"""
        displaced = displacing(self.store, rows, batch)
        if displaced is None:
            self.plan.update(self.store.append(rows, batch))
        else:
            self.plan.update(put_in_place(self.store, rows, batch, displaced))
        if filtering:
            self.filters.redo(rows, batch, np.zeros(batch.keys.size) if displaced is None else displaced)
        return displaced is not None

    @property
    def _has_filters(self) -> bool:
        """May there be indexes to look after?"""
        return self.filters.changed or bool(self.filters.entries)

    # -- keys that come and go ----------------------------------------------------------------------------------------

    def forget(self, needs: Callable[[int], np.ndarray]) -> np.ndarray | None:
        """Forget keys without rows, where they are half of all: memory follows what windows hold.

        needs: which of the first so many keys others have still to do with. Returns the keys that are kept, if any were
        forgotten, by their old numbers: key kept[i] is key i from now on.
        """
        empty = self.store.forgettable()
        if empty is None or self.plan.totals.totals:  # an unbounded window forgets no key
            return None
        kept = np.flatnonzero(~empty | needs(empty.size))
        if 2 * kept.size > empty.size:
            return None
        assert self.store.keys is not None
        self.store.keys.keep(kept)
        self.renumber(kept)
        return kept

    def renumber(self, kept: np.ndarray) -> None:
        """Key kept[i] is key i from now on, and there are no others. The table of keys has been seen to."""
        self.plan.renumber(self.store.renumber(kept))
        self.plan.totals.renumber(kept)
        self.filters.forget()
        self.numbering += 1

    # -- about itself -------------------------------------------------------------------------------------------------

    @property
    def kept(self) -> int:
        """Rows that windows may still ask for."""
        arena = self.store.main.arena
        return max(int(arena.kept(arena.rings.shape[0]).sum()), self.plan.totals.waiting)

    @property
    def bytes(self) -> int:
        return self.store.bytes + self.plan.bytes + self.filters.bytes + self.chooser.bytes

    def state(self) -> State:
        saved = {"store": self.store.state(), "plan": self.plan.state(), "filters": self.filters.state()}
        return nested({}, saved)

    def restore(self, state: State) -> None:
        """Its queries have been added."""
        self.store.restore(part(state, "store"))
        self.plan.restore(part(state, "plan"))
        self.filters.restore(part(state, "filters"))
