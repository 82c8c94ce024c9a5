"""Arithmetic and conditions over aggregates, against the oracle: in `evaluate`, in the engine, and as values."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import swag as sw
from swag.query.expression import Expression, Windowed
from tests import oracle
from tests import oracle_expressions as plain
from tests.oracle import agg
from tests.oracle_expressions import Leaf, Statement

SCHEMA = pa.schema({"ts": pa.int64(), "k": pa.string(), "x": pa.float64(), "i": pa.int64(), "side": pa.string()})
NAN, INF = math.nan, math.inf

# --- The same expression for the oracle and for us --------------------------------------------------------

LEAVES = [
    (sw.count(), agg("count")),
    (sw.count("x"), agg("count", "x")),
    (sw.sum("i"), agg("sum", "i")),
    (sw.max("i"), agg("max", "i")),
    (sw.min("x"), agg("min", "x")),
    (sw.first("x"), agg("first", "x")),
    (sw.last("x"), agg("last", "x")),
]
WINDOWS = [
    (sw.Rows(2), oracle.Rows(2)),
    (sw.Rows(3, until=1), oracle.Rows(3, 1)),
    (sw.Range(4), oracle.Range(4)),
    (sw.Range(9), oracle.Range(9)),
    (sw.Range(6, until=3), oracle.Range(6, 3)),
]
FILTERS = [(None, None), ("side = 'ask'", lambda e: e["side"] == "ask")]
CONSTANTS = st.sampled_from([0, 1, 2, -3, 0.5, 2.5])


@st.composite
def leaf(draw: st.DrawFn) -> Any:
    (ours, theirs), (window, same) = draw(st.sampled_from(LEAVES)), draw(st.sampled_from(WINDOWS))
    where, test = draw(st.sampled_from(FILTERS))
    term = ours.over(window)
    return (term if where is None else term.filter(where)), Leaf(theirs, same, test)


CONSTANT = CONSTANTS.map(lambda c: (c, c))


@st.composite
def value(draw: st.DrawFn, depth: int = 2) -> Any:
    """An expression that is a number, for us and for the oracle."""
    if depth == 0 or draw(st.booleans()):
        return draw(leaf())
    op = draw(st.sampled_from(["+", "-", "*", "/", "neg", "abs", "coalesce"]))
    first = draw(value(depth - 1))
    rest = [] if op in ("neg", "abs") else [draw(st.one_of(value(depth - 1), CONSTANT))]
    return Expression(op, (first[0], *(r[0] for r in rest))), (op, first[1], *(r[1] for r in rest))


@st.composite
def condition(draw: st.DrawFn, depth: int = 2) -> Any:
    if depth and draw(st.booleans()):
        op = draw(st.sampled_from(["and", "or", "not"]))
        parts = [draw(condition(depth - 1)) for _ in range(1 if op == "not" else draw(st.integers(2, 3)))]
        return Expression(op, tuple(p[0] for p in parts)), (op, *(p[1] for p in parts))
    op = draw(st.sampled_from([">", ">=", "<", "<=", "=", "<>", "between", "in", "is null", ">", "<"]))
    first = draw(st.one_of(leaf(), value(1)))
    count = {"between": 2, "in": 2, "is null": 0}.get(op, 1)
    rest = [draw(CONSTANT if op == "in" else st.one_of(CONSTANT, leaf())) for _ in range(count)]
    return Expression(op, (first[0], *(r[0] for r in rest))), (op, first[1], *(r[1] for r in rest))


@st.composite
def statements(draw: st.DrawFn, indexed: bool = False) -> tuple[sw.Query, Statement]:
    where, test = draw(st.sampled_from(FILTERS))
    having = draw(condition()) if indexed or draw(st.booleans()) else (None, None)
    if indexed:
        window, same = draw(st.sampled_from(WINDOWS[2:4]))
        (ours, theirs), threshold = draw(st.sampled_from(LEAVES[:5])), draw(CONSTANTS)
        op = draw(st.sampled_from([">", ">=", "<", "<="]))
        guard = Expression(op, (ours.over(window), threshold)), (op, Leaf(theirs, same), threshold)
        having = having[0] & guard[0], ("and", having[1], guard[1])
    term = draw(value())
    return sw.Query(term[0], None, "q", where, having[0]), Statement(term[1], test, having[1])


@st.composite
def streams(draw: st.DrawFn, odd: bool = True) -> list[dict[str, Any]]:
    floats = [0.0, 1.0, 2.5, -1.5, *([None, NAN, INF] if odd else [None])]
    rows = draw(
        st.lists(
            st.tuples(
                st.integers(0, 3),
                st.sampled_from("ab"),
                st.sampled_from(floats),
                st.sampled_from([0, 1, 2, 5, None]),
                st.sampled_from(["ask", "bid", None]),
            ),
            max_size=14,
        )
    )
    ts, events = 0, []
    for gap, k, x, i, side in rows:
        ts += gap
        events.append({"ts": ts, "k": k, "x": x, "i": i, "side": side})
    return events


def table(events: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(events, SCHEMA)


def same(expected: Any, actual: Any) -> bool:
    if isinstance(expected, bool) or expected is None or actual is None:
        return expected is actual
    return oracle.same(float(expected), float(actual), 1e-9 * max(1.0, abs(expected)) if expected == expected else 0.0)


# --- Against the oracle -----------------------------------------------------------------------------------


@given(case=statements(), events=streams(), keyed=st.booleans())
def test_evaluate_computes_what_the_oracle_does(case: Any, events: list[dict[str, Any]], keyed: bool) -> None:
    query, statement = case
    key = "k" if keyed else None
    actual = sw.evaluate([query], table(events), key=key)["q"].to_pylist()
    expected = plain.evaluate(statement, events, key)
    assert all(same(e, a) for e, a in zip(expected, actual, strict=True)), (query.label, expected, actual)


@given(cases=st.lists(st.one_of(statements(), statements(indexed=True)), min_size=1, max_size=3), events=streams(False),
       cut=st.integers(0, 14), later=st.integers(0, 6))  # fmt: skip
def test_the_engine_computes_what_the_oracle_does(
    cases: Any, events: list[dict[str, Any]], cut: int, later: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    engine, truth = sw.Engine(key="k"), oracle.Engine(key="k")
    for n, (query, _) in enumerate(cases):
        engine.register(sw.Query(query.aggregate, query.window, f"q{n}", query.where, query.having))
    for batch in (events[:cut], events[cut:]):
        engine.append(table(batch))
        truth.append(batch)
    if events:
        engine.advance(events[-1]["ts"] + later)
        truth.advance(events[-1]["ts"] + later)
    path = tmp_path_factory.mktemp("s") / "s"
    engine.save(path)
    for each in (engine, sw.Engine.load(path)):
        for n, (query, statement) in enumerate(cases):
            found = each.lookup(f"q{n}")
            actual = dict(zip(found["k"].to_pylist(), found["value"].to_pylist(), strict=True))
            expected = plain.lookup(statement, truth)
            assert actual.keys() == expected.keys(), (query.label, expected, actual)
            assert all(same(expected[k], actual[k]) for k in expected), (query.label, expected, actual)
    for n in range(len(cases)):
        engine.unregister(f"q{n}")
    assert engine._stream.core.plan.queries == {}


# --- As values --------------------------------------------------------------------------------------------


def test_operators_make_values_that_compare_equal() -> None:
    x, y = sw.sum("x"), sw.count()
    assert 2 * x + y / 3 == Expression("+", (Expression("*", (2, x)), Expression("/", (y, 3))))
    assert (x > 5) == (x > 5)
    assert (x > 1) & ((x < 5) & y.ne(3)) == Expression("and", (x > 1, x < 5, y.ne(3)))
    assert hash(abs(-x)) == hash(abs(-sw.sum("x")))
    assert str((x - y) * 2 / x >= 0.5) == "(sum(x) - count()) * 2 / sum(x) >= 0.5"
    assert str(~(x.isin([1, 2]) | x.between(5, 9) | y.is_null())) == (
        "NOT (sum(x) IN (1, 2) OR sum(x) BETWEEN 5 AND 9 OR count() IS NULL)"
    )


def test_a_window_or_filter_of_its_own_reaches_every_aggregate_that_has_none() -> None:
    own = sw.max("x").over(sw.Rows(5))
    assert (own - sw.min("x")).over(sw.Rows(9)) == own - sw.min("x").over(sw.Rows(9))
    assert sw.sum("x").filter("a=1").filter("b = 2 or c=3") == Windowed(sw.sum("x"), None, "a = 1 AND (b = 2 OR c = 3)")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (sw.Query(sw.sum("x").over(sw.Rows(5))), sw.Query(sw.sum("x"), sw.Rows(5))),
        (sw.Query(sw.sum("x"), sw.Rows(5), having=sw.sum("x") > 5), sw.Query(sw.sum("x"), sw.Rows(5), having=(">", 5))),
        (sw.Query(having=sw.sum("x").over(sw.Rows(5)) > 5), sw.Query(sw.sum("x"), sw.Rows(5), having=(">", 5))),
        (
            sw.Query(sw.sum("x").over(sw.Rows(5)) / sw.count().over(sw.Rows(5))),
            sw.Query(sw.sum("x") / sw.count(), sw.Rows(5)),
        ),
        (
            sw.Query(sw.sum("x").over(sw.Rows(5)) / sw.count(), sw.Rows(7)),
            sw.Query(sw.sum("x").over(sw.Rows(5)) / sw.count().over(sw.Rows(7)), sw.Rows(7)),
        ),
        (
            sw.Query(-sw.sum("x"), sw.Rows(5), having=(">", 5)),
            sw.Query(-sw.sum("x"), sw.Rows(5), having=-sw.sum("x") > 5),
        ),
        (
            sw.Query(sw.sum("x"), sw.Rows(5), where="a=1  and b > 2"),
            sw.Query(sw.sum("x"), sw.Rows(5), where="a = 1 AND b>2 -- so"),
        ),
    ],
)
def test_what_means_the_same_is_equal(one: sw.Query, other: sw.Query) -> None:
    assert one == other
    assert hash(one) == hash(other)
    assert one.label == other.label


def test_labels_say_what_a_query_is() -> None:
    spread = (sw.max("p") - sw.min("p")) / sw.last("p")
    assert sw.Query(spread, sw.Range("5m")).label == "((max(p) - min(p)) / last(p))[RANGE 5m]"
    assert sw.Query(sw.count().filter("a=1"), sw.Rows(5)).label == "count() FILTER (WHERE a = 1)[ROWS 5]"
    assert sw.Query(having=(sw.count() > 5) & (sw.sum("x") > 1), window=sw.Rows(5)).label == (
        "[ROWS 5] HAVING count() > 5 AND sum(x) > 1"
    )


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: sw.sum("x") + None, "neither an aggregate"),
        (lambda: sw.sum("x") > NAN, "NaN"),
        (lambda: sw.sum("x") + "a", "text"),
        (lambda: sw.sum("x") & (sw.sum("x") > 1), "neither true nor false"),
        (lambda: (sw.sum("x") > 1) + 1, "is a condition"),
        (lambda: sw.sum("x").isin([sw.count()]), "list of constants"),
        (lambda: Expression("?", (sw.sum("x"),)), "no expression"),
        (lambda: Expression("+", (1, 2)), "constants alone"),
        (lambda: bool(sw.sum("x") > 1), "known only once"),
        (lambda: sw.sum("x").over(5), "no window"),
        (lambda: sw.sum("x").filter("a ="), "not an SQL predicate"),
        (lambda: sw.Query(sw.sum("x") / sw.count()), "over no window"),
        (lambda: sw.Query(), "aggregates something"),
        (lambda: sw.Query(sw.sum("x"), sw.Rows(3), having=sw.count() + 1), "neither true nor false"),
        (lambda: _deep(200), "deep"),
    ],
)
def test_what_makes_no_sense_is_refused(make: Any, says: str) -> None:
    with pytest.raises(sw.BadQuery, match=says):
        make()


def _deep(n: int) -> Any:
    term: Any = sw.sum("x")
    for _ in range(n):
        term = -term
    return term


# --- In the engine ----------------------------------------------------------------------------------------

TRADES = {
    "ts": [1, 2, 3, 4, 5],
    "k": list("aabab"),
    "x": [1.0, 3.0, 2.0, 5.0, 2.0],
    "side": ["ask", "bid", "ask", None, "bid"],
}


def test_a_filter_does_not_remove_a_key_from_the_answer() -> None:
    engine = sw.Engine(key="k")
    engine.register("SELECT k, COUNT(*) FILTER (WHERE side = 'ask' AND x > 1) AS n FROM t [RANGE 10] GROUP BY k")
    engine.append(TRADES)
    assert engine.lookup("n").to_pylist() == [{"k": "a", "value": 0}, {"k": "b", "value": 1}]


def test_candidates_of_one_condition_are_checked_for_the_others() -> None:
    engine = sw.Engine(key="k")
    engine.register("SELECT k, SUM(x) AS s FROM t [RANGE 10] GROUP BY k HAVING COUNT(*) >= 3 AND MAX(x) - MIN(x) > 1")
    engine.append(TRADES)
    assert engine.lookup("s").to_pylist() == [{"k": "a", "value": 9.0}]
    assert engine.lookup("s", exact=False).to_pylist() == [{"k": "a"}]
    assert engine.lookup("s", key="b") is None
    assert "CI-COUNT names the candidates for count()[RANGE 10] HAVING >= 3" in engine.explain()
    assert engine.filters().to_pylist() == [{"query": "s", "k": "a", "value": 9.0}]


def test_hidden_queries_live_as_long_as_one_needs_them() -> None:
    engine = sw.Engine()
    window = sw.Rows(3)
    engine.register([sw.Query(sw.sum("x") / sw.count(), window, "a"), sw.Query(sw.sum("x") * 2, window, "b")])
    assert engine.register(sw.Query(sw.sum("x"), window)) == "sum(x)[ROWS 3]"
    engine.append({"ts": [1, 2], "x": [1.0, 2.0]})
    assert engine.lookup_all().to_pylist() == [{"a": 1.5, "b": 6.0, "sum(x)[ROWS 3]": 3.0}]
    assert [query.label for query in engine.queries] == ["a", "b", "sum(x)[ROWS 3]"]
    engine.unregister("a")
    engine.unregister("sum(x)[ROWS 3]")
    assert engine.lookup("b") == 6.0
    engine.unregister("b")
    assert engine.stats()["structures"] == 0


def test_before_the_first_event() -> None:
    engine = sw.Engine()
    some = sw.count() + 1, sw.sum("x") + 1, sw.last("side").eq("ask")
    engine.register([sw.Query(what, sw.Rows(3), name) for what, name in zip(some, "nst", strict=True)])
    assert (engine.lookup("n"), engine.lookup("s")) == (1, None)
    assert engine.lookup_all().to_pylist() == [{"n": 1, "s": None, "t": None}]
    engine.append(TRADES)
    assert engine.lookup_all().to_pylist() == [{"n": 4, "s": 10.0, "t": False}]


def test_integers_stay_exact_and_refuse_to_overflow() -> None:
    events = {"ts": [1], "x": [2**62 + 1]}
    twice = sw.Query(sw.max("x") + sw.min("x"), sw.Rows(1))
    assert sw.evaluate([sw.Query(sw.max("x") - 1, sw.Rows(1), "m")], events)["m"].to_pylist() == [2**62]
    with pytest.raises(sw.SumOverflow, match="does not fit int64"):
        sw.evaluate([twice], events)


def test_division_by_zero_is_that_of_floats() -> None:
    queries = [sw.Query(sw.last("x") / sw.last("y"), sw.Rows(1), "q")]
    answer = sw.evaluate(queries, {"ts": [1, 2, 3, 4], "x": [1, -1, 0, None], "y": [0, 0, 0, 0]})["q"].to_pylist()
    assert answer[:2] == [INF, -INF]
    assert math.isnan(answer[2])
    assert answer[3] is None


def test_text_compares_with_text_only() -> None:
    last = sw.Query(sw.last("side").eq("ask"), sw.Rows(1), "q")
    assert sw.evaluate([last], TRADES)["q"].to_pylist() == [True, False, True, None, False]
    with pytest.raises(sw.BadType, match="can not be computed"):
        sw.evaluate([sw.Query(sw.last("side") > 3, sw.Rows(1))], TRADES)


def test_a_statement_is_grouped_as_it_says_whatever_the_key_of_the_call() -> None:
    counted = sw.evaluate("SELECT COUNT(*) AS n FROM t [ROWS 3]", TRADES, key="k")
    assert counted.column_names == ["k", "ts", "n"]
    assert counted["n"].to_pylist() == sw.evaluate(sw.Query(sw.count(), sw.Rows(3), "n"), TRADES)["n"].to_pylist()
    by_key = sw.evaluate("SELECT k, COUNT(*) AS n FROM t [ROWS 3] GROUP BY k", TRADES)
    assert by_key == sw.evaluate(sw.Query(sw.count(), sw.Rows(3), "n"), TRADES, key="k")
    engine = sw.Engine(key="k")
    engine.register("SELECT x, COUNT(*) AS n FROM t [ROWS 3] GROUP BY x")
    engine.append(TRADES)
    assert engine.lookup("n").column_names == ["x", "value"]


def test_a_query_groups_the_answers_that_it_reads_by_what_these_have() -> None:
    inner = sw.Query(sw.count(), sw.Rows(3), "n", by="k")
    with pytest.raises(sw.UnknownColumn, match='"side"'):
        sw.Engine().register(sw.Query(sw.max("n"), sw.Rows(3), source=inner, by="side"))


def test_expressions_answer_at_ticks(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    events = pa.table(
        {
            "ts": np.sort(rng.integers(0, 900, 900)),
            "k": rng.choice(list("abc"), 900),
            "x": rng.integers(0, 9, 900),
            "side": rng.choice(["ask", "bid"], 900),
        }
    )
    text = """SELECT k, SUM(x) FILTER (WHERE side = 'ask') / SUM(x) AS r FROM t [RANGE 50{frequency}] GROUP BY k
              HAVING COUNT(*) OVER [RANGE 20] > 5"""
    ticking, sliding = text.format(frequency=", EVERY 100"), text.format(frequency="")
    ticks = sw.evaluate(ticking, events, key="k")
    assert ticks.num_rows > 5
    assert ticks["r"].to_pylist() == pytest.approx(
        sw.evaluate(sliding, events, at=ticks.select(["ts", "k"]), key="k")["r"].to_pylist()
    )
    engine = sw.Engine(key="k")
    engine.register(ticking)
    engine.append(events.slice(0, 400))
    emitted = [engine.emitted()]
    engine.save(tmp_path / "s")
    engine = sw.Engine.load(tmp_path / "s")
    engine.append(events.slice(400))
    engine.advance(1000)
    emitted.append(engine.emitted())
    found = pa.concat_tables(emitted)
    assert sorted(zip(found["tick"].to_pylist(), found["k"].to_pylist(), strict=True)) == sorted(
        zip(ticks["tick"].to_pylist(), ticks["k"].to_pylist(), strict=True)
    )


@pytest.mark.parametrize("term", [sw.max("x") - sw.min("x"), sw.sum("x").over(sw.Rows(3))])
def test_what_is_no_bare_aggregate_is_named_by_its_query(term):
    with pytest.raises(sw.BadQuery, match="name of its query") as found:
        term.alias("r")
    assert 'name="r"' in found.value.hint
