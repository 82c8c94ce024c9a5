"""Session frames at work: how long a silence may be, in the unit of ts."""

from typing import Any

import numpy as np
import pyarrow as pa

from frames.scans.scan import Scan
from frames.specs import Session
from kernels.frames import runs as frame_runs
from kernels.frames.framing import ScannedEvents
from swag.tables.columns import Clock, Field
from swag.tables.times.durations import in_units


class SessionScan(Scan):
    """Remembers of a key its run, in `keyed` alone."""

    spec: Session

    def __init__(self, spec: Session, schema: pa.Schema, clock: Clock) -> None:
        super().__init__(spec, schema, clock)
        gap = in_units(spec.gap, clock.unit) if spec.gap else 0
        self.gap = np.uint64(gap)
        self.end_early(gap)

    def data(self, fields: dict[str, Field], size: int) -> None:
        return None

    def step(self, events: ScannedEvents, data: Any, first: int) -> int:
        return int(frame_runs.session(events, self.gap, (self.lengths, False), self.keyed, self.found, first))
