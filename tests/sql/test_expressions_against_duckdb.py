"""Expressions over the columns of events give what DuckDB gives, for generated expressions over random tables.

What differs on purpose is written out for DuckDB, or left out here:

    / is that of floats, and NaN compares as null             (theirs: casts, and CASE WHEN isnan(…))
    integers of any width are int64; FLOOR, CEIL of them stay whole, SIGN of a float is a float
    GREATEST and LEAST of NaN are NaN                         (theirs: NaN is the largest value)
    a fraction is a float64, not a decimal; text turns into no number, and numbers into no text, unless CAST
    // is for whole numbers; intervals have no months, and a day is 24 hours, whatever clocks are set to
    DATE_TRUNC('hour', …) of the first of two hours that clocks show alike is that hour    (theirs: the second)

DuckDB does not compute what stands beside a column that is null in every row: there we may refuse what it knows.
"""

from __future__ import annotations

import datetime
import math
import random
from decimal import Decimal
from string import Formatter
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import swag as sw
from swag.tables.expressions.expression import compiled, values

NAN, INF = float("nan"), float("inf")
EPOCH = datetime.datetime(1970, 1, 1)
ZONE = "America/New_York"
INTS = [0, 1, -1, 2, 3, 7, -7, 10, 100, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), None]
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 0.1, 1e10, 1e300, -3.25, NAN, INF, -INF, None]
WORDS = ["", "a", "ab", "aB", "  a ", "á", "12", "-3.5", "x%y", "2020-01-01", None]
SINCE = [(0, 0, 0), (18262, 3600, 0), (18321, 86399, 999999), (18570, 7, 500000), (-1, 5, 0), (20000, 43200, 1)]
SET_BACK, SET_FORWARD = datetime.datetime(2023, 11, 5), datetime.datetime(2023, 3, 12)  # clocks of ZONE
CHANGES = [day + datetime.timedelta(minutes=60 * hour + 30) for day in (SET_BACK, SET_FORWARD) for hour in (4, 5, 6, 7)]
STAMPS = [EPOCH + datetime.timedelta(days=d, seconds=s, microseconds=u) for d, s, u in SINCE]
SCHEMA = pa.schema(
    [
        ("i", pa.int64()), ("j", pa.int64()), ("n", pa.int8()), ("f", pa.float64()), ("g", pa.float64()),
        ("s", pa.string()), ("t", pa.string()), ("b", pa.bool_()), ("c", pa.bool_()), ("d", pa.date32()),
        ("e", pa.date32()), ("u", pa.timestamp("us")), ("v", pa.timestamp("ms")), ("z", pa.timestamp("us", ZONE)),
        ("m", pa.decimal128(9, 2)), ("o", pa.time64("us")), ("y", pa.timestamp("ms", ZONE)), ("p", pa.time32("s")),
        ("w", pa.decimal128(18, 9)),
    ]
)  # fmt: skip
CHOICES: dict[str, list[Any]] = {
    "i": INTS, "j": INTS, "n": [0, 1, -1, 5, 127, -128, None], "f": FLOATS, "g": FLOATS, "s": WORDS, "t": WORDS,
    "b": [True, False, None], "c": [True, False, None], "d": [*(each.date() for each in STAMPS), None],
    "e": [*(each.date() for each in STAMPS), None], "u": [*STAMPS, None],
    "v": [*(each.replace(microsecond=500000) for each in STAMPS), None], "z": [*STAMPS, None],
    "m": [Decimal("0.00"), Decimal("1.25"), Decimal("-2.50"), Decimal("999.99"), None],
    "o": [datetime.time(0), datetime.time(9, 30), datetime.time(23, 59, 59, 999999), None], "y": [*CHANGES, None],
    "p": [datetime.time(0), datetime.time(9, 30), datetime.time(23, 59, 59), None],
    "w": [Decimal("0E-9"), Decimal("1E-9"), Decimal("-0.000000025"), Decimal("2.5"), None],
}  # fmt: skip
TABLES = st.integers(1, 6).flatmap(
    lambda size: st.fixed_dictionaries(
        {name: st.lists(st.sampled_from(some), min_size=size, max_size=size) for name, some in CHOICES.items()}
    )
)


OPS = ["=", "<>", "<", "<=", ">", ">="]
UNKNOWN = "CASE WHEN isnan(({{{kind}0}})::DOUBLE) OR isnan({{f1}}) THEN NULL"


class Both(NamedTuple):
    """A term as we write it, and as DuckDB reads the same."""

    ours: str
    theirs: str
    parts: tuple[Both, ...] = ()
    chooses: bool = False  # among its parts: what it does not choose must not be computed


def alike(*texts: str) -> list[Both]:
    return [Both(text, text) for text in texts]


# Terms by type: i whole numbers, f floats, s text, b truth, d dates, t timestamps, z with a zone, m decimals,
# o times of day, x no type at all.
LEAVES: dict[str, list[Both]] = {
    "i": [Both(x, f"({x})::BIGINT") for x in ("i", "j", "n", "0", "1", "2", "3", "7", "10", "-2")],
    "f": [*alike("f", "g"), *(Both(x, f"'{x}'::DOUBLE") for x in ("0.5", "-1.5", "1e3", "0.1", "2.5"))],
    "s": alike("s", "t", "''", "'a'", "'ab'", "'%'", "' a '"),
    "b": alike("b", "c", "TRUE", "FALSE"),
    "d": alike("d", "e", "DATE '2020-02-29'"),
    "t": alike("u", "v", "TIMESTAMP '2020-01-01 01:00:00'"),
    "z": alike("z", "y"),
    "m": alike("m", "w"),
    "o": alike("o", "p", "TIME '09:30:00'", "CAST('23:59' AS TIME)"),
    "x": alike("NULL"),
}
CHOOSES = [  # among values of any type, x
    "CASE WHEN {b0} THEN {x0} WHEN {b1} THEN {x1} ELSE {x2} END", "CASE WHEN {b0} THEN {x0} END",
    "IF({b0}, {x0}, {x1})", "COALESCE({x0}, {x1}, {x2})", "CASE WHEN {b0} THEN NULL ELSE {x0} END",
]  # fmt: skip
MADE: dict[str, list[str | tuple[str, str]]] = {  # of terms; and as DuckDB has it, where that differs
    "i": [
        "{i0} + {i1}", "{i0} - {i1}", "{i0} * {i1}", "{i0} % {i1}", "MOD({i0}, {i1})", "{i0} // {i1}", "ABS({i0})",
        "-{i0}", "ROUND({i0})", "GREATEST({i0}, {i1})", "LEAST({i0}, {i1}, {i2})", "LENGTH({s0})", "NULLIF({i0}, {i1})",
        ("SIGN({i0})", "SIGN({i0})::BIGINT"), ("FLOOR({i0})", "{i0}"), "CAST({f0} AS BIGINT)", "CAST({b0} AS BIGINT)",
        "CAST({m0} AS BIGINT)", "TRY_CAST({f0} AS BIGINT)", "TRY_CAST({s0} AS BIGINT)", "{d0} - {d1}",
        ("TRY_CAST({i0} AS TINYINT)", "TRY_CAST({i0} AS TINYINT)::BIGINT"),
        *(f"EXTRACT({part} FROM {{{kind}0}})" for kind in "dtz"
          for part in ("year", "quarter", "month", "week", "day", "dow", "isodow", "doy")),
        *(f"EXTRACT({part} FROM {{{kind}0}})" for kind in "tz"
          for part in ("hour", "minute", "second", "millisecond", "microsecond")),
        *(f"DATE_DIFF('{unit}', {{t0}}, {{t1}})" for unit in ("day", "hour", "week", "month", "year")),
        *(f"DATE_DIFF('{unit}', {{z0}}, {{z1}})" for unit in ("second", "minute", "day", "week", "month", "year")),
    ],
    "f": [
        "{f0} + {f1}", ("{f0} - {i0}", "{f0} - {i0}::DOUBLE"), ("{i0} * {f0}", "{i0}::DOUBLE * {f0}"), "-{f0}",
        *((f"{{{a}0}} / {{{b}1}}", f"{{{a}0}}::DOUBLE / {{{b}1}}::DOUBLE") for a in "if" for b in "if"), "{f0} % {f1}",
        "ABS({f0})", "ROUND({f0})", "FLOOR({f0})", "CEIL({f0})", "TRUNC({f0})", "SQRT({f0})", "EXP({f0})", "LN({f0})",
        "LOG({f0})", "POWER({f0}, {f1})", "CAST({i0} AS DOUBLE)", "CAST({m0} AS DOUBLE)", "TRY_CAST({s0} AS DOUBLE)",
        ("NULLIF({f0}, {i0})", "CASE WHEN isnan({f0}) THEN {f0} ELSE NULLIF({f0}, {i0}) END"),
        "EPOCH({t0})", "EPOCH({z0})", "EXTRACT(EPOCH FROM {t0} - {t1})",
    ],
    "s": [
        "LOWER({s0})", "UPPER({s0})", "{s0} || {s1}", "TRIM({s0})", "CONCAT({s0}, {s1})", "REPLACE({s0}, 'a', 'bb')",
        *(f"SUBSTRING({{s0}}, {a}, {b})" for a, b in ((1, 2), (2, 1), (0, 3), (-2, 1), (-1, 5), (3, 0))),
        "SUBSTRING({s0}, 2)", "LEFT({s0}, 2)", "RIGHT({s0}, 1)", "REVERSE({s0})", "GREATEST({s0}, {s1})",
        *(f"CAST({{{kind}0}} AS TEXT)" for kind in "ibdtmo"),
        ("CAST({f0} AS TEXT)", "REPLACE(CAST({f0} AS TEXT), '-nan', 'nan')"),
    ],
    "b": [
        *(f"{{{kind}0}} {op} {{{kind}1}}" for kind in "isdt" for op in OPS), *(f"{{d0}} {op} {{t0}}" for op in OPS),
        *((f"{{{kind}0}} {op} {{f1}}", UNKNOWN.format(kind=kind) + f" ELSE {{{kind}0}} {op} {{f1}} END")
          for kind in "if" for op in OPS),
        *(f"{{{kind}0}} {op} '2020-01-01'" for kind in "dt" for op in OPS),
        *(f"{{{kind}0}} {op} '2020-02-29 12:30:00'" for kind in "tz" for op in OPS),
        *(f"{{t0}} - {{t1}} {op} INTERVAL '36' HOURS" for op in OPS), *(f"{{o0}} {op} '09:30:00.5'" for op in OPS),
        *(f"{{o0}} {op} {{o1}}" for op in OPS), "{o0} IN ('09:30', TIME '00:00:00')", "{i0} + {x0} IS NULL",
        "{i0} IN ({i1}, 3, NULL)",
        "{i0} BETWEEN 1 AND 7", "{d0} BETWEEN '2020-01-01' AND '2021-01-01'",
        "{s0} LIKE 'a%'", "{s0} NOT LIKE '_b'", "{s0} ILIKE 'A%'", "STARTS_WITH({s0}, 'a')", "CONTAINS({s0}, 'b')",
        "REGEXP_MATCHES({s0}, '^a.*')", "ISNAN({f0})", *(["{b0} AND {b1}", "{b0} OR {b1}", "NOT {b0}"] * 3),
        *(f"{{{kind}0}} IS NULL" for kind in "ifsbt"), "{i0} IS NOT NULL", "{b0} IS TRUE", "{b0} IS NOT FALSE",
        "{i0} IS DISTINCT FROM {i1}", "{s0} IS NOT DISTINCT FROM {s1}",
        "{o0} IS DISTINCT FROM {o1}", "{z0} IS NOT DISTINCT FROM {z1}", *(f"{{z0}} {op} {{z1}}" for op in OPS),
    ],
    "d": [
        ("{d0} + 3", "{d0} + 3::INTEGER"), ("{d0} - 400", "{d0} - 400::INTEGER"), "CAST({t0} AS DATE)",
        "LEAST({d0}, {d1})", "NULLIF({d0}, {d1})",
    ],
    "t": [
        "({t0} AT TIME ZONE 'Europe/Berlin') AT TIME ZONE 'UTC'", "{t0} + INTERVAL '90' MINUTES",
        "{t0} - INTERVAL 2 DAYS", "{d0} - INTERVAL 2 DAYS", "CAST({d0} AS TIMESTAMP)",
        *((f"DATE_TRUNC('{unit}', {{{kind}0}})", f"DATE_TRUNC('{unit}', {{{kind}0}}::TIMESTAMP)") for kind in "dt"
          for unit in ("second", "minute", "hour", "day", "week", "month", "quarter", "year")),
    ],
    "z": [
        "{z0} + INTERVAL '90' MINUTES", "{z0} - INTERVAL '49' HOURS", "GREATEST({z0}, {z1})", "LEAST({z0}, {z1})",
        "NULLIF({z0}, {z1})",
        *(f"DATE_TRUNC('{unit}', {{z0}})" for unit in ("second", "minute", "day", "week", "month", "quarter", "year")),
    ],
    "m": [],
    "o": [
        "{o0} + INTERVAL '90' MINUTES", "{o0} - INTERVAL '25' HOURS", "GREATEST({o0}, {o1})", "NULLIF({o0}, {o1})",
        "CAST({t0} AS TIME)",
    ],
    "x": [],
}  # fmt: skip


def drawn(rng: random.Random, kind: str, depth: int, leaves: dict[str, list[Both]] = LEAVES) -> Both:
    """A term of a type, by a seed: to draw such trees with Hypothesis takes a second each."""
    ways = [*MADE[kind], *(each.replace("{x", f"{{{kind}") for each in CHOOSES[: 5 if MADE[kind] else 0])]
    if depth == 0 or not ways or rng.random() < 0.2:
        return rng.choice(leaves[kind])
    way = rng.choice(ways)
    ours, theirs = way if isinstance(way, tuple) else (way, way)
    names = dict.fromkeys(name for _, name, _, _ in Formatter().parse(ours) if name)
    parts = {name: drawn(rng, name[0], depth - 1, leaves) for name in names}
    return Both(
        ours.format(**{name: f"({part.ours})" for name, part in parts.items()}),
        theirs.format(**{name: f"({part.theirs})" for name, part in parts.items()}),
        tuple(parts.values()),
        way not in MADE[kind] or " AND " in ours or " OR " in ours,
    )


ANY = st.builds(
    lambda seed, kind, depth: drawn(random.Random(seed), kind, depth),
    st.integers(0, 2**32), st.sampled_from("ifsbdtzo"), st.integers(1, 3),
)  # fmt: skip


@pytest.fixture(scope="module")
def database() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(f"SET ieee_floating_point_ops = true; SET TimeZone = '{ZONE}'")
    connection.execute("SET disabled_optimizers = 'expression_rewriter'")  # it makes x = -2 of 2 = -x, which overflows
    return connection


def theirs(database: duckdb.DuckDBPyConnection, expressions: list[str]) -> list[list[Any] | None]:
    """Of each of them; None: it raises. Then each is asked for by itself."""
    try:
        rows = database.execute(f"SELECT {', '.join(expressions)} FROM arrow ORDER BY row_").fetchall()
    except (duckdb.OutOfRangeException, duckdb.ConversionException, duckdb.InvalidInputException):
        return [None] if len(expressions) == 1 else [theirs(database, [each])[0] for each in expressions]
    return [list(column) for column in zip(*rows, strict=True)]


def is_beside_nulls(database: duckdb.DuckDBPyConnection, term: Both) -> bool:
    """Is there a part that raises by itself, beside one that is null in every row?"""
    alone = [theirs(database, [part.theirs])[0] for part in term.parts]
    if not term.chooses and None in alone and any(found is not None and set(found) == {None} for found in alone):
        return True
    return any(is_beside_nulls(database, part) for part in term.parts)


def least_beneath_nulls(table: pa.Table) -> pa.Table:
    """The same values. Where one is null there is the least that fits, as beneath the nulls of pandas' times."""
    return pa.table({name: _least_beneath(column.combine_chunks()) for name, column in zip(table.column_names, table)})


def _least_beneath(column: pa.Array) -> pa.Array:
    if not pa.types.is_primitive(column.type) or column.type.bit_width % 8 or not column.null_count:
        return column
    width = column.type.bit_width // 8
    units = np.frombuffer(column.buffers()[1], np.uint8, width * len(column)).reshape(-1, width).copy()
    units[column.is_null().to_numpy(zero_copy_only=False)] = [0] * (width - 1) + [128]
    return pa.Array.from_buffers(column.type, len(column), [column.buffers()[0], pa.py_buffer(units.tobytes())])


def ours(expression: str, table: pa.Table) -> list[Any] | None:
    """None: it raises."""
    try:
        found: list[Any] = values(compiled(expression), table, "it").to_pylist()
    except sw.BadEvents:
        return None
    return found


def plain(value: Any) -> Any:
    """Dates beside timestamps, and zones, apart."""
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None) if value.tzinfo is None else value.astimezone(datetime.UTC)
    return value


def is_same(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, float) and isinstance(theirs, int | float | Decimal):
        other = float(theirs)
        return ours == other or (math.isnan(ours) and math.isnan(other)) or math.isclose(ours, other, rel_tol=1e-12)
    return bool(plain(ours) == plain(theirs)) and (isinstance(ours, bool) == isinstance(theirs, bool))


@settings(max_examples=settings().max_examples * 10)
@given(expressions=st.lists(ANY, min_size=6, max_size=6), columns=TABLES)
def test_a_row_is_given_what_duckdb_gives_it(
    database: duckdb.DuckDBPyConnection, expressions: list[Both], columns: dict[str, list[Any]]
) -> None:
    """Several of each table: tables take longer to draw than expressions to be answered."""
    table = least_beneath_nulls(pa.table(columns, SCHEMA))
    database.register("arrow", table.append_column("row_", pa.array(range(table.num_rows))))
    for expression, wanted in zip(expressions, theirs(database, [each.theirs for each in expressions]), strict=True):
        found = ours(expression.ours, table)
        if found is None:
            assert wanted is None or is_beside_nulls(database, expression), (expression.ours, wanted)
        elif wanted is not None:  # where they raise, we may know the answer: of -9223372036854775808 % -1, or with AND
            assert all(map(is_same, found, wanted)), (expression.ours, found, wanted)


@given(expression=ANY)
def test_what_is_written_one_way_reads_back_the_same(expression: Both) -> None:
    once = compiled(expression.ours)
    again = compiled(once.text)
    assert again.text == once.text
    assert again.columns == once.columns


@given(expression=ANY, columns=TABLES)
def test_parentheses_that_are_left_out_change_no_answer(expression: Both, columns: dict[str, list[Any]]) -> None:
    bare = compiled(expression.ours).bare
    assert compiled(bare).bare == compiled(bare).text == bare
    table = pa.table(columns, SCHEMA)
    assert repr(ours(bare, table)) == repr(ours(expression.ours, table))
