"""Frames of a file of events in bounded memory: kept are the events that a frame still to come may begin with."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from frames.detector import Detector
from frames.owning.owning import of_skips
from frames.tables import Key
from swag.stored.carried import CarriedRows
from swag.tables.columns import column, instants


def frames_by_chunk(
    spec: Any, query: Any, chunks: Iterator[pa.Table], ts: str, key: Key, check: Callable[[pa.Table], int]
) -> Iterator[pa.Table]:
    """The frames of each chunk as far as it decides them; with a query (frames/query.py), and what it says of each.

    check: raises if a chunk is not in order, else the time of its last event.
    """
    detector, carried = Detector(spec, ts=ts, key=key).with_skips(), CarriedRows()

    def said(found: pa.Table, rows: pa.Table) -> pa.Table:
        if query is None:
            return found
        return query.say(found, rows, ts, key, of_skips(detector.skips, np.asarray(found["rows"])))

    for chunk in chunks:
        last = check(chunk)
        detector.push(chunk)
        rows = carried.before(chunk)
        yield said(detector.punctuate_before(last), rows)  # more events may come with the last ts
        promised = detector.promised
        if query is None:
            rows = rows.slice(0, 0)
        elif promised is not None:
            rows = rows.filter(pa.array(instants(column(rows, ts, "ts is"), ts) > promised)).combine_chunks()
        carried.keep(rows)
    if carried.rows is not None:
        yield said(detector.finish(), carried.rows)
