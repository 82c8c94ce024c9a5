"""Structures of thresholds: of the rows of a window those above a bound, how many they are, and aggregates of them.

They keep the rows sorted by the column that is compared, and answer any bound (kernels/windows/threshold_runs.py).
"""

from typing import Any

import numpy as np

from kernels.operators import monoids
from kernels.windows import sorted_runs, threshold_runs
from swag.live.space import Space
from swag.live.structures.intervals import Partials
from swag.live.structures.ranks import Remade, add_levels, missing_levels
from swag.query.families import operator
from swag.query.kind import ABOVE, Part

Bounded = tuple[np.ndarray, np.ndarray, np.ndarray]  # edges of windows, a row per key; and a bound for each of these


class Above(Remade):
    """What all of them share. The last column of the part is the one that is compared.

    matched, looked_through: of the rows of all windows that were asked for, how many were above the bound.
    """

    update_cost, lookup_cost = "O(log N)", "O(log² W)"

    def __init__(self, space: Space, part: Part) -> None:
        super().__init__(space, part)
        self.held = [space.arena.allocate(each.type, 0, rows=0) for each in reversed(self.dtypes)]
        self.matched, self.looked_through = 0, 0

    def above(self, keys: np.ndarray, asked: Bounded) -> tuple[np.ndarray, Partials]:
        """How many rows of each window are above the bound, flat, and their partials; of none these hold anything."""
        found = np.empty(asked[0].size, np.int64)
        states = self.find(keys, asked, found)
        self.lookups += found.size
        self.matched += int(found.sum())
        self.looked_through += int((asked[1] - asked[0]).sum())
        return found, states

    def find(self, keys: np.ndarray, asked: Bounded, found: np.ndarray) -> Partials:
        """How many there are into `found`; their partials."""
        raise NotImplementedError

    def add_up(self, keys: np.ndarray, asked: Bounded) -> np.ndarray:
        """Sums as floats, row by row: to tell whether those of integers have wrapped."""
        sums = np.empty(asked[0].size)
        threshold_runs.add_up_each(self.columns, self.rings, keys, asked, sums)
        return sums


class CountsAbove(Above):
    """How many rows: sorted runs say it."""

    name = "sorted runs"

    def update(self, keys: np.ndarray, counts: np.ndarray) -> None:
        add_levels(self.columns, self.held[0], self.rings, keys)
        sorted_runs.update(self.columns, self.held[0].data, self.rings, keys, counts)

    def find(self, keys: np.ndarray, asked: Bounded, found: np.ndarray) -> Partials:
        threshold_runs.count(self.columns, self.held[0].data, self.rings, keys, asked, found)
        return found


class AggregatesAbove(Above):
    """Sorted runs, and inside each the aggregates from any row to its end."""

    name = "sorted runs with aggregates inside"

    def __init__(self, space: Space, part: Part) -> None:
        super().__init__(space, part)
        self.op = operator(Part(part.family.removesuffix(ABOVE), part.columns[:1]))

    @property
    def levels(self) -> tuple[Any, Any]:
        runs, inside = self.held
        return runs.data, inside.data

    def update(self, keys: np.ndarray, counts: np.ndarray) -> None:
        for level in missing_levels(self.held, self.rings, keys):
            threshold_runs.rebuild_level(self.op, self.columns, self.levels, level, self.rings)
        threshold_runs.update(self.op, self.columns, self.levels, self.rings, keys, counts)

    def find(self, keys: np.ndarray, asked: Bounded, found: np.ndarray) -> Partials:
        states = monoids.empty_state(self.op, self.dtypes, found.size)
        threshold_runs.lookup(self.op, self.columns, self.levels, self.rings, keys, asked, (found, states))
        return states
