"""Frames that are cut by conditions over several aggregates: against their definition, and what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings

import frames as fr
import swag as sw
from tests.frames.cases import FURTHER, actual, expected, same, streams, table
from tests.frames.uncompiled import only_uncompiled, run_uncompiled


@only_uncompiled
@pytest.mark.parametrize("name", FURTHER)
@settings(deadline=None)
@given(rows=streams())
def test_property_conditions_follow_their_definition(name, rows):
    for key in (None, "k"):
        found = fr.detect(FURTHER[name], table(rows), key=key)
        assert same(actual(found, key), expected(FURTHER[name], rows, key))


def test_conditions_of_many_shapes_follow_their_definition():
    run_uncompiled(__file__)


def test_one_comparison_is_one_aggregate_compared():
    assert fr.Aggregate(sw.sum("v") > 10) == fr.Aggregate(sw.sum("v"), ">", 10)
    assert fr.Aggregate(sw.sum("v") < 10, close="before") == fr.Aggregate(sw.sum("v"), "<", 10)
    assert fr.Aggregate(sw.sum("v"), "<", 10, close="with").reported == ("value",)
    assert fr.Aggregate((sw.sum("v") > 1) & (sw.count() > 2)).reported == ()
    assert fr.Aggregate(sw.median("v") > 3) == fr.Aggregate(sw.median("v"), ">", 3)
    for spec in FURTHER.values():
        again = fr.Aggregate.from_json(spec.to_json())
        assert again == spec and repr(again) == repr(spec)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (((sw.sum("v") > 1) & (sw.count() < 3),), "both directions"),
        ((sw.sum("v").eq(3),), "both directions"),
        ((sw.sum("v") > 1, ">", 3), "compared already"),
        ((sw.sum("v") - sw.sum("w"),), "compares by"),
        ((~(sw.sum("v") > 1),), "not cut by NOT"),
        ((sw.age(), ">", 3), "not cut by age"),
        ((sw.median("v") - sw.min("v"), ">", 3), "by itself"),
        (((sw.median("v") > 3) & (sw.count() > 3),), "by itself"),
        ((sw.sum("v").over(sw.Rows(3)) > 3,), "no window of its own"),
        ((sw.last("v") > "a",), "compares with a number"),
        ((3, ">", 3), "takes an aggregate"),
    ],
)
def test_what_is_no_condition_of_a_frame_is_refused(arguments, says):
    with pytest.raises(sw.BadQuery, match=says):
        fr.Aggregate(*arguments)


def test_integers_are_exact_and_one_that_leaves_int64_is_an_error():
    big = 2**62
    events = {"ts": np.arange(4), "a": np.array([big, big + 1, 5, 6]), "b": np.array([big, big, 5, 6])}
    assert fr.detect(fr.Aggregate(sw.max("a") - sw.min("b"), ">=", 1), events)["value"].to_pylist() == [1, 1]
    with pytest.raises(sw.SumOverflow, match="does not fit int64"):
        fr.detect(fr.Aggregate(sw.max("a") - sw.min("b"), ">", 3), {**events, "b": -events["a"]})
