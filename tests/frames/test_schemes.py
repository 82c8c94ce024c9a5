"""Framing schemes as values: which closure they have, what the lemmas say of that, and what all sets of frames say."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import frames as fr
import swag as sw
from frames import theory
from tests.examples import share
from tests.frames.cases import COMPILED, CUSTOM, SPECS, interval, streams, table

VALUES = st.lists(st.integers(0, 4), max_size=6)


def events(values):
    return [{"ts": t, "x": x} for t, x in enumerate(values)]


@pytest.mark.parametrize(
    ("spec", "closure", "lemma"),
    [
        (fr.Threshold("x", ">", 1), "union", 1),
        (fr.Boundary("x", 2), "union", 1),
        (fr.Delta("x", 2, measure="range"), "sub-interval", 2),
        (fr.Delta("x", 2, measure="range", op=">="), "super-interval", 2),
        (fr.Aggregate(sw.sum("x"), "<", 5), "sub-interval", 2),
        (fr.Aggregate(sw.sum("x"), ">=", 5), "super-interval", 2),
        (fr.Aggregate((sw.sum("x") > 3) & (sw.count() >= 2)), "super-interval", 2),
    ],
)
@given(values=VALUES)
def test_a_kind_has_its_closure_and_so_its_framing_is_the_one_that_is_found(spec, closure, lemma, values):
    rows, scheme = events(values), theory.Scheme.of(spec)
    assert closure in scheme.closures(rows)
    assert scheme.lemma(rows) == lemma
    assert scheme.is_unique(rows)
    assert scheme.final(rows) == theory.final(spec, rows)


@pytest.mark.parametrize("name", COMPILED)
@given(rows=streams(most=7, keys=1))
@settings(max_examples=share(15), deadline=None)
def test_what_the_scheme_of_a_kind_says_is_unique_is_what_is_found(name, rows):
    spec = SPECS[name]
    scheme = theory.Scheme.of(spec)
    if scheme.is_unique(rows):
        framing = theory.final(spec, rows)
        assert scheme.lemma(rows) in (1, 2) and scheme.final(rows) == framing
        found, own = fr.detect(spec, table(rows)).to_pylist(), theory.in_order(rows)
        found = [(row["start"], row["end"], row["rows"]) for row in found if row.get("kind") != "gap"]
        assert sorted(found, key=str) == sorted((interval(spec, own, s, e) for s, e in framing), key=str)
    else:
        with pytest.raises(sw.BadQuery, match="no lemma says"):
            scheme.final(rows)


@pytest.mark.parametrize(
    "spec", [fr.Pattern("A+", {"A": "x > 2"}), fr.Between(start="x > 3", end="x < 2"), CUSTOM["custom threshold"]]
)
def test_no_lemma_is_about_walks(spec):
    scheme = theory.Scheme.of(spec)
    for values in ([], [5.0], [5.0, 5.0, 5.0], [5.0, 1.0]):
        assert scheme.lemma(events(values)) is None and not scheme.is_unique(events(values))
        with pytest.raises(sw.BadQuery, match="no lemma says"):
            scheme.final(events(values))


@pytest.mark.parametrize("wrong", [[{"x": 1}], {"x": [1]}, [{"ts": 1}, {"t": 2}]])
def test_events_without_their_time_are_refused(wrong):
    scheme = theory.Scheme(lambda run: True)
    for asked in (scheme.candidates, scheme.closures, scheme.lemma, scheme.final, scheme.framings, scheme.is_unique):
        with pytest.raises(sw.UnknownColumn, match='no "ts"'):
            asked(wrong)
    with pytest.raises(sw.BadEvents, match="is no event"):
        scheme.final([7])


@given(candidates=st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4)).filter(lambda f: f[0] <= f[1]), max_size=7))
def test_what_lemma_1_says_is_unique_is_so_by_trying_all_sets(candidates):
    scheme = theory.Scheme(lambda run: (run[0]["ts"], run[-1]["ts"]) in candidates, maximal=True, covering=True)
    rows = events(range(5))
    assert set(scheme.candidates(rows)) == candidates
    if scheme.lemma(rows) == 1:
        assert list(map(sorted, scheme.framings(rows))) == [sorted(scheme.final(rows))]
        assert theory.is_disjoint(scheme.final(rows)) and theory.is_drained(scheme.final(rows), candidates)


def test_lemma_2_is_about_the_walk_from_left_to_right():
    #  x  0 1 2 3 4     range < 1.5: pairs of neighbours; event 2 may be in [1 2] or in [2 3]
    scheme = theory.Scheme.of(fr.Delta("x", 1.5, measure="range"))
    rows = events(range(5))
    assert scheme.lemma(rows) == 2
    assert scheme.final(rows) == [(0, 1), (2, 3), (4, 4)]
    assert scheme.framings(rows) == [[(0, 1), (1, 2), (3, 4)], [(0, 1), (2, 3), (3, 4)]]


def test_without_a_closure_there_may_be_several_framings_or_none():
    rows = events([1, 1, 1])
    pairs = theory.Scheme(lambda run: len(run) == 2, maximal=True, saturated=True)
    assert pairs.closures(rows) == () and not pairs.is_unique(rows)
    assert pairs.framings(rows) == [[(0, 1)], [(1, 2)], [(0, 1), (1, 2)]]
    with pytest.raises(sw.BadQuery, match="no lemma says"):
        pairs.final(rows)
    with pytest.raises(sw.BadQuery, match="fewer events"):
        theory.Scheme(lambda run: True).framings(events([1] * 9))
    with pytest.raises(sw.BadQuery, match="neither a spec nor a function"):
        theory.Scheme(7)
