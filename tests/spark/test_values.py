"""Answers of several queries in one column: of one type, or refused before anything runs; what that column is called.

Streams are planned only, and never started.
"""

import datetime

import pytest
from pyspark.errors import PythonException
from pyspark.sql import functions as F

import frames as fr
import frames.spark
import swag as sw
import swag.spark

EVENT = "ts long, k string, x long, i int, f float, d date, b boolean"
MEAN = sw.Query(sw.mean("x"), sw.Range(5), "mean")


@pytest.fixture(scope="module")
def rate(spark):
    """A stream with columns of all kinds; it is never started."""
    number = F.col("value")
    return spark.readStream.format("rate").load().select(
        number.alias("ts"), number.cast("string").alias("k"), number.alias("x"), number.cast("int").alias("i"),
        number.cast("float").alias("f"), F.to_date("timestamp").alias("d"), (number > 1).alias("b"),
    )  # fmt: skip


def asked(*aggregates, **options) -> list[sw.Query]:
    return [sw.Query(each, sw.Range(5), f"q{i}", **options) for i, each in enumerate(aggregates)]


TOGETHER = {
    "bigint": asked(sw.count(), sw.sum("x"), sw.max("i")),
    "double": asked(sw.count(), sw.mean("x"), sw.max("i"), sw.min("f")),
    "float": asked(sw.max("f"), sw.last("f")),
    "date": asked(sw.max("d")),
    "string": asked(sw.last("k"), sw.first("k")),
}
APART = {
    "a sum beside a mean": asked(sw.sum("x"), sw.mean("x")),
    "an expression beside a mean": asked(sw.count() + sw.count(), sw.mean("x")),
    "text beside a count": asked(sw.last("k"), sw.count()),
    "a date beside a count": asked(sw.max("d"), sw.count()),
    "a bool beside a count": asked(sw.last("b"), sw.count()),
}


@pytest.mark.parametrize("kind", TOGETHER)
def test_answers_that_one_type_holds_exactly_come_in_one_column(rate, kind):
    assert dict(swag.spark.stream(TOGETHER[kind], rate, key="k").dtypes)["value"] == kind


@pytest.mark.parametrize("name", APART)
def test_others_are_refused_with_the_hint_to_ask_for_one_type_at_a_time(rate, name):
    with pytest.raises(
        sw.BadType, match=r'ask for one type at a time: swag.spark.stream of "q0"; swag.spark.stream of'
    ):
        swag.spark.stream(APART[name], rate, key="k")
    ticks = [sw.Query(q.aggregate, q.window, q.name, every=sw.Every(3)) for q in APART[name]]
    with pytest.raises(sw.BadType, match="one type at a time"):
        swag.spark.stream(ticks, rate, key="k")


def test_requests_have_a_column_for_each_query(rate):
    found = swag.spark.stream(APART["text beside a count"], rate, requests=rate.select("ts", "k"), key="k")
    assert found.dtypes == [("ts", "bigint"), ("k", "string"), ("q0", "string"), ("q1", "bigint")]


def test_filters_of_stored_events_are_floats_for_as_long_as_they_are_exact(spark):
    rows = [(1, "a", 2**53 + 1), (2, "b", 5)]
    events = spark.createDataFrame(rows, "ts long, k string, x long").withColumn("d", F.current_date())
    summed, mean = asked(sw.sum("x"), sw.mean("x"), having=(">", 1))
    day = sw.Query(sw.max("d"), sw.Range(5), "day", having=(">", datetime.date(2020, 1, 1)))
    found = swag.spark.filter_substreams([summed, mean], events.where("k = 'b'"), at=3, key="k")
    assert {(row["query"], row["value"]) for row in found.collect()} == {("q0", 5.0), ("q1", 5.0)}
    with pytest.raises(
        PythonException, match=r'answers 9007199254740993, .* at a time: swag.* of "q0"; swag.* of "q1"'
    ):
        swag.spark.filter_substreams([summed, mean], events, at=3, key="k").collect()
    with pytest.raises(sw.BadType, match=r"one type at a time: swag\.spark\.filter_substreams of"):
        swag.spark.filter_substreams([summed, day], events, at=3, key="k")


@pytest.mark.parametrize("name", ["value", "query", "tick", "at"])
def test_our_own_columns_make_way_for_a_key_of_their_name(spark, rate, name):
    events, stream = (frame.withColumnRenamed("k", name) for frame in (spark.createDataFrame([], EVENT), rate))
    query, tick, value, at = (f"{own}_" if own == name else own for own in ("query", "tick", "value", "at"))
    for key in (name, [name, "i"]):
        keys = [key] if isinstance(key, str) else key
        found = swag.spark.stream(asked(sw.count(), having=(">", 1)), stream, key=key)
        assert found.columns == [query, tick, "ts", *keys, value]
        passing = swag.spark.filter_substreams(asked(sw.count(), having=(">", 1)), events, at=3, key=key)
        assert passing.columns == [query, at, *keys, value]
        ticks = swag.spark.evaluate(asked(sw.count(), every=sw.Every(2)), events, key=key)
        assert ticks.columns == [tick, "ts", *keys, "q0"]
        with pytest.raises(sw.BadQuery, match="name of a column"):
            swag.spark.evaluate([sw.Query(sw.count(), sw.Rows(2), name, every=sw.Every(2))], events, key=key)


def test_frames_of_the_wrong_kind_are_told_where_to_go(spark, rate):
    events = spark.createDataFrame([], EVENT)
    pandas = events.pandas_api()
    of_spark = r"swag\.spark\.evaluate\(queries, df\), swag\.spark\.stream\(…\), frames\.spark\.detect\(spec, df\)"
    engine, spec = sw.Engine(), fr.Threshold("x", ">", 1)
    engine.register(MEAN)
    for given in (events, pandas, rate):
        for call in (lambda e: sw.evaluate(MEAN, e), engine.append, lambda e: fr.detect(spec, e)):
            with pytest.raises(sw.BadType, match=of_spark):
                call(given)
    for call in (
        lambda: swag.spark.evaluate(MEAN, pandas), lambda: swag.spark.evaluate(MEAN, events, at=pandas),
        lambda: swag.spark.stream(MEAN, pandas), lambda: swag.spark.stream(MEAN, pandas, key=["k", "i"]),
        lambda: swag.spark.filter_substreams(MEAN, pandas, at=3, key="k"), lambda: swag.spark.warm(MEAN, pandas),
        lambda: frames.spark.detect(spec, pandas), lambda: frames.spark.stream(spec, pandas),
        lambda: sw.evaluate(MEAN, pandas),
    ):  # fmt: skip
        with pytest.raises(sw.BadType, match=r"Hint: \.to_spark\(\)"):
            call()
