"""How stored events are aggregated: per family of aggregates, a way to answer a block of windows, given their edges.

What a chunk reads (`Part`) is built over the rows that its windows can see, once for all of them; `start` gives the
function that answers block after block of one window, for all aggregates of the family.

    count, first, last     positions alone
    sum, mean, wmean       differences of running sums       in doubt: swept, compensated
    var, std               differences of centred sums       in doubt: swept, moments
    min, max               swept
    cov, corr, own         swept
    quantile               a cursor over ranks
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from kernels import landmark, monoids, ranked, swept
from swag import families
from swag.aggregates import Aggregate
from swag.chunks import FARTHEST, Block, Chunk, Output
from swag.stored import Requests, Selection
from swag.windows import Reach

Answer = Callable[[Block], None]
Outputs = dict[Aggregate, Output]


class Sweep:
    """One window of a chunk by moving landmarks (kernels/landmark.py): any monoid, two combines per answer."""

    def __init__(self, op: Any, columns: Any, scratch: Any) -> None:
        self.op, self.columns, self.scratch = op, columns, scratch
        self.mark = np.zeros(3, np.int64)

    def __call__(self, block: Block, out: Any) -> None:
        landmark.sweep(self.op, self.columns, block.lo, block.hi, self.mark, self.scratch, out)


@dataclass(eq=False)
class Part:
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

    def column(self, i: int = 0, dtype: Any = None) -> np.ndarray:
        return self.selection.column(self.columns[i], dtype)

    def sweep(self, chunk: Chunk, op: Any, columns: Any, name: str = "") -> Sweep:
        """Windows are answered one after another, so one scratch serves them all."""
        a, b = self.rows(chunk)
        scratch = chunk.once((self, name, "scratch"), lambda: monoids.empty_state(op, _dtype(columns), b - a + 1))
        return Sweep(op, columns, scratch)

    def output(self, requests: Requests, aggregate: Aggregate) -> Output:
        """Room for the answers of one window."""
        return Output(requests, np.float64, least=(aggregate.ddof or 0) + 1)

    def start(self, chunk: Chunk, outputs: Outputs) -> Answer:
        raise NotImplementedError


def _dtype(columns: Any) -> Any:
    return columns[0].dtype if isinstance(columns, tuple) else columns.dtype


class Count(Part):
    def output(self, requests: Requests, aggregate: Aggregate) -> Output:
        return Output(requests, np.int64, least=0)

    def start(self, chunk: Chunk, outputs: Outputs) -> Answer:
        (output,) = outputs.values()

        def answer(block: Block) -> None:
            slot = output.slot(block)
            np.subtract(block.hi, block.lo, out=slot)
            output.settle(block, slot)

        return answer


class End(Part):
    """first and last: the input row to take the answer from, whatever the column's type."""

    def output(self, requests: Requests, aggregate: Aggregate) -> Output:
        return Output(requests, np.int64)

    def start(self, chunk: Chunk, outputs: Outputs) -> Answer:
        ((aggregate, output),) = outputs.items()
        rows = self.selection.rows

        def answer(block: Block) -> None:
            slot = output.slot(block)
            at = block.lo if aggregate.kind == "first" else block.hi - 1
            if rows is None:
                slot[:] = at
            elif rows.size:
                np.take(rows, at, out=slot, mode="clip")
            output.settle(block, slot)

        return answer


@dataclass(eq=False)
class Running:
    """Double-double running sums of rows `base` …; a sum that is at least `sure` is certain."""

    values: np.ndarray
    base: int
    pairs: np.ndarray
    sure: float

    @classmethod
    def of(cls, values: np.ndarray, a: int, b: int) -> "Running":
        pairs = np.empty((b - a + 1, 2))
        lost, size = swept.accumulate(values[a:b], pairs)
        return cls(values, a, pairs, swept.certainty(values[a:b], lost, size))

    def answer(self, block: Block, out: np.ndarray) -> bool:
        """False if too many sums are in doubt."""
        lo, hi = block.lo, block.hi
        if block.in_step:
            left, right = self.pairs[lo[0] - self.base :], self.pairs[hi[0] - self.base :]
            doubted = swept.subtract_in_step(left, right, self.sure, out)
        else:
            doubted = swept.subtract(self.pairs, self.base, self.sure, lo, hi, out)
        return not doubted or swept.reconsider(self.values, self.sure, lo, hi, out)


class FloatSums:
    """The sums of one window, block after block: by differences until in doubt, from then on swept."""

    def __init__(self, part: Part, chunk: Chunk, name: str, values: np.ndarray) -> None:
        self._running: Running = chunk.once((part, name), lambda: Running.of(values, *part.rows(chunk)))
        self._part, self._chunk, self._name = part, chunk, name
        self._sweep: Sweep | None = None

    def __call__(self, block: Block, out: np.ndarray) -> None:
        if self._sweep is None:
            if self._running.answer(block, out):
                return
            self._sweep = self._part.sweep(self._chunk, swept.Compensated(), self._running.values, self._name)
        partials = np.empty(out.size), np.empty(out.size)
        self._sweep(block, partials)
        swept.settle(*partials, out)


class Sums(Part):
    """sum and mean of a float column."""

    def start(self, chunk: Chunk, outputs: Outputs) -> Answer:
        sums = FloatSums(self, chunk, "running", self.column())

        def answer(block: Block) -> None:
            slots = {aggregate.kind: output.slot(block) for aggregate, output in outputs.items()}
            total = slots["sum"] if "sum" in slots else slots["mean"]
            sums(block, total)
            if "mean" in slots:
                swept.divide(total, block.lo, block.hi, slots["mean"])
            for aggregate, output in outputs.items():
                output.settle(block, slots[aggregate.kind])

        return answer


@dataclass(eq=False)
class IntegerSums(Part):
    """sum and mean of an integer column: exact. `beyond`: requests whose sum does not fit int64, and its place."""

    beyond: list[tuple[int, Output]] = field(default_factory=list)

    def output(self, requests: Requests, aggregate: Aggregate) -> Output:
        return Output(requests, np.int64 if aggregate.kind == "sum" else np.float64)

    def start(self, chunk: Chunk, outputs: Outputs) -> Answer:
        a, b = self.rows(chunk)
        run, wide = chunk.once((self, "running"), lambda: _running_integers(self.column()[a:b]))
        by_kind = {aggregate.kind: output for aggregate, output in outputs.items()}

        def answer(block: Block) -> None:
            slots = {kind: output.slot(block) for kind, output in by_kind.items()}
            total = slots["sum"] if "sum" in slots else np.empty(block.lo.size, np.int64)
            dividend = total
            if wide:
                dividend = np.empty(total.size)
                beyond = swept.wide_differences(run, a, block.lo, block.hi, total, dividend)
                if beyond >= 0 and "sum" in slots:
                    self.beyond.append((block.first + beyond, by_kind["sum"]))
            else:
                swept.integer_differences(run, a, block.lo, block.hi, total)
            if "mean" in slots:
                swept.divide(dividend, block.lo, block.hi, slots["mean"])
            for kind, output in by_kind.items():
                output.settle(block, slots[kind])

        return answer


def _running_integers(values: np.ndarray) -> tuple[np.ndarray, bool]:
    """Running sums, and whether a window's sum might not fit int64: they are kept in two halves then."""
    largest = max(abs(int(values.max())), abs(int(values.min()))) if values.size else 0
    wide = largest * values.size > FARTHEST
    run = np.empty((values.size + 1, 2) if wide else values.size + 1, np.int64)
    (swept.accumulate_halves if wide else swept.accumulate_integers)(values, run)
    return run, wide


class WeightedMean(Part):
    def start(self, chunk: Chunk, outputs: Outputs) -> Answer:
        ((aggregate, output),) = outputs.items()
        weighted = FloatSums(self, chunk, "weighted", self.selection.product(*self.columns))
        weights = FloatSums(self, chunk, "weights", self.column(1, np.float64))

        def answer(block: Block) -> None:
            slot, below = output.slot(block), np.empty(block.lo.size)
            weighted(block, slot)
            weights(block, below)
            slot[:], _ = families.lower(aggregate, block.n, [slot, below])
            output.settle(block, slot)

        return answer


@dataclass(eq=False)
class Centred:
    """Running sums of x - c and (x - c)^2 over rows `base` …, c near them, and how often x has changed."""

    values: np.ndarray
    base: int
    sums: np.ndarray
    changes: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray, a: int, b: int) -> "Centred":
        with np.errstate(all="ignore"):
            centre = values[a:b].mean() if b > a else 0.0
        sums, changes = np.empty((b - a + 1, 2)), np.empty(b - a + 1, np.int32)
        swept.accumulate_centred(values[a:b], centre if np.isfinite(centre) else 0.0, sums, changes)
        return cls(values, a, sums, changes)

    def answer(self, block: Block, aggregate: Aggregate, out: np.ndarray) -> bool:
        """False if too many variances are in doubt."""
        lo, hi, ddof, root = block.lo, block.hi, aggregate.ddof, aggregate.kind == "std"
        doubted = swept.variances(self.sums, self.base, lo, hi, ddof, root, out)
        return not doubted or swept.reconsider_variances(self.values, self.changes, self.base, lo, hi, ddof, root, out)


class Variance(Part):
    """var and std, of any ddof."""

    def start(self, chunk: Chunk, outputs: Outputs) -> Answer:
        values = self.column(0, np.float64)
        rows: Centred = chunk.once((self, "centred"), lambda: Centred.of(values, *self.rows(chunk)))
        sweep: Answer | None = None

        def answer(block: Block) -> None:
            nonlocal sweep
            for aggregate, output in outputs.items():
                if sweep is not None:
                    break
                slot = output.slot(block)
                if rows.answer(block, aggregate, slot):
                    output.settle(block, slot)
                else:
                    sweep = _swept(self, chunk, outputs, monoids.Moments(), values)
            if sweep is not None:
                sweep(block)

        return answer


def _swept(part: Part, chunk: Chunk, outputs: Outputs, op: Any, columns: Any) -> Answer:
    """Sweep once, then lower for each aggregate."""
    sweep = part.sweep(chunk, op, columns)

    def answer(block: Block) -> None:
        partials = monoids.empty_state(op, _dtype(columns), block.lo.size)
        sweep(block, partials)
        for aggregate, output in outputs.items():
            slot = output.slot(block)
            slot[:], _ = families.lower(aggregate, block.n, [partials])
            output.settle(block, slot)

    return answer


class Swept(Part):
    """cov and corr; user-defined aggregates."""

    def start(self, chunk: Chunk, outputs: Outputs) -> Answer:
        (part,) = families.parts_of(next(iter(outputs)))
        pair = len(self.columns) == 2
        columns = (self.column(0, np.float64), self.column(1, np.float64)) if pair else self.column()
        return _swept(self, chunk, outputs, families.operator(part), columns)


class Extreme(Part):
    """min or max, straight into the output."""

    def output(self, requests: Requests, aggregate: Aggregate) -> Output:
        return Output(requests, self.column().dtype)

    def start(self, chunk: Chunk, outputs: Outputs) -> Answer:
        ((aggregate, output),) = outputs.items()
        (part,) = families.parts_of(aggregate)
        sweep = self.sweep(chunk, families.operator(part), self.column())

        def answer(block: Block) -> None:
            slot = output.slot(block)
            sweep(block, slot)
            output.settle(block, slot)

        return answer


class Quantile(Part):
    """Quantiles: rows are ranked once; each aggregate has a set and a cursor of its own."""

    def output(self, requests: Requests, aggregate: Aggregate) -> Output:
        return Output(requests, np.float64 if aggregate.method == "linear" else self.column().dtype)

    def start(self, chunk: Chunk, outputs: Outputs) -> Answer:
        a, b = self.rows(chunk)
        order = chunk.once((self, "order"), lambda: ranked.rank(self.column()[a:b]))
        cursors = {aggregate: chunk.once((self, aggregate), lambda: ranked.room(*order)) for aggregate in outputs}
        for ranking in cursors.values():
            ranked.empty(ranking)

        def answer(block: Block) -> None:
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


def part_for(aggregate: Aggregate, kinds: dict[str, pa.DataType]) -> type[Part]:
    """The kind of part that answers an aggregate."""
    if aggregate.kind in ("sum", "mean"):
        discrete = families.result_type(Aggregate("sum", aggregate.columns), kinds) == pa.int64()
        return IntegerSums if discrete else Sums
    return _PARTS[aggregate.kind]


_PARTS: dict[str, type[Part]] = {
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
