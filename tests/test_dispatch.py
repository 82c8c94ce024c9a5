"""Many predicates over a batch: what an index over their constants finds is what each of them says by itself."""

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import swag as sw
from swag.tables.dispatch import Dispatch
from swag.tables.predicate import canonical, holds
from tests.sql.test_where_against_duckdb import CONDITION
from tests.sql.test_where_against_duckdb import TABLE as PLAIN

NAN, INF = float("nan"), float("inf")
BIG = 2**53
TYPED = pa.table(
    {
        "byte": pa.array([0, 1, None, -128, 127, 2], pa.int8()),
        "whole": pa.array([0, BIG, BIG + 1, None, 2**63 - 1, -(2**63)], pa.int64()),
        "natural": pa.array([0, 1, 2**63, 2**64 - 1, None, 7], pa.uint64()),
        "single": pa.array([0.0, -0.0, 0.1, NAN, None, INF], pa.float32()),
        "double": pa.array([0.1, BIG, -INF, NAN, None, 1e300], pa.float64()),
        "money": pa.array([Decimal("0.10"), Decimal("1.00"), None, Decimal("-2.50"), Decimal("7.00"), Decimal("0.00")]),
        "word": pa.array(["", "a", None, "á", "ab", "A"], pa.large_string()),
        "coded": pa.array(["a", None, "b", "a", "", "ab"]).dictionary_encode(),
        "flag": pa.array([True, False, None, True, False, None]),
        "day": pa.array([dt.date(2024, 1, d) for d in range(1, 6)] + [None]),
        "nothing": pa.nulls(6),
    }
)
CONSTANTS = st.sampled_from(
    ["0", "1", "-1", "2", "7", "127", "128", "-128", "-129", "0.1", "0.5", "-0.0", "1e300", "1e999", "-1e999",
     str(BIG), str(BIG + 1), f"{BIG}.0", str(2**63 - 1), str(2**63), f"-{2**63}", str(2**64 - 1), "NULL",
     "''", "'a'", "'á'", "'ab'", "'2024-01-02'", "TRUE", "FALSE"]
)  # fmt: skip
NAMES = st.sampled_from(TYPED.column_names)
OPS = st.sampled_from(["=", "<", "<=", ">", ">=", "<>"])
COMPARISON = st.one_of(
    st.builds("{} {} {}".format, NAMES, OPS, CONSTANTS),
    st.builds("{} {} {}".format, CONSTANTS, OPS, NAMES),
    st.builds("({}) BETWEEN {} AND {}".format, NAMES, CONSTANTS, CONSTANTS),
    st.builds("{} IN ({}, {})".format, NAMES, CONSTANTS, CONSTANTS),
    st.builds("{} NOT IN ({})".format, NAMES, CONSTANTS),
    st.builds("{} IS NULL".format, NAMES),
    st.builds("{} + 1 > {}".format, NAMES, NAMES),
    st.builds("word LIKE {}".format, st.sampled_from(["'a%'", "'_'"])),
)
TYPED_PREDICATES = st.lists(COMPARISON, min_size=1, max_size=3).map(" AND ".join)


def said(predicate: str, table: pa.Table) -> list[bool] | type[sw.SwagError]:
    """Where it holds, or what is raised of it."""
    try:
        return holds(predicate, table).tolist()
    except sw.SwagError as why:
        return type(why)


def found(predicates: list[str], table: pa.Table) -> list[list[bool]]:
    """What the index says, each row and predicate once at most."""
    rows, which = Dispatch(predicates, table).matches(table)
    told = np.zeros((len(predicates), table.num_rows), np.int64)
    np.add.at(told, (which, rows), 1)
    assert told.max(initial=0) <= 1
    for i in range(len(predicates)):
        assert (np.diff(rows[which == i]) > 0).all()
    return told.astype(bool).tolist()


@given(predicates=st.lists(TYPED_PREDICATES, min_size=1, max_size=6))
@example(predicates=["word = 'a'", "word = 'b'", "word = 'ab'", "word = 'A'", "word = 'á'", "word = ''"])
@example(predicates=["whole > 1.5 AND whole < 0.5", "single = 0.1", "single IN (0, -0.0)"])
@example(predicates=["byte = 5 AND byte = 6 AND whole + 1 > 0"])  # it can not hold, but it overflows
@example(predicates=["whole + 1 > byte", "word = 0"])  # of several that are wrong, any may be told
def test_columns_of_every_type_with_constants_of_every_type(predicates: list[str]) -> None:
    predicates = [canonical(each) for each in predicates]
    expected = [said(each, TYPED) for each in predicates]
    wrong = tuple(each for each in expected if isinstance(each, type))
    if wrong:
        with pytest.raises(wrong):
            found(predicates, TYPED)
    else:
        assert found(predicates, TYPED) == expected


@given(
    predicates=st.lists(st.lists(CONDITION, min_size=1, max_size=3), min_size=1, max_size=5),
    cut=st.tuples(st.integers(0, 12), st.integers(0, 12)),
)
def test_predicates_of_any_kind_and_conjunctions_of_them(predicates: list[list[Any]], cut: tuple[int, int]) -> None:
    texts = [canonical(" AND ".join(f"({each.ours})" for each in parts)) for parts in predicates]
    table = PLAIN.slice(min(cut), max(cut) - min(cut))
    assert found(texts, table) == [holds(each, table).tolist() for each in texts]


@given(ends=st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=30))
def test_ranges_of_any_number_inside_and_beside_each_other(ends: list[tuple[int, int]]) -> None:
    table = pa.table({"v": np.arange(-1, 23)})
    predicates = [canonical(f"v >= {a} AND v < {b}") for a, b in ends]
    assert found(predicates, table) == [holds(each, table).tolist() for each in predicates]


def test_a_rest_may_read_no_column() -> None:
    table = pa.table({"a": [1, 2]})
    assert found(["a = 1 AND NULL", "a = 1 AND TRUE"], table) == [[False, False], [True, False]]


def test_what_raises_is_told_of_the_predicate_that_was_written() -> None:
    table = pa.table({"a": [1, 2, 2**63 - 1], "s": ["x", "y", "y"]})
    with pytest.raises(sw.BadEvents, match="where=\"s = 'y' AND a \\+ 1 > 5\" can not be computed of row 2"):
        Dispatch(["s = 'y'", "s = 'y' AND a + 1 > 5"], table).matches(table)
    assert found(["s = 'x' AND a + 1 > 1"], table) == [[True, False, False]]  # other rows do not come that far
    with pytest.raises(sw.BadType, match="where=\"s = 'y' AND a > 'b'\" can not be computed"):
        Dispatch(["s = 'y' AND a > 'b'"], table).matches(table)


def test_predicates_are_counted_by_how_they_are_found() -> None:
    table = pa.table({"a": [1], "s": ["x"]})
    made = Dispatch(["a = 1", "s = 'x' AND a > 5", "a > 1 AND s LIKE 'x%'", "a + 1 = 2", "s LIKE 'y'"], table)
    assert made.counts == (2, 1, 2)
