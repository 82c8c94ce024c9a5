"""`detect` finds the framing that frames.theory defines."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

import frames as fr
import swag as sw
from tests.examples import share
from tests.frames.cases import COMPILED, SPECS, actual, expected, same, streams, table


@pytest.mark.parametrize("name", COMPILED)
@given(rows=streams())
@settings(max_examples=share(30), deadline=None)
def test_detect_equals_the_final_framing(name, rows):
    spec = SPECS[name]
    for key in (None, "k"):
        found, wanted = actual(fr.detect(spec, table(rows), key=key), key), expected(spec, rows, key)
        assert same(found, wanted), f"{key}: {found} != {wanted}"


@pytest.mark.parametrize("name", COMPILED)
def test_an_empty_stream_has_no_frames_and_the_same_columns(name):
    for key in (None, "k"):
        nothing = fr.detect(SPECS[name], table([]), key=key)
        something = fr.detect(SPECS[name], table([{"ts": 1, "k": "a", "x": 1.0, "i": 1}]), key=key)
        assert nothing.num_rows == 0
        assert nothing.schema == something.schema


def test_a_table_in_place_of_a_spec_is_refused_in_one_line():
    with pytest.raises(sw.BadQuery, match=r"^a Table says nothing about frames"):
        fr.detect(pa.table({"ts": [1]}), fr.Session(5))


def test_runs_above_a_threshold():
    #  ts  0 1 2 3 4 5 6
    #   x  1 7 8 2 9 9 9
    #        [--]  [---]
    frames = fr.detect(fr.Threshold("x", ">", 5), {"ts": np.arange(7), "x": np.array([1, 7, 8, 2, 9, 9, 9])})
    assert frames.to_pydict() == {"frame_id": [0, 1], "start": [1, 4], "end": [2, 6], "rows": [2, 3]}


def test_a_run_too_short_is_part_of_the_gap_around_it():
    #   x  1 7 1 8 8 1 9
    #      gap-- [-] gap
    spec = fr.Threshold("x", ">", 5, min_rows=2, partition=True)
    frames = fr.detect(spec, {"ts": np.arange(7), "x": np.array([1, 7, 1, 8, 8, 1, 9])})
    assert frames.select(["start", "end", "rows", "kind"]).to_pydict() == {
        "start": [0, 3, 5], "end": [2, 4, 6], "rows": [3, 2, 2], "kind": ["gap", "frame", "gap"],
    }  # fmt: skip


def test_the_violating_event_opens_the_next_delta_frame():
    #   x  0 1 2 3 4     < 2, from the first event
    frames = fr.detect(fr.Delta("x", 2), {"ts": np.arange(5), "x": np.arange(5.0)})
    assert frames["start"].to_pylist() == [0, 2, 4]
    frames = fr.detect(fr.Delta("x", 2, op=">="), {"ts": np.arange(5), "x": np.arange(5.0)})
    assert frames["end"].to_pylist() == [2]  # 3 4 never reach it: an unfinished last one is no frame


def test_an_event_that_breaks_the_aggregate_alone_is_in_no_frame():
    events = {"ts": np.arange(5), "x": np.array([1, 2, 9, 3, 1])}
    frames = fr.detect(fr.Aggregate(sw.sum("x"), "<", 5), events)
    assert frames.select(["start", "end", "value"]).to_pydict() == {"start": [0, 3], "end": [1, 4], "value": [3, 4]}


def test_cells_are_open_below_and_closed_above():
    events = {"ts": np.arange(6), "x": pa.array([0.0, 0.1, 4.25, 4.26, None, float("nan")])}
    assert fr.detect(fr.Boundary("x", 4.25), events)["cell_x"].to_pylist() == [0, 1, 2, None]
    events = {"ts": np.arange(4), "x": np.array([20, 21, 40, 61])}
    assert fr.detect(fr.Boundary("x", breaks=[20, 40, 60]), events)["cell_x"].to_pylist() == [0, 1, 3]


def test_infinities_lie_in_the_outermost_cells_and_break_any_delta():
    events = {"ts": np.arange(4), "x": np.array([-np.inf, 0.5, np.inf, np.inf])}
    assert fr.detect(fr.Boundary("x", 1.0), events)["rows"].to_pylist() == [1, 1, 2]
    assert fr.detect(fr.Delta("x", 1e300, measure="range"), events)["rows"].to_pylist() == [1, 1, 2]


def test_cells_of_the_least_and_the_largest_integers():
    least = -(2**63)
    events = {"ts": np.arange(4), "x": pa.array([least, -least - 1, least + 1, None])}
    for width, cells in ((2, [-(2**62), 2**62, 1 - 2**62]), (10**18, [-9, 10, -9]), (1e19, [0, 1, 0])):
        assert fr.detect(fr.Boundary("x", width), events)["cell_x"].to_pylist() == [*cells, None]
    assert fr.detect(fr.Boundary("x", 1), events)["cell_x"].to_pylist() == [least + 1, -least - 1, least + 1, None]
    assert fr.detect(fr.Boundary("x", breaks=[0, 2**70]), events)["cell_x"].to_pylist() == [0, 1, 0, None]


def test_timestamps_keep_their_type_and_durations_have_units():
    ts = pa.array([0, 60, 120, 180, 300], pa.timestamp("s", "America/New_York"))
    frames = fr.detect(fr.Threshold("x", ">", 0, min_duration="2m"), {"ts": ts, "x": np.array([1, 1, 1, 0, 1])})
    assert frames.num_rows == 1
    assert frames.schema.field("start").type == ts.type
    assert frames["end"][0].value == 120


def test_frames_are_numbered_as_they_become_certain():
    #  ts 0 1 2 3 4 5      a is certain at 4 (three rows), b at 3
    #  a  x   x   x
    #  b    x   x
    events = {"ts": np.arange(5), "k": np.array(list("ababa")), "x": np.ones(5)}
    spec = fr.Threshold("x", ">", 0, min_duration=2)
    assert fr.detect(spec, events, key="k")["k"].to_pylist() == ["a", "b"]
    assert fr.detect(fr.Threshold("x", ">", 0, min_duration=4), events, key="k")["k"].to_pylist() == ["a"]
    swapped = {"ts": np.array([0, 2, 4, 1, 3]), "k": np.array(list("aaabb")), "x": np.ones(5)}
    assert fr.detect(fr.Boundary("x", 1), swapped, key="k")["start"].to_pylist() == [0, 1]


MANY = [
    "partition, rows", "boundary, grid", "delta range <", "sum >=", "median", "partition, open", "boundary, durations",
    "delta >=, open", "sum >=, open", "session, split, short", "state, open", "between, open",
]  # fmt: skip


@pytest.mark.parametrize("name", MANY)
def test_keys_on_several_cores_and_growing_buffers(name, monkeypatch):
    rng = np.random.default_rng(5)
    size = 300_000
    events = pa.table({
        "ts": np.sort(rng.integers(0, 100_000, size)), "k": rng.integers(0, 5_000, size),
        "x": rng.normal(size=size), "i": rng.integers(0, 4, size),
    })  # fmt: skip
    monkeypatch.setenv("SWAG_THREADS", "4")
    several = fr.detect(SPECS[name], events, key="k")
    monkeypatch.setenv("SWAG_THREADS", "1")
    assert several.equals(fr.detect(SPECS[name], events, key="k"))
    by_key = np.lexsort((np.arange(size), np.asarray(events["k"])))
    grouped = fr.detect(SPECS[name], events.take(pa.array(by_key)), key="k")
    as_sets = [
        sorted(map(str, zip(*(t[c].to_pylist() for c in ("k", "start", "end", "rows")), strict=True)))
        for t in (several, grouped)
    ]
    assert as_sets[0] == as_sets[1]


def test_an_integer_sum_that_leaves_int64_is_refused():
    big = {"ts": np.arange(2), "x": np.array([-(2**62) - 1, -(2**62) - 1])}
    with pytest.raises(sw.SumOverflow, match="does not fit int64"):
        fr.detect(fr.Aggregate(sw.sum("x"), "<", 5), big)
    huge = {"ts": np.arange(2), "x": np.array([2**62, 2**62])}
    assert fr.detect(fr.Aggregate(sw.sum("x"), "<", 2**63 - 1), huge)["rows"].to_pylist() == [1, 1]


def test_a_positive_value_is_in_no_cell_below_the_first():
    for x, width in ((5e-324, 2**62), (1e-310, 1e300), (1e-300, 1.7e308)):
        events = {"ts": [0, 1, 2], "x": [-x, 0.0, x]}
        assert fr.detect(fr.Boundary("x", width), events)["cell_x"].to_pylist() == [0, 1]
        assert [fr.theory.cell(fr.Boundary("x", width), {"x": v}) for v in events["x"]] == [(0,), (0,), (1,)]


def test_a_run_may_last_for_all_time():
    ends = {"ts": [-(2**63), 2**63 - 1], "x": [1, 1]}
    for least in (0, 1, 2**63 - 1):
        assert fr.detect(fr.Threshold("x", ">", 0, min_duration=least), ends)["rows"].to_pylist() == [2]


def test_a_key_named_as_a_column_of_cells_is_refused():
    with pytest.raises(sw.BadQuery, match="rename the key"):
        fr.detect(fr.Boundary("x", 1), {"ts": [1], "x": [1.0], "cell_x": ["a"]}, key="cell_x")
