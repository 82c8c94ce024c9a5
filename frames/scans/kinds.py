"""Which scan finds the frames of which kind. A new kind of frame has its scan listed here."""

from typing import Any

from frames.scans.aggregate import AggregateScan
from frames.scans.backtracking import pattern_scan
from frames.scans.boundary import BoundaryScan
from frames.scans.delta import DeltaScan
from frames.scans.threshold import ThresholdScan
from frames.specs import Aggregate, Boundary, Delta, Pattern, Spec, Threshold

SCANS: dict[type[Spec], Any] = {  # each is made for a spec, the schema of its events, and the type of ts
    Threshold: ThresholdScan,
    Boundary: BoundaryScan,
    Delta: DeltaScan,
    Aggregate: AggregateScan,
    Pattern: pattern_scan,
}
