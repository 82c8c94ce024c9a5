"""Aggregate frames at work: the operator an aggregate grows by, its partials per key, the value of every frame."""

from typing import Any

import numpy as np
import pyarrow as pa

from frames.scans.scan import NONE, Kinds, Scan, any_fields
from frames.scans.threshold import interval
from frames.specs import Aggregate
from kernels.frames import aggregates as frame_aggregates
from kernels.frames import operators as frame_operators
from kernels.frames.framing import OPEN, SCAN_ROWS, SLOT, ScannedEvents
from kernels.operators import monoids
from swag.errors import SumOverflow
from swag.query.aggregates import Aggregate as Aggregated
from swag.query.families import check_columns, result_type
from swag.query.try_out import try_out
from swag.query.user_calls import calling, check_lift
from swag.query.user_defined import compiled
from swag.tables.columns import Clock, Field, is_discrete, to_arrow


class AggregateScan(Scan):
    """Remembers of a key the partials of its frame and how many values they are of (`partials`, `counts`).

    A frame has the value it closed with beside it (`values`), and of how many values that is (`sizes`).
    """

    spec: Aggregate
    extras = reported = ("values", "sizes")

    def __init__(self, spec: Aggregate, schema: pa.Schema, clock: Clock) -> None:
        super().__init__(spec, schema, clock)
        aggregate, kinds = spec.aggregate, self.kinds
        self.reads = f"{aggregate} reads"
        self.looks_ahead = aggregate.user is not None  # whose function may refuse them
        check_columns(aggregate, kinds)
        self.type = result_type(aggregate, kinds)
        self.op = operator(aggregate, kinds)
        whole = is_discrete(self.type)
        self.needs = (aggregate.ddof or 0) + 1
        self.rule = (*interval(spec.op, spec.c, whole), self.needs, self.lengths)
        self.kernel = frame_aggregates.close_before if spec.closes_before else frame_aggregates.close_with
        column = np.int64 if aggregate.columns and is_discrete(kinds[aggregate.columns[0]]) else np.float64
        self.partials = monoids.empty_state(self.op, column, 0)
        if aggregate.user is not None or isinstance(self.op, frame_operators.WholeSum | frame_operators.WholeMean):
            self.may_fail = True
        self.counts = np.zeros(0, np.int64)
        self.per_key = {"partials": 0, "counts": 0}
        self.values, self.sizes = (
            np.zeros(SCAN_ROWS, np.int64 if whole else np.float64),
            np.zeros(SCAN_ROWS, np.int64),
        )
        if spec.closes_before:  # else a piece that is as long as it may be is a frame from the next event on
            self.end_early()

    def fields(self, table: pa.Table) -> dict[str, Field]:
        if self.spec.aggregate.kind != "count":
            return super().fields(table)
        return any_fields(table, self.kinds, f"{self.spec.aggregate} counts")

    def data(self, fields: dict[str, Field], size: int) -> tuple[Any, np.ndarray]:
        """What the kernel lifts of each event, and which count; a quantile also has who is below the bound."""
        aggregate, read = self.spec.aggregate, [fields[name] for name in self.spec.aggregate.columns]
        valid = np.ones(size, bool) if any(f.valid is not None for f in read) else NONE
        for f in read:
            if f.valid is not None:
                valid &= f.valid
        if aggregate.kind == "count":
            return (valid.astype(np.int64) if valid.size else np.ones(size, np.int64)), NONE
        if aggregate.kind == "quantile":
            values = read[0].values.astype(np.float64)
            with np.errstate(invalid="ignore"):
                below = values < self.spec.c if self.spec.op in ("<", ">=") else values <= self.spec.c
            return (values, below.astype(np.float64)), valid
        if aggregate.user is not None:
            self._check_lift(read[0].values, valid)
        if len(read) == 1:
            return read[0].values, valid
        return tuple(f.values.astype(np.float64) for f in read), valid

    def _check_lift(self, values: np.ndarray, valid: np.ndarray) -> None:
        rows = np.flatnonzero(valid) if valid.size else None
        check_lift(self.spec.aggregate, f"{self.spec.aggregate}", values if rows is None else values[rows], rows)

    def step(self, events: ScannedEvents, data: Any, first: int) -> int:
        with calling(self.spec.aggregate, f"{self.spec.aggregate} of a frame: combine or lower"):
            at = int(self.kernel(self.op, data, self.rule, events, self._memory(), self._out(), first))
        if at == frame_aggregates.OVERFLOW:
            raise SumOverflow(f"a frame of {self.spec.aggregate} does not fit int64.", "cast the column to float64")
        return at

    def touch(self) -> None:
        super().touch()
        self._measure(np.flatnonzero(self.frames[:, OPEN]))

    def finish(self) -> None:
        self._measure(np.flatnonzero(self.frames[:, OPEN]))
        super().finish()

    def close(self, keys: np.ndarray) -> None:
        slots = self.keyed[keys, SLOT]
        self._measure(slots[slots >= 0])
        super().close(keys)
        self.counts[keys] = 0

    def _measure(self, slots: np.ndarray) -> None:
        """The aggregates of open frames, so far."""
        if self.spec.closes_before:
            frame_aggregates.measure_open(self.op, self.needs, self._memory(), self._out(), slots)

    def columns(self, beside: dict[str, np.ndarray]) -> dict[str, pa.Array]:
        return {"value": to_arrow(beside["values"][0], beside["sizes"][0] >= self.needs, self.type)}

    def _memory(self) -> tuple[Any, ...]:
        return self.keyed, self.partials, self.counts

    def _out(self) -> tuple[Any, ...]:
        return self.found, self.values, self.sizes


def operator(aggregate: Aggregated, kinds: Kinds) -> Any:
    """The monoid an aggregate frame grows by."""
    kind = aggregate.kind
    whole = bool(aggregate.columns) and is_discrete(kinds[aggregate.columns[0]])
    if kind == "count":
        return monoids.Sum()
    if kind in ("sum", "mean"):
        if whole:
            return frame_operators.WholeSum() if kind == "sum" else frame_operators.WholeMean()
        return frame_operators.FloatSum(kind == "mean")
    if kind in ("var", "std"):
        return frame_operators.GrowingVariance(aggregate.ddof or 0, kind == "std")
    if kind in ("cov", "corr"):
        return frame_operators.GrowingCovariance(aggregate.ddof or 0, kind == "corr")
    if kind == "quantile":
        return frame_operators.Split(aggregate.phi or 0.5, aggregate.method == "linear")
    if kind == "aggregate":
        assert aggregate.user is not None
        try_out(aggregate, kinds[aggregate.columns[0]])
        return compiled(aggregate.user)
    simple = {
        "min": monoids.Min,
        "max": monoids.Max,
        "first": frame_operators.GrowingFirst,
        "last": frame_operators.GrowingLast,
    }
    return {**simple, "wmean": frame_operators.GrowingWeightedMean}[kind]()
