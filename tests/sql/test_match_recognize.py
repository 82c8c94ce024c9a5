"""MATCH_RECOGNIZE: read, evaluated as fr.Pattern, printed back; what is not supported is refused by name."""

import pytest

import frames as fr
import swag as sw

TICKS = {"ts": [1, 2, 3, 4, 1, 2, 3], "symbol": ["x"] * 4 + ["y"] * 3, "price": [9, 7, 6, 8, 5, 4, 6]}
DIPS = """SELECT * FROM ticks MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY ts
    MEASURES FIRST(A.ts) AS start, LAST(B.price) AS low ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW
    PATTERN (A B+ C) DEFINE B AS price < PREV(price), C AS price > PREV(price))"""


def test_a_statement_gives_a_row_for_each_match():
    found = sw.evaluate(DIPS, TICKS)
    assert found.column_names == ["frame_id", "symbol", "start_", "end", "rows", "start", "low"]
    assert found.select(["symbol", "start", "end", "rows", "low"]).to_pylist() == [
        {"symbol": "y", "start": 1, "end": 3, "rows": 3, "low": 4},
        {"symbol": "x", "start": 1, "end": 4, "rows": 4, "low": 6},
    ]


def test_columns_are_selected_by_name():
    text = DIPS.replace("SELECT *", "SELECT symbol, low, rows")
    assert sw.evaluate(text, TICKS).to_pylist()[0] == {"symbol": "y", "low": 4, "rows": 3}


@pytest.mark.parametrize(
    "text", [DIPS, "SELECT low FROM t MATCH_RECOGNIZE (MEASURES MIN(A.x) AS low PATTERN (A{2,3} | B))"]
)
def test_a_statement_is_printed_and_reads_back_the_same(text):
    (query,) = sw.sql(text)
    assert sw.sql(str(query)) == [query]
    assert str(sw.sql(str(query))[0]) == str(query)


def test_the_pattern_is_that_of_python():
    (query,) = sw.sql(DIPS.replace("FIRST(A.ts) AS start, ", ""))
    define = {"B": "price < PREV(price)", "C": "price > PREV(price)"}
    assert query.spec == fr.Pattern("A B+ C", define, {"low": "LAST(B.price)"})


BODY = "PATTERN (A B) DEFINE B AS x > 1"
REFUSED = {
    "ALL ROWS PER MATCH " + BODY: "ALL ROWS PER MATCH is not supported",
    "AFTER MATCH SKIP TO NEXT ROW " + BODY: "AFTER MATCH SKIP TO NEXT ROW is not supported",
    "ORDER BY ts DESC " + BODY: "DESC is not supported",
    "ORDER BY ts, x " + BODY: "several columns is not supported",
    "PATTERN (A B) SUBSET U = (A, B) DEFINE B AS x > 1": "SUBSET is not supported",
    "PATTERN (^A B)": "anchor",
    "PATTERN (PERMUTE(A, B))": "PERMUTE is not supported",
    "PATTERN (A+? B)": "reluctant",
    "MEASURES FINAL LAST(A.x) AS y PATTERN (A)": "FINAL is not supported",
    "MEASURES LAST(A.x) PATTERN (A)": "expected AS and a name",
    "DEFINE B AS x > 1": "expected PATTERN",
    "PATTERN (A B) DEFINE D AS x > 1": "no symbol of the pattern",
    "PATTERN (A B": r"expected DEFINE or \), found the end",
    "PATTERN (A B) DEFINE B x > 1": "expected AS after B",
    "PATTERN (A B) WITHIN 5": "WITHIN is not supported",
}


@pytest.mark.parametrize("body", REFUSED)
def test_what_is_not_supported_is_refused_by_name(body):
    with pytest.raises(sw.BadSQL, match=REFUSED[body]) as caught:
        sw.sql(f"SELECT * FROM t MATCH_RECOGNIZE ({body})")
    assert caught.value.hint


@pytest.mark.parametrize(
    "body",
    [
        "PATTERN (¦A+? B)",
        "PATTERN (A B)⏎ DEFINE A AS x > 0, ¦C AS x > 1",
        "PATTERN (A B) DEFINE A AS x > 0, ¦a AS x > 1",
        "PATTERN (A B) DEFINE A AS x > 0,⏎B AS ¦x > FOO(x)",
        "PATTERN (A B) DEFINE A AS x > 0, B AS ¦x > PREV(C.x)",
        "PATTERN (A B) DEFINE A AS x > 0, B AS ¦MEDIAN(x) > 1",
        "MEASURES MAX(A.x) AS v, ¦SUM(C.x) AS w PATTERN (A B)",
        "MEASURES MAX(A.x) AS start,⏎ ¦LAST(B.x) + FOO(x) AS w PATTERN (A B) DEFINE B AS x > 1",
        "MEASURES ¦LAST(B.x +) AS w PATTERN (A B)",
    ],
)
def test_a_mistake_is_said_at_the_part_that_has_it(body):
    marked = f"SELECT * FROM t MATCH_RECOGNIZE ({body})".replace("⏎", "\n")
    before = marked.split("¦")[0]
    with pytest.raises(sw.BadSQL) as found:
        sw.sql(marked.replace("¦", ""))
    assert (found.value.line, found.value.column) == (before.count("\n") + 1, len(before.rsplit("\n", 1)[-1]) + 1)


TEXTS = {"ts": [1, 2, 3], "x": [1, 2, 1], "k": ["1", "2", "3"], "odd name": ["4", "5", "6"]}


@pytest.mark.parametrize(
    ("measure", "names", "hint", "answer"),
    [
        ("SUM({})", "k", "CAST(k AS DOUBLE)", 3),
        ("AVG({})", "A.k", "CAST(A.k AS DOUBLE)", 1),
        ("SUM({})", 'B."odd name"', 'CAST(B."odd name" AS DOUBLE)', 5),
        ("SUM({})", "A.k || 0", "CAST(A.k || 0 AS DOUBLE)", 10),
    ],
)
def test_a_measure_of_text_names_it_as_it_was_written(measure, names, hint, answer):
    text = "SELECT * FROM t MATCH_RECOGNIZE (MEASURES LAST(x) AS l, {} AS v PATTERN (A B) DEFINE B AS x > PREV(x))"
    with pytest.raises(sw.BadType) as found:
        sw.evaluate(text.format(measure.format(names)), TEXTS)
    assert str(found.value).startswith(
        f"line 1, column {text.index('{') + 5 + 2 * ('.' in names)}: {measure[:3]}({names}) "
    )
    assert found.value.hint == hint
    assert " value" not in str(found.value)
    assert sw.evaluate(text.format(measure.format(hint)), TEXTS)["v"].to_pylist() == [answer]


def test_a_measure_that_can_not_be_computed_is_said_where_it_stands():
    text = "SELECT * FROM t MATCH_RECOGNIZE (MEASURES LAST(x) AS l, LAST(B.k) + 1 AS v PATTERN (A B))"
    with pytest.raises(sw.BadType, match=f"line 1, column {text.index('LAST(B') + 1}: MEASURES v can not"):
        sw.evaluate(text, TEXTS)


BESIDE = {"[ROWS 3]": "a window", "WHERE x > 1": "WHERE", "GROUP BY x": "GROUP BY", "HAVING COUNT(*) > 1": "HAVING"}


@pytest.mark.parametrize("more", BESIDE)
def test_other_clauses_are_refused_beside_it(more):
    with pytest.raises(sw.BadSQL, match=f"{BESIDE[more]} beside MATCH_RECOGNIZE"):
        sw.sql(f"SELECT * FROM t MATCH_RECOGNIZE ({BODY}) {more}")


@pytest.mark.parametrize("what", ["COUNT(*)", "AVG(rows)"])
def test_a_statement_over_matches_is_refused(what):
    with pytest.raises(sw.BadSQL, match="inside of FROM"):
        sw.sql(f"SELECT {what} FROM (SELECT * FROM t MATCH_RECOGNIZE ({BODY})) [ROWS 3]")
    with pytest.raises(sw.BadSQL, match="beside OVER"):
        sw.sql(f"SELECT SUM(x) OVER (ORDER BY ts) AS y FROM t MATCH_RECOGNIZE ({BODY})")


def test_an_aggregate_of_matches_or_an_unknown_column_is_refused():
    with pytest.raises(sw.BadSQL, match="by name"):
        sw.sql(f"SELECT COUNT(*) FROM t MATCH_RECOGNIZE ({BODY})")
    with pytest.raises(sw.BadSQL, match='gives no column "y"'):
        sw.sql(f"SELECT y FROM t MATCH_RECOGNIZE ({BODY})")
    with pytest.raises(sw.BadQuery, match='in order of "t", but'):
        sw.evaluate(f"SELECT * FROM s MATCH_RECOGNIZE (ORDER BY t {BODY})", {"ts": [1], "x": [1]})
