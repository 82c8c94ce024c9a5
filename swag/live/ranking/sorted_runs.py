"""Sorted runs of a column, for quantiles: SortedRuns, and what others are made of that are made again from the rows.

They are functions of the rows, and take longer to write down than to make again: snapshots do not hold them.
"""

import numpy as np

from kernels.rings.timeline import HEAD, TAIL
from kernels.windows import sorted_runs
from swag.durable.state import State
from swag.live.arena import Column
from swag.live.space import Space
from swag.live.structures import Structure
from swag.query.kind import Part


class Remade(Structure):
    """A structure that is made again from the rows when a snapshot is loaded."""

    def state(self) -> State:
        return {"updates": self.updates, "lookups": self.lookups}, {}

    def restore(self, state: State) -> None:
        """Those of earlier versions held the runs as well."""
        header, _ = state
        self.rebuild()
        self.updates, self.lookups = header["updates"], header["lookups"]


class SortedRuns(Remade):
    """B-INT-QNT; its partials are the element of a rank and the one after it."""

    name, update_cost, lookup_cost = "B-INT-QNT", "O(log N)", "O(log² W)"

    def __init__(self, space: Space, part: Part) -> None:
        super().__init__(space, part)
        self.held = [space.arena.allocate(self.dtype.type, 0, rows=0)]

    def update(self, keys: np.ndarray, counts: np.ndarray) -> None:
        add_levels(self.columns, self.held[0], self.rings, keys)
        sorted_runs.update(self.columns, self.held[0].data, self.rings, keys, counts)

    def select(
        self, keys: np.ndarray, lo: np.ndarray, hi: np.ndarray, ranks: np.ndarray, next_too: bool = True
    ) -> tuple[np.ndarray, np.ndarray]:
        """next_too: the element after it is asked for; else there is none."""
        out, after = np.empty(lo.shape, self.dtype), np.empty(lo.shape if next_too else (0, 0), self.dtype)
        sorted_column = self.columns, self.held[0].data
        sorted_runs.lookup(sorted_column, self.rings, keys, (lo, hi), ranks, out, after)
        self.lookups += lo.size
        return out, after


def add_levels(column: np.ndarray, runs: Column, rings: np.ndarray, keys: np.ndarray) -> None:
    """One level per power of two up to the longest ring of these keys."""
    longest = int((rings[keys, TAIL] - rings[keys, HEAD]).max(initial=1))
    while runs.data.shape[0] < longest.bit_length() - sorted_runs.BITS:
        runs.data = np.vstack([runs.data, np.empty((1, runs.data.shape[1]), runs.data.dtype)])
        sorted_runs.rebuild_level(column, runs.data, runs.data.shape[0] - 1, rings)
