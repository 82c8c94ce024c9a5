"""Between the call and the action events may change: what the driver saw of them is checked by every worker.

Substreams are cut by a sample, and events counted for the windows by rows; partitions are looked at if they are said to
be in order. A cut may lie anywhere; too few events before it, or a key in two partitions, are noticed.
"""

import itertools
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.errors import PythonException
from pyspark.sql import functions as F

import swag as sw
import swag.spark
from swag.spark import Layout
from swag.spark.batch import tasks as worker
from swag.spark.batch.evaluate import planned
from swag.spark.batch.ordered_input import MARK, Promise, in_order
from swag.tables.columns import Clock
from tests.examples import share
from tests.spark.compare import assert_same

CUT = Layout(tasks=3, sample=1.0, task_rows=20, block_rows=40)
SORTED = Layout(ordered=True)
QUERIES = [sw.Query(sw.last("id"), sw.Rows(1), "id"), sw.Query(sw.count(), sw.Rows(25), "n")]
BY_TIME = [sw.Query(sw.last("id"), sw.Range(1), "id"), sw.Query(sw.count(), sw.Range(25), "n")]


def appearing(spark, flag: Path, extra: str):
    """600 events of one key, some of which (`extra` is true of them) are there only while a file is."""

    def rows(batches):
        for batch in batches:
            there = np.ones(batch.num_rows, bool) if flag.exists() else ~np.asarray(batch.column("extra"))
            yield batch.filter(pa.array(there)).drop_columns(["extra"])

    events = spark.range(600).select(F.col("id").alias("ts"), "id", F.lit("a").alias("k"), F.expr(extra).alias("extra"))
    return events.mapInArrow(rows, "ts long, id long, k string")


@pytest.mark.parametrize("at_requests", [False, True])
@pytest.mark.parametrize(("queries", "raises"), [(QUERIES, True), (BY_TIME, False)], ids=["rows", "time"])
def test_events_that_are_gone_since_they_were_counted(spark, tmp_path, queries, raises, at_requests):
    flag = tmp_path / "there"
    flag.touch()
    events = appearing(spark, flag, "id % 10 > 0")
    asked = spark.range(0, 600, 7).select(F.col("id").alias("request"), F.col("id").alias("ts"), F.lit("a").alias("k"))
    at = asked if at_requests else None
    answers = swag.spark.evaluate(queries, events, at=at, key="k", layout=CUT)
    flag.unlink()  # nine in ten go
    if raises:
        with pytest.raises(PythonException, match=r"BadEvents: the events have changed .* k='a' has \d* of the 25 ev"):
            answers.collect()
        return
    left = pa.table({"ts": range(0, 600, 10), "id": range(0, 600, 10), "k": ["a"] * 60})
    requests = None if at is None else asked.toArrow()
    expected = sw.evaluate(queries, left, at=requests, key="k")
    assert_same(answers.toArrow(), expected, by="request" if at_requests else "id")


def test_events_that_have_come_since_they_were_counted_are_answered(spark, tmp_path):
    flag = tmp_path / "there"
    events = appearing(spark, flag, "id % 3 = 0")
    answers = swag.spark.evaluate(QUERIES, events, key="k", layout=CUT)
    flag.touch()
    whole = pa.table({"ts": range(600), "id": range(600), "k": ["a"] * 600})
    assert_same(answers.toArrow(), sw.evaluate(QUERIES, whole, key="k"), by="id")


@settings(max_examples=share(30))
@given(holes=st.lists(st.tuples(st.integers(0, 599), st.integers(1, 80)), max_size=3))
def test_whatever_rows_a_worker_gets_it_answers_as_the_whole_or_raises(spark_rows, holes):
    """Any of the rows that were laid out may be missing when the job runs."""
    task, share, events = spark_rows
    gone = pa.array(sorted({i for first, count in holes for i in range(first, first + count)}), pa.int64())
    left = share.filter(pc.invert(pc.is_in(share["e0"], gone)))
    expected = sw.evaluate(QUERIES, events.filter(pc.invert(pc.is_in(events["id"], gone))))
    try:
        found = pa.Table.from_batches(worker.answers(task, left.to_batches()), task.out)
    except sw.BadEvents:
        return
    assert_same(found, expected, by="id")


@pytest.fixture(scope="module")
def spark_rows(spark):
    """What one worker is to do with all rows."""
    events = pa.table({"ts": np.arange(600) // 2, "id": np.arange(600)})
    rows, task, _ = planned(QUERIES, spark.createDataFrame(events), None, "ts", [], CUT)
    assert task.columns.cut is not None
    return task, rows.toArrow().sort_by([("piece", "ascending"), ("t", "ascending"), ("e0", "ascending")]), events


# -- Layout(ordered=True) ---------------------------------------------------------------------------------------------


def numbered(spark, keys: int = 5):
    return spark.range(300).select(F.col("id").alias("ts"), "id", (F.col("id") % keys).alias("k"))


def test_events_that_are_in_order_are_not_sorted_again(spark):
    events = numbered(spark)
    expected = sw.evaluate(QUERIES, events.toArrow(), key="k")
    for rows in (
        events.repartition(3, "k").sortWithinPartitions("k", "ts"),
        events.repartition("k").sortWithinPartitions("k", "ts"),  # as many as Spark likes
        events.coalesce(1).sortWithinPartitions(F.desc("k"), "ts"),
    ):
        answers = swag.spark.evaluate(QUERIES, rows, key="k", layout=SORTED)
        assert_same(answers.toArrow(), expected, by="id")
    alone = events.coalesce(1)
    assert_same(
        swag.spark.evaluate(QUERIES, alone, layout=SORTED).toArrow(), sw.evaluate(QUERIES, events.toArrow()), "id"
    )


@pytest.mark.parametrize("key", ["k", ["k", "d"], "d"])
def test_keys_of_any_type_are_found_to_be_apart(spark, key):
    events = numbered(spark).withColumn("d", (F.col("k") / 2).cast("double"))
    rows = events.repartition(2, "k").sortWithinPartitions("k", "ts")
    found = swag.spark.evaluate(QUERIES, rows, key=key, layout=SORTED).toArrow()
    assert_same(found, swag.spark.evaluate(QUERIES, events, key=key).toArrow(), by="id")
    for wrong in (events.coalesce(1), rows.repartition(2).sortWithinPartitions("k", "ts")):
        with pytest.raises((PythonException, sw.OutOfOrder), match=r"k=|d="):
            swag.spark.evaluate(QUERIES, wrong, key=key, layout=SORTED).collect()


def test_what_is_not_in_order_is_named(spark):
    events = numbered(spark)
    one = events.coalesce(1)
    later_first = one.sortWithinPartitions("k", F.desc("ts"))
    for rows, says in (
        (one, r"OutOfOrder: row 5 of partition 0: the key k=0 comes again after another key\. Hint: events\.repart"),
        (
            later_first,
            r'OutOfOrder: row 1 of partition 0, of the key k=0: rows are not sorted by "ts": 290 after 295\.',
        ),
    ):
        with pytest.raises(PythonException, match=says):
            swag.spark.evaluate(QUERIES, rows, key="k", layout=SORTED).collect()
    spread = events.repartition(2).sortWithinPartitions("k", "ts")
    with pytest.raises(sw.OutOfOrder, match=r"the key k=\d is in partition 0 and in 1"):
        swag.spark.evaluate(QUERIES, spread, key="k", layout=SORTED)
    with pytest.raises(sw.OutOfOrder, match="the stream is in partition 0 and in 1"):
        swag.spark.evaluate(QUERIES, spread, layout=SORTED)
    with pytest.raises(sw.BadQuery, match="for events alone"):
        swag.spark.evaluate(QUERIES, events, at=events, layout=SORTED)


def test_partitions_that_were_not_looked_at_are_refused(spark, tmp_path):
    flag = tmp_path / "there"
    events = appearing(spark, flag, "id > 500").repartition(2, "id").sortWithinPartitions("id", "ts")
    answers = swag.spark.evaluate(QUERIES[1:], events, key="id", layout=SORTED)
    flag.touch()
    with pytest.raises(PythonException, match=r"OutOfOrder: partition \d is none of those that were looked at"):
        answers.collect()


rows = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 4)), max_size=12)


@given(rows=rows, cuts=st.lists(st.integers(0, 12), max_size=3))
def test_a_partition_is_taken_if_keys_begin_once_and_time_does_not_go_back(rows, cuts):
    """By the rule itself, however rows are cut into batches; the row that is named is the first that breaks it."""
    keys, times, marks = [k for k, _ in rows], [t for _, t in rows], range(len(rows))
    table = pa.table(
        {"k0": pa.array(keys, pa.string()), "t": pa.array(times, pa.int64()), MARK: pa.array(marks, pa.int64())}
    )
    promise = Promise({"k0": "key"}, "k0", "ts", Clock(pa.int64()), frozenset({(len(rows), sum(marks))}))
    begins = [i for i in marks if i == 0 or keys[i - 1] != keys[i]]
    again = [i for i in begins if keys[i] in keys[:i]]
    back = [i for i in marks if i not in begins and times[i] < times[i - 1]]
    edges = sorted({0, len(rows), *(cut for cut in cuts if cut < len(rows))})
    batches = [table.slice(a, b - a).to_batches()[0] for a, b in itertools.pairwise(edges)]
    if not again and not back:
        assert list(in_order(promise, batches)) == batches
        return
    with pytest.raises(sw.OutOfOrder) as raised:
        list(in_order(promise, batches))
    at = int(re.search(r"row (\d+)", str(raised.value))[1])
    assert at in (again[:1] + back[:1]) and f"key={keys[at]!r}" in str(raised.value)


@pytest.mark.parametrize("automatic", ["true", "false"])
def test_a_table_that_is_bucketed_by_key_is_in_order_if_it_is_read_so(spark, automatic):
    """By default Spark reads buckets as any files, unless it groups by their key: not what the driver has looked at."""
    setting = "spark.sql.sources.bucketing.autoBucketedScan.enabled"
    events = numbered(spark).repartition(4, "k")
    events.write.bucketBy(4, "k").sortBy("k", "ts").mode("overwrite").saveAsTable("bucketed")
    spark.conf.set(setting, automatic)
    try:
        answers = swag.spark.evaluate(QUERIES, spark.table("bucketed"), key="k", layout=SORTED)
        if automatic == "true":
            with pytest.raises(PythonException, match="OutOfOrder: partition"):
                answers.collect()
        else:
            assert_same(answers.toArrow(), sw.evaluate(QUERIES, events.toArrow(), key="k"), by="id")
    finally:
        spark.conf.unset(setting)
        spark.sql("DROP TABLE bucketed")
