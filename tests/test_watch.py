"""What was seen of rules and keys: bits that are set stay set, whatever rows of others are given back in between."""

import hypothesis.strategies as st
import numpy as np
from hypothesis import given

import swag as sw
from kernels.key_filters.watching import PASSING, TOLD
from swag.live.alerting.watch import Watch, WatchedPairs

KEYS, RULES = 40, 3


def pairs(*given: tuple[int, int]) -> WatchedPairs:
    rule, key = np.array(given, np.int64).reshape(-1, 2).T.copy()
    return WatchedPairs(rule, key)


def marked(watch: Watch, some: WatchedPairs, added: int, removed: int) -> None:
    watch.mark(some, np.full(some.key.size, added), np.full(some.key.size, removed))


def test_a_key_whose_row_is_given_back_while_others_need_one_gets_another():
    watch = Watch()
    watch.add_keys(KEYS)
    marked(watch, pairs(*((0, key) for key in range(16))), PASSING, 0)  # as many as there are rows at first
    marked(watch, pairs((0, 3)), 0, PASSING)
    marked(watch, pairs((1, 3), (1, 30)), PASSING, 0)
    assert watch.flags(pairs((1, 3), (1, 30), (0, 3), (0, 4))).tolist() == [PASSING, PASSING, 0, PASSING]


bits = st.sampled_from([0, PASSING, TOLD, PASSING | TOLD])
steps = st.tuples(st.sets(st.tuples(st.integers(0, RULES - 1), st.integers(0, KEYS - 1)), max_size=KEYS), bits, bits)


@given(st.lists(steps, max_size=20))
def test_bits_are_those_that_were_marked(marks):
    watch, truth = Watch(), np.zeros((RULES, KEYS), np.int64)
    watch.add_keys(KEYS)
    for some, added, removed in marks:
        marked(watch, pairs(*some), added, removed)
        for rule, key in some:
            truth[rule, key] = truth[rule, key] & ~removed | added
        everything = pairs(*np.ndindex(RULES, KEYS))
        assert watch.flags(everything).tolist() == truth.reshape(-1).tolist()


def test_changes_are_the_difference_of_what_filters_give_for_keys_that_come_and_go():
    rng = np.random.default_rng(3)
    engine = sw.Engine(key="k")
    engine.register(
        [sw.Query(sw.count(), sw.Range(t), name=f"{v} in {t}", having=(">=", v)) for t in (5, 9) for v in (2, 3)]
    )
    before: set[tuple[str, int]] = set()
    for now in range(0, 300, 3):
        keys = rng.integers(0, 400, 20).repeat(rng.integers(1, 4, 20))
        engine.append({"ts": np.full(keys.size, now), "k": keys})
        told = {(row["query"], row["k"]): row["passing"] for row in engine.changes().to_pylist()}
        after = {(row["query"], row["k"]) for row in engine.filters().to_pylist()}
        assert {pair for pair, passing in told.items() if passing} == after - before
        assert {pair for pair, passing in told.items() if not passing} == before - after
        before = after
