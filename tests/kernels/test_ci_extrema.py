"""CI-MAX: exact under random actions, against the plain maximum of every window."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.key_filters import ci_extrema as ci
from tests.examples import share
from tests.kernels.check_bands import check_bands

KEYS = 5


def grown(state: ci.Stairs, ids, ts, values) -> ci.Stairs:
    begin = 0
    while (begin := ci.update(state, ids, ts, values, begin)) < ids.size:
        state = ci.with_room(state)
    return state


def check(state: ci.Stairs) -> None:
    """Every invariant: stairs rise going back in time, bands tile what they answer for, what is not used is free."""
    m, used, held = state.ladder.size, set(), {}
    taken = set()
    for k in range(state.keys.shape[0]):
        stair, rank, time = int(state.keys[k, ci.NEWEST]), 0, np.iinfo(np.int64).max
        while stair > 0:
            owner, older, its_rank, entry = (int(each) for each in state.stairs[stair])
            assert owner == k and its_rank > rank and state.times[stair] <= time and stair not in used
            used.add(stair)
            band = []
            while entry > 0:
                of, sibling, node = (int(each) for each in state.entries[entry])
                assert of == stair and entry not in taken
                taken.add(entry)
                held.setdefault(node, {})[entry] = int(state.times[stair])
                leaves = [node]
                while leaves[0] < m:
                    leaves = [child for leaf in leaves for child in (2 * leaf, 2 * leaf + 1)]
                band += [leaf - m for leaf in leaves]
                entry = sibling
            if m & (m - 1) == 0:  # else the tree is skewed, and nodes are not in order
                assert sorted(band) == list(range(rank, its_rank))
            rank, time, stair = its_rank, int(state.times[stair]), older
    assert len(used) + 1 + state.stairs[0, ci.RANK] == state.stairs.shape[0]
    assert len(taken) + 1 + state.entries[0, ci.STAIR] == state.entries.shape[0]
    check_bands(state.order, held)


def at_least(state: ci.Stairs, threshold: int, x: int) -> tuple[ci.Stairs, set[int]]:
    state = ci.with_room(state)
    out = np.empty(KEYS, np.int64)
    found = out[: ci.newer(state, threshold, x, np.iinfo(np.int64).max, out)].tolist()
    assert len(set(found)) == len(found)
    return state, set(found)


def below(state: ci.Stairs, threshold: int, x: int) -> set[int]:
    keys = np.arange(KEYS)
    return set(keys[: ci.without(state, threshold, x, keys)].tolist())


VALUES = st.one_of(st.integers(-3, 20).map(float), st.sampled_from([math.nan, math.inf, -math.inf]))
STEPS = st.lists(st.tuples(st.integers(0, KEYS - 1), st.integers(0, 4), VALUES), min_size=1, max_size=60)


@settings(max_examples=share(150), deadline=None)
@given(
    ladder=st.lists(st.integers(0, 18).map(float), min_size=1, max_size=9, unique=True),
    batches=st.lists(STEPS, min_size=1, max_size=4),
    longest=st.integers(1, 60),
    asks=st.lists(st.tuples(st.integers(0, 8), st.integers(1, 60)), min_size=1, max_size=6),
)
def test_exact_for_every_threshold_and_window(ladder, batches, longest, asks) -> None:
    state, now = ci.empty(np.array(sorted(ladder)), KEYS), 0
    elements: dict[int, list[tuple[int, float]]] = {k: [] for k in range(KEYS)}
    for steps in batches:
        rows = []
        for k, passed, value in steps:
            now += passed
            t = max(now - k, elements[k][-1][0] if elements[k] else -9)
            elements[k].append((t, value))
            rows.append((k, t, value))
        ids, ts, values = (np.array(column) for column in zip(*rows, strict=True))
        state = grown(state, ids, ts, values.astype(np.float64))
        check(state)
        for threshold, t in asks:
            threshold, t = threshold % state.ladder.size, min(t, longest)
            windows = {k: [v for at, v in elements[k] if at > now - t] for k in range(KEYS)}
            top = {k: math.nan if any(map(math.isnan, w)) else max(w) for k, w in windows.items() if w}
            state, found = at_least(state, threshold, now - t)
            assert found == {k for k, v in top.items() if v >= state.ladder[threshold]}
            assert below(state, threshold, now - t) == {k for k, v in top.items() if v < state.ladder[threshold]}
        ci.expire(state, 0, KEYS, now - longest)
        check(state)


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_memory_of_silent_keys_is_used_again(dtype: type) -> None:
    rng = np.random.default_rng(4)
    ids, values = rng.integers(0, 50, 2000), rng.integers(0, 100, 2000).astype(dtype)
    state = grown(ci.empty(np.arange(0, 100, 7).astype(dtype), 100), ids, np.arange(2000), values)
    sizes = state.stairs.shape, state.entries.shape
    ci.expire(state, 0, 100, 2000)
    check(state)
    assert state.stairs[0, ci.RANK] == state.stairs.shape[0] - 1
    state = grown(state, ids + 50, np.arange(2000, 4000), values)
    check(state)
    assert sizes == (state.stairs.shape, state.entries.shape)
