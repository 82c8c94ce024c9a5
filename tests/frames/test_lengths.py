"""How short and how long frames may be, and where they end: examples that one can count."""

import datetime

import numpy as np
import pyarrow as pa
import pytest

import frames as fr
import swag as sw

LEAST, LARGEST = -(2**63), 2**63 - 1


def spans(spec, ts, x, **more):
    found = fr.detect(spec, {"ts": pa.array(ts, pa.int64()), "x": x, **more})
    return list(zip(*(found[name].to_pylist() for name in ("start", "end", "rows")), strict=True))


def test_the_event_that_would_be_too_much_opens_the_next_frame():
    #  ts        0 1 2 3 4 . . . 8
    #  max 2     [-] [-] |       |
    #  within 2  [---] [-]       |
    ts, x = [0, 1, 2, 3, 4, 8], [1] * 6
    assert spans(fr.Threshold("x", ">", 0, max_rows=2), ts, x) == [(0, 1, 2), (2, 3, 2), (4, 8, 2)]
    assert spans(fr.Boundary("x", 1, max_duration=2), ts, x) == [(0, 2, 3), (3, 4, 2), (8, 8, 1)]
    assert spans(fr.State("x", max_duration=2, min_rows=2), ts, x) == [(0, 2, 3), (3, 4, 2)]
    assert spans(fr.Session(9, max_rows=4, min_duration=4), ts, x) == [(4, 8, 2)]


def test_what_a_maximum_has_closed_is_a_frame_that_reached_nothing():
    ts, x = range(7), [1, 1, 1, 30, 1, 1, 1]
    assert spans(fr.Aggregate(sw.sum("x"), ">=", 25, max_rows=3), ts, x) == [(0, 2, 3), (3, 3, 1)]
    assert spans(fr.Aggregate(sw.sum("x"), ">=", 25, max_rows=3, min_rows=2), ts, x) == [(0, 2, 3)]
    found = fr.detect(fr.Aggregate(sw.sum("x"), ">=", 25, max_rows=2), {"ts": list(ts), "x": x})
    assert found["value"].to_pylist() == [2, 31, 2]
    assert spans(fr.Delta("x", 5, op=">", max_duration=1), ts, x) == [(0, 1, 2), (2, 3, 2), (4, 5, 2)]


def test_a_between_that_is_split_stays_open():
    ts, x = range(8), [0, 9, 5, 5, 5, 1, 5, 9]
    assert spans(fr.Between("x > 8", "x < 2", max_rows=2), ts, x) == [(1, 2, 2), (3, 4, 2), (5, 5, 1), (7, 7, 1)]
    assert spans(fr.Between("x > 8", "x < 2"), ts, x) == [(1, 5, 5), (7, 7, 1)]


def test_an_event_closes_what_it_has_opened_if_that_is_wanted():
    ts, x = range(4), [9, 1, 9, 1]
    assert spans(fr.Between("x > 0", "x > 5"), ts, x) == [(0, 2, 3), (3, 3, 1)]
    assert spans(fr.Between("x > 0", "x > 5", same=True), ts, x) == [(0, 0, 1), (1, 2, 2), (3, 3, 1)]


def test_a_piece_that_is_too_short_is_part_of_the_gap_around_it():
    #  x   . 1 1 1 1 1 . .      pieces of 3 and of 2; the second is too short
    events = {"ts": np.arange(8), "x": np.array([0, 1, 1, 1, 1, 1, 0, 0])}
    found = fr.detect(fr.Threshold("x", ">", 0, min_rows=3, max_rows=3, partition=True), events)
    rows = sorted(zip(*(found[name].to_pylist() for name in ("start", "end", "kind")), strict=True))
    assert rows == [(0, 0, "gap"), (1, 3, "frame"), (4, 7, "gap")]


def test_gaps_are_as_long_as_they_are():
    events = {"ts": np.arange(9), "x": np.array([0, 0, 0, 0, 1, 1, 1, 1, 1])}
    found = fr.detect(fr.Threshold("x", ">", 0, max_rows=2, partition=True), events)
    assert found["rows"].to_pylist() == [4, 2, 2, 1]


def test_time_in_half_open_frames_adds_up_to_all_time():
    events = {"ts": np.array([0, 10, 25, 40, 90]), "k": np.array(list("aabab")), "level": np.array(list("xxyzy"))}
    found = fr.detect(fr.State("level", extent="open"), events)
    assert found["end"].to_pylist() == [25, 40, 90, None]
    assert found["start"].to_pylist()[1:] == found["end"].to_pylist()[:-1]
    keyed = fr.detect(fr.State("level", extent="open"), events, key="k")
    assert sorted(zip(keyed["k"].to_pylist(), keyed["end"].to_pylist(), strict=True), key=str) == [
        ("a", 40), ("a", None), ("b", None)
    ]  # fmt: skip


def test_a_half_open_frame_comes_out_with_the_event_that_ends_it():
    for spec in (fr.Threshold("x", ">", 5, extent="open"), fr.Between("x > 5", "x > 5", extent="open")):
        detector = fr.Detector(spec)
        detector.push({"ts": [1, 2], "x": [9, 9]})
        assert detector.punctuate(4).num_rows == 0
        assert detector.promised == 0
        detector.push({"ts": [7], "x": [0]})
        assert detector.punctuate(7).to_pylist() == [{"frame_id": 0, "start": 1, "end": 7, "rows": 2}]
        detector.push({"ts": [8, 9], "x": [9, 9]})
        assert detector.finish().to_pylist() == [{"frame_id": 1, "start": 8, "end": None, "rows": 2}]


def test_half_open_frames_are_filled_up_to_their_end():
    found = fr.detect(fr.Threshold("x", ">", 5, extent="open"), {"ts": [1, 3, 6, 8], "x": [9, 9, 0, 9]})
    other = {"ts": [0, 1, 5, 6, 7, 8, 99], "y": [1] * 7}
    inside = fr.fill(found, other)
    assert list(zip(inside["ts"].to_pylist(), inside["frame_id"].to_pylist(), strict=True)) == [
        (1, 0), (5, 0), (8, 1), (99, 1)
    ]  # fmt: skip
    assert fr.summarize(found, other, sw.count(), after=1)["count()"].to_pylist() == [3, 2]
    filler = fr.Filler()
    filler.push_frames(found)
    assert filler.push_events(other).num_rows == 4


def test_half_open_frames_own_their_events_where_the_next_has_the_same_ts():
    events = {"ts": [1, 2, 2, 3], "x": [9, 9, 0, 9]}
    found = fr.detect(fr.Threshold("x", ">", 5, extent="open"), events)
    assert found["end"].to_pylist() == [2, None]
    assert fr.summarize(found, events, [sw.count(), sw.min("x")])["min(x)"].to_pylist() == [9, 9]
    assert fr.fill(found, events)["ts"].to_pylist() == [1, 2, 3]
    text = "SELECT COUNT(*) AS n, MIN(x) AS least FROM t [FRAME WHERE x > 5 EXTENT OPEN]"
    assert sw.evaluate(text, events).to_pylist() == [
        {"frame_id": 0, "start": 1, "end": 2, "rows": 2, "n": 2, "least": 9},
        {"frame_id": 1, "start": 3, "end": None, "rows": 1, "n": 1, "least": 9},
    ]


def test_lengths_from_one_end_of_time_to_the_other():
    ts = [LEAST, 0, LARGEST]
    assert spans(fr.Session(LARGEST), ts, [1] * 3) == [(LEAST, LEAST, 1), (0, LARGEST, 2)]
    assert spans(fr.Threshold("x", ">", 0, max_duration=LARGEST), ts, [1] * 3) == [(LEAST, LEAST, 1), (0, LARGEST, 2)]
    assert spans(fr.Threshold("x", ">", 0, min_duration=LARGEST), ts, [1] * 3) == [(LEAST, LARGEST, 3)]
    assert spans(fr.Boundary("x", 1, max_duration=0), [LARGEST] * 2, [1] * 2) == [(LARGEST, LARGEST, 2)]
    open_ended = spans(fr.State("x", extent="open"), [LEAST, LARGEST], [1, 2])
    assert open_ended == [(LEAST, LARGEST, 1), (LARGEST, None, 1)]


def test_durations_of_timestamps_have_units_and_are_compared_in_that_of_ts():
    ts = pa.array([0, 60, 120, 180, 300], pa.timestamp("s"))
    spec = fr.Session(datetime.timedelta(minutes=1), max_duration="2m", extent="open")
    found = fr.detect(spec, {"ts": ts})
    assert [each and each.minute for each in found["end"].to_pylist()] == [3, 5, None]
    with pytest.raises(sw.BadQuery, match="max_duration=1 is below min_duration='2m'"):
        fr.detect(fr.Session("1m", min_duration="2m", max_duration=1), {"ts": ts})


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["a", "a", None, None, "b"]),
        pa.array(["a", "a", None, None, "b"]).dictionary_encode(),
        pa.array([0.0, -0.0, float("nan"), float("nan"), 1.0]),
        pa.array([True, True, None, None, False]),
        pa.array([datetime.date(2024, 1, 1)] * 2 + [None] * 2 + [datetime.date(2024, 1, 2)]),
        pa.array([b"a", b"a", None, None, b""]),
        pa.array([1, 1, 2**64 - 1, 2**64 - 1, 0], pa.uint64()),
        pa.array([None] * 5, pa.string()),
        pa.nulls(5),
    ],
    ids=lambda values: str(values.type),
)
def test_states_of_every_type(values):
    found = fr.detect(fr.State("s"), {"ts": np.arange(5), "s": values})
    whole = values.null_count == 5
    assert found["rows"].to_pylist() == ([5] if whole else [2, 2, 1])
    assert repr(found["s"].to_pylist()) == repr([values[i].as_py() for i in ([0] if whole else [0, 2, 4])])
    detector = fr.Detector(fr.State("s"))
    detector.push({"ts": np.arange(3), "s": values[:3]})
    early = detector.punctuate(2)
    detector.push({"ts": np.arange(3, 5), "s": values[3:]})
    assert pa.concat_tables([early, detector.finish()])["rows"].to_pylist() == found["rows"].to_pylist()


def test_values_that_nothing_has_any_more_are_forgotten():
    detector = fr.Detector(fr.State("s"), key="k")
    for batch in range(8):
        at = np.arange(2_000) + 2_000 * batch
        detector.push({"ts": at, "k": at % 3, "s": [f"value {i // 6}" for i in at]})
        found = detector.punctuate(int(at[-1]))
        assert found["rows"].to_pylist()[3:] == [2] * (found.num_rows - 3)
    _, arrays = detector.state()
    assert next(array.size for name, array in arrays.items() if name.endswith("values/ends")) < 5_000


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        (fr.Threshold("x"), "true or false, but x is int64"),
        (fr.Threshold("x + 1"), "true or false"),
        (fr.Threshold("y > 1"), '"y"'),
        (fr.Between("x > 1", "name"), "true or false, but name is string"),
        (fr.Session("1m"), "integer column"),
        (fr.State("list"), "can not be grouped by"),
    ],
)
def test_what_is_no_predicate_of_these_events_is_refused(spec, says):
    events = pa.table({"ts": [1, 2], "x": [1, 2], "name": ["a", "b"], "list": [[1], [2]]})
    with pytest.raises(sw.SwagError, match=says):
        fr.detect(spec, events)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: fr.Threshold("x", ">"), "with a number"),
        (lambda: fr.Threshold(" "), "predicate in SQL"),
        (lambda: fr.Between("x > 1", 7), "predicate in SQL"),
        (lambda: fr.Between("x > 1", "x < 1", same=1), "True nor False"),
        (lambda: fr.State("rows"), "as one of every table of frames is"),
        (lambda: fr.Session(-1), "negative"),
        (lambda: fr.Session(None), "neither a whole number nor a duration"),
        (lambda: fr.detect(fr.State("k"), {"ts": [1], "k": [1]}, key="k"), "rename the key column"),
    ],
)
def test_what_means_nothing_is_refused(make, says):
    with pytest.raises(sw.SwagError, match=says):
        make()


def test_null_is_not_true_whatever_stands_around_it():
    events = {"ts": [1, 2, 3], "x": pa.array([1.0, None, float("nan")]), "y": [0, 0, 1]}
    assert fr.detect(fr.Threshold("x > 0 OR y = 1"), events)["start"].to_pylist() == [1, 3]
    assert fr.detect(fr.Threshold("NOT x > 0"), events).num_rows == 0
    assert fr.detect(fr.Threshold("x IS NULL"), events)["start"].to_pylist() == [2]
