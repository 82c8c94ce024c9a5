"""Scalar SQL around answers on Spark: the statements that sw.evaluate and an engine take, with the same answers."""

import numpy as np
import pyarrow as pa
import pytest

import swag as sw
import swag.spark
from swag.spark import Layout
from tests.spark.compare import assert_same
from tests.spark.test_evaluate import some_events
from tests.spark.test_shards import EVENT, EVENTS, streamed, table

STATEMENTS = """
    SELECT symbol, ROUND(AVG(volume), 1) AS mean, CAST(COUNT(*) AS DOUBLE) / 2 AS half, LAST(id) AS id,
           CASE WHEN SUM(volume) > 50 THEN 'much' WHEN COUNT(price) % 2 = 0 THEN 'even' END AS word,
           UPPER(LAST(side)) || '!' AS side, GREATEST(MIN(volume), LAST(id) % 7) AS most
    FROM t [ROWS 4] GROUP BY symbol;
    SELECT symbol, NULLIF(COUNT(*), 3) AS some FROM t [RANGE 9] GROUP BY symbol
    HAVING UPPER(LAST(side)) LIKE 'B%' AND SUM(volume) > 9
"""


@pytest.mark.parametrize("layout", [Layout(tasks=3, sample=1.0, task_rows=20, block_rows=50), Layout(sample=0)])
def test_scalar_sql_around_answers(spark, layout):
    events = some_events(400)
    mine = sw.evaluate(STATEMENTS, events, key="symbol")
    rows = swag.spark.evaluate(STATEMENTS, spark.createDataFrame(events), key="symbol", layout=layout)
    assert_same(rows.toArrow(), mine, by="id")


def test_results_that_are_picked_are_numbered_together(spark):
    events = some_events(100).set_column(0, "ts", pa.array(range(100)))
    for often in ("3 TUPLES", "7"):
        text = f"SELECT symbol, SUM(volume) AS s FREQUENCY {often} FROM t [ROWS 2] GROUP BY symbol"
        mine = sw.evaluate(text, events)
        rows = swag.spark.evaluate(text, spark.createDataFrame(events))
        assert_same(rows.toArrow(), mine, by="tick")
        assert len(set(mine["tick"].to_pylist())) == mine.num_rows > 9


def test_a_stream_answers_as_an_engine_does():
    """On a stand-in for Spark: answers of the keys that a trigger touched, as of the watermark."""
    text = """SELECT k, CASE WHEN COUNT(*) % 2 = 0 THEN -1 ELSE NULLIF(MAX(x), 3) END AS q FROM t [RANGE 9] GROUP BY k
              HAVING ROUND(AVG(x)) > 1"""
    queries, rng, now, answered = sw.sql(text), np.random.default_rng(3), 0, 0
    stream, events = streamed(queries, delay=2), []
    for _ in range(20):
        some = [
            {"ts": now + int(rng.integers(1, 4)), "k": int(rng.integers(3)), "x": int(rng.integers(9))} for _ in "abc"
        ]
        events += some
        now += 3
        found = stream.trigger({EVENTS: table(EVENT, some)}, 0)
        watermark = stream.job.time.from_watermark(stream.before)
        if watermark is None:
            continue
        engine = sw.Engine(key="k")
        engine.register(queries)
        engine.append(table(EVENT, sorted((e for e in events if e["ts"] <= watermark), key=lambda e: e["ts"])))
        engine.advance(watermark)
        known = dict(zip(*engine.lookup("q").to_pydict().values(), strict=True))
        for row in found:
            assert row["value"] == known[row["k"]]
            answered += 1
    assert answered > 9
