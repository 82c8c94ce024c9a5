"""A spec at work: the columns it reads, what it remembers of every key, and the kernel that takes the next events.

A scan is asked with `run` for events in order of ts (within each key), as often as one likes; the frames it has found
so far are the first `count` rows of `frames` (kernels/frames/framing.py), and what goes with each lies beside it.
"""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from frames.finding.bounds import interval, limit
from frames.specs import BEFORE, Boundary, Delta, Threshold
from kernels.frames import cells as frame_cells
from kernels.frames import delta as frame_delta
from kernels.frames import framing
from kernels.frames import runs as frame_runs
from kernels.frames.framing import BLOCK, GAP_SLOT, LAST, OPEN, SLOT, FoundFrames, ScannedEvents
from kernels.operators.numbers import EARLIEST
from swag.errors import BadType
from swag.query.windows import in_units
from swag.tables.columns import Field, field, is_discrete, is_number, room, to_arrow

NONE = np.zeros(0, bool)  # "all valid", as kernels take it
Kinds = dict[str, pa.DataType]


class Share(NamedTuple):
    """What one scan takes of the events: rows first … last, of those the keys with id % parts == part."""

    first: int
    last: int
    part: int = 0
    parts: int = 1


class Scan:
    """The part common to all specs: state per key, frames found, growth of both."""

    extras: tuple[str, ...] = ()  # names of arrays with an entry per frame
    reported: tuple[str, ...] = ()  # those that `columns` needs
    ends_late = False  # does the end of the stream make frames certain?
    may_fail: tuple[str, ...] = ()  # what to restore after events that were refused half way

    def __init__(self) -> None:
        self.share = Share(0, 0)
        self.state = np.zeros((0, 8), np.int64)
        self.found = FoundFrames(np.empty((BLOCK, 8), np.int64), np.zeros(1, np.int64))

    @property
    def count(self) -> int:
        return int(self.found.count[0])

    @property
    def frames(self) -> np.ndarray:
        return self.found.frames[: self.count]

    @property
    def leads(self) -> np.ndarray:
        """Of each frame: how many of its events came before the one that made it certain."""
        return self.frames[:, framing.LEAD]

    def data(self, table: pa.Table, size: int) -> Any:
        """The columns of a batch as the kernel wants them; made once, shared by scans of other keys."""
        raise NotImplementedError

    def step(self, events: ScannedEvents, data: Any, first: int) -> int:
        """Call the kernel."""
        raise NotImplementedError

    def run(self, ts: np.ndarray, ids: np.ndarray, data: Any, share: "Share | None" = None) -> bool:
        """Take events, all or a share of them. False: they are not in order of ts within each key."""
        self.share = share or Share(0, ts.size)
        at, last, part, parts = self.share
        events = ScannedEvents(ts, ids, last, part, parts.bit_length() - 1)
        self.make_room(self.count + (last - at) // 16)  # pages that are not written to cost nothing
        while 0 <= at < last:
            self.make_room(self.count + BLOCK)
            at = self.step(events, data, at)
        return at >= 0

    def finish(self) -> None:
        """The stream is over: what is open ends here."""
        framing.end_open(self.found.frames, self.state)

    def touch(self) -> None:
        """Bring frames that are still open up to date."""
        framing.touch_open(self.found.frames, self.count, self.state)

    def keep_open(self) -> None:
        """Forget the frames that have ended."""
        still = np.flatnonzero(self.frames[:, OPEN])
        for name in self.extras:
            array = getattr(self, name)
            array[: still.size] = array[still]
        self.found.count[0] = framing.keep_open(self.found.frames, self.count, self.state)

    def add_keys(self, count: int) -> None:
        known = self.state.shape[0]
        if count > known:
            self.state = extended(self.state, max(count, 2 * known), 0)
            self.state[known:, LAST] = EARLIEST
            self.state[known:, [SLOT, GAP_SLOT]] = -1
            self.grow_keys(self.state.shape[0])

    def grow_keys(self, count: int) -> None:
        """Room for what else is remembered per key."""

    def make_room(self, slots: int) -> None:
        if slots > self.found.frames.shape[0]:
            slots = max(slots, 2 * self.found.frames.shape[0])
        self.found = FoundFrames(extended(self.found.frames, slots, None), self.found.count)
        for name in self.extras:
            setattr(self, name, extended(getattr(self, name), slots, None))

    def beside(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """What lies beside these frames and is reported; the last axis is the frame."""
        return {name: np.atleast_2d(getattr(self, name)[rows].T) for name in self.reported}

    def columns(self, beside: dict[str, np.ndarray]) -> dict[str, pa.Array]:
        """What is reported of frames beside their interval."""
        return {}


def extended(array: np.ndarray, size: int, fill: Any) -> np.ndarray:
    """The array with room for `size` rows."""
    if size <= array.shape[0]:
        return array
    grown = room(size * int(np.prod(array.shape[1:])), array.dtype).reshape(size, *array.shape[1:])
    grown[: array.shape[0]] = array
    if fill is not None:
        grown[array.shape[0] :] = fill
    return grown


class ThresholdScan(Scan):
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
        return int(frame_runs.threshold(events, values, rule, self.state, self.found, first))

    def finish(self) -> None:
        if self.spec.partition:
            self.make_room(self.count + self.state.shape[0])
            frame_runs.finish_gaps(self.state, self.found)
        super().finish()

    @property
    def gaps(self) -> np.ndarray:
        return self.frames[:, framing.GAP]

    def columns(self, beside: dict[str, np.ndarray]) -> dict[str, pa.Array]:
        names = pa.array(["frame", "gap"])
        return {"kind": names.take(pa.array(beside["gaps"][0]))} if self.spec.partition else {}


class BoundaryScan(Scan):
    extras = reported = ("cells",)

    def __init__(self, spec: Boundary, kinds: Kinds, unit: str | None) -> None:
        super().__init__()
        self.spec = spec
        self.within = np.zeros((0, len(spec.columns)), np.int64)
        self.cells = np.empty((BLOCK, len(spec.columns)), np.int64)
        self.kinds = [cell_kind(kinds[name], cut) for name, cut in spec.cells.items()]

    def data(self, table: pa.Table, size: int) -> tuple[frame_cells.Dimension, ...]:
        return tuple(
            dimension(number(table, name, "the boundary reads"), kind, cut)
            for kind, (name, cut) in zip(self.kinds, self.spec.cells.items(), strict=True)
        )

    def step(self, events: ScannedEvents, data: Any, first: int) -> int:
        return int(frame_runs.boundary(events, data, self.state, self.within, self.cells, self.found, first))

    def grow_keys(self, count: int) -> None:
        self.within = extended(self.within, count, 0)

    def columns(self, beside: dict[str, np.ndarray]) -> dict[str, pa.Array]:
        codes = zip(self.spec.columns, self.kinds, beside["cells"], strict=True)
        return {f"cell_{name}": cells_out(kind, np.ascontiguousarray(own)) for name, kind, own in codes}


def cell_kind(kind: pa.DataType, cut: Any) -> int:
    """By a width or by breaks, both exactly where values and cuts are whole numbers that int64 has."""
    whole = is_discrete(kind) and all(-(2**63) <= each < 2**63 for each in (cut if isinstance(cut, tuple) else (cut,)))
    if isinstance(cut, tuple):
        exact = whole and all(isinstance(b, int | np.integer) for b in cut)
        return frame_cells.WHOLE_BREAKS if exact else frame_cells.BREAKS
    return frame_cells.WHOLE_WIDTH if whole and float(cut).is_integer() else frame_cells.WIDTH


def dimension(column: Field, kind: int, cut: Any) -> frame_cells.Dimension:
    carrier: Any = np.int64 if kind in (frame_cells.WHOLE_WIDTH, frame_cells.WHOLE_BREAKS) else np.float64
    values = column.values.astype(carrier, copy=False).view(np.float64)
    values.flags.writeable = False  # as Arrow's own are: the dimensions of a spec are of one type
    cuts = np.array(cut if isinstance(cut, tuple) else (cut,), carrier)
    return frame_cells.Dimension(kind, values, mask(column), cuts.view(np.float64))


def cells_out(kind: int, codes: np.ndarray) -> pa.Array:
    """The numbers of cells from their codes."""
    if kind != frame_cells.WIDTH:
        return to_arrow(codes, codes != frame_cells.NULL_CELL, pa.int64())
    numbers = codes.view(np.float64)
    valid = ~np.isnan(numbers)
    return to_arrow(np.where(valid, numbers, 0.0).astype(np.int64), valid, pa.int64())


class DeltaScan(Scan):
    def __init__(self, spec: Delta, kinds: Kinds, unit: str | None) -> None:
        super().__init__()
        self.spec = spec
        self.whole = all(is_discrete(kinds[name]) for name in spec.columns)
        self.dtype: Any = np.int64 if self.whole else np.float64
        limits = (self.dtype(limit(spec.op, x, self.whole)) for x in spec.limits.values())
        self.rule = (tuple(limits), spec.op in BEFORE, spec.measure == "range")
        self.low = self.high = np.zeros(0, self.dtype)
        self.origin: dict[str, int] = {}
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
        spread = frame_delta.Spread(self.low, self.high, *self.nothing)
        return int(frame_delta.delta(events, data, self.rule, spread, self.state, self.found, first))

    def grow_keys(self, count: int) -> None:
        self.low = extended(self.low, count * len(self.spec.columns), self.nothing[0])
        self.high = extended(self.high, count * len(self.spec.columns), self.nothing[1])


def number(table: pa.Table, name: str, asked_by: str) -> Field:
    column = field(table, name, asked_by)
    if not is_number(column.type):
        raise BadType(f'{asked_by} "{name}", a column of type {column.type}.', "cast it to float64 or int64")
    return column


def mask(column: Field) -> np.ndarray:
    return NONE if column.valid is None else column.valid
