"""Rules that have no answer, for ever or for a while, raise for who asks for them, and are in nobody else's way."""

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

import swag as sw
from tests.examples import share

TEN = sw.Range(10)
SOUND = [
    sw.Query(sw.count(), TEN, name="busy", having=(">=", 2)),
    sw.Query(sw.sum("x"), sw.Range(3), name="recent", having=(">", 3), index=False),
    sw.Query(sw.max("x") - sw.min("x"), TEN, name="spread", having=(">", 1)),
    sw.Query(sw.last("s"), sw.Range(12, until=2), name="word", having=(">", "a")),
]
WITHOUT = [
    sw.Query(sw.last("s"), TEN, name="text", having=(">", 3)),
    sw.Query(sw.sum("big"), TEN, name="large", having=(">", 3), index=False),
    sw.Query(sw.sum("big") / sw.count(), TEN, name="large of each", having=(">", 3), index=False),
]


def engine_of(*queries):
    engine = sw.Engine(key="k")
    engine.register(queries)
    return engine


def event(ts, k, x=1, s="b", big=2**62):
    return {"ts": [ts], "k": [k], "x": [x], "s": [s], "big": [big]}


@pytest.mark.parametrize("other", WITHOUT, ids=lambda query: query.name)
def test_a_rule_without_answers_keeps_nothing_from_the_others_and_nothing_is_lost(other):
    engine = engine_of(other, SOUND[0])
    for ts in (1, 2):
        engine.append(event(ts, 0))
    for ask in (engine.filters, engine.changes, engine.changes):
        with pytest.raises((sw.BadType, sw.SumOverflow)):
            ask()
    with pytest.raises((sw.BadType, sw.SumOverflow)):
        engine.changes(other.name)
    assert engine.filters("busy").to_pylist() == [{"query": "busy", "k": 0, "value": 2}]
    engine.append(event(3, 1))
    assert engine.changes("busy").to_pylist() == [{"query": "busy", "k": 0, "ts": 2, "value": 2, "passing": True}]
    engine.advance(20)
    assert engine.changes("busy").to_pylist() == [{"query": "busy", "k": 0, "ts": 11, "value": None, "passing": False}]
    engine.unregister(other.name)
    assert engine.changes().num_rows == 0


def test_of_rules_over_one_aggregate_those_that_have_an_answer_are_told():
    short = [sw.Query(sw.sum("big"), sw.Range(t), name=f"{t}", having=(">", 3), index=False) for t in (1, 2, 9, 10, 11)]
    engine = engine_of(*short)
    engine.append(event(1, 0))
    engine.append(event(4, 0))
    assert [engine.changes(name).num_rows for name in "12"] == [1, 1]
    for name in ("9", "10", "11"):
        with pytest.raises(sw.SumOverflow):
            engine.changes(name)
    engine.advance(11)  # one of them has left the windows of 9 and 10, and it had no answer until then
    assert engine.changes("9").to_pylist() == [{"query": "9", "k": 0, "ts": 11, "value": 2**62, "passing": True}]
    assert engine.changes("10")["passing"].to_pylist() == [True]
    with pytest.raises(sw.SumOverflow):
        engine.changes("11")
    engine.advance(12)
    assert engine.changes()["passing"].to_pylist() == [False, False, True]


events = st.builds(event, st.just(0), st.integers(0, 2), st.integers(0, 4), st.sampled_from("abc"),
                   st.sampled_from([2**62, 2**62, 5]))  # fmt: skip
steps = st.lists(st.tuples(st.sampled_from([0, 1, 2, 6]), st.one_of(st.none(), events)), max_size=25)


@settings(max_examples=share(60))
@given(steps=steps, others=st.lists(st.sampled_from(WITHOUT), min_size=1, unique_by=lambda query: query.name))
def test_sound_rules_are_told_of_as_if_there_were_no_others(steps, others):
    beside, alone, now = engine_of(*others, *SOUND), engine_of(*SOUND), 0
    for gap, given_event in steps:
        now += gap
        for engine in (beside, alone):
            engine.advance(now) if given_event is None else engine.append(given_event | {"ts": [now]})
        for query in SOUND:
            assert beside.changes(query.name).equals(alone.changes(query.name))
        for query in others:
            try:
                told = beside.changes(query.name)["passing"].to_pylist()
            except (sw.BadType, sw.SumOverflow):
                continue
            assert query.name != "text" or told == []
