"""Where a column is named, SQL over columns will do: it answers as a column would that holds the same values.

Every query is asked twice, of an expression and of a column that was computed before; all that may happen to an engine
happens to both.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import swag as sw
from swag.tables.expressions.expression import compiled, values

FEWER = settings(max_examples=settings.default.max_examples // 3)  # each example is an engine or two

EXPRESSIONS = {  # and the name of the column that is computed before
    "x*y": "xy", "CASE WHEN s='a' THEN x END": "chosen", "COALESCE(y,0)/2": "half", "upper(s)": "upper", "x>1": "more",
}  # fmt: skip
KINDS = [sw.sum, sw.mean, sw.min, sw.max, sw.std, sw.count, sw.first, sw.last, sw.median]
NUMBERS = [each for each in EXPRESSIONS if each != "upper(s)"]


@st.composite
def aggregates(draw: Any) -> tuple[Any, Any]:
    """An aggregate of an expression, and of the column."""
    make = draw(st.sampled_from(KINDS))
    text = draw(st.sampled_from(list(EXPRESSIONS) if make in (sw.count, sw.first, sw.last) else NUMBERS))
    if make is not sw.sum or draw(st.booleans()):
        return make(text), make(EXPRESSIONS[text])
    other = draw(st.sampled_from(["x", "y", "x*y"]))
    return sw.wmean(text, other), sw.wmean(EXPRESSIONS[text], EXPRESSIONS.get(other, other))


@st.composite
def queries(draw: Any, **options: Any) -> list[sw.Query]:
    found = []
    for i in range(draw(st.integers(1, 4))):
        window = draw(st.sampled_from([sw.Rows(3), sw.Range(4), sw.Range(9, until=2)]))
        where = draw(st.sampled_from([None, "x % 2 = 0", "s = 'a'"]))
        by = draw(st.sampled_from([None, (), ("s2",)]))
        for which, aggregate in zip("ab", draw(aggregates()), strict=True):
            found.append(sw.Query(aggregate, window, name=f"{which}{i}", where=where, by=by, **options))
    return found


@st.composite
def tables(draw: Any, ordered: bool = True) -> pa.Table:
    size = draw(st.integers(1, 12))
    steps = draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))
    ts = [sum(steps[: i + 1]) for i in range(size)]
    some = st.one_of(st.none(), st.integers(-4, 4))
    columns = {
        "ts": ts if ordered else draw(st.permutations(ts)),
        "k": draw(st.lists(st.sampled_from("pq"), min_size=size, max_size=size)),
        "s2": draw(st.lists(st.sampled_from("uv"), min_size=size, max_size=size)),
        "s": draw(st.lists(st.sampled_from(["a", "b", None]), min_size=size, max_size=size)),
        "x": pa.array(draw(st.lists(some, min_size=size, max_size=size)), pa.int64()),
        "y": pa.array(draw(st.lists(some, min_size=size, max_size=size)), pa.float64()),
    }
    table = pa.table({**columns, "s": pa.array(columns["s"], pa.string())})
    for text, name in EXPRESSIONS.items():
        table = table.append_column(name, values(compiled(text), table, "it"))
    return table


def check_pairs(table: pa.Table) -> None:
    rows = repr([{name: row[name] for name in row} for row in table.to_pylist()])
    for name in table.column_names:
        if name[0] == "a" and name[1:].isdigit():
            assert repr(table[name].to_pylist()) == repr(table[f"b{name[1:]}"].to_pylist()), (name, rows)
            assert table[name].type == table[f"b{name[1:]}"].type


@FEWER
@given(asked=queries(), table=tables(ordered=False))
def test_stored_events_are_answered_as_of_a_column(asked: list[sw.Query], table: pa.Table) -> None:
    check_pairs(sw.evaluate(asked, table, key="k"))


@FEWER
@given(asked=queries(), table=tables(), cut=st.integers(0, 12), data=st.data())
def test_so_is_an_engine_whatever_happens_to_it(
    tmp_path_factory: pytest.TempPathFactory, asked: list[sw.Query], table: pa.Table, cut: int, data: Any
) -> None:
    options = data.draw(st.sampled_from([{}, {"lateness": 2}, {"lateness": 2, "hold": False}]))
    engine = sw.Engine(key="k", **options)
    late = data.draw(st.integers(0, len(asked) // 2)) * 2
    engine.register(asked[late:])
    engine.append(table.slice(0, cut))
    engine.register(asked[:late])
    if data.draw(st.booleans()):
        path = Path(tmp_path_factory.mktemp("saved")) / "engine.swag"
        engine.save(path)
        engine = sw.Engine.load(path)
    engine.append(table.slice(cut))
    engine.advance(int(table["ts"][-1].as_py()) + 2)
    since = engine.stats()["complete_since"]  # what comes midway may start from kept columns; nobody kept the other
    whole = [name for name, time in since.items() if time is None or time <= table["ts"][-1].as_py()]
    pairs = [i for i in range(len(asked) // 2) if i >= late // 2 or {f"a{i}", f"b{i}"} <= set(whole)]
    assert all(since[f"a{i}"] == since[f"b{i}"] for i in range(late // 2, len(asked) // 2))
    for by in {query.by for query in asked}:
        answers = engine.lookup_all(by=by)
        check_pairs(answers.select([f"{which}{i}" for i in pairs for which in "ab" if f"a{i}" in answers.column_names]))


@FEWER
@given(asked=queries(every=sw.Every(2)), table=tables(), cut=st.integers(0, 12))
def test_so_are_ticks(asked: list[sw.Query], table: pa.Table, cut: int) -> None:
    engine = sw.Engine(key="k")
    engine.register(asked)
    engine.append(table.slice(0, cut))
    engine.append(table.slice(cut))
    for i in range(len(asked) // 2):
        one, other = (engine.emitted(f"{which}{i}").drop_columns(["query"]) for which in "ab")
        assert repr(one.to_pylist()) == repr(other.to_pylist())
    of_one = [query for query in asked if query.by is None]
    if of_one:
        check_pairs(sw.evaluate(of_one, table, key="k"))


def test_what_is_written_in_other_words_is_one_column_with_one_structure() -> None:
    engine = sw.Engine()
    written = ["price*volume", "price * volume", " price  *  volume ", "(price * volume)"]
    engine.register([sw.Query(sw.sum(text), sw.Rows(n + 1)) for n in range(25) for text in written])
    engine.append({"ts": [1, 2], "price": [1.5, 2.0], "volume": [2, 4]})
    assert engine.stats()["structures"] == 1
    assert sw.sum("price*volume") == sw.sum("price * volume")
    assert engine.lookup("sum(price*volume)[ROWS 2]") == 11.0
    assert "sum(price * volume) over every event" in engine.explain()


def test_parentheses_that_mean_nothing_make_no_difference() -> None:
    engine = sw.Engine()
    written = ["x * y", "(x) * (y)", "((x)*(y))", "( x * ((y)) ) -- so", "x*y"]
    engine.register([sw.Query(sw.sum(text), sw.Rows(n + 1)) for n in range(25) for text in written])
    engine.register(sw.Query(sw.sum("(X_) * y"), sw.Rows(2), name="other"))
    engine.append({"ts": [1, 2], "x": [1.5, 2.0], "y": [2, 4], "X_": [1, 1]})
    assert engine.stats()["structures"] == 2
    assert len({sw.sum(text) for text in written}) == 1
    assert "sum(x * y) over every event" in engine.explain()
    assert sw.sum("case when (x > 1) then (y) else (z + 1) end") == sw.sum("CASE WHEN x > 1 THEN y ELSE z + 1 END")
    assert sw.sum("round((x), 1) - (y - z)") == sw.sum("ROUND(x, 1) - (y - z)") != sw.sum("ROUND(x, 1) - y - z")
    assert sw.sum("x + (y + z)") != sw.sum("(x + y) + z") == sw.sum("x + y + z")  # floats are rounded differently


def test_a_text_that_is_exactly_the_name_of_a_column_is_that_column() -> None:
    events = {"ts": [1], "user-id": [5], "user": [1], "id": [7], "odd name": [3], "price (USD)": [2]}
    named = {"user-id": 5, "user + id": 8, '"user-id" * 2': 10, "odd name": 3, '"odd name"': 3, "price (USD)": 2}
    asked = [sw.Query(sw.sum(text), sw.Rows(1), name=f"q{i}") for i, text in enumerate(named)]
    assert sw.evaluate(asked, events).to_pylist()[0] == {"ts": 1} | {f"q{i}": v for i, v in enumerate(named.values())}
    engine = sw.Engine()
    engine.register(asked)
    engine.append(events)
    assert [engine.lookup(f"q{i}") for i in range(len(asked))] == list(named.values())


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (
            "price * volum",
            sw.UnknownColumn,
            'reads price \\* volum, and with it "volum", but the events have: ts',
        ),
        ("price *", sw.UnknownColumn, "as SQL, it can not be read at column 7"),
        ("foo(price)", sw.UnknownColumn, r"as SQL, FOO\(price\) is not supported"),
        ("price + s", sw.BadType, "price is int64, s is string"),
        ("price // volume", sw.BadEvents, "row 1, where price = 2, volume = 0"),
        ("upper(s)", sw.BadType, "string"),
    ],
)
def test_a_batch_that_can_not_be_computed_is_refused_whole(text: str, error: Any, message: str) -> None:
    events = {"ts": [1, 2], "price": [1, 2], "volume": [1, 0], "s": ["a", "b"]}
    query = sw.Query(sw.sum(text), sw.Rows(2), name="q")
    engine = sw.Engine()
    engine.register([query, sw.Query(sw.count(), sw.Rows(9), name="n")])
    for call in (engine.append, lambda table: sw.evaluate(query, table)):
        with pytest.raises(error, match=message):
            call(events)
    assert engine.lookup("n") == 0


def test_statements_say_the_same_and_read_back() -> None:
    text = "SELECT k, SUM(t.price * t.volume) / SUM(volume) AS vwap FROM trades AS t [ROWS 3] GROUP BY k"
    [query] = sw.sql(text)
    assert query.aggregate == sw.sum("price * volume") / sw.sum("volume")
    assert sw.sql(str(query)) == [query]
    case = "AVG(CASE WHEN side = 'buy' THEN price END)"
    [query] = sw.sql(f"SELECT {case} AS a FROM t [RANGE 5] WHERE EXTRACT(hour FROM at) < 9 AND at > DATE '2024-01-01'")
    assert query.aggregate == sw.mean("CASE WHEN side = 'buy' THEN price END")
    assert sw.sql(str(query)) == [query]
    [query] = sw.sql('SELECT SUM("user-id") FROM t [ROWS 3]')
    assert sw.evaluate(query, {"ts": [1], "user-id": [4]}).to_pylist()[0]['sum("user-id")[ROWS 3]'] == 4


def test_an_expression_over_the_answers_of_another_query() -> None:
    text = """SELECT SUM(n * 2 + 1) AS s FROM (SELECT COUNT(*) AS n FROM t [ROWS 2, FREQUENCY 1 TUPLES]) [ROWS 2]"""
    events = {"ts": [1, 2, 3], "x": [1, 2, 3]}
    assert sw.evaluate(text, events)["s"].to_pylist() == [3, 8, 10]
    engine = sw.Engine()
    engine.register(text)
    engine.append(events)
    assert engine.lookup("s") == 10
