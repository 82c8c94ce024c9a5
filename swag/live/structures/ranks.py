"""Structures that answer by rank: sorted runs or none for quantiles, and runs for how many values are different.

They are functions of the rows, and take longer to write down than to make again: snapshots do not hold them.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from kernels.rings.timeline import HEAD, TAIL
from kernels.windows import previous, selection, sorted_runs
from swag.durable.state import State
from swag.live.arena import Column
from swag.live.space import Space
from swag.live.structures.intervals import Partials, Structure
from swag.query.kind import Part

SMALLEST_TABLE = 64  # places of a table of values


class Remade(Structure):
    """A structure that is made again from the rows when a snapshot is loaded."""

    def state(self) -> State:
        return {"updates": self.updates, "lookups": self.lookups}, {}

    def restore(self, state: State) -> None:
        """Those of earlier versions held the runs as well."""
        header, _ = state
        self.rebuild()
        self.updates, self.lookups = header["updates"], header["lookups"]


class ByRank(Remade):
    """A structure whose partials are the element of a rank and the one after it."""

    def select(
        self, keys: np.ndarray, lo: np.ndarray, hi: np.ndarray, ranks: np.ndarray, next_too: bool = True
    ) -> tuple[np.ndarray, np.ndarray]:
        """next_too: the element after it is asked for; else there is none."""
        out, after = np.empty(lo.shape, self.dtype), np.empty(lo.shape if next_too else (0, 0), self.dtype)
        self.find(keys, (lo, hi), ranks, out, after)
        self.lookups += lo.size
        return out, after

    def find(self, keys: np.ndarray, edges: Any, ranks: np.ndarray, out: np.ndarray, after: np.ndarray) -> None:
        """The elements of ranks in windows into `out`; `after`: the next ones, of no size where nobody asks."""
        raise NotImplementedError


class SortedOnLookup(ByRank):
    """Nothing but the rows: those of a window are put in order when it is asked for (kernels/windows/selection.py)."""

    name, update_cost, lookup_cost = "sorted on lookup", "nothing", "O(W)"

    def update(self, keys: np.ndarray, counts: np.ndarray) -> None:
        """The rows are all there is."""

    def find(self, keys: np.ndarray, edges: Any, ranks: np.ndarray, out: np.ndarray, after: np.ndarray) -> None:
        selection.lookup(self.columns, self.rings, keys, edges, ranks, out, after)


class SortedRuns(ByRank):
    """B-INT-QNT: sorted base intervals."""

    name, update_cost, lookup_cost = "B-INT-QNT", "O(log N)", "O(log² W)"

    def __init__(self, space: Space, part: Part) -> None:
        super().__init__(space, part)
        self.held = [space.arena.allocate(self.dtype.type, 0, rows=0)]

    def update(self, keys: np.ndarray, counts: np.ndarray) -> None:
        add_levels(self.columns, self.held[0], self.rings, keys)
        sorted_runs.update(self.columns, self.held[0].data, self.rings, keys, counts)

    def find(self, keys: np.ndarray, edges: Any, ranks: np.ndarray, out: np.ndarray, after: np.ndarray) -> None:
        sorted_runs.lookup((self.columns, self.held[0].data), self.rings, keys, edges, ranks, out, after)


def add_levels(column: np.ndarray, runs: Column, rings: np.ndarray, keys: np.ndarray) -> None:
    """One level per power of two up to the longest ring of these keys."""
    for level in missing_levels([runs], rings, keys):
        sorted_runs.rebuild_level(column, runs.data, level, rings)


def missing_levels(columns: list[Column], rings: np.ndarray, keys: np.ndarray) -> Iterator[int]:
    """The levels that columns of runs lack for the longest ring of these keys: each there, and to be filled."""
    longest = int((rings[keys, TAIL] - rings[keys, HEAD]).max(initial=1))
    for level in range(columns[0].data.shape[0], longest.bit_length() - sorted_runs.RUN_BITS):
        for each in columns:
            each.data = np.vstack([each.data, np.empty((1, each.data.shape[1]), each.data.dtype)])
        yield level


class Previous(Remade):
    """Of every row where its value was before (kernels/windows/previous.py); its partials are modes.

    It owns these positions, and the table of where each value was seen last. One that was restored is made from rows,
    of which none is known any more that lies before the head.
    """

    name, update_cost, lookup_cost = "previous rows", "O(1)", "O(W)"

    def __init__(self, space: Space, part: Part) -> None:
        super().__init__(space, part)
        self.held = [space.arena.allocate(np.int64)]
        self.table = np.zeros((SMALLEST_TABLE, 3), np.int64)
        self.progress = np.zeros(3, np.int64)

    @property
    def words(self) -> previous.WordColumn:
        column = self.raw[0].data
        return previous.WordColumn(column.view(np.int64), column.dtype == np.float64)

    def update(self, keys: np.ndarray, counts: np.ndarray) -> None:
        while not previous.note(self.words, self.held[0].data, self.table, self.rings, (keys, counts), self.progress):
            self._make_table(np.arange(self.rings.shape[0]))

    def redo(self, keys: np.ndarray, counts: np.ndarray, again: np.ndarray) -> None:
        previous.take_back(self.words, self.held[0].data, self.table, self.rings, (keys, counts), again)
        self.update(keys, counts)

    def renumber(self, kept: np.ndarray) -> None:
        number = np.full(max(int(kept.max(initial=-1)), int(self.table[:, previous.RING].max())) + 1, -1)
        number[kept] = np.arange(kept.size)
        self._make_table(number)

    def _make_table(self, number: np.ndarray) -> None:
        """Without values that no row holds any more. number: of rings, from now on."""
        kept = previous.count_kept(self.table, self.rings, number)
        larger = np.zeros((max(SMALLEST_TABLE, 1 << int(3 * kept).bit_length()), 3), np.int64)
        previous.refill(self.table, self.rings, number, larger)
        self.table, self.progress[2] = larger, kept

    def lookup(self, keys: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> Partials:
        out = np.zeros(lo.size, self.dtype)
        previous.mode(self.columns, self.held[0].data, self.rings, keys, (lo, hi), out)
        self.lookups += lo.size
        return out

    def saved(self) -> dict[str, Any]:
        return {"table": self.table}


class DistinctRuns(Previous):
    """How many values are different: ranks among the sorted runs of where they were before."""

    name, update_cost, lookup_cost = "B-INT-QNT of previous rows", "O(log N)", "O(log² W)"

    def __init__(self, space: Space, part: Part) -> None:
        super().__init__(space, part)
        self.held.append(space.arena.allocate(np.int64, 0, rows=0))

    def update(self, keys: np.ndarray, counts: np.ndarray) -> None:
        super().update(keys, counts)
        positions, runs = self.held
        add_levels(positions.data, runs, self.rings, keys)
        sorted_runs.update(positions.data, runs.data, self.rings, keys, counts)

    def lookup(self, keys: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> Partials:
        out = np.zeros(lo.size, np.int64)
        positions, runs = self.held
        previous.distinct((positions.data, runs.data), self.rings, keys, (lo, hi), out)
        self.lookups += lo.size
        return out
