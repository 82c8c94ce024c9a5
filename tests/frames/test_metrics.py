"""The measures of the papers, on pictures small enough to count by eye."""

import numpy as np
import pyarrow as pa
import pytest

import frames as fr
import swag as sw
from frames import metrics


def intervals(*pairs):
    columns = {"frame_id": range(len(pairs)), "start": [a for a, _ in pairs], "end": [b for _, b in pairs]}
    return pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})


def test_duration_and_existence_errors():
    #  ts       0 1 2 3 4 5 6 7 8 9
    #  frames     [---]     [-]   []
    #  windows  [-----]  [---]
    frames, windows = intervals((1, 3), (6, 7), (9, 9)), intervals((0, 3), (4, 5))
    events = {"ts": np.arange(10)}
    assert metrics.duration_error(frames, windows, events) == 6  # 0, 4 and 5 too much; 6, 7 and 9 missing
    assert metrics.existence_error(frames, windows) == (2, 1)
    assert metrics.existence_error(frames, intervals()) == (3, 0)


def test_windows_are_picked_by_a_heuristic():
    spec, events = fr.Threshold("x", "<", 40), {"ts": np.arange(6), "x": np.array([30, 50, 30, 35, 60, 70])}
    for heuristic, starts in (("min", [0, 2]), ("max", [2]), ("avg", [2])):
        windows, taken = metrics.tumbling_windows(spec, events, 2, heuristic)
        assert windows.num_rows == 3
        assert taken["start"].to_pylist() == starts


def test_windows_are_picked_by_what_is_compared_with_a_number():
    events = {"ts": np.arange(6), "x": np.array([30, 50, 30, 35, 60, 70])}
    windows = metrics.tumbling_windows(fr.Threshold("x * 2", "<", 80), events, 2)
    assert windows == metrics.tumbling_windows(fr.Threshold("x", "<", 40), events, 2)
    for spec in (fr.State("x"), fr.Threshold("x < 40"), "x"):
        with pytest.raises(sw.BadQuery, match="compares no column with a number"):
            metrics.tumbling_windows(spec, events, 2)


def test_distances():
    a, b = np.array([[True, True], [False, False]]), np.array([[True, False], [True, False]])
    assert metrics.jaccard_distance(a, b) == pytest.approx(2 / 3)
    assert metrics.jaccard_distance({1, 2}, {2, 1}) == 0
    assert metrics.jaccard_distance(set(), set()) == 0
    assert metrics.earth_movers_distance([0, 3, 0], [0, 0, 3]) == 3
    assert metrics.earth_movers_distance([1, 0, 0, 1], [0, 1, 1, 0]) == 2
    assert metrics.rms_error([0, 0, 3, 0], [0, 0, 0, 0]) == 1.5
    with pytest.raises(sw.BadQuery):
        metrics.rms_error([1], [1, 2])


def test_windows_are_of_numbers():
    with pytest.raises(sw.BadType, match="type string"):
        fr.metrics.tumbling_windows(fr.Threshold("x", ">", 1), {"ts": [1], "x": ["a"]}, 2)


def test_errors_are_counted_within_keys():
    #  key a    frame [0 2]    window [0 1]          event 2 is missing
    #  key b    frame [5 6]    window [0 1]          5 and 6 are missing, 0 and 1 too much
    frames = pa.table({"frame_id": [0, 1], "k": ["a", "b"], "start": [0, 5], "end": [2, 6]})
    windows = pa.table({"frame_id": [0, 1], "k": ["b", "a"], "start": [0, 0], "end": [1, 1]})
    events = {"ts": np.tile(np.arange(8), 2), "k": np.repeat(["a", "b"], 8)}
    assert metrics.duration_error(frames, windows, events, key="k") == 5
    assert metrics.existence_error(frames, windows, key="k") == (1, 1)
    assert metrics.existence_error(frames, windows) == (1, 0)
    two = [table.append_column("j", pa.array([1, 1])) for table in (frames, windows)]
    assert metrics.existence_error(*two, key=("k", "j")) == (1, 1)


def test_every_key_has_windows_of_its_own():
    events = {"ts": np.array([0, 1, 0, 1, 2, 3]), "k": np.array(list("aabbbb")), "x": np.array([1, 3, 9, 9, 1, 1.0])}
    every, taken = metrics.tumbling_windows(fr.Threshold("x", ">", 2), events, 2, "avg", key="k")
    assert every.to_pylist() == [
        {"frame_id": 0, "k": "a", "start": 0, "end": 1}, {"frame_id": 1, "k": "b", "start": 0, "end": 1},
        {"frame_id": 2, "k": "b", "start": 2, "end": 3},
    ]  # fmt: skip
    assert taken["frame_id"].to_pylist() == [1]
    alone = [metrics.tumbling_windows(fr.Threshold("x", ">", 2), {n: v[part] for n, v in events.items()}, 2, "max")
             for part in (slice(0, 2), slice(2, 6))]  # fmt: skip
    both = metrics.tumbling_windows(fr.Threshold("x", ">", 2), events, 2, "max", key=("k",))
    assert both[0].num_rows == sum(each.num_rows for each, _ in alone)
    assert both[1].num_rows == sum(each.num_rows for _, each in alone) == 2


def test_windows_are_of_any_type_of_time_and_end_with_it():
    days = pa.array([19723, 19724, 19727], pa.int32()).cast(pa.date32())
    every, _ = metrics.tumbling_windows(fr.Threshold("x", ">", 2), pa.table({"ts": days, "x": [1, 2, 3]}), "2d")
    assert every.schema.field("start").type == every.schema.field("end").type == pa.date32()
    assert [day.cast(pa.int32()).to_pylist() for day in (every["start"], every["end"])] == [
        [19722, 19724, 19726], [19723, 19725, 19727],
    ]  # fmt: skip
    for kind, low, high in ((pa.int8(), -128, 127), (pa.uint8(), 0, 255), (pa.int64(), 0, 2**63 - 1)):
        events = pa.table({"ts": pa.array([low, high], kind), "x": [1, 2]})
        every, _ = metrics.tumbling_windows(fr.Threshold("x", ">", 2), events, 100)
        assert (every["start"][0].as_py(), every["end"][-1].as_py()) == (low, high)
