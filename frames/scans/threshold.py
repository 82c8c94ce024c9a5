"""Threshold frames at work: a comparison as an interval, so that kernels know one; a predicate as true and false."""

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from frames.scans.predicate import TRUE, truth
from frames.scans.scan import Scan, number
from frames.specs import Threshold
from kernels.frames import framing
from kernels.frames import runs as frame_runs
from kernels.frames.framing import ScannedEvents
from swag.arguments import LARGEST, SMALLEST, is_whole
from swag.tables.columns import Clock, Field, column, decoded, is_discrete, one_chunk
from swag.tables.comparing import compared


class ThresholdScan(Scan):
    """Remembers of a key its run, and with partition=True the gap around it, in `keyed` alone."""

    spec: Threshold
    reads = "the threshold compares"

    def __init__(self, spec: Threshold, schema: pa.Schema, clock: Clock) -> None:
        super().__init__(spec, schema, clock)
        kind = self.kinds[spec.column]
        self.is_truth = spec.op is None or pa.types.is_decimal(kind)
        self.read = truth if spec.op is None else self._truth if self.is_truth else number
        self.bounds = TRUE if self.is_truth else interval(str(spec.op), spec.c, is_discrete(kind))
        self.reported, self.ends_late = ("gaps",) if spec.partition else (), spec.partition
        self.end_early(gaps=spec.partition)

    def _truth(self, table: pa.Table, name: str, asked_by: str) -> Field:
        """Of decimals, which may be larger than kernels have numbers: where the comparison holds, as in a predicate."""
        array = decoded(one_chunk(column(table, name, asked_by)))
        c = self.spec.c if is_whole(self.spec.c) else Decimal(repr(float(self.spec.c)))  # type: ignore[arg-type]
        holds = compared("=" if self.spec.op == "==" else str(self.spec.op), array, c)
        return truth(pa.table({name: holds}), name, asked_by)

    def data(self, fields: dict[str, Field], size: int) -> tuple[np.ndarray, tuple[Any, Any]]:
        """Values, and the interval they should be in; where some are null: 1 where the predicate holds, and that."""
        read, (lo, hi) = fields[self.spec.column], self.bounds
        values = read.values
        if read.valid is None or self.is_truth:  # what is null is not true
            return values, self.bounds
        one = values.dtype.type(1)
        return ((lo <= values) & (values <= hi) & read.valid).astype(values.dtype), (one, one)

    def step(self, events: ScannedEvents, data: Any, first: int) -> int:
        values, bounds = data
        rule = (*bounds, self.lengths, self.spec.partition)
        return int(frame_runs.threshold(events, values, rule, self.keyed, self.found, first))

    def finish(self) -> None:
        if self.spec.partition:
            self.make_room(self.count + self.keyed.shape[0])
            frame_runs.finish_gaps(self.keyed, self.found)
        super().finish()

    @property
    def gaps(self) -> np.ndarray:
        """Of each frame: is it a gap?"""
        return self.frames[:, framing.GAP]

    def columns(self, beside: dict[str, np.ndarray]) -> dict[str, pa.Array]:
        if not self.spec.partition:
            return {}
        return {"kind": pa.array(["frame", "gap"]).take(pa.array(beside["gaps"][0]))}


def interval(op: str, c: Any, whole: bool) -> tuple[Any, Any]:
    """(lo, hi) with lo <= v <= hi exactly where `v op c`, for integers or for floats (NaN is in no interval)."""
    if whole:
        return _of_integers(op, c)
    c = float(c)
    if op in (">", ">="):
        lo = c if op == ">=" else math.nextafter(c, math.inf)
        return (lo, math.inf) if lo > c or op == ">=" else (math.inf, -math.inf)
    if op in ("<", "<="):
        hi = c if op == "<=" else math.nextafter(c, -math.inf)
        return (-math.inf, hi) if hi < c or op == "<=" else (math.inf, -math.inf)
    return c, c


def _of_integers(op: str, c: Any) -> tuple[np.int64, np.int64]:
    """Among int64: c is rounded to where the comparison turns; (1, 0) where no integer satisfies it."""
    lo, hi = SMALLEST, LARGEST
    if math.isinf(c):
        holds = (c > 0) == (op in ("<", "<=")) and op != "=="
        lo, hi = (lo, hi) if holds else (1, 0)
    elif op == ">":
        lo = math.floor(c) + 1
    elif op == ">=":
        lo = math.ceil(c)
    elif op == "<":
        hi = math.ceil(c) - 1
    elif op == "<=":
        hi = math.floor(c)
    else:
        lo, hi = math.ceil(c), math.floor(c)
    if lo > hi or lo > LARGEST or hi < SMALLEST:
        return np.int64(1), np.int64(0)
    return np.int64(max(lo, SMALLEST)), np.int64(min(hi, LARGEST))
