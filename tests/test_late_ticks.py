"""Ticks, and queries over answers, where late events are put into their place: decided as where all events wait."""

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

import swag as sw
from tests.examples import share
from tests.test_engine import engine_of
from tests.test_late_in_place import LATENESS, stream

COUNTED = sw.Query(sw.count(), sw.Range(20), name="n", every=sw.Every(time=10))
TICKING = [
    sw.Query(sw.sum("v"), sw.Range(30), name="at times", every=sw.Every(time=7)),
    sw.Query(sw.max("x"), sw.Rows(5), name="at rows of a key", every=sw.Every(9, per_key=True), where="v > 1"),
    sw.Query(sw.last("x"), sw.Rows(5), name="at rows", every=sw.Every(13)),
    sw.Query(sw.count(), sw.Range(30), name="otherwise", by=("c",), every=sw.Every(time=10, anchor="tuple")),
]
INSIDE = [
    sw.Query(sw.max("n"), sw.Range(60), name="of answers", source=COUNTED),
    sw.Query(sw.sum("v"), sw.Rows(3), name="of some", source=sw.Events("v > 4"), having=(">", 14)),
]
PLAIN = [sw.Query(sw.sum("v"), sw.Range(30), name="plain"), sw.Query(sw.count(), sw.Rows(9), name="by c", by=("c",))]


def assert_decided_alike(late: sw.Engine, waiting: sw.Engine, queries: list[sw.Query]) -> None:
    for query in queries:
        if query.every is not None:
            assert late.emitted(query.label) == waiting.emitted(query.label)
        elif query.source is not None:
            assert late.lookup(query.label) == waiting.lookup(query.label)


@given(
    seed=st.integers(0, 2**20),
    cuts=st.lists(st.integers(1, 60), min_size=1, max_size=6),
    queries=st.lists(st.sampled_from(TICKING + INSIDE), min_size=1, unique_by=lambda query: query.label),
    saved=st.booleans(),
)
@settings(max_examples=share(25), deadline=None)
def test_ticks_are_those_of_an_engine_that_holds_events(seed, cuts, queries, saved, tmp_path_factory):
    events, first = stream(sum(cuts), seed, LATENESS), 0
    late, waiting = sw.Engine(key="k", lateness=LATENESS, hold=False), sw.Engine(key="k", lateness=LATENESS)
    for engine in (late, waiting):
        engine.register([*PLAIN, *queries])
    for size in cuts:
        assert late.append(events.slice(first, size)) == waiting.append(events.slice(first, size)) == size
        first += size
        if saved:
            path = tmp_path_factory.mktemp("late") / "engine"
            late.save(path)
            late = sw.Engine.load(path)
        assert_decided_alike(late, waiting, queries)
    for engine in (late, waiting):
        engine.advance(10_000)
    assert_decided_alike(late, waiting, queries)
    assert [query.label for query in late.queries] == [query.label for query in (*PLAIN, *queries)]
    assert late.stats()["complete_since"] == waiting.stats()["complete_since"]


def test_plain_queries_do_not_wait_for_ticks():
    engine = engine_of(*TICKING[:1], *PLAIN, key="k", lateness=10, hold=False)
    engine.append({"ts": [20, 15, 28], "k": ["a"] * 3, "c": [1] * 3, "v": [1, 2, 4]})
    assert engine.lookup("plain", key="a") == 7 and engine.stats()["held"] == 2  # what is before 18 waits no longer
    assert engine.emitted()["value"].to_pylist() == []
    engine.append({"ts": [19, 40], "k": ["a"] * 2, "c": [1] * 2, "v": [8, 16]})
    assert engine.emitted()["value"].to_pylist() == [11, 15]  # at 21 and 28
    assert "once events have waited" in engine.explain()


def test_a_ticking_query_that_comes_midway_says_since_when_it_is_complete():
    engine = engine_of(*PLAIN, key="k", lateness=10, hold=False)
    engine.append(event(100, 1))
    assert engine.stats()["held"] == 0
    engine.register(TICKING[:1])
    assert engine.stats()["complete_since"]["at times"] == 130
    for ts in (95, 120, 145):
        engine.append(event(ts, 1))
    engine.advance(1_000)
    ticks = {row["ts"]: row["value"] for row in engine.emitted().to_pylist()}
    assert {ts: value for ts, value in ticks.items() if ts >= 130} == {
        133: 1, 140: 1, 147: 2, 154: 1, 161: 1, 168: 1
    }  # fmt: skip
    engine.unregister("at times")
    engine.append(event(2_000, 1))
    assert engine.stats()["held"] == 0 and engine.lookup("plain", key="a") == 1


def event(ts: int, v: int) -> dict[str, Any]:
    return {"ts": [ts], "k": ["a"], "c": [1], "v": [v]}


def test_a_bad_batch_is_taken_by_neither():
    engine = engine_of(TICKING[0], PLAIN[0], key="k", lateness=10, hold=False)
    engine.append(event(10, 1))
    for wrong in ({"ts": [9], "k": [None], "v": [1]}, {"ts": [9], "k": ["b"], "v": ["text"]}):
        with pytest.raises(sw.SwagError):
            engine.append(wrong)
    with pytest.raises(sw.BadType):
        engine.register([PLAIN[1], sw.Query(sw.sum("k"), sw.Rows(1), name="no", every=sw.Every(1))])
    assert [query.label for query in engine.queries] == ["at times", "plain"]
    engine.advance(30)
    assert engine.lookup("plain", key="a") == 1 and engine.emitted()["value"].to_pylist() == [1]
    assert (engine.stats()["events"], engine.stats()["keys"]) == (1, 1)


def test_features_over_chosen_events_are_as_of_the_watermark_too():
    chosen = sw.Query(sw.sum("v"), sw.Range(10), name="chosen", source=sw.Events("v > 0"))
    late, waiting = (engine_of(chosen, PLAIN[0], key="k", lateness=10, hold=hold) for hold in (False, True))
    for engine in (late, waiting):
        engine.append({"ts": [5, 30, 25], "k": ["a"] * 3, "v": [1, 2, 4]})
    entities = {"k": ["a", "b"]}
    assert late.features(entities, queries=["chosen"]) == waiting.features(entities, queries=["chosen"])
    assert late.features(entities)["plain"].to_pylist() == [7, None]
