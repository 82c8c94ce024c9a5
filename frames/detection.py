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
from kernels import frame_order
from kernels.framing import AT, BEGIN, COUNT, KEY
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
    at = np.concatenate([each.frames[:, AT] for each in scans])
    rows = numbered(scans, at, instants)
    fields = gathered(scans, rows)
    extras = [each.columns(np.arange(each.count)) for each in scans]
    extra = {name: pa.concat_arrays([e[name] for e in extras]).take(pa.array(rows)) for name in extras[0]}
    extra = with_quantiles(spec, table, ids, at[rows], fields[COUNT], extra)
    named = None if keys is None or key is None else (key, keys)
    return frames_table(np.arange(rows.size), fields, named, clock, extra)


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


def numbered(scans: list[Scan], at: np.ndarray, instants: np.ndarray) -> np.ndarray:
    """The order of the frames of all scans: by the event `at` which they became certain, (ts, arrival)."""
    counts = [each.count for each in scans]
    order = np.arange(at.size)
    late = at < 0  # certain only when the stream has ended
    if late.any():
        begin = np.concatenate([each.frames[:, BEGIN] for each in scans])
        ids = np.concatenate([each.frames[:, KEY] * len(scans) + part for part, each in enumerate(scans)])
        return np.lexsort((ids * late, np.where(late, begin, at), np.where(late, 0, instants[at]), late))
    if len(scans) > 1:
        frame_order.merge(at, np.cumsum([0, *counts]), order)
    sure = instants[at[order]]
    if not frame_order.is_sorted(sure):
        by_time = np.arange(at.size)
        frame_order.sort(sure, by_time)
        order = order[by_time]
    return order


def gathered(scans: list[Scan], order: np.ndarray) -> np.ndarray:
    """The first columns of all frames, in order: key, begin, end, count."""
    places, fields = np.empty(order.size, np.int64), np.empty((COUNT + 1, order.size), np.int64)
    places[order] = np.arange(order.size)
    shift, starts = len(scans).bit_length() - 1, np.cumsum([0, *(each.count for each in scans)])

    def write(part: int) -> None:
        frame_order.scatter(scans[part].frames, places[starts[part] : starts[part + 1]], shift, part, fields)

    in_parallel(write, range(len(scans)))
    return fields
