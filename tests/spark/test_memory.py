"""What a worker holds is a block and a window, or what is open of a frame: however many rows come, it is no more.

Rows are made as they are asked for, answers are dropped as they come. Arrow's memory and Python's are counted between.
"""

import gc
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import frames as fr
import swag as sw
from frames.spark.batch import tasks as workers
from swag.spark import Layout, schema
from swag.spark.batch.evaluate import planned
from swag.spark.batch.tasks import answers
from swag.tables.columns import Clock

ROWS, BLOCK = 2000, 8000  # of a batch, of a block
QUERIES = [
    sw.Query(sw.sum("x"), sw.Range(12_000), "sum"),  # longer than a block
    sw.Query(sw.median("x"), sw.Rows(300), "median"),
    sw.Query(sw.max("x") - sw.min("x"), sw.Range(900, until=100), "spread", where="x > 0"),
]
SPECS = [
    fr.Threshold("x", ">", 0, min_rows=3),
    fr.Threshold("x", "<", 9, min_rows=3, partition=True),  # one frame that does not end
    fr.Boundary("x", 0.25),
    fr.Delta("x", 1.0, measure="range"),
    fr.Aggregate(sw.sum("x"), ">=", 5),
]


def made(count: int, keys: int, names: list[str]) -> Iterator[pa.RecordBatch]:
    """Batches of one key, or of a new key every so many rows, in Arrow's own memory."""
    for first in range(0, count * ROWS, ROWS):
        t = np.arange(first, first + ROWS)
        key = t * keys // (count * ROWS)
        columns = {"k0": key, "t": t, "asks": t % 4 == 0, "e0": np.sin(t / 20), "r0": key, "r1": t}
        yield pa.RecordBatch.from_pydict({name: pc.take(columns[name], np.arange(ROWS)) for name in names})


def most_held(step: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]], batches: Iterator) -> int:
    """Bytes, at the most, over those before the first batch."""

    def now() -> int:
        return pa.total_allocated_bytes() + tracemalloc.get_traced_memory()[0]

    def watched() -> Iterator[pa.RecordBatch]:
        nonlocal most
        for batch in batches:
            yield batch
            most = max(most, now())

    gc.collect()
    most = before = now()
    for _ in step(watched()):
        most = max(most, now())
    return most - before


def check(step: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]], names: list[str]) -> None:
    for _ in step(made(20, 3, names)):  # compiles
        pass
    tracemalloc.start()
    try:
        for keys, more in ((1, 1), (30, 300)):  # as many rows of each key, and more keys
            short, long = (most_held(step, made(n, k, names)) for n, k in ((30, keys), (300, more)))
            assert short > ROWS * 8 and long < 1.3 * short
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("at_requests", [False, True])
def test_windows_hold_a_block_and_a_window(spark, at_requests):
    events = spark.createDataFrame(pa.table({"ts": [1], "key": [1], "x": [0.5]}))
    at = events.select("key", "ts") if at_requests else None
    rows, task, _ = planned(QUERIES, events, at, "ts", ["key"], Layout(sample=0, block_rows=BLOCK))
    check(partial(answers, task), schema.arrow_schema(rows).names)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: type(spec).__name__)
def test_detection_holds_a_block_and_what_is_open(spec):
    extra = fr.detect(spec, pa.table({"ts": [1], "x": [0.5]})).schema
    out = pa.schema([extra.field(0), pa.field("k0", pa.int64()), *list(extra)[1:]])
    task = workers.FrameTask(("k0",), {"k0": "key"}, "ts", ("x",), Clock(pa.int64()), out, BLOCK, spec)
    check(partial(workers.detected, task), ["k0", "t", "e0"])
