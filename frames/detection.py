"""Detection over stored events: columns once, then one scan per core, each over its share of the keys."""

from typing import Any

import numpy as np
import pyarrow as pa

from frames.aggregate_scan import scan_of
from frames.intake import SMALL, in_parallel, key_ids, threads, timed
from frames.quantiles import with_quantiles
from frames.scans import Scan
from frames.specs import Spec, check_spec
from frames.tables import check_key, frames_table
from kernels.framing import AT, BEGIN, KEY
from swag.columns import as_table, column
from swag.keys import KeyTable


def detect(spec: Spec, events: Any, *, ts: str = "ts", key: str | None = None) -> pa.Table:
    """The frames of stored events, in any order: frame_id, [key], start, end, rows, and kind, cells or value.

    Frames are numbered in the order in which they become certain (within a key, that is the order of time). Events are
    read once, in arrival order if every key's are in order of ts, else sorted first (stably).
    """
    check_spec(spec)
    check_key(key)
    table = as_table(events)
    clock, instants = timed(table, ts)
    keys, ids = key_ids(table, key, None)
    table = table.select(list(dict.fromkeys(spec_columns(spec, table))))
    scans = scan(spec, table, clock.unit, instants, ids, keys)
    if scans is None:
        order = np.argsort(instants, kind="stable")
        instants, ids, table = instants[order], ids[order] if ids.size else ids, table.take(pa.array(order))
        scans = scan(spec, table, clock.unit, instants, ids, keys)
        assert scans is not None
    for each in scans:
        each.finish()
    which, rows = numbered(scans, instants)
    extras = [each.columns(np.arange(each.count)) for each in scans]
    extra = {name: pa.concat_arrays([e[name] for e in extras]).take(pa.array(rows)) for name in extras[0]}
    frames = np.concatenate([each.frames for each in scans]) if len(scans) > 1 else scans[0].frames
    if len(scans) > 1:
        frames[:, KEY] = (frames[:, KEY] << (len(scans).bit_length() - 1)) | which
    extra = with_quantiles(spec, table, ids, frames, rows, extra)
    named = None if keys is None or key is None else (key, keys)
    return frames_table(np.arange(rows.size), frames, rows, named, clock, extra)


def spec_columns(spec: Spec, table: pa.Table) -> tuple[str, ...]:
    for name in spec.columns:
        column(table, name, f"{type(spec).__name__} reads")
    return spec.columns


def scan(
    spec: Spec, table: pa.Table, unit: str | None, instants: np.ndarray, ids: np.ndarray, keys: KeyTable | None
) -> list[Scan] | None:
    """A finished scan per part of the keys; None if a key's events are not in order of ts."""
    kinds = {name: table.schema.field(name).type for name in table.column_names}
    parts = threads() if ids.size >= SMALL else 1
    count = 1 if keys is None else keys.count
    scans = [scan_of(spec, kinds, unit) for _ in range(parts)]
    data = scans[0].data(table, instants.size)

    def run(part: int) -> bool:
        scans[part].add_keys((count >> (parts.bit_length() - 1)) + 1)
        return scans[part].run(instants, ids, data, part, parts)

    return scans if all(in_parallel(run, range(parts))) else None


def numbered(scans: list[Scan], instants: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which scan each frame is of, and the order of the frames: by the event that made them certain, (ts, arrival)."""
    which = np.repeat(np.arange(len(scans)), [each.count for each in scans])
    at = np.concatenate([each.frames[:, AT] for each in scans])
    late = at < 0  # certain only when the stream has ended
    order = np.arange(at.size)
    if late.any():
        begin = np.concatenate([each.frames[:, BEGIN] for each in scans])
        ids = np.concatenate([each.frames[:, KEY] for each in scans]) * len(scans) + which
        order = np.lexsort((ids * late, np.where(late, begin, at), np.where(late, 0, instants[at]), late))
        return which, order
    if len(scans) > 1:
        order = np.argsort(at, kind="stable")
    sure = instants[at[order]]
    if not (sure[1:] >= sure[:-1]).all():
        order = order[np.argsort(sure, kind="stable")]
    return which, order
