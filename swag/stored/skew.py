"""skew over stored events: by differences of running powers, certified, or else swept (kernels/stored/cubed.py)."""

from dataclasses import dataclass

import numpy as np

from kernels.operators.skewness import Skewness
from kernels.stored import cubed
from swag.query.aggregates import Aggregate
from swag.stored.aggregators import Aggregator, Answer, Outputs, swept_and_lowered
from swag.stored.blocks import Chunk, Output, RequestBlock
from swag.stored.sums import near, until_in_doubt


@dataclass(eq=False)
class Cubed:
    """The running sums that skews are read from, by differences."""

    running: cubed.CubedSums

    @classmethod
    def of(cls, values: np.ndarray, base: int) -> "Cubed":
        sums, changes = np.empty((values.size + 1, 6)), np.empty(values.size + 1, np.int32)
        largest, lost = cubed.accumulate_cubed(values, near(values), sums, changes)
        per_square, error = cubed.ROUNDED_CUBES * largest, cubed.SURE_OF_CUBES * lost
        return cls(cubed.CubedSums(values, base, sums, changes, per_square, error))

    def answer(self, block: RequestBlock, aggregate: Aggregate, output: Output) -> bool:
        """False if too many skews are in doubt."""
        slot, valid = output.slot(block), None
        if cubed.skews(self.running, block.lo, block.hi, slot):
            valid = np.ones(slot.size, np.bool_)
            if not cubed.reconsider_skews(self.running, block.lo, block.hi, slot, valid):
                return False
        output.settle(block, slot, valid)
        return True


class Skew(Aggregator):
    """skew of a column."""

    def start(self, chunk: Chunk, outputs: Outputs) -> Answer:
        """Answers of one window, block after block: skews from running powers until in doubt, then swept."""
        values, (base, _) = self.column(chunk, 0, np.float64), self.rows(chunk)
        rows: Cubed = chunk.once((self, "cubed"), lambda: Cubed.of(values, base))
        return until_in_doubt(rows.answer, lambda: swept_and_lowered(self, chunk, outputs, Skewness(), values), outputs)
