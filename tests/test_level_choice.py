"""Indexes over counts and sums have as many levels as pay: answers are exact, and what is promised holds, anyway."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import swag as sw
from swag.live.indexing.level_choice import COSTS, LEVEL_RECONSIDERED, LevelChoice

RULES = [
    sw.Query(sw.count(), sw.Range(400), name="busy", having=(">=", 12)),
    sw.Query(sw.sum("x"), sw.Range(400), name="rich", having=(">", 60)),
    sw.Query(sw.count(), sw.Range(300), name="calm", having=("<", 9)),
]


def used(epsilon: float = 0.2, kind: str = "count") -> LevelChoice:
    """That of an index which somebody has asked already."""
    choice = LevelChoice(epsilon, COSTS[kind])
    choice.checked(0)
    return choice


def seen(choice: LevelChoice, rows: int, in_vain: int, kept: int = 1000) -> int:
    choice.rows += rows
    choice.checked(in_vain)
    if choice.due():
        choice.reconsider(kept)
    return choice.p


def test_levels_follow_what_is_asked_for_each_row_that_comes():
    choice = used()
    assert seen(choice, LEVEL_RECONSIDERED - 1, 0) == 10
    assert seen(choice, 1, 0) == 4 and "fewer levels pay" in choice.explained()
    assert seen(choice, LEVEL_RECONSIDERED, LEVEL_RECONSIDERED // 100) == 4
    assert seen(choice, 1, 10 * LEVEL_RECONSIDERED) == 10 and "more levels pay" in choice.explained()


def test_an_index_is_not_made_anew_for_less_than_that_costs():
    choice = used(kind="sum")
    assert seen(choice, LEVEL_RECONSIDERED, 0, kept=100 * LEVEL_RECONSIDERED) == 10
    assert seen(choice, 100 * LEVEL_RECONSIDERED, 0, kept=100 * LEVEL_RECONSIDERED) == 4


def test_what_is_loaded_before_anybody_asks_does_not_count():
    choice = LevelChoice(0.2, COSTS["count"])
    choice.rows = 100 * LEVEL_RECONSIDERED
    assert not choice.due() and seen(choice, 0, 0) == 10 and choice.rows == 0


def test_whoever_asks_for_candidates_or_for_another_epsilon_has_chosen():
    asked, chosen = used(), used(0.1)
    assert seen(asked, LEVEL_RECONSIDERED, 0) == 4
    assert asked.promise() and not asked.promise()
    assert seen(asked, 10 * LEVEL_RECONSIDERED, 0) == 10 and seen(chosen, 10 * LEVEL_RECONSIDERED, 0) == 20


@given(seed=st.integers(0, 9), late=st.booleans())
def test_answers_are_exact_and_candidates_as_close_as_promised_however_levels_change(seed, late, tmp_path_factory):
    rng = np.random.default_rng(seed)
    options = {"lateness": 50, "hold": False} if late else {}
    engine = sw.Engine(key="k", **options)
    engine.register(RULES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LevelChoice, "due", lambda choice: choice.free and rng.random() < 0.5)
        patch.setattr(LevelChoice, "reconsider", other_levels)
        events = {"ts": np.zeros(0, np.int64), "k": np.zeros(0, np.int64), "x": np.zeros(0, np.int64)}
        for step in range(12):
            batch = {"ts": np.sort(rng.integers(100 * step, 100 * step + 100, 300)), "k": rng.integers(0, 60, 300),
                     "x": rng.integers(0, 12, 300)}  # fmt: skip
            engine.append(batch)
            events = {name: np.concatenate([events[name], batch[name]]) for name in events}
            if step % 3 == 2:
                check(engine, events)
            if step == 6:
                path = tmp_path_factory.mktemp("levels") / "engine"
                engine.save(path)
                engine = sw.Engine.load(path)
        for name, v in (("busy", 12), ("rich", 60)):
            near = engine.lookup(name, exact=False)["k"].to_numpy()
            assert (answers(events, 400, name == "rich")[near] > 0.8 * v - 1).all()
        assert "p = 10 (ε = 0.2)" in engine.explain()
        check(engine, events)


def other_levels(choice, kept):
    choice.p = 14 - choice.p
    return True


def answers(events, width, sums):
    inside = events["ts"] > events["ts"].max() - width
    return np.bincount(events["k"][inside], events["x"][inside] if sums else None, 60)


def check(engine, events):
    expected = {
        "busy": np.flatnonzero(answers(events, 400, False) >= 12),
        "rich": np.flatnonzero(answers(events, 400, True) > 60),
        "calm": np.flatnonzero((answers(events, 300, False) < 9) & (answers(events, 300, False) > 0)),
    }
    told = engine.filters().to_pydict()
    for name, keys in expected.items():
        assert sorted(engine.lookup(name)["k"].to_pylist()) == keys.tolist()
        assert sorted(k for k, query in zip(told["k"], told["query"], strict=True) if query == name) == keys.tolist()


def test_explain_says_how_many_levels_there_are_and_why():
    engine = sw.Engine(key="k")
    engine.register(RULES[0])
    rows = LEVEL_RECONSIDERED // 2
    for first in range(0, 3 * rows, rows):
        engine.append({"ts": np.arange(first, first + rows), "k": np.arange(rows) % 60})
        engine.filters()
        assert ("p = 10 (ε = 0.2)" if first < 2 * rows else "p = 4 (ε = 0.5, and 0.2 once") in engine.explain()
    assert f"{2 * rows:,} rows to 2 lookups with 0 candidates in vain: fewer levels pay" in engine.explain()
