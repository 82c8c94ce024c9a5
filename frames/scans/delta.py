"""Delta frames at work: how far the values of a frame have moved, in integers where all columns have them."""

from typing import Any

import numpy as np
import pyarrow as pa

from frames.scans.bounds import limit
from frames.scans.scan import Kinds, Scan, extended, number
from frames.specs import Delta
from kernels.frames import delta as frame_delta
from kernels.frames.framing import ScannedEvents
from swag.tables.columns import is_discrete


class DeltaScan(Scan):
    """Remembers of a key the lowest and highest value of its frame, or its first twice (`low`, `high`), per column."""

    def __init__(self, spec: Delta, kinds: Kinds, unit: str | None) -> None:
        super().__init__()
        self.spec = spec
        self.whole = all(is_discrete(kinds[name]) for name in spec.columns)
        self.dtype: Any = np.int64 if self.whole else np.float64
        limits = (self.dtype(limit(spec.op, x, self.whole)) for x in spec.limits.values())
        self.rule = (tuple(limits), spec.closes_before, spec.measure == "range")
        self.low = self.high = np.zeros((0, len(spec.columns)), self.dtype)
        ends = (np.iinfo(np.int64).max, np.iinfo(np.int64).min) if self.whole else (np.inf, -np.inf)
        self.nothing = self.dtype(ends[0]), self.dtype(ends[1])

    def data(self, table: pa.Table, size: int) -> tuple[np.ndarray, np.ndarray]:
        fields = {name: number(table, name, "the delta reads") for name in self.spec.columns}
        if all(column.valid is None for column in fields.values()):
            valid = np.zeros((0, 0), bool)
        else:
            valid = np.stack([np.ones(size, bool) if c.valid is None else c.valid for c in fields.values()])
        if len(fields) == 1:
            return next(iter(fields.values())).values[None, :], valid
        return np.stack([self._shifted(name, column.values) for name, column in fields.items()]), valid

    def _shifted(self, name: str, values: np.ndarray) -> np.ndarray:
        """Integers beside floats: counted from the first one, so that float64 holds their differences exactly."""
        if self.whole or values.dtype == np.float64:
            return values
        if values.size:
            self.origin.setdefault(name, int(values[0]))
        return (values - self.origin.get(name, 0)).astype(np.float64)

    def step(self, events: ScannedEvents, data: Any, first: int) -> int:
        spread = frame_delta.Spread(self.low.reshape(-1), self.high.reshape(-1), *self.nothing)
        return int(frame_delta.delta(events, data, self.rule, spread, self.keyed, self.found, first))

    def grow_keys(self, count: int) -> None:
        self.low = extended(self.low, count, self.nothing[0])
        self.high = extended(self.high, count, self.nothing[1])

    def memory(self) -> list[np.ndarray]:
        return [self.keyed, self.low, self.high]
