"""How stored events are aggregated: per family of aggregates, a part that answers blocks of windows, given their edges.

count, first, last     positions alone
sum, mean, wmean       differences of running sums       in doubt: swept, compensated
var, std               differences of centred sums       in doubt: swept, moments
min, max               swept
cov, corr, own         swept
quantile               a cursor over ranks
"""

from typing import Any

import numpy as np
import pyarrow as pa

from kernels.stored import ranked
from swag.errors import SwagError
from swag.query import families
from swag.query.aggregates import Aggregate
from swag.query.user_calls import raised_by
from swag.stored.aggregator import Aggregator, Answer, Outputs, swept_and_lowered
from swag.stored.blocks import Chunk, Output, RequestBlock
from swag.stored.ordered_rows import Requests
from swag.stored.sums import IntegerSums, Sums, Variance, WeightedMean


class Count(Aggregator):
    """How many rows are in each window: read off its edges."""

    def output(self, requests: Requests, aggregate: Aggregate) -> Output:
        return Output(requests, np.int64, least=0)

    def start(self, chunk: Chunk, outputs: Outputs) -> Answer:
        (output,) = outputs.values()

        def answer(block: RequestBlock) -> None:
            slot = output.slot(block)
            np.subtract(block.hi, block.lo, out=slot)
            output.settle(block, slot)

        return answer


class End(Aggregator):
    """first and last: the input row to take the answer from, whatever the column's type."""

    def output(self, requests: Requests, aggregate: Aggregate) -> Output:
        return Output(requests, np.int64)

    def start(self, chunk: Chunk, outputs: Outputs) -> Answer:
        ((aggregate, output),) = outputs.items()
        rows = self.selection.rows

        def answer(block: RequestBlock) -> None:
            slot = output.slot(block)
            at = block.lo if aggregate.kind == "first" else block.hi - 1
            if rows is None:
                slot[:] = at
            elif rows.size:
                np.take(rows, at, out=slot, mode="clip")
            output.settle(block, slot)

        return answer


class Swept(Aggregator):
    """cov and corr; user-defined aggregates."""

    def start(self, chunk: Chunk, outputs: Outputs) -> Answer:
        aggregate = next(iter(outputs))
        (part,) = families.parts_of(aggregate)
        pair = len(self.columns) == 2
        columns = (self.column(0, np.float64), self.column(1, np.float64)) if pair else self.column()
        answer = swept_and_lowered(self, chunk, outputs, families.operator(part), columns)
        return answer if aggregate.user is None else self._saying_what_raised(answer, aggregate)

    def _saying_what_raised(self, answer: Answer, aggregate: Aggregate) -> Answer:
        def told(block: RequestBlock) -> None:
            try:
                answer(block)
            except SwagError:
                raise
            except Exception as why:
                a, b = (int(block.lo.min()), int(block.hi.max())) if block.lo.size else (0, 0)
                rows = np.arange(a, b) if self.selection.rows is None else self.selection.rows[a:b]
                known = self.selection.stored.as_given
                raise raised_by(aggregate, f"{aggregate}", self.column()[a:b], rows, known, why) from why

        return told


class Extreme(Aggregator):
    """min or max, straight into the output."""

    def output(self, requests: Requests, aggregate: Aggregate) -> Output:
        return Output(requests, self.column().dtype)

    def start(self, chunk: Chunk, outputs: Outputs) -> Answer:
        ((aggregate, output),) = outputs.items()
        (part,) = families.parts_of(aggregate)
        sweep = self.sweep(chunk, families.operator(part), self.column())

        def answer(block: RequestBlock) -> None:
            slot = output.slot(block)
            sweep(block, slot)
            output.settle(block, slot)

        return answer


class Quantile(Aggregator):
    """Quantiles: rows are ranked once; each aggregate has a set and a cursor of its own."""

    def output(self, requests: Requests, aggregate: Aggregate) -> Output:
        return Output(requests, np.float64 if aggregate.method == "linear" else self.column().dtype)

    def start(self, chunk: Chunk, outputs: Outputs) -> Answer:
        a, b = self.rows(chunk)
        order = chunk.once((self, "order"), lambda: ranked.rank(self.column()[a:b]))
        cursors = {aggregate: chunk.once((self, aggregate), lambda: ranked.room(*order)) for aggregate in outputs}
        for ranking in cursors.values():
            ranked.empty(ranking)

        def answer(block: RequestBlock) -> None:
            lo, hi = block.lo - a, block.hi - a
            for aggregate, output in outputs.items():
                slot = output.slot(block)
                wanted, fraction = families.ranks(aggregate, block.n)
                linear = aggregate.method == "linear"
                low = np.empty(slot.size, self.column().dtype) if linear else slot
                high = np.empty(slot.size if linear else 0, low.dtype)
                ranked.slide(cursors[aggregate], lo, hi, wanted, low, high)
                if linear:
                    slot[:] = families.interpolate(low, high, fraction)
                output.settle(block, slot)

        return answer


def part_for(aggregate: Aggregate, kinds: dict[str, pa.DataType]) -> type[Aggregator]:
    """The kind of part that answers an aggregate."""
    if aggregate.kind in ("sum", "mean"):
        discrete = families.result_type(Aggregate("sum", aggregate.columns), kinds) == pa.int64()
        return IntegerSums if discrete else Sums
    return _PARTS[aggregate.kind]


_PARTS: dict[str, type[Aggregator]] = {
    "count": Count,
    "first": End,
    "last": End,
    "wmean": WeightedMean,
    "var": Variance,
    "std": Variance,
    "min": Extreme,
    "max": Extreme,
    "quantile": Quantile,
    "cov": Swept,
    "corr": Swept,
    "aggregate": Swept,
}


def family(aggregate: Aggregate) -> Any:
    """Aggregates of the same family, columns and selection are answered by one part."""
    parts = families.parts_of(aggregate)
    return parts[0] if len(parts) == 1 else aggregate.kind
