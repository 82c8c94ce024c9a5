"""Filters that come, go and come back while events flow: what an index knows is what the engine keeps."""

import gzip
import math
from pathlib import Path

import pytest

import swag as sw
from swag.durable import format_2
from swag.durable.snapshot import SNAPSHOT
from tests.snapshots import recipe

R = sw.Range


def passing(engine, name, **options):
    table = engine.lookup(name, **options)
    return dict(zip(table["k"].to_pylist(), table["value"].to_pylist(), strict=True))


def engine_with(*queries, ts, k, x=None, **options):
    engine = sw.Engine(key="k", **options)
    engine.register(list(queries))
    engine.append({"ts": ts, "k": k, "x": x or [1.0] * len(ts)})
    return engine


def test_negative_values_of_before_are_done_without_an_index_until_no_window_reaches_them():
    engine = engine_with(sw.Query(sw.sum("x"), R(10), name="all"), ts=[1, 2], k=["a", "b"], x=[-1, 20])
    engine.register(sw.Query(sw.sum("x"), R(10), name="h", having=(">=", 1)))
    for _ in range(2):
        assert passing(engine, "h") == {"b": 20}
    assert "filter h: every key is looked at (negative values of x came before there was an index)" in engine.explain()
    with pytest.raises(sw.BadEvents, match="index=False"):
        engine.append({"ts": [3], "k": ["a"], "x": [-1]})
    engine.append({"ts": [11, 11], "k": ["a", "c"], "x": [5, 0]})
    assert passing(engine, "h") == {"a": 5, "b": 20}
    assert "CI-SUM" in engine.explain()


def test_negative_values_that_waited_since_before_the_filter_came():
    engine = engine_with(sw.Query(sw.sum("x"), R(10), name="all"), ts=[1, 2], k=["a", "b"], x=[-1, 20], lateness=5)
    engine.register(sw.Query(sw.sum("x"), R(10), name="h", having=(">=", 1)))
    engine.append({"ts": [9], "k": ["c"], "x": [3]})
    assert passing(engine, "h") == {"b": 20}
    engine.append({"ts": [18], "k": ["c"], "x": [4]})
    assert passing(engine, "h", at=13) == {"c": 3}


def test_a_lookup_right_after_the_filter_came():
    engine = engine_with(sw.Query(sw.count(), R(10), name="all"), ts=[1, 2], k=["a", "b"], x=[1, 2])
    engine.register(sw.Query(sw.count(), R(10), name="h", where="x > 0", having=(">=", 1)))
    assert passing(engine, "h") == {}
    assert "CI-COUNT" in engine.explain()
    engine.append({"ts": [3], "k": ["b"], "x": [1]})
    assert passing(engine, "h") == {"b": 1}


def test_explain_right_after_the_filter_came():
    engine = engine_with(sw.Query(sw.count(), R(10), name="all"), ts=[1], k=["a"], x=[1])
    engine.register(sw.Query(sw.count(), R(10), name="h", where="x > 0", having=(">=", 1)))
    assert "h" in engine.explain()


@pytest.mark.parametrize(
    ("aggregate", "having"),
    [(sw.sum("x"), ("<=", 2.5)), (sw.max("x"), ("<=", 2.5)), (sw.min("x"), (">=", 0.5))],
    ids=str,
)
def test_which_keys_are_there_is_known_after_another_filter_came(aggregate, having):
    engine = engine_with(sw.Query(aggregate, R(50), name="h", having=having), ts=[1], k=["a"])
    assert passing(engine, "h") == {"a": 1.0}
    engine.register(sw.Query(sw.count(), R(1000), name="c", having=(">=", 1)))
    engine.append({"ts": [100, 101], "k": ["b", "c"], "x": [1.0, 2.0]})
    assert passing(engine, "h") == {"b": 1.0, "c": 2.0}


def test_a_filter_that_comes_back_is_answered_from_what_is_left():
    few = sw.Query(sw.count(), R(100), name="few", having=("<", 3))
    engine = engine_with(few, sw.Query(sw.count(), R(5), name="n"), ts=[1, 2, 3, 50], k=["a"] * 4)
    assert passing(engine, "few") == {}
    engine.unregister("few")
    engine.advance(51)  # rows that only `few` reached are let go
    engine.register([few, sw.Query(few.aggregate, few.window, name="plain", having=few.having, index=False)])
    assert passing(engine, "few") == passing(engine, "plain") == {"a": 1}


def test_another_filter_under_the_name_of_one_that_went():
    engine = engine_with(
        sw.Query(sw.max("x"), R(5), name="h", having=(">", 9)), sw.Query(sw.max("x"), R(500), name="all"),
        ts=[1, 2, 90], k=["a", "b", "b"], x=[3.0, 4.0, 1.0],
    )  # fmt: skip
    assert passing(engine, "h") == {}
    engine.unregister("h")
    engine.register(sw.Query(sw.max("x"), R(500), name="h", having=(">", 2)))
    assert passing(engine, "h") == {"a": 3.0, "b": 4.0}


def test_an_index_can_be_forgotten_at_any_time():
    engine = engine_with(sw.Query(sw.count(), R(50), name="h", having=(">=", 2)), ts=[1, 2, 3], k=["a", "b", "a"])
    engine._stream.core.filters.forget()
    assert passing(engine, "h") == {"a": 2}
    engine._stream.core.filters.forget()
    engine.append({"ts": [4], "k": ["b"], "x": [1.0]})
    assert passing(engine, "h") == {"a": 2, "b": 2}


def test_held_events_that_lack_a_column_are_not_claimed_to_have_it():
    total = sw.Query(sw.sum("x"), R(30), name="s")
    engine = engine_with(total, ts=[1], k=["a"], lateness=9)
    engine.unregister("s")
    engine.append({"ts": [2], "k": ["a"]})  # nobody reads x
    engine.register(total)
    engine.append({"ts": [20], "k": ["a"], "x": [1.0]})
    assert engine.stats()["complete_since"]["s"] == 2 + 30


# -- snapshots --------------------------------------------------------------------------------------------------------


def two_filters():
    return engine_with(
        sw.Query(sw.count(), R(100), name="gone", where="x > 1", having=(">=", 1)),
        sw.Query(sw.max("x"), R(100), name="hot", having=(">=", 5.0)),
        ts=[1, 2, 3], k=["a", "b", "c"], x=[9.0, 2.0, 7.0],
    )  # fmt: skip


def loaded(engine, path):
    engine.save(path)
    return sw.Engine.load(path)


def test_indexes_are_saved_by_what_they_are_over(tmp_path):
    engine = two_filters()
    engine.unregister("gone")
    assert passing(loaded(engine, tmp_path / "one"), "hot") == {"a": 9.0, "c": 7.0}
    engine.unregister("hot")
    assert loaded(engine, tmp_path / "none").queries == []


def test_a_filter_that_came_right_before_saving(tmp_path):
    engine = two_filters()
    engine.register(sw.Query(sw.max("x"), R(1000), name="hotter", having=(">", 7)))
    again = loaded(engine, tmp_path / "snapshot")
    assert passing(again, "hotter") == {"a": 9.0}
    assert passing(again, "hot") == {"a": 9.0, "c": 7.0}


def test_indexes_that_were_saved_by_position_are_made_anew():
    """As version 0.1 wrote them: it may have been the position of another one."""
    path = Path(recipe.__file__).parent / "format-2-keyed.swag.gz"
    _, header, arrays = SNAPSHOT.parsed(gzip.decompress(path.read_bytes()), "it")
    for i, each in enumerate(reversed(header["filters"])):
        each.pop("over", None)
        each["index"] = i
    made = recipe.make("keyed")
    again = sw.Engine(**recipe.RECIPES["keyed"])
    again.register(made.queries)
    again.restore(format_2.upgraded(header, arrays, lambda content: SNAPSHOT.parsed(content, "a part")[1:]))
    for name in ("many", "much", "high"):
        assert passing(again, name) == passing(made, name) != {}


# -- thresholds at the ends of what numbers can be --------------------------------------------------------------------

ENDS = [math.inf, -math.inf, 5e-324, -5e-324, 1e300, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10**400]
FLOATS = [0.0, -0.0, 5e-324, 1e-300, 1e300, 1.7e308, math.inf]
WHOLE = [0, 1, 2**53, 2**53 + 1, 2**62, 2**63 - 1]


@pytest.mark.parametrize("kind", ["sum", "max", "min"])
@pytest.mark.parametrize("values", [FLOATS, [-x for x in FLOATS], WHOLE, [-x - 1 for x in WHOLE]], ids=str)
def test_an_index_makes_no_difference_at_the_ends(kind, values):
    if kind == "sum":
        values = [abs(x) for x in values]
        values = [min(x, 2**63 - 1) for x in values] if isinstance(values[0], int) else values
    conditions = [(op, v) for op in (">", ">=", "<", "<=") for v in [*ENDS, *values]]
    engine = sw.Engine(key="k")
    for i, having in enumerate(conditions):
        for index in (True, False):
            engine.register(sw.Query(getattr(sw, kind)("x"), R(50), name=f"{i} {index}", having=having, index=index))
    engine.append({"ts": [5] * len(values), "k": list(range(len(values))), "x": values})
    for at in (None, 54, 10**9):
        for i, having in enumerate(conditions):
            assert passing(engine, f"{i} True", at=at) == passing(engine, f"{i} False", at=at), (having, at)


def test_sums_of_finite_values_that_are_infinite():
    engine = engine_with(
        sw.Query(sw.sum("x"), R(9), name="h", having=(">=", math.inf)), ts=[1, 1], k=[1, 1], x=[1.7e308] * 2
    )
    assert passing(engine, "h") == {1: math.inf}
