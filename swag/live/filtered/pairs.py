"""A ring for every filter and key: which one is whose.

    few filters     ring 1 + key * slots + filter: nothing is searched, and the rings of keys lie in their order
    many            pairs that have met a row are numbered as they come, by a hash table; the others take no memory

Ring 0 is nobody's and always empty. A pair is one number, see kernels/rings/substreams.py.
"""

import numpy as np
import pyarrow as pa

from kernels.rings import substreams
from kernels.rings.substreams import FILTERED_KEY_BITS, KEYS
from swag.durable.state import State
from swag.tables.keys import KeyTable

FEW_WITH_RINGS = 8  # filters that have a ring of each key: of 100,000 keys, lookups take a third of the time
NOBODY = -1


class Pairs:
    """The rings of filters and keys. It owns their numbers, nothing else.

    Asked of it: the ring of a pair (`take` for new ones too, `find`), the pair of a ring (`codes`), and who stays where
    when filters or keys go: whoever owns the rings moves them, and tells structures.
    """

    def __init__(self) -> None:
        self.slots = 1  # of each key; 0: rings are numbered as they come
        self._keys = 0  # that have rings so far, if they have slots
        self._table = _numbered(np.array([NOBODY]))
        self._codes: np.ndarray | None = None
        self._sorted: tuple[np.ndarray, np.ndarray] | None = None  # of `of_filter`

    @property
    def count(self) -> int:
        """Rings, that of nobody included."""
        return 1 + self._keys * self.slots if self.slots else self._table.count

    @property
    def codes(self) -> np.ndarray:
        """The pair of every ring."""
        if not self.slots:
            return self._table.numbers
        if self._codes is None:
            ring = np.arange(self._keys * self.slots)
            self._codes = np.append(NOBODY, (ring % self.slots << FILTERED_KEY_BITS) | ring // self.slots)
        return self._codes

    @property
    def bytes(self) -> int:
        return self._table.bytes + (0 if self._codes is None else self._codes.nbytes)

    def take(self, rows: np.ndarray, filters: np.ndarray, ids: np.ndarray, keys: int) -> np.ndarray:
        """The rings of rows, each with its filter. ids: the keys of all rows; keys: how many of them have rings."""
        if self.slots:
            self.make_room(keys)
            return 1 + ids[rows] * self.slots + filters
        pairs = np.empty(rows.size, np.int64)
        substreams.pairs_of(rows, filters, ids, pairs)
        return self._table.encode(pa.array(pairs), "pair")

    def make_room(self, keys: int) -> None:
        if self.slots and keys > self._keys:
            self._keys, self._codes = keys, None

    def find(self, filters: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """The rings of all keys for each of these filters, one after the other."""
        filters = filters[:, None]
        if self.slots:
            rings = np.where((keys < self._keys) & (filters < self.slots), 1 + keys * self.slots + filters, 0)
            return rings.reshape(-1)
        pairs = ((filters << FILTERED_KEY_BITS) | keys).reshape(-1)
        return np.maximum(self._table.find(pa.array(pairs), "pair"), 0)

    def of_filter(self, number: int) -> np.ndarray:
        """Its rings. They are put in order of filters once for as long as none is new."""
        if self.slots:
            return 1 + number + self.slots * np.arange(self._keys)
        if self._sorted is None or self._sorted[0].size != self.count:
            filters = self.codes >> FILTERED_KEY_BITS
            order = np.argsort(filters, kind="stable")
            self._sorted = order, filters[order]
        order, filters = self._sorted
        return order[slice(*np.searchsorted(filters, [number, number + 1]))]

    # -- who stays where ----------------------------------------------------------------------------------------------

    def fits(self, filters: int) -> bool:
        """Is there a ring, or will there be one, for each of so many filters?"""
        return self.slots == 0 or filters <= self.slots

    def arrange(self, filters: np.ndarray, kept: np.ndarray) -> np.ndarray:
        """Filter filters[i] is filter i from now on, and there are no others. kept: how many rows each ring has.

        Returns for each new ring the old one that it was; 0: it is new, and empty.
        """
        if self.slots and filters.size <= FEW_WITH_RINGS:
            return self._arrange_slots(1 << max(0, int(filters.size) - 1).bit_length(), filters)
        codes = self.codes[1:]
        new = np.full(max(int(filters.max(initial=-1)), int((codes >> FILTERED_KEY_BITS).max(initial=-1))) + 1, -1)
        new[filters] = np.arange(filters.size)
        number = new[codes >> FILTERED_KEY_BITS]
        there = np.flatnonzero((number >= 0) & (kept[1:] > 0))
        self._number(np.append(NOBODY, (number[there] << FILTERED_KEY_BITS) | (codes[there] & KEYS)))
        return np.append(0, 1 + there)

    def _arrange_slots(self, slots: int, filters: np.ndarray) -> np.ndarray:
        key, slot = np.divmod(np.arange(self._keys * slots), slots)
        old = np.append(filters, np.full(slots - filters.size, self.slots))[slot]
        rings = np.append(0, np.where(old < self.slots, 1 + key * self.slots + old, 0))
        self.slots, self._codes = slots, None
        return rings

    def keep(self, rings: np.ndarray) -> None:
        """These and no others (they are numbered as they came)."""
        self._number(self.codes[rings])

    def renumber(self, kept: np.ndarray) -> np.ndarray:
        """Key kept[i] is key i from now on, and there are no others. Returns what ring each new one was."""
        if self.slots:
            first = 1 + kept[:, None] * self.slots + np.arange(self.slots)
            rings = np.append(0, np.where(first < self.count, first, 0))
            self._keys, self._codes = kept.size, None
            return rings
        codes = self.codes[1:]
        new = np.full(max(int(kept.max(initial=-1)), int((codes & KEYS).max(initial=-1))) + 1, -1)
        new[kept] = np.arange(kept.size)
        keys = new[codes & KEYS]
        there = np.flatnonzero(keys >= 0)
        self._number(np.append(NOBODY, (codes & ~KEYS | keys)[there]))
        return np.append(0, 1 + there)

    def _number(self, codes: np.ndarray) -> None:
        self._table, self.slots, self._keys = _numbered(codes), 0, 0
        self._codes = self._sorted = None

    def state(self) -> State:
        header = {"slots": self.slots, "keys": self._keys}
        return header, {"codes": self._table.numbers}

    def restore(self, state: State) -> None:
        header, arrays = state
        self._number(arrays["codes"])
        self.slots, self._keys = header["slots"], header["keys"]

    def copy(self) -> "Pairs":
        other = Pairs()
        other.restore(self.state())
        return other


def _numbered(codes: np.ndarray) -> KeyTable:
    table = KeyTable(pa.int64())
    table.encode(pa.array(codes, pa.int64()), "pair")
    return table
