"""Detection over stored events: columns once, then one scan per core, each over its share of the keys."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from frames.finding.intake import ONE_THREAD_BELOW, in_parallel, key_ids, threads, with_read
from frames.finding.layout import laid_out
from frames.finding.measures import with_measures
from frames.finding.numbering import numbered
from frames.finding.open_ends import next_instants
from frames.finding.quantiles import with_quantiles
from frames.finding.ties import skips
from frames.owning.origin import Fingerprint, Origin
from frames.patterns.rows import counted
from frames.scans.kinds import SCANS
from frames.scans.scan import KeyedRows, Scan, Share
from frames.specs import Pattern, Spec, check_spec
from frames.tables import Key, frames_table, key_of
from kernels.compile.ahead import rehearsed
from kernels.frames.framing import AT, COUNT, END
from kernels.stored import edges
from swag.first_use import few
from swag.tables.columns import Clock, Field, as_table, timed
from swag.tables.key_columns import apart, joined, key_name
from swag.tables.keys import KeyTable
from swag.tables.waiting import TimedRows


def _rehearsal(spec: Spec, events: Any, **options: Any) -> Callable[[], Any]:
    return partial(detect, spec, few(events), **options)


@rehearsed(_rehearsal)
def detect(spec: Spec, events: Any, *, ts: str = "ts", key: Key = None) -> pa.Table:
    """The frames of stored events, in any order: frame_id, [key], start, end, rows, and kind, cells or value.

    A key is a column, or several: key=("router", "port"). Frames are numbered in the order in which they become certain
    (within a key, that is the order of time). Events are read once, in arrival order if every key's are in order of ts,
    else sorted first (stably). The schema's metadata say which events these were, so that `fill` and `summarize` know
    them again: see frames/owning/origin.py.

    >>> import frames as fr
    >>> events = {"ts": [1, 2, 3, 4], "router": ["a", "b", "a", "b"], "load": [0.5, 0.1, 0.6, 0.9]}
    >>> fr.detect(fr.Threshold("load", ">", 0.3), events, key="router").to_pylist()[0]
    {'frame_id': 0, 'router': 'a', 'start': 1, 'end': 3, 'rows': 2}
    """
    check_spec(spec)
    by, seen = key_of(key, spec), Fingerprint()
    found = search(spec, joined(as_table(events), by), ts, key_name(by), seen)
    return Origin.of_search(spec, ts, by).noted(apart(found.table(), by), seen, whole=True)


@dataclass(frozen=True, eq=False)
class FramesFound:
    """Frames of stored events. instants, ids: of the events as they were scanned; fields, beside: of the frames.

    endless: where frames end with the next event of their key, those that have none; else None.
    """

    clock: Clock
    key: tuple[str, KeyTable] | None
    instants: np.ndarray
    ids: np.ndarray
    fields: np.ndarray
    leads: np.ndarray
    extra: dict[str, pa.Array]
    endless: np.ndarray | None = None

    @property
    def count(self) -> int:
        return int(self.fields.shape[1])

    def table(self) -> pa.Table:
        return frames_table(np.arange(self.count), self.fields, self.key, self.clock, self.extra, None, self.endless)

    def skips(self) -> np.ndarray:
        """Of each frame: how many events of its key that share its start come before it."""
        laid = laid_out(self.instants, self.ids, 1 if self.key is None else max(self.key[1].count, 1))
        return skips(laid, self.fields, self.leads)


def search(spec: Spec, table: pa.Table, ts: str, key: str | None, seen: Fingerprint | None = None) -> FramesFound:
    """The frames of a table, whose key is one column. seen: takes the fingerprint of its rows, if one is wanted."""
    clock, instants = timed(table, ts)
    keys, ids = key_ids(table, key, None)
    table = with_read(spec, table).select(list(dict.fromkeys(spec.columns))).combine_chunks()
    count = 1 if keys is None else keys.count
    scans, read = scan(spec, table, clock, instants, ids, count)
    if seen is not None:
        seen.add(read, instants, ids, keys)
    if scans is None:
        order = np.argsort(instants, kind="stable")
        instants, ids, table = instants[order], ids[order] if ids.size else ids, table.take(pa.array(order))
        scans, _ = scan(spec, table, clock, instants, ids, count)
        assert scans is not None
    fields, beside = numbered(scans, instants)
    leads = beside["leads"][0]
    extra = with_quantiles(spec, table, ids, (fields[AT], leads, fields[COUNT]), scans[0].columns(beside))
    if isinstance(spec, Pattern):
        extra = with_measures(spec, counted(table, instants.size), ids, fields, extra)
    named = None if keys is None or key is None else (key, keys)
    endless = beside["endless"][0] > 0 if spec.extent == "open" else None
    if endless is not None and not spec.scans_ends:
        fields[END], there = next_instants(fields, leads, TimedRows(table, instants, ids))
        endless = ~there
    return FramesFound(clock, named, instants, ids, fields, leads, extra, endless)


def scan(
    spec: Spec, table: pa.Table, clock: Clock, instants: np.ndarray, ids: np.ndarray, count: int
) -> tuple[list[Scan] | None, dict[str, Field]]:
    """A finished scan per part of the keys, of which there are `count`; None if events of one are not in order of ts.

    And the columns that were read, as scans have them.
    """
    shares = shares_of(ids) if ids.size >= ONE_THREAD_BELOW else [Share(0, instants.size)]
    scans: list[Scan] = [SCANS[type(spec)](spec, table.schema, clock) for _ in shares]
    read = scans[0].fields(table)
    data = scans[0].data(read, instants.size)
    data = scans[0].ready(
        data, KeyedRows(instants, ids), shares[0].parts if len(shares) == 1 else len(shares), in_parallel
    )

    def run(each: Scan, share: Share) -> bool:
        each.add_keys(count // share.parts + 1)
        in_order = each.run(instants, ids, data, share)
        if in_order:
            each.finish()
        return in_order

    in_order = all(in_parallel(lambda task: run(*task), zip(scans, shares, strict=True)))
    return scans if in_order else None, read


def shares_of(ids: np.ndarray) -> list[Share]:
    """A share per core: a range of rows if events lie one key after the other, else all rows of some of the keys."""
    parts, size = threads(), ids.size
    if not edges.is_sorted(ids):  # ids count keys as they first appear
        return [Share(0, size, part, parts) for part in range(parts)]
    cuts = [0, *(int(np.searchsorted(ids, ids[size * i // parts])) for i in range(1, parts)), size]
    return [Share(first, last) for first, last in itertools.pairwise(cuts)]
