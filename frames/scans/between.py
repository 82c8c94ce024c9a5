"""Between frames at work: what each event does, open a frame, close one, or both."""

from typing import Any

import numpy as np
import pyarrow as pa

from frames.scans.predicate import truth
from frames.scans.scan import Scan
from frames.specs import Between
from kernels.frames.between import CLOSES, OPENS, STAYS_OPEN, between
from kernels.frames.framing import ScannedEvents
from swag.tables.columns import Clock, Field


class BetweenScan(Scan):
    """Remembers of a key its open frame, in `keyed` alone: it is open as long as it has rows, or stays so without."""

    spec: Between
    reads = "Between reads"

    def __init__(self, spec: Between, schema: pa.Schema, clock: Clock) -> None:
        super().__init__(spec, schema, clock)
        self.read, self.rule = truth, (spec.same, self.lengths)
        self.end_early()

    def data(self, fields: dict[str, Field], size: int) -> np.ndarray:
        return fields[self.spec.start].values * np.uint8(OPENS) + fields[self.spec.end].values * np.uint8(CLOSES)

    def step(self, events: ScannedEvents, data: Any, first: int) -> int:
        return int(between(events, data, self.rule, self.keyed, self.found, first))

    def close(self, keys: np.ndarray) -> None:
        super().close(keys)
        self.keyed[keys, STAYS_OPEN] = 1

    def at_rest(self, memory: list[np.ndarray]) -> np.ndarray:
        return super().at_rest(memory) & (memory[0][:, STAYS_OPEN] == 0)
