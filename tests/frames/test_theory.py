"""The papers' conditions and closures, on small streams: what the docs say about uniqueness is what holds."""

import pyarrow as pa
import pytest
from hypothesis import given, settings

import frames as fr
import swag as sw
from frames import theory
from tests.frames.cases import SPECS, SUM_OF_SQUARES, streams


def events(*values):
    return [{"ts": t, "x": v} for t, v in enumerate(values)]


UNION = [name for name, spec in SPECS.items() if spec.union_closed and spec.max_rows is spec.max_duration is None]


@pytest.mark.parametrize("name", UNION)
@given(rows=streams(most=8, keys=1))
@settings(max_examples=25, deadline=None)
def test_maximal_frames_cover_are_drained_and_disjoint(name, rows):
    spec = SPECS[name]
    found, framing = theory.candidates(spec, rows), theory.final(spec, rows)
    assert theory.has_union_closure(found)
    assert all(theory.is_maximal(frame, found) for frame in framing)
    assert theory.covers(framing, found)
    assert theory.is_drained(framing, found)
    assert theory.is_saturated(framing, found)
    assert theory.is_disjoint(framing)
    if not isinstance(spec, fr.Threshold) and (spec.min_rows, spec.min_duration) == (1, 0):
        assert theory.partitions(framing, rows)


@pytest.mark.parametrize("name", [name for name in SPECS if "split" in name])
@given(rows=streams(most=8, keys=1))
@settings(max_examples=15, deadline=None)
def test_no_frame_is_too_long_or_too_short(name, rows):
    spec, own = SPECS[name], theory.in_order(rows)
    framing = theory.final(spec, rows)
    assert theory.is_disjoint(framing)
    for s, e in framing:
        assert theory.is_short_enough(spec, own[s : e + 1])
        assert theory.is_long_enough(spec, own[s : e + 1])


@given(rows=streams(most=8, keys=1))
@settings(max_examples=40, deadline=None)
def test_delta_by_range_has_the_closures_that_make_it_unique(rows):
    below, above = fr.Delta("i", 2, measure="range"), fr.Delta("i", 2, measure="range", op=">=")
    assert theory.has_sub_interval_closure(theory.candidates(below, rows))
    assert theory.has_super_interval_closure(theory.candidates(above, rows), rows)
    assert theory.partitions(theory.final(below, rows), rows)
    assert theory.is_disjoint(theory.final(above, rows))


@pytest.mark.parametrize("aggregate", [sw.count(), sw.count("x"), sw.max("i"), SUM_OF_SQUARES])
@given(rows=streams(most=8, keys=1))
@settings(max_examples=25, deadline=None)
def test_monotone_aggregates_have_the_closures_that_make_them_unique(aggregate, rows):
    rows = [row for row in rows if row["x"] == row["x"]]
    below, above = fr.Aggregate(aggregate, "<", 3), fr.Aggregate(aggregate, ">=", 3)
    assert theory.has_sub_interval_closure(theory.candidates(below, rows))
    assert theory.has_super_interval_closure(theory.candidates(above, rows), rows)
    for spec in (below, above):
        assert theory.is_disjoint(theory.final(spec, rows))
    assert theory.covers(theory.final(below, rows), theory.candidates(below, rows))
    assert theory.is_saturated(theory.final(above, rows), theory.candidates(above, rows))


def test_greedy_and_literal_reading_differ_for_delta_frames():
    rows, spec = events(0, 1, 2, 3), fr.Delta("x", 2.5, measure="range")
    found = theory.candidates(spec, rows)
    literal = [frame for frame in found if theory.is_maximal(frame, found)]
    assert literal == [(0, 2), (1, 3)]  # covers, is drained, but overlaps
    assert theory.covers(literal, found)
    assert theory.is_drained(literal, found)
    assert theory.final(spec, rows) == [(0, 2), (3, 3)]


def test_greedy_and_literal_reading_differ_for_aggregate_frames():
    rows, spec = events(1, 30), fr.Aggregate(sw.sum("x"), ">=", 25)
    found = theory.candidates(spec, rows)
    assert [frame for frame in found if theory.is_minimal(frame, found)] == [(1, 1)]
    assert theory.final(spec, rows) == [(0, 1)]


def test_measure_first_and_means_have_no_closure_and_are_greedy_by_definition():
    rows = events(0, 3, 1, 4)
    assert not theory.has_sub_interval_closure(theory.candidates(fr.Delta("x", 3.5), events(3, 0, 4)))
    assert not theory.has_sub_interval_closure(theory.candidates(fr.Aggregate(sw.mean("x"), "<", 2), rows))
    assert theory.final(fr.Aggregate(sw.mean("x"), "<", 2), rows) == [(0, 2)]


def test_possible_frames_and_tables():
    assert theory.possible(events(1, 2, 3)) == [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]
    assert theory.final(fr.Threshold("x", ">", 1), {"ts": [2, 1, 0], "x": [5, 0, 7]}) == [(0, 0), (2, 2)]
    assert theory.gaps([(1, 1)], events(1, 2, 3)) == [(0, 0), (2, 2)]


@pytest.mark.parametrize(("tiny", "expected"), [(5e-324, True), (1e-200, True), (1e-100, False)])
def test_a_correlation_of_numbers_whose_squares_are_none_is_not_known(tiny, expected):
    events = [{"x": 0.0, "i": -1}, {"x": tiny, "i": 0}]
    found = theory.aggregate(sw.corr("x", "i"), events)
    assert (found != found) == expected
    frames = fr.detect(
        fr.Aggregate(sw.corr("x", "i"), ">", 0), pa.table({"ts": [0, 1], "x": [0.0, tiny], "i": [-1, 0]})
    )
    assert (frames.num_rows == 0) == expected
