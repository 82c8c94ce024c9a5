"""Keys and timestamps of every type that Spark has for them; many answers; what is refused, and how."""

import datetime
import decimal
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import functions as F

import swag as sw
import swag.spark
from swag.query.expression import leaves
from swag.spark import Layout
from swag.spark.portable import portable
from tests.spark.compare import assert_same

CUT = Layout(tasks=3, sample=1.0, task_rows=20, block_rows=50)
COUNT = [sw.Query(sw.max("row"), sw.Range(1), "row"), sw.Query(sw.count(), sw.Range(1000), "n")]
KEYS = {
    "string": lambda k: f"s{k}",
    "int": lambda k: k,
    "decimal(10,2)": lambda k: decimal.Decimal(k) / 4,
    "date": lambda k: datetime.date(2024, 1, 1 + k),
    "timestamp": lambda k: datetime.datetime(2024, 1, 1, k, tzinfo=datetime.UTC),
    "timestamp_ntz": lambda k: datetime.datetime(2024, 3, 31, 2, k),
    "boolean": lambda k: k % 2 == 0,
    "binary": lambda k: bytes([k]),
    "double": lambda k: [float("nan"), 0.0, -0.0, 1.5][k % 4],
    "struct<a:int,b:struct<c:string>>": lambda k: (k % 3, ("x" if k % 2 else None,)),
}


@pytest.fixture
def set_zone(spark):
    """Of the session, for this test."""
    name = "spark.sql.session.timeZone"
    before = spark.conf.get(name)
    yield lambda zone: spark.conf.set(name, zone)
    spark.conf.set(name, before)


def numbered(n: int = 400) -> list[tuple[int, int, int]]:
    """row, key, ts: half of the events are of one key."""
    rng = np.random.default_rng(0)
    key = np.where(rng.random(n) < 0.5, 0, rng.integers(0, 6, n))
    return [(row, int(k), int(t)) for row, k, t in zip(range(n), key, rng.permutation(n))]


@pytest.mark.parametrize("kind", KEYS)
def test_keys_of_any_type(spark, kind):
    rows, of = numbered(), KEYS[kind]
    for layout in [CUT, Layout(sample=0)] if kind in ("timestamp_ntz", "double") else [CUT]:
        df = spark.createDataFrame([(row, of(k), t) for row, k, t in rows], f"row long, key {kind}, ts long")
        found = swag.spark.evaluate(COUNT, df, key="key", layout=layout)
        assert found.schema["key"].dataType == df.schema["key"].dataType
        seen: dict[object, int] = {}
        expected = {}
        for row, k, _ in sorted(rows, key=lambda each: each[2]):
            group = repr(of(k)).replace("-0.0", "0.0")
            expected[row] = seen[group] = seen.get(group, 0) + 1
        answers = found.collect()
        assert {row["row"]: row["n"] for row in answers} == expected, kind
        assert {row["row"]: repr(row["key"]) for row in answers} == {
            row["row"]: repr(row["key"]) for row in df.collect()
        }


@pytest.mark.parametrize("at", [False, True])
def test_keys_that_are_times_of_a_zone(spark, set_zone, at):
    """Workers get them in the zone of the session, the driver in UTC."""
    set_zone("America/New_York")
    of = KEYS["timestamp"]
    df = spark.createDataFrame([(row, of(k), t) for row, k, t in numbered()], "row long, key timestamp, ts long")
    asked = df.select(F.col("row").alias("request"), "key", "ts") if at else None
    cut, whole = (
        swag.spark.evaluate(COUNT, df, at=asked, key="key", layout=layout).toArrow()
        for layout in (CUT, Layout(sample=0))
    )
    assert_same(cut, whole, by="row")


def test_keys_of_several_columns(spark):
    """Numbers of all widths among them."""
    rows = numbered()
    df = spark.createDataFrame(
        [(row, f"s{k}", k % 2, k % 3, k, 2**40 * k, k / 4, t) for row, k, t in rows],
        "row long, a string not null, b int not null, c tinyint, d smallint, e bigint, f float, ts long",
    )
    found = swag.spark.evaluate(COUNT, df, key=[*"abcdef"], layout=CUT)
    assert found.columns == [*"abcdef", "ts", "row", "n"]
    assert [found.schema[name].dataType for name in "abcdef"] == [df.schema[name].dataType for name in "abcdef"]
    events = pa.table({"row": [r for r, _, _ in rows], "a": [f"s{k}" for _, k, _ in rows], "ts": [t for *_, t in rows]})
    assert_same(found.drop(*"bcdef").toArrow(), sw.evaluate(COUNT, events, key="a"), by="row")


TIMES = {
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "date": pa.date32(),
    "int": pa.int32(),
}


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_timestamps_of_any_type_in_any_zone(spark, set_zone, zone):
    set_zone(zone)
    rng = np.random.default_rng(2)
    hours = rng.permutation(300)  # over the night in which New York's clocks are put forward
    for name, kind in TIMES.items():
        ts = pa.array(hours * (3_600_000_000 if pa.types.is_timestamp(kind) else 1))
        ts = ts.cast(pa.int32() if pa.types.is_date32(kind) else pa.int64())
        if pa.types.is_timestamp(kind):
            ts = pa.array(np.asarray(ts) + 1_709_856_000_123_456)  # 2024-03-08
        events = pa.table({"ts": ts.cast(kind), "k": rng.integers(0, 3, 300), "row": np.arange(300)})
        window = sw.Range(5) if pa.types.is_int32(kind) else sw.Range("2d")
        queries = [COUNT[0], sw.Query(sw.count(), window, "n"), sw.Query(sw.max("ts"), window, "latest")]
        df = spark.createDataFrame(events, f"ts {name}, k long, row long")
        found = swag.spark.evaluate(queries, df, key="k", layout=CUT)
        assert found.schema["latest"].dataType == df.schema["ts"].dataType
        assert_same(found.toArrow(), sw.evaluate(queries, events, key="k"), by="row")


def test_hundreds_of_answers_and_a_function_of_ones_own(spark):
    rng = np.random.default_rng(4)
    events = pa.table({"ts": np.arange(500), "k.ey": rng.integers(0, 5, 500), "x": rng.normal(size=500)})
    squares = sw.aggregate("x", lift=lambda x: x * x, combine=lambda a, b: a + b, lower=lambda a: a, identity=0.0)
    queries = [sw.Query(sw.max("x"), sw.Rows(n), f"max.{n}") for n in range(1, 301)]
    queries += [sw.Query(squares, sw.Rows(9), "squares"), sw.Query(sw.max("x") - sw.min("x"), sw.Rows(9), "spread")]
    found = swag.spark.evaluate(queries, spark.createDataFrame(events), key="k.ey", layout=CUT).toArrow()
    assert_same(found, sw.evaluate(queries, events, key="k.ey"), by="ts")


def test_functions_are_told_apart_by_what_they_do_inside_an_expression_too():
    one, other = (sw.aggregate("x", f, lambda a, b: a + b, lambda a: a, 0.0) for f in (lambda x: x, lambda x: -x))
    other = replace(other, user=replace(other.user, number=one.user.number))  # as two processes would number them
    alone, *shipped = portable([sw.Query(one, sw.Rows(2))] + [
        sw.Query(1 + each.filter("x > 0"), sw.Rows(2), having=each / 2 > 1) for each in (one, other)
    ])  # fmt: skip
    numbers = [{leaf.aggregate.user.number for term in (query.aggregate, query.having) for leaf in leaves(term)}
               for query in shipped]  # fmt: skip
    assert numbers[0] == {alone.aggregate.user.number} != numbers[1] and len(numbers[1]) == 1


def test_queries_in_sql(spark):
    events = pa.table({"ts": np.arange(100), "k": np.arange(100) % 3, "x": np.arange(100.0)})
    text = "SELECT k, SUM(x) AS total, COUNT(*) AS n FROM events [RANGE 10] WHERE x > 20 GROUP BY k"
    found = swag.spark.evaluate(text, spark.createDataFrame(events), key="k").toArrow()
    assert_same(found, sw.evaluate(text, events, key="k"), by="ts")


def test_events_that_are_sorted_already(spark):
    rows = spark.createDataFrame(numbered(), "row long, key long, ts long")
    sorted_ = rows.repartition(3, "key").sortWithinPartitions("key", "ts")
    found = swag.spark.evaluate(COUNT[1:], sorted_, key="key", layout=Layout(ordered=True))
    assert found.agg(F.max("n")).collect()[0][0] == rows.groupBy("key").count().agg(F.max("count")).collect()[0][0]
    with pytest.raises(PythonException, match="not sorted by"):
        swag.spark.evaluate(COUNT, rows.coalesce(1).sortWithinPartitions("key"), key="key",
                            layout=Layout(ordered=True)).collect()  # fmt: skip


def test_mistakes_are_named_before_any_job(spark):
    df = spark.createDataFrame([(1, "a", 2.0, [1])], "ts long, k string, x double, l array<int>")
    requests = spark.createDataFrame([(1, 5)], "ts long, k int")
    total = sw.Query(sw.sum("x"), sw.Range(5), "total")
    chosen = sw.Query(sw.sum("x"), sw.Range(5), "total", source=sw.Events("x > 1"))
    for wrong, message in [
        (lambda: swag.spark.evaluate(total, {"ts": [1]}), "not a Spark DataFrame"),
        (lambda: swag.spark.evaluate(sw.Query(sw.sum("y"), sw.Rows(2)), df), '"y"'),
        (lambda: swag.spark.evaluate(sw.Query(sw.sum("k"), sw.Rows(2)), df), "string"),
        (lambda: swag.spark.evaluate(total, df, key="kk"), '"kk"'),
        (lambda: swag.spark.evaluate(total, df, key="l"), "can not be grouped by"),
        (lambda: swag.spark.evaluate(total, df, ts="x"), "ts is an integer or a timestamp"),
        (lambda: swag.spark.evaluate(total, df, at=requests, key="k"), "of the requests is int"),
        (lambda: swag.spark.evaluate(sw.Query(sw.sum("x"), sw.Rows(2), "k"), df, key="k"), 'query "k"'),
        (lambda: swag.spark.evaluate(sw.Query(sw.sum("x"), sw.Range("5m")), df), "integer column"),
        (lambda: swag.spark.evaluate([], df), "no query"),
        (lambda: swag.spark.evaluate(chosen, df, at=df, key="k"), "with `source` answers at its events, not `at` requ"),
        (lambda: swag.spark.evaluate(replace(total, every=sw.Every(2)), df, at=df), "say themselves when they answer"),
        (lambda: Layout(sample=2), "share"),
        (lambda: Layout(sample="2"), "share"),
        (lambda: Layout(tasks="2"), "whole number"),
        (lambda: swag.spark.evaluate(total, df, layout={"tasks": 2}), "is no Layout"),
        (lambda: swag.spark.warm(total, df, ts="tss"), '"tss"'),
    ]:
        with pytest.raises(sw.SwagError, match=message):
            wrong()


def test_a_null_key_or_time_is_refused(spark):
    df = spark.createDataFrame([(1, "a"), (None, "b"), (3, None)], "ts long, k string")
    for rows, message in ((df.where("ts IS NOT NULL"), "no key"), (df.where("k IS NOT NULL"), "no timestamp")):
        with pytest.raises(PythonException, match=message):
            swag.spark.evaluate(COUNT[1:], rows, key="k").collect()
    many = spark.range(100).selectExpr(
        "CASE WHEN id <> 50 THEN id END AS ts", "id AS t", "CASE WHEN id = 0 THEN 'a' END AS k"
    )
    with pytest.raises(PythonException, match="no timestamp"):
        swag.spark.evaluate(COUNT[1:], many, layout=CUT).collect()
    with pytest.raises(PythonException, match='no key: "k" is null'):  # it has most events, and is cut
        swag.spark.evaluate(COUNT[1:], many, ts="t", key="k", layout=CUT).collect()
