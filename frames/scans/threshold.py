"""Threshold frames at work: a comparison as an interval, and the least length of a run."""

from typing import Any

import numpy as np
import pyarrow as pa

from frames.scans.bounds import interval
from frames.scans.scan import Kinds, Scan, number
from frames.specs import Threshold
from kernels.frames import framing
from kernels.frames import runs as frame_runs
from kernels.frames.framing import ScannedEvents
from swag.tables.columns import is_discrete
from swag.tables.durations import in_units


class ThresholdScan(Scan):
    """Remembers of a key its run, and with partition=True the gap around it, in `keyed` alone."""

    def __init__(self, spec: Threshold, kinds: Kinds, unit: str | None) -> None:
        super().__init__()
        self.spec = spec
        self.bounds = interval(spec.op, spec.c, is_discrete(kinds[spec.column]))
        self.least = int(spec.min_rows), np.uint64(in_units(spec.min_duration, unit))
        self.reported, self.ends_late = ("gaps",) if spec.partition else (), spec.partition

    def data(self, table: pa.Table, size: int) -> tuple[np.ndarray, tuple[Any, Any]]:
        """Values, and the interval they should be in; where some are null: 1 where the predicate holds, and that."""
        column, (lo, hi) = number(table, self.spec.column, "the threshold compares"), self.bounds
        if column.valid is None:
            return column.values, self.bounds
        one = column.values.dtype.type(1)
        return ((lo <= column.values) & (column.values <= hi) & column.valid).astype(column.values.dtype), (one, one)

    def step(self, events: ScannedEvents, data: Any, first: int) -> int:
        values, bounds = data
        rule = (*bounds, *self.least, self.spec.partition)
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
