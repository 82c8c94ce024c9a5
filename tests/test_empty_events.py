"""No rows give no rows, also where nobody says of what type their columns would be."""

import datetime as dt
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import frames as fr
import swag as sw

NOTHING: dict[str, Any] = {"ts": [], "k": [], "x": []}
SOME = {"ts": [1, 2], "k": ["a", "b"], "x": [3, 4]}
SUM = sw.Query(sw.sum("x"), sw.Rows(2), "v")
AGGREGATES = [sw.count(), sw.sum("x"), sw.mean("x"), sw.min("x"), sw.first("x"), sw.median("x"), sw.mode("x"),
              sw.count_distinct("x"), sw.std("x"), sw.arg_max("x", "ts")]  # fmt: skip
WINDOWS = [sw.Rows(2), sw.Range(5), sw.Range("5s"), sw.Since("1d"), sw.Unbounded()]


@pytest.mark.parametrize("key", [None, "k", ("k", "x")])
@pytest.mark.parametrize("window", WINDOWS, ids=repr)
def test_empty_lists_give_no_rows(window: Any, key: Any) -> None:
    queries = [sw.Query(aggregate, window, f"v{i}") for i, aggregate in enumerate(AGGREGATES)]
    found = sw.evaluate(queries, NOTHING, key=key)
    assert found.num_rows == 0 and found.column_names[-len(queries) :] == [query.label for query in queries]
    assert found["v0"].type == pa.int64()


@pytest.mark.parametrize("key", [None, "k"])
def test_ticks_and_statements_over_nothing_give_no_rows(key: Any) -> None:
    ticks = sw.Query(sw.sum("x"), sw.Rows(2), "v", every=sw.Every("1m"))
    assert sw.evaluate(ticks, NOTHING, key=key).num_rows == 0
    over = sw.evaluate("SELECT k, SUM(x) OVER (PARTITION BY k ORDER BY ts) AS s FROM t", NOTHING)
    assert over.num_rows == 0 and over.column_names == ["k", "s"]


def test_a_frame_of_pandas_without_rows_gives_none() -> None:
    frame = pd.DataFrame(SOME).iloc[:0]
    found = sw.evaluate(SUM, frame, key="k")
    assert (found.num_rows, found.column_names, found["ts"].type) == (0, ["k", "ts", "v"], pa.int64())


@pytest.mark.parametrize("ts", [[1, 2], [dt.datetime(2024, 1, 1)] * 2])
def test_no_requests_get_no_answers_and_no_events_answer_none(ts: Any) -> None:
    events = SOME | {"ts": ts}
    assert sw.evaluate(SUM, events, at={"ts": []}).num_rows == 0
    assert sw.evaluate(SUM, events, at={"ts": [], "k": []}, key="k").num_rows == 0
    count = sw.Query(sw.count(), sw.Rows(2), "n")
    for key in ("k", ("k", "x")):
        found = sw.evaluate([SUM, count], NOTHING, at=events, key=key)
        assert (found["v"].to_pylist(), found["n"].to_pylist()) == ([None, None], [0, 0])


@pytest.mark.parametrize("key", [None, "k", ("k", "x")])
def test_frames_of_nothing_are_none_and_can_be_filled(key: Any) -> None:
    for spec in (fr.Threshold("x", ">", 1), fr.Session("5s"), fr.Session(5)):
        found = fr.detect(spec, NOTHING, key=key)
        assert found.num_rows == 0
        assert found.schema.equals(fr.Detector(spec, key=key).finish().schema)
        assert fr.fill(found, NOTHING, key=key).num_rows == 0
        assert fr.fill(found, SOME, key=key).num_rows == 0


def test_an_empty_batch_says_nothing_of_types() -> None:
    at = dt.datetime(2024, 1, 1)
    events = {"ts": [at], "k": ["a"], "x": [2]}
    detector, filler = fr.Detector(fr.Threshold("x", ">", 1), key="k"), fr.Filler(key="k")
    detector.push(NOTHING)
    detector.push(events)
    frames = detector.finish()
    assert frames.select(["k", "start"]).to_pylist() == [{"k": "a", "start": at}]
    assert filler.push_events(NOTHING).num_rows == 0
    filler.push_frames(frames)
    assert filler.push_events(events)["x"].to_pylist() == [2]
    engine = sw.Engine(key="k")
    engine.register(SUM)
    assert (engine.append(NOTHING), engine.append(events), engine.lookup("v", key="a")) == (0, 1, 2)


def test_rows_of_nulls_are_no_empty_events() -> None:
    with pytest.raises(sw.BadType, match='ts column "ts" is null'):
        sw.evaluate(SUM, {"ts": [None], "k": ["a"], "x": [1]}, key="k")
    for made in (lambda: sw.evaluate(SUM, {"ts": [1], "k": [None], "x": [1]}, key="k"),
                 lambda: sw.evaluate(SUM, {"ts": [1], "k": [None], "x": [1]}, key=("k", "x"))):  # fmt: skip
        with pytest.raises(sw.BadType, match="a key of type null can not be grouped by"):
            made()


@pytest.mark.parametrize("key", ["k", ("k", "x")])
def test_keys_that_were_refused_as_null_leave_no_type_behind(key: Any) -> None:
    engine = sw.Engine()
    engine.register(sw.Query(sw.count(), sw.Rows(2), "all"))
    engine.append(SOME)
    engine.register(sw.Query(sw.count(), sw.Rows(2), "v", by=key))
    with pytest.raises(sw.BadType, match="null can not be grouped by"):
        engine.append({"ts": [3], "k": [None], "x": [1]})
    assert engine.append({"ts": [3], "k": ["a"], "x": [1]}) == 1
    assert engine.lookup("v", key="a" if key == "k" else ("a", 1)) == 1
