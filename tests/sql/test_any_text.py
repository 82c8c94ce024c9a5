"""Any text gives queries, or a BadSQL that says where and what to write instead; never another exception."""

from __future__ import annotations

import contextlib
import random
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import swag as sw
from swag.sql import frame_spec
from swag.tables.predicate import canonical

T = "FROM t [ROWS 3]"
VALID = [
    f"SELECT k, SUM(x) / COUNT(*) AS a {T} WHERE x > 1 GROUP BY k HAVING a > 2;",
    "SELECT LAST(x) OVER [RANGE 5 MINUTES UNTIL 1m] FROM t [FREQUENCY 1 HOUR]",
    "SELECT AVG(x) FROM t [FRAME WHERE x > 0.3 FOR 2 MINUTES AND 3 TUPLES PARTITION]",
    "SELECT COUNT(*) FROM t [FRAME UNTIL SUM(x) >= 25]; SELECT MAX(x) FROM t [FRAME GRID x 4.25, y (1, 2)]",
    "SELECT MIN(x) FROM t AS u [FRAME DELTA u 0.05, v 1 MEASURE RANGE] GROUP BY k HAVING COUNT(*) > 1",
    "SELECT k, QUANTILE(x, 0.9, 'linear') q, VAR(y, 0) FROM t [RANGE BETWEEN 2 HOURS AND 1 HOUR PRECEDING] GROUP BY k",
    "SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x) FROM t [ROWS 9 UNTIL 2, FREQUENCY 5 TUPLES]",
    f"SELECT SUM(v) FILTER (WHERE side = 'ask' OR y IS NOT NULL) OVER [RANGE 2m] >= 0.7 * SUM(v) {T}",
    "SELECT AVG(n) FROM (SELECT COUNT(*) AS n FROM t [ROWS 9, FREQUENCY 10 TUPLES] WHERE x < 30) [RANGE 1 DAY]",
    "SELECT SUM(x) FROM (SELECT * FROM t WHERE x BETWEEN 1 AND 2) [ROWS 2] -- the end",
    f'SELECT /*+ NO_INDEX */ "a key", COUNT("x y") {T} WHERE s LIKE \'a%\' AND x IN (1, 2) GROUP BY "a key"',
    f"SELECT LAST(d) > DATE '2020-01-01' AND LAST(b) = TRUE OR LAST(e) <= INTERVAL '90' SECONDS {T}",
    f"SELECT COALESCE(ABS(LAST(x) - FIRST(x)), 0) BETWEEN 1 AND 2 AND NOT COUNT(y) = 0 {T}",
    "SELECT k, SUM(x) FROM t [RANGE 300 CLOSED LEFT, FREQUENCY 10 TUPLES PARTITIONED BY k] GROUP BY k",
]
SQL = """
    SELECT FROM WHERE GROUP BY HAVING SUM( COUNT(*) LAST(x) x t k ) ( [ ] , ; . * + - / < > = <> AND OR NOT IN BETWEEN
    IS NULL OVER FILTER AS RANGE ROWS FREQUENCY FRAME DELTA GRID UNTIL WHILE FOR TUPLES MINUTES 5 5m 1e9 0.5 'a' "q"
    PRECEDING CLOSED LEFT PARTITIONED WITHIN ORDER LIMIT JOIN UNION DISTINCT CASE WHEN END :: -- /* */ { } ? : | & % !
    DATE TRUE NULL DATE'2020-01-01' INTERVAL'5'DAYS -'a'
    INTERVAL CAST( ABS( QUANTILE( /*+ NO_INDEX */ $ @ # ` ~ VALUES WITH LATERAL PIVOT QUALIFY => =< && || ' " \\ EVERY
    FOLLOWING UNBOUNDED MEASURE ANCHOR TUPLE BREAKS 1. .5 0x 1e -- ' 🙂 ünï é\u0301 \x00 \u202e 99999999999999999999
"""
WORDS = SQL.split()
SOUP = st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join)
TOKEN = re.compile(r"\s+|\w+|'[^']*'|\"[^\"]*\"|.", re.DOTALL)


def mutated(text: str, seed: int, times: int) -> str:
    """Tokens dropped, doubled, swapped, replaced, or put in; now and then a piece of another statement."""
    rng, tokens = random.Random(seed), TOKEN.findall(text)
    for _ in range(times):
        tokens = once_mutated(tokens, rng)
    return "".join(tokens)


def once_mutated(tokens: list[str], rng: random.Random) -> list[str]:
    i, j, word = rng.randrange(len(tokens) + 1), rng.randrange(len(tokens) + 1), rng.choice(WORDS)
    before, at, after = tokens[:i], tokens[i : i + 1], tokens[i + 1 :]
    other = TOKEN.findall(rng.choice(VALID))[j : j + rng.randrange(9)]
    return rng.choice([
        before + after, before + at + at + after, before + tokens[j : j + 1] + after, [*before, word, *after],
        [*before, f" {word} ", *at, *after], before + other + at + after, tokens[: max(i, 1)],
        [*before, "(" * rng.randrange(70), *at, *after], [*before, chr(rng.randrange(1, 0xD7FF)), *at, *after],
    ])  # fmt: skip


MUTATED = st.builds(mutated, st.sampled_from(VALID), st.integers(0, 2**32), st.integers(1, 4))


def check(text: str) -> None:
    """Queries that read back as themselves, or an error of ours that helps."""
    queries, error = attempt(sw.sql, text)
    if error is not None:
        check_helps(text, error)
        return
    assert all(sw.sql(str(query)) == [query] for query in queries)


def attempt(read: Any, text: str) -> tuple[Any, sw.BadSQL | None]:
    try:
        return read(text), None
    except sw.BadSQL as why:
        return None, why


def check_helps(text: str, error: sw.BadSQL) -> None:
    lines = text.split("\n")
    assert 1 <= error.line <= len(lines)
    assert 1 <= error.column <= len(lines[error.line - 1]) + 1
    assert str(error).startswith(f"line {error.line}, column {error.column}: ")
    assert error.hint.strip()


@pytest.mark.parametrize("text", VALID)
def test_what_is_mutated_is_valid(text: str) -> None:
    assert sw.sql(text)


@settings(max_examples=settings().max_examples * 10)
@given(text=MUTATED)
def test_mutated_statements_give_queries_or_help(text: str) -> None:
    check(text)


@settings(max_examples=settings().max_examples * 3)
@given(
    text=st.one_of(
        st.text(max_size=200), SOUP, SOUP.map(lambda s: f"SELECT {s}"), SOUP.map(lambda s: f"SELECT x {T} {s}")
    )
)
def test_any_text_gives_queries_or_help(text: str) -> None:
    check(text)


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
        f"SELECT {'x ' * 20_000} {T}",
        "SELECT " + "CASE WHEN x THEN " * 2_000,
        "/*" * 50_000,
        "'" * 99_999,
        "SELECT SUM(x) FROM t [ROWS 3];" * 1_000 + "(",
        "SELECT SUM(x) FROM t [ROWS 3];" * 400_000,
    ],
)
def test_long_and_deep_texts_end_soon(text: str) -> None:
    """Minutes would mean that something is not linear."""
    check(text)


@given(text=st.one_of(st.text(max_size=100), SOUP))
def test_any_where_gives_a_predicate_or_an_error_of_ours(text: str) -> None:
    with contextlib.suppress(sw.BadQuery):
        assert canonical(canonical(text)) == canonical(text)


FRAMES = ["WHERE x > 0.3 FOR 2 MINUTES", "UNTIL SUM(x) >= 2", "[FRAME DELTA x 1, y 2]", "GRID x (1, 2)"]


@given(text=st.one_of(SOUP, st.builds(mutated, st.sampled_from(FRAMES), st.integers(0, 2**32), st.integers(1, 3))))
def test_any_frame_clause_gives_a_spec_or_help(text: str) -> None:
    spec, error = attempt(frame_spec, text)
    assert (spec is None) != (error is None)
    if error is not None:
        check_helps(text, error)
