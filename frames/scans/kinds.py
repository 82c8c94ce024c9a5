"""Which scan finds the frames of which kind. A new kind of frame has its scan listed here."""

from typing import Any

from frames.scans.aggregate import AggregateScan
from frames.scans.between import BetweenScan
from frames.scans.boundary import BoundaryScan
from frames.scans.delta import DeltaScan
from frames.scans.session import SessionScan
from frames.scans.state import StateScan
from frames.scans.threshold import ThresholdScan
from frames.specs import Aggregate, Between, Boundary, Delta, Session, Spec, State, Threshold

SCANS: dict[type[Spec], Any] = {  # each is made for a spec, the schema of its events, and the type of ts
    Threshold: ThresholdScan,
    Boundary: BoundaryScan,
    Delta: DeltaScan,
    Aggregate: AggregateScan,
    Session: SessionScan,
    State: StateScan,
    Between: BetweenScan,
}
