"""Delta frames at work: how far the values of a frame have moved, in integers where all columns have them."""

import math
from typing import Any

import numpy as np
import pyarrow as pa

from frames.scans.scan import Scan
from frames.specs import Delta
from kernels.frames import delta as frame_delta
from kernels.frames.framing import ScannedEvents
from swag.arguments import LARGEST
from swag.tables.columns import Clock, Field, is_discrete


class DeltaScan(Scan):
    """Remembers of a key the lowest and highest value of its frame, or its first twice (`low`, `high`), per column."""

    spec: Delta
    reads = "the delta reads"

    def __init__(self, spec: Delta, schema: pa.Schema, clock: Clock) -> None:
        super().__init__(spec, schema, clock)
        self.whole = all(is_discrete(self.kinds[name]) for name in spec.columns)
        self.looks_ahead = not self.whole and len(spec.columns) > 1  # what integers are counted from
        self.dtype: Any = np.int64 if self.whole else np.float64
        limits = (self.dtype(limit(spec.op, x, self.whole)) for x in spec.limits.values())
        self.rule = (tuple(limits), spec.closes_before, spec.measure == "range", self.lengths)
        self.low = self.high = np.zeros((0, len(spec.columns)), self.dtype)
        ends = (np.iinfo(np.int64).max, np.iinfo(np.int64).min) if self.whole else (np.inf, -np.inf)
        self.nothing = self.dtype(ends[0]), self.dtype(ends[1])
        self.per_key = {"low": self.nothing[0], "high": self.nothing[1]}
        if spec.closes_before:  # else a piece that is as long as it may be is a frame from the next event on
            self.end_early()

    def data(self, fields: dict[str, Field], size: int) -> tuple[np.ndarray, np.ndarray]:
        """The values that a delta frame measures, a row per column, and which are there; of no size if all are."""
        if all(column.valid is None for column in fields.values()):
            valid = np.zeros((0, 0), bool)
        else:
            valid = np.stack([np.ones(size, bool) if c.valid is None else c.valid for c in fields.values()])
        if len(fields) == 1:
            return next(iter(fields.values())).values[None, :], valid
        origin = self._origin(fields)
        return np.stack([self._shifted(column.values, origin.get(name)) for name, column in fields.items()]), valid

    def begin(self, fields: dict[str, Field]) -> None:
        self.origin = self._origin(fields)

    def _origin(self, fields: dict[str, Field]) -> dict[str, int]:
        """Where integers beside floats are counted from: their first one, in all batches."""
        found = dict(self.origin)
        for name, column in fields.items():
            if not self.whole and column.values.dtype == np.int64 and name not in found:
                rows = np.arange(column.values.size) if column.valid is None else np.flatnonzero(column.valid)
                found |= {name: int(column.values[rows[0]])} if rows.size else {}
        return found

    def _shifted(self, values: np.ndarray, origin: int | None) -> np.ndarray:
        """Float64 holds their differences exactly, then; those that do not fit int64 are too large for that."""
        if self.whole or values.dtype == np.float64:
            return values
        start = np.int64(0 if origin is None else origin)
        with np.errstate(over="ignore"):
            away = values - start
        wrapped = ((values ^ start) & (values ^ away)) < 0
        return np.where(wrapped, values.astype(np.float64) - float(start), away.astype(np.float64))

    def step(self, events: ScannedEvents, data: Any, first: int) -> int:
        spread = frame_delta.Spread(self.low.reshape(-1), self.high.reshape(-1), *self.nothing)
        return int(frame_delta.delta(events, data, self.rule, spread, self.keyed, self.found, first))

    def close(self, keys: np.ndarray) -> None:
        super().close(keys)
        self.low[keys], self.high[keys] = self.nothing


def limit(op: str, x: Any, whole: bool) -> Any:
    """The number L with `spread >= L` exactly where a delta frame of `op x` closes; NaN (or the largest) for never."""
    reached = op in ("<", ">=")  # "<" closes when the spread reaches x, "<=" when it exceeds it
    if whole:
        if math.isinf(x):
            return LARGEST
        return min(math.ceil(x) if reached else math.floor(x) + 1, LARGEST)
    if reached:
        return float(x)
    beyond = math.nextafter(float(x), math.inf)
    return beyond if beyond > x else math.nan
