"""WHERE means what SQL says: the rows that DuckDB chooses, for conditions of any kind over columns with nulls.

Two things differ on purpose, and are written out for DuckDB. A comparison with NaN is unknown, where DuckDB has NaN
equal to itself and above all numbers; and / is that of floats, by zero as well. Integers of any width are computed with
as int64.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import swag as sw
from swag.tables.predicate import holds

NAN, INF = float("nan"), float("inf")
TABLE = pa.table(
    {
        "i": pa.array([0, 1, -1, 2, None, 7, -7, 100, None, 3, 5, -2], pa.int64()),
        "n": pa.array([None, 1, 3, -3, 0, None, 127, -128, 5, 2, 2, 7], pa.int8()),
        "f": pa.array([0.0, -0.0, 1.5, None, NAN, INF, -INF, 1.0, -1.0, 2.0, None, 0.1], pa.float64()),
        "g": pa.array([1.0, 0.0, None, NAN, NAN, INF, 2.0, 1.0, -1.0, None, 3.5, 0.1], pa.float64()),
        "s": ["", "a", "ab", None, "aB", "a%", "a_b", "á", "a\nb", "a\\b", None, "%"],
        "t": ["a", "a", "b", "b", None, "%", "_", "á", "", "a\\b", "b", None],
        "b": [True, False, None, True, False, None, True, False, None, True, False, None],
        "c": [True, True, True, False, False, False, None, None, None, True, False, None],
    }
)


class Both(NamedTuple):
    """A term as we write it, and as DuckDB reads the same."""

    ours: str
    theirs: str


def column(names: str) -> st.SearchStrategy[Both]:
    return st.sampled_from([Both(name, f"{name}::BIGINT" if name in "in" else name) for name in names])


def constants(values: list[Any]) -> st.SearchStrategy[Both]:
    return st.sampled_from([Both(str(value), str(value)) for value in values])


NULL = Both("NULL", "NULL")
WHOLE = constants([0, 1, -1, 2, 3, 7, -7, 100])
LARGE = constants([2**62, -(2**62)])  # which are compared only: that integers do not overflow is tested elsewhere
FRACTION = st.sampled_from([Both(x, f"'{x}'::DOUBLE") for x in ("0.5", "-1.5", "1.0", "1e3", "0.1", "-0.0", "1e300")])
TEXT = constants(["''", "'a'", "'ab'", "'á'", "'%'", "'a\\b'", "'B'"])


def joined(op: str, parts: tuple[Both, ...], theirs: str = "") -> Both:
    """Operands in parentheses, around an operator."""
    return Both(op.join(f"({p.ours})" for p in parts), (theirs or op).join(f"({p.theirs})" for p in parts))


def divided(parts: tuple[Both, Both]) -> Both:
    a, b = (f"({part.theirs})::DOUBLE" for part in parts)
    return Both(f"({parts[0].ours}) / ({parts[1].ours})", f"{a} / {b}")


def computed(base: st.SearchStrategy[Both]) -> st.SearchStrategy[Both]:
    pair = st.tuples(base, base)
    return st.one_of(
        st.builds(joined, st.sampled_from([" + ", " - ", " * "]), pair),
        pair.map(divided),
        base.map(lambda p: Both(f"-({p.ours})", f"-({p.theirs})")),
        base.map(lambda p: Both(f"ABS({p.ours})", f"ABS({p.theirs})")),
    )


BASE = st.one_of(column("infg"), WHOLE, FRACTION)
NUMBER = st.deferred(lambda: st.one_of(BASE, BASE, computed(st.one_of(BASE, computed(BASE))), LARGE, st.just(NULL)))
WORD = st.one_of(column("st"), TEXT, st.just(NULL))
COMPARISON = st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "!=", "=="])


def known(comparison: str, *terms: str) -> str:
    """A comparison for DuckDB: unknown where one of its terms is NaN."""
    unknown = " OR ".join(f"isnan(({term})::DOUBLE)" for term in terms)
    return f"(CASE WHEN {unknown} THEN NULL ELSE {comparison} END)"


def compared(op: str, a: Both, b: Both, number: bool) -> Both:
    theirs = f"({a.theirs}) {op} ({b.theirs})"
    return Both(f"({a.ours}) {op} ({b.ours})", known(theirs, a.theirs, b.theirs) if number else f"({theirs})")


def between(negated: str, x: Both, low: Both, high: Both, number: bool) -> Both:
    ours = f"({x.ours}) {negated}BETWEEN ({low.ours}) AND ({high.ours})"
    both = (compared(">=", x, low, number).theirs, compared("<=", x, high, number).theirs)
    return Both(ours, f"{'NOT ' if negated else ''}({both[0]} AND {both[1]})")


def among(negated: str, x: Both, options: list[Both], number: bool) -> Both:
    theirs = " OR ".join(compared("=", x, option, number).theirs for option in options)
    listed = ", ".join(option.ours for option in options)
    return Both(f"({x.ours}) {negated}IN ({listed})", f"{'NOT ' if negated else ''}({theirs})")


TRUTH = st.one_of(column("bc"), constants(["TRUE", "FALSE"]))
NOT = st.sampled_from(["", "NOT "])
PATTERN = st.text("ab%_á\\", max_size=4).map(lambda p: Both(f"'{p}'", f"'{p}'"))
NUMBERS_LISTED = st.lists(st.one_of(WHOLE, FRACTION, st.just(NULL)), min_size=1, max_size=4)
WORDS_LISTED = st.lists(st.one_of(TEXT, st.just(NULL)), min_size=1, max_size=4)
LEAF = st.one_of(
    st.builds(compared, COMPARISON, NUMBER, NUMBER, st.just(True)),
    st.builds(compared, COMPARISON, WORD, WORD, st.just(False)),
    st.builds(between, NOT, NUMBER, NUMBER, NUMBER, st.just(True)),
    st.builds(between, NOT, WORD, WORD, WORD, st.just(False)),
    st.builds(among, NOT, NUMBER, NUMBERS_LISTED, st.just(True)),
    st.builds(among, NOT, column("st"), WORDS_LISTED, st.just(False)),
    st.builds(lambda n, s, p: joined(f" {n}LIKE ", (s, p)), NOT, column("st"), PATTERN),
    st.builds(lambda n, x: Both(f"({x.ours}) IS {n}NULL", f"({x.theirs}) IS {n}NULL"), NOT, st.one_of(NUMBER, WORD)),
    TRUTH, st.just(NULL),
    st.builds(compared, st.sampled_from(["=", "<>"]), column("bc"), TRUTH, st.just(False)),
)  # fmt: skip
CONDITION = st.recursive(
    LEAF,
    lambda inner: st.one_of(
        st.builds(joined, st.sampled_from([" AND ", " OR "]), st.tuples(inner, inner)),
        inner.map(lambda p: Both(f"NOT ({p.ours})", f"NOT ({p.theirs})")),
        st.builds(lambda n, p: Both(f"({p.ours}) IS {n}NULL", f"({p.theirs}) IS {n}NULL"), NOT, inner),
    ),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def database() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET ieee_floating_point_ops = true")
    connection.register("arrow", TABLE.append_column("row_", pa.array(range(TABLE.num_rows))))
    connection.execute("CREATE TABLE t AS SELECT * FROM arrow")
    connection.execute("CREATE VIEW wide AS SELECT row_, i, n::BIGINT AS n, s FROM t")
    return connection


def ours(condition: str) -> np.ndarray:
    [query] = sw.sql(f"SELECT COUNT(*) FROM t [ROWS 9] WHERE {condition}")
    return holds(query.where, TABLE)


def theirs(database: duckdb.DuckDBPyConnection, condition: str) -> np.ndarray:
    rows = database.execute(f"SELECT ({condition}) IS TRUE FROM t ORDER BY row_").fetchall()
    return np.array([row[0] for row in rows])


@settings(max_examples=settings().max_examples * 6)
@given(condition=CONDITION)
def test_the_same_rows_are_chosen(database: duckdb.DuckDBPyConnection, condition: Both) -> None:
    assert ours(condition.ours).tolist() == theirs(database, condition.theirs).tolist()


OPERAND = st.sampled_from(["i", "n", "- i", "0", "1", "-2", "3", "ABS(i)", "- - n"])
SUM = st.lists(OPERAND, min_size=1, max_size=4).flatmap(
    lambda terms: st.lists(st.sampled_from(["+", "-", "*"]), min_size=len(terms), max_size=len(terms)).map(
        lambda ops: " ".join([terms[0], *(f"{op} {term}" for op, term in zip(ops, terms[1:]))])
    )
)
TEST = st.one_of(
    st.builds("{} {} {}".format, SUM, COMPARISON, SUM),
    st.builds("{} {}BETWEEN {} AND {}".format, SUM, NOT, SUM, SUM),
    st.builds("{} {}IN (1, -2, {})".format, SUM, NOT, st.sampled_from(["3", "NULL"])),
    st.builds("{} IS {}NULL".format, SUM, NOT),
    st.builds("s {}LIKE {}".format, NOT, st.sampled_from(["'a%'", "'_'", "'%b'"])),
)
BARE = st.lists(st.tuples(st.sampled_from(["AND", "OR"]), NOT, TEST), min_size=1, max_size=5).map(
    lambda parts: " ".join(f"{join} {negated}{test}" for join, negated, test in parts).split(" ", 1)[1]
)


@given(condition=BARE)
def test_operators_bind_as_in_sql(database: duckdb.DuckDBPyConnection, condition: str) -> None:
    rows = database.execute(f"SELECT ({condition}) IS TRUE FROM wide ORDER BY row_").fetchall()
    assert ours(condition).tolist() == [row[0] for row in rows]


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("s LIKE 'a%'", ["a", "ab", "aB", "a%", "a_b", "a\nb", "a\\b"]),
        ("s NOT LIKE 'a%'", ["", "á", "%"]),
        ("NOT s NOT LIKE 'a%' AND s LIKE '__'", ["ab", "aB", "a%"]),
        ("s LIKE 'a\\b'", ["a\\b"]),
        ("s LIKE 'a\\%'", ["a\\b"]),
        ("s LIKE 'a!%' ESCAPE '!'", ["a%"]),
        ("s NOT LIKE '%\\_%' ESCAPE '\\' AND s LIKE '__%'", ["ab", "aB", "a%", "a\nb", "a\\b"]),
    ],
)
def test_like(condition: str, rows: list[str]) -> None:
    assert TABLE.filter(pa.array(ours(condition)))["s"].to_pylist() == rows


LETTERS = "ab%_\\é\n.(*!"


@given(
    words=st.lists(st.text(LETTERS, max_size=5), min_size=1, max_size=20),
    pattern=st.text(LETTERS, max_size=5),
    kind=st.sampled_from(["LIKE", "ILIKE", "NOT LIKE"]),
    mark=st.sampled_from(["", *(f" ESCAPE '{mark}'" for mark in ("!", "\\", "%", "a", ""))]),
)
def test_like_is_that_of_duckdb(
    database: duckdb.DuckDBPyConnection, words: list[str], pattern: str, kind: str, mark: str
) -> None:
    condition = f"s {kind} '{pattern}'{mark if kind != 'ILIKE' else ''}"
    database.register("words", pa.table({"s": words, "n": range(len(words))}))
    try:
        expected = [row[0] for row in database.execute(f"SELECT {condition} FROM words ORDER BY n").fetchall()]
    except duckdb.Error:  # the pattern ends with its mark; only rows that come so far tell them
        return
    try:
        found = holds(condition, pa.table({"s": words}))
    except sw.SwagError as why:  # a pattern that ends with its mark is refused before any row is looked at
        if "ends with" not in str(why):
            raise
    else:
        assert found.tolist() == expected


@pytest.mark.parametrize("op", ["=", "<>", "<", "<=", ">", ">="])
@pytest.mark.parametrize("other", ["1", "g", "i", "f"])
def test_nan_satisfies_no_comparison_negated_or_not(op: str, other: str) -> None:
    table = pa.table({"f": [NAN], "g": [NAN], "i": [1]})
    for condition in (f"f {op} {other}", f"NOT f {op} {other}", f"f BETWEEN {other} AND 2", "f NOT IN (1, 2)"):
        assert not holds(condition, table).any(), condition
    assert holds(f"(f {op} {other}) IS NULL", table).all()


@pytest.mark.parametrize(
    "condition", ["i IN n", "i IN 5", "a.b.i > 1", "s LIKE t", "s LIKE t ESCAPE '!'", "foo(i) > 1"]
)
def test_what_is_not_understood_is_refused(condition: str) -> None:
    with pytest.raises(sw.BadQuery, match="is not supported"):
        holds(condition, TABLE)


def test_between_symmetric_takes_its_ends_either_way(database: duckdb.DuckDBPyConnection) -> None:
    both = ours("i BETWEEN SYMMETRIC 3 AND -1 AND n > 0").tolist()
    assert both == theirs(database, "(i BETWEEN 3 AND -1 OR i BETWEEN -1 AND 3) AND n > 0").tolist()
    assert any(both)
