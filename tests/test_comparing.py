"""Conditions on answers: exact whatever the numbers; thresholds of every kind, written down and read again."""

import datetime as dt
import json
import math
import operator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import swag as sw
from swag.query.as_json import query_from_json, query_to_json
from swag.tables.comparing import compared, within
from swag.tables.predicate import holds

OPS = {
    ">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le, "=": operator.eq, "<>": operator.ne,
}  # fmt: skip
MOST = 2**63 - 1
WHOLE = st.one_of(
    st.integers(-3, 3), st.integers(-MOST - 1, MOST), st.sampled_from([2**53, 2**53 + 1, MOST, -MOST - 1])
)
FLOATS = st.one_of(
    st.floats(allow_nan=False), st.sampled_from([2.0**53, 2.0**63, -(2.0**63), 0.5, 5e-324, math.inf, -math.inf])
)
DECIMALS = st.decimals(-1000, 1000, places=3)
NUMBERS = st.one_of(WHOLE, FLOATS, DECIMALS, st.sampled_from([10**400, -(10**400), 2**63, Decimal("0.1")]))
COLUMNS = st.one_of(
    st.lists(st.none() | WHOLE, max_size=6).map(lambda x: pa.array(x, pa.int64())),
    st.lists(st.none() | st.integers(-128, 127), max_size=6).map(lambda x: pa.array(x, pa.int8())),
    st.lists(st.none() | st.integers(0, 2**64 - 1), max_size=6).map(lambda x: pa.array(x, pa.uint64())),
    st.lists(st.none() | FLOATS, max_size=6).map(lambda x: pa.array(x, pa.float64())),
    st.lists(st.none() | st.floats(width=32, allow_nan=False), max_size=6).map(lambda x: pa.array(x, pa.float32())),
    st.lists(st.none() | DECIMALS, max_size=6).map(lambda x: pa.array(x, pa.decimal128(10, 3))),
)


def exact(x):
    return x if isinstance(x, float) and math.isinf(x) else Fraction(x)


def by_definition(op, pairs):
    return [None if a is None or b is None else OPS[op](exact(a), exact(b)) for a, b in pairs]


@given(column=COLUMNS, number=NUMBERS, op=st.sampled_from(list(OPS)))
def test_a_column_with_a_number(column, number, op):
    values = column.to_pylist()
    assert compared(op, column, number).to_pylist() == by_definition(op, [(x, number) for x in values])
    assert compared(op, number, column).to_pylist() == by_definition(op, [(number, x) for x in values])


@given(pairs=st.lists(st.tuples(st.none() | WHOLE, st.none() | FLOATS), max_size=6), op=st.sampled_from(list(OPS)))
def test_integers_with_floats(pairs, op):
    whole, floats = pa.array([a for a, _ in pairs], pa.int64()), pa.array([b for _, b in pairs], pa.float64())
    assert compared(op, whole, floats).to_pylist() == by_definition(op, pairs)
    assert compared(op, floats, whole).to_pylist() == by_definition(op, [(b, a) for a, b in pairs])


NATURAL = st.one_of(
    st.integers(0, 2**64 - 1), st.sampled_from([0, 3, 2**53 + 1, MOST, 2**63, 2**63 + 1, 2**64 - 2, 2**64 - 1])
)


@given(rows=st.lists(st.tuples(*(st.none() | each for each in (NATURAL, NATURAL, WHOLE, FLOATS))), max_size=6),
       op=st.sampled_from(list(OPS)))  # fmt: skip
def test_whole_numbers_beyond_int64_with_columns_of_numbers(rows, op):
    kinds = (pa.uint64(), pa.uint64(), pa.int64(), pa.float64())
    columns = [pa.array([row[i] for row in rows], kind) for i, kind in enumerate(kinds)]
    for i in (1, 2, 3):
        pairs = [(row[0], row[i]) for row in rows]
        assert compared(op, columns[0], columns[i]).to_pylist() == by_definition(op, pairs)
        assert compared(op, columns[i], columns[0]).to_pylist() == by_definition(op, [(b, a) for a, b in pairs])


NATURALS, SIGNED, DOUBLES = [3, 2**63, 2**64 - 1], [3, -1, -(2**63)], [2.0**63, 2.0**63, 2.0**64]


@given(number=NATURAL, high=NATURAL, op=st.sampled_from(list(OPS)))
def test_constants_beyond_int64_are_as_exact_as_others(number, high, op):
    table = pa.table({"u": pa.array(NATURALS, pa.uint64()), "i": SIGNED, "x": DOUBLES})
    for name in table.column_names:
        values = table[name].to_pylist()
        wanted = [OPS[op](exact(value), number) for value in values]
        for predicate, those in (
            (f"{name} {op} {number}", wanted),
            (f"CASE WHEN {name} {op} {number} THEN 1 ELSE 0 END = 1", wanted),
            (f"{name} BETWEEN {number} AND {high}", [number <= exact(value) <= high for value in values]),
            (f"{name} IN (1, {number})", [exact(value) == number for value in values]),
            (f"CASE {name} WHEN {number} THEN TRUE END", [exact(value) == number for value in values]),
            (f"{name} IS NOT DISTINCT FROM {number}", [exact(value) == number for value in values]),
            (f"NULLIF({name}, {number}) IS NULL", [exact(value) == number for value in values]),
        ):
            assert holds(predicate, table).tolist() == those, predicate


@pytest.mark.parametrize("name", ["u", "v", "i", "x"])
def test_numbers_of_other_columns_that_are_no_less_distinct(name):
    table = pa.table({"u": pa.array([2**64 - 1, 3, None, None], pa.uint64()), "i": [-1, 3, None, 1],
                      "v": pa.array([2**64 - 2, 3, None, 1], pa.uint64()), "x": [2.0**64, 3.0, None, 1.0]})  # fmt: skip
    same = [name == "u", True, True, name == "u"]
    assert holds(f"u IS NOT DISTINCT FROM {name}", table).tolist() == same
    assert holds(f"u IS DISTINCT FROM {name}", table).tolist() == [not each for each in same]


def test_filters_of_whole_numbers_beyond_int64_alone_and_many_at_once():
    table = pa.table({"ts": [1, 2, 3], "u": pa.array(NATURALS, pa.uint64()), "i": SIGNED})
    bounds = [2, 3, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1]
    queries = [
        sw.Query(sw.count(), sw.Rows(9), name=f"{name} {op} {bound}", where=f"{name} {op} {bound}")
        for name in ("u", "i") for op in OPS for bound in bounds
    ]  # fmt: skip
    wanted = {
        f"{name} {op} {bound}": sum(OPS[op](value, bound) for value in values)
        for name, values in (("u", NATURALS), ("i", SIGNED)) for op in OPS for bound in bounds
    }  # fmt: skip
    engine = sw.Engine()
    engine.register(queries)
    engine.append(table)
    assert engine.lookup_all().to_pylist() == [wanted]
    assert {
        name: value for name, value in sw.evaluate(queries, table).to_pylist()[-1].items() if name != "ts"
    } == wanted


def test_constants_beyond_int64_are_floats_where_floats_are_computed_with_them():
    table = pa.table({"i": [1, -1], "x": [0.5, 2.0]})
    with pytest.raises(sw.BadType, match="computed in int64, which has no room for 10000000000000000000"):
        holds("i * 10000000000000000000 > 9999999999999999999", table)
    assert holds("x + -18446744073709551615 < 0 AND ABS(18446744073709551615) > x", table).tolist() == [True, True]


@given(x=WHOLE, y=FLOATS, number=NUMBERS, op=st.sampled_from([">", ">=", "<", "<="]))
def test_a_threshold_moved_to_the_type_of_the_answers_is_the_same_condition(x, y, number, op):
    for value, kind in ((x, pa.int64()), (y, pa.float64())):
        moved, threshold = within(op, number, kind)
        assert OPS[moved](value, threshold) == OPS[op](exact(value), exact(number))


@pytest.mark.parametrize("big", [[2**53 + 1, 5], [2e18, 5.0]])
@pytest.mark.parametrize("threshold", [1e9, 10**18, 2**53 + 0.0, 10**400, Decimal("0.1"), math.inf])
def test_engine_evaluate_and_expressions_agree_on_large_numbers(big, threshold):
    events = {"ts": [1, 2], "k": ["a", "b"], "x": big}
    expected = [value if exact(value) > exact(threshold) else None for value in big]
    for having in ((">", threshold), (sw.sum("x") > threshold) & (sw.count() > 0)):
        query = sw.Query(sw.sum("x"), sw.Range(10), name="q", having=having)
        engine = sw.Engine(key="k")
        engine.register(query)
        engine.append(events)
        found = dict(zip(*engine.lookup("q").to_pydict().values(), strict=True))
        assert [found.get(key) for key in "ab"] == expected
        assert sw.evaluate([query], events, key="k")["q"].to_pylist() == expected


# -- thresholds that are no plain numbers -----------------------------------------------------------------------------

DAY = dt.datetime(2024, 3, 1, 9, 30, 0, 5)
ZONED = DAY.replace(tzinfo=dt.timezone(dt.timedelta(hours=2)))
FINE = np.datetime64("2024-03-01T09:30:00.000000001")
THRESHOLDS = [
    (np.int64(5), 5), (np.float32(0.5), 0.5), (np.str_("x"), "x"), (np.bool_(True), True), (pa.scalar(5), 5),
    (np.datetime64("2024-03-01"), DAY.date()), (np.datetime64("2024-03-01T09:30:00.000005"), DAY), (FINE, FINE),
    (pd.Timestamp(DAY), DAY), (pd.Timestamp(ZONED), ZONED), (pd.Timestamp(FINE), FINE),
    (np.timedelta64(90, "s"), dt.timedelta(seconds=90)), (pd.Timedelta("90s"), dt.timedelta(seconds=90)),
    (DAY.date(), DAY.date()), (DAY, DAY), (ZONED, ZONED), (DAY.time(), DAY.time()), ("it's", "it's"), (b"\0", b"\0"),
    (Decimal("0.10"), Decimal("0.10")), (2**70, 2**70), (math.inf, math.inf), (-math.inf, -math.inf), (-0.5, -0.5),
]  # fmt: skip


@pytest.mark.parametrize(("given", "threshold"), THRESHOLDS, ids=repr)
def test_a_threshold_is_plain_and_can_be_written_down(given, threshold):
    query = sw.Query(sw.max("x"), sw.Range(10), having=(">", given), by=())
    assert query.having == (">", threshold) and type(query.having[1]) is type(threshold)
    both = sw.Query(sw.max("x"), sw.Range(10), having=(sw.max("x") > given) & (sw.count() > 0), by=())
    for each in (query, both):
        read = query_from_json(json.loads(json.dumps(query_to_json(each))), {}, Path())
        assert read == each and read.label == each.label
        assert sw.sql(str(each)) == [each]


@pytest.mark.parametrize("bad", [np.array([1, 2]), object(), 1j, [1], np.timedelta64(5, "ns"), pd.NaT, pa.scalar(None)])
def test_what_is_no_threshold_is_refused(bad):
    with pytest.raises(sw.BadQuery, match="having="):
        sw.Query(sw.max("x"), sw.Range(10), having=(">", bad))


@pytest.mark.parametrize(
    ("values", "threshold"),
    [
        ([dt.date(2020, 1, 1), dt.date(1999, 1, 1)], dt.date(2000, 1, 1)),
        ([1.5, 0.5], Decimal("1")),
        ([3, 1], np.int64(2)),
    ],
)
def test_thresholds_come_back_from_a_snapshot(tmp_path, values, threshold):
    engine = sw.Engine(key="k")
    engine.register(sw.Query(sw.max("x"), sw.Range(10), name="q", having=(">", threshold)))
    engine.append({"ts": [1, 2], "k": ["a", "b"], "x": values})
    engine.save(tmp_path / "snapshot")
    again = sw.Engine.load(tmp_path / "snapshot")
    assert again.queries == engine.queries
    assert again.lookup("q").to_pydict() == engine.lookup("q").to_pydict() == {"k": ["a"], "value": values[:1]}


def test_instants_of_two_zones_are_compared_as_instants():
    events = {"ts": [1], "k": ["a"], "x": pa.array([ZONED], pa.timestamp("us", "UTC"))}
    for op, passes in ((">=", True), (">", False)):
        found = sw.evaluate([sw.Query(sw.max("x"), sw.Range(10), name="q", having=(op, ZONED))], events, key="k")
        assert found["q"].is_valid().to_pylist() == [passes]


@pytest.mark.parametrize("text", ["DATE 'soon'", "DECIMAL 'x'", "INTERVAL '1' YEARS", "UUID 'x'"])
def test_constants_that_can_not_be_read(text):
    with pytest.raises(sw.BadSQL):
        sw.sql(f"SELECT MAX(x) FROM s [RANGE 10] HAVING MAX(x) > {text}")
