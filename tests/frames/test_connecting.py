"""Episodes: frames of neighbouring keys that overlap in time, against a search of all pairs."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import frames as fr
import swag as sw

#  road 1   [=====]                    0 .. 5
#  road 2       [====]      [==]       4 .. 8, 14 .. 16
#  road 3             [=]              9 .. 10
ROADS = pa.table({
    "frame_id": [0, 1, 2, 3], "road": [1, 2, 3, 2], "start": [0, 4, 9, 14], "end": [5, 8, 10, 16], "rows": [6, 5, 2, 3],
})  # fmt: skip


def episodes_of(frames: Any, pairs: set[frozenset], within: int = 0) -> list[int]:
    """By the definition: whatever can be reached from a frame over neighbours that overlap."""
    rows, number = frames.to_pylist(), {}

    def meet(a: dict, b: dict) -> bool:
        near = frozenset((a["k"], b["k"])) in pairs
        return near and a["start"] <= b["end"] + within and b["start"] <= a["end"] + within

    for first in sorted(range(len(rows)), key=lambda i: (rows[i]["start"], i)):
        if first in number:
            continue
        found, todo = {first}, [first]
        while todo:
            at = todo.pop()
            new = {i for i in range(len(rows)) if i not in found and meet(rows[at], rows[i])}
            found |= new
            todo += new
        number |= dict.fromkeys(found, len(set(number.values())))
    return [number[i] for i in range(len(rows))]


@st.composite
def framings(draw: Any) -> pa.Table:
    """Frames of a few keys; those of one key may overlap, as sliding windows do, or touch."""
    rows = draw(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 20), st.integers(0, 6)), max_size=14))
    columns = {
        "frame_id": np.arange(len(rows)), "k": [k for k, _, _ in rows], "start": [s for _, s, _ in rows],
        "end": [s + d for _, s, d in rows], "rows": [1] * len(rows),
    }  # fmt: skip
    return pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})


OUT_OF_ORDER = pa.table(
    {"frame_id": [0, 1, 2], "k": [0, 1, 0], "start": [16, 15, 15], "end": [16, 15, 16], "rows": [1] * 3}
)


@example(frames=OUT_OF_ORDER, pairs={(0, 0)}, within=0)  # an episode is known by the frame that begins it
@given(
    frames=framings(),
    pairs=st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=8),
    within=st.integers(0, 3),
)
def test_episodes_are_what_can_be_reached_over_neighbours_that_overlap(frames, pairs, within):
    found = fr.connect(frames, list(pairs), key="k", within=within)
    assert found["episode"].to_pylist() == episodes_of(frames, {frozenset(pair) for pair in pairs}, within)
    said = fr.episodes(found, key="k").to_pylist()
    assert sum(each["frames"] for each in said) == frames.num_rows
    for each in said:
        own = [row for row in found.to_pylist() if row["episode"] == each["episode"]]
        assert each == {
            "episode": each["episode"], "start": min(r["start"] for r in own), "end": max(r["end"] for r in own),
            "keys": len({r["k"] for r in own}), "frames": len(own), "rows": len(own),
        }  # fmt: skip


def test_neighbours_are_said_in_any_way():
    line = [(1, 2), (3, 2)]
    ways = [
        line, set(line), [[2, 1], [2, 3]], pa.table({"from": [1, 2], "to": [2, 3]}), {1: [2], 2: [3]}, {1: 2, 3: (2,)},
        {2: {1, 3}}, "sides", "corners", pa.table({"a": pa.array([1, 2], pa.int8()), "b": pa.array([2, 3], pa.int8())}),
    ]  # fmt: skip
    for neighbours in ways:
        assert fr.connect(ROADS, neighbours, key="road")["episode"].to_pylist() == [0, 0, 1, 2]
        assert fr.connect(ROADS, neighbours, key="road", within=1)["episode"].to_pylist() == [0, 0, 0, 1]
    assert fr.connect(ROADS, [], key="road")["episode"].to_pylist() == [0, 1, 2, 3]
    assert fr.connect(ROADS, [(7, 8), (1, 9)], key="road")["episode"].to_pylist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("neighbours", "says"),
    [
        ("edges", 'neither "sides" nor "corners"'),
        (7, "does not say which keys"),
        ([1, 2], "1 is no pair of neighbours"),
        ([(1, 2, 3)], "is no pair of neighbours"),
        (pa.table({"a": [1]}), "as many for the other"),
        ([("r1", 2), (3, 4)], "several types"),
    ],
)
def test_what_says_nothing_of_neighbours_is_refused(neighbours, says):
    with pytest.raises(sw.BadQuery, match=says):
        fr.connect(ROADS, neighbours, key="road")


@pytest.mark.parametrize("neighbours", [[(0, 2**64 - 1)], {2**64 - 1: [2**63, 0]}])
def test_keys_may_be_beyond_int64(neighbours):
    keys = pa.array([0, 2**63, 2**64 - 1], pa.uint64())
    jams = fr.detect(fr.Session(1), pa.table({"ts": [1, 5, 1], "road": keys}), key="road")
    assert dict(zip(jams["road"].to_pylist(), fr.connect(jams, neighbours)["episode"].to_pylist(), strict=True)) == {
        0: 0, 2**64 - 1: 0, 2**63: 1,
    }  # fmt: skip


@pytest.mark.parametrize("neighbours", [[("a", "b")], {True: [False]}, pa.table({"a": ["1"], "b": ["2"]})])
def test_keys_of_another_sort_are_no_neighbours(neighbours):
    with pytest.raises(sw.BadType, match='is no neighbour: "road" of the frames is int64'):
        fr.connect(ROADS, neighbours, key="road")


def test_pairs_come_as_an_array_and_keys_without_frames_are_left_out():
    pairs = np.array([[1, 2], [2, 9], [3, 300]], np.int16)
    assert fr.connect(ROADS, pairs, key="road")["episode"].to_pylist() == [0, 0, 1, 2]
    grid = ROADS.append_column("lane", pa.array([0, 0, 1, 1]))
    for corners in (np.array([[[1, 0], [2, 0]]]), np.array([[1, 0, 2, 0]])):
        assert fr.connect(grid, corners, key=("road", "lane"))["episode"].to_pylist() == [0, 0, 1, 2]
    with pytest.raises(sw.BadQuery, match="which keys lie next"):
        fr.connect(ROADS, np.array([[1, 2, 3]]), key="road")


def test_frames_without_a_key_and_lengths_below_nothing_are_refused():
    with pytest.raises(sw.BadQuery, match="these say of none"):
        fr.connect(ROADS, "sides")
    with pytest.raises(sw.BadQuery, match="less than nothing"):
        fr.connect(ROADS, "sides", key="road", within=-1)
    with pytest.raises(sw.BadQuery, match="episode"):
        fr.connect(fr.connect(ROADS, "sides", key="road"), "sides", key="road")
    with pytest.raises(sw.BadQuery, match=r"are not connected yet\. Hint: fr\.connect"):
        fr.episodes(ROADS, key="road")
    with pytest.raises(sw.BadQuery, match='"k" is string'):
        fr.connect(ROADS.append_column("k", pa.array(list("abcd"))), "sides", key="k")


def test_cells_of_a_grid_meet_at_sides_or_at_corners():
    #  y 1   . b c      all at the same time: a and b share a corner, b and c a side; d is far off
    #  y 0   a . . d
    cells = pa.table({
        "frame_id": range(4), "x": pa.array([0, 1, 2, 9], pa.int16()), "y": [0, 1, 1, 0],
        "start": [0] * 4, "end": [5] * 4, "rows": [1] * 4,
    })  # fmt: skip
    assert fr.connect(cells, "sides", key=("x", "y"))["episode"].to_pylist() == [0, 1, 1, 2]
    assert fr.connect(cells, "corners", key=("x", "y"))["episode"].to_pylist() == [0, 0, 0, 1]
    pairs = [((0, 0), (9, 0)), ((1, 1), (2, 1))]
    for neighbours in (pairs, {(0, 0): (9, 0), (1, 1): [(2, 1)]}):
        assert fr.connect(cells, neighbours, key=("x", "y"))["episode"].to_pylist() == [0, 1, 1, 0]


def test_the_ends_of_a_type_are_no_neighbours():
    ends = pa.table({
        "frame_id": [0, 1], "x": pa.array([-128, 127], pa.int8()), "start": [0, 0], "end": [1, 1], "rows": [1, 1],
    })  # fmt: skip
    assert fr.connect(ends, "corners", key="x")["episode"].to_pylist() == [0, 1]


def test_frames_know_their_key_and_still_own_their_events():
    events = {"ts": [1, 1, 2, 2, 3], "k": [1, 2, 1, 2, 1], "x": [5.0, 0.0, 6.0, 7.0, 0.0]}
    found = fr.connect(fr.detect(fr.Threshold("x", ">", 1), events, key="k"), "sides")
    assert found["episode"].to_pylist() == [0, 0]
    assert fr.summarize(found, events, sw.count(), key="k", own=True)["count()"].to_pylist() == [2, 1]
    pieces = pa.table({**{n: found[n] for n in ("frame_id", "k", "start", "end", "rows")}, "final": [True, True]})
    assert fr.connect(pieces, "sides", key="k")["episode"].to_pylist() == [0, 0]


def test_before_there_are_events_there_are_no_episodes():
    empty = fr.Detector(fr.Threshold("x", ">", 1), key="k").finish()
    assert fr.connect(empty, "sides").num_rows == 0
    nothing = ROADS.slice(0, 0)
    assert fr.episodes(fr.connect(nothing, "sides", key="road"), key="road").num_rows == 0


def test_one_that_has_not_ended_meets_all_that_begin_later():
    frames = pa.table({"frame_id": [0, 1], "k": [1, 2], "start": [0, 50], "end": [None, 60], "rows": [3, 4]})
    found = fr.connect(frames, "sides", key="k")
    assert found["episode"].to_pylist() == [0, 0]
    assert fr.episodes(found, key="k").to_pylist() == [
        {"episode": 0, "start": 0, "end": None, "keys": 2, "frames": 2, "rows": 7}
    ]
