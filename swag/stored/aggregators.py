"""How stored events are aggregated: per family of aggregates, a part that answers blocks of windows, given their edges.

count, first, last     positions alone
min, max               a table of runs of 2^l rows      where few windows would share it: swept
cov, corr, own …       swept
arg_max, arg_min       swept, the values or the rows they are in                         (swag/stored/rows_and_times.py)
first_n, last_n, age   positions alone                                                   (swag/stored/rows_and_times.py)
decayed_*              swept, relative to no time; then as of each request's             (swag/stored/rows_and_times.py)
quantile               a cursor over ranks
count_distinct, mode   swept, rows linked to those of the same value                     (swag/stored/distinct.py)
sum, mean, wmean       differences of running sums       in doubt: swept, compensated      (swag/stored/sums.py)
any, all, count_if     differences of running sums                                         (swag/stored/sums.py)
var, std               differences of centred sums       in doubt: swept, moments          (swag/stored/sums.py)
skew                   differences of centred sums       in doubt: swept, moments          (swag/stored/skew.py)

A part is built over the rows that the windows of a chunk of requests can see, once for all of them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from kernels.operators import monoids
from kernels.stored import edges, extremes, ranked
from kernels.stored.moving_landmark import sweep
from swag.errors import SwagError
from swag.query import families
from swag.query.aggregates import Aggregate
from swag.query.kinds.quantiles import Neighbours, ranks
from swag.query.user_calls import raised_by
from swag.query.windows import Reach
from swag.stored.blocks import Chunk, Output, RequestBlock
from swag.stored.ordered_rows import Requests, Selection
from swag.tables.columns import column, room, with_bitmap

LARGEST_TABLE = 1 << 23  # values of a chunk's rows, of all levels: 64 MB
Answer = Callable[[RequestBlock], None]
Outputs = dict[Aggregate, Output]


@dataclass(eq=False)
class LandmarkSweep:
    """One window of a chunk by a landmark that moves on (kernels/stored/moving_landmark.py), for any monoid.

    columns: of the rows `base` …"""

    op: Any
    columns: Any
    base: int
    scratch: Any
    mark: np.ndarray

    def __call__(self, block: RequestBlock, out: Any) -> None:
        sweep(self.op, self.columns, *block.since(self.base), self.mark, self.scratch, out)


@dataclass(eq=False)
class Aggregator(ABC):
    """What answers are read from: columns within a selection, for all windows and aggregates of a family that ask."""

    columns: tuple[str, ...]
    selection: Selection
    reaches: set[Reach] = field(default_factory=set)

    def rows(self, chunk: Chunk) -> tuple[int, int]:
        """The rows, from … to, that the windows see from a chunk."""
        if self not in chunk.rows:
            a, b = chunk.seen_by(self.reaches)
            rank = self.selection.rank
            chunk.rows[self] = (a, max(a, b)) if rank is None else (int(rank[a]), int(rank[max(a, b)]))
        return chunk.rows[self]

    def rows_per_request(self, chunk: Chunk) -> float:
        a, b = self.rows(chunk)
        return (b - a) / (chunk.last - chunk.first)

    def dtype(self, i: int = 0) -> np.dtype:
        return self.selection.stored.fields[self.columns[i]].values.dtype

    def column(self, chunk: Chunk, i: int = 0, dtype: Any = None) -> np.ndarray:
        """The values of a column in the rows that the windows see from a chunk."""
        name, kind, (a, b) = self.columns[i], np.dtype(dtype or self.dtype(i)), self.rows(chunk)
        return chunk.once((self.selection, name, kind, a, b), partial(self.selection.column, name, kind, a, b))

    def sweep(self, chunk: Chunk, op: Any, columns: Any, name: str = "") -> LandmarkSweep:
        """Windows are answered one after another, so one scratch serves them all. columns: of the chunk's rows."""
        a, b = self.rows(chunk)
        scratch = chunk.once((self, name, "scratch"), lambda: monoids.empty_state(op, _dtype(columns), b - a + 1))
        return LandmarkSweep(op, columns, a, scratch, np.zeros(3, np.int64))

    def output(self, requests: Requests, aggregate: Aggregate) -> Output:
        """Room for the answers of one window."""
        return Output(requests, np.float64, least=(aggregate.ddof or 0) + 1)

    @abstractmethod
    def start(self, chunk: Chunk, outputs: Outputs) -> Answer:
        """What answers block after block of one window, for all aggregates of the family."""

    def array(self, output: Output, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
        """The answers, once all are there. kind: their type."""
        return with_bitmap(output.values, output.bitmap, kind)

    def as_in_column(self, output: Output, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
        """The answers, where they are values of the first column, which may be the numbers of words."""
        words = self.selection.stored.fields[self.columns[0]].words
        found = with_bitmap(output.values, output.bitmap, kind if words is None else pa.int64())
        return found if words is None else words.take(found)

    def rows_taken(self, rows: np.ndarray, bitmap: np.ndarray | None = None) -> pa.Array | pa.ChunkedArray:
        """Values of the first column, of any type, in rows of the input."""
        return column(self.selection.stored.table, self.columns[0], "").take(with_bitmap(rows, bitmap, pa.int64()))


def _dtype(columns: Any) -> Any:
    return tuple(each.dtype for each in columns) if isinstance(columns, tuple) else columns.dtype


def swept_and_lowered(part: Aggregator, chunk: Chunk, outputs: Outputs, op: Any, columns: Any) -> Answer:
    """Sweep once, then lower for each aggregate."""
    sweep = part.sweep(chunk, op, columns)
    read = families.read_by(outputs)

    def answer(block: RequestBlock) -> None:
        partials = monoids.empty_state(op, _dtype(columns), block.lo.size, read)
        sweep(block, partials)
        for aggregate, output in outputs.items():
            slot = output.slot(block)
            output.settle(block, slot, families.lower_into(aggregate, block.n, [partials], slot))

    return answer


class Count(Aggregator):
    """How many rows are in each window: read off its edges."""

    def output(self, requests: Requests, aggregate: Aggregate) -> Output:
        return Output(requests, np.int64, least=0)

    def start(self, chunk: Chunk, outputs: Outputs) -> Answer:
        """Answers of one window, block after block: how many rows lie between its edges."""
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
        """Answers of one window, block after block: the input rows of the first or last event between its edges."""
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

    def array(self, output: Output, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
        return self.rows_taken(output.values, output.bitmap)


class Swept(Aggregator):
    """Any aggregate of one part whose partials can be combined: cov and corr, those of users' own functions."""

    def start(self, chunk: Chunk, outputs: Outputs) -> Answer:
        aggregate = next(iter(outputs))
        (part,) = families.parts_of(aggregate)
        pair = len(self.columns) == 2
        columns = tuple(self.column(chunk, i, np.float64) for i in (0, 1)) if pair else self.column(chunk)
        answer = swept_and_lowered(self, chunk, outputs, families.operator(part), columns)
        return answer if aggregate.user is None else self._saying_what_raised(answer, aggregate)

    def _saying_what_raised(self, answer: Answer, aggregate: Aggregate) -> Answer:
        """The same answers; what a user's function raises is told with the aggregate and the rows it was given."""

        def told(block: RequestBlock) -> None:
            """Answer a block of windows; an error of a user's function becomes ours, with the rows of the block."""
            try:
                answer(block)
            except SwagError:
                raise
            except Exception as why:
                a, b = (int(block.lo.min()), int(block.hi.max())) if block.lo.size else (0, 0)
                rows = np.arange(a, b) if self.selection.rows is None else self.selection.rows[a:b]
                values = self.selection.column(self.columns[0], self.dtype(), a, b)
                known = self.selection.stored.as_given
                raise raised_by(aggregate, f"{aggregate}", values, rows, known, why) from why

        return told


@dataclass(eq=False)
class ExtremeTable:
    """The extremes of 1, 2, 4 … rows from each row of a chunk on (kernels/stored/extremes.py), for any windows.

    It owns them; a level is added when a window is met that needs it.
    """

    levels: np.ndarray
    base: int
    largest: bool
    depth: int = 1

    @classmethod
    def of(cls, values: np.ndarray, base: int, largest: bool) -> "ExtremeTable":
        width = values.size + 1  # an empty window may lie behind the last row
        levels = room(max(values.size, 1).bit_length() * width, values.dtype).reshape(-1, width)
        levels[0, :-1], levels[0, -1] = values, 0
        return cls(levels, base, largest)

    def __call__(self, block: RequestBlock, out: np.ndarray) -> None:
        needed = int(edges.widest(block.lo, block.hi)).bit_length()
        while self.depth < needed:
            extremes.deepen(self.levels, self.depth, self.largest)
            self.depth += 1
        extremes.lookup(self.levels, self.base, self.largest, block.lo, block.hi, out)


class Extreme(Aggregator):
    """min or max, straight into the output: read off a table where enough windows share it, else swept."""

    def output(self, requests: Requests, aggregate: Aggregate) -> Output:
        return Output(requests, self.dtype())

    def start(self, chunk: Chunk, outputs: Outputs) -> Answer:
        """Answers of one window, block after block: by the chunk's table of extremes if that pays, else by a sweep."""
        ((aggregate, output),) = outputs.items()
        find = self._table(chunk, aggregate) or self._sweep(chunk, aggregate)

        def answer(block: RequestBlock) -> None:
            slot = output.slot(block)
            find(block, slot)
            output.settle(block, slot)

        return answer

    array = Aggregator.as_in_column

    def _table(self, chunk: Chunk, aggregate: Aggregate) -> ExtremeTable | None:
        """Where it pays: a level costs half a nanosecond per row, a sweep instead 2.5 more per answer, or more."""
        a, b = self.rows(chunk)
        levels, answers = (b - a).bit_length(), len(self.reaches) * (chunk.last - chunk.first)
        if levels * (b - a) > min(5 * answers, LARGEST_TABLE):
            return None
        return chunk.once((self, "table"), lambda: ExtremeTable.of(self.column(chunk), a, aggregate.kind == "max"))

    def _sweep(self, chunk: Chunk, aggregate: Aggregate) -> LandmarkSweep:
        (part,) = families.parts_of(aggregate)
        return self.sweep(chunk, families.operator(part), self.column(chunk))


class Quantile(Aggregator):
    """Quantiles: rows are ranked once; each aggregate has a set and a cursor of its own."""

    @property
    def of_times(self) -> bool:
        """Are values times, between any two of which there is another?"""
        return bool(pa.types.is_temporal(self.selection.stored.fields[self.columns[0]].type))

    def output(self, requests: Requests, aggregate: Aggregate) -> Output:
        of_floats = aggregate.method == "linear" and not self.of_times
        return Output(requests, np.float64 if of_floats else self.dtype())

    array = Aggregator.as_in_column

    def start(self, chunk: Chunk, outputs: Outputs) -> Answer:
        """Answers of one window, block after block: a cursor for each quantile slides over the ranks of rows."""
        (a, _), whole = self.rows(chunk), self.of_times
        order = chunk.once((self, "order"), lambda: ranked.rank(self.column(chunk)))
        cursors = {aggregate: chunk.once((self, aggregate), lambda: ranked.room(*order)) for aggregate in outputs}
        for ranking in cursors.values():
            ranked.empty(ranking)

        def answer(block: RequestBlock) -> None:
            """Slide the cursors over a block of windows; linear quantiles are between two neighbouring ranks."""
            lo, hi = block.since(a)
            for aggregate, output in outputs.items():
                slot = output.slot(block)
                wanted, fraction = ranks(aggregate, block.n)
                linear = aggregate.method == "linear"
                low = np.empty(slot.size, self.dtype()) if linear else slot
                high = np.empty(slot.size if linear else 0, low.dtype)
                ranked.slide(cursors[aggregate], lo, hi, wanted, low, high)
                if linear:
                    slot[:], _ = families.lower(aggregate, block.n, [Neighbours(low, high, fraction, whole)])
                output.settle(block, slot)

        return answer
