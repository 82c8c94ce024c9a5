"""The rows of all filters in one space: whatever their number, a batch is the same few calls of kernels.

    main space          every event                                       a b c d e f g h
    filter 0, key       side = 'buy': the rows that satisfy it, and       a   c     f g
    filter 1, key       price > 20    their positions in the main space       c d       h

A filter is one more part of the key: every pair (filter, key) that has met a row is a substream with a ring of its own
(kernels/rings/substreams.py), and one that has met none takes no memory. Structures work over these rings as over those
of keys, so that one structure serves all filters that ask for the same partials.

What an event costs follows the filters that it satisfies. Of thresholds on one column (v > c, many c) that is half of
them: where they are many, they share the rows of all instead (swag/live/filtered/thresholds.py).
"""

import sys
from collections.abc import Sequence, Set

import numpy as np

from kernels.rings import substreams
from kernels.rings.substreams import KEYS
from kernels.rings.timeline import CAPACITY, HEAD, OFFSET, TAIL, scatter
from swag.durable.state import State, nested, part, with_arrays
from swag.live.arena import Batch, group
from swag.live.filtered.pairs import Pairs
from swag.live.space import EACH, Mask, Space

MANY_SUBSTREAMS = 1024  # substreams; fewer without rows are not worth numbering the others anew


class Substreams(Space):
    """The rows of many filters with the same columns, from the same event on.

    It owns a number for each of its filters, a ring for each (filter, key), and the position that each row has in the
    main space. Asked of it: to take the rows of a batch, the rings of keys for a filter (`located`), positions in them,
    and to let go of what the main space has let go of, of filters that are gone, and of pairs without rows.
    """

    def __init__(self, mask: Mask, main: Space) -> None:
        super().__init__(mask)
        self.main = main
        self.filters: dict[str, int] = {}  # by their predicates
        self.position = self.arena.allocate(np.int64)
        self._pairs = Pairs()
        self._seen = np.zeros(0, np.int64)  # scratch of `group`
        self._asked: tuple[Sequence[str], np.ndarray] = (), np.zeros(0, np.int64)  # of `numbers`
        self._next_to_tidy, self._known, self._emptied = 0, 0, 0
        self.arena.add_keys(1)

    @property
    def pairs(self) -> np.ndarray:
        """The filter and key of every substream, as one number."""
        return self._pairs.codes

    @property
    def count(self) -> int:
        """Substreams, that of nobody included."""
        return self._pairs.count

    @property
    def used(self) -> int:
        """Substreams with rows."""
        return int(np.count_nonzero(self.arena.kept(self.count)))

    def _predicates(self) -> list[str]:
        if len(self.filters) <= 1:
            return list(self.filters)
        return [f"each of {len(self.filters):,} filters"]

    # -- filters ------------------------------------------------------------------------------------------------------

    def add(self, where: str) -> None:
        """One more filter. Before it takes rows, `keep_filters` has to be called, once for all that came."""
        if where not in self.filters:
            self.filters[where] = len(self.filters)
            self._asked = (), self._asked[1][:0]

    def keep_filters(self, wanted: Set[str]) -> np.ndarray | None:
        """These filters and no others, each with room. Returns what ring each ring was; None: all stay as they are."""
        kept = {where: number for where, number in self.filters.items() if where in wanted}
        if len(kept) == len(self.filters) and self._pairs.fits(len(kept)):
            return None
        rings = self._pairs.arrange(np.array(list(kept.values()), np.int64), self.arena.kept(self.count))
        self.filters = {where: i for i, where in enumerate(kept)}
        self._asked = (), self._asked[1][:0]
        self._move(rings)
        return rings

    def numbers(self, predicates: Sequence[str]) -> np.ndarray:
        """Of these predicates; -1 for those that are no filters here. Every batch asks for the same."""
        asked, numbers = self._asked
        if asked is not predicates:
            numbers = np.array([self.filters.get(each, -1) for each in predicates], np.int64)
            self._asked = predicates, numbers
        return numbers

    # -- batches ------------------------------------------------------------------------------------------------------

    def take(self, rows: np.ndarray, filters: np.ndarray, ids: np.ndarray) -> Batch:
        """Room for rows of a batch, each with the number of a filter. ids: the keys of all rows of the batch.

        Returns them by substream: run r is rows order[starts[r]:starts[r + 1]] of the batch.
        """
        numbers = self._pairs.take(rows, filters, ids, self.main.arena.rings.shape[0])
        self.arena.add_keys(self.count)
        if self._seen.size < self.count:
            self._seen = np.zeros(self.arena.rings.shape[0], np.int64)
        batch = group(numbers, self._seen)
        self.arena.make_room(batch.keys, batch.counts, self.expire_with_parent)
        return Batch(rows[batch.order], batch.keys, batch.starts)

    def take_of_one(self, batch: Batch, counted: np.ndarray) -> Batch:
        """The same where there is but one filter, whose rings are in the order of keys. batch: all rows, by key."""
        self._pairs.make_room(self.main.arena.rings.shape[0])
        self.arena.add_keys(self.count)
        keep = counted[batch.order]
        ends = np.concatenate([[0], np.cumsum(keep)])[batch.starts]
        own = Batch(batch.order[keep], batch.keys + 1, ends)
        self.arena.make_room(own.keys, own.counts, self.expire_with_parent)
        return own

    @property
    def only(self) -> Mask | None:
        """The mask of its filter, if there is one that has the rings for itself."""
        alone = self._pairs.slots == len(self.filters) == 1
        return self.mask.filtered(next(iter(self.filters))) if alone else None

    def write(self, batch: Batch, positions: np.ndarray) -> np.ndarray:
        """The slots of these rows. positions: of all rows of the batch in the main space."""
        slots = self.arena.take_slots(batch)
        scatter(positions, batch.order, slots, self.position.data)
        return slots

    def follow_displaced(self, first: np.ndarray, begins: np.ndarray, places: np.ndarray) -> None:
        """Rows of the main space were displaced: of each key from a position on (-1: none), to these."""
        substreams.shift(self.arena.rings, self.position.data, self.pairs, (first, begins, places))

    # -- windows ------------------------------------------------------------------------------------------------------

    def located(self, mask: Mask, keys: np.ndarray) -> np.ndarray:
        return self.located_each([mask], keys)

    def located_each(self, masks: Sequence[Mask], keys: np.ndarray) -> np.ndarray:
        numbers = np.array([self.filters[mask.where or EACH] for mask in masks], np.int64)
        return self._pairs.find(numbers, keys)

    def keys_of(self, mask: Mask) -> np.ndarray:
        """The keys that have rows of a filter, in order."""
        rings = self._pairs.of_filter(self.filters[mask.where or EACH])
        some = rings[self.arena.rings[rings, TAIL] > self.arena.rings[rings, HEAD]]
        return np.sort(self.pairs[some] & KEYS)

    def to_positions(self, keys: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """keys: the numbers of substreams. Edges in the main space -> edges here."""
        lo, hi = lo.copy(), hi.copy()
        substreams.to_own(self.arena.rings, self.position.data, keys, (lo, hi))
        return lo, hi

    def kept_rows(self, mask: Mask, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """As `Space.kept_rows`, for a filter: the keys, positions in the main space and slots here of its rows."""
        asked = np.zeros(max(1, self.main.arena.rings.shape[0]), bool)
        asked[keys] = True
        own = self._pairs.of_filter(self.filters[mask.where or EACH])
        own = own[asked[self.pairs[own] & KEYS]]
        self.expire_with_parent(own, own)
        rings = self.arena.rings[own]
        counts = rings[:, TAIL] - rings[:, HEAD]
        which = np.repeat(np.arange(own.size), counts)
        at = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + rings[which, HEAD]
        slots = rings[which, OFFSET] + (at & (rings[which, CAPACITY] - 1))
        return self.pairs[own][which] & KEYS, self.position.data[slots], slots

    # -- letting go ---------------------------------------------------------------------------------------------------

    def expire_with_parent(self, keys: np.ndarray, coming: np.ndarray) -> None:
        substreams.follow(self.arena.rings, self.position.data, self.pairs, self.main.arena.rings, keys)

    def tidy(self, rows: int) -> None:
        """After a batch of so many rows: look after some more substreams, in turn. See Store.tidy."""
        count = self.count
        new, self._known = max(0, count - self._known), count
        some = min(count, max(16 + rows // 8 + 2 * new, count >> 6))
        which = (self._next_to_tidy + np.arange(some)) % count
        self._next_to_tidy = (self._next_to_tidy + some) % count
        found = np.empty(some, np.int64)
        parent = self.main.arena.rings
        n = substreams.wasteful(self.arena.rings, self.position.data, self.pairs, parent, which, found)
        if n:
            self._expire_all(found[:n])

    def tidy_all(self) -> None:
        self._expire_all(np.flatnonzero(self.arena.kept(self.count)))

    def _expire_all(self, which: np.ndarray) -> None:
        self.arena.tidy(which, self.expire_with_parent)
        self._emptied += int(np.count_nonzero(self.arena.kept(self.count)[which] == 0))

    def forget_empty(self) -> np.ndarray | None:
        """Forget pairs without rows, where they are half of all. Returns the substreams that stay, if any went."""
        if self._pairs.slots or self.count < MANY_SUBSTREAMS or 2 * self._emptied < self.count:
            return None
        empty: np.ndarray = self.arena.kept(self.count) == 0
        empty[0] = False
        self._emptied = int(np.count_nonzero(empty))
        if 2 * self._emptied < self.count:
            return None
        kept = np.flatnonzero(~empty)
        self._pairs.keep(kept)
        self._move(kept)
        return kept

    def renumber(self, kept: np.ndarray) -> np.ndarray:
        """Key kept[i] is key i from now on, and there are no others. Returns what ring each ring was."""
        rings = self._pairs.renumber(kept)
        self._move(rings)
        return rings

    def _move(self, rings: np.ndarray) -> None:
        """Ring rings[i] is ring i from now on, and there are no others."""
        self.arena.renumber(rings)
        self._seen = np.zeros(0, np.int64)
        self._next_to_tidy, self._known, self._emptied = 0, rings.size, 0

    # -- others like it -----------------------------------------------------------------------------------------------

    def narrowed(self, column: str) -> "Substreams":
        other = Substreams(self.mask.requiring(column), self.main)
        other.arena.lay_out_as(self.arena)
        other.position.data = self.position.data.copy()
        other.filters, other._pairs = dict(self.filters), self._pairs.copy()
        return other

    def adopt(self, mask: Mask, other: Space, key_count: int) -> None:
        """The rows of a filter, from a space that holds no others."""
        keys, positions, slots = other.kept_rows(mask, np.arange(key_count))
        for name, column in other.raw.items():
            self.add_raw(name, column.data.dtype.type)
        self.keep_filters(self.filters.keys())
        batch = self.take(np.arange(keys.size), np.full(keys.size, self.filters[mask.where or EACH]), keys)
        first = other.arena.rings[self.pairs[batch.keys] & KEYS, TAIL] - batch.counts
        self.arena.rings[batch.keys, HEAD] = self.arena.rings[batch.keys, TAIL] = first  # base intervals stay aligned
        own = self.write(batch, positions)
        for name, column in other.raw.items():
            scatter(column.data[slots], batch.order, own, self.raw[name].data)

    @property
    def bytes(self) -> int:
        return self.arena.bytes + self._pairs.bytes + self._seen.nbytes + sys.getsizeof(self.filters)

    def state(self) -> State:
        arrays = {f"raw/{name}": column.data for name, column in self.raw.items()}
        header = self.mask.to_json() | {"raw": list(self.raw), "filters": self.filters}
        whole = nested(header, {"arena": self.arena.state(), "pairs": self._pairs.state()})
        return with_arrays(whole, arrays | {"position": self.position.data})

    def restore(self, state: State) -> None:
        header, arrays = state
        self.arena.restore(part(state, "arena"))
        self.position.data = arrays["position"]
        self.filters = header["filters"]
        self._pairs.restore(part(state, "pairs"))
        for name in header["raw"]:
            self.raw[name] = self.arena.adopt(arrays[f"raw/{name}"])
