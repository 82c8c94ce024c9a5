"""count_distinct and mode where features meet: types, unbounded windows, snapshots, words, statements."""

import datetime as dt
import decimal
import math
from pathlib import Path
from typing import Any

import datasketches
import numpy as np
import pyarrow as pa
import pytest

import swag as sw
from swag.live.vocabulary import dictionary
from tests.test_engine import engine_of

NAN = math.nan
DECIMALS = [decimal.Decimal("1.50"), decimal.Decimal("2.00"), decimal.Decimal("1.50"), None]
COLUMNS: dict[str, tuple[Any, int, Any]] = {  # values, how many are different, and which is the most frequent
    "text": (["a", "b", None, "b"], 2, "b"),
    "words of a dictionary": (pa.array(["a", "b", "a", None]).dictionary_encode(), 2, "a"),
    "bytes": ([b"", b"x", b"x", None], 2, b"x"),
    "booleans": ([True, False, False, None], 2, False),
    "dates": ([dt.date(2024, 1, 1), dt.date(2024, 1, 2), dt.date(2024, 1, 2), None], 2, dt.date(2024, 1, 2)),
    "durations": (pa.array([3, 4, 4, None], pa.duration("ms")), 2, dt.timedelta(milliseconds=4)),
    "decimals": (DECIMALS, 2, decimal.Decimal("1.50")),
    "zeros": ([0.0, -0.0, 1.0, None], 2, 0.0),
    "whole numbers": (pa.array([2**63 + 1, 7, 2**63 + 1, None], pa.uint64()), 2, 2**63 + 1),
    "half floats": (pa.array(np.array([1, 2, 2, 1], np.float16)), 2, 1.0),
    "nulls": (pa.nulls(4), 0, None),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_values_of_any_type_are_told_apart(name: str) -> None:
    values, different, most = COLUMNS[name]
    table = pa.table({"ts": [1, 2, 3, 4], "x": values})
    queries = [sw.Query(sw.count_distinct("x"), sw.Rows(4), "n"), sw.Query(sw.mode("x"), sw.Rows(4), "m")]
    stored = sw.evaluate(queries, table).to_pylist()[-1]
    assert (stored["n"], stored["m"]) == (different, most)
    engine = engine_of(*queries)
    for row in range(4):
        engine.append(table.slice(row, 1))
    assert (engine.lookup("n"), engine.lookup("m")) == (different, most)


def test_nan_is_one_value() -> None:
    table = {"ts": [1, 2, 3, 4], "x": np.array([NAN, 1.0, -NAN, 2.0])}
    assert sw.evaluate(sw.Query(sw.count_distinct("x"), sw.Rows(4), "n"), table)["n"].to_pylist() == [1, 2, 2, 3]
    assert math.isnan(sw.evaluate(sw.Query(sw.mode("x"), sw.Rows(4), "m"), table)["m"].to_pylist()[-1])


def test_lists_are_refused_by_both() -> None:
    table = pa.table({"ts": [1], "x": [[1]]})
    for of in (sw.count_distinct("x"), sw.mode("x")):
        with pytest.raises(sw.BadType, match="list"):
            sw.evaluate(sw.Query(of, sw.Rows(1)), table)
        with pytest.raises(sw.BadType, match="list"):
            engine_of(sw.Query(of, sw.Rows(1))).append(table)


def test_an_empty_window_has_none() -> None:
    engine = engine_of(sw.Query(sw.count_distinct("x"), sw.Range(3), "n"), sw.Query(sw.mode("x"), sw.Range(3), "m"))
    engine.append({"ts": [1], "x": [5]})
    engine.advance(10)
    assert engine.lookup("n") == 0 and engine.lookup("m") is None


def test_a_snapshot_answers_as_before_and_goes_on(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    table = pa.table({"ts": np.arange(400), "k": rng.integers(0, 3, 400), "x": rng.integers(0, 20, 400).astype(str)})
    engine = engine_of(
        sw.Query(sw.count_distinct("x"), sw.Range(90), "n"), sw.Query(sw.mode("x"), sw.Rows(40), "m"), key="k"
    )
    engine.append(table.slice(0, 250))
    engine.save(tmp_path / "saved")
    other = sw.Engine.load(tmp_path / "saved")
    assert other.lookup_all().equals(engine.lookup_all())
    for each in (engine, other):
        each.append(table.slice(250))
    assert other.lookup_all().equals(engine.lookup_all())


def test_text_that_is_numbered_anew_is_still_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dictionary, "MANY_VALUES", 8)
    queries = [
        sw.Query(sw.count_distinct("x"), sw.Rows(10), "n"), sw.Query(sw.mode("x"), sw.Rows(10), "m"),
        sw.Query(sw.count_distinct("x", approx=True), sw.Unbounded(), "ever"),
    ]  # fmt: skip
    rng = np.random.default_rng(4)
    words = [f"w{n // 5 + rng.integers(0, 4)}" for n in range(600)]
    table = pa.table({"ts": np.arange(600), "x": words})
    engine, ever = engine_of(*queries), set()
    expected = sw.evaluate(queries[:2], table).to_pylist()
    for row in range(600):
        engine.append(table.slice(row, 1))
        ever.add(words[row])
        assert (engine.lookup("n"), engine.lookup("m")) == (expected[row]["n"], expected[row]["m"])
        assert abs(engine.lookup("ever") - len(ever)) <= 3


# -- about -----------------------------------------------------------------------------------------------------------


def about(values: Any, **options: Any) -> sw.Engine:
    engine = engine_of(sw.Query(sw.count_distinct("x", approx=True), sw.Unbounded(**options), "n"))
    engine.append({"ts": np.arange(len(values)), "x": values})
    return engine


@pytest.mark.parametrize("count", [1, 10, 300, 5_000, 12_000, 200_000])
def test_registers_are_as_good_as_those_of_datasketches(count: int) -> None:
    """Both have 4096 registers: four standard deviations are 6.5 %."""
    values = np.random.default_rng(count).permutation(np.arange(count) * 7)
    theirs = datasketches.hll_sketch(12, datasketches.tgt_hll_type.HLL_8)
    for value in values.tolist():
        theirs.update(value)
    found = about(np.concatenate([values, values[: count // 2]])).lookup("n")
    assert abs(found - count) <= max(0.065 * count, 0.5)
    assert abs(found - theirs.get_estimate()) <= max(0.09 * count, 0.5)


def test_keys_have_registers_of_their_own_and_go_on_after_a_snapshot(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    keys = np.repeat(np.arange(50), np.arange(50) * 20)
    values = rng.integers(0, 700, keys.size)
    order = rng.permutation(keys.size)
    table = pa.table({"ts": np.arange(keys.size), "k": keys[order], "x": values[order].astype(float)})
    engine = engine_of(sw.Query(sw.count_distinct("x", approx=True), sw.Unbounded(), "n"), key="k")
    engine.append(table.slice(0, 9_000))
    engine.save(tmp_path / "saved")
    other = sw.Engine.load(tmp_path / "saved")
    for each in (engine, other):
        each.append(table.slice(9_000, 3))
        each.append(table.slice(9_003))
    found = dict(zip(*(engine.lookup("n")[c].to_pylist() for c in ("k", "value")), strict=True))
    assert other.lookup("n").equals(engine.lookup("n"))
    for key, n in found.items():
        exact = len(set(values[keys == key].tolist()))
        assert abs(n - exact) <= max(3, 0.065 * exact)


def test_rows_that_wait_are_counted_for_whoever_asks_later() -> None:
    engine = about(list("abcabcxyz"), until=3)
    assert engine.lookup("n") == 3  # what came until 5
    assert engine.lookup("n", at=10) == 5
    assert engine.lookup("n") == 3
    assert engine.lookup("n", at=100) == 6


def test_rows_decide_exactly_also_where_an_approximation_would_do() -> None:
    table = {"ts": np.arange(50_000), "x": np.arange(50_000) % 9_999}
    both = [sw.Query(sw.count_distinct("x", approx=approx), sw.Rows(20_000), f"n{approx}") for approx in (True, False)]
    answers = sw.evaluate(both, table)
    assert answers["nTrue"].equals(answers["nFalse"]) and answers["nTrue"].to_pylist()[-1] == 9_999
    engine = engine_of(*both)
    engine.append(table)
    assert engine.lookup("nTrue") == engine.lookup("nFalse") == 9_999
    assert engine.explain().count("B-INT-QNT of previous rows") == 1


def test_unbounded_windows_of_an_engine_refuse_to_be_exact() -> None:
    for of in (sw.count_distinct("x"), sw.mode("x")):
        with pytest.raises(sw.BadQuery, match="keeps no rows"):
            engine_of(sw.Query(of, sw.Unbounded()))


# -- statements ------------------------------------------------------------------------------------------------------


def test_statements_say_it_as_others_do() -> None:
    text = "SELECT COUNT(DISTINCT x) AS a, APPROX_COUNT_DISTINCT(x) AS b, MODE(x) AS c FROM t [ROWS 4]"
    queries = sw.sql(text)
    assert [query.aggregate for query in queries] == [
        sw.count_distinct("x"), sw.count_distinct("x", approx=True), sw.mode("x"),
    ]  # fmt: skip
    assert [sw.sql(str(query))[0] for query in queries] == queries
    assert repr(queries[1].aggregate) == 'sw.count_distinct("x", approx=True)'


def test_a_condition_on_how_many_are_different() -> None:
    table = pa.table({"ts": range(6), "k": list("aabbab"), "x": [1, 1, 1, 2, 2, 3]})
    query = sw.Query(sw.count_distinct("x"), sw.Range(4), "hot", having=(">", 1))
    engine = engine_of(query, key="k")
    engine.append(table)
    assert engine.lookup("hot").to_pylist() == [{"k": "b", "value": 3}]
    assert engine.changes().to_pylist()[0]["passing"] is True
    engine.advance(9)
    assert engine.lookup("hot").num_rows == 0 and engine.changes()["passing"].to_pylist() == [False]
