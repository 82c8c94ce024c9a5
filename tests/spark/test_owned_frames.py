"""Frames own their events on Spark: `fill` and `summarize` of the stream that they were found in give these alone."""

import json

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

import frames as fr
import frames.spark
import swag as sw
from swag.errors import BadEvents, BadQuery
from tests.spark.compare import assert_same
from tests.spark.test_frames import AGGREGATES, CUT, SMALL, SPECS, some_events


def apart(table: pa.Table, key: str | None) -> pa.Table:
    """Frames in one order wherever they were found, with a number in place of frame_id."""
    order = [(name, "ascending") for name in ([key] if key else []) + ["start", "end", "rows", "first(id)"]]
    return table.drop_columns(["frame_id"]).sort_by(order).append_column("n", pa.array(range(table.num_rows)))


@pytest.mark.parametrize(("key", "layout"), [("key", CUT), (None, SMALL)])
@pytest.mark.parametrize("spec", [SPECS[1], SPECS[3], SPECS[9], SPECS[10], SPECS[11]], ids=lambda spec: spec.kind)
def test_frames_own_their_events_where_others_share_a_ts(spark, spec, key, layout):
    events = some_events()
    events = events.set_column(0, "ts", pa.array(np.asarray(events["ts"]) // 4))
    df = spark.createDataFrame(events)
    found, expected = frames.spark.detect(spec, df, key=key, layout=layout), fr.detect(spec, events, key=key)
    wanted = [*AGGREGATES, sw.first("id"), sw.age()]
    answers = frames.spark.summarize(found, df, wanted, key=key, layout=layout).toArrow()
    assert answers["count()"].to_pylist() == answers["rows"].to_pylist()
    assert_same(apart(answers, key), apart(fr.summarize(expected, events, wanted, key=key), key), by="n")
    inside = frames.spark.fill(found, df, key=key, layout=layout).select("id").toArrow()
    assert sorted(inside["id"].to_pylist()) == sorted(fr.fill(expected, events, key=key)["id"].to_pylist())


EVENTS = {"ts": [1, 1, 1, 2, 2, 2], "k": [7] * 6, "x": [0, 5, 6, 7, 0, 8], "y": [1, 2, 4, 8, 16, 32]}


@pytest.fixture
def tied(spark):
    df = spark.createDataFrame(pa.table(EVENTS)).coalesce(1)
    return df, frames.spark.detect(fr.Threshold("x", ">", 1), df, key="k")


def sums(found, df, **options) -> list[int]:
    answers = frames.spark.summarize(found, df, [sw.sum("y")], key="k", **options)
    return sorted(row["sum(y)"] or 0 for row in answers.collect())


def test_own_is_known_wherever_the_frames_are_found_again(spark, tied, tmp_path):
    df, found = tied
    assert sums(found, df) == sums(found, df, own=True) == [14, 32]
    assert sums(found, df, own=False) == [56, 63] and sums(found, df, after=1) == [56, 63]
    assert sums(found.where("rows > 1"), df) == [14]
    assert sums(found, df.select("y", "x", "k", "ts").withColumn("z", F.lit(1)), own=True) == [14, 32]
    found.write.parquet(str(tmp_path / "frames"))
    assert sums(spark.read.parquet(str(tmp_path / "frames")), df, own=True) == [14, 32]
    summarised = frames.spark.summarize(found, df, [sw.count()], key="k")
    assert sums(summarised, df, own=True) == [14, 32]


def test_other_streams_fill_by_time(spark, tied):
    df, found = tied
    assert sums(found, df.drop("x")) == [56, 63]
    other = spark.createDataFrame(pa.table(EVENTS | {"x": [9] * 6})).coalesce(1)
    assert sums(found, other) == [56, 63]
    with pytest.raises(PySparkException, match="a frame is not found again in these events"):
        sums(found, other, own=True)
    with pytest.raises(BadEvents, match="the events have"):
        sums(found, df.drop("x"), own=True)


def test_where_no_key_is_said_frames_are_filled_by_what_they_were_found_per(spark, tied):
    df, found = tied
    other = df.union(df.selectExpr("ts", "k + 1", "x", "y"))
    assert sorted(row["sum(y)"] for row in frames.spark.summarize(found, other, [sw.sum("y")]).collect()) == [14, 32]
    assert frames.spark.fill(found, other).select("k").distinct().collect() == [(7,)]
    assert frames.spark.fill(found, other, key=()).select("k").distinct().count() == 2


def test_own_is_refused_where_nothing_is_known(spark, tied):
    df, found = tied
    bare = spark.createDataFrame(found.toArrow())
    assert sums(bare, df) == [56, 63]
    with pytest.raises(BadEvents, match="do not say how they were found"):
        sums(bare, df, own=True)
    with pytest.raises(BadEvents, match="key="):
        frames.spark.summarize(found, df, [sw.count()], key=(), own=True)
    with pytest.raises(BadQuery, match="move their edges"):
        sums(found, df, own=True, before=1)
    with pytest.raises(BadQuery, match="none of None, True, False"):
        sums(found, df, own="yes")


def test_half_open_frames_say_so(spark):
    df = spark.createDataFrame(pa.table(EVENTS)).coalesce(1)
    found = frames.spark.detect(fr.Threshold("x", ">", 6, extent="open"), df, key="k")
    assert sums(found, df) == [8, 32]
    assert sums(found, df, own=False) == sums(found, df, own=False, extent="open") == [0, 56]


def test_what_is_computed_of_aggregates(spark, tied):
    df, found = tied
    answers = frames.spark.summarize(found, df, sw.max("y") - sw.min("x"), key="k").collect()
    assert sorted(row["max(y) - min(x)"] for row in answers) == [3, 24]


def test_functions_that_are_gone_are_not_guessed(spark):
    df = spark.createDataFrame(pa.table(EVENTS)).coalesce(1)
    spec = fr.Custom(("x",), state=0, open=lambda e, s: e.x > 1, update=lambda e, s: s, close=lambda e, s: e.x < 1)
    found = frames.spark.detect(spec, df, key="k")
    assert sums(found, df) == [14, 32]
    note = json.loads(found.schema["frame_id"].metadata["swag.frames"])
    note["spec"]["custom"][0] = "another process"
    gone = found.withMetadata("frame_id", {"swag.frames": json.dumps(note)})
    with pytest.raises(BadEvents, match="by functions that are not here"):
        sums(gone, df)
    assert sums(gone, df, own=False) == [56, 63]
