"""swag.spark.filter_substreams gives, at each time, what an engine that has seen the events up to it gives."""

import decimal
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import swag as sw
import swag.spark

QUERIES = [
    sw.Query(sw.count(), sw.Range(50), name="busy", having=(">=", 12)),
    sw.Query(sw.sum("volume"), sw.Range(80), name="large", having=(">", 400)),
    sw.Query(sw.max("volume"), sw.Range(60), name="high", having=("<", 49), where="side = 'buy'"),
    sw.Query(sw.mean("volume"), sw.Rows(20), name="mean", having=("between", 20, 25)),
]
TIMES = [-5, 0, 37, 120, 121, 399, 1000]


def some_events() -> pa.Table:
    rng = np.random.default_rng(3)
    n = 2000
    return pa.table({
        "ts": np.sort(rng.integers(0, 400, n)),
        "key": pa.array([f"s{k}" for k in rng.integers(0, 40, n)]),
        "volume": rng.integers(0, 50, n),
        "side": pa.array(np.where(rng.random(n) < 0.5, "buy", "sell")),
    })  # fmt: skip


def embedded(events: pa.Table, queries: list[sw.Query]) -> list[tuple[object, ...]]:
    rows = []
    for time in TIMES:
        engine = sw.Engine(ts="ts", key="key")
        engine.register(queries)
        seen = events.filter(pa.compute.less_equal(events["ts"], time))
        if seen.num_rows:
            engine.append(seen)
            engine.advance(time)
            found = engine.filters()
            rows += [
                (q, time, k, v) for q, k, v in zip(*(found[name].to_pylist() for name in ("query", "key", "value")))
            ]
    return sorted(rows)


@pytest.mark.parametrize("queries", [QUERIES, QUERIES[:3]], ids=["with fractions", "whole numbers"])
def test_keys_that_pass(spark, queries):
    events = some_events()
    found = swag.spark.filter_substreams(queries, spark.createDataFrame(events), at=TIMES, key="key").toArrow()
    assert found.column_names == ["query", "at", "key", "value"]
    assert found.schema.field("value").type == (pa.float64() if len(queries) == 4 else pa.int64())
    rows = sorted(tuple(row.values()) for row in found.to_pylist())
    assert len(rows) > 50
    assert rows == embedded(events, queries)


def test_keys_of_several_columns_and_of_any_type(spark):
    events = some_events()
    number = [decimal.Decimal(int(k[1:])) / 4 for k in events["key"].to_pylist()]
    wide = events.append_column("part", pa.array(number, pa.decimal128(10, 2)))
    df = spark.createDataFrame(wide.append_column("side2", pa.array(["x"] * wide.num_rows)))
    times = spark.createDataFrame(pa.table({"ts": [120, 120, 399]}))
    found = swag.spark.filter_substreams(QUERIES[:1], df, at=times, key=["part", "side2"]).toArrow()
    assert found.column_names == ["query", "at", "part", "side2", "value"]
    rows = sorted(("busy", r["at"], f"s{int(r['part'] * 4)}", r["value"]) for r in found.to_pylist())
    assert rows == [row for row in embedded(events, QUERIES[:1]) if row[1] in (120, 399)]


def test_mistakes_are_named(spark):
    df = spark.createDataFrame(some_events())
    with pytest.raises(sw.BadQuery, match="lets every key pass"):
        swag.spark.filter_substreams(sw.Query(sw.count(), sw.Rows(3)), df, at=3, key="key")
    with pytest.raises(sw.BadQuery, match="there is none"):
        swag.spark.filter_substreams(QUERIES, df, at=3)
    for at in ("noon", None, [3, None]):
        with pytest.raises(sw.BadType, match="at="):
            swag.spark.filter_substreams(QUERIES, df, at=at, key="key")
    with pytest.raises(sw.BadQuery, match="says itself when it answers"):
        swag.spark.filter_substreams(replace(QUERIES[0], every=sw.Every(2)), df, at=3, key="key")


def test_statements_in_sql(spark):
    text = "SELECT key, COUNT(*) AS busy FROM events [RANGE 50] GROUP BY key HAVING COUNT(*) >= 12"
    events = some_events()
    found = swag.spark.filter_substreams(text, spark.createDataFrame(events), at=[120], key="key").toArrow()
    rows = sorted(tuple(row.values()) for row in found.to_pylist())
    assert rows == [row for row in embedded(events, QUERIES[:1]) if row[1] == 120]
