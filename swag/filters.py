"""Substream filters in the engine: an index over the keys wherever one can serve a `having`, shared by all who can.

An index names candidates; the engine looks those up in the shared structures and keeps the ones that pass. So an answer
is exact whether there is an index or not, and what an index saves is looking at the other keys.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kernels.ci_levels import levels_for
from kernels.timeline import CAPACITY, HEAD, OFFSET, TAIL
from swag.columns import Field, is_number
from swag.errors import BadEvents, BadQuery
from swag.plan import Plan
from swag.query import Query
from swag.space import Mask, Space
from swag.store import Rows, Store
from swag.substreams import CountIndex, SubstreamIndex, SumIndex
from swag.substreams_extrema import ExtremaIndex
from swag.windows import Range, reach

NAMES = {"count": "CI-COUNT", "sum": "CI-SUM", "max": "CI-MAX", "min": "CI-MIN"}


class Key(NamedTuple):
    """What an index is over: the rows that count, the aggregate, the column."""

    mask: Mask
    kind: str
    columns: tuple[str, ...]


@dataclass
class Entry:
    """An index with the queries it serves; None: to be made from the rows kept, when next needed."""

    queries: list[Query] = field(default_factory=list)
    index: SubstreamIndex | None = None


class Filters:
    def __init__(self, store: Store, plan: Plan, epsilon: float) -> None:
        if isinstance(epsilon, bool) or not isinstance(epsilon, int | float) or not 0 < epsilon < 1:
            raise BadQuery(f"epsilon={epsilon!r} is not between 0 and 1.", "sw.Engine(epsilon=0.2)")
        self.store, self.plan = store, plan
        self.epsilon, self.p = epsilon, levels_for(epsilon)
        self.entries: dict[Key, Entry] = {}
        self.changed = False  # queries, or the rows that count for them

    # -- which index --------------------------------------------------------------------------------------------------

    def why_not(self, query: Query) -> str:
        """Why no index serves a query with `having`; nothing if one does."""
        kind, condition = query.aggregate.kind, query.condition
        if not self.store.keyed or condition is None:
            return "one stream has no keys to look through"
        if not query.index:
            return "index=False"
        if kind not in NAMES:
            return f"no index knows {kind}"
        if not isinstance(query.window, Range) or query.window.until != 0:
            return "indexes know time windows that end now"
        if condition.op == "between" or not isinstance(condition.low, int | float | np.number):
            return "indexes know one-sided conditions on numbers"
        column = query.aggregate.columns[0] if query.aggregate.columns else None
        if column is not None and not is_number(self.store.types.get(column, pa.null())):
            return f"{column} is not a number"
        if kind == "count" and column is not None and condition.holds(pa.array([0]))[0]:
            return "keys whose values are all null pass too, and no index sees those"
        return ""

    def key(self, query: Query) -> Key:
        return Key(self.plan.mask(query), query.aggregate.kind, query.aggregate.columns)

    def presence(self, query: Query) -> Key:
        return Key(self.plan.presence(query), "count", ())

    def register(self) -> None:
        """Follow the plan: an entry per index that some query can use; a changed one is made anew when needed."""
        self.changed = False
        wanted: dict[Key, list[Query]] = {}
        for query in self.plan.queries.values():
            if query.having is not None and not self.why_not(query):
                for key in (self.presence(query), self.key(query)):
                    served = wanted.setdefault(key, [])
                    if query not in served:
                        served.append(query)
        known = {(k.mask.where, k.mask.since, k.kind, k.columns): entry for k, entry in self.entries.items()}
        self.entries = {}
        for key, queries in wanted.items():
            old = known.get((key.mask.where, key.mask.since, key.kind, key.columns), Entry())
            same = {q.label for q in queries} <= {q.label for q in old.queries}
            self.entries[key] = Entry(queries, old.index if same else None)

    # -- batches ------------------------------------------------------------------------------------------------------

    def check(self, found: dict[str, Field], chosen: dict[Mask, np.ndarray | None]) -> None:
        """Refuse a batch that CI-SUM can not take."""
        if self.changed:
            self.register()
        for key, entry in self.entries.items():
            if key.kind == "sum":
                values = found[key.columns[0]].values
                keep = chosen.get(self.plan.mask(entry.queries[0], self.plan.nullable_with(found)))
                negative = np.flatnonzero(values < 0 if keep is None else (values < 0) & keep)
                if negative.size:
                    raise self._negative(int(negative[0]), values[negative[0]], key, entry)

    def _negative(self, row: int, value: Any, key: Key, entry: Entry) -> BadEvents:
        return BadEvents(
            f'event {row} has {key.columns[0]} = {value}, but query "{entry.queries[0].title}" has an index over its '
            "sums, which grow with every event.",
            "sw.Query(…, having=…, index=False) answers it without one",
        )

    def prepare(self) -> None:
        """Before a batch is applied: every index there should be holds what is kept."""
        if self.changed:
            self.register()
        for key, entry in self.entries.items():
            if entry.index is None:
                self._make(key, entry)

    def update(self, rows: Rows) -> None:
        """A batch was applied."""
        for key, entry in self.entries.items():
            if entry.index is None:
                continue
            keep = rows.chosen.get(key.mask)
            ids, ts = (rows.ids, rows.ts) if keep is None else (rows.ids[keep], rows.ts[keep])
            values = None
            if key.columns and key.kind != "count":
                values = rows.fields[key.columns[0]].values
                values = values if keep is None else values[keep]
            if key.kind == "sum" and values is not None and SumIndex.first_negative(values) >= 0:
                entry.index, entry.queries = None, []  # it waited since before there was an index: do without one
                continue
            entry.index.add_keys(self.store.key_count)
            entry.index.update(ids, ts, values)
        self.entries = {key: entry for key, entry in self.entries.items() if entry.queries}

    def _make(self, key: Key, entry: Entry) -> None:
        entry.index = self._empty(key, entry)
        space = self.store.spaces[key.mask]
        ids, ts, values = kept_rows(self.store, space, key.columns[0] if key.kind != "count" else None)
        if key.kind == "sum" and values is not None and SumIndex.first_negative(values) >= 0:
            raise BadQuery(
                f'"{entry.queries[0].title}" wants an index over {key.columns[0]}, of which there are negative values.',
                "sw.Query(…, having=…, index=False)",
            )
        entry.index.add_keys(self.store.key_count)
        entry.index.update(ids, ts, values)
        entry.index.expire(self.store.now)

    def forget(self) -> None:
        """Keys were numbered anew: every index is made again, from the rows kept, when it is next needed."""
        for entry in self.entries.values():
            entry.index = None

    def restore(self, key: Key, entry: Entry, arrays: dict[str, np.ndarray]) -> None:
        """An index as a snapshot has it."""
        entry.index = self._empty(key, entry)
        entry.index.restored(arrays)

    def _empty(self, key: Key, entry: Entry) -> SubstreamIndex:
        unit = self.store.clock.unit if self.store.clock is not None else None
        longest = max(reach(query.window, unit).far for query in entry.queries)
        presence = self.entries.get(Key(Mask(key.mask.where, since=key.mask.since), "count", ()))
        known = presence.index if presence is not None and isinstance(presence.index, CountIndex) else None
        floats = bool(key.columns) and pa.types.is_floating(self.store.types.get(key.columns[0], pa.float64()))
        if key.kind == "count":
            return CountIndex(self.p, longest)
        if key.kind == "sum":
            return SumIndex(self.p, longest, floats, known)
        conditions: list[Any] = [(q.condition.op, float(q.condition.low)) for q in entry.queries if q.condition]
        return ExtremaIndex(key.kind, conditions, longest, np.float64 if floats else np.int64, known)  # type: ignore[arg-type]

    # -- lookups ------------------------------------------------------------------------------------------------------

    def candidates(self, query: Query, at: int) -> np.ndarray | None:
        """The keys that may pass, in order; None: no index can tell, look at them all."""
        if at < self.store.now or self.store.clock is None or self.why_not(query):
            return None
        self.prepare()
        entry = self.entries.get(self.key(query))
        if entry is None:
            return None
        condition = query.condition
        assert entry.index is not None and condition is not None
        window = reach(query.window, self.store.clock.unit)
        return entry.index.candidates(window.far, condition.op, float(condition.low), at, window.near)  # type: ignore[arg-type]

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
                precision = f", p = {self.p} (ε = {self.epsilon:g})" if key.kind in ("count", "sum") else ", exact"
                lines.append(f"filters on {what}: {_listed(served)}")
                lines.append(f"    {NAMES[key.kind]}{precision}: candidates, then checked in the structures above")
        for query in queries:
            if query.having is not None and query.is_simple and self.why_not(query):
                lines.append(f"filter {query.label}: every key is looked at ({self.why_not(query)})")
        return lines


def kept_rows(store: Store, space: Space, column: str | None) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Ids, timestamps and values of the rows kept in a space, key by key, oldest first."""
    rings = store.main.arena.rings[: store.key_count]
    counts = rings[:, TAIL] - rings[:, HEAD]
    ids = np.repeat(np.arange(store.key_count), counts)
    at = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + rings[ids, HEAD]
    slots = rings[ids, OFFSET] + (at & (rings[ids, CAPACITY] - 1))
    ts = store.ts.data[slots]
    if space.rank is not None:
        rank, own = space.rank.data[slots], space.arena.rings[: store.key_count]
        after = np.append(rank[1:], 0)
        last = np.cumsum(counts)[counts > 0] - 1
        after[last] = own[ids[last], TAIL]
        counted = after > rank
        ids, ts, at = ids[counted], ts[counted], rank[counted]
        slots = own[ids, OFFSET] + (at & (own[ids, CAPACITY] - 1))
    if column is None or column not in space.raw:
        return ids, ts, None if column is None else np.zeros(ids.size)
    return ids, ts, space.raw[column].data[slots]


def _listed(names: list[str], most: int = 4) -> str:
    return ", ".join(names[:most]) + (f", … ({len(names)} queries)" if len(names) > most else "")
