"""A detector's memory of some keys as a table, and back: what a shard logs of the keys that a trigger touched.

    key | state: the bytes of what is remembered of it | frame, gap: the bytes of its open frames, if it has any

A later record of a key replaces an earlier one. A key of which nothing is open is as one that never was: its record
only says that earlier ones are no longer true, and goes where there are none.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from frames.detector import Detector
from frames.finding.aggregate_scan import AggregateScan
from frames.finding.scans import BoundaryScan, DeltaScan, Scan
from kernels.frames.framing import GAP, GAP_ROWS, GAP_SLOT, KEY, ROWS, SLOT

WHICH = {"frame": SLOT, "gap": GAP_SLOT}


def remembered(scan: Scan) -> list[np.ndarray]:
    """What is kept per key, as arrays to read from and write to; the first axis is the key."""
    if isinstance(scan, BoundaryScan):
        return [scan.state, scan.within]
    if isinstance(scan, DeltaScan):
        wide = scan.state.shape[0], len(scan.spec.columns)
        return [scan.state, scan.low.reshape(wide), scan.high.reshape(wide)]
    if isinstance(scan, AggregateScan):
        partials = scan.partials if isinstance(scan.partials, tuple) else (scan.partials,)
        return [scan.state, *partials, scan.counts]
    return [scan.state]


def record(detector: Detector, ids: np.ndarray) -> pa.Table:
    """What the detector remembers of these keys."""
    scan = detector._scan
    assert scan is not None
    columns: dict[str, Any] = {} if detector._keys is None else {"key": detector._keys.column(ids)}
    columns["state"] = _packed([array[ids] for array in remembered(scan)])
    for name, which in WHICH.items():
        slots = scan.state[ids, which]
        has = slots >= 0
        some = slots[has]
        packed = _packed([array[some] for array in _of_frames(detector)])
        place = np.where(has, np.cumsum(has) - 1, 0)
        columns[name] = packed.take(pa.array(place, mask=~has))
    return pa.table(columns)


def restore(detector: Detector, table: pa.Table) -> None:
    """The detector remembers of these keys what the table says, and nothing else."""
    scan = detector._scan
    assert scan is not None
    ids = np.zeros(table.num_rows, np.int64)
    if detector._keys is not None:
        ids = detector._keys.encode(table.column("key"), detector.key or "key")
    scan.add_keys(max(1, int(ids.max(initial=0)) + 1))
    for array, values in zip(remembered(scan), _unpacked(table.column("state"), remembered(scan)), strict=True):
        array[ids] = values
    touched = np.zeros(scan.state.shape[0], bool)
    touched[ids] = True
    stay = ~touched[scan.frames[:, KEY]]
    parts = [[array[: scan.count][stay] for array in _of_frames(detector)]]
    for name in WHICH:
        column = table.column(name)
        has = np.asarray(column.is_valid())
        parts.append(_unpacked(column.filter(pa.array(has)), _of_frames(detector)))
        parts[-1][0][:, KEY] = ids[has]
    _put_frames(detector, [np.concatenate(arrays) for arrays in zip(*parts, strict=True)])


def newest(table: pa.Table) -> pa.Table:
    """The last record of every key."""
    if "key" not in table.column_names:
        return table.slice(table.num_rows - 1)
    numbered = table.append_column("row", pa.array(np.arange(table.num_rows)))
    last = numbered.group_by("key").aggregate([("row", "max")]).column("row_max")
    return table.take(pa.array(np.sort(np.asarray(last))))


def still_true(detector: Detector, table: pa.Table) -> pa.Table:
    """The last record of every key, where there are no earlier ones: without keys of which nothing is open."""
    table = newest(table)
    if "key" not in table.column_names:
        return table
    assert detector._scan is not None
    state = _unpacked(table.column("state"), remembered(detector._scan))[0]
    return table.filter(pa.array(~_nothing_open(state)))


def _nothing_open(state: np.ndarray) -> np.ndarray:
    return (state[:, ROWS] == 0) & (state[:, GAP_ROWS] == 0) & (state[:, SLOT] < 0) & (state[:, GAP_SLOT] < 0)


def in_use(detector: Detector) -> np.ndarray:
    """The keys of which anything is open, or waits."""
    assert detector._scan is not None and detector._keys is not None
    found = np.zeros(detector._keys.count, bool)
    state = detector._scan.state[: found.size]
    found[: state.shape[0]] = ~_nothing_open(state)
    for ids in (detector._kept.ids, *(each for _, each, _ in detector._waiting)):
        found[ids] = True
    return np.flatnonzero(found)


def moved(old: Detector, new: Detector, keys: np.ndarray) -> None:
    """A new detector remembers what the old one does, of these keys: those in use."""
    assert old._keys is not None and old._scan is not None and new._scan is not None
    place = np.zeros(old._keys.count, old._kept.ids.dtype)
    place[keys] = np.arange(keys.size)
    if keys.size:
        old._scan.add_keys(int(keys.max()) + 1)  # of some only events that wait have come
        restore(new, record(old, keys))
    new._next, new._held, new._upto = old._next, old._held, old._upto
    if isinstance(old._scan, DeltaScan) and isinstance(new._scan, DeltaScan):
        new._scan.origin = old._scan.origin
    new._waiting = [(instants, place[ids], table) for instants, ids, table in old._waiting]
    new._kept.ids, new._kept.table = place[old._kept.ids], old._kept.table


def _of_frames(detector: Detector) -> list[np.ndarray]:
    """What is kept per open frame; the first axis is its slot."""
    scan = detector._scan
    assert scan is not None
    return [scan.found.frames, *(getattr(scan, name) for name in scan.extras), detector._numbers]


def _put_frames(detector: Detector, arrays: list[np.ndarray]) -> None:
    scan = detector._scan
    assert scan is not None
    order = np.argsort(arrays[-1], kind="stable")
    frames, *extras, numbers = (array[order] for array in arrays)
    scan.make_room(numbers.size)
    scan.found.frames[: numbers.size] = frames
    scan.found.count[0] = numbers.size
    for name, values in zip(scan.extras, extras, strict=True):
        getattr(scan, name)[: numbers.size] = values
    detector._numbers = numbers
    which = np.where(frames[:, GAP] == 1, GAP_SLOT, SLOT)
    scan.state[frames[:, KEY], which] = np.arange(numbers.size)


def _packed(arrays: list[np.ndarray]) -> pa.Array:
    """Rows of several arrays side by side, as bytes of one length."""
    rows = arrays[0].shape[0]
    wide = np.hstack([np.frombuffer(a.tobytes(), np.uint8).reshape(rows, _width(a)) for a in arrays])
    data = pa.py_buffer(np.ascontiguousarray(wide))
    return pa.Array.from_buffers(pa.binary(wide.shape[1]), rows, [None, data])


def _width(array: np.ndarray) -> int:
    """Bytes of a row."""
    return int(np.prod(array.shape[1:])) * array.itemsize


def _unpacked(column: pa.ChunkedArray, like: list[np.ndarray]) -> list[np.ndarray]:
    whole = column.combine_chunks()
    whole = whole if isinstance(whole, pa.Array) else pa.concat_arrays(whole.chunks)
    rows = len(whole)
    width = whole.type.byte_width
    data = np.frombuffer(whole.buffers()[1], np.uint8)[whole.offset * width : (whole.offset + rows) * width]
    wide, at, found = data.reshape(rows, width), 0, []
    for array in like:
        size = _width(array)
        part = np.frombuffer(wide[:, at : at + size].tobytes(), array.dtype)
        found.append(part.reshape(rows, *array.shape[1:]).copy())
        at += size
    return found
