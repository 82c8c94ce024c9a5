"""Shapes, lines, products, rows of extremes, lists and decay: what the properties of all aggregates do not ask."""

import datetime
import math

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import swag as sw
from tests.examples import share

WHOLE = st.none() | st.integers(-5, 5).map(float)
ALGORITHMS = ["auto", "b-int", "l-int"]


def answers(aggregates, events, window, **options):
    """The last answers of an engine that took the events one by one."""
    engine = sw.Engine(**options)
    engine.register([sw.Query(a, window, name=str(a)) for a in aggregates])
    for row in range(events.num_rows):
        engine.append(events.slice(row, 1))
    return engine.lookup_all().to_pylist()[0]


# --- As DuckDB has them ------------------------------------------------------------------------------------------

SAME = {
    "SKEWNESS(x)": 1e-9, "KURTOSIS(x)": 1e-9, "REGR_SLOPE(y, x)": 1e-9, "REGR_INTERCEPT(y, x)": 1e-9,
    "REGR_R2(y, x)": 1e-9, "PRODUCT(x)": 1e-12, "BOOL_OR(b)": 0, "BOOL_AND(b)": 0, "ARG_MAX(s, x)": 0,
    "ARG_MIN(s, x)": 0, "MAX_BY(y, x)": 0, "MIN_BY(x, y)": 0,
}  # fmt: skip


@pytest.mark.parametrize("call", SAME)
@given(rows=st.lists(st.tuples(WHOLE, WHOLE, st.none() | st.booleans()), min_size=1, max_size=12), n=st.integers(1, 8))
@settings(max_examples=share(25), deadline=None)
def test_statements_give_what_duckdb_gives(call, rows, n):
    x, y, b = zip(*rows, strict=True)
    trades = pa.table({
        "ts": pa.array(range(len(rows)), pa.int64()), "x": pa.array(x, pa.float64()), "y": pa.array(y, pa.float64()),
        "b": pa.array(b, pa.bool_()), "s": pa.array([str(i) for i in range(len(rows))]),
    })  # fmt: skip
    ours = sw.evaluate(sw.sql(f"SELECT {call} AS a FROM trades [ROWS {n}]"), trades)["a"].to_pylist()
    window = f"OVER (ORDER BY ts ROWS BETWEEN {n - 1} PRECEDING AND CURRENT ROW)"
    theirs = [row[0] for row in duckdb.sql(f"SELECT {call} {window} FROM trades ORDER BY ts").fetchall()]
    for own, other in zip(ours, theirs, strict=True):
        both_nan = isinstance(own, float) and isinstance(other, float) and math.isnan(own) and math.isnan(other)
        assert own == other or both_nan or math.isclose(own, other, rel_tol=SAME[call], abs_tol=SAME[call])


# --- An answer depends on the events in its window alone -----------------------------------------------------------


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("wild", [math.nan, math.inf, -math.inf, 1e18, -1e300])
def test_what_has_left_leaves_no_trace(wild, algorithm):
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=300), rng.normal(size=300)
    aggregates = [sw.skew("x"), sw.kurtosis("x"), sw.slope("y", "x"), sw.intercept("x", "y"), sw.r2("x", "y"),
                  sw.product("x"), sw.arg_max("y", "x"), sw.arg_min("x", "y"), sw.decayed_sum("x", 7),
                  sw.decayed_mean("x", 7)]  # fmt: skip

    def after(first):
        events = {"ts": np.arange(301), "x": np.concatenate([[first], x]), "y": np.concatenate([[first], y])}
        engine = sw.Engine(algorithm=algorithm)
        engine.register([sw.Query(a, sw.Rows(300), name=str(a)) for a in aggregates])
        engine.append(events)
        stored = sw.evaluate([sw.Query(a, sw.Rows(300), name=str(a)) for a in aggregates], events).to_pylist()[-1]
        return engine.lookup_all().to_pylist()[0], stored

    for ours, without in zip(after(wild), after(0.0), strict=True):
        for name, value in ours.items():
            if name != "ts":
                assert value == pytest.approx(without[name], rel=1e-9, abs=1e-12), name


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_shape_of_values_around_a_large_mean_is_theirs(algorithm):
    noise = np.round(np.random.default_rng(2).gamma(2.0, size=2000), 6)
    engine = sw.Engine(algorithm=algorithm)
    engine.register([sw.Query(sw.skew("x"), sw.Rows(1500), "far"), sw.Query(sw.skew("y"), sw.Rows(1500), "near")])
    engine.append({"ts": np.arange(2000), "x": 1e9 + noise, "y": noise})
    assert engine.lookup("far") == pytest.approx(engine.lookup("near"), rel=1e-6)


def test_a_constant_has_no_shape_however_it_is_rounded():
    events = pa.table({"ts": range(50), "x": [0.1] * 50})
    assert answers([sw.skew("x"), sw.kurtosis("x")], events, sw.Rows(37)) == {"skew(x)": None, "kurtosis(x)": None}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_product_overflows_only_where_the_answer_does(algorithm):
    x = [1e300] * 8 + [1e-300] * 8 + [3.0]
    events = pa.table({"ts": range(17), "x": x})
    assert answers([sw.product("x")], events, sw.Rows(17), algorithm=algorithm)["product(x)"] == pytest.approx(3.0)
    assert answers([sw.product("x")], events, sw.Rows(9), algorithm=algorithm)["product(x)"] == 0.0


# --- Time --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_decay_is_relative_to_the_time_asked_for(algorithm):
    engine = sw.Engine(algorithm=algorithm)
    half_life = datetime.timedelta(minutes=10)
    engine.register([
        sw.Query(sw.decayed_sum("x", half_life), sw.Range("1d"), "sum"),
        sw.Query(sw.decayed_mean("x", "10m"), sw.Range("1d"), "mean"),
        sw.Query(sw.decayed_count("10m"), sw.Range("1d"), "count"),
        sw.Query(sw.age(), sw.Range("1d"), "age"),
    ])  # fmt: skip
    noon = datetime.datetime(2024, 3, 1, 12)
    minutes = [noon, noon + datetime.timedelta(minutes=10)]
    engine.append({"ts": pa.array(minutes, pa.timestamp("us")), "x": [4.0, 1.0]})
    now = {"sum": 3.0, "mean": 2.0, "count": 1.5, "age": datetime.timedelta(0)}
    assert engine.lookup_all().to_pylist() == [now]
    later = noon + datetime.timedelta(minutes=30)
    assert [engine.lookup(name, at=later) for name in ("sum", "mean", "count")] == [0.75, 2.0, 0.375]
    assert engine.lookup("age", at=later) == datetime.timedelta(minutes=20)
    engine.advance(later)
    assert engine.lookup("sum") == 0.75


def test_a_weight_is_never_too_small_to_be_counted_from():
    events = {"ts": [0, 10**15], "x": [5.0, 3.0]}
    queries = [sw.Query(make("x", 1), sw.Rows(2), make.__name__) for make in (sw.decayed_mean, sw.decayed_sum)]
    found = sw.evaluate(queries, events, at={"ts": [10**12, 10**15, 10**17]})
    assert found["decayed_mean"].to_pylist() == [5.0, 3.0, 3.0]
    assert found["decayed_sum"].to_pylist() == [0.0, 3.0, 0.0]


@pytest.mark.parametrize(("kind", "unit"), [("date32", "s"), ("date64", "ms"), ("timestamp[us]", "us")])
def test_an_age_is_a_duration_in_the_unit_of_ts(kind, unit):
    days = pa.array([datetime.date(2024, 3, 1), datetime.date(2024, 3, 4)], pa.date32()).cast(kind)
    found = sw.evaluate(sw.Query(sw.age(), sw.Rows(1, until=0), "a", where="x = 1"), {"ts": days, "x": [1, 2]})["a"]
    assert found.type == pa.duration(unit)
    assert found.to_pylist() == [datetime.timedelta(0), None]
    window = sw.Query(sw.age(), sw.Rows(2), "a", where="x = 1")
    ages = [datetime.timedelta(0), datetime.timedelta(3)]
    assert sw.evaluate(window, {"ts": days, "x": [1, 2]})["a"].to_pylist() == ages
    engine = sw.Engine()
    engine.register(window)
    engine.append({"ts": days, "x": [1, 2]})
    assert engine.lookup("a") == datetime.timedelta(3)


def test_alerts_over_what_decays_are_looked_at_whenever_asked():
    engine = sw.Engine(key="k")
    engine.register(sw.Query(sw.decayed_count(half_life=10), sw.Range(1000), "busy", having=(">", 1.0)))
    engine.append({"ts": [0, 1, 2], "k": ["a", "a", "b"]})
    engine.changes()
    engine.append({"ts": [3, 3], "k": ["a", "b"]})
    began = engine.changes().to_pylist()
    assert [(row["k"], row["passing"]) for row in began] in ([("b", True)], [("a", True), ("b", True)])
    engine.advance(60)
    ended = engine.changes().to_pylist()
    assert sorted((row["k"], row["passing"], row["ts"]) for row in ended) == [("a", False, 60), ("b", False, 60)]
    assert engine.changes().num_rows == 0


# --- Values of any type --------------------------------------------------------------------------------------------


def test_the_row_of_an_extreme_keeps_its_text_while_words_are_forgotten():
    """An engine numbers text, and numbers it anew when most of it has gone."""
    engine = sw.Engine()
    engine.register(sw.Query(sw.arg_max("word", "x"), sw.Rows(50), "best"))
    rng = np.random.default_rng(4)
    for start in range(0, 20_000, 500):
        x = rng.integers(0, 1000, 500)
        words = np.array([f"word {start + i}" for i in range(500)])
        engine.append({"ts": np.arange(start, start + 500), "x": x, "word": words})
        assert engine.lookup("best") == words[-50:][int(np.argmax(x[-50:]))]


def test_lists_hold_any_type_and_are_null_where_there_is_nothing():
    events = {"ts": [1, 2, 3], "x": [None, 1.5, math.inf], "s": ["a", None, "c"], "d": [[1], [], [2, 3]]}
    queries = [sw.Query(sw.last_n(name, 2), sw.Rows(2), name) for name in "xsd"]
    assert sw.evaluate(queries, events).select(["x", "s", "d"]).to_pylist() == [
        {"x": None, "s": ["a"], "d": [[1]]},
        {"x": [1.5], "s": ["a"], "d": [[1], []]},
        {"x": [1.5, math.inf], "s": ["c"], "d": [[], [2, 3]]},
    ]  # fmt: skip


def test_ticks_features_and_snapshots_know_them(tmp_path):
    aggregates = [sw.skew("x"), sw.arg_max("s", "x"), sw.last_n("s", 2), sw.decayed_sum("x", 4), sw.age(),
                  sw.count_if("b")]  # fmt: skip
    events = {"ts": [1, 2, 3, 5], "k": ["a", "a", "a", "b"], "x": [1.0, 4.0, 2.0, 7.0], "s": list("pqrs"),
              "b": [True, False, None, True]}  # fmt: skip
    engine = sw.Engine(key="k")
    engine.register([sw.Query(a, sw.Range(10), str(a)) for a in aggregates])
    engine.register([sw.Query(a, sw.Range(10), f"every {a}", every=sw.Every(time=4)) for a in aggregates])
    engine.append(events)
    engine.save(tmp_path / "engine.swag")
    again = sw.Engine.load(tmp_path / "engine.swag")
    wanted = [
        {"k": "a", "skew(x)": pytest.approx(0.9352195), "arg_max(s, x)": "q", "last_n(s, 2)": ["q", "r"],
         "decayed_sum(x, 4)": pytest.approx(2**-1 + 4 * 2**-0.75 + 2 * 2**-0.5), "age()": 2, "count_if(b)": 1},
        {"k": "b", "skew(x)": None, "arg_max(s, x)": "s", "last_n(s, 2)": ["s"],
         "decayed_sum(x, 4)": pytest.approx(7.0), "age()": 0, "count_if(b)": 1},
    ]  # fmt: skip
    for each in (engine, again):
        assert each.lookup_all().to_pylist() == wanted
        found = each.features({"k": ["b", "z"]}).to_pylist()
        assert found[0] == wanted[1]
        assert found[1] == {**dict.fromkeys(wanted[1]), "k": "z", "count_if(b)": 0}
        (tick,) = each.emitted("every last_n(s, 2)").to_pylist()
        assert (tick["tick"], tick["k"], tick["value"]) == (1, "a", ["q", "r"])
        assert each.emitted("every age()")["value"].to_pylist() == [1]
        (value,) = each.emitted("every decayed_sum(x, 4)")["value"].to_pylist()
        assert value == pytest.approx(2**-0.75 + 4 * 2**-0.5 + 2 * 2**-0.25)
    queries = [sw.Query(a, sw.Range(10), str(a), every=sw.Every(time=4)) for a in aggregates]
    ticks = sw.evaluate(queries, events, key="k")
    assert ticks.filter(pa.compute.equal(ticks["tick"], 1))["last_n(s, 2)"].to_pylist() == [["q", "r"]]


# --- What is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: sw.decayed_sum("x", 0), "half_life=0 is not longer than nothing"),
        (lambda: sw.decayed_sum("x", 2.5), "neither a whole number nor a duration"),
        (lambda: sw.count("*"), "not the name of a column. Hint: sw.count"),
        (lambda: sw.decayed_count("soon"), "not a duration"),
        (lambda: sw.last_n("x", 0), "at least 1, not 0"),
        (lambda: sw.first_n("x", 1.5), "at least 1, not 1.5"),
        (lambda: sw.Aggregate("last_n", ("x",)), "last_n needs n"),
        (lambda: sw.Aggregate("sum", ("x",), half_life=3), "sum has no half_life"),
    ],
)
def test_options_that_make_no_sense_are_refused(make, says):
    with pytest.raises(sw.BadQuery, match=says):
        make()


@pytest.mark.parametrize("make", [sw.any, sw.all, sw.count_if])
def test_flags_are_of_true_and_false(make):
    query = sw.Query(make("x"), sw.Rows(2), "a")
    with pytest.raises(sw.BadType, match=r'takes true and false, but "x" is a column of type double'):
        sw.evaluate(query, {"ts": [1], "x": [1.0]})
    engine = sw.Engine()
    engine.register(query)
    with pytest.raises(sw.BadType, match="takes true and false"):
        engine.append({"ts": [1], "x": [1.0]})
    assert engine.stats()["events"] == 0


def test_a_half_life_needs_a_unit_that_ts_has():
    for query in (sw.Query(sw.decayed_sum("x", "10m"), sw.Rows(2), "a"),
                  sw.Query(sw.decayed_sum("x", "10m"), sw.Rows(2), "a", every=sw.Every(2))):  # fmt: skip
        with pytest.raises(sw.BadQuery, match="ts is an integer column"):
            sw.evaluate(query, {"ts": [1], "x": [1.0]})
        engine = sw.Engine()
        engine.register(query)
        with pytest.raises(sw.BadQuery, match="ts is an integer column"):
            engine.append({"ts": [1], "x": [1.0]})
        assert engine.stats()["events"] == 0


@pytest.mark.parametrize("aggregate", [sw.product("x"), sw.arg_max("x", "x")])
def test_what_can_not_be_taken_off_again_is_refused_by_r_int(aggregate):
    with pytest.raises(sw.BadQuery, match="can not be taken off again"):
        sw.Engine(algorithm="r-int").register(sw.Query(aggregate, sw.Rows(3), "a"))


def test_lists_can_not_be_compared():
    query = sw.Query(sw.last_n("x", 2), sw.Rows(3), "a", having=(">", 1))
    with pytest.raises(sw.BadType, match="can not be compared"):
        sw.evaluate(query, {"ts": [1], "x": [1.0]})
