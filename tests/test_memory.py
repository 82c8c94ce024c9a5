"""Keys that come and go: what an engine holds follows what its windows hold, not what it has ever seen."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import swag as sw

WINDOW = 6_000  # events, as there is one per instant; three of each key
BATCH = 1_000
RANGE = sw.Range(WINDOW)
CASES = {
    "counts": [sw.Query(sw.count(), RANGE)],
    "structures": [sw.Query(a, RANGE) for a in (sw.sum("x"), sw.sum("i"), sw.max("x"), sw.var("x"), sw.median("x"))],
    "where": [sw.Query(sw.sum("x"), RANGE, where="i > 3"), sw.Query(sw.count("n"), RANGE)],
    "text": [sw.Query(sw.last("word"), RANGE)],
    "filters": [
        sw.Query(sw.count(), RANGE, having=(">", 2)),
        sw.Query(sw.sum("i"), RANGE, having=(">", 20)),
        sw.Query(sw.max("x"), RANGE, having=(">", 0.9)),
    ],
    "expressions": [sw.Query(sw.max("x") - sw.min("x"), RANGE, having=(sw.count() > 2) & (sw.sum("i") > 7))],
}
OPTIONS = [{}, {"lateness": 500}, {"lateness": 500, "hold": False}, {"algorithm": "l-int"}]


def batch(first: int, keys: Any = None, rows: int = BATCH) -> dict[str, Any]:
    ts = np.arange(first, first + rows)
    return {
        "ts": ts,
        "k": ts // 3 if keys is None else keys(ts // 3),
        "x": (ts * 7919 % 1000) / 1000,
        "i": ts * 31 % 10,
        "n": pa.array(ts % 5, mask=ts % 2 == 0),
        "word": (ts % 997).astype(str),
    }


def held_after(engine: sw.Engine, events: int, first: int = 0, **options: Any) -> dict[str, Any]:
    for at in range(first, first + events, BATCH):
        engine.append(batch(at, **options))
    return engine.stats()


def names(ids: np.ndarray) -> Any:
    return [f"session {i}" for i in ids.tolist()]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_keys_seen_once_are_let_go(case: str, options: dict[str, Any]) -> None:
    engine = sw.Engine(key="k", **options)
    engine.register(CASES[case])
    early = held_after(engine, 30_000)
    for query in CASES[case]:
        engine.lookup(query.label)  # indexes and landmarks are made when asked for
    late = held_after(engine, 120_000, 30_000)
    assert late["kept"] <= 3 * WINDOW and late["keys"] <= 3 * WINDOW
    assert late["bytes"] <= 3 * max(early["bytes"], engine.stats()["bytes"] // 3 + 1)
    middle = engine.stats()["bytes"]
    assert held_after(engine, 60_000, 150_000)["bytes"] <= 2 * middle


@pytest.mark.parametrize("keys", [names, lambda ids: ids.astype("datetime64[s]"), lambda ids: ids.astype(np.uint64)])
def test_keys_of_any_type_are_let_go(keys: Any) -> None:
    engine = sw.Engine(key="k")
    engine.register(CASES["structures"])
    early = held_after(engine, 30_000, keys=keys)
    late = held_after(engine, 60_000, 30_000, keys=keys)
    assert late["bytes"] <= 3 * early["bytes"] and late["keys"] <= 3 * WINDOW


def test_what_is_kept_answers_as_if_no_key_had_been_forgotten() -> None:
    engine, queries = sw.Engine(key="k"), [query for case in CASES.values() for query in case]
    queries = list({query.label: query for query in queries}.values())
    engine.register(queries)
    every = [batch(at) for at in range(0, 60_000, BATCH)]
    for each in every:
        engine.append(each)
    assert engine.stats()["keys"] < 20_000 // 2
    events = pa.concat_tables(pa.table(each) for each in every)
    keys = list(range(60_000 // 3 - 40, 60_000 // 3))
    requests = {"k": keys, "ts": [59_999] * len(keys)}
    expected = sw.evaluate(queries, events, at=requests, key="k")
    for query in queries:
        found = [engine.lookup(query.label, key=key) for key in keys]
        assert found == pytest.approx(expected[query.label].to_pylist()), query.label


def test_time_passing_lets_go_of_everything_at_once() -> None:
    engine = sw.Engine(key="k")
    engine.register([query for case in ("structures", "where", "filters") for query in CASES[case]])
    full = held_after(engine, 30_000)
    engine.advance(10**9)
    empty = engine.stats()
    assert (empty["kept"], empty["keys"]) == (0, 0) and empty["bytes"] < full["bytes"] / 20
    engine.append(batch(10**9))
    assert (
        engine.lookup("count()[RANGE 6000] HAVING > 2").num_rows == 332
    )  # of the first and the last key there are fewer


def test_time_passing_lets_go_of_the_rows_that_no_window_reaches() -> None:
    engine = sw.Engine()
    engine.register(sw.Query(sw.sum("x"), sw.Range(100)))
    engine.append({"ts": np.arange(1000), "x": np.ones(1000)})
    engine.advance(1049)
    assert engine.stats()["kept"] == 50


def test_a_burst_of_one_key_is_no_longer_held_when_it_is_over() -> None:
    engine = sw.Engine(key="k")
    engine.register(sw.Query(sw.sum("x"), sw.Range(100)))
    engine.append({"ts": np.zeros(200_000, np.int64), "k": np.zeros(200_000, np.int64), "x": np.ones(200_000)})
    large = engine.stats()["bytes"]
    for ts in range(1000, 1010):
        engine.append({"ts": [ts], "k": [1], "x": [1.0]})
    assert engine.stats()["bytes"] < large / 50


def test_a_key_that_was_forgotten_and_comes_back_starts_afresh() -> None:
    engine = sw.Engine(key="k")
    engine.register([sw.Query(sw.sum("i"), sw.Range(100), name="s"), sw.Query(sw.count(), sw.Range(100), name="n")])
    engine.append(batch(0, rows=6_000))
    engine.append(batch(10_000, rows=6_000))
    engine.append({"ts": [16_000], "k": [0], "i": [5]} | {"x": [0.0], "n": [1], "word": [""]})
    assert (engine.lookup("s", key=0), engine.lookup("n", key=0)) == (5, 1)
    with pytest.raises(sw.TooFarBack, match="no longer known"):
        engine.lookup("n", key=1, at=50)
    assert engine.lookup("n", key="never", at=15_999) == 0
