"""skew over stored events: by differences of running powers, certified, or else swept (kernels/stored/cubed.py)."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kernels.operators.skewness import Skewness
from kernels.stored import cubed, edges
from swag.query.aggregates import Aggregate
from swag.stored.aggregators import Aggregator, Answer, Outputs, swept_and_lowered
from swag.stored.blocks import Chunk, Output, RequestBlock
from swag.stored.sums import until_in_doubt

PIECE = 12  # log2 of the rows from one piece to the next
ROWS_IN_PIECE = 1 << 11  # of narrow windows: those lie in a piece
ONE_PIECE = 62  # log2 of more rows than there are: all are in one piece


@dataclass(eq=False)
class Cubed:
    """The running sums that skews are read from, by differences: over pieces for narrow windows, over all for others.
    It owns both, each made when it is first read."""

    values: np.ndarray
    base: int

    @cached_property
    def changes(self) -> np.ndarray:
        found = np.empty(self.values.size + 1, np.int32)
        cubed.count_changes(self.values, found)
        return found

    @cached_property
    def narrow(self) -> cubed.CubedSums:
        return self._sums(PIECE, (1 << PIECE) + ROWS_IN_PIECE, (self.values.size >> PIECE) + 1)

    @cached_property
    def wide(self) -> cubed.CubedSums:
        return self._sums(ONE_PIECE, self.values.size, 1)

    def _sums(self, shift: int, length: int, count: int) -> cubed.CubedSums:
        sums, bounds = np.empty((count * (length + 1), 6)), np.empty((2, count))
        found = cubed.CubedSums(self.values, self.base, shift, length, sums, self.changes, *bounds)
        cubed.accumulate_pieces(found)
        return found

    def answer(self, block: RequestBlock, aggregate: Aggregate, output: Output) -> bool:
        """False if too many skews are in doubt."""
        slot, valid = output.slot(block), None
        running = self.narrow if edges.widest(block.lo, block.hi) <= ROWS_IN_PIECE else self.wide
        if cubed.skews(running, block.lo, block.hi, slot):
            valid = np.ones(slot.size, np.bool_)
            if not cubed.reconsider_skews(running, block.lo, block.hi, slot, valid):
                return False
        output.settle(block, slot, valid)
        return True


class Skew(Aggregator):
    """skew of a column."""

    def start(self, chunk: Chunk, outputs: Outputs) -> Answer:
        """Answers of one window, block after block: skews from running powers until in doubt, then swept."""
        values, (base, _) = self.column(chunk, 0, np.float64), self.rows(chunk)
        rows: Cubed = chunk.once((self, "cubed"), lambda: Cubed(values, base))
        return until_in_doubt(rows.answer, lambda: swept_and_lowered(self, chunk, outputs, Skewness(), values), outputs)
