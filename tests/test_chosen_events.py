"""A stream of the events for which a condition holds: its windows and frequencies count these alone."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import swag as sw
from tests import oracle, oracle_ticks
from tests.oracle import same
from tests.test_emitted import LATENESS, STEPS, Driven, assert_same, fetched
from tests.test_emitted import QUERY as NUMERIC
from tests.test_evaluate import KEYS, WHERE
from tests.test_frequency import EVENTS, FREQUENCIES, QUERY, assert_rows, both, our_every, table

CONDITIONS = st.sampled_from(sorted(WHERE, key=str)).filter(bool)


def over(query: sw.Query, source: Any, name: str = "q") -> sw.Query:
    return sw.Query(query.aggregate, query.window, name, query.where, query.having, every=query.every, source=source)


def of_whole(every: Any, key: str | None) -> Any:
    return every and oracle_ticks.Every(every.rows, every.time, every.anchor, every.per_key and key is not None)


@given(QUERY, CONDITIONS, FREQUENCIES | st.none(), EVENTS, KEYS)
def test_stored_events_are_as_if_the_others_had_never_been(
    asked: Any, where: str, every: Any, events: list[dict[str, Any]], key: str | None
) -> None:
    every = of_whole(every, key)
    ([query], [theirs]) = both([asked], every and our_every(every))
    found = sw.evaluate([over(query, sw.Events(where))], table(events), key=key)
    chosen = [event for event in events if WHERE[where](event)]
    if every is not None:
        last = every.time and oracle_ticks.slot(oracle_ticks.end_of(events), every.time)
        assert_rows(oracle_ticks.ticks([theirs], every, chosen, key, last), found)
        return
    expected = oracle.evaluate([theirs], chosen, None, key)
    assert found["ts"].to_pylist() == [event["ts"] for event in chosen]
    for (want,), got in zip(expected, found["q"].to_pylist(), strict=True):
        assert same(want, got, 1e-9 if isinstance(want, float) else 0)


@given(NUMERIC, CONDITIONS, FREQUENCIES, st.lists(STEPS, max_size=24), KEYS, LATENESS)
def test_cut_anywhere_ticks_are_those_of_the_chosen_events(
    asked: Any, where: str, every: Any, steps: list[Any], key: str | None, lateness: int | None
) -> None:
    every = of_whole(every, key)
    ([query], [theirs]) = both([asked], our_every(every))
    engine = sw.Engine(key=key, lateness=lateness)
    engine.register(over(query, sw.Events(where)))
    slots = [] if every.time is None else [every.time]
    driven = Driven(engine, oracle_ticks.Stream(key, lateness, slots, key is None or not every.per_key))
    driven.run(steps)
    driven.advance(max([0, *(e["ts"] for e in driven.stream.applied)]) + 100)
    chosen = copy.copy(driven.stream)
    chosen.applied = [event for event in chosen.applied if WHERE[where](event)]
    expected = oracle_ticks.ticks([theirs], every, chosen.applied, key, chosen.last(every))
    assert_same(expected, driven.rows("q"), in_order=key is None or not every.per_key)


TEXT = "SELECT COUNT(*) AS n FROM (SELECT * FROM trades WHERE side = 'buy') [ROWS 3]"
BOUGHT = sw.Query(sw.count(), sw.Rows(3), "n", source=sw.Events("side = 'buy'"), by=())
SIDES = {"ts": [1, 2, 3, 4, 5, 6], "side": ["buy", "sell", "buy", "sell", "buy", "buy"], "price": [1, 2, 3, 4, 5, 6]}


def test_the_last_rows_that_match_not_the_matching_ones_among_the_last():
    assert sw.sql(TEXT) == [BOUGHT]
    assert str(sw.sql(TEXT)[0]) == TEXT
    assert sw.evaluate(TEXT, SIDES).to_pydict() == {"ts": [1, 3, 5, 6], "n": [1, 2, 3, 3]}
    among = "SELECT COUNT(*) AS n FROM trades [ROWS 3] WHERE side = 'buy'"
    assert sw.evaluate(among, SIDES)["n"].to_pylist() == [1, 1, 2, 1, 2, 2]
    engine = sw.Engine()
    engine.register(TEXT)
    assert engine.lookup("n") == 0
    engine.append(SIDES)
    assert engine.lookup("n") == 3


def test_requests_see_the_chosen_events():
    found = sw.evaluate(TEXT, SIDES, at={"ts": [0, 2, 4, 9]})
    assert found["n"].to_pylist() == [0, 1, 2, 3]


def test_a_choice_of_a_choice_is_one_where_both_hold():
    nested = sw.Events("price > 1", sw.Events("side = 'buy' OR side IS NULL"))
    assert nested == sw.Events("(side = 'buy' OR side IS NULL) AND price > 1")
    text = (
        "SELECT COUNT(*) AS n FROM (SELECT * FROM (SELECT * FROM t WHERE side = 'buy') AS b WHERE b.price > 1) [ROWS 9]"
    )
    assert sw.sql(text) == [
        sw.Query(sw.count(), sw.Rows(9), "n", source=sw.Events("side = 'buy' AND price > 1"), by=())
    ]
    assert sw.sql("SELECT COUNT(*) FROM (SELECT * FROM t) [ROWS 9]") == [sw.Query(sw.count(), sw.Rows(9), by=())]


def test_of_the_answers_of_a_query():
    text = """SELECT MAX(n) AS most FROM (
        SELECT * FROM (
            SELECT SUM(price) AS n FROM (SELECT * FROM t WHERE side = 'buy') [ROWS 2, FREQUENCY 1 TUPLE]
        ) WHERE n < 10
    ) [ROWS 5, FREQUENCY 1 TUPLE]"""
    [query] = sw.sql(text)
    assert sw.sql(str(query)) == [query]
    assert sw.evaluate(text, SIDES)["most"].to_pylist() == [1, 4, 8]  # the sums are 1, 4, 8, 11
    engine = sw.Engine()
    engine.register(text)
    for i in range(6):
        engine.append({name: values[i : i + 1] for name, values in SIDES.items()})
    assert engine.emitted()["value"].to_pylist() == [1, 4, 8]
    engine.unregister("most")
    assert not engine._stream.emission.chosen


def test_key_by_key_with_having_and_an_index():
    engine = sw.Engine(key="k")
    engine.register("SELECT k, SUM(i) AS s FROM (SELECT * FROM t WHERE i > 0) [ROWS 2] GROUP BY k HAVING s > 2")
    engine.append({"ts": [1, 2, 3, 4], "k": ["a", "a", "a", "b"], "i": [2, 3, -9, 1]})
    assert engine.lookup("s").to_pylist() == [{"k": "a", "value": 5}]
    assert engine.filters().to_pylist() == [{"query": "s", "k": "a", "value": 5}]


def test_a_bad_batch_changes_nothing():
    engine = sw.Engine()
    engine.register([BOUGHT, sw.Query(sw.sum("price"), sw.Rows(2), "s", source=sw.Events("price > 0"))])
    engine.append(SIDES)
    for bad, error in (
        ({"ts": [7], "side": ["buy"]}, sw.UnknownColumn),
        ({"ts": [7], "side": ["buy"], "price": [1.5]}, sw.BadType),
        ({"ts": [0], "side": ["buy"], "price": [1]}, sw.OutOfOrder),
    ):
        with pytest.raises(error):
            engine.append(bad)
    assert (engine.lookup("n"), engine.lookup("s"), engine.stats()["events"]) == (3, 11, 6)
    engine.append({"ts": [7], "side": ["sell"], "price": [7]})
    assert (engine.lookup("n"), engine.lookup("s")) == (3, 13)


def test_an_event_that_is_not_chosen_passes_time():
    query = sw.Query(sw.count(), sw.Range(10), "n", every=sw.Every(time=10), source=sw.Events("load < 30"))
    engine = sw.Engine()
    engine.register(query)
    engine.append({"ts": [3], "load": [1]})
    engine.append({"ts": [12], "load": [99]})
    assert fetched(engine) == [("n", 1, 10, 1)]


@pytest.mark.parametrize("key", [None, "k"])
def test_a_snapshot_keeps_the_chosen_events(tmp_path: Path, key: Any) -> None:
    def start() -> sw.Engine:
        engine, source = sw.Engine(key=key), sw.Events("i > 0")
        engine.register(sw.Query(sw.sum("i"), sw.Rows(3), "looked up", source=source))
        engine.register(sw.Query(sw.sum("i"), sw.Rows(3), "ticks", every=sw.Every(2), source=source))
        return engine

    once, again = start(), start()
    for ts in range(9):
        batch = {"ts": [ts, ts], "k": ["a", "b"], "i": [ts % 3 - 1, ts % 2]}
        once.append(batch)
        again.append(batch)
        again.save(tmp_path / "engine.swag")
        again = sw.Engine.load(tmp_path / "engine.swag")
    assert again.lookup("looked up") == once.lookup("looked up")
    assert again.emitted().equals(once.emitted())
    assert "events where i > 0" in again.explain()


def test_what_is_no_stream_is_refused():
    with pytest.raises(sw.BadQuery, match="no stream"):
        sw.Query(sw.count(), sw.Rows(3), source="side = 'buy'")  # type: ignore[arg-type]
    with pytest.raises(sw.BadQuery, match="not an SQL predicate"):
        sw.Events("side = = 'buy'")


def test_a_query_that_the_stream_inside_refuses_leaves_nothing_behind():
    engine = sw.Engine(algorithm="r-int")
    smallest = sw.Query(sw.min("x"), sw.Rows(1), "least", source=sw.Events("y > 0"))
    with pytest.raises(sw.SwagError):
        engine.register(smallest)
    engine.append({"ts": [1], "z": [1]})  # nobody reads x or y
    assert engine.queries == [] and engine.stats()["complete_since"] == {}


def test_a_frequency_counts_chosen_events_from_when_somebody_first_reads_them():
    """Which of the events before were chosen is not known: nobody had read them."""
    engine = sw.Engine()
    chosen = sw.Events("x > 0")
    engine.append({"ts": [1], "x": [7]})
    engine.register(sw.Query(sw.sum("x"), sw.Rows(5), "first", every=sw.Every(2), source=chosen))
    engine.append({"ts": [2, 3, 4], "x": [1, -1, 2]})
    assert engine.emitted("first").select(["tick", "ts", "value"]).to_pydict() == {"tick": [1], "ts": [4], "value": [3]}
    engine.register(sw.Query(sw.sum("x"), sw.Range(1), "second", every=sw.Every(3), source=chosen))
    engine.append({"ts": [5], "x": [4]})
    ticks = engine.emitted("second").select(["tick", "ts", "value"])
    assert ticks.to_pydict() == {"tick": [1], "ts": [5], "value": [4]}


@pytest.mark.parametrize("inner", ["[ROWS 20]", "[ROWS 20, FREQUENCY 2 TUPLES]"])
@pytest.mark.parametrize(
    "outer",
    [
        "SELECT MAX({x}) FROM (SELECT COUNT(*) AS n FROM t {inner}) [RANGE 9]",
        "SELECT MAX({x}) FROM (SELECT COUNT(*) AS n FROM t {inner}) [RANGE 9, FREQUENCY 9]",
        "SELECT MAX(n) FROM (SELECT COUNT(*) AS n FROM t {inner}) [RANGE 9] WHERE {x} > 3",
        "SELECT MAX(n) FROM (SELECT * FROM (SELECT COUNT(*) AS n FROM t {inner}) WHERE {x} > 3) [RANGE 9]",
    ],
)
def test_a_column_that_answers_do_not_have_is_refused_when_it_is_asked_for(outer: str, inner: str) -> None:
    events, engine = {"ts": [1, 2, 3], "x": [1.0, 2.5, 3.0]}, sw.Engine()
    text = outer.format(x="x", inner=inner)
    with pytest.raises(sw.UnknownColumn, match='"x", but the events have'):
        sw.evaluate(text, events)
    with pytest.raises(sw.UnknownColumn, match='"x", but the events have'):
        engine.register(text)
    assert engine.queries == []
    engine.register(outer.format(x="n", inner=inner))
    assert engine.append(events) == 3
