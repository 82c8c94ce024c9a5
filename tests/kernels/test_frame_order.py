"""The order of frames: merged and sorted as NumPy would, and put where they belong."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kernels import edges, frame_keys, frame_order

TIMES = st.integers(-5, 5) | st.integers(-(2**63), 2**63 - 1)


@given(parts=st.lists(st.lists(st.integers(0, 20), max_size=12).map(sorted), min_size=1, max_size=5))
def test_sorted_parts_are_merged_in_order_and_stably(parts: list[list[int]]) -> None:
    at = np.array([a for part in parts for a in part], np.int64)
    order = np.empty(at.size, np.int64)
    frame_order.merge(at, np.cumsum([0, *map(len, parts)]), order)
    assert order.tolist() == np.argsort(at, kind="stable").tolist()


@given(times=st.lists(TIMES, max_size=40))
def test_any_times_are_sorted_stably(times: list[int]) -> None:
    keys, order = np.array(times, np.int64), np.arange(len(times))
    assert edges.is_sorted(keys) == (sorted(times) == times)
    expected = np.argsort(keys, kind="stable").tolist()
    frame_order.sort(keys, order)
    assert order.tolist() == expected
    assert keys.tolist() == sorted(times)


def test_what_is_not_in_order_is_found_wherever_it_is() -> None:
    for at in (0, 1022, 1023, 1024, 3000):
        keys = np.arange(3002)
        keys[at], keys[at + 1] = keys[at + 1], keys[at]
        assert not edges.is_sorted(keys)


def test_frames_of_two_parts_get_their_keys_back() -> None:
    frames = np.arange(16).reshape(2, 8)  # keys 0 and 8 of the odd part: 1 and 17 in all
    fields = np.zeros((4, 3), np.int64)
    frame_order.scatter(frames, np.array([2, 0]), 1, 1, fields)
    assert fields.tolist() == [[17, 0, 1], [9, 0, 1], [10, 0, 2], [11, 0, 3]]


@given(lengths=st.lists(st.integers(1, 4), min_size=1, max_size=8), data=st.data())
def test_runs_of_keys_are_spread_over_their_rows(lengths: list[int], data: st.DataObject) -> None:
    starts, of_runs = np.cumsum([0, *lengths[:-1]]), np.arange(len(lengths)) * 3
    rows = np.repeat(of_runs, lengths)
    first = data.draw(st.integers(0, rows.size - 1))
    ids = np.empty(data.draw(st.integers(0, rows.size - first)), np.int64)
    frame_keys.spread(of_runs, starts, first, ids)
    assert ids.tolist() == rows[first : first + ids.size].tolist()
