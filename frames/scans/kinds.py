"""Which scan finds the frames of which kind. A new kind of frame has its scan listed here."""

from typing import Any

import pyarrow as pa

from frames.scans.aggregate import AggregateScan
from frames.scans.boundary import BoundaryScan
from frames.scans.delta import DeltaScan
from frames.scans.scan import Scan
from frames.scans.threshold import ThresholdScan
from frames.specs import Aggregate, Boundary, Delta, Spec, Threshold
from swag.tables.columns import decoded_type

SCANS: dict[type[Spec], Any] = {
    Threshold: ThresholdScan,
    Boundary: BoundaryScan,
    Delta: DeltaScan,
    Aggregate: AggregateScan,
}


def scan_of(spec: Spec, schema: pa.Schema, unit: str | None) -> Scan:
    """A scan for events of this schema, with ts in this unit."""
    kinds = {name: decoded_type(kind) for name, kind in zip(schema.names, schema.types, strict=True)}
    scan: Scan = SCANS[type(spec)](spec, kinds, unit)
    return scan
