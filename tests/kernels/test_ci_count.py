"""CI-COUNT and CI-SUM: against the paper's algorithm, against plain counting, and their guarantees for p = 1..16."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.key_filters import bands, ci_count, ci_levels, ci_sum
from kernels.operators.numbers import EARLIEST
from tests.examples import share
from tests.kernels.check_bands import check_bands
from tests.reference_ci import ReferenceCount, ReferenceSum

#       positions 44..58, 29..43 and 15..29 of the paper's figure 8, newest last
FIGURE_8 = {
    0: (44, [76, 80, 82, 86, 90, 93, 94, 96, 98, 100, 101, 103, 104, 105, 106]),
    1: (29, [66, 71, 73, 82, 85, 87, 92, 93, 96, 97, 98, 100, 102, 103, 105]),
    2: (15, [47, 50, 53, 60, 68, 73, 76, 80, 81, 85, 91, 94, 97, 100, 102]),
}


def grown(update, state, *columns, horizon=EARLIEST):
    """A batch, with room made where it runs out."""
    begin = 0
    while (begin := update(state, *columns, begin, horizon)) < columns[0].size:
        state = ci_count.with_room(state, 64, 64 * state.p)
    return state


def kept(state: ci_count.Levels) -> dict[tuple[int, int], int]:
    """{(key, level): time}, as the reference has it."""
    found = {}
    for k in range(state.keys.shape[0]):
        b = int(state.keys[k, ci_count.FIRST_BLOCK])
        while b > 0:
            size, fill = int(state.blocks[b, ci_count.SIZE]), int(state.blocks[b, ci_count.FILL])
            assert state.blocks[b, ci_count.OWNER] == k
            for q in range(fill):
                found[k, size * state.p + q] = int(state.order.cells[b * state.p + q, 0])
            b = int(state.blocks[b, ci_count.UPPER])
    return found


def check(state: ci_count.Levels) -> None:
    """Every invariant: chains go up one size at a time and back in time, every block is used or free, orders agree."""
    used, free, b = set(), set(), int(state.blocks[0, ci_count.UPPER])
    for _ in range(state.blocks[0, ci_count.FILL]):
        free.add(b)
        b = int(state.blocks[b, ci_count.UPPER])
    held: dict[int, dict[int, int]] = {}
    for k in range(state.keys.shape[0]):
        b, size, last = int(state.keys[k, ci_count.FIRST_BLOCK]), 0, np.iinfo(np.int64).max
        while b > 0:
            assert b not in used and state.blocks[b, ci_count.SIZE] == size
            fill = int(state.blocks[b, ci_count.FILL])
            assert 1 <= fill <= state.p and (fill == state.p or state.blocks[b, ci_count.UPPER] == 0)
            for q in range(fill):
                entry = b * state.p + q
                assert state.order.cells[entry, 0] <= last
                last = state.order.cells[entry, 0]
                held.setdefault(size * state.p + q, {})[entry] = int(last)
            used.add(b)
            b, size = int(state.blocks[b, ci_count.UPPER]), size + 1
    assert not used & free and used | free == set(range(1, state.blocks.shape[0]))
    begun = np.flatnonzero(state.order.rows[1:, bands.COUNT])
    check_bands(state.order, {level + 1: held.get(level, {}) for level in begun.tolist()})


def at_least(state: ci_count.Levels, x: int, v: int) -> tuple[ci_count.Levels, set[int]]:
    level = ci_levels.level_within(v, state.p)
    state = ci_count.indexed(state, level)
    out = np.empty(max(1, state.keys.shape[0]), np.int64)
    found = ci_count.newer(state, level, x, out)
    keys = out[:found].tolist()
    assert len(set(keys)) == len(keys)
    return state, set(keys)


def at_most(state: ci_count.Levels, x: int, v: int) -> tuple[ci_count.Levels, set[int]]:
    """count <= v of the keys with an event after x."""
    state, present = at_least(state, x, 1)
    level = ci_levels.level_beyond(v + 1, state.p)
    keys = np.array(sorted(present), np.int64)
    assert level is not None
    return state, set(keys[: ci_count.without(state, level, x, keys)].tolist())


def test_example_of_the_paper() -> None:
    """At 106, who has 11 or more in the last 20? Asked as ts >= 87; the exact answer is k1, the index also says k2."""
    reference = ReferenceCount()
    ids, ts = [], []
    for k, (first, times) in FIGURE_8.items():
        of_key = [0] * (first - 1) + times
        ids += [k] * len(of_key)
        ts += of_key
    for k, t in zip(ids, ts, strict=True):
        reference.update(k, t)
    assert [reference.tstamp[k, 2] for k in range(3)] == [98, 100, 85]
    state = grown(ci_count.update, ci_count.empty(1, 3), np.array(ids), np.array(ts))
    assert kept(state) == reference.tstamp
    assert {0, 1} == reference.at_least(106, 106 - 86, 11) == at_least(state, 86, 11)[1]
    assert {0} == {k for k, (_, times) in FIGURE_8.items() if sum(t >= 87 for t in times) >= 11}


@pytest.mark.parametrize("p", range(1, 17))
def test_levels_tile_the_past_and_the_right_one_is_asked(p: int) -> None:
    spans = [ci_levels.span(level, p) for level in range(16 * p)]
    assert spans[0] == (1, 1) and all(b[0] == a[1] + 1 for a, b in pairwise(spans))
    for v in range(1, 2000):
        within, beyond = ci_levels.level_within(v, p), ci_levels.level_beyond(v, p)
        assert spans[within][1] <= v < spans[within + 1][1]
        assert spans[within][0] > v * (1 - ci_levels.relaxation(p))
        assert spans[beyond][0] >= v and (beyond == 0 or spans[beyond - 1][0] < v)
        assert spans[beyond][1] - 1 < v * (1 + ci_levels.relaxation(p, below=True))
    assert p == ci_levels.levels_for(ci_levels.relaxation(p, below=True))


def test_relaxations() -> None:
    assert [ci_levels.relaxation(p) for p in (1, 2, 3)] == [0.75, 0.5, 0.4]
    assert ci_levels.relaxation(16) <= 2 / 16
    assert ci_levels.levels_for(0.2) == 10
    for epsilon in (0.75, 0.5, 0.1):
        p = ci_levels.levels_for(epsilon)
        assert max(ci_levels.relaxation(p), ci_levels.relaxation(p, below=True)) <= epsilon


STEPS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(1, 6)), min_size=1, max_size=120)
VALUES = st.one_of(st.integers(0, 9), st.integers(0, 300))
ELEMENTS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), VALUES), min_size=1, max_size=30)


def events(steps: list[tuple[int, int, int]]) -> tuple[np.ndarray, np.ndarray]:
    """(key, time passed, copies) -> ids, ts."""
    now, ids, ts = 0, [], []
    for k, passed, copies in steps:
        now += passed
        ids += [k] * copies
        ts += [now] * copies
    return np.array(ids, np.int64), np.array(ts, np.int64)


@settings(max_examples=share(100), deadline=None)
@given(p=st.integers(1, 16), steps=STEPS, t=st.integers(1, 60), v=st.integers(1, 150))
def test_same_timestamps_and_answers_as_the_papers_algorithm(p: int, steps: list, t: int, v: int) -> None:
    ids, ts = events(steps)
    reference, times = ReferenceCount(p), {}
    for k, at in zip(ids.tolist(), ts.tolist(), strict=True):
        reference.update(k, at)
        times.setdefault(k, []).append(at)
    reference.check(times)
    state = grown(ci_count.update, ci_count.empty(p, 5), ids, ts)
    assert kept(state) == reference.tstamp
    now = int(ts[-1])
    state, found = at_least(state, now - t, v)
    assert found == reference.at_least(now, t, v)
    check(state)


@settings(max_examples=share(100), deadline=None)
@given(p=st.integers(1, 16), elements=ELEMENTS)
def test_a_sum_is_a_count_of_copies(p: int, elements: list[tuple[int, int, int]]) -> None:
    reference, now, rows = ReferenceSum(p), 0, []
    for k, passed, a in elements:
        now += passed
        rows.append((k, now, a))
        reference.add(k, now, a)
    columns = [np.array(column, np.int64) for column in zip(*rows, strict=True)]
    state = grown(ci_sum.update, ci_count.empty(p, 4), *columns)
    assert kept(state) == reference.tstamp
    check(state)


@st.composite
def runs(draw):
    """Batches with lookups in between, keys that lag and fall silent, a longest window that lets things expire."""
    p = draw(st.integers(1, 16))
    longest = draw(st.integers(1, 80))
    batches = draw(st.lists(st.tuples(STEPS, st.integers(0, 30)), min_size=1, max_size=4))
    asks = draw(st.lists(st.tuples(st.integers(1, 80), st.integers(1, 120)), min_size=1, max_size=5))
    return p, longest, batches, [(min(t, longest), v) for t, v in asks]


@settings(max_examples=share(120), deadline=None)
@given(run=runs(), sums=st.booleans())
def test_superset_and_relaxed_bound(run, sums: bool) -> None:
    p, longest, batches, asks = run
    state, now = ci_count.empty(p, 5), 0
    weights: dict[int, list[tuple[int, int]]] = {k: [] for k in range(5)}
    for steps, silence in batches:
        start = now
        ids, ts, values = [], [], []
        for k, passed, a in steps:
            now += passed
            lag = max(start, now - k)  # keys lag behind each other, each in order
            ids.append(k)
            ts.append(max(lag, weights[k][-1][0] if weights[k] else 0))
            values.append(a if sums else 1)
            weights[k].append((ts[-1], values[-1]))
        columns = [np.array(ids, np.int64), np.array(ts, np.int64)] + ([np.array(values, np.int64)] if sums else [])
        state = grown(ci_sum.update if sums else ci_count.update, state, *columns, horizon=now - longest)
        check(state)
        now += silence
        for t, v in asks:
            counts = {k: sum(a for at, a in w if at > now - t) for k, w in weights.items()}
            state, found = at_least(state, now - t, v)
            assert {k for k, n in counts.items() if n >= v} <= found
            assert all(counts[k] > v * (1 - ci_levels.relaxation(p)) for k in found)
            state, found = at_most(state, now - t, v)
            assert {k for k, n in counts.items() if 0 < n <= v} <= found
            assert all(0 < counts[k] < (v + 1) * (1 + ci_levels.relaxation(p, below=True)) for k in found)
        ci_count.expire(state, 0, 5, now - longest)
        check(state)
        assert all(at > now - longest for (_, level), at in kept(state).items() if level % p == 0)


def test_silent_keys_give_their_memory_back() -> None:
    state = grown(ci_count.update, ci_count.empty(4, 300), np.repeat(np.arange(100), 50), np.tile(np.arange(50), 100))
    blocks = state.blocks.shape[0]
    for level in range(8):
        state = ci_count.indexed(state, level)
    ci_count.expire(state, 0, 300, 49)
    assert state.blocks[0, ci_count.FILL] == blocks - 1 and kept(state) == {}
    state = grown(ci_count.update, state, np.repeat(np.arange(200, 300), 50), np.tile(np.arange(100, 150), 100))
    assert state.blocks.shape[0] == blocks
    check(state)


def test_values_up_to_2_to_the_40_and_beyond() -> None:
    values = np.array([1 << 40, 3, 1 << 40, 0, 2**62, 2**62, 7], np.int64)
    ids, ts = np.zeros(7, np.int64), np.arange(7)
    state = grown(ci_sum.update, ci_count.empty(4, 1), ids, ts, values)
    check(state)
    for x, total in ((4, 2**62 + 7), (5, 7)):
        for v in (1, 7, 8, 1 << 20, 1 << 40, 1 << 50):
            found = at_least(state, x, v)[1]
            assert total < v or found == {0}
            assert not found or total > v * (1 - ci_levels.relaxation(4))


def test_adding_costs_the_logarithm_of_the_value() -> None:
    """10^12 copies at once, for as many elements as a loop over copies would never end."""
    rng = np.random.default_rng(3)
    ids, values = rng.integers(0, 10, 20_000), rng.integers(0, 1 << 40, 20_000)
    state = grown(ci_sum.update, ci_count.empty(2, 10), ids, np.arange(values.size), values)
    check(state)


def test_negative_values_are_reported_by_row() -> None:
    assert ci_sum.first_negative(np.array([0, 3, np.iinfo(np.int64).max])) == -1
    assert ci_sum.first_negative(np.array([0.0, np.nan, -1e-300, -1.0])) == 2


@settings(max_examples=share(200), deadline=None)
@given(values=st.lists(st.floats(0, 1e6), min_size=1, max_size=200), log_scale=st.integers(-10, 20))
def test_units_of_any_window_are_its_sum_within_one(values: list[float], log_scale: int) -> None:
    column, scale = np.array(values), 2.0**log_scale
    rest, out = np.zeros(1), np.empty(column.size, np.int64)
    ci_sum.in_units(column, np.zeros(column.size, np.int64), scale, rest, out)
    for start in range(column.size):
        exact = np.sum(column[start:].astype(np.longdouble)) * scale
        assert abs(int(out[start:].sum()) - exact) <= 1 + 1e-12 * exact
