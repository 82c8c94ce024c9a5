"""Segments that are swept of rows that nothing needs, a few at a time."""

import numpy as np
import pyarrow as pa

from swag.spark.streams import sweeping
from swag.spark.streams.log import HISTORY, Header, Log, Pieces
from swag.spark.streams.sweeping import Sweep
from tests.spark.stand_in import Map


def test_what_is_not_needed_goes_segment_after_segment_and_the_rest_stays_in_order(monkeypatch):
    monkeypatch.setattr(sweeping, "SWEPT", 100)
    log, sweep = Log(Header(""), Pieces(Map({}, "pieces"), "a log")), Sweep()
    for i in range(12):  # segments of different sizes: none is merged with its neighbours
        numbers = np.arange(40 if i % 2 else 4000) + 10_000 * i
        log.append("rows", pa.table({"n": numbers}), numbers)
    log.header.following += HISTORY
    before, passes = sum(entry.rows for entry in log.header.entries), []
    while sum(entry.rows for entry in log.header.entries) > 2 * 24 + 100:
        sweep.tend(log, "rows", 24, 50, lambda table: table.filter(pa.array(np.asarray(table["n"]) % 1000 == 7)))
        passes.append(before - (before := sum(entry.rows for entry in log.header.entries)))
    assert max(passes) < 4100  # with each trigger, a segment, or several small ones
    found = np.concatenate([np.asarray(table["n"]) for table in log.read(log.header.entries)["rows"]])
    kept = found[found % 1000 == 7]
    assert list(kept) == [10_000 * i + 1000 * j + 7 for i in range(12) for j in range(1 if i % 2 else 4)]
    assert found.size < 150
