"""Columns are known by whatever names users gave them: dots, backticks, blanks, quotes, upper and lower case.

A plan resolves every name before any job runs, so most is found by planning alone; a few names go all the way.
"""

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F

import frames as fr
import frames.spark
import swag as sw
import swag.spark
from swag.spark import Layout
from tests.examples import share
from tests.spark.compare import assert_same
from tests.spark.streams import run, source, write

names = st.text("ab.`\"'[]\\ k0KtT_é\n-$", min_size=1, max_size=4) | st.sampled_from(
    [
        "__shard",
        "__swag",
        "shard",
        "c0",
        "k0",
        "e0",
        "t",
        " t",
        " k",
        "seq",
        "piece",
        "asks",
        "known_by",
        "a, b",
        "COUNT",
    ]
)
OURS = {"query", "tick", "value", "at", "frame_id", "start", "end", "rows", "kind", "final", "n", "hot"}
HOT = sw.Query(sw.count(), sw.Range(10), "hot", having=(">", 1))
WHOLE = Layout(sample=0)
NASTY = [".x", "a.b", "`", "K0", "-", " t", "A.b", "[0]"]


@pytest.fixture(scope="module")
def rate(spark):
    return spark.readStream.format("rate").load()


def renamed(frame, columns: list[str]):
    """ts, two keys and a number, under these names."""
    number = F.col("value")
    found = frame.select(number.alias("a"), (number % 3).alias("b"), (number % 2).alias("c"), number.alias("d"))
    return found.toDF(*columns)


@settings(max_examples=share(6))
@given(columns=st.lists(names, min_size=4, max_size=4, unique=True), keys=st.integers(0, 2))
def test_any_name_can_be_planned(spark, rate, columns, keys):
    assume(not OURS & {name.lower() for name in columns})
    ts, x, own = columns[0], columns[3], columns[1 : 1 + keys]
    key = [None, own[:1] and own[0], own][keys]
    events = renamed(spark.range(3).toDF("value"), columns)
    total = sw.Query(sw.sum(x), sw.Rows(3), "n")
    assert swag.spark.evaluate([total], events, ts=ts, key=key, layout=WHOLE).columns == [*own, ts, "n"]
    asked = swag.spark.evaluate([total], events, at=events, ts=ts, key=key, layout=WHOLE)
    assert asked.columns == [*columns, "n"]
    every = sw.Query(sw.sum(x), sw.Rows(3), "n", every=sw.Every(2))
    assert swag.spark.evaluate([every], events, ts=ts, key=key).columns == ["tick", ts, *own, "n"]
    spec = fr.Threshold(x, ">", 1)
    found = frames.spark.detect(spec, events, ts=ts, key=key, layout=WHOLE)
    assert found.columns == ["frame_id", *own, "start", "end", "rows"]
    assert frames.spark.fill(found, events, ts=ts, key=key, layout=WHOLE).columns == [*columns, "frame_id"]
    of_frames = frames.spark.summarize(found, events, sw.sum(x), ts=ts, key=key, layout=WHOLE)
    assert of_frames.columns == [*found.columns, str(sw.sum(x))]
    stream = renamed(rate, columns)
    answers = swag.spark.stream([total, HOT], stream, ts=ts, key=key)
    assert answers.columns == ["query", "tick", ts, *own, "value"]
    assert swag.spark.stream([total], stream, requests=stream, ts=ts, key=key).columns == [*columns, "n"]
    pieces = frames.spark.stream(spec, stream, ts=ts, key=key)
    assert pieces.columns == ["frame_id", *own, "start", "end", "rows", "final"]
    if own:
        passing = swag.spark.filter_substreams([HOT], events, at=3, ts=ts, key=key)
        assert passing.columns == ["query", "at", *own, "value"]


@pytest.mark.parametrize("shift", range(0, len(NASTY), 4))
def test_nasty_names_give_the_answers_of_plain_ones(spark, tmp_path, shift):
    ts, one, two, x = columns = [NASTY[(shift + i) % len(NASTY)] for i in range(4)]
    plain = pa.table({"ts": range(60), "a": [i % 3 for i in range(60)], "b": [i % 2 for i in range(60)],
                      "x": [i * 7 % 10 for i in range(60)]})  # fmt: skip
    events = plain.rename_columns(columns)
    df = spark.createDataFrame(plain).toDF(*columns)
    queries = [sw.Query(sw.sum(x), sw.Rows(3), "n"), sw.Query(sw.max(ts), sw.Range(9), "latest")]
    cut = Layout(tasks=3, sample=1.0, task_rows=20, block_rows=50)
    found = swag.spark.evaluate(queries, df, ts=ts, key=one, layout=cut).toArrow()
    assert_same(found, sw.evaluate(queries, events, ts=ts, key=one), by="latest")
    hot = sw.Query(sw.count(), sw.Range(20), "hot", having=(">", 6))
    passing = swag.spark.filter_substreams([hot], df, at=[40, 50], ts=ts, key=[one, two])
    assert passing.count() == 0 and passing.columns == ["query", "at", one, two, "value"]
    high = fr.Threshold(x, ">", 4)
    pieces = frames.spark.detect(high, df, ts=ts, key=one, layout=cut)
    assert pieces.count() == fr.detect(high, events, ts=ts, key=one).num_rows
    filled = frames.spark.fill(pieces, df, ts=ts, key=one, layout=cut)
    assert filled.count() == sum(fr.detect(high, events, ts=ts, key=one)["rows"].to_pylist())
    write(tmp_path / "in", [plain])
    stream = source(spark, tmp_path / "in", "ts long, a long, b long, x long").toDF(*columns)
    answers = swag.spark.stream(queries[:1], stream, ts=ts, key=[one, two], shards=2)
    sink, _ = run(answers, tmp_path / "checkpoint")
    engine = sw.Engine(ts="ts", key="a")
    engine.register(sw.Query(sw.sum("x"), sw.Rows(3), "n"))
    of_pairs = pa.table({"ts": plain["ts"], "a": [i % 6 for i in range(60)], "x": plain["x"]})
    engine.append(of_pairs)
    expected = {(k % 3, k % 2): v for k, v in zip(*engine.lookup("n").to_pydict().values(), strict=True)}
    assert {(row[3], row[4]): row[5] for row in sink.rows} == expected
