"""What can not be read, or is not supported, is named, with line, column and the nearest thing there is."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import swag as sw
from swag.predicate import canonical

T = "FROM t [ROWS 3]"


MISTAKES = [
    ("", "line 1, column 1: there is no statement"),
    (" ;; -- nothing", "there is no statement"),
    ("SELECT", "line 1, column 7: expected an aggregate"),
    ("SELECT SUM(x)", "line 1, column 14: expected FROM"),
    ("SELECT SUM(x) FROM", "column 19: expected the name of a stream"),
    ("SELECT SUM(x) FROM t", "column 8: sum(x) is over no window. Hint: FROM trades [RANGE 5 MINUTES]"),
    ("SELECT SUM(x) FROM 'a", "the text can not be read as SQL"),
    (f"SELECT SUM(x), {T}", 'column 16: expected an aggregate or the column of GROUP BY, found "FROM"'),
    ("SELECT SUM(x)\n  FROM t [RANGE 5 MINUTS]", 'line 2, column 19: expected a unit of time, found "MINUTS". Hint'),
    ("SELECT SUM(x) FROM t [RAGE 5]", "column 23: expected RANGE, ROWS, FREQUENCY or FRAME, found"),
    ("SELECT SUM(x) FROM t [ROWS 3", "expected ] or ,"),
    ("SELECT SUM(x) FROM t [ROWS 0]", "Rows(0, until=0) is no window"),
    ("SELECT SUM(x) FROM t [ROWS 3, ROWS 4]", "expected RANGE, ROWS"),
    ("SELECT SUM(x) FROM t [RANGE 5 MONTHS]", "MONTHS has no fixed length. Hint: 30 DAYS"),
    ("SELECT SUM(x) FROM t [RANGE 5.5]", "5.5 is not a whole number"),
    ("SELECT SUM(x) FROM t [RANGE UNBOUNDED]", "UNBOUNDED is not supported. Hint: a window that ends"),
    ("SELECT SUM(x) FROM t [RANGE 5 CLOSED UP]", "expected LEFT, RIGHT, BOTH or NONE"),
    ("SELECT SUM(x) FROM t [RANGE BETWEEN 5 AND 3]", "expected PRECEDING"),
    ("SELECT SUM(x) FROM t [ROWS 3, FREQUENCY 0 TUPLES]", "never comes round"),
    ("SELECT SUM(x) FROM t [ROWS 3, FREQUENCY 5 TUPLES PARTITIONED BY k]", "PARTITIONED BY k, but no GROUP BY. Hint"),
    (f"SELECT SUM(x) {T} ORDER BY x", "column 31: ORDER BY is not supported. Hint: sort the table"),
    (f"SELECT SUM(x) {T} LIMIT 3", "LIMIT is not supported"),
    (f"SELECT SUM(x) {T}, u", "a second stream is not supported"),
    (f"SELECT SUM(x) {T} JOIN u ON a = b", "JOIN is not supported"),
    (f"SELECT SUM(x) {T} UNION SELECT SUM(x) {T}", "UNION is not supported. Hint: several statements"),
    (f"SELECT DISTINCT SUM(x) {T}", "column 8: DISTINCT is not supported"),
    (f"SELECT SUM(DISTINCT x) {T}", "SUM(DISTINCT …) is not supported"),
    ("SELECT SUM(x) OVER (PARTITION BY y) FROM t", "OVER ( … ) is not supported. Hint: OVER [RANGE 5 MINUTES]"),
    ("SELECT SUM(x)[ROWS 3] FROM t", "column 14: expected OVER before a window"),
    ("SELECT SUM(x) OVER [FREQUENCY 3] FROM t", "OVER takes a window"),
    (f"SELECT LAST(x) IGNORE NULLS {T}", "IGNORE NULLS is not supported. Hint: nulls are always skipped"),
    ("WITH a AS (SELECT 1) SELECT 1", "WITH is not supported"),
    ("UPDATE t SET x = 1", 'expected SELECT, found "UPDATE"'),
    (f"SELECT CASE WHEN SUM(x) > 1 THEN 1 END {T}", "CASE is not supported. Hint: FILTER"),
    (f"SELECT * {T}", "line 1, column 8: SELECT * is not supported here"),
    ("SELECT *, SUM(x) FROM s [ROWS 2]", "line 1, column 9: * beside others"),
    ("SELECT SUM(x), * FROM s [ROWS 2]", "line 1, column 16: * beside others"),
    ("SELECT SUM(x) FROM (SELECT * FROM s [ROWS 3] WHERE x > 1) [ROWS 2]", "column 38: SELECT * chooses events"),
    ("SELECT SUM(x) FROM (SELECT * FROM s WHERE x > 1 GROUP BY k) [ROWS 2]", "SELECT * chooses events, it does not"),
    ("SELECT SUM(x) FROM (SELECT * FROM s WHERE SUM(x) > 1) [ROWS 2]", "is an aggregate; WHERE is about single"),
    (f"SELECT x {T}", '"x" is neither aggregated nor in GROUP BY. Hint: GROUP BY x, or LAST(x)'),
    (f"SELECT k AS key, COUNT(*) {T} GROUP BY k", "keeps its name"),
    (f"SELECT k {T} GROUP BY k", "selects no aggregate"),
    (f"SELECT 5 {T}", "5 is a constant"),
    (f"SELECT SMU(x) {T}", "column 8: there is no function SMU. Hint: SUM"),
    (f"SELECT SUM(x + 1) {T}", "SUM takes columns by name, not x + 1. Hint: compute it as a column"),
    (f"SELECT SUM(x, y) {T}", "SUM takes 1 column, not 2"),
    (f"SELECT SUM(u.x) {T}", 'column 12: "u" is not the stream'),
    (f"SELECT QUANTILE(x, 2) {T}", "a fraction in (0, 1], not 2"),
    (f"SELECT PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY x) {T}", "Hint: QUANTILE(x, 0.99)"),
    (f"SELECT LAST(x)::int {T}", "CAST(LAST(x) AS INT) is not supported"),
    (f"SELECT SUM(x) ** 2 {T}", "is not supported"),
    (f"SELECT 1 / 0 + SUM(x) {T}", "divides by zero"),
    (f"SELECT (SELECT 1) {T}", "a statement inside an expression is not supported"),
    (f"SELECT SUM(x) {T} WHERE", "expected a condition"),
    (f"SELECT SUM(x) {T} WHERE SUM(x) > 3", "column 37: SUM(x) is an aggregate; WHERE is about single events"),
    (f"SELECT SUM(x) {T} WHERE a IN (SELECT 1)", "a statement inside an expression"),
    (f"SELECT SUM(x) {T} WHERE a ~ 'b'", "is not supported"),
    (f"SELECT SUM(x) {T} HAVING SUM(x)", "HAVING takes a condition"),
    (f"SELECT SUM(x) {T} HAVING x > 3", 'the column "x" stands outside any aggregate. Hint: LAST("x")'),
    (f"SELECT SUM(x) {T} HAVING SUM(x) > 1 AND", "where an expression should go on"),
    (f"SELECT SUM(x) {T} GROUP BY 1", "GROUP BY a number is not supported"),
    (f"SELECT /*+ FAST */ SUM(x) {T}", "the hint 'FAST' is not known. Hint: /*+ NO_INDEX */"),
    (f"SELECT SUM(n) FROM (SELECT COUNT(*) AS n, SUM(x) {T}) [ROWS 3]", "selects one aggregate; this one selects 2"),
    ("SELECT SUM(x) FROM a.b [ROWS 3]", "a schema is not supported"),
    ("SELECT SUM(x) FORM t [ROWS 3]", 'column 15: "FORM" is read as a name. Hint: FROM'),
    (f"SELECT SUM(x) {T} WEHRE x > 1", 'column 31: "WEHRE" is read as a name. Hint: WHERE'),
    (f"SELECT SUM(x) {T} WHERE x > 1 AND UPPER(side) = 'A'", "column 47: there is no function UPPER in WHERE"),
    ("SELECT SUM(x) FROM (SELECT * FROM t WHERE x > 1) [FRAME DELTA x 1]", "column 21: frames are found in all events"),
    (f"SELECT SUM(n) FROM (SELECT SUM(x) AS n {T}) [FRAME DELTA n 1]", "column 21: frames are found in events, not"),
    ("SELECT SUM(x) FROM t [FRAME AROUND x]", "expected WHERE, UNTIL, WHILE, DELTA or GRID"),
    ("SELECT SUM(x) FROM t [FRAME WHERE x > y]", "compares one column with a number"),
    ("SELECT SUM(x) FROM t [FRAME WHERE x > 1 AND y > 2]", "compares one column with a number"),
    ("SELECT SUM(x) FROM t [FRAME UNTIL SUM(x) < 3]", "UNTIL compares an aggregate by > or >=. Hint: [FRAME UNTIL"),
    ("SELECT SUM(x) FROM t [FRAME DELTA x -1]", "no spread is below 0"),
    ("SELECT SUM(x) FROM t [FRAME DELTA x 1, ROWS 3]", 'expected the name of a column, found "ROWS"'),
    ("SELECT SUM(x) OVER [ROWS 3] FROM t [FRAME DELTA x 1]", "has no window of its own"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "says"), MISTAKES)
def test_mistakes_say_where_and_what_instead(text: str, says: str) -> None:
    with pytest.raises(sw.BadSQL) as found:
        sw.sql(text)
    assert says in str(found.value)
    assert str(found.value).startswith("line ")


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(sw.BadType, match="SQL is text"):
        sw.sql(7)  # type: ignore[arg-type]


SQL = """
    SELECT FROM WHERE GROUP BY HAVING SUM( COUNT(*) LAST(x) x t k ) ( [ ] , ; . * + - / < > = <> AND OR NOT IN BETWEEN
    IS NULL OVER FILTER AS RANGE ROWS FREQUENCY FRAME DELTA GRID UNTIL WHILE FOR TUPLES MINUTES 5 5m 1e9 0.5 'a' "q"
    PRECEDING CLOSED LEFT PARTITIONED WITHIN ORDER LIMIT JOIN UNION DISTINCT CASE WHEN END :: -- /* */ { } ? : | & % !
    INTERVAL CAST( ABS( QUANTILE( /*+ NO_INDEX */ $ @ # ` ~ VALUES WITH LATERAL PIVOT QUALIFY
"""
WORDS = SQL.split()
SOUP = st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join)
BROKEN = st.tuples(st.sampled_from([f"SELECT k, SUM(x) / COUNT(*) AS a {T} WHERE x > 1 GROUP BY k HAVING a > 2;",
                                    "SELECT LAST(x) OVER [RANGE 5 MINUTES UNTIL 1m] FROM t [FREQUENCY 1 HOUR]",
                                    "SELECT AVG(x) FROM t [FRAME WHERE x > 0.3 FOR 2 MINUTES AND 3 TUPLES PARTITION]"]),
                   st.integers(0, 90), st.integers(0, 90), st.text(max_size=3)).map(
    lambda t: t[0][: min(t[1:3])] + t[3] + t[0][max(t[1:3]) :])  # fmt: skip


@settings(max_examples=settings().max_examples * 4)
@given(text=st.one_of(st.text(max_size=200), SOUP, SOUP.map(lambda s: f"SELECT {s}"), BROKEN))
def test_any_text_gives_queries_or_an_error_of_ours(text: str) -> None:
    try:
        queries = sw.sql(text)
    except sw.SwagError:
        return
    assert all(sw.sql(str(query)) == [query] for query in queries)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 100_000,
        "SELECT " + "(" * 50 + "SUM(x)" + ")" * 50 + f" {T}",
        f"SELECT {'-' * 1}{'- ' * 20_000} SUM(x) {T}",
        f"SELECT {'NOT ' * 20_000} SUM(x) > 1 {T}",
        f"SELECT SUM(x){' + SUM(x)' * 20_000} {T}",
        f"SELECT SUM(x){' + SUM(x)' * 2_000} {T}",
        f"SELECT SUM(x) {T} WHERE x{' + x' * 2_000} > 1",
        f"SELECT SUM(x) {T} HAVING SUM(x) > 1{' AND SUM(x) > 1' * 5_000}",
        f"SELECT SUM(x) {T} WHERE x > 1{' OR x > 1' * 5_000}",
        f"SELECT SUM(x) {T} WHERE x IN ({'1, ' * 20_000}1)",
        f"SELECT {'SUM(x), ' * 10_000} SUM(x) {T}",
        "SELECT AVG(n) FROM (" * 3_000 + f"SELECT COUNT(*) AS n {T}" + ") [ROWS 3]" * 3_000,
        f"SELECT SUM(x) FROM t [ROWS {'9' * 50_000}]",
        f"SELECT SUM(x) + {'9' * 50_000} {T}",
        f"SELECT SUM({'x' * 90_000}) {T}",
        "/*" * 50_000,
        "'" * 99_999,
        "SELECT SUM(x) FROM t [ROWS 3];" * 1_000 + "(",
    ],
)
def test_long_and_deep_texts_end_soon(text: str) -> None:
    """Minutes would mean that something is not linear."""
    with contextlib.suppress(sw.SwagError):
        sw.sql(text)


@given(text=st.one_of(st.text(max_size=100), SOUP))
def test_any_where_gives_a_predicate_or_an_error_of_ours(text: str) -> None:
    with contextlib.suppress(sw.SwagError):
        assert canonical(canonical(text)) == canonical(text)
