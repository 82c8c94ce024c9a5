"""What means nothing is refused where it is written, with a hint."""

import numpy as np
import pytest

import frames as fr
import swag as sw
from frames import theory
from frames.scans.kinds import SCANS
from frames.specs.kinds import KINDS
from tests.frames.cases import CUSTOM, SPECS

EVENTS = {"ts": np.arange(3), "x": np.arange(3.0), "name": np.array(["a", "b", "c"])}


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: fr.Threshold("x", "!=", 1), "compares by"),
        (lambda: fr.Threshold("x", ">", "1"), "with a number"),
        (lambda: fr.Threshold("x", ">", float("nan")), "with a number"),
        (lambda: fr.Threshold("", ">", 1), "name of a column"),
        (lambda: fr.Threshold("x", ">", 1, min_rows=0), "min_rows"),
        (lambda: fr.Threshold("x", ">", 1, min_duration="2 parsecs"), "not a duration"),
        (lambda: fr.Threshold("x", ">", 1, min_duration=-1), "negative"),
        (lambda: fr.Threshold("x", ">", 1, partition=1), "True nor False"),
        (lambda: fr.Boundary("x", 1, max_rows=0), "max_rows=0 is not a whole number"),
        (lambda: fr.Delta("x", 1, max_rows=1.5), "max_rows=1.5 is not a whole number"),
        (lambda: fr.Delta("x", 1, min_rows=3, max_rows=2), "max_rows=2 is below min_rows=3"),
        (lambda: fr.Aggregate(sw.count(), ">", 3, max_duration="1m", min_duration="2m"), "is below min_duration"),
        (lambda: fr.Boundary("x", 1, max_duration=-1), "max_duration=-1 is negative"),
        (lambda: fr.Boundary("x", 1, extent="half"), "neither"),
        (lambda: fr.Boundary("x"), "either a width or breaks"),
        (lambda: fr.Boundary("x", 1, breaks=[1]), "either a width or breaks"),
        (lambda: fr.Boundary("x", 0), "number > 0"),
        (lambda: fr.Boundary("x", breaks=[2, 1]), "do not ascend"),
        (lambda: fr.Boundary("x", breaks=[]), "neither a width nor breaks"),
        (lambda: fr.Boundary({}), "mapping"),
        (lambda: fr.Boundary(["x", "y"], 2), "name of a column"),
        (lambda: fr.Boundary("x", breaks=3), "not a list of numbers"),
        (lambda: fr.Boundary("x", breaks=np.array(3)), "not a list of numbers"),
        (lambda: fr.Boundary("x", breaks=[1, float("nan")]), "are numbers; one is nan"),
        (lambda: fr.Delta("x"), "a column and x"),
        (lambda: fr.Delta(["x", "y"], 1), "name of a column"),
        (lambda: fr.Delta("x", 0), "no spread is below 0"),
        (lambda: fr.Delta("x", 1, measure="last"), "neither"),
        (lambda: fr.Delta("x", 1, op="=="), "compares by"),
        (lambda: fr.Aggregate("sum", ">", 1), "aggregate of swag"),
        (lambda: fr.Aggregate(sw.sum("x"), "==", 1), "compares by"),
        (lambda: fr.detect("x > 1", EVENTS), "nothing about frames"),
        (lambda: fr.detect(fr.Threshold("y", ">", 1), EVENTS), '"y"'),
        (lambda: fr.detect(fr.Threshold("name", ">", 1), EVENTS), "type string"),
        (lambda: fr.detect(fr.Threshold("x", ">", 1, min_duration="2m"), EVENTS), "integer column"),
        (lambda: fr.detect(fr.Threshold("x", ">", 1), EVENTS, ts="name"), "ts is an integer or a timestamp"),
        (
            lambda: fr.detect(fr.Threshold("x", ">", 1), {**EVENTS, "start": np.arange(3)}, key="start"),
            "rename the key",
        ),
        (lambda: fr.detect(fr.Threshold("x", ">", 1), EVENTS, ts=None), "ts is None, which is not the name"),
        (lambda: fr.detect(fr.Threshold("x", ">", 1), EVENTS, key=["name", "name"]), "names a column twice"),
        (lambda: fr.detect(fr.Threshold("x", ">", 1), EVENTS, key=["name", "rows"]), "rename the key"),
        (lambda: fr.Detector(fr.Threshold("x", ">", 1)).push([1, 2]), "no dict"),
        (lambda: fr.Filler(before=1.5), "neither a whole number nor a duration"),
        (lambda: fr.Filler(after="soon"), 'not a duration.* Hint: "5m"'),
        (lambda: fr.theory.final(fr.Threshold("X", ">", 1), EVENTS), 'no "X", but: ts, x, name'),
        (lambda: fr.theory.final(fr.Threshold("x", ">", 0, min_duration="2m"), EVENTS), "unit of an integer ts"),
        (lambda: fr.metrics.tumbling_windows(fr.Threshold("x", ">", 1), EVENTS, 1, "median"), "min, max, avg"),
    ],
)
def test_is_refused(make, says):
    with pytest.raises(sw.SwagError, match=says):
        make()


def test_specs_are_values():
    assert fr.Boundary({"x": 4.25, "y": 4.2}) == fr.Boundary({"x": 4.25, "y": 4.2})
    assert hash(fr.Delta("x", 1)) == hash(fr.Delta({"x": 1}))
    assert fr.Delta("x", 1) != fr.Delta("x", 1, op="<=")
    assert len({fr.Threshold("x", ">", 1), fr.Threshold("x", ">", 1)}) == 1


def test_bounds_beyond_the_numbers():
    whole, floats = {"ts": np.arange(2), "x": np.array([1, 2])}, {"ts": np.arange(2), "x": np.array([1, np.inf])}
    assert fr.detect(fr.Threshold("x", "<", float("inf")), whole)["rows"].to_pylist() == [2]
    assert fr.detect(fr.Threshold("x", ">", 10**30), whole).num_rows == 0
    assert fr.detect(fr.Threshold("x", ">", float("inf")), floats).num_rows == 0
    assert fr.detect(fr.Threshold("x", ">=", float("inf")), floats)["start"].to_pylist() == [1]
    assert fr.detect(fr.Threshold("x", "==", 1.5), whole).num_rows == 0
    assert fr.detect(fr.Delta("x", float("inf"), op="<="), floats)["rows"].to_pylist() == [2]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_every_kind_has_a_scan_and_a_definition(kind):
    assert kind in SCANS
    assert getattr(fr, kind.__name__) is kind, "frames/__init__.py lists it"
    examples = {type(spec) for spec in (*SPECS.values(), *CUSTOM.values())}
    assert kind in examples, "SPECS of tests/frames/cases.py has an example, which the properties try"
    assert theory.holds.dispatch(kind) is not theory.holds.dispatch(object)
