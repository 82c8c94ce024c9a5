"""The order of frames: merged and sorted as NumPy would, and put where they belong."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kernels.frames import order as frame_order
from kernels.frames.framing import AT
from kernels.keys import dense_range as frame_keys
from kernels.stored import edges

TIMES = st.integers(-5, 5) | st.integers(-(2**63), 2**63 - 1)


@given(parts=st.lists(st.lists(st.tuples(TIMES, st.integers(0, 99)), max_size=12), min_size=1, max_size=4))
def test_frames_of_all_parts_come_by_time_then_by_arrival(parts: list[list[tuple[int, int]]]) -> None:
    taken: set[int] = set()  # an event makes one frame certain at most
    parts = [[(t, at) for t, at in part if not (at in taken or taken.add(at))] for part in parts]  # type: ignore[func-returns-value]
    instants, lists = np.zeros(100, np.int64), []
    for part in parts:
        frames = np.zeros((len(part), 8), np.int64)
        frames[:, AT] = sorted(at for _, at in part)
        for t, at in part:
            instants[at] = t
        sure, slots = np.empty(len(part), np.int64), np.arange(len(part))
        in_order = frame_order.certainty(frames, instants, sure)
        assert in_order == (sure.tolist() == sorted(sure.tolist()))
        frame_order.sort(sure, slots)
        lists.append((sure, slots, frames))
    ranked = {}
    for own in lists:
        places = np.arange(own[0].size)
        for other in lists:
            if other is not own:
                frame_order.add_ranks(own, other, places)
        ranked |= dict(zip(own[2][own[1], AT].tolist(), places.tolist(), strict=True))
    assert sorted(ranked, key=ranked.__getitem__) == sorted(taken, key=lambda at: (instants[at], at))
    assert sorted(ranked.values()) == list(range(len(taken)))


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
    frame_order.scatter(frames, np.array([1, 0]), np.array([0, 2]), 1, 1, fields)
    assert fields.tolist() == [[17, 0, 1], [9, 0, 1], [10, 0, 2], [15, 0, 7]]  # the last are leads
    cells, beside = np.array([[5, 6], [7, 8]]), np.zeros((2, 3), np.int64)
    frame_order.put(cells, np.array([1, 0]), np.array([0, 2]), beside)
    assert beside.tolist() == [[7, 0, 5], [8, 0, 6]]


@given(lengths=st.lists(st.integers(1, 4), min_size=1, max_size=8), data=st.data())
def test_runs_of_keys_are_spread_over_their_rows(lengths: list[int], data: st.DataObject) -> None:
    starts, of_runs = np.cumsum([0, *lengths[:-1]]), np.arange(len(lengths)) * 3
    rows = np.repeat(of_runs, lengths)
    first = data.draw(st.integers(0, rows.size - 1))
    ids = np.empty(data.draw(st.integers(0, rows.size - first)), np.int32)
    frame_keys.spread(of_runs, starts, first, ids)
    assert ids.tolist() == rows[first : first + ids.size].tolist()


def test_changes_are_found_on_every_page_or_said_not_to_fit() -> None:
    values = np.repeat(np.array([3, 1, 3, 2], np.uint16), [1, 1023, 2000, 5])
    rows = np.empty(3, np.int64)
    assert frame_keys.changes(values, 1, values.size, rows) == 3
    assert rows.tolist() == [1, 1024, 3024]
    assert frame_keys.changes(values, 2, 3024, rows) == 1
    assert frame_keys.changes(values, 1, values.size, rows[:2]) == -1
