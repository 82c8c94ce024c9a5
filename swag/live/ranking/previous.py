"""Where the value of every row was before: Distinct, of sorted runs of that, and Previous, for modes."""

from typing import Any

import numpy as np

from kernels.windows import previous, sorted_runs
from swag.live.ranking.sorted_runs import Remade, add_levels
from swag.live.space import Space
from swag.live.structures import Partials
from swag.query.kind import Part

SMALLEST = 64  # places of a table of values


class Previous(Remade):
    """Of every row where its value was before (kernels/windows/previous.py); its partials are modes.

    It owns these positions, and the table of where each value was seen last. One that was restored is made from rows,
    of which none is known any more that lies before the head.
    """

    name, update_cost, lookup_cost = "previous rows", "O(1)", "O(W)"

    def __init__(self, space: Space, part: Part) -> None:
        super().__init__(space, part)
        self.held = [space.arena.allocate(np.int64)]
        self.table = np.zeros((SMALLEST, 3), np.int64)
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
        larger = np.zeros((max(SMALLEST, 1 << int(3 * kept).bit_length()), 3), np.int64)
        previous.refill(self.table, self.rings, number, larger)
        self.table, self.progress[2] = larger, kept

    def lookup(self, keys: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> Partials:
        out = np.zeros(lo.size, self.dtype)
        previous.mode(self.columns, self.held[0].data, self.rings, keys, (lo, hi), out)
        self.lookups += lo.size
        return out

    def saved(self) -> dict[str, Any]:
        return {"table": self.table}


class Distinct(Previous):
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
