"""What can not be read, or is not supported, is named: where, what was found or expected, and what to write instead.

The table is mistakes.txt: a statement with a mark where the mistake is said to be, and below it what is said.
"""

from __future__ import annotations

import datetime
import pickle
import re
from pathlib import Path

import pytest

import swag as sw
from swag.sql.functions import AGGREGATES, EXAMPLES, NOT_OURS, THERE_ARE
from swag.sql.hints import ELSEWHERE, NODES, UNSUPPORTED

LINES = [line for line in Path(__file__).with_name("mistakes.txt").read_text().splitlines() if line and line[0] != "#"]
SAID = [line.strip().replace("{THERE_ARE}", THERE_ARE) for line in LINES[1::2]]
MISTAKES = list(zip(LINES[::2], SAID, strict=True))


@pytest.mark.parametrize(("marked", "says"), MISTAKES)
def test_a_mistake_is_said_where_it_is_with_what_to_write_instead(marked: str, says: str) -> None:
    before, text = marked.replace("⏎", "\n").split("¦")[0], marked.replace("⏎", "\n").replace("¦", "")
    with pytest.raises(sw.BadSQL) as found:
        sw.sql(text)
    line, column = before.count("\n") + 1, len(before.rsplit("\n", 1)[-1]) + 1
    assert str(found.value).startswith(f"line {line}, column {column}: ")
    assert str(found.value).endswith(f": {says}" if says[0] != "…" else says[1:])
    assert (found.value.line, found.value.column) == (line, column)
    assert says.endswith(f"Hint: {found.value.hint}")


def test_the_table_is_one_of_many_mistakes() -> None:
    assert len(MISTAKES) > 200
    assert all(marked.count("¦") == 1 and "Hint: " in says for marked, says in MISTAKES)


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(sw.BadType, match="SQL is text"):
        sw.sql(7)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("marked", "hint"),
    [
        ("SELECT SUM(x) AS v /* v isn't x */ FROM t [ROWS 2] WHERE k = 'v' AND ¦v > 3", "HAVING v > 1"),
        ("SELECT SUM(x) AS v FROM t [ROWS 2] WHERE k = ¦\u2018a\u2019", "'a' in straight quotes, which is text"),
    ],
)
def test_a_column_that_is_not_there_is_said_where_it_is_read_with_what_was_meant(marked: str, hint: str) -> None:
    with pytest.raises(sw.UnknownColumn) as found:
        sw.evaluate(marked.replace("¦", ""), {"ts": [1], "k": ["a"], "x": [1]})
    assert str(found.value).startswith(f"line 1, column {marked.index('¦') + 1}: ")
    assert found.value.hint.startswith(hint)


HAND = {"ts": [1, 2], "k": ["a", "b"], "x": [1.0, 2.0]}


@pytest.mark.parametrize(
    ("marked", "says"),
    [
        ("SELECT SUM(x) AS a, MAX(x) AS ¦a FROM t [ROWS 2]", 'two queries are named "a"'),
        ("SELECT SUM(x) AS a FROM t [ROWS 2];⏎SELECT MAX(x) AS ¦a FROM t [ROWS 2]", 'two queries are named "a"'),
        ("SELECT SUM(x), ¦SUM(x) FROM t [ROWS 2]", 'two queries are named "sum(x)[ROWS 2]"'),
        ("SELECT MEDIAN(¦k) FROM t [ROWS 2]", 'median(k) reads "k", a column of type string'),
        ("SELECT MEDIAN(¦k) OVER (ORDER BY ts) FROM t", 'median(k) reads "k", a column of type string'),
        ("SELECT COUNT_IF(¦x) FROM t [ROWS 2]", 'takes true and false, but "x" is a column of type double'),
        ("SELECT SUM(x) FROM t [RANGE ¦5 MINUTES]", '"5m" is a duration, but ts is an integer'),
        ("SELECT SUM(x) FROM t [ROWS 5 ] EVERY ¦90 SECONDS", '"90s" is a duration, but ts is an integer'),
        ("SELECT DECAYED_SUM(x, ¦INTERVAL '2' HOUR) FROM t [ROWS 2]", '"2h" is a duration, but ts is an integer'),
        ("SELECT COUNT(*) FROM t [FRAME SESSION ¦30 MINUTES]", '"30m" is a duration, but ts is an integer'),
        ("SELECT SUM(x) OVER (ORDER BY ts RANGE ¦INTERVAL 5 MINUTES PRECEDING) FROM t", '"5m" is a duration'),
        ("SELECT SUM(x) FROM t [ROWS 3] HAVING SUM(x) ¦> '3'", "an answer of type double can not be compared with '3'"),
    ],
)
def test_what_only_events_show_is_said_where_it_is_written(marked: str, says: str) -> None:
    before, text = marked.replace("⏎", "\n").split("¦")[0], marked.replace("⏎", "\n").replace("¦", "")
    with pytest.raises(sw.SwagError, match=re.escape(says)) as found:
        sw.evaluate(text, HAND)
    line, column = before.count("\n") + 1, len(before.rsplit("\n", 1)[-1]) + 1
    assert str(found.value).startswith(f"line {line}, column {column}: ")


@pytest.mark.parametrize(
    ("called", "hint"),
    [
        ("CAST('x' AS INT)", "12.5, a number"),
        ("CAST('x' AS BOOLEAN)", "TRUE"),
        ("CAST('x' AS DATE)", "DATE '2024-03-01', TIMESTAMP '2024-03-01 09:30:00'"),
        ("REGEXP_MATCHES(k, '(')", r"REGEXP_MATCHES(s, '^a.*b$'), or '\(' for a parenthesis itself"),
    ],
)
def test_what_to_write_instead_is_of_the_kind_that_is_wanted(called: str, hint: str) -> None:
    with pytest.raises(sw.SwagError) as found:
        sw.evaluate(f"SELECT COUNT({called}) FROM t [ROWS 2]", HAND)
    assert found.value.hint == hint


def test_text_right_after_text_is_refused_in_python_too() -> None:
    with pytest.raises(sw.BadQuery, match="a text right after another"):
        sw.Query(sw.count(), sw.Rows(2), where="k IN ('a' 'b')")


@pytest.mark.parametrize(
    "text",
    [
        'SELECT SUM(x) AS s FROM t [ROWS 2]\nWHERE k = "a"',
        'SELECT SUM(x)\nFILTER (WHERE "a" = k) AS s FROM t [ROWS 2]',
        'SELECT COUNT(*) FROM (SELECT * FROM t\nWHERE k = "a") [ROWS 2]',
        'SELECT SUM(CASE\nWHEN k = "a" THEN x END) OVER () FROM t',
    ],
)  # fmt: skip
def test_text_in_double_quotes_is_said_to_be_a_name(text: str) -> None:
    with pytest.raises(sw.SwagError, match=r"^line 2, column .*'a' in single quotes, which is text$"):
        sw.evaluate(text, {"ts": [1], "k": ["a"], "x": [1]})


@pytest.mark.parametrize(
    ("item", "says"),
    [
        ("LAG(x, 1, 'a') OVER (ORDER BY ts)", r"string and int64 have no type in common"),
        ("CASE WHEN SUM(x) OVER () > 0 THEN 'a' ELSE 1 END", "SUM.x. OVER .. is int64. string and int64 have no type"),
        ("SUM(x) OVER () + 'a'", r"int64 and string do not go together in SUM\(x\) OVER \(\) \+ 'a'. Hint"),
        ("1 % (SUM(x) OVER () - 1)", r"of row 0, where SUM\(x\) OVER \(\) = 1: 1 % .*: division by zero. Hint"),
    ],
)
def test_what_is_computed_of_windows_is_said_in_the_words_of_the_statement(item: str, says: str) -> None:
    with pytest.raises(sw.SwagError, match=f"^line 1, column 12: {re.escape(item)} can not be computed.*{says}") as why:
        sw.evaluate(f"SELECT ts, {item} AS z FROM t", {"ts": [1], "x": [1]})
    assert "·" not in str(why.value)


def test_an_error_travels_with_its_place() -> None:
    """To another process and back, as Spark's workers send it."""
    with pytest.raises(sw.BadSQL) as found:
        sw.sql("SELECT SUM(x)\n FORM t")
    again = pickle.loads(pickle.dumps(found.value))
    assert (str(again), again.hint, again.line, again.column) == (str(found.value), "FROM", 2, 2)


ARITY = {name: (each.columns + each.least, each.columns + each.most) for name, each in AGGREGATES.items()}


@pytest.mark.parametrize("name", sorted(ARITY))
@pytest.mark.parametrize("count", range(6))
def test_a_function_takes_as_many_arguments_as_it_says(name: str, count: int) -> None:
    columns, (least, most) = AGGREGATES[name].columns, ARITY[name]
    given = ["x", "y", "z"][:columns] + (["0.5", "'linear'"] if name == "QUANTILE" else ["1"]) + ["1"] * 6
    text = f"SELECT {name}({', '.join(given[:count])}) FROM t [ROWS 3]"
    if least <= count <= most or (name, count) == ("COUNT", 0):
        assert sw.sql(text)
        return
    with pytest.raises(sw.BadSQL, match=f"column 8: {name} takes .*, found {count or 'no'} argument") as found:
        sw.sql(text)
    assert found.value.hint == AGGREGATES[name].example


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_the_example_of_a_function_can_be_written(name: str) -> None:
    for example in EXAMPLES[name].split(", or "):
        assert sw.sql(f"SELECT {example} FROM t [ROWS 3]")


def test_nothing_is_said_not_to_be_that_is() -> None:
    assert not (set(NOT_OURS) | set(ELSEWHERE)) & set(EXAMPLES)
    for name in ELSEWHERE:
        with pytest.raises(sw.BadSQL, match=f"^line 1, column 12: the function {name} is not supported"):
            sw.sql(f"SELECT SUM({name}(x)) FROM t [ROWS 2]")
    assert all(hint for hint in [*NOT_OURS.values(), *(hint for _, hint in [*UNSUPPORTED.values(), *NODES.values()])])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("SELECT x, SUM(x) OVER () AS z\nFROM t WHERE x > 0 AND z > 1", 'line 2, column 24: "z" is computed after'),
        ("SELECT SUM(z) OVER () AS q, x + 1 AS z FROM t", 'line 1, column 12: "z" is a name that AS gives after it is'),
        ("SELECT AVG(s) OVER () FROM t", 'line 1, column 12: mean(s) computes with "s", a column of type string. Hint: '
         'CAST("s" AS DOUBLE)'),
        ("SELECT COUNT(*) AS n,\n SUM(s) AS z FROM t [ROWS 2]", 'line 2, column 6: sum(s) computes with "s"'),
        ("SELECT SUM(x) AS z FROM t [ROWS 2]\nWHERE s = 1", "line 2, column 7: where='s = 1' can not be computed: s i"),
        ("SELECT SUM(x + s) AS z FROM t [ROWS 2]", 'line 1, column 12: query "z" reads x + s, which can not be comput'),
        ("SELECT SUM(x % 0) AS z FROM t [ROWS 2]", 'line 1, column 12: query "z" reads x % 0, which can not be comput'),
        ("SELECT SUM(x) OVER () FROM t WHERE s", "line 1, column 36: WHERE s can not be computed: s is string. string"),
        ("SELECT SUM(x) FILTER (WHERE s>1) OVER () FROM t", "line 1, column 29: where='s > 1' can not be computed: s "),
        ("SELECT SUM(x) OVER (PARTITION BY x+s) FROM t", "line 1, column 34: PARTITION BY x + s can not be computed: "),
        ("SELECT SUM(x) OVER () FROM t QUALIFY SUM(x) OVER ()", "line 1, column 38: QUALIFY SUM(x) OVER () can not be"),
        ("SELECT SUM(x) OVER () AS z FROM t ORDER BY z, x + s", "line 1, column 47: x + s can not be computed: s is"),
        ("SELECT SUM(x) OVER () FROM t WHERE x < NOW", 'line 1, column 40: there is no column "NOW"; the events have'),
        ("SELECT CAST(s AS INT), SUM(x) OVER () FROM t", "line 1, column 8: CAST(s AS INT) can not be computed of"),
        ("SELECT * RENAME (x AS z), SUM(x) OVER () FROM t", "line 1, column 10: RENAME after * is not supported."),
        ("SELECT TOP 3 SUM(x) OVER () FROM t", "line 1, column 8: TOP is not supported. Hint: LIMIT 10"),
        ("SELECT SUM(x) OVER () FROM t FETCH FIRST 2 ROWS ONLY", "line 1, column 30: FETCH is not supported."),
        ("SELECT s LIKE 'a!' ESCAPE '!' AS z, SUM(x) OVER () FROM t", "line 1, column 8: s LIKE 'a!' ESCAPE '!' can"),
    ],
)  # fmt: skip
def test_what_the_events_tell_is_said_with_its_place_too(text: str, says: str) -> None:
    with pytest.raises(sw.SwagError) as found:
        sw.evaluate(text, {"ts": [1], "x": [1], "s": ["a"]})
    assert str(found.value).startswith(says)
    assert "Hint: " in str(found.value)


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        (
            "ts > 2024-03-01",
            r"timestamp\[us\] and int64 do not go together.* Hint: a time in quotes: ts >= '2024-03-01",
        ),
        ("ts > '01/03/2024'", r"'01/03/2024' is no timestamp\[us\]: '2024-03-01', or '2024-03-01 09:30:00', is one"),
        ("x = '10'", "int64 and string do not go together .* Hint: 10 beside a number, '10' beside text; CAST"),
        ("s + s = s", r"string and string do not go together in s \+ s. Hint: s || 'a' joins texts"),
        ("b = 1", "bool and int64 do not go together in b = 1. Hint: b, or NOT b: a condition by itself"),
        ("CAST(s AS INT) > 1", "of row 1, where s = 'b': .*'b' as"),
    ],
)
def test_values_of_two_types_are_said_with_what_to_write(condition: str, says: str) -> None:
    ts = [datetime.datetime(2024, 3, 1), datetime.datetime(2024, 3, 2), datetime.datetime(2024, 3, 3)]
    with pytest.raises(sw.SwagError, match=says):
        sw.evaluate(f"SELECT SUM(x) FROM t [ROWS 2] WHERE {condition}",
                    {"ts": ts, "x": [1, 2, 3], "s": ["1", "b", "c"], "b": [True, False, None]})  # fmt: skip


def test_answers_of_two_types_are_said_without_words_of_arrow() -> None:
    with pytest.raises(sw.BadType, match="these columns: string and int64 do not go together"):
        sw.evaluate("SELECT LAST(s) + 1 AS z FROM t [ROWS 2]", {"ts": [1], "s": ["a"]})
