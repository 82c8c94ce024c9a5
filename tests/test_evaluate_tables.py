"""`evaluate` as users meet it: tables in, tables out, types, and mistakes."""

from __future__ import annotations

import datetime
import gc
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import frames as fr
import swag as sw

# --- Tables in, tables out ---------------------------------------------------------------------------------


def test_columns_come_back_in_input_order_with_key_and_ts_first() -> None:
    stream = {"v": [1, 2, 4, 8], "ts": [30, 10, 20, 40], "sym": ["A", "B", "A", "B"]}
    got = sw.evaluate(
        [sw.Query(sw.sum("v"), sw.Range(100), "s"), sw.Query(sw.count(), sw.Rows(9), "n")], stream, key="sym"
    )
    assert got.to_pydict() == {
        "sym": ["A", "B", "A", "B"],
        "ts": [30, 10, 20, 40],
        "s": [5, 2, 4, 10],
        "n": [2, 1, 1, 2],
    }


def test_requests_keep_their_own_columns_and_unknown_keys_see_nothing() -> None:
    stream = {"v": [1, 2, 4], "ts": [10, 10, 20], "sym": ["A", "B", "A"]}
    at = {"id": [7, 8, 9, 6], "sym": ["A", "Z", "B", "A"], "ts": [25, 25, 10, 9]}
    got = sw.evaluate(
        [sw.Query(sw.sum("v"), sw.Range(100), "s"), sw.Query(sw.count(), sw.Rows(9), "n")], stream, at=at, key="sym"
    )
    assert got.to_pydict() == {**at, "s": [5, None, 2, None], "n": [2, 0, 1, 0]}


def test_timestamps_keep_their_type_and_zone() -> None:
    kind = pa.timestamp("us", "Europe/Vienna")
    ts = pa.array([0, 60, 119, 120], pa.int64()).cast(pa.timestamp("s")).cast(pa.timestamp("us")).cast(kind)
    queries = [
        sw.Query(sw.count(), sw.Range("2m"), "n"),
        sw.Query(sw.first("ts"), sw.Range("1m", closed="both"), "since"),
    ]
    got = sw.evaluate(queries, pa.table({"ts": ts}))
    assert got.schema.field("ts").type == kind
    assert got.schema.field("since").type == kind
    assert got.column("n").to_pylist() == [1, 2, 3, 3]
    assert got.column("since").to_pylist() == [ts[j].as_py() for j in (0, 0, 1, 1)]


def test_requests_in_another_unit_are_converted_if_they_fit() -> None:
    ts = pa.array([0, 1000, 2000], pa.timestamp("ms"))
    query = [sw.Query(sw.count(), sw.Range("2s"), "n")]
    at = pa.table({"ts": pa.array([2], pa.timestamp("s"))})
    assert sw.evaluate(query, pa.table({"ts": ts}), at=at).column("n").to_pylist() == [2]
    for bad in (pa.array([2001], pa.timestamp("us")), pa.array([2], pa.timestamp("s", "UTC")), pa.array([2])):
        with pytest.raises(sw.BadType, match=r'"ts" of the requests is .*, that of the events timestamp\[ms\]'):
            sw.evaluate(query, pa.table({"ts": ts}), at=pa.table({"ts": bad}))


def test_types_of_answers() -> None:
    stream = pa.table(
        {
            "ts": pa.array([1, 2, 3], pa.int32()),
            "f": pa.array([1.5, None, 2.5], pa.float32()),
            "u": pa.array([3, 1, 2], pa.uint8()),
            "b": pa.array([True, False, None]),
            "d": pa.array([datetime.date(2020, 1, 1), None, datetime.date(2019, 1, 1)]),
            "s": pa.array(["p", None, "q"]).dictionary_encode(),
        }
    )
    asked = {
        sw.min("f"): (pa.float32(), [1.5, 1.5, 1.5]),
        sw.max("u"): (pa.uint8(), [3, 3, 3]),
        sw.sum("u"): (pa.int64(), [3, 4, 6]),
        sw.sum("b"): (pa.int64(), [1, 1, 1]),
        sw.max("b"): (pa.bool_(), [True, True, True]),
        sw.min("d"): (pa.date32(), [datetime.date(2020, 1, 1), datetime.date(2020, 1, 1), datetime.date(2019, 1, 1)]),
        sw.quantile("u", 0.5): (pa.uint8(), [3, 1, 1]),
        sw.median("u"): (pa.float64(), [3.0, 2.0, 2.0]),
        sw.last("s"): (stream.schema.field("s").type, ["p", "p", "q"]),
        sw.count("s"): (pa.int64(), [1, 1, 2]),
        sw.var("u"): (pa.float64(), [None, 2.0, 1.0]),
    }
    queries = [sw.Query(a, sw.Rows(5), str(a)) for a in asked]
    got = sw.evaluate(queries, stream)
    for query, (kind, values) in zip(queries, asked.values(), strict=True):
        assert got.schema.field(query.label).type == kind
        assert got.column(query.label).to_pylist() == values
    nothing = sw.evaluate(queries, stream.slice(0, 0))
    assert nothing.schema == got.schema
    assert nothing.num_rows == 0


def test_requests_before_any_event_and_without_any() -> None:
    queries = [
        sw.Query(a, sw.Range(5), str(a))
        for a in (sw.count(), sw.sum("x"), sw.max("x"), sw.std("x"), sw.first("x"), sw.median("x"))
    ]
    for stream in ({"ts": [100], "x": [1.0]}, {"ts": np.zeros(0, np.int64), "x": np.zeros(0)}):
        got = sw.evaluate(queries, stream, at={"ts": [3, 1]})
        assert (
            got.drop_columns("ts").to_pylist()
            == [{str(q.aggregate): 0 if "count" in q.label else None for q in queries}] * 2
        )
        assert sw.evaluate(queries, stream, at={"ts": np.zeros(0, np.int64)}).num_rows == 0


@pytest.mark.parametrize(
    "make", [pd.DataFrame, pl.DataFrame, pa.table, dict], ids=["pandas", "polars", "arrow", "dict"]
)
def test_any_table_will_do(make: Any) -> None:
    stream = make({"ts": np.array([1, 2, 3]), "x": np.array([1.0, 2.0, 4.0])})
    assert sw.evaluate([sw.Query(sw.sum("x"), sw.Range(2), "s")], stream).column("s").to_pylist() == [1.0, 3.0, 6.0]


def test_chunked_columns_are_one_stream() -> None:
    stream = pa.concat_tables([pa.table({"ts": [1, 2], "x": [1, 2]}), pa.table({"ts": [3], "x": [4]})])
    assert sw.evaluate([sw.Query(sw.sum("x"), sw.Rows(3), "s")], stream).column("s").to_pylist() == [1, 3, 7]


def test_a_condition_that_does_not_hold_gives_null() -> None:
    stream = {"ts": [1, 2, 3, 9], "x": pa.array([None, 5, 1, None], pa.int64())}
    asked = {
        "large": sw.Query(sw.max("x"), sw.Range(2), "large", having=(">", 2)),
        "few": sw.Query(sw.count("x"), sw.Range(2), "few", having=("<", 2)),
        "none": sw.Query(sw.count(), sw.Range(2, until=1), "none", having=("<", 2)),
    }
    got = sw.evaluate(asked.values(), stream).drop_columns("ts").to_pydict()
    assert got == {"large": [None, 5, 5, None], "few": [0, 1, None, 0], "none": [None, 1, 1, None]}


def test_equal_queries_under_two_names_are_two_columns() -> None:
    queries = [sw.Query(sw.sum("x"), sw.Rows(2), name) for name in ("a", "b")]
    got = sw.evaluate(queries, {"ts": [1, 2], "x": [1, 2]})
    assert got.column("a") == got.column("b")


# --- Mistakes ----------------------------------------------------------------------------------------------

STREAM = {"ts": [1, 2], "sym": ["A", "B"], "volume": [1.0, 2.0], "name": ["p", "q"]}
SUM = sw.Query(sw.sum("volume"), sw.Range(5), "vol")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"queries": []}, sw.BadQuery, "there is no query to answer"),
        ({"queries": None}, sw.BadQuery, "queries are None, not a list of queries"),
        ({"queries": ["SELECT COUNT(*) FROM t [ROWS 2]"]}, sw.BadQuery, r"Hint: one text, with ; .* or .sw.sql"),
        ({"by": "sym"}, sw.BadQuery, 'by=… is no option.* Hint: key="symbol", or sw.Query'),
        ({"queries": fr.Session(5)}, sw.BadQuery, r"not a list of queries. Hint: fr.FrameQuery\(fr.Session\(5\), "),
        ({"queries": 7}, sw.BadQuery, "not a list of queries"),
        ({"queries": "SELECT 1"}, sw.BadSQL, "line 1, column 9: expected FROM"),
        ({"queries": [sw.sum("volume")]}, sw.BadQuery, "is not a query"),
        ({"queries": [SUM, SUM]}, sw.BadQuery, 'two queries are named "vol"'),
        (
            {"queries": [sw.Query(sw.sum("volume"), sw.Rows(5), "ts")]},
            sw.BadQuery,
            'query "ts" has the name of a column',
        ),
        (
            {"at": {"ts": [1], "vol": [1]}},
            sw.BadQuery,
            'query "vol" has the name of a column that comes before the answers: ts, vol',
        ),
        (
            {"queries": [sw.Query(sw.sum("volum"), sw.Rows(5), "v")]},
            sw.UnknownColumn,
            'query "v" sums "volum", but .*Hint: "volume"',
        ),
        (
            {"queries": [sw.Query(sw.first("nam"), sw.Rows(5), "v")]},
            sw.UnknownColumn,
            'query "v" reads "nam".*Hint: "name"',
        ),
        ({"queries": [sw.Query(sw.count(), sw.Rows(5), "v", "volum > 1")]}, sw.UnknownColumn, 'Hint: "volume"'),
        (
            {"queries": [sw.Query(sw.sum("name"), sw.Rows(5), "v")]},
            sw.BadType,
            'computes with "name", a column of type string',
        ),
        ({"queries": [sw.Query(sw.sum("volume"), sw.Range("5m"), "v")]}, sw.BadQuery, "ts is an integer column"),
        ({"ts": "when"}, sw.UnknownColumn, 'ts is "when", but the events have.*Hint: ts="…", the column of time'),
        ({"events": {"x": [1], "when_date": [2]}}, sw.UnknownColumn, 'ts is "ts".*Hint: ts="when_date"'),
        ({"events": {"x": [1], "w": [datetime.datetime(2024, 1, 1)]}}, sw.UnknownColumn, 'Hint: ts="w"'),
        ({"events": {**STREAM, "name": "pq"}}, sw.BadType, 'column "name" is a str, no list .*Hint: "name": .value'),
        ({"events": {"ts": {0: 1, 1: 2}, "volume": [1.0, 2.0]}}, sw.BadType, 'column "ts" is a dict, no list'),
        ({"at": 5}, sw.BadType, 'at is a time, or several, not a table of requests. Hint: at={"ts": .….}'),
        ({"at": ["2024-03-01"], "key": "sym"}, sw.BadType, 'Hint: at={"ts": .…., "sym": .….}'),
        ({"at": pa.array([5])}, sw.BadType, "not a table of requests"),
        ({"key": "symbol"}, sw.UnknownColumn, 'key is "symbol".*Hint: "sym"'),
        ({"key": [5]}, sw.BadQuery, r"key=\[5\]: 5 is no name of a column"),
        ({"key": ["sym", "sym"]}, sw.BadQuery, "names a column twice"),
        ({"ts": 5}, sw.BadType, "ts=5 is not the name of a column"),
        ({"events": {**STREAM, "ts": [1.0, 2.0]}}, sw.BadType, 'ts column "ts" is double'),
        ({"events": {**STREAM, "ts": [1, None]}}, sw.BadEvents, "row 1 has no timestamp"),
        ({"events": {**STREAM, "sym": [None, "A"]}, "key": "sym"}, sw.BadEvents, "row 0 has no key"),
        ({"events": [1, 2]}, sw.BadType, "which is no dict"),
        ({"at": {"time": [1]}}, sw.UnknownColumn, 'requests need a column "ts", but have: time'),
        ({"at": {"ts": [1]}, "key": "sym"}, sw.UnknownColumn, 'requests need a column "sym"'),
        ({"at": {"ts": [1, None]}}, sw.BadEvents, "row 1 has no timestamp"),
        ({"at": {"ts": [1.5]}}, sw.BadType, 'ts column "ts" is double'),
        ({"at": {"ts": [1], "sym": [5]}, "key": "sym"}, sw.BadType, "keys have been string so far"),
        ({"at": {"ts": [1], "sym": pa.array([None], pa.string())}, "key": "sym"}, sw.BadEvents, "row 0 has no key"),
    ],
)
def test_mistakes_are_named(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        sw.evaluate(**{"queries": [SUM], "events": STREAM, **arguments})


def test_what_was_evaluated_is_let_go_without_the_garbage_collector():
    table = {"ts": np.arange(10), "x": np.arange(10.0)}
    queries = [sw.Query(sw.sum("x"), sw.Rows(3)), sw.Query(sw.max("x"), sw.Range(3), where="x > 2")]
    sw.evaluate(queries, table)
    gc.collect()
    gc.disable()
    try:
        sw.evaluate(queries, table)
        assert gc.collect() == 0
    finally:
        gc.enable()
