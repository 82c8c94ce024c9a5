"""The bitmap of ranks against a sorted set, and sliding quantiles against sorting every window."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kernels.operators.numbers import unsigned
from kernels.stored import ranked

SIZE = 300_000  # ranks enough for two words at the top


def bitmap(size: int) -> tuple[np.ndarray, np.uint64, np.uint64]:
    rows = ranked.room(np.empty(size, np.int64), np.empty(size, np.int64))
    return rows.words, np.uint64(rows.cursor[ranked.MID]), np.uint64(rows.cursor[ranked.TOP])


RANKS = (
    st.integers(0, SIZE - 1) | st.integers(0, 200) | st.sampled_from([63, 64, 4095, 4096, 262_143, 262_144, SIZE - 1])
)


@given(members=st.sets(RANKS, max_size=20), leaving=st.sets(RANKS, max_size=5), asked=RANKS)
def test_a_bitmap_is_a_sorted_set(members: set[int], leaving: set[int], asked: int) -> None:
    words, mid, top = bitmap(SIZE)
    for r in members | leaving:
        ranked.enter(words, mid, top, unsigned(r))
    for r in leaving:
        ranked.leave(words, mid, top, unsigned(r))
    left = members - leaving
    assert ranked.following(words, mid, top, unsigned(asked)) == min((r for r in left if r > asked), default=-1)
    assert ranked.preceding(words, mid, top, unsigned(asked)) == max((r for r in left if r < asked), default=-1)
    for r in left:
        ranked.leave(words, mid, top, unsigned(r))
    assert not words.any()


VALUES = st.floats(-3, 3) | st.sampled_from([0.0, 1.0, math.inf, -math.inf])
STEPS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=30)


@given(steps=STEPS, phi=st.floats(0, 1), block=st.integers(1, 9), data=st.data())
def test_quantiles_of_windows_that_move_on_by_any_number_of_rows(
    steps: list[tuple[int, int]], phi: float, block: int, data: st.DataObject
) -> None:
    lo, hi = np.cumsum(np.array(steps), axis=0).T.copy()  # with gaps in memory, kernels would be compiled once more
    lo, n = np.minimum(lo, hi), int(hi[-1])
    some = st.sampled_from([VALUES, VALUES | st.just(math.nan)])
    values = np.array(data.draw(st.lists(data.draw(some), min_size=n, max_size=n)), np.float64)
    rows = ranked.room(*ranked.rank(values))
    wanted = np.floor(phi * np.maximum(hi - lo - 1, 0)).astype(np.int64)
    for _ in range(2):  # once more, after it was emptied
        ranked.empty(rows)
        low, high = np.empty(lo.size), np.empty(lo.size)
        for first in range(0, lo.size, block):
            part = slice(first, first + block)
            ranked.slide(rows, lo[part], hi[part], wanted[part], low[part], high[part])
        for i in np.flatnonzero(lo < hi):
            window = np.sort(values[lo[i] : hi[i]])
            if np.isnan(window[-1]):
                assert math.isnan(low[i])
                assert math.isnan(high[i])
            else:
                assert low[i] == window[wanted[i]]
                assert high[i] == window[min(wanted[i] + 1, window.size - 1)]


def test_integers_are_ranked_as_they_are() -> None:
    values = np.array([2**62, -(2**62), 2**62 + 1, 0])
    rows = ranked.room(*ranked.rank(values))
    low = np.empty(2, np.int64)
    ranked.slide(rows, np.array([0, 0]), np.array([3, 4]), np.array([2, 3]), low, np.empty(0, np.int64))
    assert low.tolist() == [2**62 + 1, 2**62 + 1]
