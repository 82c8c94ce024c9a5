"""Detection over stored events: columns once, then one scan per core, each over its share of the keys."""

import itertools
from typing import Any

import numpy as np
import pyarrow as pa

from frames.aggregate_scan import scan_of
from frames.intake import SMALL, in_parallel, key_ids, threads, timed
from frames.quantiles import with_quantiles
from frames.scans import Scan, Share
from frames.specs import Spec, check_spec
from frames.tables import check_key, frames_table
from kernels import edges, frame_order
from kernels.framing import AT, BEGIN, COUNT, KEY
from swag.columns import as_table, column, room
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
    shares = shares_of(ids) if ids.size >= SMALL else [Share(0, instants.size)]
    count = 1 if keys is None else keys.count
    scans = [scan_of(spec, kinds, unit) for _ in shares]
    data = scans[0].data(table, instants.size)

    def run(each: Scan, share: Share) -> bool:
        each.add_keys(count // share.parts + 1)
        return each.run(instants, ids, data, share)

    return scans if all(in_parallel(lambda task: run(*task), zip(scans, shares, strict=True))) else None


def shares_of(ids: np.ndarray) -> list[Share]:
    """A share per core: a range of rows if events lie one key after the other, else all rows of some of the keys."""
    parts, size = threads(), ids.size
    if not edges.is_sorted(ids):  # ids count keys as they first appear
        return [Share(0, size, part, parts) for part in range(parts)]
    cuts = [0, *(int(np.searchsorted(ids, ids[size * i // parts])) for i in range(1, parts)), size]
    return [Share(first, last) for first, last in itertools.pairwise(cuts)]


def numbered(scans: list[Scan], at: np.ndarray, instants: np.ndarray) -> np.ndarray:
    """The order of the frames of all scans: by the event `at` which they became certain, (ts, arrival)."""
    counts = [each.count for each in scans]
    order = np.arange(at.size)
    late = at < 0  # certain only when the stream has ended
    if late.any():
        begin = np.concatenate([each.frames[:, BEGIN] for each in scans])
        ids = np.concatenate([each.frames[:, KEY] * each.share.parts + each.share.part for each in scans])
        return np.lexsort((ids * late, np.where(late, begin, at), np.where(late, 0, instants[at]), late))
    if len(scans) > 1 and not edges.is_sorted(at):
        frame_order.merge(at, np.cumsum([0, *counts]), order)
    sure = instants[at[order]]
    if not edges.is_sorted(sure):
        frame_order.sort(sure, order)
    return order


def gathered(scans: list[Scan], order: np.ndarray) -> np.ndarray:
    """The first columns of all frames, in order: key, begin, end, count."""
    places = room(order.size, np.int64)
    fields = room((COUNT + 1) * order.size, np.int64).reshape(COUNT + 1, order.size)
    places[order] = np.arange(order.size)
    ends = np.cumsum([each.count for each in scans])

    def write(task: tuple[Scan, int]) -> None:
        (_, _, part, parts), to = task[0].share, places[task[1] - task[0].count : task[1]]
        frame_order.scatter(task[0].frames, to, parts.bit_length() - 1, part, fields)

    in_parallel(write, zip(scans, ends, strict=True))
    return fields
