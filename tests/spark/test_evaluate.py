"""swag.spark.evaluate gives what sw.evaluate gives: at events, at requests, keyed or not, cut or whole."""

import itertools

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import PythonException
from pyspark.sql import functions as F

import swag as sw
import swag.spark
from swag.spark import Layout
from swag.spark.batch import cuts
from swag.spark.batch import tasks as worker
from swag.spark.batch.cuts import EARLIEST, Halo, cut
from swag.spark.batch.evaluate import planned
from tests.spark.compare import assert_same

CUT = Layout(tasks=3, sample=1.0, task_rows=20, block_rows=50)
WHOLE = Layout(sample=0)


def some_events(n: int = 1500, seed: int = 0, keys: int = 5) -> pa.Table:
    """A hot key, ties, gaps, nulls, NaN; in no order."""
    rng = np.random.default_rng(seed)
    key = np.where(rng.random(n) < 0.6, 0, rng.integers(0, keys, n))
    price = rng.normal(100, 10, n)
    price[rng.random(n) < 0.01] = np.nan
    return pa.table({
        "ts": rng.integers(0, 400, n),
        "symbol": pa.array([f"s{k}" for k in key]),
        "price": pa.array(price, mask=rng.random(n) < 0.1),
        "volume": pa.array(rng.integers(-5, 50, n).astype(np.int32)),
        "side": pa.array(np.where(rng.random(n) < 0.5, "buy", "sell")),
        "id": np.arange(n),
    })  # fmt: skip


QUERIES = [
    sw.Query(sw.last("id"), sw.Rows(1), name="id"),
    sw.Query(sw.count(), sw.Range(30), name="n"),
    sw.Query(sw.count("price"), sw.Range(30, until=10, closed="both"), name="n_price"),
    sw.Query(sw.sum("price"), sw.Range(50), name="sum"),
    sw.Query(sw.sum("volume"), sw.Rows(20), name="volume"),
    sw.Query(sw.mean("price"), sw.Rows(40, until=7), name="mean"),
    sw.Query(sw.min("volume"), sw.Range(80, closed="left"), name="min"),
    sw.Query(sw.max("price"), sw.Range(10), name="max"),
    sw.Query(sw.std("price"), sw.Range(60), name="std"),
    sw.Query(sw.median("price"), sw.Rows(15), name="median"),
    sw.Query(sw.first("side"), sw.Range(25), name="first"),
    sw.Query(sw.sum("volume"), sw.Range(40), name="bought", where="side = 'buy'"),
    sw.Query(sw.sum("volume"), sw.Range(40), name="high", having=(">", 500)),
]


@pytest.mark.parametrize("layout", [CUT, WHOLE], ids=["cut", "whole"])
@pytest.mark.parametrize("key", ["symbol", None])
def test_at_every_event(spark, key, layout):
    events = some_events()
    found = swag.spark.evaluate(QUERIES, spark.createDataFrame(events), key=key, layout=layout).toArrow()
    assert_same(found, sw.evaluate(QUERIES, events, key=key), by="id")


@pytest.mark.parametrize("layout", [CUT, WHOLE], ids=["cut", "whole"])
@pytest.mark.parametrize("key", ["symbol", None])
def test_at_requests(spark, key, layout):
    events = some_events()
    rng = np.random.default_rng(1)
    requests = pa.table({
        "symbol": pa.array([f"s{k}" for k in rng.integers(0, 7, 300)]),
        "ts": rng.integers(-20, 450, 300),
        "request": np.arange(300),
        "price": pa.array(rng.normal(size=300), mask=rng.random(300) < 0.3),
    })  # fmt: skip
    frames = spark.createDataFrame(events), spark.createDataFrame(requests)
    found = swag.spark.evaluate(QUERIES, frames[0], at=frames[1], key=key, layout=layout).toArrow()
    assert_same(found, sw.evaluate(QUERIES, events, at=requests, key=key), by="request")


@pytest.mark.parametrize("layout", [Layout(tasks=1, sample=0), Layout(tasks=1, sample=0, block_rows=50), CUT])
def test_a_block_is_answered_some_rows_at_a_time(spark, monkeypatch, layout):
    """In this process, with the rows that Spark lays out for a worker."""
    monkeypatch.setattr(worker, "HELD", 20 * len(QUERIES))
    monkeypatch.setattr(worker, "SHARE", 10**9)
    events = some_events()
    requests = pa.table({"symbol": [f"s{k % 7}" for k in range(300)], "ts": range(0, 600, 2), "id": range(300)})
    for at in (None, requests):
        own = [query for query in QUERIES if query.label != "id"] if at else QUERIES
        asked = None if at is None else spark.createDataFrame(at)
        rows, task, _ = planned(own, spark.createDataFrame(events), asked, "ts", ["symbol"], layout)
        by_task = rows.withColumn("task", F.spark_partition_id()).toArrow()
        shares = [by_task.filter(pc.field("task") == i).drop_columns(["task"]) for i in range(layout.tasks)]
        found = [batch for share in shares for batch in worker.answers(task, share.to_batches())]
        assert max(batch.num_rows for batch in found) <= 20
        assert_same(pa.Table.from_batches(found), sw.evaluate(own, events, at=at, key="symbol"), by="id")


@pytest.mark.parametrize("key", ["symbol", None])
def test_a_large_substream_is_cut_and_pieces_see_far_enough_back(spark, key):
    events = some_events()
    rows = spark.createDataFrame(events).select(*([F.col("symbol").alias("k0")] if key else []), F.col("ts").alias("t"))
    pieces = cut(rows, ["k0"] if key else [], Halo(time=30, rows=20), sample=1.0, task_rows=200, most_tasks=8)
    assert pieces is not None and pieces.tasks == 8
    found = pieces.table.toArrow().to_pylist()
    assert len(found) >= 4 and [piece["piece"] for piece in found] == list(range(len(found)))
    assert [piece["start"] for piece in found] == pieces.starts.tolist()
    for before, piece in itertools.pairwise(found):
        if piece["start"] > EARLIEST:
            own = [row["ts"] for row in events.to_pylist() if key is None or row["symbol"] == piece["cut_k0"]]
            seen = [t for t in own if piece["since"] <= t < piece["start"]]
            assert before["until"] + 1 == piece["start"] and piece["since"] <= piece["start"] - 29
            assert len(seen) >= min(20, sum(t < piece["start"] for t in own))
    answers = swag.spark.evaluate(QUERIES, spark.createDataFrame(events), key=key, layout=CUT)
    assert answers.select(F.spark_partition_id()).distinct().count() == 3


@pytest.mark.parametrize("sample", [1.0, 0.5])
def test_quantiles_are_those_of_a_sample(spark, monkeypatch, sample):
    """However many rows are looked at, the driver gets some of them; rows without a time are not among them."""
    monkeypatch.setattr(cuts, "SAMPLED_ROWS", 2000)
    monkeypatch.setattr(cuts, "ENOUGH", 1)
    when = F.when(F.col("id") % 7 > 0, F.col("id")).alias("t")
    rows = spark.range(20_000).select(F.when(F.col("id") < 15_000, "a").otherwise("b").alias("k0"), when)
    pieces = cut(rows, ["k0"], Halo(), sample=sample, task_rows=5000, most_tasks=8)
    for key, first, count in (("a", 0, 15_000), ("b", 15_000, 5000)):
        starts = pieces.starts[np.asarray(pieces.keys["k0"]) == key]
        evenly = first + count * np.arange(1, starts.size) / starts.size
        assert starts.size >= 2 and np.abs(starts[1:] - evenly).max() < 700


def test_a_stream_without_any_time_is_refused_by_the_workers(spark):
    rows = spark.range(100).selectExpr("CAST(NULL AS BIGINT) AS ts")
    with pytest.raises(PythonException, match="no timestamp"):
        swag.spark.evaluate([sw.Query(sw.count(), sw.Rows(3))], rows, layout=CUT).collect()


def test_nothing_is_cut_that_fits_a_task(spark):
    rows = spark.range(1000).select((F.col("id") % 100).alias("k0"), F.col("id").alias("t"))
    assert cut(rows, ["k0"], Halo(time=30), sample=1.0, task_rows=100, most_tasks=8) is None
    assert cut(rows, [], Halo(time=30), sample=1.0, task_rows=1000, most_tasks=8) is None


def test_progress_of_a_job_is_told_by_spark_task_by_task(spark):
    """What docs/spark.md says of long jobs: one stage is swag's, and its tasks end one by one."""
    context, layout = spark.sparkContext, Layout(tasks=7, sample=0)
    context.setJobGroup("progress", "a backfill")
    try:
        answers = swag.spark.evaluate(
            QUERIES[1:3], spark.createDataFrame(some_events(300)), key="symbol", layout=layout
        )
        answers.write.format("noop").mode("overwrite").save()
        tracker = context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup("progress")]
        stages = [tracker.getStageInfo(stage) for job in jobs for stage in job.stageIds]
    finally:
        for name in ("spark.jobGroup.id", "spark.job.description"):
            context.setLocalProperty(name, None)
    assert [(stage.numTasks, stage.numCompletedTasks) for stage in stages if stage.numTasks == 7] == [(7, 7)]


LATER = [
    sw.Query(sw.last("id"), sw.Rows(1), name="id"),
    sw.Query(sw.sum("volume"), sw.Rows(10, until=-5), name="rows"),
    sw.Query(sw.sum("price"), sw.Range(50, until=-10), name="around"),
    sw.Query(sw.count(), sw.Range(0, until=-30), name="soon"),
    sw.Query(sw.max("price"), sw.Range(20, closed="both", peers=True), name="peers"),
]
SO_FAR = [
    sw.Query(sw.last("id"), sw.Rows(1), name="id"),
    sw.Query(sw.sum("volume"), sw.Unbounded(), name="total"),
    sw.Query(sw.median("price"), sw.Unbounded(until=20), name="median"),
]


@pytest.mark.parametrize("queries", [LATER, SO_FAR], ids=["later", "so far"])
@pytest.mark.parametrize("layout", [CUT, WHOLE], ids=["cut", "whole"])
def test_windows_that_lie_ahead_see_peers_or_never_end(spark, layout, queries):
    events = some_events()
    answers = swag.spark.evaluate(queries, spark.createDataFrame(events), key="symbol", layout=layout).toArrow()
    assert_same(answers, sw.evaluate(queries, events, key="symbol"), "id")
    requests = pa.table({"ts": np.arange(0, 420, 7), "symbol": [f"s{i % 5}" for i in range(60)], "r": np.arange(60)})
    asked, at = [query for query in queries if query.name != "id"], spark.createDataFrame(requests)
    answers = swag.spark.evaluate(asked, spark.createDataFrame(events), at=at, key="symbol", layout=layout).toArrow()
    assert_same(answers, sw.evaluate(asked, events, at=requests, key="symbol"), "r")


def test_windows_of_the_calendar(spark):
    hours = np.datetime64("2024-03-09T00", "us") + np.arange(0, 4 * 86400, 1800) * np.timedelta64(1, "s")
    events = pa.table({"ts": pa.array(hours).cast(pa.timestamp("us", "UTC")), "id": np.arange(hours.size)})
    queries = [sw.Query(sw.last("id"), sw.Rows(1), name="id")]
    queries += [
        sw.Query(sw.count(), sw.Since(each, "America/New_York"), name=each) for each in ("1h", "1d", "1w", "1mo")
    ]
    answers = swag.spark.evaluate(queries, spark.createDataFrame(events), layout=CUT).toArrow()
    assert_same(answers, sw.evaluate(queries, events), "id")
