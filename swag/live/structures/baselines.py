"""What the paper compares its structures with (section 6.1), as structures: the same answers at other costs."""

from collections.abc import Iterable

import numpy as np

from kernels.baselines import naive, psoup
from kernels.operators import monoids
from kernels.rings.timeline import CAPACITY, HEAD, OFFSET, TAIL
from swag.live import window_edges
from swag.live.arena import Arena
from swag.live.space import Space
from swag.live.store import Store
from swag.live.structures.intervals import Partials, Structure, allocated, extended, partials_of
from swag.query.families import operator
from swag.query.kind import Part
from swag.query.windows import Reach

KEY = np.zeros(1, np.int64)  # these are for one stream: MaterializeAll keeps windows of key 0 current, folds others


class PSoup(Structure):
    """A search tree over the rows, in an arena of its own: a node outlives its row until the tree has let go of it."""

    name, update_cost, lookup_cost = "PSoup", "O(log N)", "O(log N)"

    def __init__(self, space: Space, part: Part) -> None:
        super().__init__(space, part)
        self.op = operator(part)
        self.arena = Arena()
        self.links = self.arena.allocate(np.int64, rows=4)
        self.aggregates = allocated(self.arena, self.op, self.dtypes)
        self.roots = np.zeros(0, np.int64)

    def update(self, keys: np.ndarray, counts: np.ndarray) -> None:
        count = self.rings.shape[0]
        self.arena.add_keys(count)
        self.roots = extended(self.roots, count, psoup.NONE)
        self._expire(keys, counts)
        self.arena.make_room(keys, counts, lambda keys, coming: None)
        psoup.update(self.op, self.columns, self.rings, self._tree, keys)

    def _expire(self, keys: np.ndarray, counts: np.ndarray) -> None:
        psoup.expire(self.op, self.columns, self.rings, self._tree, keys)
        own = self.arena.rings
        empty = own[keys, HEAD] == own[keys, TAIL]
        own[keys[empty], HEAD] = own[keys[empty], TAIL] = self.rings[keys[empty], TAIL] - counts[empty]

    def lookup(self, keys: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> Partials:
        out = monoids.empty_state(self.op, self.dtypes, lo.size)
        psoup.lookup(self.op, self.columns, self.rings, self._tree, keys, (lo, hi), out)
        self.lookups += lo.size
        return out

    @property
    def _tree(self) -> psoup.Tree:
        return psoup.Tree(self.links.data, partials_of(self.op, self.aggregates), self.arena.rings, self.roots)

    @property
    def bytes_apart(self) -> int:
        return self.arena.bytes + self.roots.nbytes


class MaterializeNone(Structure):
    """Nothing but the rows."""

    name, update_cost, lookup_cost = "materialize none", "O(1)", "O(W)"

    def __init__(self, space: Space, part: Part) -> None:
        super().__init__(space, part)
        self.op = operator(part)

    def update(self, keys: np.ndarray, counts: np.ndarray) -> None:
        """The rows are all there is."""

    def lookup(self, keys: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> Partials:
        out = monoids.empty_state(self.op, self.dtypes, lo.size)
        naive.lookup(self.op, self.columns, self.rings, keys, (lo, hi), out)
        self.lookups += lo.size
        return out


class MaterializeAll(Structure):
    """The answer of every window that it was told of, brought up to date by every batch; any other is folded."""

    name, update_cost, lookup_cost = "materialize all", "O(windows)", "O(1)"

    def __init__(self, space: Space, part: Part) -> None:
        super().__init__(space, part)
        self.op = operator(part)
        self.folded = 0  # lookups that found no current answer
        self.store: Store | None = None
        self.reaches = [Reach(True, 0, 0)]  # not even those
        self.set_windows(())

    def set_windows(self, reaches: Iterable[Reach], store: Store | None = None) -> None:
        """Keep these windows current from now on, and no others.

        store: tells where they begin and end. Without one they count the rows of this space, which is what windows by
        rows over every event do; other windows are then folded.
        """
        distinct = [reach for reach in dict.fromkeys(reaches) if store is not None or not reach.by_time]
        if store is self.store and distinct == self.reaches:
            return
        self.store, self.reaches = store, distinct
        count = len(self.reaches)
        self.windows = np.zeros((count, 6), np.int64)
        self.front = monoids.empty_state(self.op, self.dtypes, 0)
        self.back = tuple(monoids.empty_state(self.op, self.dtypes, count) for _ in range(2))
        self.answers = monoids.empty_state(self.op, self.dtypes, count)
        self.table = np.zeros(2 << count.bit_length(), np.int64)
        self.far = self.near = np.zeros(count, np.int64)
        self.upto = (0, 0)  # the tail and the time that answers are current for
        self._materialize()

    def update(self, keys: np.ndarray, counts: np.ndarray) -> None:
        self._materialize()

    def lookup(self, keys: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> Partials:
        if self.store is not None and self.store.now != self.upto[1]:  # time went on without a row
            self._materialize()
        out = monoids.empty_state(self.op, self.dtypes, lo.size)
        current = self.far, self.near, self.table, self.answers, self.upto[0]
        self.folded += naive.recall(self.op, self.columns, self.rings, current, keys, (lo, hi), out)
        self.lookups += lo.size
        return out

    def _materialize(self) -> None:
        """Every window that is kept slides on to where it is now, and its answer is renewed."""
        if not self.rings.shape[0]:
            return
        ring = self.rings[0]
        lo, hi = self._edges()
        self._make_room(hi - lo)
        rows = self.columns, ring[OFFSET], ring[CAPACITY] - 1
        naive.slide(self.op, rows, self.windows, self.front, self.back, (lo, hi), self.answers)
        far, near = ring[TAIL] - lo, ring[TAIL] - hi
        if not (np.array_equal(far, self.far) and np.array_equal(near, self.near)):  # by rows they stay where they are
            self.far, self.near = far, near
            naive.index(far, near, self.table)
        self.upto = int(ring[TAIL]), 0 if self.store is None else self.store.now

    def _edges(self) -> tuple[np.ndarray, np.ndarray]:
        """Where the windows are now."""
        if self.store is not None:
            all_rows = window_edges.edges(self.store, KEY, window_edges.lengths_of(self.reaches), self.store.now)[:2]
            lo, hi = self.space.to_positions(KEY, *all_rows)
            return lo[0], hi[0]
        head, tail = self.rings[0, HEAD], self.rings[0, TAIL]
        far, near = np.array([(reach.far, reach.near) for reach in self.reaches], np.int64).reshape(-1, 2).T
        lo = np.maximum(tail - far, head)
        return lo, np.maximum(tail - near, lo)

    def _make_room(self, widths: np.ndarray) -> None:
        """A front has room for all rows of its window; where one has not, all are laid out anew, and start afresh."""
        room = self.windows[:, naive.ROOM]
        if (widths > room).any():
            room = np.where(widths > room, 1 << np.ceil(np.log2(np.maximum(widths, 8))).astype(np.int64), room)
            self.windows[:] = 0
            self.windows[:, naive.ROOM] = room
            self.windows[:, naive.PLACE] = np.cumsum(room) - room
            self.front = monoids.empty_state(self.op, self.dtypes, int(room.sum()))

    @property
    def bytes_apart(self) -> int:
        states = [self.front, *self.back, self.answers]
        arrays = [self.windows, self.table, self.far, self.near]
        arrays += [array for state in states for array in (state if isinstance(state, tuple) else (state,))]
        return sum(array.nbytes for array in arrays)
