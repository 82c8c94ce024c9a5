"""`str(query)` is SQL that reads back as the query, whatever the query."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import frames as fr
import swag as sw
from swag.query.expression import Expression
from swag.tables.expressions.derived import derived
from swag.tables.predicate import canonical

WORDS = st.sampled_from(
    ["price", "volume", "rows", "Range", "select", "from", "a b", 'say "x"', "ünï", "frame", "m", "5m"]
)
NAMES = st.one_of(WORDS, st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=6))
NUMBERS = st.one_of(
    st.integers(-(10**6), 10**6),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([2**62, 1e300, -0.5]),
)
CONSTANTS = st.one_of(
    NUMBERS,
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=5),
    st.one_of(st.dates(), st.datetimes(), st.times(), st.timedeltas(), st.decimals(allow_nan=False), st.integers()),
)
UNITS = st.sampled_from(["ns", "us", "ms", "s", "m", "h", "d"])


@st.composite
def aggregates(draw: st.DrawFn) -> sw.Aggregate:
    x, y = draw(NAMES), draw(NAMES)
    ddof, phi = draw(st.integers(0, 3)), draw(st.floats(0.001, 1))
    some = [
        sw.count(), sw.count(x), sw.sum(x), sw.mean(x), sw.min(x), sw.max(x), sw.first(x), sw.last(x), sw.median(x),
        sw.var(x, ddof), sw.std(x, ddof), sw.wmean(x, y), sw.cov(x, y, ddof), sw.corr(x, y), sw.quantile(x, phi),
        sw.quantile(x, phi, method="linear"),
    ]  # fmt: skip
    return draw(st.sampled_from(some))


@st.composite
def windows(draw: st.DrawFn) -> Any:
    until, more = draw(st.integers(0, 1000)), draw(st.integers(1, 1000))
    if draw(st.booleans()):
        return sw.Rows(until + more, until)
    closed = draw(st.sampled_from(["right", "left", "both", "none"]))
    kind = draw(st.sampled_from(["number", "text", "fraction", "timedelta"]))
    if kind == "number":
        return sw.Range(until + more, until, closed)
    if kind == "timedelta":
        return sw.Range(datetime.timedelta(seconds=until + more), datetime.timedelta(seconds=until), closed)
    unit = draw(UNITS)
    half = kind == "fraction" and unit != "ns"  # there is no half nanosecond
    return sw.Range(f"{until + more}.5{unit}" if half else f"{until + more} {unit}", f"{until}{unit}", closed)


MORE = [
    "a='x'", "b is not null", "not (c between 1 and 2)", "d in (1,2)", "e like 'a%'", "abs(f)+1>2", "g/2-(h-1)*3<4",
]  # fmt: skip


@st.composite
def predicates(draw: st.DrawFn) -> str:
    def name() -> str:
        return '"' + draw(NAMES).replace('"', '""') + '"'

    parts = [f"{name()} {draw(st.sampled_from(['=', '<>', '<', '>=']))} {draw(st.integers(-5, 5))}"]
    parts += draw(st.lists(st.sampled_from(MORE), max_size=2))
    return draw(st.sampled_from([" and ", " OR "])).join(parts)


@st.composite
def leaves(draw: st.DrawFn) -> Any:
    term: Any = draw(aggregates())
    if draw(st.booleans()):
        term = term.over(draw(windows()))
    return term.filter(draw(predicates())) if draw(st.integers(0, 3)) == 0 else term


SQL = ["ROUND(_1, 1)", "case when _1 > _2 then (_1) else 0 end", "_2 % _1", "CAST(_1 AS BIGINT)", "nullif(_2, (_1))"]


def values(inner: Any) -> Any:
    binary = st.tuples(st.sampled_from("+-*/"), inner, st.one_of(inner, NUMBERS)).map(lambda t: Expression(t[0], t[1:]))
    behind = st.tuples(st.sampled_from("+-*/"), NUMBERS, inner).map(lambda t: Expression(t[0], t[1:]))
    unary = st.tuples(st.sampled_from(["neg", "abs"]), inner).map(lambda t: Expression(t[0], t[1:]))
    either = st.tuples(inner, NUMBERS).map(lambda t: t[0].coalesce(t[1]))
    sql = st.tuples(st.sampled_from(SQL), inner, inner).map(lambda t: Expression("sql", t))
    return st.one_of(binary, behind, unary, either, sql)


VALUES = st.recursive(leaves(), values, max_leaves=4)
TESTS = st.one_of(
    st.tuples(st.sampled_from([">", ">=", "<", "<=", "=", "<>"]), VALUES, st.one_of(VALUES, CONSTANTS)).map(
        lambda t: Expression(t[0], t[1:])
    ),
    st.tuples(VALUES, NUMBERS, st.one_of(VALUES, NUMBERS)).map(lambda t: t[0].between(*t[1:])),
    st.tuples(VALUES, st.lists(CONSTANTS, min_size=1, max_size=3)).map(lambda t: t[0].isin(t[1])),
    VALUES.map(lambda v: v.is_null()),
    VALUES.map(lambda v: Expression("sql", ("UPPER(_1) LIKE 'a%'", v))),
)


def joined(inner: Any) -> Any:
    pairs = st.tuples(inner, inner)
    return st.one_of(pairs.map(lambda t: t[0] & t[1]), pairs.map(lambda t: t[0] | t[1]), inner.map(lambda c: ~c))


CONDITIONS = st.recursive(TESTS, joined, max_leaves=3)
TUPLES = st.one_of(
    st.tuples(st.sampled_from([">", ">=", "<", "<="]), NUMBERS), st.tuples(st.just("between"), NUMBERS, NUMBERS)
)
EVERY = st.one_of(
    st.tuples(st.integers(1, 10**6), st.booleans()).map(lambda t: sw.Every(t[0], per_key=t[1])),
    st.tuples(st.integers(1, 99), UNITS, st.sampled_from(["tick", "tuple"]), st.booleans()).map(
        lambda t: sw.Every(f"{t[0]}{t[1]}", anchor=t[2], per_key=t[3])
    ),
    st.integers(1, 99).map(lambda n: sw.Every(time=n)),
    st.integers(1, 10**6).map(lambda n: sw.Every(datetime.timedelta(microseconds=n))),
)


@st.composite
def sources(draw: st.DrawFn, depth: int) -> Any:
    if not depth or draw(st.integers(0, 3)):
        return None
    inner = draw(st.one_of(st.none(), queries(depth - 1)))
    return sw.Events(draw(predicates()), inner) if inner is None or draw(st.booleans()) else inner


@st.composite
def queries(draw: st.DrawFn, depth: int = 1) -> sw.Query:
    what = draw(st.one_of(aggregates(), VALUES, CONDITIONS))
    truth = isinstance(what, Expression) and what.is_condition
    return sw.Query(
        what,
        draw(windows()),
        draw(st.one_of(st.none(), NAMES)),
        draw(st.one_of(st.none(), predicates())),
        draw(st.one_of(st.none(), CONDITIONS if truth else TUPLES, CONDITIONS)),
        draw(st.booleans()),
        draw(st.one_of(st.none(), EVERY)),
        draw(sources(depth)),
        by=draw(st.sampled_from([(), ("symbol",), ("a b",), ("a b", "symbol")])),
        stream=draw(st.one_of(st.none(), NAMES)),
    )


@settings(max_examples=settings().max_examples * 2)
@given(query=queries())
def test_a_query_reads_back_from_its_text(query: sw.Query) -> None:
    [read] = sw.sql(str(query))
    assert read == query
    assert read.label == query.label or query.reads_sql  # SQL over columns is written in one way
    assert str(read) == str(query)
    assert read.stream == (query.stream or "events") or query.source is not None


NAMESPACE = {"sw": sw, "datetime": datetime, "Decimal": Decimal}


@given(term=st.one_of(VALUES, CONDITIONS))
def test_an_expression_shows_itself_as_it_is_written(term: Any) -> None:
    again = eval(repr(term), dict(NAMESPACE))
    assert again == term
    assert repr(again) == repr(term)


@given(queries=st.lists(queries(depth=0), min_size=2, max_size=3))
def test_several_statements_are_read_in_order(queries: list[sw.Query]) -> None:
    assert sw.sql(";\n".join(map(str, queries))) == queries


def is_constant(name: str) -> bool:
    """Is it SQL over no column at all?"""
    found = derived(name)
    return found is not None and not found.columns


READ = NAMES.filter(lambda name: not is_constant(name))
COLUMNS = st.lists(READ, min_size=1, max_size=3, unique=True)
POSITIVE = st.one_of(st.integers(1, 10**6), st.floats(1e-6, 1e6))

WHOLE = st.one_of(  # frames of every length
    st.builds(
        fr.Threshold, READ, st.sampled_from([">", ">=", "<", "<=", "=="]),
        NUMBERS, st.booleans(),
        min_rows=st.integers(1, 9), min_duration=st.sampled_from([0, 60, "2m", "1.5h", datetime.timedelta(minutes=3)]),
    ),
    st.builds(fr.Aggregate, aggregates(), st.sampled_from([">", ">=", "<", "<="]), NUMBERS),
    st.dictionaries(READ, POSITIVE, min_size=1, max_size=3).map(fr.Boundary),
    st.builds(
        lambda names, x, measure, op: fr.Delta(dict.fromkeys(names, x), measure=measure, op=op),
        COLUMNS, POSITIVE, st.sampled_from(["first", "range"]), st.sampled_from(["<", "<=", ">", ">="]),
    ),
    st.sets(st.integers(-99, 99), min_size=1, max_size=4).map(lambda b: fr.Boundary("x", breaks=sorted(b))),
    st.builds(fr.Session, st.sampled_from([0, 60, "2m", "1.5h"])),
    st.builds(fr.State, NAMES.filter(lambda name: name not in ("start", "end", "rows", "final", "frame_id"))),
    st.builds(fr.Between, predicates().map(canonical), predicates().map(canonical), st.booleans()),
    st.builds(fr.Threshold, predicates().map(canonical), partition=st.booleans()),
)  # fmt: skip
LENGTHS = st.fixed_dictionaries({}, optional={
    "max_rows": st.integers(9, 20), "max_duration": st.sampled_from(["2h", "3h"]), "extent": st.just("open"),
})  # fmt: skip
SPECS = st.builds(lambda spec, lengths: spec.with_lengths(**lengths), WHOLE, LENGTHS)


@given(
    spec=SPECS,
    aggregate=aggregates(),
    name=st.one_of(st.none(), st.just("value")),
    alias=st.one_of(st.none(), st.just("odd alias")),
    where=st.one_of(st.none(), predicates()),
)
def test_a_frame_query_reads_back_from_its_text(spec: Any, aggregate: Any, name: Any, alias: Any, where: Any) -> None:
    query = fr.FrameQuery(spec, [(name, aggregate if alias is None else aggregate.alias(alias))], where)
    [read] = sw.sql(str(query))
    assert str(read) == str(query) or is_sql(spec)
    assert sw.sql(str(read)) == [read]
    of_sql = any(not each.isidentifier() for each in aggregate.columns)  # is written in one way, and so its name
    assert (of_sql and alias is None) or [name for name, _ in read.values] == [name for name, _ in query.values]
    assert [value for _, value in read.values] == [value for _, value in query.values] and read.where == query.where
    assert read.spec == spec or str(read.spec.min_duration) != str(spec.min_duration) or is_sql(spec)


def is_sql(spec: Any) -> bool:
    """Of SQL over columns, which can be written in several ways."""
    return isinstance(spec, fr.Threshold) and (spec.op is None or derived(spec.column) is not None)


@given(text=predicates())
def test_a_predicate_has_one_way_to_be_written(text: str) -> None:
    assert canonical(canonical(text)) == canonical(text) == canonical(f"( {text} ) /* so */")


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("UNBOUNDED", sw.Unbounded()),
        ("UNBOUNDED UNTIL 5 MINUTES PEERS", sw.Unbounded("5m", peers=True)),
        ("RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", sw.Unbounded()),
        ("RANGE BETWEEN UNBOUNDED PRECEDING AND 3 FOLLOWING", sw.Unbounded(-3)),
        ("ROWS UNBOUNDED PRECEDING", sw.Unbounded()),
        ("SINCE 1 DAY AT TIME ZONE 'America/New_York'", sw.Since("1d", "America/New_York")),
        ("SINCE MONTH", sw.Since("1mo")),
        ("SINCE 1 WEEK", sw.Since("1w")),
        ("RANGE 5 MINUTES PEERS", sw.Range("5m", peers=True)),
        ("RANGE 5 MINUTES CLOSED BOTH PEERS", sw.Range("5m", closed="both", peers=True)),
        ("RANGE BETWEEN 5 MINUTES PRECEDING AND 1 MINUTE FOLLOWING", sw.Range("5m", until="-1m")),
        ("RANGE BETWEEN 1 SECOND FOLLOWING AND 1 MINUTE FOLLOWING", sw.Range("-1s", until="-1m")),
        ("RANGE BETWEEN CURRENT ROW AND 7 FOLLOWING", sw.Range(0, until=-7)),
        ("ROWS BETWEEN 9 PRECEDING AND 2 FOLLOWING", sw.Rows(9, until=-2)),
        ("ROWS BETWEEN 2 FOLLOWING AND 5 FOLLOWING", sw.Rows(-2, until=-5)),
    ],
)
def test_windows_that_lie_ahead_never_end_or_begin_with_the_calendar_are_read_and_written(text, window):
    (query,) = sw.sql(f"SELECT SUM(x) AS s FROM t [{text}]")
    assert query.window == window
    assert sw.sql(str(query)) == [query]
    assert sw.sql(f"SELECT SUM(x) OVER [{text}] AS s FROM t")[0].window == window
