"""Aggregates that depend on when they are asked for, on rows, or give lists: on Spark as over stored events."""

import pyarrow as pa
import pytest

import swag as sw
import swag.spark

EVENTS = pa.table({
    "ts": [1, 2, 2, 5, 9, 9, 12], "k": list("aababba"), "x": [1.0, None, 3.0, 2.0, 7.0, 4.0, 8.0],
    "y": [2.0, 1.0, 5.0, 4.0, None, 3.0, 3.5], "s": list("pqrstuv"), "b": [True, False, None, True, True, False, True],
})  # fmt: skip
AGGREGATES = [
    sw.skew("x"), sw.slope("x", "y"), sw.count_if("b"), sw.any("b"), sw.arg_max("s", "x"), sw.last_n("s", 2),
    sw.decayed_sum("x", 3), sw.decayed_count(3), sw.age(), sw.product("x"),
]  # fmt: skip


@pytest.mark.parametrize("asked", ["at events", "at requests"])
def test_further_aggregates_are_answered_as_over_stored_events(spark, asked):
    queries = [sw.Query(a, sw.Range(8), name=str(a)) for a in AGGREGATES]
    at = None if asked == "at events" else pa.table({"ts": [3, 10, 40], "k": ["a", "b", "a"]})
    wanted = sw.evaluate(queries, EVENTS, at=at, key="k").to_pylist()
    frame = spark.createDataFrame(EVENTS)
    requests = None if at is None else spark.createDataFrame(at)
    found = swag.spark.evaluate(queries, frame, at=requests, ts="ts", key="k").toArrow().to_pylist()
    for row in (*wanted, *found):
        row.update({name: "nan" for name, value in row.items() if value != value})
    assert sorted(map(str, found)) == sorted(map(str, wanted))
