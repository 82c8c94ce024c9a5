"""However a stream is cut, pushed and punctuated, a Detector finds the frames of `detect`."""

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import frames as fr
import swag as sw
from tests.examples import share
from tests.frames.cases import COMPILED, SPECS, equal, streams, table


@st.composite
def cut_streams(draw):
    """Events in arrival order, cut into pushes, with punctuations that hold."""
    rows = draw(streams(most=16))
    times = sorted(draw(st.lists(st.integers(-1, 10), max_size=4)))
    steps, rest = [], list(rows)
    for t in times:  # what a punctuation needs must have come; some of the rest has come too
        early = [row for row in rest if row["ts"] <= t or draw(st.booleans())]
        rest = [row for row in rest if row not in early or not any(row is other for other in early)]
        steps += [("push", part) for part in _cut(draw, early)] + [("punctuate", t)]
    steps += [("push", part) for part in _cut(draw, rest)]
    return steps


def _cut(draw, rows):
    at = draw(st.integers(0, len(rows)))
    return [rows[:at], rows[at:]]


def run(detector, steps):
    tables = []
    for what, argument in steps:
        if what == "push":
            detector.push(table(argument))
        else:
            tables.append(detector.punctuate(argument))
    tables.append(detector.finish())
    return pa.concat_tables([t for t in tables if t.num_columns == tables[-1].num_columns])


def arrived(steps):
    return [row for what, argument in steps if what == "push" for row in argument]


def assert_same_rows(a, b):
    assert a.column_names == b.column_names
    for x, y in zip(a.to_pylist(), b.to_pylist(), strict=True):
        assert all(map(equal, x.values(), y.values())), f"{x} != {y}"


@pytest.mark.parametrize("name", COMPILED)
@given(steps=cut_streams())
@settings(max_examples=share(15), deadline=None)
def test_a_cut_stream_has_the_same_frames(name, steps):
    for key in (None, "k"):
        found = run(fr.Detector(SPECS[name], key=key), steps).sort_by("frame_id")
        assert_same_rows(found, fr.detect(SPECS[name], table(arrived(steps)), key=key))


@pytest.mark.parametrize("name", COMPILED)
@given(steps=cut_streams())
@settings(max_examples=share(15), deadline=None)
def test_fragments_unite_to_their_frames(name, steps):
    for key in (None, "k"):
        pieces = run(fr.Detector(SPECS[name], key=key, fragments=True), steps)
        assert_same_rows(fr.united(pieces), fr.detect(SPECS[name], table(arrived(steps)), key=key))
        assert_pieces(pieces.to_pylist())


def assert_pieces(rows):
    """Consecutive and disjoint; one final piece, the last; only that one may be empty."""
    by_frame = {}
    for row in rows:
        by_frame.setdefault(row["frame_id"], []).append(row)
    for pieces in by_frame.values():
        assert [piece["final"] for piece in pieces] == [False] * (len(pieces) - 1) + [True]
        full = [piece for piece in pieces if piece["rows"] > 0]
        assert all(piece["start"] is None and piece["final"] for piece in pieces if piece["rows"] == 0)
        assert all(a["end"] is None or a["end"] < b["start"] for a, b in itertools.pairwise(full))


def test_frames_come_out_as_soon_as_they_are_decided():
    detector = fr.Detector(fr.Threshold("x", ">", 5), fragments=False)
    detector.push({"ts": np.array([3, 1, 2]), "x": np.array([1, 7, 8])})
    assert detector.punctuate(2).num_rows == 0  # still open: 3 has not been promised
    assert detector.promised == 0
    assert detector.punctuate(3).select(["start", "end", "rows"]).to_pylist() == [{"start": 1, "end": 2, "rows": 2}]
    assert detector.promised == 3
    assert detector.finish().num_rows == 0


def test_a_long_frame_is_reported_piece_by_piece():
    #  ts  0 1 2 | 3 4 | 5 | 6      x > 5, at least two rows
    #   x  1 7 8 | 9 9 |   | 1
    detector = fr.Detector(fr.Threshold("x", ">", 5, min_rows=2), fragments=True)
    detector.push({"ts": np.arange(7), "x": np.array([1, 7, 8, 9, 9, 9, 1])})
    pieces = [detector.punctuate(t) for t in (1, 2, 4, 5, 6)]
    assert [p.num_rows for p in pieces] == [0, 1, 1, 1, 1]
    assert pa.concat_tables(pieces).select(["start", "end", "rows", "final"]).to_pydict() == {
        "start": [1, 3, 5, None], "end": [2, 4, 5, None], "rows": [2, 2, 1, 0], "final": [False, False, False, True],
    }  # fmt: skip


def test_a_broken_promise_is_refused_and_changes_nothing():
    detector = fr.Detector(fr.Boundary("x", 1.0), key="k")
    detector.push({"ts": np.array([5]), "k": np.array(["a"]), "x": np.array([0.5])})
    detector.punctuate(5)
    with pytest.raises(sw.OutOfOrder, match="promised none up to 5"):
        detector.push({"ts": np.array([6, 5]), "k": np.array(["b", "c"]), "x": np.array([0.5, 0.5])})
    with pytest.raises(sw.BadType, match="has been double so far"):
        detector.push({"ts": np.array([6]), "k": np.array(["b"]), "x": np.array([1])})
    with pytest.raises(sw.UnknownColumn, match="Boundary reads"):
        detector.push({"ts": np.array([6]), "k": np.array(["b"]), "y": np.array([1])})
    assert detector.buffered == 0
    assert detector.finish()["k"].to_pylist() == ["a"]
    with pytest.raises(sw.BadEvents, match="finished"):
        detector.push({"ts": np.array([7]), "k": np.array(["b"]), "x": np.array([0.5])})


def test_before_any_event_there_is_nothing_to_report():
    detector = fr.Detector(fr.Boundary("x", 1.0))
    assert detector.punctuate(10).num_rows == 0
    with pytest.raises(sw.OutOfOrder):
        detector.push({"ts": np.array([10]), "x": np.array([0.5])})
    assert fr.Detector(fr.Boundary("x", 1.0)).finish().num_rows == 0


def test_punctuations_may_be_datetimes_and_go_back():
    ts = pa.array([0, 60_000, 120_000], pa.timestamp("ms"))
    detector = fr.Detector(fr.Delta("x", 1.0))
    detector.push({"ts": ts, "x": np.array([0.0, 0.0, 5.0])})
    assert detector.punctuate(ts[2].as_py()).num_rows == 1
    assert detector.punctuate(ts[0].as_py()).num_rows == 0
    assert detector.finish().num_rows == 1


def test_a_sum_that_does_not_fit_leaves_the_detector_as_it_was():
    detector = fr.Detector(fr.Aggregate(sw.sum("x"), "<", 10))
    detector.push({"ts": np.array([0, 1]), "x": np.array([1, 2])})
    detector.punctuate(1)
    detector.push({"ts": np.array([2, 3, 4]), "x": np.array([1, -(2**62) - 9, -(2**62) - 9])})
    for _ in range(2):
        with pytest.raises(sw.SumOverflow):
            detector.punctuate(4)
    assert detector.buffered == 3
    assert detector.punctuate(2).num_rows == 0
    assert detector.buffered == 2


@pytest.mark.parametrize("name", COMPILED)
@pytest.mark.parametrize("fragments", [False, True])
def test_before_any_event_all_columns_are_there(name, fragments):
    for key in (None, "k"):
        detector = fr.Detector(SPECS[name], key=key, fragments=fragments)
        early = detector.punctuate(0)
        detector.push(table([{"ts": 1, "k": "a", "x": 1.0, "i": 1}]))
        late = detector.finish()
        assert early.column_names == late.column_names
        known = [a.type == b.type or pa.types.is_null(a.type) for a, b in zip(early.schema, late.schema, strict=True)]
        assert all(known)
        assert pa.concat_tables([early, late], promote_options="default").equals(late)
        assert fr.summarize(early, {"ts": [1], "k": ["a"]}, sw.count(), key=key).num_rows == 0
        assert fr.Detector(SPECS[name], key=key, fragments=fragments).finish().schema == early.schema
        typed = fr.Detector(SPECS[name], key=key)
        typed.push(table([]))
        assert typed.finish().schema == fr.detect(SPECS[name], table([]), key=key).schema


@pytest.mark.parametrize("shift", [1000, -1000, -(2**63)])
def test_a_promise_does_not_reach_the_start_of_an_open_frame(shift):
    detector = fr.Detector(fr.Boundary({"x": 2.5}))
    detector.push({"ts": [shift + 1, shift + 5], "x": [7.0, 7.0]})
    assert detector.punctuate(shift + 9).num_rows == 0
    assert detector.promised == shift


def test_what_starts_with_time_itself_leaves_nothing_to_promise():
    detector = fr.Detector(fr.Delta("x", 1))
    detector.push({"ts": [-(2**63), 2**63 - 1], "x": [1.0, 1.0]})
    detector.punctuate(0)
    assert detector.promised is None
    assert detector.finish()["rows"].to_pylist() == [2]


def test_punctuations_before_events_count_by_the_latest_and_must_be_times():
    detector = fr.Detector(fr.Delta("x", 1))
    detector.punctuate(10)
    detector.punctuate(5)
    with pytest.raises(sw.OutOfOrder, match="promised none up to 10"):
        detector.push({"ts": [7], "x": [1.0]})
    no_times = ("soon", "2024-13-01", 2**70, np.datetime64("NaT"), pa.scalar("soon"), pa.scalar(None, pa.int64()))
    for bad in (None, True, 1.5, [3], object(), *no_times):
        with pytest.raises(sw.BadType, match="no point in time"):
            detector.punctuate(bad)
    detector.push({"ts": [11], "x": [1.0]})  # nothing of what was refused is remembered
    filler = fr.Filler()
    for punctuate in (filler.punctuate_events, filler.punctuate_frames):
        with pytest.raises(sw.BadType, match="no point in time"):
            punctuate("soon")
    assert filler.push_events({"ts": [1]}).num_rows == 0


def test_a_refused_first_push_leaves_no_trace():
    detector = fr.Detector(fr.Delta("x", 1), key="k")
    with pytest.raises(sw.BadType):
        detector.push({"ts": [1], "k": ["a"], "x": ["no number"]})
    with pytest.raises(sw.BadType, match="do not fit int64"):
        detector.push({"ts": [1], "k": ["a"], "x": pa.array([2**63], pa.uint64())})
    detector.push({"ts": pa.array([1], pa.timestamp("s")), "k": [7], "x": [1.0]})
    assert detector.finish()["k"].to_pylist() == [7]


@pytest.mark.parametrize("op", ["<", ">="])
def test_functions_that_raise_leave_the_detector_as_it_was(op):
    def lift(x):
        if x > 5:
            raise ValueError("too much")
        return x

    own = sw.aggregate("x", lift=lift, combine=lambda a, b: a + b, lower=lambda a: a, identity=0.0)
    with pytest.raises(sw.BadFunction, match="too much"):
        fr.detect(fr.Aggregate(own, op, 6), {"ts": [1, 2], "x": [1.0, 9.0]})
    detector = fr.Detector(fr.Aggregate(own, op, 6))
    detector.push({"ts": [1, 2, 3], "x": [1.0, 2.0, 4.0]})
    for _ in range(2):
        with pytest.raises(sw.BadFunction, match="too much"):
            detector.push({"ts": [4, 5], "x": [1.0, 9.0]})
        assert detector.buffered == 3
    assert detector.punctuate(3)["value"].to_pylist() == ([3.0] if op == "<" else [7.0])


def test_a_combine_that_raises_leaves_the_detector_as_it_was():
    def combine(a, b):
        if a + b > 100:
            raise ValueError("too much")
        return a + b

    own = sw.aggregate("x", lift=lambda x: x, combine=combine, lower=lambda a: a, identity=0.0)
    detector = fr.Detector(fr.Aggregate(own, "<", 6))
    detector.push({"ts": [1, 2, 3, 4], "x": [1.0, 2.0, 4.0, 99.0]})
    for _ in range(2):
        with pytest.raises(sw.BadFunction, match="too much"):
            detector.punctuate(4)
        assert detector.buffered == 4
    assert detector.punctuate(3)["value"].to_pylist() == [3.0]


@pytest.mark.parametrize("op", ["<", ">="])
def test_functions_of_the_wrong_shape_are_refused(op):
    shape = sw.aggregate("x", lift=lambda x: [x], combine=lambda a, b: a, lower=lambda a: a, identity=0.0)
    for refused in (
        lambda spec: fr.detect(spec, {"ts": [1], "x": [1.0]}),
        lambda spec: fr.Detector(spec).push({"ts": [1], "x": [1.0]}),
    ):
        with pytest.raises(sw.SwagError, match="lift"):
            refused(fr.Aggregate(shape, op, 6))
