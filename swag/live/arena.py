"""Arenas: the rings of all keys of a space in shared arrays, and columns over them (kernels/rings/timeline.py)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kernels.rings import timeline
from kernels.rings.timeline import CAPACITY, HEAD, OFFSET, TAIL
from kernels.rings.timeline import Batch as Batch
from swag.durable.state import State

FIRST_ROW, ONE_RUN = np.zeros(1, np.int64), np.arange(2)  # of a batch of one row; nobody writes to those
LARGE_ARENA = 1024  # slots from which on an arena that is mostly empty is made smaller


@dataclass
class Column:
    """An array over an arena's slots: one entry per 2^shift positions, or several rows of such entries (2-D)."""

    data: np.ndarray
    shift: int = 0


class NewRows(NamedTuple):
    """What a batch has brought to the rings of a space: the last counts[r] rows of keys[r] are new, `rows` in all.

    again: so many of each are not new, but were displaced by such as are.
    """

    keys: np.ndarray
    counts: np.ndarray
    rows: int
    again: np.ndarray | None = None


def group(ids: np.ndarray, seen: np.ndarray) -> Batch:
    """The rows of a batch by key. seen: a zero per key (scratch)."""
    if ids.size == 1:  # as it is: to find that out takes as long as any other step of appending a row
        return Batch(FIRST_ROW, ids, ONE_RUN)
    order, keys, starts = np.empty(ids.size, np.int64), np.empty(ids.size, np.int64), np.empty(ids.size + 1, np.int64)
    runs = timeline.group_by_key(ids, seen, order, keys, starts)
    return Batch(order, keys[:runs], starts[: runs + 1])


class Arena:
    """Power-of-two rings, one per key, inside arrays that grow and shrink together.

    It owns where rings lie; the columns belong to whoever allocated them, and move with the rings. Asked of it are
    columns, room for rows, and the slots of rows that come.
    """

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

    def adopt(self, data: np.ndarray) -> Column:
        """A column that was saved, or copied from an arena of the same layout."""
        self.columns.append(Column(data))
        return self.columns[-1]

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
        if keys.size == 1:  # as it is in `overfull`, in an eighth of the time
            _, capacity, head, tail = self.rings[keys[0]].tolist()
            if tail - head + coming[0] <= capacity:
                return
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

    def lay_out_as(self, other: "Arena") -> None:
        """Rings where those of another lie."""
        self.rings = other.rings.copy()
        self._slots, self._used, self._free = other._slots, other._used, dict(other._free)

    def take_slot(self, key: int) -> int:
        """That of one more row of a key."""
        offset, capacity, _, tail = self.rings[key].tolist()
        self.rings[key, TAIL] = tail + 1
        return offset + (tail & (capacity - 1))

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
        """Rings that fit the rows kept and coming: others get a place elsewhere, or all rings are laid out anew."""
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
        if self._slots > LARGE_ARENA and 4 * (self._used - free) <= self._slots:
            self._repack(np.zeros(0, np.int64), np.zeros(0, np.int64))

    def _move(self, keys: np.ndarray, offsets: np.ndarray, capacities: np.ndarray, size: int | None) -> None:
        """Rings to other offsets and capacities, in all columns. size: that of new arrays; None: within the same."""
        for column in self.columns:
            source, entries = column.data, None if size is None else size >> column.shift
            target = source if entries is None else np.zeros((*source.shape[:-1], entries), source.dtype)
            for s, t in zip(np.atleast_2d(_words(source)), np.atleast_2d(_words(target)), strict=True):
                timeline.relocate(s, t, column.shift, self.rings, keys, offsets, capacities)
            column.data = target
        self.rings[keys, OFFSET] = offsets
        self.rings[keys, CAPACITY] = capacities

    def state(self) -> State:
        header = {"slots": self._slots, "used": self._used, "free": list(self._free)}
        return header, {"rings": self.rings} | {f"free/{size}": offsets for size, offsets in self._free.items()}

    def restore(self, state: State) -> None:
        header, arrays = state
        self.rings, self._slots, self._used = arrays["rings"], header["slots"], header["used"]
        self._free = {int(size): arrays[f"free/{size}"] for size in header["free"]}


def _words(array: np.ndarray) -> np.ndarray:
    """Floats as words of the same size: what is only moved needs no kernel for each type."""
    return array.view(np.int64) if array.dtype == np.float64 else array
