"""User-defined aggregates whose functions raise, do not compile or give what they must not; of integers and floats."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import frames as fr
import swag as sw
from swag.live import planner
from tests.examples import share

ALGORITHMS = ["auto", "b-int", "l-int", "psoup", "materialize-all", "materialize-none"]


def refuses_negative(x: float) -> float:
    if x < 0:
        raise ValueError("too small")
    return x


def at_most_ten(a: float, b: float) -> float:
    if a + b > 10:
        raise ValueError("too large")
    return a + b


def add(a: Any, b: Any) -> Any:
    return a + b


def itself(a: Any) -> Any:
    return a


def not_seven(a: float) -> float:
    if a == 7:
        raise ValueError("seven")
    return a


CAREFUL = sw.aggregate("x", refuses_negative, at_most_ten, not_seven, identity=0.0).alias("careful")
WHOLE = sw.aggregate("x", itself, add, itself, identity=0, invert=lambda a, b: a - b).alias("whole")
SQUARES = sw.aggregate("x", lambda x: x * x, add, itself, identity=0.0).alias("squares")
BITS = sw.aggregate("x", lambda x: x & 255, lambda a, b: a | b, itself, identity=0).alias("bits")


def query(aggregate: Any = CAREFUL, window: Any = None, name: str = "q", **options: Any) -> sw.Query:
    return sw.Query(aggregate, window or sw.Rows(3), name, **options)


def one(x: Any, ts: int = 1, **columns: Any) -> dict[str, list[Any]]:
    return {"ts": [ts], "x": [x]} | {name: [value] for name, value in columns.items()}


def folded(xs: list[float]) -> Any:
    """What CAREFUL answers of a window."""
    try:
        return not_seven(functools.reduce(at_most_ten, xs)) if xs else None
    except ValueError:
        return "refused"


def stats(engine: sw.Engine) -> dict[str, Any]:
    """Other than what memory it takes: room for keys stays."""
    return engine.stats() | {"bytes": 0}


def outcome(ask: Callable[[], Any]) -> Any:
    """The answer, or that it is refused."""
    try:
        return ask()
    except sw.BadFunction:
        return "refused"


# --- Functions that raise -----------------------------------------------------------------------------------


def test_a_value_that_lift_raises_of_is_named_and_its_batch_changes_nothing():
    engine = sw.Engine(key="k")
    some = "x <> -5"
    engine.register([query(where=some), query(sw.sum("x"), name="sum"), query(where=some, every=sw.Every(2), name="t")])
    engine.append({"ts": [1, 1], "k": ["a", "b"], "x": [1.0, -5.0]})
    before = stats(engine)
    bad = {"ts": [2] * 4, "k": list("abcd"), "x": [1.0, -5.0, None, -1.0]}
    with pytest.raises(sw.BadFunction, match=r'query "q": of row 3, where "x" is -1.0, lift raised ValueError') as e:
        engine.append(bad)
    assert isinstance(e.value.__cause__, ValueError)
    assert stats(engine) == before
    assert engine.lookup("sum", key="a") == 1.0
    engine.append({"ts": [2], "k": ["a"], "x": [2.0]})
    assert [engine.lookup(name, key="a") for name in ("q", "sum")] == [3.0, 3.0]


@pytest.mark.parametrize("source", [None, sw.Events("x <> 3")])
@pytest.mark.parametrize("every", [sw.Every(2), None])
def test_a_batch_is_refused_wherever_lift_is_to_be_run(source: Any, every: Any) -> None:
    engine = sw.Engine(lateness=2)
    engine.register([query(source=source, every=every), query(sw.sum("x"), name="sum")])
    engine.append(one(1.0))
    before = stats(engine)
    with pytest.raises(sw.BadFunction, match="lift raised"):
        engine.append(one(-1.0, 2))
    assert stats(engine) == before
    engine.append(one(2.0, 2))
    engine.advance(9)
    assert engine.lookup("sum") == 3.0
    assert engine.emitted()["value"].to_pylist() == ([3.0] if every else [])


STEPS = st.lists(
    st.tuples(st.lists(st.sampled_from([0.0, 1.0, 1.0, 2.0, 5.0, 6.0, -1.0]), min_size=1, max_size=5), st.booleans()),
    max_size=12,
)


@settings(max_examples=share(20))
@given(STEPS, st.integers(1, 6))
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_window_answers_if_its_own_rows_do_and_is_refused_if_not(algorithm: str, steps: list[Any], n: int) -> None:
    engine, taken = sw.Engine(algorithm=algorithm), []
    engine.register([query(window=sw.Rows(n)), query(window=sw.Rows(2), name="two"), query(sw.max("x"), name="max")])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planner, "RECONSIDER", 8)  # what stands in goes soon
        for batch, asks in steps:
            given = outcome(lambda batch=batch: engine.append({"ts": [1] * len(batch), "x": batch}))
            assert given == ("refused" if min(batch) < 0 else len(batch))
            taken += batch if min(batch) >= 0 else []
            if asks:
                assert outcome(lambda: engine.lookup("q")) == folded(taken[-n:])
                assert outcome(lambda: engine.lookup("two")) == folded(taken[-2:])
            assert engine.lookup("max") == max(taken[-3:], default=None)


def test_a_key_that_is_refused_leaves_others_alone():
    engine = sw.Engine(key="k")
    engine.register(query())
    engine.append({"ts": [1, 1, 1, 1], "k": list("aabb"), "x": [6.0, 6.0, 1.0, 2.0]})
    assert engine.lookup("q", key="b") == 3.0
    with pytest.raises(sw.BadFunction, match='query "q": lift or combine raised ValueError: too large'):
        engine.lookup("q", key="a")
    with pytest.raises(sw.BadFunction):
        engine.lookup("q")
    engine.append({"ts": [2] * 3, "k": list("aaa"), "x": [1.0, 1.0, 1.0]})
    assert engine.lookup("q").to_pylist() == [{"k": "a", "value": 3.0}, {"k": "b", "value": 3.0}]


def test_lower_that_raises_refuses_the_lookup():
    engine = sw.Engine()
    engine.register([query(window=sw.Rows(1)), query(sw.sum("x"), name="sum")])
    engine.append(one(7.0))
    with pytest.raises(sw.BadFunction, match="careful: lower raised ValueError: seven"):
        engine.lookup("q")
    assert engine.lookup("sum") == 7.0
    engine.append(one(8.0))
    assert engine.lookup("q") == 8.0


def test_having_over_functions_that_raise():
    engine = sw.Engine(key="k")
    engine.register(query(having=(">", 2)))
    engine.append({"ts": [1, 1, 1], "k": list("aab"), "x": [1.0, 2.0, 1.0]})
    assert engine.lookup("q")["k"].to_pylist() == ["a"]
    engine.append({"ts": [2], "k": ["b"], "x": [9.5]})
    with pytest.raises(sw.BadFunction):
        engine.filters()
    assert engine.lookup("q", key="a") == 3.0


def test_an_error_is_that_of_one_query_at_one_tick():
    engine = sw.Engine()
    engine.register([query(every=sw.Every(2), window=sw.Rows(2)), query(sw.sum("x"), name="sum", every=sw.Every(2))])
    engine.append({"ts": [1] * 8, "x": [1.0, 2.0, 6.0, 6.0, 1.0, 1.0, 7.0, 0.0]})
    with pytest.raises(sw.BadFunction, match='query "q": lift or combine raised'):
        engine.emitted()
    assert [tuple(row.values()) for row in engine.emitted().to_pylist()] == [
        ("q", 1, 1, 3.0), ("q", 3, 1, 2.0),
        ("sum", 1, 1, 3.0), ("sum", 2, 1, 14.0), ("sum", 3, 1, 8.0), ("sum", 4, 1, 8.0),
    ]  # fmt: skip
    assert engine.emitted().num_rows == 0


def test_answers_that_a_query_over_them_can_not_take_are_an_error_of_that_one():
    inner = sw.Query(sw.sum("y").alias("x"), sw.Rows(1))
    engine = sw.Engine()
    engine.register([query(source=inner), query(sw.count(), name="n", source=inner)])
    engine.append({"ts": [1], "y": [2.0]})
    engine.append({"ts": [2, 3], "y": [-1.0, 1.0]})
    assert engine.lookup("n") == 3
    with pytest.raises(sw.BadFunction):
        engine.lookup("q")
    engine.append({"ts": [4, 5], "y": [2.0, 3.0]})
    assert engine.lookup("q") == 6.0


@pytest.mark.parametrize("every", [None, sw.Every(1)])
def test_evaluate_says_of_which_value(every: Any) -> None:
    events, row = {"ts": [3, 1, 2], "x": [1.0, 1.0, -1.0]}, "" if every else "of row 2, "
    with pytest.raises(sw.BadFunction, match=f'careful: {row}where "x" is -1.0, lift raised ValueError: too small'):
        sw.evaluate([query(every=every)], events)
    assert sw.evaluate([query(where="x > 0")], events)["q"].to_pylist() == [2.0, 1.0, 1.0]
    with pytest.raises(sw.BadFunction, match="careful: combine raised ValueError: too large") as e:
        sw.evaluate([query(every=every)], {"ts": [1, 2], "x": [6.0, 6.0]})
    assert isinstance(e.value.__cause__, ValueError)


def test_frames_of_functions_that_raise():
    spec = fr.Aggregate(CAREFUL, ">=", 5)
    found = fr.detect(spec, {"ts": [1, 2, 3], "x": [3.0, 3.0, 1.0]})
    assert found["value"].to_pylist() == [6.0]
    with pytest.raises(sw.BadFunction, match="of row 1"):
        fr.detect(spec, {"ts": [1, 2, 3], "x": [3.0, -3.0, 1.0]})
    detector = fr.Detector(spec)
    with pytest.raises(sw.BadFunction, match="lift raised"):
        detector.push({"ts": [1], "x": [-1.0]})
    detector.push({"ts": [1, 2], "x": [4.0, 9.0]})
    for _ in range(2):
        with pytest.raises(sw.BadFunction, match="of a frame"):
            detector.punctuate(2)
    assert detector.punctuate(1).num_rows == 0


def test_summaries_fold_what_lies_in_a_frame_and_no_more():
    frames = pa.table({"frame_id": [0, 1], "start": [1, 3], "end": [2, 4], "rows": [2, 2]})
    events = {"ts": [1, 2, 3, 4], "x": [4.0, 5.0, 5.0, 4.0]}
    found = fr.summarize(frames, events, [CAREFUL])
    assert found["careful"].to_pylist() == [9.0, 9.0]
    with pytest.raises(sw.BadFunction, match="careful of a frame"):
        fr.summarize(frames, {"ts": [1, 2], "x": [6.0, 6.0]}, [CAREFUL])


# --- Functions that do not fit ------------------------------------------------------------------------------


def helper(x: Any) -> Any:
    return x


def generated(x: Any) -> Any:
    yield x


PARTS = {"lift": itself, "combine": add, "lower": itself, "identity": 0.0}


@pytest.mark.parametrize(("part", "function", "says"), [
    ("lift", lambda x: (x, 1), "lift of .* gives a tuple of 2 numbers, but identity=0.0 is a number"),
    ("lift", lambda x: "a", "lift of .* gives .*, but identity=0.0 is a number"),
    ("lift", lambda x: [x], "lift of .* gives .*list"),
    ("lift", generated, "lift of .* gives"),
    ("lift", lambda x: helper(x), "lift of .* does not compile for .float64.: Untyped global name 'helper'"),
    ("lift", lambda x: x.year, "Unknown attribute 'year'"),
    ("lift", lambda x, y: x, "Signature mismatch"),
    ("combine", lambda a, b: (a, b), "combine of .* gives a tuple of 2 numbers, but identity=0.0 is a number"),
    ("combine", lambda a: a, "combine of .* does not compile"),
    ("combine", lambda a, b: a | b, r"combine of .* does not compile .*: there is no or_\(float64, float64\)"),
    ("lower", lambda a: (a, a), "lower of .* gives a tuple of 2 numbers, but an answer is a number"),
    ("lower", lambda a: None, "lower of .* gives None, but an answer is a number"),
    ("lower", lambda a: None if a > 1 else a, "lower of .* gives None in some cases"),
    ("lower", lambda a: 1j * a, "lower of .* gives complex128"),
    ("invert", lambda a, b: (a,), "invert of .* gives a tuple of 1 number"),
])  # fmt: skip
def test_what_does_not_fit_is_refused_when_it_is_registered_and_when_it_is_evaluated(
    part: str, function: Any, says: str
) -> None:
    bad = query(sw.aggregate("x", **(PARTS | {part: function})))
    for one_of in (bad, query(bad.aggregate, every=sw.Every(1)), query(bad.aggregate + 1)):
        with pytest.raises(sw.BadQuery, match=says):
            sw.Engine().register(one_of)
        with pytest.raises(sw.BadQuery, match=says):
            sw.evaluate([one_of], {"ts": [1], "x": [1.0]})
    with pytest.raises(sw.BadQuery, match=says):
        fr.detect(fr.Aggregate(bad.aggregate, ">", 1), {"ts": [1], "x": [1.0]})


@pytest.mark.parametrize(("options", "says"), [
    ({"lift": 3}, "lift=3 is not a function"), ({"invert": "a - b"}, "invert='a - b' is not a function"),
    ({"identity": "0"}, "neither a number"), ({"identity": ()}, "neither a number"),
    ({"identity": (0, (0, 0))}, "neither a number"), ({"identity": 2**63}, "does not fit int64"),
])  # fmt: skip
def test_what_can_not_be_meant_is_refused_at_once(options: dict[str, Any], says: str) -> None:
    with pytest.raises(sw.BadQuery, match=says):
        sw.aggregate("x", **(PARTS | options))


def test_functions_that_numba_knows_or_has_compiled_are_taken():
    signed = numba.njit("float64(float64, float64)")(add)
    for lift, combine, expected in ((abs, max, 4.0), (np.sqrt, operator.add, 4.0), (abs, signed, 6.0)):
        own = sw.aggregate("x", lift, combine, float, identity=np.float64(0))
        assert sw.evaluate([query(own)], {"ts": [1, 2, 3], "x": [1, 1, 4]})["q"].to_pylist()[-1] == expected


# --- Integers and floats ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [pa.int64(), pa.int8(), pa.bool_()])
def test_columns_of_integers_are_given_as_integers_everywhere(kind: pa.DataType) -> None:
    events = pa.table({"ts": [1, 2, 3], "x": pa.array([1, None, 1], pa.int64()).cast(kind)})
    assert sw.evaluate([query(BITS)], events)["q"].to_pylist() == [1.0, 1.0, 1.0]
    engine = sw.Engine()
    engine.register([query(BITS), query(BITS, name="tick", every=sw.Every(3))])
    engine.append(events)
    assert (engine.lookup("q"), engine.emitted()["value"].to_pylist()) == (1.0, [1.0])
    frames = fr.detect(fr.Aggregate(BITS, ">=", 1), events)
    assert frames["value"].to_pylist() == [1.0, 1.0]
    assert fr.summarize(frames, events, [BITS])["bits"].to_pylist() == [1.0, 1.0]


def test_columns_of_floats_are_given_as_floats_everywhere():
    events = {"ts": [1], "x": [1.0]}
    engine = sw.Engine()
    engine.register(query(BITS))  # whose column may hold integers
    asked: list[Callable[[], Any]] = [
        lambda: engine.append(events),
        lambda: sw.evaluate([query(BITS)], events),
        lambda: sw.evaluate([query(BITS, every=sw.Every(1))], events),
        lambda: fr.detect(fr.Aggregate(BITS, ">=", 1), events),
        lambda: fr.summarize(pa.table({"frame_id": [0], "start": [1], "end": [1], "rows": [1]}), events, [BITS]),
    ]
    for ask in asked:
        with pytest.raises(sw.BadQuery, match=r"bits.* does not compile .*float64"):
            ask()
    assert engine.stats()["events"] == 0


def test_a_fraction_is_not_cut_off_where_identity_is_whole():
    halves = sw.aggregate("x", lambda x: x / 2, add, itself, identity=0)
    assert sw.evaluate([query(halves)], {"ts": [1, 2], "x": [2, 4]})["q"].to_pylist() == [1.0, 3.0]
    engine = sw.Engine()
    engine.register(query(halves))
    for value in (3, -1):
        with pytest.raises(sw.BadFunction, match=r"not whole.* Hint: identity=0\.0 where fractions are meant"):
            engine.append(one(value))
        with pytest.raises(sw.BadFunction, match="not whole"):
            sw.evaluate([query(halves)], one(value))


def test_integers_that_wrap_are_refused():
    engine = sw.Engine()
    engine.register([query(WHOLE, sw.Rows(2)), query(SQUARES, name="squares")])
    with pytest.raises(sw.BadFunction, match=r"of row 0, .* lift raised OverflowError: an integer does not fit int64"):
        engine.append(one(2**32))
    for value in (2**31, 5):
        engine.append(one(value))
    assert (engine.lookup("q"), engine.lookup("squares")) == (2.0**31 + 5, 2.0**62 + 25)
    events = {"ts": [1, 2, 3], "x": [2**62, 2**62, -(2**62)]}
    with pytest.raises(sw.BadFunction, match="combine raised OverflowError"):
        sw.evaluate([query(WHOLE)], events)
    with pytest.raises(sw.BadFunction, match=r"of row 0, .* lift raised OverflowError"):
        sw.evaluate([query(SQUARES)], events)


@pytest.mark.parametrize("algorithm", ["auto", "r-int", "b-int"])
def test_running_aggregates_that_wrap_leave_windows_that_do_not_alone(algorithm: str) -> None:
    engine, taken = sw.Engine(algorithm=algorithm), []
    engine.register([query(WHOLE, sw.Rows(1)), query(WHOLE, sw.Rows(2), name="two")])
    for value in [2**61] * 9 + [2**62] * 3 + [1, 2, 3]:
        engine.append(one(value))
        taken.append(value)
        two = sum(taken[-2:])
        assert engine.lookup("q") == value
        assert outcome(lambda: engine.lookup("two")) == (float(two) if two < 2**63 else "refused")


# --- Beside others, and in snapshots ------------------------------------------------------------------------


def times(c: float) -> sw.Aggregate:
    return sw.aggregate("x", lambda x: x * c, add, itself, identity=0.0)


def test_expressions_of_several_functions_of_one_column(tmp_path: Path) -> None:
    two, three = times(2.0), times(3.0)
    asked = [query(two + three, name="sum"), query(sw.count(), name="n", having=(two > 1) & (three > 100))]
    events = {"ts": [1, 2, 3], "x": [1.0, 4.0, 5.0]}
    engine = sw.Engine()
    engine.register(asked)
    engine.append(events)
    assert (engine.lookup("sum"), engine.lookup("n")) == (50.0, None)
    assert sw.evaluate(asked, events).to_pylist()[-1] == {"ts": 3, "sum": 50.0, "n": None}
    engine.save(tmp_path / "engine.swag")
    again = sw.Engine.load(tmp_path / "engine.swag", asked)
    again.append(one(100.0, 4))
    assert (again.lookup("sum"), again.lookup("n")) == (545.0, 3)


@pytest.mark.parametrize(("other", "says"), [
    (query(CAREFUL, sw.Rows(50)), "another window"),
    (query(sw.aggregate("x", lambda x: (x, 1), lambda a, b: (a[0] + b[0], a[1] + b[1]), lambda a: a[0], (0.0, 0))),
     "another aggregate"),
    (query(sw.aggregate("y", itself, add, itself, 0.0)), "another aggregate"),
    (query(sw.sum("x")), "another aggregate"),
    (query(where="x > 1"), "another where"),
    (query(having=(">", 1)), "another having"),
    (query(every=sw.Every(3)), "another every"),
    (query(source=sw.Events("x > 1")), "another source"),
])  # fmt: skip
def test_a_snapshot_is_not_loaded_with_another_query_under_the_name(tmp_path: Path, other: Any, says: str) -> None:
    engine = sw.Engine()
    engine.register(query())
    engine.append(one(1.0))
    engine.save(tmp_path / "engine.swag")
    with pytest.raises(sw.BadSnapshot, match=f'a query "q" of {says}'):
        sw.Engine.load(tmp_path / "engine.swag", [other])
    with pytest.raises(sw.BadSnapshot, match="functions are not in the file"):
        sw.Engine.load(tmp_path / "engine.swag")
    assert sw.Engine.load(tmp_path / "engine.swag", [query()]).lookup("q") == 1.0


def test_a_snapshot_of_what_is_refused_and_of_streams_inside(tmp_path: Path) -> None:
    inner = sw.Query(CAREFUL, sw.Rows(1), "x", every=sw.Every(1))
    asked = [query(), query(every=sw.Every(2), name="tick"), query(source=sw.Events("x < 9"), name="chosen"),
             query(source=inner, name="over")]  # fmt: skip
    engine = sw.Engine()
    engine.register(asked)
    answers = []
    for value in (6.0, 6.0, 1.0, 1.0, 1.0):
        engine.append(one(value))
        engine.save(tmp_path / "engine.swag")
        engine = sw.Engine.load(tmp_path / "engine.swag", asked)
        answers.append([outcome(lambda name=name: engine.lookup(name)) for name in ("q", "chosen", "over")])  # noqa: B023
    refused = ["refused"] * 3
    assert answers == [[6.0] * 3, refused, refused, [8.0] * 3, [3.0] * 3]
    with pytest.raises(sw.BadFunction, match="combine"):
        engine.emitted()
