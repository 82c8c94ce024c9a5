"""A space: the rows that count for some queries, key by key, in rings (kernels/rings/timeline.py), with what is kept.

The main space holds every event. Queries with a `where`, or over a column with nulls, have a space of their own that
holds only the rows that count for them; the main space then keeps, per event, its *rank* there (how many rows of that
key counted before it), so window edges in the main space become edges in that one, and no structure ever sees a null.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kernels.rings import timeline
from kernels.rings.timeline import CAPACITY, HEAD, OFFSET, TAIL
from kernels.rings.timeline import Batch as Batch

LARGE = 1024  # slots from which on an arena that is mostly empty is made smaller


class Mask(NamedTuple):
    """Which rows count: where a predicate holds, and these columns are not null, from some event on."""

    where: str | None = None
    required: frozenset[str] = frozenset()
    since: int = 0  # for queries that came later: the number of events before them


@dataclass
class Column:
    """An array over an arena's slots: one entry per 2^shift positions, or several rows of such entries (2-D)."""

    data: np.ndarray
    shift: int = 0


def group(ids: np.ndarray, seen: np.ndarray) -> Batch:
    """The rows of a batch by key. seen: a zero per key (scratch)."""
    order, keys, starts = np.empty(ids.size, np.int64), np.empty(ids.size, np.int64), np.empty(ids.size + 1, np.int64)
    runs = timeline.group_by_key(ids, seen, order, keys, starts)
    return Batch(order, keys[:runs], starts[: runs + 1])


class Arena:
    """Power-of-two rings, one per key, inside arrays that grow and shrink together."""

    def __init__(self) -> None:
        self.rings = np.zeros((0, 4), np.int64)
        self.columns: list[Column] = []
        self._slots = 0  # allocated in every column
        self._used = 0  # given out at least once since the last repacking
        self._free: dict[int, np.ndarray] = {}  # capacity -> offsets of rings given back

    # Zeros, not what memory held: a NaN in a slot never written would spoil weighted sums (and zeros cost nothing).

    def allocate(self, dtype: type, shift: int = 0, rows: int | None = None) -> Column:
        size = self._slots >> shift
        column = Column(np.zeros(size if rows is None else (rows, size), dtype), shift)
        self.columns.append(column)
        return column

    def release(self, columns: Iterable[Column]) -> None:
        gone = {id(column) for column in columns}
        self.columns = [column for column in self.columns if id(column) not in gone]

    def add_keys(self, count: int) -> None:
        """Make sure there is a (so far empty) ring for each of `count` keys."""
        if count > self.rings.shape[0]:
            grown = np.zeros((max(count, 2 * self.rings.shape[0] if count > 1 else 1), 4), np.int64)
            grown[: self.rings.shape[0]] = self.rings
            self.rings = grown

    def make_room(self, keys: np.ndarray, coming: np.ndarray, expire: Callable[[np.ndarray, np.ndarray], None]) -> None:
        """Room for coming[r] more rows of keys[r]: first what has expired goes, then rings grow (or shrink)."""
        runs = np.empty(keys.size, np.int64)
        full = runs[: timeline.overfull(self.rings, keys, coming, runs)]
        if full.size:
            keys, coming = keys[full], coming[full]
            if self._used:
                expire(keys, coming)
            self._resize(keys, coming)

    def tidy(self, keys: np.ndarray, expire: Callable[[np.ndarray, np.ndarray], None]) -> None:
        """Give back what silent keys no longer need."""
        nothing = np.zeros(keys.size, np.int64)
        expire(keys, nothing)
        self._resize(keys, nothing)
        self._shrink()

    def renumber(self, kept: np.ndarray) -> None:
        """Key kept[i] is key i from now on, and there are no others: what those had is given back."""
        self.add_keys(int(kept.max(initial=-1)) + 1)
        gone = np.ones(self.rings.shape[0], bool)
        gone[kept] = False
        self._give_back(self.rings[gone, OFFSET], self.rings[gone, CAPACITY])
        self.rings = self.rings[kept]
        self._shrink()

    def take_slots(self, batch: Batch) -> np.ndarray:
        slots = np.empty(batch.order.size, np.int64)
        timeline.take_slots(self.rings, tuple(batch), slots)  # a plain tuple is handed over in half the time
        return slots

    def kept(self, key_count: int) -> np.ndarray:
        """Rows kept per key."""
        return self.rings[:key_count, TAIL] - self.rings[:key_count, HEAD]

    @property
    def bytes(self) -> int:
        return self.rings.nbytes + sum(column.data.nbytes for column in self.columns)

    def _resize(self, keys: np.ndarray, coming: np.ndarray) -> None:
        wanted = np.empty(keys.size, np.int64)
        if timeline.fitting(self.rings, keys, coming, wanted):
            return
        moving = wanted >= 0
        keys, capacities = keys[moving], wanted[moving]
        offsets = self._places(capacities)
        if offsets is None:
            self._repack(keys, capacities)
        else:
            old = self.rings[keys, OFFSET].copy(), self.rings[keys, CAPACITY].copy()
            self._move(keys, offsets, capacities, None)
            self._give_back(*old)

    def _places(self, capacities: np.ndarray) -> np.ndarray | None:
        """Offsets for new rings, from those given back or from the unused end; None if there is not enough."""
        offsets = np.zeros(capacities.size, np.int64)
        taken: dict[int, int] = {}
        used = self._used
        for capacity in np.unique(capacities):  # a few powers of two, not keys
            if capacity == 0:
                continue
            which = np.flatnonzero(capacities == capacity)
            free = self._free.get(int(capacity), np.zeros(0, np.int64))
            reuse = min(free.size, which.size)
            offsets[which[:reuse]] = free[free.size - reuse :]
            taken[int(capacity)] = reuse
            fresh = which.size - reuse
            offsets[which[reuse:]] = used + capacity * np.arange(fresh)
            used += int(capacity) * fresh
        if used > self._slots:
            return None
        self._used = used
        for capacity, reuse in taken.items():
            if reuse:
                self._free[capacity] = self._free[capacity][:-reuse]
        return offsets

    def _give_back(self, offsets: np.ndarray, capacities: np.ndarray) -> None:
        for capacity in np.unique(capacities[capacities > 0]):
            free = self._free.get(int(capacity), np.zeros(0, np.int64))
            self._free[int(capacity)] = np.concatenate([free, offsets[capacities == capacity]])

    def _repack(self, keys: np.ndarray, capacities: np.ndarray) -> None:
        """Lay out all rings anew, with a quarter to spare where there are many (a single one fits exactly)."""
        all_capacities = self.rings[:, CAPACITY].copy()
        all_capacities[keys] = capacities
        total = int(all_capacities.sum())
        offsets = np.cumsum(all_capacities) - all_capacities
        self._slots = total if np.count_nonzero(all_capacities) <= 1 else total + (total >> 2 >> 6 << 6)
        self._used, self._free = total, {}
        self._move(np.arange(self.rings.shape[0]), offsets, all_capacities, self._slots)

    def _shrink(self) -> None:
        """Give memory back where three quarters of it are in no ring."""
        free = sum(capacity * offsets.size for capacity, offsets in self._free.items())
        if self._slots > LARGE and 4 * (self._used - free) <= self._slots:
            self._repack(np.zeros(0, np.int64), np.zeros(0, np.int64))

    def _move(self, keys: np.ndarray, offsets: np.ndarray, capacities: np.ndarray, size: int | None) -> None:
        for column in self.columns:
            source, entries = column.data, None if size is None else size >> column.shift
            target = source if entries is None else np.zeros((*source.shape[:-1], entries), source.dtype)
            for s, t in zip(np.atleast_2d(_words(source)), np.atleast_2d(_words(target)), strict=True):
                timeline.relocate(s, t, column.shift, self.rings, keys, offsets, capacities)
            column.data = target
        self.rings[keys, OFFSET] = offsets
        self.rings[keys, CAPACITY] = capacities


def _words(array: np.ndarray) -> np.ndarray:
    """Floats as words of the same size: what is only moved needs no kernel for each type."""
    return array.view(np.int64) if array.dtype == np.float64 else array


class Space:
    """An arena with the raw columns that its structures are made from."""

    def __init__(self, mask: Mask, parent: "Space | None" = None) -> None:
        self.mask = mask
        self.parent = parent
        self.arena = Arena()
        self.raw: dict[str, Column] = {}
        self.rank: Column | None = None
        if parent is not None:  # rows from before this space was made do not count in it
            self.rank = parent.arena.allocate(np.int64)
            self.rank.data[:] = 0

    def label(self) -> str:
        where, required, since = self.mask
        conditions = ([where] if where else []) + [f"{name} is not null" for name in sorted(required)]
        return (" and ".join(conditions) or "every event") + (f" after the first {since:,}" if since else "")

    def add_raw(self, name: str, dtype: type) -> Column:
        if name not in self.raw:
            self.raw[name] = self.arena.allocate(dtype)
        return self.raw[name]

    def copy_raw(self, other: "Space") -> None:
        """The raw columns of a space with the same rings."""
        for name, column in other.raw.items():
            self.raw[name] = Column(column.data.copy(), column.shift)
            self.arena.columns.append(self.raw[name])

    def expire_with_parent(self, keys: np.ndarray, coming: np.ndarray) -> None:
        assert self.parent is not None and self.rank is not None
        timeline.follow(self.arena.rings, self.parent.arena.rings, self.rank.data, keys)

    def to_positions(self, keys: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Edges in the main space -> edges here."""
        if self.parent is None:
            return lo, hi
        assert self.rank is not None
        lo, hi = lo.copy(), hi.copy()
        for edge in (lo, hi):
            timeline.to_ranks(edge, keys, self.parent.arena.rings, self.rank.data, self.arena.rings)
        return lo, hi

    def narrowed(self, column: str) -> "Space":
        """A copy of this space for the day a column has its first null: until now its rows were all valid."""
        where, required, since = self.mask
        main = self if self.parent is None else self.parent
        other = Space(Mask(where, required | {column}, since), main)
        other.arena.rings = self.arena.rings.copy()
        other.arena._slots, other.arena._used = self.arena._slots, self.arena._used
        other.arena._free = dict(self.arena._free)
        assert other.rank is not None
        if self.rank is None:
            rings = main.arena.rings
            keys = np.flatnonzero(rings[:, TAIL] > rings[:, HEAD])
            timeline.rank_by_position(rings, keys, other.rank.data)
        else:
            other.rank.data[:] = self.rank.data
        return other
