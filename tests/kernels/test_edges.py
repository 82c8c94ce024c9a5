"""Edges of windows over stored rows, each against a search by bisection; and moving landmarks over them."""

import bisect
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.operators import compensated, monoids
from kernels.stored import edges, moving_landmark
from kernels.stored.edges import FIRST, OFFSET, SEGMENT, SHIFT, START, Timeline

TIMES = st.integers(0, 30) | st.integers(2**40, 2**40 + 5) | st.sampled_from([-(2**63), 2**63 - 1, -(2**62)])
SEGMENTS = st.lists(st.lists(TIMES, max_size=30).map(sorted), min_size=1, max_size=5)
BACK = st.integers(0, 40) | st.sampled_from([2**40, 2**62, 2**63 - 1])


def timeline(segments: list[list[int]]) -> Timeline:
    ts = np.array([t for rows in segments for t in rows], np.int64)
    table = np.zeros((len(segments) + 1, 3), np.int64)
    table[1:, START] = np.cumsum([len(rows) for rows in segments])
    edges.measure(ts, table, edges.BUCKETS)
    index = np.full(table[-1, OFFSET], -1, np.int32)
    edges.fill(ts, table, index)
    return Timeline(ts, table, index)


def requests(asked: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Their times, and runs of those segments that have any."""
    now = np.array([t for times in asked for t in times], np.int64)
    first = np.cumsum([0] + [len(times) for times in asked])
    runs = [(first[k], k) for k in range(len(asked)) if asked[k]]
    return now, np.array([*runs, (now.size, -1)], np.int64)


@given(ids=st.lists(st.integers(0, 4), max_size=40).map(lambda ids: np.array(ids, np.int64)))
def test_grouping_is_stable(ids: np.ndarray) -> None:
    starts, order = np.concatenate([[0], np.cumsum(np.bincount(ids, minlength=5))]), np.empty(ids.size, np.int64)
    edges.group(ids, starts, order)
    assert order.tolist() == sorted(range(ids.size), key=lambda e: ids[e])


@given(segments=SEGMENTS)
def test_rows_are_ordered_within_segments_if_at_all(segments: list[list[int]]) -> None:
    ts, table, _ = timeline(segments)
    assert edges.ordered(ts, table[:, START])
    for k, rows in enumerate(segments):
        if len(set(rows)) > 1:
            ts[table[k, START] : table[k + 1, START]] = rows[::-1]
            assert not edges.ordered(ts, table[:, START])


@given(segments=SEGMENTS)
def test_the_index_has_at_most_four_buckets_per_row(segments: list[list[int]]) -> None:
    ts, table, index = timeline(segments)
    assert index.size <= edges.BUCKETS * ts.size
    for k in np.flatnonzero(table[:-1, SHIFT] >= 0):
        rows, shift = segments[k], int(table[k, SHIFT])
        buckets = index[table[k, OFFSET] : table[k + 1, OFFSET]]
        expected = [bisect.bisect_left([(t - rows[0]) >> shift for t in rows], b) for b in range(buckets.size)]
        assert (buckets - table[k, START]).tolist() == expected


@given(segments=SEGMENTS, data=st.data())
def test_peers_end_where_a_search_for_their_time_says(segments: list[list[int]], data: st.DataObject) -> None:
    ts, table, _ = timeline(segments)
    _, runs = requests(segments)
    expected = [int(table[k, START]) + bisect.bisect_right(rows, t) for k, rows in enumerate(segments) for t in rows]
    for first in range(ts.size):
        out = np.empty(data.draw(st.integers(1, ts.size - first)), np.int64)
        edges.peers(ts, runs, first, out)
        assert out.tolist() == expected[first : first + out.size]


@given(chosen=st.lists(st.booleans(), max_size=20).map(np.array), rng=st.randoms(use_true_random=False))
def test_rows_that_are_chosen_in_another_order(chosen: np.ndarray, rng: Any) -> None:
    order = np.array(rng.sample(range(chosen.size), chosen.size), np.int64)
    rank, rows = np.empty(order.size + 1, np.int32), np.empty(order.size, np.int64)
    count = edges.choose(chosen.astype(bool), order, rank, rows)
    assert rows[:count].tolist() == [row for row in order if chosen[row]]
    assert rank.tolist() == [int(chosen[order[:p]].sum()) for p in range(order.size + 1)]


@given(segments=SEGMENTS, back=BACK, data=st.data())
def test_edges_by_time(segments: list[list[int]], back: int, data: st.DataObject) -> None:
    ts, table, index = timeline(segments)
    asked = [sorted(data.draw(st.lists(TIMES | st.sampled_from([0, *rows]), max_size=8))) for rows in segments]
    now, runs = requests(asked)
    pairs = [(k, t) for k, times in enumerate(asked) for t in times]
    expected = [int(table[k, START]) + bisect.bisect_right(segments[k], t - back) for k, t in pairs]
    for first in range(now.size):  # any part of the requests can be asked for
        out = np.empty(data.draw(st.integers(1, now.size - first)), np.int64)
        edges.by_time(Timeline(ts, table, index), runs, now, back, first, out)
        assert out.tolist() == expected[first : first + out.size]


@given(segments=SEGMENTS, back=BACK)
def test_edges_by_rows(segments: list[list[int]], back: int) -> None:
    ts, table, _ = timeline(segments)
    _, runs = requests(segments)
    end = np.arange(1, ts.size + 1)
    begins = [int(table[k, START]) for k, rows in enumerate(segments) for _ in rows]
    expected = [max(p + 1 - back, start) for p, start in enumerate(begins)]
    for first in range(ts.size):
        out = np.empty(ts.size - first, np.int64)
        edges.by_rows(table, runs, end, back, first, out)
        assert out.tolist() == expected[first:]
    assert runs[:-1, SEGMENT].tolist() == [k for k, rows in enumerate(segments) if rows]
    assert (np.diff(runs[:, FIRST]) > 0).all()


@given(ts=st.lists(st.integers(0, 20), min_size=1, max_size=50).map(sorted), x=st.integers(-1, 21), data=st.data())
def test_gallop_is_a_bisection(ts: list[int], x: int, data: st.DataObject) -> None:
    end = data.draw(st.integers(0, len(ts)))
    found = bisect.bisect_right(ts, x, hi=end)
    lo = data.draw(st.integers(0, found))
    assert edges.gallop(np.array(ts), lo, end, x) == found


def test_the_narrowest_window_says_whether_any_has_no_answer() -> None:
    assert edges.narrowest(np.array([0, 1, 3]), np.array([1, 1, 9])) == 0


def test_bits_are_cleared_as_arrow_counts_them() -> None:
    bitmap = np.full(2, 0xFF, np.uint8)
    edges.clear_bits(bitmap, np.array([0, 3, 9, 9]))
    assert np.flatnonzero(np.unpackbits(bitmap, bitorder="little") == 0).tolist() == [0, 3, 9]


def test_steps_out_of_step_are_counted() -> None:
    uneven = np.empty(6, np.int32)
    edges.count_uneven(np.array([10, 13, 16, 16, 19, 29]), 3, uneven)
    assert uneven.tolist() == [0, 0, 0, 1, 1, 2]


# --- Sweeping (kernels/windows/landmark.py) ------------------------------------------------------------------------

STEPS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=30)


OPERATORS = [monoids.Max(), monoids.Sum(), compensated.Compensated(), monoids.Moments()]


@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: type(op).__name__)
@given(steps=STEPS, block=st.integers(1, 7))
def test_a_sweep_folds_every_window(op: Any, steps: list[tuple[int, int]], block: int) -> None:
    """Edges that move on by any number of rows; windows may be empty."""
    lo, hi = np.cumsum(np.array(steps), axis=0).T.copy()  # with gaps in memory, kernels would be compiled once more
    lo = np.minimum(lo, hi)
    values = np.random.default_rng(int(hi[-1])).integers(-50, 50, int(hi[-1]) + 1).astype(np.float64)
    out, scratch = monoids.empty_state(op, np.float64, lo.size), monoids.empty_state(op, np.float64, values.size + 1)
    mark = np.zeros(3, np.int64)
    for first in range(0, lo.size, block):
        part = slice(first, first + block)
        piece = tuple(s[part] for s in out) if isinstance(out, tuple) else out[part]
        moving_landmark.sweep(op, values, lo[part], hi[part], mark, scratch, piece)
    for i in np.flatnonzero(lo < hi):
        rows, got = values[lo[i] : hi[i]], monoids.load(out, i)
        if isinstance(op, monoids.Moments):
            assert got == pytest.approx((rows.size, rows.sum(), rows.mean(), rows.var() * rows.size), abs=1e-9)
        else:
            expected = rows.max() if isinstance(op, monoids.Max) else rows.sum()
            assert (got[0] if isinstance(got, tuple) else got) == expected
