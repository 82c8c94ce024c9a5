"""One index over the keys of an engine: what it is over, whom it serves, and how it is made from the rows kept.

It can be dropped at any time and is then made again. It has to be where it knows other rows than the engine keeps, as
answers come from those: an index that knew more would leave out keys for `<` that pass by what is left of them.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kernels.operators.numbers import EARLIEST
from kernels.rings.timeline import CAPACITY, OFFSET
from swag.durable.state import State
from swag.live.filtered.checked_rows import CheckedRows
from swag.live.indexing.extrema_index import ExtremaIndex
from swag.live.indexing.indexes import CountIndex, SubstreamIndex, SumIndex
from swag.live.indexing.level_choice import LevelChoice
from swag.live.space import Mask
from swag.live.store import Store
from swag.query.lowering import depth
from swag.query.query import Query
from swag.tables.comparing import within


class Key(NamedTuple):
    """What an index is over: the rows that count, the aggregate, the column."""

    mask: Mask
    kind: str
    columns: tuple[str, ...]

    @property
    def column(self) -> str | None:
        """The column whose values it needs."""
        return self.columns[0] if self.kind != "count" else None

    def to_json(self) -> dict[str, Any]:
        return self.mask.to_json() | {"kind": self.kind, "columns": list(self.columns)}

    @staticmethod
    def from_json(entry: dict[str, Any]) -> "Key":
        return Key(Mask.from_json(entry), entry["kind"], tuple(entry["columns"]))


@dataclass
class IndexEntry:
    """An index with the queries it serves; None: to be made, from the rows kept, when next needed.

    levels: how many those over counts and sums have. waits_for: the time that has to come first. Until then a window
    reaches a row that the index can not take, one from before there was an index.
    """

    key: Key
    queries: list[Query]
    levels: LevelChoice | None
    index: SubstreamIndex | None = None
    waits_for: int = EARLIEST

    def can_be_made(self, store: Store) -> bool:
        if store.clock is None:  # nobody knows yet how long windows are
            return False
        typed = self.key.column is None or self.key.column in store.types  # else there are only nulls so far
        return typed and self.waits_for <= store.now and store.find(self.key.mask) is not None

    def make(self, store: Store) -> None:
        """From those rows kept that windows reach, now or later."""
        longest = self.longest(store)
        ids, ts, values = self._reached(store, np.arange(store.key_count))
        if self._takes(store, ts, values):
            self.index = self._empty(store, longest)
            self.index.add_keys(store.key_count)
            self.index.update(ids, ts, values)
            self.index.expire(store.now)

    def reconsider(self, store: Store) -> None:
        """Another number of levels, where what was seen pays for it: the index is made again when next needed."""
        if self.levels is not None and self.index is not None and self.levels.due():
            kept = int(store.main.arena.kept(store.key_count).sum())
            if self.levels.reconsider(kept):
                self.index = None

    def redo(self, store: Store, keys: np.ndarray) -> None:
        """What it knows of some keys is made again, from the rows kept: late ones were put in between."""
        if self.index is None:
            return
        ids, ts, values = self._reached(store, keys)
        if not self._takes(store, ts, values):
            self.index = None
            return
        self.index.add_keys(store.key_count)
        self.index.forget(keys)
        self.index.update(ids, ts, values)

    def _reached(self, store: Store, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Ids, timestamps and values of the rows of some keys that windows reach, now or later."""
        ids, ts, values = kept_rows(store, self.key.mask, self.key.column, keys)
        reached = ts > max(EARLIEST, store.now - self.longest(store))
        return ids[reached], ts[reached], None if values is None else values[reached]

    def update(self, store: Store, rows: CheckedRows) -> None:
        """A batch was applied."""
        if self.index is None:
            return
        keep = rows.chosen[self.key.mask]
        ids, ts = (rows.ids, rows.ts) if keep is None else (rows.ids[keep], rows.ts[keep])
        values = None if self.key.column is None else rows.fields[self.key.column].values
        values = values if values is None or keep is None else values[keep]
        if not self._takes(store, ts, values):
            self.index = None  # of rows that have waited since before the query came
            return
        self.index.add_keys(store.key_count)
        self.index.update(ids, ts, values)
        if self.levels is not None:
            self.levels.rows += ids.size

    def keep(self, old: "IndexEntry", store: Store) -> None:
        """Take over the index of another entry, if it serves; from then on it knows no more than it has to."""
        self.waits_for, self.levels = old.waits_for, old.levels
        if old.index is not None:
            longest = self.longest(store)
            if old.index.serves(longest, self.conditions(store)):
                self.index = old.index
                self.index.longest = longest

    def state(self) -> State:
        """There is an index: what it is over, how far back it knows, how many levels it was to have; its arrays."""
        assert self.index is not None
        levels = {} if self.levels is None else {"p": self.levels.p}
        header, arrays = self.index.state()
        return self.key.to_json() | {"longest": self.index.longest} | levels | header, arrays

    def restore(self, store: Store, state: State) -> None:
        """Take the index of a snapshot, if it serves."""
        header, arrays = state
        if self.levels is not None and "p" in header:
            self.levels.p = header["p"]
        index = self._empty(store, header["longest"])
        index.restore((header, arrays))
        if index.serves(self.longest(store), self.conditions(store)):
            self.index = index

    def _takes(self, store: Store, ts: np.ndarray, values: np.ndarray | None) -> bool:
        """Not a negative value, if it is about sums: these have to grow."""
        if self.key.kind != "sum" or values is None or SumIndex.first_negative(values) < 0:
            return True
        self.waits_for = int(ts[values < 0].max()) + self.longest(store)
        return False

    def _empty(self, store: Store, longest: int) -> SubstreamIndex:
        floats = answers_floats(self.key, store)
        if self.levels is not None:
            of_sums = self.key.kind == "sum"
            return SumIndex(self.levels.p, longest, floats) if of_sums else CountIndex(self.levels.p, longest)
        dtype = np.float64 if floats else np.int64
        return ExtremaIndex(self.key.kind, self.conditions(store), longest, dtype)  # type: ignore[arg-type]

    def longest(self, store: Store) -> int:
        """The longest window of the queries it serves."""
        assert store.clock is not None
        return depth(self.queries, store.clock.unit).time

    def conditions(self, store: Store) -> list[Any]:
        """Those it has to know: counts and sums are served whatever is asked of them."""
        return [] if self.key.kind in ("count", "sum") else [asked(query, self.key, store) for query in self.queries]


def asked(query: Query, key: Key, store: Store) -> tuple[Any, Any]:
    """A query's condition, in terms of values that its answers may have."""
    condition = query.condition
    assert condition is not None
    return within(condition.op, condition.low, pa.float64() if answers_floats(key, store) else pa.int64())


def answers_floats(key: Key, store: Store) -> bool:
    return key.column is not None and bool(pa.types.is_floating(store.types[key.column]))


def kept_rows(
    store: Store, mask: Mask, column: str | None, keys: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Ids, timestamps and values of the rows of some keys kept for a mask, key by key, oldest first."""
    space = store.find(mask)
    assert space is not None
    ids, positions, slots = space.kept_rows(mask, keys)
    rings = store.main.arena.rings[ids]
    ts = store.ts.data[rings[:, OFFSET] + (positions & (rings[:, CAPACITY] - 1))]
    if column is None or column not in space.raw:
        return ids, ts, None if column is None else np.zeros(ids.size)
    return ids, ts, space.raw[column].data[slots]
