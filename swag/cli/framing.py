"""Frames of a file of events in bounded memory: kept are the events that a frame still to come may begin with."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from frames import Detector
from swag.cli.stream import Stream
from swag.columns import column, instants


def frames_by_chunk(spec: Any, query: Any, chunks: Iterator[pa.Table], ts: str, key: str | None) -> Iterator[pa.Table]:
    """The frames of each chunk as far as it decides them; with a query (frames/query.py), and what it says of each."""
    detector, order = Detector(spec, ts=ts, key=key), Stream([], ts, key)
    if query is not None:
        detector = detector.with_skips()  # frames are filled with their own events, as those of a table are
    rows: pa.Table | None = None
    for chunk in chunks:
        last = order.check_order(chunk)
        detector.push(chunk)
        rows = chunk if rows is None else pa.concat_tables([rows, chunk])
        found = detector.punctuate(last - 1)  # more events may come with the last ts
        yield found if query is None else query.say(found, rows, ts, key)
        promised = detector.promised
        if query is None:
            rows = rows.slice(0, 0)
        elif promised is not None:
            rows = rows.filter(pa.array(instants(column(rows, ts, "ts is"), ts) > promised)).combine_chunks()
    if rows is not None:
        found = detector.finish()
        yield found if query is None else query.say(found, rows, ts, key)
