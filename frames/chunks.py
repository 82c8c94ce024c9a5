"""Frames of a file of events in bounded memory: kept are the events that a frame still to come may begin with."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from frames.detector import Detector
from frames.owning.owning import of_skips
from swag.tables.columns import column, instants


def frames_by_chunk(
    spec: Any, query: Any, chunks: Iterator[pa.Table], ts: str, key: str | None, check: Callable[[pa.Table], int]
) -> Iterator[pa.Table]:
    """The frames of each chunk as far as it decides them; with a query (frames/query.py), and what it says of each.

    check: raises if a chunk is not in order, else the time of its last event.
    """
    detector = Detector(spec, ts=ts, key=key).with_skips()
    rows: pa.Table | None = None

    def said(found: pa.Table) -> pa.Table:
        if query is None:
            return found
        return query.say(found, rows, ts, key, of_skips(detector.skips, np.asarray(found["rows"])))

    for chunk in chunks:
        last = check(chunk)
        detector.push(chunk)
        rows = chunk if rows is None else pa.concat_tables([rows, chunk])
        yield said(detector.punctuate_before(last))  # more events may come with the last ts
        promised = detector.promised
        if query is None:
            rows = rows.slice(0, 0)
        elif promised is not None:
            rows = rows.filter(pa.array(instants(column(rows, ts, "ts is"), ts) > promised)).combine_chunks()
    if rows is not None:
        yield said(detector.finish())
