"""Sums, means and variances of stored events: by differences, certified, or else swept (kernels/stored/swept.py)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
import pyarrow as pa

from kernels.operators import compensated, monoids
from kernels.stored import direct, swept
from swag.query import families
from swag.query.aggregates import Aggregate
from swag.stored.aggregators import Aggregator, Answer, LandmarkSweep, Outputs, swept_and_lowered
from swag.stored.blocks import Chunk, Output, RequestBlock
from swag.stored.ordered_rows import Requests
from swag.tables import decimals
from swag.tables.columns import fixed, with_bitmap

SPARSE = 16  # rows per request from which on pieces are cheaper than a running sum of every row


@dataclass(eq=False)
class RunningSums:
    """Double-double running sums of values, the rows `base` …; a sum that is at least `sure` is certain."""

    values: np.ndarray
    base: int
    pairs: np.ndarray
    sure: float

    @classmethod
    def of(cls, values: np.ndarray, base: int) -> "RunningSums":
        pairs = np.empty((values.size + 1, 2))
        lost, size = swept.accumulate(values, pairs)
        return cls(values, base, pairs, swept.certainty(values, lost, size))

    def sums(self, block: RequestBlock, out: np.ndarray) -> bool:
        """False if too many sums are in doubt."""
        lo, hi = block.lo, block.hi
        if block.in_step:
            left, right = self.pairs[lo[0] - self.base :], self.pairs[hi[0] - self.base :]
            doubted = swept.subtract_in_step(left, right, self.sure, out)
        else:
            doubted = swept.subtract(self.pairs, self.base, self.sure, lo, hi, False, out)
        return not doubted or swept.reconsider(self.values, self.sure, *block.since(self.base), out)

    def means(self, block: RequestBlock, out: np.ndarray) -> bool:
        """False if any sum is in doubt."""
        return not swept.subtract(self.pairs, self.base, self.sure, block.lo, block.hi, True, out)


@dataclass(eq=False)
class Apart:
    """Sums of windows that hardly overlap, each by itself."""

    values: np.ndarray
    base: int

    def sums(self, block: RequestBlock, out: np.ndarray) -> bool:
        return bool(direct.sums(self.values, *block.since(self.base), out))

    def means(self, block: RequestBlock, out: np.ndarray) -> bool:
        return False


@dataclass(eq=False)
class PieceSums:
    """Sums of few windows over many rows: of the pieces that their edges cut rows into, then running sums of those."""

    values: np.ndarray
    base: int

    def sums(self, block: RequestBlock, out: np.ndarray) -> bool:
        """False if too many are in doubt."""
        lo, hi = block.since(self.base)
        bounds, covered = np.empty(2 * out.size, np.int64), np.empty(2 * out.size, np.bool_)
        first, last = np.empty(out.size, np.int64), np.empty(out.size, np.int64)
        count = direct.cut(lo, hi, bounds, covered, first, last)
        pieces = np.empty(count)
        if not direct.piece_sums(self.values, bounds, covered, pieces):
            return False
        running = RunningSums.of(fixed(pieces), 0)
        doubted = swept.subtract(running.pairs, 0, running.sure, first, last, False, out)
        return not doubted or swept.reconsider(self.values, running.sure, lo, hi, out)

    def means(self, block: RequestBlock, out: np.ndarray) -> bool:
        return False


class FloatSums:
    """The sums of one window, block after block: by differences until in doubt, from then on swept."""

    def __init__(self, part: Aggregator, chunk: Chunk, name: str, values: np.ndarray) -> None:
        """values: of the rows that the part sees from a chunk."""
        self.running: RunningSums | Apart | PieceSums
        base, _ = part.rows(chunk)
        if chunk.requests.apart:
            self.running = Apart(values, base)
        elif part.rows_per_request(chunk) >= SPARSE:
            self.running = PieceSums(values, base)
        else:
            self.running = chunk.once((part, name), lambda: RunningSums.of(values, base))
        self._part, self._chunk, self._name = part, chunk, name
        self._sweep: LandmarkSweep | None = None

    def __call__(self, block: RequestBlock, out: np.ndarray) -> None:
        if self._sweep is None:
            if self.running.sums(block, out):
                return
            self._sweep = self._part.sweep(self._chunk, compensated.Compensated(), self.running.values, self._name)
        partials = np.empty(out.size), np.empty(out.size)
        self._sweep(block, partials)
        compensated.settle(*partials, out)

    def means(self, block: RequestBlock, out: np.ndarray) -> None:
        """At once where that can be, else as sums first."""
        if self._sweep is not None or block.in_step or not self.running.means(block, out):
            self(block, out)
            divide(out, block, out)


def divide(sums: np.ndarray, block: RequestBlock, out: np.ndarray) -> None:
    """Sums to means."""
    if block.in_step:
        np.divide(sums, float(block.hi[0] - block.lo[0]), out=out)
    else:
        swept.divide(sums, block.lo, block.hi, out)


class Sums(Aggregator):
    """sum and mean of a float column."""

    def start(self, chunk: Chunk, outputs: Outputs) -> Answer:
        """Answers of one window, block after block: sums of floats, certified or swept, and means from the same."""
        sums = FloatSums(self, chunk, "running", self.column(chunk))

        def answer(block: RequestBlock) -> None:
            """Float sums and means of a block of windows; where sums are asked for, means are these divided."""
            slots = {aggregate.kind: output.slot(block) for aggregate, output in outputs.items()}
            if "sum" not in slots:
                sums.means(block, slots["mean"])
            else:
                sums(block, slots["sum"])
                if "mean" in slots:
                    divide(slots["sum"], block, slots["mean"])
            for aggregate, output in outputs.items():
                output.settle(block, slots[aggregate.kind])

        return answer


@dataclass(eq=False)
class IntegerSums(Aggregator):
    """sum and mean of an integer column: exact; any, all and count_if of true and false. `beyond`: requests whose
    sum does not fit what it `holds`, and its place. Sums of decimals go on in a second word."""

    beyond: list[tuple[int, Output]] = field(default_factory=list)
    holds = "int64"

    def output(self, requests: Requests, aggregate: Aggregate) -> Output:
        if aggregate.kind == "sum" and self.may_widen:
            return TwoWords(requests)
        return Output(requests, np.float64 if aggregate.kind == "mean" else np.int64, int(aggregate.kind != "count_if"))

    def dtype(self, i: int = 0) -> np.dtype:
        """Of a column of nulls alone nobody knows that it is one of true and false."""
        kept = super().dtype(i)
        return kept if kept.kind != "f" else np.dtype(np.int64)

    @cached_property
    def may_widen(self) -> bool:
        """Are these decimals, and so many and large that a sum of some may be beyond int64?"""
        column = self.selection.stored.fields[self.columns[0]]
        return bool(pa.types.is_decimal(column.type)) and _may_be_wide(column.values)

    def array(self, output: Output, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
        if not isinstance(output, TwoWords):
            return super().array(output, kind)
        return with_bitmap(np.stack([output.values, output.high.values], axis=-1), output.bitmap, kind)

    def start(self, chunk: Chunk, outputs: Outputs) -> Answer:
        """Answers of one window, block after block: differences of the chunk's exact running sums of integers."""
        a, _ = self.rows(chunk)
        run, wide = chunk.once((self, "running"), lambda: _running_integers(self.column(chunk)))
        by_kind = {aggregate.kind: output for aggregate, output in outputs.items()}
        sums = by_kind.get("sum")
        high = sums.high if isinstance(sums, TwoWords) else None

        def answer(block: RequestBlock) -> None:
            """Integer sums and means of a block of windows; a sum that does not fit int64 is noted in `beyond`."""
            slots = {kind: output.slot(block) for kind, output in by_kind.items()}
            total = slots["sum"] if "sum" in slots else np.empty(block.lo.size, np.int64)
            dividend = total
            if wide:
                dividend = np.empty(total.size)
                beyond = swept.wide_differences(run, a, block.lo, block.hi, total, dividend)
                if high is not None:
                    swept.two_words(run, a, block.lo, block.hi, total, high.slot(block))
                elif beyond >= 0 and "sum" in slots:
                    self.beyond.append((block.first + beyond, by_kind["sum"]))
            else:
                swept.integer_differences(run, a, block.lo, block.hi, total)
                if high is not None:
                    np.right_shift(total, 63, out=high.slot(block))
            if "mean" in slots:
                divide(dividend, block, slots["mean"])
            for aggregate, output in outputs.items():
                if aggregate.kind not in ("sum", "mean"):
                    slots[aggregate.kind][:], _ = families.lower(aggregate, block.n, [total])
                output.settle(block, slots[aggregate.kind])

        return answer


def _may_be_wide(values: np.ndarray) -> bool:
    return values.size > 0 and max(abs(int(values.max())), abs(int(values.min()))) * values.size >= 2**63


class TwoWords(Output):
    """Sums of decimals: their low words, and the `high` ones."""

    def __init__(self, requests: Requests) -> None:
        super().__init__(requests, np.int64)
        self.high = Output(requests, np.int64, least=0)

    def arrange(self, request_of: np.ndarray) -> None:
        super().arrange(request_of)
        self.high.arrange(request_of)


@dataclass(eq=False)
class DecimalSums(IntegerSums):
    """sum and mean of decimals of many digits, from the running sums of their limbs."""

    holds = "38 digits"

    def output(self, requests: Requests, aggregate: Aggregate) -> Output:
        return TwoWords(requests) if aggregate.kind == "sum" else Output(requests, np.float64)

    def start(self, chunk: Chunk, outputs: Outputs) -> Answer:
        """Answers of one window, block after block: differences of the chunk's exact running sums of limbs."""
        a, _ = self.rows(chunk)
        limbs_of = {i: partial(self._running_limb, chunk, i) for i in range(len(self.columns))}
        runs = [chunk.once((self, "running", i), made) for i, made in limbs_of.items()]

        def answer(block: RequestBlock) -> None:
            """Sums and means of a block of windows; a sum of more than 38 digits is noted in `beyond`."""
            limbs = [np.empty(block.lo.size, np.int64) for _ in runs]
            for run, each in zip(runs, limbs, strict=True):
                swept.integer_differences(run, a, block.lo, block.hi, each)
            for output in outputs.values():
                slot = output.slot(block)
                if isinstance(output, TwoWords):
                    words, fit = decimals.joined(limbs)
                    slot[:], output.high.slot(block)[:] = words[:, 0], words[:, 1]
                    if not fit.all():
                        self.beyond.append((block.first + int(np.argmin(fit)), output))
                else:
                    divide(decimals.approximate(limbs), block, slot)
                output.settle(block, slot)

        return answer

    def _running_limb(self, chunk: Chunk, i: int) -> np.ndarray:
        values = self.column(chunk, i)
        run = np.empty(values.size + 1, np.int64)
        swept.accumulate_integers(values, run)
        return run


def _running_integers(values: np.ndarray) -> tuple[np.ndarray, bool]:
    """Running sums, and whether a window's sum might not fit int64: they are kept in two halves then."""
    wide = _may_be_wide(values)
    run = np.empty((values.size + 1, 2) if wide else values.size + 1, np.int64)
    (swept.accumulate_halves if wide else swept.accumulate_integers)(values, run)
    return run, wide


class WeightedMean(Aggregator):
    def start(self, chunk: Chunk, outputs: Outputs) -> Answer:
        """Answers of one window, block after block: sums of value times weight, divided by sums of weights."""
        ((aggregate, output),) = outputs.items()
        values, by = (self.column(chunk, i, np.float64) for i in (0, 1))
        weighted = FloatSums(self, chunk, "weighted", chunk.once((self, "product"), lambda: _product(values, by)))
        weights = FloatSums(self, chunk, "weights", by)

        def answer(block: RequestBlock) -> None:
            slot, below = output.slot(block), np.empty(block.lo.size)
            weighted(block, slot)
            weights(block, below)
            slot[:], _ = families.lower(aggregate, block.n, [slot, below])
            output.settle(block, slot)

        return answer


def _product(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return fixed(x * y)


@dataclass(eq=False)
class Centred:
    """The running sums that variances are read from, by differences."""

    running: swept.CentredSums

    @classmethod
    def of(cls, values: np.ndarray, base: int) -> "Centred":
        sums, changes = np.empty((values.size + 1, 4)), np.empty(values.size + 1, np.int32)
        error = swept.accumulate_centred(values, near(values), sums, changes)
        return cls(swept.CentredSums(values, base, sums, changes, swept.SURE * error))

    def answer(self, block: RequestBlock, aggregate: Aggregate, output: Output) -> bool:
        """False if too many variances are in doubt."""
        lo, hi, ddof, root, out = block.lo, block.hi, aggregate.ddof, aggregate.kind == "std", output.slot(block)
        if block.in_step:
            _, base, sums, _, error = self.running
            left, right = sums[lo[0] - base :], sums[hi[0] - base :]
            doubted = swept.variances_in_step(left, right, hi[0] - lo[0], error, ddof, root, out)
        else:
            doubted = swept.variances(self.running, lo, hi, ddof, root, out)
        if doubted and not swept.reconsider_variances(self.running, lo, hi, ddof, root, out):
            return False
        output.settle(block, out)
        return True


def near(values: np.ndarray) -> float:
    """A number near the data, from which deviations are counted."""
    with np.errstate(all="ignore"):
        centre = float(values.mean()) if values.size else 0.0
    return centre if np.isfinite(centre) else 0.0


def until_in_doubt(
    certain: Callable[[RequestBlock, Aggregate, Output], bool], otherwise: Callable[[], Answer], outputs: Outputs
) -> Answer:
    """Blocks of windows by what is fast, until it says that too many answers are in doubt: that one and all later ones
    are swept."""
    sweep: Answer | None = None

    def answer(block: RequestBlock) -> None:
        """A block of windows, certain or swept."""
        nonlocal sweep
        if sweep is None and not all(certain(block, *each) for each in outputs.items()):
            sweep = otherwise()
        if sweep is not None:
            sweep(block)

    return answer


class Variance(Aggregator):
    """var and std, of any ddof."""

    def start(self, chunk: Chunk, outputs: Outputs) -> Answer:
        """Answers of one window, block after block: variances from centred sums until in doubt, then swept."""
        values, (base, _) = self.column(chunk, 0, np.float64), self.rows(chunk)
        rows: Centred = chunk.once((self, "centred"), lambda: Centred.of(values, base))
        return until_in_doubt(
            rows.answer, lambda: swept_and_lowered(self, chunk, outputs, monoids.Moments(), values), outputs
        )
