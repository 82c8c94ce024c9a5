"""`having`: the keys whose current answer passes."""

import math

import numpy as np
import pytest

import swag as sw

ROWS = {"ts": [1, 2, 3, 4, 5, 6], "k": list("aabacb"), "x": [1.0, 5.0, math.nan, 2.0, None, 3.0]}


def engine_of(*queries, **options):
    engine = sw.Engine(**{"key": "k"} | options)
    engine.register(list(queries))
    engine.append(ROWS)
    return engine


@pytest.mark.parametrize(
    ("aggregate", "having", "expected"),
    [
        (sw.count(), (">", 1), {"a": 3, "b": 2}),
        (sw.count(), ("<", 3), {"b": 2, "c": 1}),
        (sw.count("x"), ("<=", 0), {"c": 0}),
        (sw.sum("x"), (">=", 8), {"a": 8.0}),
        (sw.sum("x"), ("<", 1e9), {"a": 8.0}),
        (sw.max("x"), ("between", 5, 9), {"a": 5.0}),
        (sw.mean("x"), (">", 100), {}),
    ],
)
def test_the_keys_that_pass(aggregate, having, expected):
    table = engine_of(sw.Query(aggregate, sw.Range(100), name="hot", having=having)).lookup("hot")
    assert dict(zip(table["k"].to_pylist(), table["value"].to_pylist(), strict=True)) == expected


@pytest.mark.parametrize("having", [("=", 5), ("==", 5), ("!=", 5), sw.count() == 5])
def test_equality_is_refused_with_how_it_is_written(having):
    with pytest.raises(sw.BadQuery, match=r"is no condition. Hint: having=sw.count\(\).eq\(5\)"):
        sw.Query(sw.count(), sw.Rows(5), having=having)


def test_all_filters_at_once():
    queries = [sw.Query(sw.count(), sw.Range(t), name=f"busy {t}", having=(">=", 2)) for t in (3, 100)]
    engine = engine_of(*queries, sw.Query(sw.count(), sw.Range(9), name="n"))
    assert engine.filters().to_pylist() == [
        {"query": "busy 100", "k": "a", "value": 3},
        {"query": "busy 100", "k": "b", "value": 2},
    ]
    assert engine.lookup_all().column_names == ["k", "n"]


def test_one_key_or_one_stream_gives_the_value_or_nothing():
    hot = sw.Query(sw.count(), sw.Range(100), name="hot", having=(">", 2))
    assert [engine_of(hot).lookup("hot", key=key) for key in ("a", "b", "never seen")] == [3, None, None]
    assert engine_of(hot, key=None).lookup("hot") == 6


@pytest.mark.parametrize("having", [5, (">",), ("=", 3), ("between", 1), (">", None), (">", math.nan), "x > 1", ()])
def test_what_is_no_condition_is_refused(having):
    with pytest.raises(sw.BadQuery, match="having="):
        sw.Query(sw.count(), sw.Range(1), having=having)


def test_a_threshold_of_another_type_is_refused():
    with pytest.raises(sw.BadType, match=r"can not be compared with 'many'.* Hint: a number beside numbers"):
        engine_of(sw.Query(sw.count(), sw.Range(9), name="q", having=(">", "many"))).lookup("q")


def test_a_thousand_keys():
    rng = np.random.default_rng(3)
    keys, ts = rng.zipf(1.5, 20_000) % 1000, np.arange(20_000)
    engine = sw.Engine(key="k")
    engine.register([sw.Query(sw.count(), sw.Range(t), name=str(t), having=(">", 20)) for t in (500, 5000, 20_000)])
    for start in range(0, 20_000, 700):
        engine.append({"ts": ts[start : start + 700], "k": keys[start : start + 700]})
    for t in (500, 5000, 20_000):
        values, counts = np.unique(keys[ts > 19_999 - t], return_counts=True)
        table = engine.lookup(str(t))
        found = dict(zip(table["k"].to_pylist(), table["value"].to_pylist(), strict=True))
        assert found == {int(k): int(n) for k, n in zip(values, counts, strict=True) if n > 20}


def test_a_filter_can_be_explained_before_events_have_come():
    engine = sw.Engine(key="k")
    engine.register(sw.Query(sw.count(), sw.Range(9), "busy", having=(">", 3)))
    assert "No events yet" in engine.explain()
