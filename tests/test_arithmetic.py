"""Numbers of narrow types, and large ones: computed in int64 and float64, exactly as far as these go."""

import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import frames as fr
import swag as sw
from tests.examples import share
from tests.test_types import evaluated, looked_up

INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
OPERATORS = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b}


def limits(kind: pa.DataType) -> st.SearchStrategy[int]:
    info = np.iinfo(kind.to_pandas_dtype())
    return st.integers(int(info.min), min(int(info.max), 2**63 - 1))


@settings(max_examples=share(200))
@given(data=st.data(), kinds=st.tuples(st.sampled_from(INTEGERS), st.sampled_from(INTEGERS)), op=st.sampled_from("+-*"))
def test_integers_are_computed_in_int64(data: Any, kinds: tuple[Any, Any], op: str) -> None:
    a, b, c = data.draw(limits(kinds[0])), data.draw(limits(kinds[1])), data.draw(st.integers(-300, 300))
    events = pa.table({"ts": [1], "a": pa.array([a], kinds[0]), "b": pa.array([b], kinds[1])})
    for term, wanted in ((OPERATORS[op](sw.max("a"), sw.last("b")), OPERATORS[op](a, b)),
                         (OPERATORS[op](sw.min("a"), c), OPERATORS[op](a, c)), (-sw.max("a"), -a)):  # fmt: skip
        query, engine = sw.Query(term, sw.Rows(1), name="q"), sw.Engine()
        engine.register(query)
        engine.append(events)
        for call in (
            lambda query=query: sw.evaluate([query], events)["q"].to_pylist()[0],
            lambda engine=engine: engine.lookup("q"),
        ):
            if -(2**63) <= wanted < 2**63:
                assert call() == wanted
            else:
                with pytest.raises(sw.SumOverflow, match="does not fit int64"):
                    call()


@settings(max_examples=share(200))
@given(data=st.data(), kinds=st.tuples(st.sampled_from(INTEGERS), st.sampled_from(INTEGERS)), op=st.sampled_from("+-*"))
def test_so_are_they_in_predicates(data: Any, kinds: tuple[Any, Any], op: str) -> None:
    a, b, c = data.draw(limits(kinds[0])), data.draw(limits(kinds[1])), data.draw(st.integers(-300, 300))
    result = OPERATORS[op](a, b)
    query = sw.Query(sw.count(), sw.Rows(1), name="q", where=f"a {op} b > {c}")
    events = pa.table({"ts": [1], "a": pa.array([a], kinds[0]), "b": pa.array([b], kinds[1])})
    if -(2**63) <= result < 2**63:
        assert sw.evaluate([query], events)["q"].to_pylist() == [int(result > c)]
    else:
        with pytest.raises(sw.SwagError, match="overflow"):
            sw.evaluate([query], events)


def test_floats_are_computed_in_float64() -> None:
    events = pa.table(
        {"ts": [1], "f": pa.array([1e30], pa.float32()), "h": pa.array([60000.0], pa.float16()), "i": [2**60 + 1]}
    )
    for term, wanted in ((sw.max("f") * sw.max("f"), 1e60), (sw.max("h") + sw.max("h"), 120000.0),
                         (sw.sum("i") + 0.5, float(2**60 + 1)), (sw.sum("i") / 2, 2.0**59)):  # fmt: skip
        found = sw.evaluate([sw.Query(term, sw.Rows(1), name="q")], events)["q"].to_pylist()[0]
        assert math.isclose(found, wanted, rel_tol=1e-6)
    query = sw.Query(sw.count(), sw.Rows(1), name="q", where="i / 2 > 1 AND i + 0.5 > 1")
    assert sw.evaluate([query], events)["q"].to_pylist() == [1]


@pytest.mark.parametrize(("term", "wanted"), [
    (sw.last("d") + sw.last("d"), Decimal("2.50")), (sw.last("d") - 1, Decimal("0.25")), (sw.last("d") / 2, 0.625),
    (sw.last("d") * 2, Decimal("2.50")), (-sw.last("d"), Decimal("-1.25")), (sw.last("d") * 0.5, 0.625),
    (abs(sw.last("d")), Decimal("1.25")), (sw.last("d").coalesce(0), Decimal("1.25")), (sw.last("d") > 1, True),
    (sw.last("d").between(1, 2), True),
])  # fmt: skip
@pytest.mark.parametrize(
    "kind", [pa.decimal32(5, 2), pa.decimal128(10, 2), pa.dictionary(pa.int8(), pa.decimal128(10, 2))], ids=str
)
def test_decimals_are_computed_with(term: Any, wanted: Any, kind: pa.DataType, tmp_path: Path) -> None:
    column = pa.array([Decimal("1.25")], pa.decimal128(10, 2))
    d = column.dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else column.cast(kind)
    for way in (evaluated, looked_up):
        found = way(term, pa.table({"ts": [1], "d": d}), tmp_path)
        assert found == wanted
        assert type(found) is type(wanted)


def test_decimals_that_do_not_fit_are_refused() -> None:
    events = pa.table({"ts": [1, 2], "d": pa.array([Decimal(7), Decimal(10**18)], pa.decimal128(38, 2))})
    squared = sw.Query(sw.last("d") * sw.last("d"), sw.Rows(1), name="q")
    assert sw.evaluate([squared], events.slice(0, 1))["q"].to_pylist() == [Decimal("49.0000")]
    with pytest.raises(sw.SumOverflow, match=r"last\(d\) \* last\(d\) has more than 38 digits"):
        sw.evaluate([squared], events)
    with pytest.raises(sw.BadEvents, match=r"d \* d, which can not be computed of row 1"):
        sw.evaluate([sw.Query(sw.last("d * d"), sw.Rows(1))], events)


# -- uint64 -----------------------------------------------------------------------------------------------------------

LARGE = pa.table({"ts": [1, 2], "u": pa.array([2**63 + 5, 2**64 - 1], pa.uint64())})


def test_integers_beyond_int64_are_handed_back(tmp_path: Path) -> None:
    queries = [sw.Query(what, sw.Rows(2), name=name) for name, what in (("f", sw.first("u")), ("l", sw.last("u")))]
    engine = sw.Engine()
    engine.register([*queries, sw.Query(sw.last("u"), sw.Rows(1), name="e", every=sw.Every(1))])
    engine.append(LARGE)
    engine.save(tmp_path / "snapshot")
    for each in (engine, sw.Engine.load(tmp_path / "snapshot")):
        assert each.lookup_all().to_pylist() == [{"f": 2**63 + 5, "l": 2**64 - 1}]
        assert each.emitted()["value"].to_pylist() == [2**63 + 5, 2**64 - 1]
    assert sw.evaluate(queries, LARGE).drop_columns(["ts"]).to_pylist()[-1] == {"f": 2**63 + 5, "l": 2**64 - 1}


@pytest.mark.parametrize("what", [sw.min("u"), sw.sum("u"), sw.mean("u"), sw.quantile("u", 0.5)])
@pytest.mark.parametrize("every", [None, sw.Every(1)])
def test_but_not_computed_with(what: Any, every: Any) -> None:
    query, engine = sw.Query(what, sw.Rows(2), name="q", every=every), sw.Engine()
    engine.register([query, sw.Query(sw.last("u"), sw.Rows(2), name="l")])
    for call in (lambda: sw.evaluate([query], LARGE), lambda: engine.append(LARGE)):
        with pytest.raises(sw.BadType, match=r'"u" \(uint64\) holds values that do not fit int64'):
            call()
    engine.append(pa.table({"ts": [1], "u": pa.array([7], pa.uint64())}))
    assert engine.lookup("l") == 7


def test_a_query_that_computes_starts_after_values_that_were_only_handed_back() -> None:
    engine = sw.Engine()
    engine.register(sw.Query(sw.last("u"), sw.Rows(3), name="l"))
    engine.append(LARGE)
    engine.register(sw.Query(sw.max("u"), sw.Rows(3), name="m"))
    assert engine.lookup("m") is None
    engine.append(pa.table({"ts": [3], "u": pa.array([7], pa.uint64())}))
    assert (engine.lookup("m"), engine.lookup("l")) == (7, 7)


# -- text -------------------------------------------------------------------------------------------------------------


def test_text_is_not_compared_by_when_it_came() -> None:
    engine = sw.Engine()
    engine.register([sw.Query(sw.last("s"), sw.Rows(3), name="l"), sw.Query(sw.min("s"), sw.Rows(3), name="m")])
    engine.append({"ts": [1, 2], "s": ["b", "a"]})
    engine.register(sw.Query(sw.max("s"), sw.Rows(3), name="later"))
    engine.append({"ts": [3], "s": ["aa"]})
    assert [engine.lookup(name) for name in ("l", "m", "later")] == ["aa", "a", "b"]


def test_a_batch_that_was_refused_says_nothing_of_types() -> None:
    engine = sw.Engine()
    engine.register(sw.Query(sw.last("s"), sw.Rows(3), name="l"))
    with pytest.raises(sw.OutOfOrder):
        engine.append({"ts": [2, 1], "s": ["b", "a"]})
    engine.append({"ts": [1], "s": [b"c"]})
    assert engine.lookup("l") == b"c"


def test_a_column_that_was_only_counted_has_the_type_of_its_values() -> None:
    engine = sw.Engine()
    engine.register(sw.Query(sw.count("c"), sw.Rows(3), name="n"))
    engine.append(pa.table({"ts": [1], "c": pa.array([5]).dictionary_encode()}))
    engine.register(sw.Query(sw.sum("c"), sw.Rows(3), name="s"))
    engine.append(pa.table({"ts": [2], "c": [7]}))
    engine.append(pa.table({"ts": [3], "c": pa.array([8]).dictionary_encode()}))
    assert (engine.lookup("n"), engine.lookup("s")) == (3, 15)


# -- correlation ------------------------------------------------------------------------------------------------------


@given(
    pairs=st.lists(st.tuples(st.integers(-50, 50), st.integers(-50, 50)), min_size=3, max_size=8),
    scale=st.sampled_from([-1000, -600, -520, -300, 0, 300, 500, 520, 600, 1000]),
)
def test_the_scale_of_values_does_not_change_how_they_correlate(pairs: list[tuple[int, int]], scale: int) -> None:
    """By powers of two, which are exact: the same correlation, or NaN where squares can not be told."""
    xs, ys = zip(*pairs, strict=True)
    assume(np.std(xs) > 0 and np.std(ys) > 0)
    wanted = float(np.corrcoef(xs, ys)[0, 1])
    table = pa.table(
        {"ts": range(5, 5 + len(xs)), "x": [math.ldexp(x, scale) for x in xs], "y": [float(y) for y in ys]}
    )
    query, engine = sw.Query(sw.corr("x", "y"), sw.Rows(99), name="q"), sw.Engine()
    engine.register(query)
    engine.append(table)
    frames = fr.detect(fr.Threshold("ts", ">", 0), table)
    found = [engine.lookup("q"), sw.evaluate([query], table)["q"].to_pylist()[-1]]
    found += fr.summarize(frames, table, sw.corr("x", "y").alias("q"))["q"].to_pylist()
    for each in found:
        assert math.isclose(each, wanted, abs_tol=1e-6) or (math.isnan(each) and abs(scale) > 500)


@pytest.mark.parametrize("phi", [0, 0.0, np.float32(0), np.int64(1), 1, True, math.nan, -0.1, 1.1, None, "0.5"])
def test_fractions_of_quantiles(phi: Any) -> None:
    """phi in (0, 1]; in [0, 1] where there is something between elements."""
    number = not isinstance(phi, bool | str) and phi is not None
    for method, allowed in (("floor", number and 0 < phi <= 1), ("linear", number and 0 <= phi <= 1)):
        if allowed:
            query = sw.Query(sw.quantile("x", phi, method), sw.Rows(3), name="q")
            assert sw.evaluate([query], {"ts": [1, 2, 3], "x": [5, 1, 3]})["q"].to_pylist()[-1] == (5 if phi else 1)
        else:
            with pytest.raises(sw.BadQuery, match="quantile takes a fraction in"):
                sw.quantile("x", phi, method)
