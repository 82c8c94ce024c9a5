"""Substream filters in the engine: an index over the keys wherever one can serve a `having`, shared by all who can.

An index names candidates; the engine looks those up in the shared structures and keeps the ones that pass. So an answer
is exact whether there is an index or not, and what an index saves is looking at the other keys.

    plan              one entry for each set of rows, aggregate and column that a `having` is about
    rows kept         what an index is made from, when a batch or a lookup needs one that is missing: key_index.py
    rows that come    every index takes them
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from swag.durable.state import State, nested, parts
from swag.errors import BadEvents, BadQuery
from swag.live.arena import Batch
from swag.live.filtered.checked_rows import CheckedRows
from swag.live.filtered.chosen import ChosenRows
from swag.live.filtered.substreams import Substreams
from swag.live.indexing.extrema_index import ExtremaIndex
from swag.live.indexing.indexes import CountIndex, SubstreamIndex, SumIndex
from swag.live.indexing.key_index import IndexEntry, Key, asked
from swag.live.indexing.level_choice import COSTS, LevelChoice
from swag.live.plan import Plan
from swag.live.store import Store
from swag.query.query import Query
from swag.query.windows import Range, reach
from swag.tables import constants
from swag.tables.columns import Field, is_number

FEW_FOR_INDEXES = 8  # predicates that have indexes of their own: one that has nothing to do costs 20 us per batch
NAMES = {"count": "CI-COUNT", "sum": "CI-SUM", "max": "CI-MAX", "min": "CI-MIN"}


class Filters:
    """The indexes of a grouping. It owns them; the rows that they are made from, and the plan, it reads.

    Asked of it: the keys that may pass a query's `having` (`candidates`), and why there is no index (`why_not`).
    """

    def __init__(self, store: Store, plan: Plan, epsilon: float) -> None:
        if isinstance(epsilon, bool) or not isinstance(epsilon, int | float) or not 0 < epsilon < 1:
            raise BadQuery(f"epsilon={epsilon!r} is not between 0 and 1.", "sw.Engine(epsilon=0.2)")
        self.store, self.plan = store, plan
        self.epsilon = epsilon
        self.entries: dict[Key, IndexEntry] = {}
        self.changed = False  # queries, or the rows that count for them

    # -- which index --------------------------------------------------------------------------------------------------

    def why_not(self, query: Query) -> str:
        """Why no index serves a query with `having`; nothing if one does."""
        if why := self.why_never(query):
            return why
        entry = self.entries.get(self.key(query))
        if entry is not None and entry.waits_for > self.store.now:
            return f"negative values of {entry.key.column} came before there was an index"
        return ""

    def is_crowded(self, query: Query) -> bool:
        """Is it one of many filters? Then the keys to look at are those that have rows of it."""
        return (
            query.where is not None
            and query.index
            and self.store.keyed
            and len(self.plan.predicates) > FEW_FOR_INDEXES
            and not self.plan.thresholds.key(query)
        )

    def why_never(self, query: Query) -> str:
        """The same, whatever has come so far."""
        if self.is_crowded(query):
            return f"one of {len(self.plan.predicates):,} filters: of the keys that have rows of it"
        kind, condition = query.aggregate.kind, query.condition
        if self.plan.thresholds.key(query):
            return "its threshold shares the rows of all"
        if not self.store.keyed or condition is None:
            return "one stream has no keys to look through"
        if not query.index:
            return "index=False"
        if kind not in NAMES:
            return f"no index knows {kind}"
        if not isinstance(query.window, Range) or query.window.until != 0:
            return "indexes know time windows that end now"
        if condition.op == "between" or not constants.is_number(condition.low):
            return "indexes know one-sided conditions on numbers"
        column = query.aggregate.columns[0] if query.aggregate.columns else None
        if kind != "count" and column is not None and not is_number(self.store.types.get(column, pa.null())):
            return f"{column} is not a number"
        if kind == "count" and column is not None and condition.holds(pa.array([0]))[0]:
            return "keys whose values are all null pass too, and no index sees those"
        return ""

    def key(self, query: Query) -> Key:
        return Key(self.plan.mask(query), query.aggregate.kind, query.aggregate.columns)

    def presence(self, query: Query) -> Key:
        return Key(self.plan.presence(query), "count", ())

    def register(self) -> None:
        """Follow the plan: an entry per index that some query can use, with the index that it had if that still serves.

        To be called as soon as a query has gone: what it alone reached is let go from then on, and no index may know of
        it when a query with such a window comes again.
        """
        self.changed = False
        old, self.entries = self.entries, {key: self._entry(key, queries) for key, queries in self._wanted().items()}
        for key, entry in self.entries.items():
            if key in old:
                entry.keep(old[key], self.store)

    def _entry(self, key: Key, queries: list[Query]) -> IndexEntry:
        return IndexEntry(key, queries, LevelChoice(self.epsilon, COSTS[key.kind]) if key.kind in COSTS else None)

    def _wanted(self) -> dict[Key, list[Query]]:
        """Every index that some query can use, and who can; which keys are there at all is asked of one, too."""
        wanted: dict[Key, list[Query]] = {}
        for query in self.plan.queries.values():
            if query.having is not None and not self.why_never(query):
                for key in dict.fromkeys((self.presence(query), self.key(query))):
                    wanted.setdefault(key, []).append(query)
        return wanted

    def forget(self) -> None:
        """Drop every index; each is made anew, from the rows kept, when next needed. Keys were numbered anew, say."""
        for entry in self.entries.values():
            entry.index = None

    # -- batches ------------------------------------------------------------------------------------------------------

    def check(self, found: dict[str, Field], chosen: ChosenRows) -> None:
        """Refuse a batch that CI-SUM can not take."""
        if self.changed:
            self.register()
        for key, entry in self.entries.items():
            if key.kind == "sum" and is_number(found[key.columns[0]].type):  # else there will be none, as is known now
                values = found[key.columns[0]].values
                keep = chosen[self.plan.mask(entry.queries[0], self.plan.nullable_with(found))]
                negative = np.flatnonzero(values < 0 if keep is None else (values < 0) & keep)
                if negative.size:
                    raise self._negative(int(negative[0]), values[negative[0]], key, entry)

    def _negative(self, row: int, value: Any, key: Key, entry: IndexEntry) -> BadEvents:
        return BadEvents(
            f'event {row} has {key.columns[0]} = {value}, but query "{entry.queries[0].title}" has an index over its '
            "sums, which grow with every event.",
            "sw.Query(…, having=…, index=False) answers it without one",
        )

    def prepare(self) -> None:
        """Before a batch is applied: every index that there can be holds what is kept."""
        if self.changed:
            self.register()
        for entry in self.entries.values():
            entry.reconsider(self.store)
            if entry.index is None and entry.can_be_made(self.store):
                entry.make(self.store)

    def update(self, rows: CheckedRows) -> None:
        """A batch was applied."""
        for entry in self.entries.values():
            entry.update(self.store, rows)

    def redo(self, rows: CheckedRows, batch: Batch, displaced: np.ndarray) -> None:
        """A batch was applied that displaced so many rows of each of its keys. Those of which it displaced none are
        brought up to date, with their rows in order of time."""
        in_order = np.repeat(displaced == 0, batch.counts)
        others, again = rows.some(batch.order[in_order]), batch.keys[displaced > 0]
        for entry in self.entries.values():
            entry.update(self.store, others)
            if again.size:
                entry.redo(self.store, again)

    # -- lookups ------------------------------------------------------------------------------------------------------

    def promise(self, query: Query) -> None:
        """The candidates of a query are asked for as they are: how far off they may be was promised."""
        entry = self.entries.get(self.key(query))
        if entry is not None and entry.levels is not None and entry.levels.promise():
            entry.index = None

    def checked(self, query: Query, candidates: int, passed: int) -> None:
        """So many candidates of a query were looked up, and so many of them passed."""
        entry = self.entries.get(self.key(query))
        if entry is not None and entry.levels is not None:
            entry.levels.checked(candidates - passed)

    def candidates(self, query: Query, at: int) -> np.ndarray | None:
        """The keys that may pass, in order; None: no index can tell, look at them all."""
        if self.is_crowded(query) and at >= self.store.now and self.store.clock is not None:
            return self._met(query)
        index = self.index(query, at)
        if index is None or self.store.clock is None:
            return None
        window = reach(query.window, self.store.clock.unit)
        return index.candidates(window.far, *self.asked(query), at, window.near)

    def index(self, query: Query, at: int) -> SubstreamIndex | None:
        """The index that names the keys that may pass at some time, up to date; None: there is none that can."""
        if at < self.store.now or self.store.clock is None or self.why_not(query):
            return None
        self.plan.settle()  # first: indexes are made from the rows of its spaces
        self.prepare()
        entry = self.entries.get(self.key(query))
        if entry is None or entry.index is None:
            return None
        if isinstance(entry.index, SumIndex | ExtremaIndex):
            present = self.entries[self.presence(query)].index
            assert isinstance(present, CountIndex)
            entry.index.presence = present  # the one of now: it may have been made anew since the last lookup
        return entry.index

    def asked(self, query: Query) -> tuple[Any, Any]:
        """A query's condition, as its index is asked."""
        return asked(query, self.key(query), self.store)

    def _met(self, query: Query) -> np.ndarray:
        """The keys that have rows of a filter."""
        self.plan.settle()
        mask = self.plan.presence(query)
        space = self.store.find(mask)
        assert isinstance(space, Substreams)
        return space.keys_of(mask)

    # -- snapshots ----------------------------------------------------------------------------------------------------

    def state(self) -> State:
        """Every index there is: what it is over and how far back it knows, and its arrays."""
        if self.changed:
            self.register()
        made = [entry.state() for entry in self.entries.values() if entry.index is not None]
        return nested({}, {"indexes": made})

    def restore(self, state: State) -> None:
        """Its plan is restored. An index that is not in the state is made anew when needed."""
        self.register()
        for saved in parts(state, "indexes"):
            entry = self.entries.get(Key.from_json(saved[0]))
            if entry is not None:
                entry.restore(self.store, saved)

    # -- about itself -------------------------------------------------------------------------------------------------

    @property
    def bytes(self) -> int:
        return sum(entry.index.bytes for entry in self.entries.values() if entry.index is not None)

    def explain(self, queries: Iterable[Query]) -> list[str]:
        """Lines for `engine.explain()`: which index serves whom, and who has none, and why."""
        lines = []
        for key, entry in self.entries.items():
            served = [query.title for query in entry.queries if self.key(query) == key]
            if served and entry.index is not None:
                what = f"{key.kind}({', '.join(key.columns)})"
                precision = ", exact" if entry.levels is None else f", {entry.levels.explained()}"
                lines.append(f"filters on {what}: {_listed(served)}")
                lines.append(f"    {NAMES[key.kind]}{precision}: candidates, then checked in the structures above")
        filters = [query for query in queries if query.having is not None and query.is_simple]
        crowded = [query.label for query in filters if self.is_crowded(query)]
        if crowded:
            lines.append(f"filters with a where: {_listed(crowded)}")
            lines.append("    no index: looked up for the keys that have rows of their where")
        for query in filters:
            if query.label not in crowded and self.why_not(query):
                lines.append(f"filter {query.label}: every key is looked at ({self.why_not(query)})")
        return lines


def _listed(names: list[str], most: int = 4) -> str:
    return ", ".join(names[:most]) + (f", … ({len(names)} queries)" if len(names) > most else "")
