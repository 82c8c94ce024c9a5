"""`evaluate` of queries that are grouped in several ways, against the oracle: one table, at events or at requests."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import swag as sw
from tests import oracle
from tests.every_type import column, in_units
from tests.examples import share
from tests.oracle import Q, agg, mismatches
from tests.test_evaluate import PIECES, ours, pieces, ranges, rows

COLUMNS: dict[str, tuple[list[Any], list[pa.DataType]]] = {  # the values of a key column, and how it may be kept
    "card": (["", "a", "ü"], [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string()), pa.string_view()]),
    "land": ([0, 1, 7], [pa.int8(), pa.int64(), pa.uint64(), pa.run_end_encoded(pa.int32(), pa.int64())]),
    "rate": ([0.0, -0.0, 1.5, math.nan], [pa.float16(), pa.float32(), pa.float64()]),
    "fee": ([Decimal("0.5"), Decimal("-1.25")], [pa.decimal128(9, 2), pa.decimal64(9, 2)]),
    "live": ([True, False], [pa.bool_(), pa.dictionary(pa.int8(), pa.bool_())]),
}
AGGREGATES = [
    (sw.count(), agg("count")),
    (sw.count("x"), agg("count", "x")),
    (sw.sum("i"), agg("sum", "i")),
    (sw.mean("x"), agg("mean", "x")),
    (sw.max("x"), agg("max", "x")),
    (sw.last("i"), agg("last", "i")),
    (sw.median("i"), agg("median", "i")),
]
WHERE = {
    None: None,
    "i > 0": lambda e: e["i"] is not None and e["i"] > 0,
    "land = 1": lambda e: e["land"] == 1,
}
EXACT = ("count", "max", "sum")  # a condition on what is rounded may go either way
WINDOWS = rows(st.sampled_from([0, 1])) | ranges(st.sampled_from([0, 2]), st.integers(1, 9))
BY = st.lists(st.sampled_from([*COLUMNS]), unique=True, max_size=3).map(tuple)
EVENT = {
    "ts": st.integers(0, 9),
    "x": st.none() | st.sampled_from([0.5, -2.0, 1e9, math.nan, math.inf]),
    "i": st.none() | st.integers(-5, 5),
    **{name: st.sampled_from(values) for name, (values, _) in COLUMNS.items()},
}
EVENTS = st.lists(st.fixed_dictionaries(EVENT), max_size=20)
KINDS = st.fixed_dictionaries({name: st.sampled_from(kinds) for name, (_, kinds) in COLUMNS.items()})


@st.composite
def asked(draw: Any, default: tuple[str, ...]) -> list[tuple[sw.Query, Q, tuple[str, ...]]]:
    """Queries, what they are to the oracle, and how they are grouped."""
    found = []
    for number in range(draw(st.integers(1, 5))):
        (what, known), window = draw(st.sampled_from(AGGREGATES)), draw(WINDOWS)
        where, by = draw(st.sampled_from([*WHERE])), draw(st.none() | BY)
        having = draw(st.sampled_from([None, None, (">", 0), ("<=", 2)])) if known.kind in EXACT else None
        query = sw.Query(what, ours(window), name=f"q{number}", where=where, having=having, by=by)
        found.append((query, Q(known, window, WHERE[where], having), default if by is None else by))
    return found


def as_table(rows: list[dict[str, Any]], kinds: dict[str, pa.DataType]) -> pa.Table:
    types = {"ts": pa.int64(), "x": pa.float64(), "i": pa.int64(), **kinds}
    return pa.table({name: column(kind, [row[name] for row in rows]) for name, kind in types.items() if name in EVENT})


def group(row: dict[str, Any], by: tuple[str, ...]) -> tuple[Any, ...]:
    """What SQL's GROUP BY takes for equal is equal: -0.0 and 0.0, all NaNs."""
    return tuple("NaN" if row[name] != row[name] else row[name] + 0 if name == "rate" else row[name] for name in by)


def check(found: pa.Table, queries: list[Any], events: list[dict[str, Any]], at: list[dict[str, Any]] | None) -> None:
    """Every column of answers is the oracle's, for events whose key is one value: that of its grouping."""
    for query, known, by in queries:
        keyed = [[{**row, "key": group(row, by)} for row in some] for some in (events, at or [])]
        answers = [[value] for value in found[query.label].to_pylist()]
        assert mismatches(answers, [known], keyed[0], None if at is None else keyed[1], "key") == []


def same(values: list[Any], others: list[Any]) -> bool:
    return all(a == b or (a != a and b != b) for a, b in zip(values, others, strict=True))


@given(data=st.data(), events=EVENTS, default=BY, kinds=KINDS, cut=PIECES)
@settings(max_examples=share(150), deadline=None)
def test_mixed_groupings_at_events(
    data: Any, events: list[dict], default: tuple[str, ...], kinds: dict, cut: tuple[int, int, int]
) -> None:
    queries = data.draw(asked(default))
    with pieces(*cut):
        found = sw.evaluate([query for query, _, _ in queries], as_table(events, kinds), key=default)
    keys = dict.fromkeys([*default, *(name for _, _, by in queries for name in by)])
    names = [query.label for query, _, _ in queries]
    assert sorted(found.column_names) == sorted([*keys, "ts", *names])
    assert found.column_names[: len(default)] == list(default)
    assert found.column_names[len(keys) :] == ["ts", *names]
    for name in keys:
        assert same(found[name].to_pylist(), [in_units(kinds[name], event[name]) for event in events])
    check(found, queries, events, None)


@given(data=st.data(), events=EVENTS, requests=EVENTS, default=BY, kinds=KINDS)
@settings(max_examples=share(150), deadline=None)
def test_mixed_groupings_at_requests(
    data: Any, events: list[dict], requests: list[dict], default: tuple[str, ...], kinds: dict
) -> None:
    queries, at = data.draw(asked(default)), as_table(requests, kinds)
    found = sw.evaluate([query for query, _, _ in queries], as_table(events, kinds), at=at, key=default)
    assert found.column_names == [*at.column_names, *(query.label for query, _, _ in queries)]
    check(found, queries, events, requests)


def test_requests_must_have_every_key_column() -> None:
    events = {"ts": [1], "card": ["a"], "land": [1], "x": [1.0]}
    queries = [sw.Query(sw.sum("x"), sw.Range(5), name=f"q{i}", by=by) for i, by in enumerate([("card",), ("land",)])]
    with pytest.raises(sw.UnknownColumn, match='requests need a column "land", but have: ts, card'):
        sw.evaluate(queries, events, at={"ts": [1], "card": ["a"]})


@pytest.mark.parametrize("name", ["card", "land", "ts"])
def test_a_query_named_like_a_column_before_the_answers_is_refused(name: str) -> None:
    events = {"ts": [1], "card": ["a"], "land": [1], "x": [1.0]}
    queries = [sw.Query(sw.sum("x"), sw.Range(5), name=name), sw.Query(sw.count(), sw.Range(5), by="land", name="n")]
    with pytest.raises(sw.BadQuery, match=f'query "{name}" has the name of a column'):
        sw.evaluate(queries, events, key="card")


def test_statements_are_grouped_as_they_say() -> None:
    events = {"ts": [1, 2, 3], "card": ["a", "a", "b"], "land": [1, 2, 1]}
    found = sw.evaluate(
        """SELECT card, COUNT(*) AS per_card FROM s [RANGE 9] GROUP BY card;
           SELECT land, card, COUNT(*) AS per_pair FROM s [RANGE 9] GROUP BY land, card;
           SELECT COUNT(*) AS of_all FROM s [RANGE 9]""",
        events,
    )
    assert found.column_names == ["card", "land", "ts", "per_card", "per_pair", "of_all"]
    assert [found[name].to_pylist() for name in found.column_names[3:]] == [[1, 2, 1], [1, 1, 1], [1, 2, 3]]


def test_a_column_that_is_called_as_a_key_of_several_is_inside_is_refused() -> None:
    events = {"ts": [1, 2], "a": [1, 2], "b": [1, 1], "(a, b)": [5, 5]}
    query = sw.Query(sw.count(), sw.Range(5), by=("a", "b"))
    with pytest.raises(sw.BadEvents, match=r'a column "\(a, b\)", as the key of several'):
        sw.evaluate(query, events)
    assert sw.evaluate(query, {"ts": [1], "a": [1], "b": [2]}).num_rows == 1


def test_chosen_events_may_have_a_key_of_several_columns() -> None:
    events = {"ts": [1, 2, 3, 4], "a": [1, 1, 2, 1], "b": ["x", "x", "y", "x"], "x": [1, 2, 3, 4]}
    query = sw.Query(sw.sum("x"), sw.Rows(2), name="s", source=sw.Events("x > 1"))
    at_events = sw.evaluate(query, events, key=["a", "b"]).to_pylist()
    assert [(row["a"], row["b"], row["ts"], row["s"]) for row in at_events] == [
        (1, "x", 2, 2),
        (2, "y", 3, 3),
        (1, "x", 4, 6),
    ]
    requests = {"ts": [3, 9], "a": [1, 1], "b": ["x", "y"]}
    assert sw.evaluate(query, events, at=requests, key=["a", "b"])["s"].to_pylist() == [2, None]


def test_the_oracle_sees_one_substream_per_group() -> None:
    """The oracle's key is one value of any kind: here, that of all columns of a grouping."""
    events = [{"ts": 1, "key": ("a", 1)}, {"ts": 2, "key": ("a", 1)}, {"ts": 3, "key": ("a", 2)}]
    assert oracle.evaluate([Q(agg("count"), oracle.Range(9))], events, key="key") == [[1], [2], [1]]
