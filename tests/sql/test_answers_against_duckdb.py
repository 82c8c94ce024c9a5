"""Expressions over answers give what DuckDB gives: the same generated SQL around aggregates, in statements with windows
in brackets, stored, and in statements with OVER ( … ), in an engine at the last event of each key.

The expressions are those of test_expressions_against_duckdb.py, with aggregates where it has columns; what differs from
DuckDB on purpose is said there.
"""

from __future__ import annotations

import random
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import swag as sw
from tests.examples import share
from tests.sql.test_expressions_against_duckdb import (
    CHOICES,
    LEAVES,
    SCHEMA,
    ZONE,
    Both,
    drawn,
    is_beside_nulls,
    is_same,
    theirs,
)

KEYED = "PARTITION BY k ORDER BY ts"
FRAMES = {  # in brackets, and as the standard has it
    "ROWS 1": "ROWS BETWEEN CURRENT ROW AND CURRENT ROW",
    "ROWS 2": "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
    "ROWS 3": "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW",
    "UNBOUNDED": "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "RANGE 3 CLOSED BOTH": "RANGE BETWEEN 3 PRECEDING AND CURRENT ROW",
    "ROWS 4 UNTIL 1": "ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING",
    "RANGE 3 UNTIL 2 CLOSED BOTH": "RANGE BETWEEN 3 PRECEDING AND 2 PRECEDING",
}
LAST, FIRST = "LAST_VALUE({} IGNORE NULLS)", "FIRST_VALUE({} IGNORE NULLS)"
AGGREGATES: dict[str, list[tuple[str, str, str]]] = {  # in brackets; before OVER, for us and for DuckDB
    "i": [
        ("COUNT(*)", "COUNT(*)", "COUNT(*)"), ("COUNT(i)", "COUNT(i)", "COUNT(i)"), ("MAX(j)", "MAX(j)", "MAX(j)"),
        ("SUM(n)", "SUM(n)", "SUM(n)"), ("LAST(i)", LAST.format("i"), LAST.format("i")),
    ],
    "f": [("LAST(f)", LAST.format("f"), LAST.format("f")), ("FIRST(g)", FIRST.format("g"), FIRST.format("g"))],
    "s": [("LAST(s)", LAST.format("s"), LAST.format("s")), ("MAX(t)", "MAX(t)", "MAX(t)")],
    "b": [("BOOL_OR(b)", "BOOL_OR(b)", "BOOL_OR(b)"), ("BOOL_AND(c)", "BOOL_AND(c)", "BOOL_AND(c)")],
    "d": [("MAX(d)", "MAX(d)", "MAX(d)"), ("LAST(e)", LAST.format("e"), LAST.format("e"))],
    "t": [("MIN(u)", "MIN(u)", "MIN(u)"), ("LAST(v)", LAST.format("v"), LAST.format("v"))],
    "z": [("MAX(z)", "MAX(z)", "MAX(z)")],
    "m": [("MAX(m)", "MAX(m)", "MAX(m)")],
    "o": [("MIN(o)", "MIN(o)", "MIN(o)")],
}  # fmt: skip
PLACES = {  # that statements with OVER ( … ) alone have, by type: they keep nulls
    "i": ["FIRST_VALUE({0}) OVER w", "LAST_VALUE({0}) OVER w", "LAG({0}, 1, 0) OVER w", "LAG({0}, 2) OVER w",
          "NTH_VALUE({0}, 2) OVER w"],
    **{kind: ["FIRST_VALUE({0}) OVER w", "LAST_VALUE({0}) OVER w", "NTH_VALUE({0}, 2) OVER w"] for kind in "fsbdt"},
}  # fmt: skip
COLUMNS = {"i": "i", "f": "f", "s": "s", "b": "b", "d": "d", "t": "u"}


def leaves_of(frame: str, in_brackets: bool) -> dict[str, list[Both]]:
    """Aggregates in the place of columns, and constants as they are."""
    over = f"OVER ({KEYED} {FRAMES[frame]})"
    found = {kind: [each for each in some if each.ours not in CHOICES] for kind, some in LEAVES.items()}
    for kind, some in AGGREGATES.items():
        for brackets, own, other in some:
            wide = "::BIGINT" if kind == "i" else ""
            found[kind].append(Both(brackets if in_brackets else f"{own} {over}", f"(({other} {over}){wide})"))
    if not in_brackets:
        for kind, calls in PLACES.items():
            known = frame.startswith("ROWS") and "UNTIL" not in frame
            for call in [each for each in calls if known or "NTH_VALUE" not in each]:
                text = call.format(COLUMNS[kind]).replace("OVER w", over)
                found[kind].append(Both(text, f"({text})"))
    return found


TERMS = st.tuples(st.integers(0, 2**32), st.sampled_from("ifsbdt"), st.integers(1, 3), st.sampled_from(sorted(FRAMES)))


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """Events in order of time; all keys end at the same time, so that now is the time of each one's last event."""
    size = draw(st.integers(2, 7))
    gaps = draw(st.lists(st.integers(1, 3), min_size=size, max_size=size))
    keys = draw(st.lists(st.sampled_from("ab"), min_size=size, max_size=size))
    ts, now = [], 0
    for gap in gaps:
        now += gap
        ts.append(now)
    last = ["a", "b", "c"]  # c has no other
    columns: dict[str, Any] = {
        name: pa.array(
            draw(st.lists(st.sampled_from(some), min_size=size + 3, max_size=size + 3)), SCHEMA.field(name).type
        )
        for name, some in CHOICES.items()
    }
    return pa.table({
        "ts": pa.array([*ts, *[now + 1] * 3], pa.int64()), "k": [*keys, *last], "row_": range(size + 3), **columns,
    })  # fmt: skip


@pytest.fixture(scope="module")
def database() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})
    connection.execute(f"SET ieee_floating_point_ops = true; SET TimeZone = '{ZONE}'")
    connection.execute("SET disabled_optimizers = 'expression_rewriter'")
    return connection


def is_right(
    database: duckdb.DuckDBPyConnection, term: Both, found: list[Any] | None, wanted: list[Any] | None
) -> bool:
    """None: it raises."""
    if found is None:
        return wanted is None or is_beside_nulls(database, term)
    return wanted is None or all(map(is_same, found, wanted))


def terms_of(cases: list[tuple[int, str, int, str]], in_brackets: bool) -> list[tuple[str, Both]]:
    """The expressions of some seeds, each with its frame; only those that are of an aggregate."""
    found = [(f, drawn(random.Random(seed), kind, depth, leaves_of(f, in_brackets))) for seed, kind, depth, f in cases]
    return [(frame, term) for frame, term in found if has_answers(term.ours, in_brackets)]


def has_answers(text: str, in_brackets: bool) -> bool:
    """Is it of an aggregate, and not of constants alone?"""
    calls = [each[0] for some in AGGREGATES.values() for each in some]
    return any(each in text for each in calls) if in_brackets else " OVER (" in text


@settings(max_examples=share(150), deadline=None)
@given(cases=st.lists(TERMS, min_size=5, max_size=5), events=tables())
def test_what_stands_around_answers_in_brackets_is_computed(
    database: duckdb.DuckDBPyConnection, cases: list[Any], events: pa.Table
) -> None:
    database.register("arrow", events)
    terms = terms_of(cases, True)
    for (frame, term), wanted in zip(terms, theirs(database, [each.theirs for _, each in terms]), strict=True):
        [query] = sw.sql(f"SELECT k, {term.ours} AS v FROM t [{frame}] GROUP BY k")
        assert sw.sql(str(query)) == [query]
        assert sw.sql(str(query))[0].label == query.label
        try:
            found = sw.evaluate([query], events)["v"].to_pylist()
        except (sw.BadEvents, sw.SumOverflow):
            found = None
        assert is_right(database, term, found, wanted), (str(query), found, wanted)


@settings(max_examples=share(150), deadline=None)
@given(
    cases=st.lists(TERMS, min_size=5, max_size=5),
    events=tables(),
    condition=st.integers(0, 2**32),
    cut=st.integers(0, 9),
)
def test_an_engine_answers_at_the_last_event_of_each_key_what_duckdb_does(
    database: duckdb.DuckDBPyConnection,
    cases: list[Any],
    events: pa.Table,
    condition: int,
    cut: int,
    tmp_path_factory: Any,
) -> None:
    """The same text, but for QUALIFY: DuckDB is asked for its condition beside the answer."""
    database.register("arrow", events)
    terms = terms_of(cases, False)
    qualify = drawn(random.Random(condition), "b", 1, leaves_of("ROWS 2", False))
    tests = qualify if has_answers(qualify.ours, False) else Both("COUNT(*) OVER (" + KEYED + ") > 0", "TRUE")
    answers = theirs(database, [*(each.theirs for _, each in terms), tests.theirs])
    passing = answers.pop()
    last = {key: events.num_rows - 3 + i for i, key in enumerate("abc")}
    engine = sw.Engine()
    for number, (_, term) in enumerate(terms):
        engine.register(f"SELECT k, {term.ours} AS v{number} FROM t")
        engine.register(f"SELECT k, {term.ours} AS q{number} FROM t QUALIFY {tests.ours}")
    for part in (events.slice(0, cut), events.slice(cut)):
        engine.append(part)
    path = tmp_path_factory.mktemp("s") / "s"
    engine.save(path)
    for each in (engine, sw.Engine.load(path)):
        for number, ((_, term), wanted) in enumerate(zip(terms, answers, strict=True)):
            for key, row in last.items():
                found = looked_up(each, f"v{number}", key)
                expected = None if wanted is None else [wanted[row]]
                assert is_right(database, term, found, expected), (term.ours, key, found, expected)
            if wanted is None:
                continue
            assert keys_of(each, f"v{number}") in (list("abc"), None), term.ours
            if passing is not None:
                right = [key for key, row in last.items() if passing[row] is True]
                assert keys_of(each, f"q{number}") in (right, None), (term.ours, tests.ours)


def keys_of(engine: sw.Engine, name: str) -> list[Any] | None:
    """Those that have an answer; None: it raises."""
    try:
        return sorted(engine.lookup(name)["k"].to_pylist())
    except (sw.BadEvents, sw.SumOverflow):
        return None


def looked_up(engine: sw.Engine, name: str, key: str) -> list[Any] | None:
    try:
        return [engine.lookup(name, key=key)]
    except (sw.BadEvents, sw.SumOverflow):
        return None
