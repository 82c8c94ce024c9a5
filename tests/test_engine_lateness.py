"""Events that wait for time to pass them, and queries that come while events flow."""

import datetime as dt

import pyarrow as pa
import pytest

import swag as sw
from tests.test_engine import engine_of

# -- lateness ---------------------------------------------------------------------------------------------------------


def test_events_wait_until_time_has_passed_them():
    engine = engine_of(
        sw.Query(sw.last("x"), sw.Rows(2), name="q"), sw.Query(sw.count(), sw.Rows(99), name="n"), lateness=10
    )
    assert engine.append({"ts": [100, 95, 103], "x": [1, 2, 3]}) == 3
    assert engine.lookup("n") == 0
    engine.advance(110)
    assert (engine.lookup("n"), engine.lookup("q")) == (2, 1)
    assert engine.append({"ts": [99, 101], "x": [7, 8]}) == 1
    engine.advance(200)
    assert (engine.lookup("n"), engine.lookup("q"), engine.stats()["late"]) == (4, 3, 1)


def test_a_bad_batch_is_refused_while_others_wait():
    query = sw.Query(sw.sum("x"), sw.Rows(9), name="q", where="side = 1")
    engine = engine_of(query, rows={"ts": [1], "x": [1.0], "side": [1]}, lateness=5)
    for wrong in ({"x": ["text"], "side": [1]}, {"x": [1], "side": [1]}, {"x": [1.0], "side": ["text"]}):
        with pytest.raises(sw.BadType):
            engine.append({"ts": [2]} | wrong)
    engine.append({"ts": [2], "x": [2.0], "side": [1]})
    engine.advance(99)
    assert engine.lookup("q") == 3.0


def test_lateness_is_a_duration_of_the_stream():
    engine = sw.Engine(lateness="10s")
    engine.register(sw.Query(sw.count(), sw.Rows(9), name="n"))
    with pytest.raises(sw.BadQuery, match='"10s" is a duration, but ts is an integer'):
        engine.append({"ts": [1]})
    engine.append({"ts": pa.array([0, 11], pa.timestamp("s"))})
    assert engine.lookup("n") == 1


@pytest.mark.parametrize("lateness", [None, 0, 100, 1000])
def test_a_window_holds_what_it_is_long_whatever_the_lateness(lateness):
    engine = engine_of(sw.Query(sw.count(), sw.Range(900), name="n"), lateness=lateness)
    engine.append({"ts": list(range(0, 10_000, 10))})
    assert engine.lookup("n") == engine.lookup_all()["n"].to_pylist()[0] == 90
    assert engine.lookup("n", at=9990) == max(0, 90 - (lateness or 0) // 10)


def test_filters_and_queries_over_events_answer_as_of_the_watermark_too():
    busy = sw.Query(sw.count(), sw.Range(20), name="busy", having=(">", 1))
    chosen = sw.Query(sw.count(), sw.Range(20), name="chosen", source=sw.Events("x > 0"))
    engine = engine_of(busy, chosen, key="k", lateness=100)
    engine.append({"ts": [10, 11, 12, 30, 120], "k": ["a", "a", "b", "a", "b"], "x": [1, 0, 1, 1, 1]})
    assert engine.lookup("busy").to_pylist() == engine.filters("busy").select(["k", "value"]).to_pylist()
    assert engine.lookup("busy").to_pylist() == [{"k": "a", "value": 2}]
    assert engine.lookup("chosen").to_pylist() == [{"k": "a", "value": 1}, {"k": "b", "value": 1}]


@pytest.mark.parametrize("second", [dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, tzinfo=dt.UTC), 2.5, None, "soon"])
def test_times_before_the_first_event_are_of_one_kind(second):
    engine = engine_of(sw.Query(sw.count(), sw.Rows(9), name="n"))
    engine.advance(5)
    with pytest.raises(sw.BadType, match="advance"):
        engine.advance(second)
    engine.advance(4)
    with pytest.raises(sw.OutOfOrder):
        engine.append({"ts": [4]})
    assert engine.append({"ts": [5]}) == 1


# -- queries that come while events flow ------------------------------------------------------------------------------


def test_a_query_that_comes_while_events_wait_takes_none_away():
    engine = engine_of(sw.Query(sw.count(), sw.Range(100), name="n"), lateness=5)
    engine.append({"ts": [1, 2], "s": ["a", "b"]})
    engine.register(sw.Query(sw.count(), sw.Range(100), name="b", where="s LIKE 'b%'"))
    engine.advance(10)
    assert (engine.stats()["events"], engine.lookup("n"), engine.lookup("b")) == (2, 2, 0)
    assert engine.stats()["complete_since"] == {"n": None, "b": 102}


def test_a_query_that_can_not_read_the_events_that_wait_is_refused():
    engine = engine_of(sw.Query(sw.count("s"), sw.Range(100), name="n"), lateness=5)
    engine.append({"ts": [1, 2], "s": ["a", "b"]})
    for wrong in (
        sw.Query(sw.sum("s"), sw.Range(9)),
        sw.Query(sw.count(), sw.Range(9), where="s > 3"),
        sw.Query(sw.sum("s"), sw.Rows(2), every=sw.Every(1)),
    ):
        with pytest.raises(sw.BadType):
            engine.register([sw.Query(sw.count(), sw.Rows(3), name="other", every=sw.Every(1)), wrong])
        assert [query.label for query in engine.queries] == ["n"]
    engine.advance(10)
    assert engine.lookup("n") == 2 and engine.emitted().num_rows == 0


def test_events_that_wait_without_its_columns_are_not_claimed_for_a_query():
    engine = engine_of(sw.Query(sw.count(), sw.Range(100), name="n"), lateness=5)
    engine.append({"ts": [1, 2], "x": [10.0, 20.0]})
    engine.register([sw.Query(sw.sum("x"), sw.Range(100), name="s"), sw.Query(sw.count(), sw.Range(100), name="m")])
    engine.append({"ts": [20], "x": [30.0]})
    engine.advance(30)
    assert (engine.lookup("s"), engine.lookup("m")) == (30.0, 3)
    assert engine.stats()["complete_since"] == {"n": None, "s": 102, "m": None}


@pytest.mark.parametrize("where", [None, "x > 0"])
def test_a_count_of_a_column_knows_whose_nulls_nobody_saw(where):
    known = sw.Query(sw.max("c"), sw.Rows(50), name="c", where="x > 1")
    engine = engine_of(sw.Query(sw.sum("y"), sw.Rows(50), name="w", where="x > 0"), known)
    engine.append({"ts": [1, 2, 3, 4], "x": [1, 1, 1, 1], "y": [1, 2, 3, 4], "c": [1, None, 3, 4]})
    engine.register(sw.Query(sw.count("c"), sw.Rows(2), name="n", where=where))
    assert engine.stats()["complete_since"]["n"] == 5
    engine.append({"ts": [5, 6], "x": [1, 1], "y": [1, 1], "c": [1, None]})
    assert (engine.lookup("n"), engine.stats()["complete_since"]["n"]) == (1, 6)


@pytest.mark.parametrize(("window", "since"), [(sw.Rows(1), 2), (sw.Range(1000), 1001)])
def test_events_chosen_before_a_query_came_are_not_claimed_for_it(window, since):
    engine = engine_of(sw.Query(sw.count(), sw.Rows(1), name="n"), rows={"ts": [1], "s": ["ask"]})
    engine.register(sw.Query(sw.count(), window, name="c", source=sw.Events("s = 'ask'")))
    assert (engine.lookup("c"), engine.stats()["complete_since"]["c"]) == (0, since)


def test_a_mean_does_not_overflow_where_the_sum_does():
    engine = engine_of(sw.Query(sw.mean("x"), sw.Rows(9), name="m"), rows={"ts": [1, 2, 3], "x": [2**62] * 3})
    assert engine.lookup("m") == 2.0**62


def test_a_window_by_rows_that_came_later_is_complete_when_it_is_full():
    engine = engine_of(sw.Query(sw.count(), sw.Rows(1), name="one"), key="k")
    engine.append({"ts": [1, 2, 3], "k": ["a", "a", "b"], "x": [1, 2, 3]})
    engine.register(sw.Query(sw.sum("x"), sw.Rows(2), name="two"))
    assert engine.stats()["complete_since"] == {"one": None, "two": 4}
    engine.append({"ts": [7, 8, 9], "k": ["a", "a", "c"], "x": [1, 2, 3]})
    assert engine.stats()["complete_since"]["two"] == 10
    engine.append({"ts": [10, 11], "k": ["b", "b"], "x": [1, 2]})
    assert engine.stats()["complete_since"]["two"] == 11


def test_the_lateness_that_is_hinted_at_takes_the_batch():
    events = {"ts": [100, 50, 3, 200, 20], "k": ["b", "a", "a", "b", "a"], "x": [1, 2, 3, 4, 5]}
    query = sw.Query(sw.count(), sw.Rows(9), name="n")
    engine = sw.Engine(key="k")
    engine.register(query)
    with pytest.raises(sw.OutOfOrder, match=r"event 2 has ts 3, after ts 50 .*lateness=180\)"):
        engine.append(events)
    patient = sw.Engine(key="k", lateness=180)
    patient.register(query)
    patient.append(events)
    assert patient.stats()["late"] == 0
