"""Boundary frames at work: cells by width or by breaks, which whole numbers are compared with as they are."""

import math
from typing import Any

import numpy as np
import pyarrow as pa

from frames.scans.scan import Scan, mask
from frames.specs import Boundary
from kernels.frames import cells as frame_cells
from kernels.frames import runs as frame_runs
from kernels.frames.framing import SCAN_ROWS, ScannedEvents
from swag.arguments import LARGEST
from swag.tables.columns import Clock, Field, is_discrete, to_arrow


class BoundaryScan(Scan):
    """Remembers of a key the cell that it is in (`within`); a frame has its cell beside it (`cells`)."""

    spec: Boundary
    reads = "the boundary reads"
    extras = reported = ("cells",)

    def __init__(self, spec: Boundary, schema: pa.Schema, clock: Clock) -> None:
        super().__init__(spec, schema, clock)
        self.per_key = {"within": 0}
        self.within = np.zeros((0, len(spec.columns)), np.int64)
        self.cells = np.empty((SCAN_ROWS, len(spec.columns)), np.int64)
        self.cuts = [cell_kind(self.kinds[name], cut) for name, cut in spec.cells.items()]
        self.end_early()

    def data(self, fields: dict[str, Field], size: int) -> tuple[frame_cells.Dimension, ...]:
        cells = zip(self.cuts, self.spec.cells.items(), strict=True)
        return tuple(dimension(fields[name], kind, cut) for kind, (name, cut) in cells)

    def step(self, events: ScannedEvents, data: Any, first: int) -> int:
        cells = frame_runs.Cells(self.within, self.cells)
        return int(frame_runs.boundary(events, data, (self.lengths, False), self.keyed, cells, self.found, first))

    def columns(self, beside: dict[str, np.ndarray]) -> dict[str, pa.Array]:
        codes = zip(self.spec.columns, self.cuts, beside["cells"], strict=True)
        return {f"cell_{name}": cells_out(kind, np.ascontiguousarray(own)) for name, kind, own in codes}


def cell_kind(kind: pa.DataType, cut: Any) -> int:
    """By a width or by breaks: of whole numbers exactly by breaks that int64 has room for, and by a whole width."""
    if isinstance(cut, tuple):
        return frame_cells.WHOLE_BREAKS if is_discrete(kind) and cut[0] >= -(2**63) else frame_cells.BREAKS
    whole = is_discrete(kind) and cut < 2**63 and float(cut).is_integer()
    return frame_cells.WHOLE_WIDTH if whole else frame_cells.WIDTH


def break_of(carrier: Any, b: Any) -> Any:
    """The largest number of a carrier that is not above b: whatever is above one is above the other."""
    if carrier is np.int64:
        return LARGEST if b >= LARGEST else math.floor(b)
    nearest = float(b)
    return nearest if nearest <= b else math.nextafter(nearest, -math.inf)


def dimension(column: Field, kind: int, cut: Any) -> frame_cells.Dimension:
    """A column and its cuts as kernels want them."""
    carrier: Any = np.int64 if kind in (frame_cells.WHOLE_WIDTH, frame_cells.WHOLE_BREAKS) else np.float64
    values = column.values.astype(carrier, copy=False).view(np.float64)
    values.flags.writeable = False  # as Arrow's own are: the dimensions of a spec are of one type
    cuts = np.array([break_of(carrier, b) for b in cut] if isinstance(cut, tuple) else (cut,), carrier)
    return frame_cells.Dimension(kind, values, mask(column), cuts.view(np.float64))


def cells_out(kind: int, codes: np.ndarray) -> pa.Array:
    """The numbers of cells from their codes."""
    if kind != frame_cells.WIDTH:
        return to_arrow(codes, codes != frame_cells.NULL_CELL, pa.int64())
    numbers = codes.view(np.float64)
    valid = ~np.isnan(numbers)
    return to_arrow(np.where(valid, numbers, 0.0).astype(np.int64), valid, pa.int64())
