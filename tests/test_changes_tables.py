"""`engine.changes()` as users call it: its columns, types and names, what it tells once, and what it looks at."""

import datetime

import numpy as np
import pyarrow as pa
import pytest

import swag as sw
from swag.live.alerting import alerts

BUSY = sw.Query(sw.count(), sw.Range(10), name="busy", having=(">=", 2))


def engine_of(*queries, **options):
    engine = sw.Engine(**{"key": "k"} | options)
    engine.register(queries)
    return engine


def told(engine, name=None):
    return [tuple(row.values()) for row in engine.changes(name).to_pylist()]


def test_what_began_and_ceased_is_told_once_with_its_instant():
    #   k    1  2  3  4 ... 11  12            a window of 10: the event of 1 leaves at 11, that of 3 at 13
    #   a    o     o
    engine = engine_of(BUSY)
    assert told(engine) == []
    engine.append({"ts": [1, 3, 4], "k": ["a", "a", "b"]})
    assert told(engine) == [("busy", "a", 3, 2, True)]
    assert told(engine) == []
    engine.advance(12)
    assert told(engine) == [("busy", "a", 11, 1, False)]
    engine.advance(20)
    assert told(engine) == []


def test_a_value_is_null_where_nothing_is_left_in_the_window():
    engine = engine_of(BUSY)
    engine.append({"ts": [1, 1], "k": ["a", "a"]})
    assert told(engine) == [("busy", "a", 1, 2, True)]
    engine.append({"ts": [50], "k": ["b"]})
    assert told(engine) == [("busy", "a", 11, None, False)]


def test_who_ceased_and_began_again_in_between_is_not_told():
    engine = engine_of(BUSY)
    engine.append({"ts": [1, 1], "k": ["a", "a"]})
    engine.changes()
    engine.append({"ts": [30, 31], "k": ["a", "a"]})
    assert told(engine) == []
    engine.advance(100)
    assert told(engine) == [("busy", "a", 40, None, False)]


def test_a_query_that_comes_later_has_begun_by_the_next_call_and_one_that_goes_is_gone():
    engine = engine_of(BUSY)
    engine.changes()
    engine.append({"ts": [1, 1, 2], "k": ["a", "a", "b"]})
    engine.changes()
    engine.register(sw.Query(sw.count(), sw.Range(10), name="there", having=(">", 0)))
    assert told(engine) == [("there", "a", 2, 2, True), ("there", "b", 2, 1, True)]
    engine.unregister("there")
    assert told(engine) == []
    engine.register(sw.Query(sw.count(), sw.Range(10), name="there", having=(">", 1)))
    assert told(engine) == [("there", "a", 2, 2, True)]


def test_other_mixtures_are_asked_for_by_name_and_nothing_is_lost():
    engine = engine_of(BUSY, sw.Query(sw.last("s"), sw.Range(10), name="word", having=(">", "m")))
    engine.append({"ts": [1, 1], "k": ["a", "a"], "s": ["x", "y"]})
    for _ in range(2):
        with pytest.raises(sw.BadType, match=r'engine.changes\("busy"\)'):
            engine.changes()
    assert told(engine, "word") == [("word", "a", 1, "y", True)]
    assert told(engine, "busy") == [("busy", "a", 1, 2, True)]
    assert told(engine, "word") == told(engine, "busy") == []


def test_only_filters_can_be_asked_for_by_name():
    engine = engine_of(BUSY, sw.Query(sw.count(), sw.Range(5), name="n"))
    with pytest.raises(sw.BadQuery, match='query "n" is no filter'):
        engine.changes("n")
    with pytest.raises(sw.UnknownQuery):
        engine.changes("no such query")


@pytest.mark.parametrize("name", ["query", "value", "passing"])
def test_a_key_may_have_the_name_of_a_column_of_ours(name):
    engine = engine_of(BUSY, key=name)
    engine.append({"ts": [1, 1], name: ["a", "a"]})
    (row,) = engine.changes().to_pylist()
    ours = {each: f"{each}_" if each == name else each for each in ("query", "value", "passing")}
    assert row == {ours["query"]: "busy", name: "a", "ts": 1, ours["value"]: 2, ours["passing"]: True}


def test_all_key_columns_are_there_null_where_a_rule_does_not_group_by_one():
    engine = engine_of(
        BUSY,
        sw.Query(sw.count(), sw.Range(10), name="all", having=(">=", 3), by=()),
        sw.Query(sw.count(), sw.Range(10), name="pairs", having=(">=", 2), by=("k", "g")),
    )
    engine.append({"ts": [1, 2, 3], "k": ["a", "a", "a"], "g": [7, 7, 8]})
    assert told(engine) == [
        ("busy", "a", None, 2, 3, True), ("all", None, None, 3, 3, True), ("pairs", "a", 7, 2, 2, True),
    ]  # fmt: skip
    assert engine.changes("pairs").column_names == ["query", "k", "g", "ts", "value", "passing"]


def test_times_have_the_type_of_ts():
    engine = engine_of(sw.Query(sw.count(), sw.Range("10s"), name="busy", having=(">=", 2)))
    start = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    engine.append({"ts": [start, start + datetime.timedelta(seconds=1)], "k": ["a", "a"]})
    engine.changes()
    engine.advance(start + datetime.timedelta(minutes=1))
    (row,) = engine.changes().to_pylist()
    assert row["ts"] == start + datetime.timedelta(seconds=10)


def test_queries_over_the_answers_of_others_are_compared_as_a_whole(tmp_path):
    chosen = sw.Query(sw.count(), sw.Range(10), name="chosen", having=(">=", 2), source=sw.Events("x > 1"))
    engine = engine_of(BUSY, chosen)
    engine.append({"ts": [1, 2, 3], "k": ["a", "a", "b"], "x": [5, 6, 7]})
    assert told(engine) == [("busy", "a", 2, 2, True), ("chosen", "a", 3, 2, True)]
    engine.save(tmp_path / "snapshot")
    engine = sw.Engine.load(tmp_path / "snapshot")
    assert told(engine) == []
    engine.append({"ts": [11], "k": ["b"], "x": [9]})
    assert told(engine) == [
        ("busy", "a", 11, 1, False), ("busy", "b", 11, 2, True),
        ("chosen", "b", 11, 2, True), ("chosen", "a", 11, 1, False),
    ]  # fmt: skip
    engine.advance(100)
    assert told(engine, "chosen") == [("chosen", "b", 100, None, False)]


def test_keys_without_events_that_are_not_due_are_not_looked_at(monkeypatch):
    engine = engine_of(BUSY, sw.Query(sw.sum("x"), sw.Range(50), name="sums", having=(">", 10)))
    keys = np.arange(1000)
    engine.append({"ts": np.zeros(2000, int), "k": np.tile(keys, 2), "x": np.ones(2000, int)})
    engine.changes()
    lookups = engine._stream.core.grouping.lookups
    asked, numbers = [], lookups.numbers
    monkeypatch.setattr(lookups, "numbers", lambda query, ids, edges: asked.append(ids) or numbers(query, ids, edges))
    engine.append({"ts": [1, 1], "k": [3, 3], "x": [1, 1]})
    assert told(engine) == []
    assert set(np.concatenate(asked)) == {3}
    engine.advance(10)  # now they are due
    assert engine.changes().num_rows == 999
    asked.clear()
    engine.advance(40)
    assert engine.changes()["k"].to_pylist() == [3]
    assert set(np.concatenate(asked)) == {3}


def test_rows_are_not_kept_for_ever_where_nobody_asks_again(monkeypatch):
    monkeypatch.setattr(alerts, "MANY_EVENTS", 100)
    engine = engine_of(BUSY)
    engine.changes()
    for begin in range(0, 20_000, 50):
        engine.append({"ts": np.arange(begin, begin + 50), "k": np.arange(50) % 3})
    assert engine.stats()["kept"] < 400
    assert told(engine) == [("busy", 0, 3, 3, True), ("busy", 1, 4, 4, True), ("busy", 2, 5, 3, True)]


def test_a_sum_that_does_not_fit_is_said_and_nothing_is_lost():
    engine = engine_of(BUSY, sw.Query(sw.sum("x"), sw.Range(5), name="sums", having=(">", 1), index=False))
    engine.changes()
    engine.append({"ts": [1, 1], "k": ["a", "a"], "x": [2**62, 2**62]})
    for _ in range(2):
        with pytest.raises(sw.SumOverflow):
            engine.changes()
    engine.advance(6)
    assert engine.changes("busy").to_pylist() == [{"query": "busy", "k": "a", "ts": 1, "value": 2, "passing": True}]


def test_before_the_first_event_there_is_an_empty_table():
    engine = engine_of(BUSY)
    table = engine.changes()
    assert table.column_names == ["query", "k", "ts", "value", "passing"]
    assert table.num_rows == 0
    assert sw.Engine().changes().schema.field("passing").type == pa.bool_()


@pytest.mark.parametrize("others", [0, 1])
def test_events_that_wait_are_numbered_anew_where_their_grouping_has_gone(others):
    """The smallest case of a crash: keys were known by the numbers of a grouping that nobody asks for any more."""
    by_g = sw.Query(sw.count(), sw.Range(10), name="some", having=(">", 0), by="g")
    engine = engine_of(*[by_g, BUSY][: 1 + others], lateness=9)
    engine.append({"ts": [1, 2, 3] * 200, "k": ["a", "b", "c"] * 200, "g": list(range(600))})
    engine.unregister("some")
    engine.register([] if others else [BUSY])
    engine.advance(12)
    assert [row[1] for row in told(engine)] == (["a", "b", "c"] if others else [])  # else nobody read their keys
    engine.unregister("busy")
    engine.append({"ts": [13, 13], "k": ["a", "b"], "g": [7, 8]})
    engine.register(by_g)
    engine.advance(30)
    assert told(engine) == []
