"""What a chunk of requests reads: parts, built over the rows that its windows can see, once for all of them."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernels.operators import monoids
from kernels.stored.moving_landmark import sweep
from swag.query import families
from swag.query.aggregates import Aggregate
from swag.query.windows import Reach
from swag.stored.blocks import Chunk, Output, RequestBlock
from swag.stored.ordered_rows import Requests, Selection

Answer = Callable[[RequestBlock], None]
Outputs = dict[Aggregate, Output]


class LandmarkSweep:
    """One window of a chunk by a landmark that moves on (kernels/stored/moving_landmark.py), for any monoid."""

    def __init__(self, op: Any, columns: Any, scratch: Any) -> None:
        self.op, self.columns, self.scratch = op, columns, scratch
        self.mark = np.zeros(3, np.int64)

    def __call__(self, block: RequestBlock, out: Any) -> None:
        sweep(self.op, self.columns, block.lo, block.hi, self.mark, self.scratch, out)


@dataclass(eq=False)
class Aggregator(ABC):
    """What answers are read from: columns within a selection, for all windows and aggregates of a family that ask."""

    columns: tuple[str, ...]
    selection: Selection
    reaches: set[Reach] = field(default_factory=set)

    def rows(self, chunk: Chunk) -> tuple[int, int]:
        """The rows, from … to, that the windows see from a chunk."""

        def look() -> tuple[int, int]:
            seen = [chunk.seen(reach) for reach in self.reaches]
            a, b = min(lo for lo, _ in seen), max(hi for _, hi in seen)
            rank = self.selection.rank
            return (a, max(a, b)) if rank is None else (int(rank[a]), int(rank[max(a, b)]))

        rows: tuple[int, int] = chunk.once((self, "rows"), look)
        return rows

    def rows_per_request(self, chunk: Chunk) -> float:
        a, b = self.rows(chunk)
        return (b - a) / (chunk.last - chunk.first)

    def column(self, i: int = 0, dtype: Any = None) -> np.ndarray:
        return self.selection.column(self.columns[i], dtype)

    def sweep(self, chunk: Chunk, op: Any, columns: Any, name: str = "") -> LandmarkSweep:
        """Windows are answered one after another, so one scratch serves them all."""
        a, b = self.rows(chunk)
        scratch = chunk.once((self, name, "scratch"), lambda: monoids.empty_state(op, _dtype(columns), b - a + 1))
        return LandmarkSweep(op, columns, scratch)

    def output(self, requests: Requests, aggregate: Aggregate) -> Output:
        """Room for the answers of one window."""
        return Output(requests, np.float64, least=(aggregate.ddof or 0) + 1)

    @abstractmethod
    def start(self, chunk: Chunk, outputs: Outputs) -> Answer:
        """What answers block after block of one window, for all aggregates of the family."""


def _dtype(columns: Any) -> Any:
    return columns[0].dtype if isinstance(columns, tuple) else columns.dtype


def swept_and_lowered(part: Aggregator, chunk: Chunk, outputs: Outputs, op: Any, columns: Any) -> Answer:
    """Sweep once, then lower for each aggregate."""
    sweep = part.sweep(chunk, op, columns)

    def answer(block: RequestBlock) -> None:
        partials = monoids.empty_state(op, _dtype(columns), block.lo.size)
        sweep(block, partials)
        for aggregate, output in outputs.items():
            slot = output.slot(block)
            slot[:], _ = families.lower(aggregate, block.n, [partials])
            output.settle(block, slot)

    return answer
