"""What is carried from block to block: as many rows as windows of later blocks can still hold, and no more."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from swag.query.windows import Depth, Range, Rows, reach
from swag.stored.carried import CarriedRows, first_needed


def test_the_depth_of_windows_is_the_longest_by_time_and_the_longest_by_rows():
    windows = [Range(5), Range(9, until=3), Range(9, closed="both"), Rows(7, until=2), Rows(4)]
    assert Depth.of(reach(window, None) for window in windows) == Depth(time=10, rows=7)
    assert Depth.of([]) == Depth(0, 0)
    assert Depth(3, 8) | Depth(5, 2) == Depth(5, 8)


TIMES = st.lists(st.integers(0, 30), max_size=12).map(sorted)


@given(keys=st.lists(TIMES, min_size=1, max_size=5), time=st.integers(0, 40), rows=st.integers(0, 15), now=TIMES)
def test_needed_is_what_a_window_that_ends_now_holds_and_what_comes_after(keys, time, rows, now):
    now = max(now, default=31)
    starts = np.concatenate([[0], np.cumsum([len(each) for each in keys])])
    t = np.array([each for own in keys for each in own], np.int64)
    first = first_needed(Depth(time, rows), t, starts, now)
    for own, begin, found in zip(keys, starts, first, strict=False):
        passed = [i for i, each in enumerate(own) if each <= now]
        held = [i for i in passed if own[i] > now - time or len(passed) - i <= rows]
        assert found - begin == min(held, default=len(passed))


def test_windows_may_be_longer_than_time_itself():
    t = np.array([-(2**63), 0, 2**63 - 1])
    assert first_needed(Depth(2**70, 0), t, np.array([0, 3]), 2**63 - 1).tolist() == [0]
    assert first_needed(Depth(0, 2**70), t, np.array([0, 3]), 2**63 - 1).tolist() == [0]


@given(sizes=st.lists(st.integers(0, 5), max_size=12), least=st.integers(1, 8), kept=st.integers(0, 9))
def test_blocks_hold_every_row_once_behind_what_was_kept(sizes, least, kept):
    rows = iter(range(100))
    batches = [pa.record_batch({"x": pa.array([next(rows) for _ in range(size)], pa.int64())}) for size in sizes]
    carried, seen, ends = CarriedRows(), [], []
    for block, last in carried.blocks(batches, least, lambda new: new):
        numbers, before = block.column("x").to_pylist(), carried.count
        assert numbers[:before] == seen[len(seen) - before :]
        assert last or len(numbers) - before >= max(least, before)
        seen += numbers[before:]
        ends.append(last)
        carried.keep(block.slice(max(0, block.num_rows - kept)))
    assert seen == list(range(sum(sizes)))
    assert ends[:-1] == [False] * len(ends[:-1])
