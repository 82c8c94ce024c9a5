"""Which scan finds the frames of which kind. A new kind of frame has its scan listed here."""

from typing import Any

from frames.scans.backtracking import pattern_scan
from frames.scans.between import BetweenScan
from frames.scans.boundary import BoundaryScan
from frames.scans.conditions import aggregate_scan
from frames.scans.custom import CustomScan
from frames.scans.delta import DeltaScan
from frames.scans.session import SessionScan
from frames.scans.state import StateScan
from frames.scans.threshold import ThresholdScan
from frames.specs import Aggregate, Between, Boundary, Custom, Delta, Pattern, Session, Spec, State, Threshold

SCANS: dict[type[Spec], Any] = {  # each is made for a spec, the schema of its events, and the type of ts
    Threshold: ThresholdScan,
    Boundary: BoundaryScan,
    Delta: DeltaScan,
    Aggregate: aggregate_scan,
    Pattern: pattern_scan,
    Session: SessionScan,
    State: StateScan,
    Between: BetweenScan,
    Custom: CustomScan,
}
