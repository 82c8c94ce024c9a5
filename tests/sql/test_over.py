"""Statements with OVER ( … ): what names mean, which rows there are, and what an engine makes of them."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

import swag as sw
from swag.cli import cli
from swag.query.over_statement import OverStatement

EVENTS = pa.table(
    {"ts": [3, 1, 2, 2], "k": ["a", "b", None, "a"], "x": [1, 2, 3, None], "odd name": [5, 6, 7, 8], "f": [0.5] * 4}
)


def column(text: str, events: Any = EVENTS, **options: Any) -> list[Any]:
    """The last column of a statement."""
    return sw.evaluate(text, events, **options).columns[-1].to_pylist()


def test_there_is_one_row_per_event_in_input_order() -> None:
    found = sw.evaluate("SELECT ts, SUM(x) OVER (ORDER BY ts) AS s FROM events", EVENTS)
    assert found.to_pylist() == [{"ts": 3, "s": 6}, {"ts": 1, "s": 2}, {"ts": 2, "s": 5}, {"ts": 2, "s": 5}]


def test_columns_without_as_are_named_by_their_text() -> None:
    found = sw.evaluate('SELECT x + 1, e."odd name", e.x, sum( x )  OVER () FROM events e', EVENTS)
    assert found.column_names == ["x + 1", "odd name", "x", "sum( x )  OVER ()"]


def test_equal_window_functions_are_answered_once() -> None:
    [statement] = sw.sql(
        "SELECT SUM(x) OVER w AS a, SUM(x) OVER (PARTITION BY k) + 1 AS b FROM t WINDOW w AS (PARTITION BY k)"
    )
    assert isinstance(statement, OverStatement)
    assert len(statement.calls) == 1


def test_texts_that_differ_in_blanks_of_a_constant_are_two_functions() -> None:
    text = "COUNT(*) FILTER (WHERE k = 'a{}b') OVER ()"
    events = {"ts": [1, 2, 3], "k": ["a b", "a  b", "a  b"]}
    found = sw.evaluate(f"SELECT {text.format(' ')} AS one, {text.format('  ')} AS two FROM t", events)
    assert found.to_pylist()[0] == {"one": 1, "two": 2}


def test_names_of_windows_are_found_in_any_case() -> None:
    assert column("SELECT COUNT(*) OVER Wide FROM t WINDOW WIDE AS (PARTITION BY k)") == [2, 1, 1, 2]


def test_a_window_may_begin_with_another_that_begins_with_another() -> None:
    text = "SELECT SUM(x) OVER (b ROWS 1 PRECEDING) FROM t WINDOW a AS (PARTITION BY k), b AS (a ORDER BY ts)"
    assert column(text) == [1, 2, 3, None]


def test_windows_that_begin_with_each_other_are_refused() -> None:
    with pytest.raises(sw.BadSQL, match='there is no window "a" here'):
        sw.sql("SELECT SUM(x) OVER a FROM t WINDOW a AS (b), b AS (a)")


def test_without_order_events_are_as_they_came_and_need_no_ts() -> None:
    assert column("SELECT ROW_NUMBER() OVER (PARTITION BY k) FROM t", {"k": ["a", "b", "a"]}) == [1, 1, 2]
    assert column("SELECT FIRST_VALUE(x) OVER (PARTITION BY k) FROM t") == [1, 2, 3, 1]


def test_first_and_last_value_keep_nulls_unless_they_are_told_not_to() -> None:
    events = {"ts": [1, 2, 3], "x": [None, 5, None]}
    window = "OVER (ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)"
    assert column(f"SELECT FIRST_VALUE(x) {window} FROM t", events) == [None] * 3
    assert column(f"SELECT FIRST_VALUE(x IGNORE NULLS) {window} FROM t", events) == [5] * 3
    assert column(f"SELECT LAST_VALUE(x) {window} FROM t", events) == [None] * 3


def test_nulls_are_ignored_of_expressions_of_any_kind() -> None:
    events = {"ts": [1, 2, 3], "x": [None, -2, 3]}
    for value, expected in (("ABS(x)", [None, 2, 3]), ("CASE WHEN x < 0 THEN 1 END", [None, 1, 1])):
        assert column(f"SELECT LAST_VALUE({value} IGNORE NULLS) OVER (ORDER BY ts) FROM t", events) == expected


@pytest.mark.parametrize(
    ("call", "expected"), [("COUNT_IF(TRUE)", 2), ("BOOL_AND(FALSE)", False), ("COUNT(NULL)", 0), ('MAX("TRUE")', 5)]
)
def test_a_constant_in_an_aggregate_is_no_column(call: str, expected: Any) -> None:
    events = {"ts": [1, 2], "TRUE": [4, 5]}
    assert column(f"SELECT {call} OVER () FROM t", events) == [expected] * 2
    [query] = sw.sql(f"SELECT {call} AS n FROM t [ROWS 2]")
    assert sw.evaluate(query, events)["n"][1].as_py() == expected
    assert sw.sql(str(query)) == [query]


@pytest.mark.parametrize(("word", "expected"), [("TRUE", 2), ("false", 0), ("Null", 0), ("NOT false", 2)])
def test_a_constant_in_python_is_one_too_unless_a_column_is_called_so(word: str, expected: int) -> None:
    query = sw.Query(sw.count_if(word), sw.Rows(2), name="n")
    for events, count in (({"ts": [1, 2]}, expected), ({"ts": [1, 2], word: [False, True]}, 1)):
        engine = sw.Engine()
        engine.register(query)
        engine.append(events)
        assert sw.evaluate(query, events)["n"][1].as_py() == engine.lookup("n") == count


def test_a_default_of_lag_is_for_rows_that_are_not_there_not_for_nulls() -> None:
    assert column("SELECT LAG(x, 1, 0) OVER (ORDER BY ts) FROM t", {"ts": [1, 2, 3], "x": [None, 5, 6]}) == [0, None, 5]


def test_a_time_that_is_cut_off_behind_an_interval_is_compared_in_an_engine() -> None:
    engine = sw.Engine()
    cut = "DATE_TRUNC('day', MAX(u) OVER w - INTERVAL 2 DAYS)"
    engine.register(f"SELECT {cut} < MAX(u) OVER w AS v FROM t WINDOW w AS (ORDER BY ts)")
    engine.append({"ts": [1], "u": [datetime.datetime(2024, 3, 1, 9)]})
    assert engine.lookup("v") is True


@pytest.mark.parametrize("text", ["DATE_TRUNC('day', o)", "DATE_DIFF('hour', o, o)", "o AT TIME ZONE 'UTC'"])
def test_a_time_of_day_is_of_no_day(text: str) -> None:
    with pytest.raises(sw.BadType, match=r"time64\[us\] is no date, and no time of one"):
        column(f"SELECT COUNT(*) OVER (), {text} FROM t", {"ts": [1], "o": [datetime.time(9)]})


def test_a_default_of_lag_may_be_a_call() -> None:
    events = {"ts": [1, 2], "s": ["a", "b"]}
    assert column("SELECT LAG(s, 1, CONCAT('x', s)) OVER (ORDER BY ts) FROM t", events) == ["xa", "a"]


def test_the_nth_value_is_that_of_the_frame_not_of_the_partition() -> None:
    text = "SELECT NTH_VALUE(x, 2) OVER (ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t"
    assert column(text, {"ts": [1, 2, 3], "x": [7, 8, 9]}) == [None, 8, 9]


@pytest.mark.parametrize("frame", ["2 PRECEDING AND 5 PRECEDING", "5 FOLLOWING AND 2 FOLLOWING"])
@pytest.mark.parametrize("kind", ["ROWS", "RANGE"])
def test_a_frame_that_ends_before_it_begins_is_empty(kind: str, frame: str) -> None:
    text = f"SELECT {{}} OVER (ORDER BY ts {kind} BETWEEN {frame}) FROM t"
    assert column(text.format("COUNT(*)")) == [0] * 4
    assert column(text.format("SUM(x)")) == [None] * 4


def test_partitions_of_nan_and_of_both_zeros_are_one_each() -> None:
    events = {"ts": [1, 2, 3, 4], "f": [0.0, -0.0, float("nan"), float("nan")]}
    assert column("SELECT COUNT(*) OVER (PARTITION BY f) FROM t", events) == [2] * 4
    assert column("SELECT COUNT(*) OVER (PARTITION BY f * 1) FROM t", events) == [2] * 4


def test_a_name_that_as_gives_may_be_used_after_it_unless_a_column_has_it() -> None:
    assert column("SELECT SUM(x) OVER () AS total, total + 1 AS more FROM t") == [7] * 4
    assert column("SELECT SUM(x) OVER () AS f, f + 1 AS more FROM t") == [1.5] * 4
    assert column("SELECT x AS y, RANK() OVER (ORDER BY ts) AS r FROM t QUALIFY y > 1 ORDER BY r") == [1, 2]


def test_names_that_as_gives_stand_for_what_they_name_in_where_and_windows() -> None:
    assert column("SELECT x + 1 AS z, SUM(z) OVER (ORDER BY ts) AS s FROM t") == [9, 3, 7, 7]
    assert column("SELECT x AS z, COUNT(*) OVER () AS n FROM t WHERE z > 1") == [2, 2]
    assert column("SELECT x % 2 AS z, z + 1 AS w, MAX(w) FILTER (WHERE z = 1) OVER (ORDER BY ts) AS m FROM t") == [
        2, None, 2, 2]  # fmt: skip
    assert column("SELECT ts AS t, k AS p, LAG(x) OVER (PARTITION BY p ORDER BY t) AS before FROM t") == [None] * 4
    assert column('SELECT x AS "a b", SUM("a b") OVER (ORDER BY ts) AS s FROM t') == [6, 2, 5, 5]
    assert column("SELECT x + 1 AS f, SUM(f) OVER (ORDER BY ts) AS s FROM t") == [2.0, 0.5, 1.5, 1.5]  # of the column


def test_order_by_takes_numbers_nulls_and_nan_as_duckdb_does() -> None:
    events = {"ts": [1, 2, 3, 4], "x": [1.0, None, float("nan"), 2.0]}
    text = "SELECT COUNT(*) OVER () AS n, ts FROM t ORDER BY {}"
    assert column(text.format("x"), events) == [1, 4, 3, 2]
    assert column(text.format("x DESC"), events) == [3, 4, 1, 2]
    assert column(text.format("x NULLS FIRST"), events) == [2, 1, 4, 3]
    assert column(text.format("2 DESC LIMIT 2 OFFSET 1"), events) == [3, 2]


def test_no_events_give_no_rows_with_the_same_columns() -> None:
    text = (
        "SELECT *, SUM(x) OVER (PARTITION BY k ORDER BY ts) AS s, LAG(k) OVER (ORDER BY ts) AS l FROM t WHERE x > 100"
    )
    found = sw.evaluate(text, EVENTS)
    assert (found.num_rows, found.column_names) == (0, [*EVENTS.column_names, "s", "l"])
    assert found.schema.field("l").type == pa.string()


def test_a_sum_that_does_not_fit_raises() -> None:
    with pytest.raises(sw.SwagError, match="does not fit int64"):
        sw.evaluate("SELECT SUM(x) OVER (ORDER BY ts) FROM t", {"ts": [1, 2], "x": [2**62, 2**62]})


@pytest.mark.parametrize(
    ("text", "options", "says"),
    [
        ("SELECT SUM(x) OVER (ORDER BY f) FROM t", {}, 'ts="f"'),
        ("SELECT SUM(y) OVER (ORDER BY ts) FROM t", {}, 'there is no column "y"'),
        ('SELECT SUM(x) OVER () FROM t WHERE k = "a"', {}, "'a' in single quotes"),
        ("SELECT SUM(x) OVER () AS s, MAX(s) OVER () AS m FROM t", {}, 'column 33: "s" is computed after windows are'),
        ("SELECT SUM(x) OVER () AS s FROM t WHERE s > 1", {}, "after windows are, by one of them. Hint: QUALIFY"),
        ("SELECT SUM(z) OVER () AS s, x AS z FROM t", {}, 'column 12: "z" is a name that AS gives after it is used'),
        ("SELECT *, SUM(x) OVER () AS x FROM t", {}, 'two columns are called "x"'),
        ("SELECT SUM(x) OVER () FROM t", {"key": "k"}, "leave `key` out"),
        ("SELECT SUM(x) OVER () FROM t", {"at": {"ts": [1]}}, "without `at`"),
        ("SELECT SUM(x) OVER () FROM t; SELECT SUM(x) OVER () FROM t", {}, "by itself"),
        ("SELECT SUM(x) OVER () FROM t ORDER BY 2", {}, "the result has 1"),
    ],
)
def test_what_can_not_be_answered_is_said(text: str, options: dict[str, Any], says: str) -> None:
    with pytest.raises(sw.SwagError) as found:
        sw.evaluate(text, EVENTS, **options)
    assert says in str(found.value)


REGISTERED = """
    SELECT k, SUM(x) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS recent,
           SUM(x) OVER w / COUNT(*) OVER w AS mean, LAG(x) OVER w AS before, ROW_NUMBER() OVER w AS n,
           LAST_VALUE(x IGNORE NULLS) OVER (w ROWS 2 PRECEDING) AS latest
    FROM t WHERE f > 0 WINDOW w AS (PARTITION BY k ORDER BY ts)
"""


def test_an_engine_answers_what_the_last_row_of_each_partition_says() -> None:
    events = {"ts": [1, 2, 2, 3, 4], "k": list("abaab"), "x": [1, 2, 3, 4, 5], "f": [1, 1, 1, 0, 1]}
    engine = sw.Engine()
    names = engine.register(REGISTERED)
    assert names == ["recent", "mean", "before", "n", "latest"]
    engine.append(events)
    last = {row["k"]: row for row in sw.evaluate(REGISTERED, events).to_pylist()}
    for name in ("mean", "before", "n", "latest"):
        assert {key: engine.lookup(name, key=key) for key in "ab"} == {key: last[key][name] for key in "ab"}
    assert engine.lookup("recent", key="b") == 5
    assert engine.lookup("recent", key="a") is None  # now is 4


FEW = {"ts": [1, 2, 3], "k": ["a", "a", "b"], "x": [1, 2, 3]}


@pytest.mark.parametrize(
    ("item", "answers"),
    [
        ("CASE WHEN LAG(x) OVER w IS NULL THEN 'new' ELSE 'old' END", ["old", "new"]),
        ("LAG(x) OVER w", [1, None]),
        ("LAG(x, 5) OVER w IS NULL", [True, True]),
        ("COALESCE(LAG(x) OVER w, -1)", [1, -1]),
        ("COALESCE(SUM(x) OVER (w ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING), 0)", [1, 0]),
        ("COUNT(*) FILTER (WHERE x > 1) OVER (w ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING)", [0, 0]),
        ("COUNT(*) OVER (w RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)", [2, 0]),
        ("COUNT(*) OVER (w RANGE BETWEEN 2 PRECEDING AND 1 PRECEDING)", [2, 0]),
    ],
)
def test_an_engine_has_an_answer_for_each_key_with_an_event_be_its_window_empty(item: str, answers: list[Any]) -> None:
    text, window = f"SELECT k, {item} AS v FROM t WHERE x < 9", " WINDOW w AS (PARTITION BY k ORDER BY ts)"
    engine = sw.Engine()
    engine.register(text + window)
    engine.append(FEW)
    engine.append({"ts": [3], "k": ["c"], "x": [9]})
    assert engine.lookup("v").to_pylist() == [{"k": k, "value": v} for k, v in zip("ab", answers, strict=True)]
    assert [engine.lookup("v", key=key) for key in "abc"] == [*answers, None]


def test_qualify_is_asked_of_each_key_with_an_event_be_its_window_empty() -> None:
    window = "WINDOW w AS (PARTITION BY k ORDER BY ts)"
    engine = sw.Engine()
    engine.register(f"SELECT k, LAG(x) OVER w AS v FROM t {window} QUALIFY LAG(x) OVER w IS NULL")
    engine.register(f"SELECT k, COUNT(*) OVER (w RANGE 1 PRECEDING) AS n FROM t {window} QUALIFY LAG(x) OVER w IS NULL")
    engine.append(FEW)
    assert engine.lookup("v").to_pylist() == [{"k": "b", "value": None}]
    engine.advance(9)
    assert engine.lookup("n").to_pylist() == [{"k": "b", "value": 0}]


def test_keys_are_let_go_once_no_window_by_time_can_hold_their_latest_event() -> None:
    frame = "RANGE BETWEEN 3 PRECEDING AND 2 PRECEDING"
    engine = sw.Engine()
    engine.register(f"SELECT k, COUNT(*) OVER (PARTITION BY k ORDER BY ts {frame}) AS n FROM t")
    engine.append(FEW)
    engine.advance(5)
    assert engine.lookup("n").to_pylist() == [{"k": "a", "value": 1}, {"k": "b", "value": 1}]
    engine.advance(6)
    assert engine.lookup("n").to_pylist() == [{"k": "b", "value": 1}]


@pytest.mark.parametrize(
    ("item", "says"),
    [
        ("*, COUNT(*) OVER w AS n", '"*" is of the current row'),
        ("x, COUNT(*) OVER w AS n", '"x" is of the current row'),
        ("x - AVG(x) OVER w AS n", '"x" is of the current row'),
        ("LEAD(x) OVER w AS n", "LEAD is not answered on lookup"),
        ("RANK() OVER w AS n", "RANK is not answered on lookup"),
        ("CASE WHEN x > 1 THEN COUNT(*) OVER w END AS n", "LAST_VALUE(x) OVER (… ORDER BY ts) is the latest"),
        ("LAG(x, 1, f) OVER w AS n", '"f" is of the current row'),
        ("NTH_VALUE(x, 2) OVER w AS n", "a frame of at most 66 rows"),
        ("FIRST_VALUE(x) FILTER (WHERE x > 1) OVER w AS n", "FILTER goes with aggregates"),
        ("SUM(x) + SUM(x) OVER w AS n", "sum(x) is over no window"),
        ("SUM(x) OVER (w ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS n", "a frame ends with CURRENT ROW"),
        ("SUM(x) OVER (PARTITION BY k) AS n", "holds what is still to come"),
        ("SUM(x) OVER (PARTITION BY k || 'a' ORDER BY ts) AS n", "PARTITION BY an expression"),
        ("SUM(x) OVER w + SUM(x) OVER (ORDER BY ts) AS n", "several partitions"),
        ("SUM(x) OVER (ORDER BY time) AS n", "ORDER BY ts"),
        ("1 + 1 AS two, SUM(x) OVER w AS n", "1 + 1 has no window function"),
    ],
)
def test_an_engine_refuses_what_it_has_no_rows_for(item: str, says: str) -> None:
    with pytest.raises(sw.BadSQL) as found:
        sw.Engine().register(f"SELECT {item} FROM t WINDOW w AS (PARTITION BY k ORDER BY ts)")
    assert says in str(found.value)


def test_qualify_chooses_the_keys_that_an_engine_answers_for() -> None:
    engine = sw.Engine()
    text = """SELECT k, SUM(x) OVER w AS s, CASE WHEN s > 5 THEN 'much' ELSE 'little' END AS word
              FROM t WINDOW w AS (PARTITION BY k ORDER BY ts) QUALIFY ROW_NUMBER() OVER w >= 2 AND word = 'much'"""
    assert engine.register(text) == ["s", "word"]
    engine.append({"ts": [1, 2, 3, 4, 5], "k": list("abcab"), "x": [5, 1, 9, 2, 1]})
    assert engine.lookup("s").to_pylist() == [{"k": "a", "value": 7}]
    assert engine.lookup("word").to_pylist() == [{"k": "a", "value": "much"}]
    engine.append({"ts": [6], "k": ["c"], "x": [0]})
    assert engine.lookup("s").to_pylist() == [{"k": "a", "value": 7}, {"k": "c", "value": 9}]


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        ("x > 1", "LAST_VALUE(x) OVER (… ORDER BY ts) is the latest"),
        ("n", "QUALIFY takes a condition"),
        ("COUNT(*) OVER (PARTITION BY k ORDER BY ts) > 1", 'over other partitions than "n"'),
        ("1 > 0", "of constants alone"),
    ],
)
def test_what_qualify_can_not_be_is_said(condition: str, says: str) -> None:
    with pytest.raises(sw.BadSQL) as found:
        sw.Engine().register(f"SELECT COUNT(*) OVER (ORDER BY ts) AS n FROM t QUALIFY {condition}")
    assert says in str(found.value)


@pytest.mark.parametrize(
    ("tail", "column"), [("ORDER BY n", 10), ("LIMIT 3", 1), ("OFFSET 3", 1), ("LIMIT 3 OFFSET 1", 1)]
)
def test_an_engine_refuses_what_is_about_rows(tail: str, column: int) -> None:
    with pytest.raises(sw.BadSQL, match=f"line 3, column {column}: .*{tail.split(' ')[0]}.* is about rows"):
        sw.Engine().register(f"SELECT COUNT(*) OVER (ORDER BY ts) AS n\nFROM t\n{tail}")


@pytest.mark.parametrize(
    "marked",
    [
        "SELECT SUM(m) OVER (ORDER BY ¦time) AS s FROM t",
        "SELECT ts, RANK() OVER w AS r FROM t WINDOW w AS (PARTITION BY m ORDER BY ¦time)",
    ],
)
def test_a_window_in_another_order_than_that_of_time_is_said_at_its_order_by(marked: str) -> None:
    text = marked.replace("¦", "")
    with pytest.raises(sw.BadSQL, match=f'line 1, column {marked.index("¦") + 1}: the window is in order of "time"'):
        sw.evaluate(text, {"ts": [1], "m": [1]})
    if "SUM" in text:
        with pytest.raises(sw.BadSQL, match=f"line 1, column {marked.index('¦') + 1}: "):
            sw.Engine().register(text)


def test_the_command_line_takes_such_statements(tmp_path: Path) -> None:
    events = tmp_path / "events.csv"
    events.write_text("ts,k,x\n1,a,2\n2,b,3\n2,a,4\n")
    text = "SELECT k, SUM(x) OVER (PARTITION BY k ORDER BY ts) AS s, s + 1 AS t FROM events"
    ran = CliRunner().invoke(cli, ["run", "-e", text, "--events", str(events)])
    assert ran.exit_code == 0, ran.output
    assert ran.stdout.splitlines() == ['"k","s","t"', '"a",2,3', '"b",3,4', '"a",6,7']
    explained = CliRunner().invoke(cli, ["explain", "-e", text]).output
    assert "PARTITION BY k: 1 column over 1 window, [UNBOUNDED PEERS]" in explained
    refused = CliRunner().invoke(cli, ["run", "-e", text, "--events", str(events), "--key", "k"])
    assert refused.exit_code == 2
    assert "leave --key out" in refused.output


def test_a_condition_may_be_the_first_of_several_that_is_known() -> None:
    events = {"ts": [1, 2], "k": ["a", "b"], "x": [1, 2], "b": [None, False]}
    engine = sw.Engine()
    window = "WINDOW w AS (PARTITION BY k ORDER BY ts)"
    engine.register(f"SELECT SUM(x) OVER w AS s FROM t {window} QUALIFY COALESCE(BOOL_OR(b) OVER w, TRUE)")
    engine.register("SELECT SUM(x) AS z FROM t [ROWS 2] GROUP BY k HAVING COALESCE(BOOL_OR(b), TRUE)")
    engine.append(events)
    assert engine.lookup("s").to_pylist() == engine.lookup("z").to_pylist() == [{"k": "a", "value": 1}]
    with pytest.raises(sw.BadSQL, match="HAVING takes a condition"):
        sw.sql("SELECT SUM(x) FROM t [ROWS 2] HAVING COALESCE(SUM(x), 0)")
