"""Statements with OVER ( … ) give what DuckDB gives, for generated statements over random tables.

Where several events have the same ts, DuckDB may take them in any order; ours is that in which they came. So what
depends on it is asked of DuckDB with ORDER BY ts, rid (rid: the number of the row) where frames count rows, and only of
tables without such events where they go by ts.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import swag as sw
from tests.examples import share

EPOCH = datetime.datetime(2024, 3, 1)
KEYS, WORDS = ["a", "b", "c", None], ["", "x", "xy", "ab", None]
INTS, FLOATS = [-3, 0, 1, 2, 5, 10, None], [-1.5, 0.0, 0.25, 1.0, 3.5, 1e6, None]
SCHEMA = {
    "k": pa.string(), "j": pa.int32(), "x": pa.int64(), "f": pa.float64(), "g": pa.float64(), "s": pa.string(),
    "b": pa.bool_(), "d": pa.date32(), "m": pa.decimal128(9, 2), "u": pa.uint8(), "h": pa.int16(), "v": pa.uint32(),
    "r": pa.float32(), "o": pa.time64("us"), "z": pa.timestamp("us", "UTC"),
}  # fmt: skip
VALUES: dict[str, list[Any]] = {
    "k": KEYS, "j": [1, 2, None], "x": INTS, "f": FLOATS, "g": FLOATS, "s": WORDS, "b": [True, False, None],
    "d": [datetime.date(2024, 1, day) for day in (1, 2, 3)] + [None],
    "m": [Decimal("0.25"), Decimal("-1.50"), Decimal("100.00"), None],
    "u": [0, 1, 200, 255, None], "h": [-300, 0, 7, None], "v": [0, 3, 2**32 - 1, None], "r": [-0.5, 0.25, 3.0, None],
    "o": [datetime.time(9, 30), datetime.time(0), datetime.time(23, 59, 59, 5), None],
    "z": [datetime.datetime(2024, 3, day, 7, tzinfo=datetime.UTC) for day in (1, 2, 31)] + [None],
}  # fmt: skip


class Function(NamedTuple):
    """A window function. by_place: what it gives depends on the order of events with the same ts."""

    text: str
    kind: str  # number, or other
    by_place: bool = False


AGGREGATES = [
    *(Function(text, "number") for text in (
        "SUM(x)", "SUM(x * 2 + j)", "SUM(f)", "SUM(1)", "AVG(x)", "AVG(f)", "COUNT(*)", "COUNT(s)", "COUNT(1)",
        "COUNT(DISTINCT s)", "COUNT(DISTINCT x)", "MIN(x)", "MAX(f)", "MAX(x - j)", "STDDEV(f)", "VAR_POP(f)",
        "STDDEV_POP(x)", "VAR_SAMP(x)",
        "MEDIAN(f)", "MEDIAN(x)", "QUANTILE_CONT(f, 0.25)", "COUNT_IF(b)", "COUNT_IF(x > 1)", "COVAR_POP(f, g)",
        "COVAR_SAMP(f, g)", "AVG(CASE WHEN b THEN f END)", "SUM(COALESCE(x, 0))", "MAX(LENGTH(s))",
        "PRODUCT(x)", "SUM(u)", "SUM(u + h)", "AVG(v)", "MAX(v)", "MIN(h)", "SUM(r)", "AVG(r)", "MAX(r * 2)",
        "COUNT(DISTINCT z)", "COUNT(DISTINCT u)", "MEDIAN(h)", "COUNT(o)", "MAX(CAST(x AS SMALLINT) + u)",
    )),
    *(Function(text, "other") for text in (
        "MIN(d)", "MAX(d)", "MIN(s)", "MAX(s)", "MIN(m)", "MAX(m)", "SUM(m)", "BOOL_AND(b)", "BOOL_OR(b)",
        "MIN(b)", "REGR_SLOPE(f, g)", "CORR(f, g)", "REGR_R2(f, g)", "REGR_INTERCEPT(f, g)", "SKEWNESS(x)",
        "KURTOSIS(x)",
        "MIN(o)", "MAX(o)", "MIN(z)", "MAX(z)", "MEDIAN(r)",
    )),
    *(Function(text, "other", True) for text in (
        "ARG_MAX(s, x)", "ARG_MIN(x, f)", "MAX_BY(d, f)", "ANY_VALUE(x)", "ANY_VALUE(s)",
        "ARG_MAX(z, u)", "ARG_MIN(o, r)", "MODE(x)", "MODE(s)",
    )),
]  # fmt: skip
POSITIONS = [
    *(Function(text, "number", True) for text in (
        "ROW_NUMBER()", "FIRST_VALUE(x)", "LAST_VALUE(x)", "LAST_VALUE(x + j)", "NTH_VALUE(x, 2)", "NTH_VALUE(x, 1)",
        "LAG(x)",
        "LAG(x, 2)", "LAG(x, 1, 0)", "LEAD(x, 1, j)", "LEAD(f)", "LAG(x, 0)", "LEAD(x, 3)", "LAG(x, -1)", "NTILE(3)",
        "FIRST(x)", "LAST(f)",
        "FIRST_VALUE(x IGNORE NULLS)", "LAST_VALUE(f IGNORE NULLS)",
    )),
    *(Function(text, "other", True) for text in (
        "FIRST_VALUE(s)", "LAST_VALUE(d)", "LAG(s, 1, 'none')", "LEAD(d)", "NTH_VALUE(b, 2)", "LAG(m)",
        "FIRST_VALUE(UPPER(s))", "LAG(o)", "LEAD(z, 2)", "FIRST_VALUE(u)", "LAST_VALUE(r)",
    )),
    *(Function(text, "number") for text in ("RANK()", "DENSE_RANK()", "PERCENT_RANK()", "CUME_DIST()")),
]  # fmt: skip
FRONTS = ["rid", "*", "rid, x, s AS word", "* EXCLUDE (s, x)", "* REPLACE (x + 1 AS x)", "e.rid", "rid, x + j AS a2"]
OF_ALIASES = [Function("SUM(a2)", "number"), Function("MAX(a2 * 2)", "number"), Function("COUNT(a2)", "number")] * 8
RANKS = ("RANK", "DENSE_RANK", "PERCENT_RANK", "CUME_DIST")
NUMBERED = ("ROW_NUMBER", "LAG", "LEAD", "NTILE")  # which go by rows, whatever the frame
AROUND = [
    "{0}",
    "{0}",
    "{0} + 1",
    "COALESCE({0}, 0)",
    "x - {0}",
    "CASE WHEN {0} > 2 THEN 'more' ELSE s END",
    "{0} IS NULL",
]
CONDITIONS = [
    "x > 0", "f IS NOT NULL", "k = 'a' OR k IS NULL", "s LIKE 'x%'", "b", "j IN (1, 2)", "x BETWEEN 0 AND 5", "u > 100",
    "h <= 0 OR r > 0.1", "o > '09:00'", "z >= TIMESTAMPTZ '2024-03-02 00:00:00+00'",
]  # fmt: skip
ORDERS = [
    " ORDER BY c0 NULLS FIRST, rid", " ORDER BY c0 DESC, rid DESC", " ORDER BY rid LIMIT 3",
    " ORDER BY x, -rid LIMIT 5 OFFSET 1",
]  # fmt: skip
PARTITIONS = ["k", "j", "k, j", "x > 0", "COALESCE(k, 'a')", "d", "b, k", "LENGTH(s)", "m", "f", "u", "h, o", "z", "r"]


class Window(NamedTuple):
    partition: str
    ordered: bool
    frame: str  # "", or ROWS …, or RANGE …

    def ours(self) -> str:
        return " ".join(filter(None, [self._partition(), "ORDER BY ts" * self.ordered, self.frame]))

    def theirs(self, by_place: bool, by_rows: bool) -> str:
        frame = self.frame
        if not self.ordered and by_place and not frame.startswith("ROWS"):
            order, frame = "ORDER BY rid", "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
        elif not self.ordered:
            order = "ORDER BY rid" if frame.startswith("ROWS") else ""
        else:
            order = "ORDER BY ts, rid" if by_rows or frame.startswith("ROWS") else "ORDER BY ts"
        if by_rows:
            order, frame = order or "ORDER BY rid", ""
        return " ".join(filter(None, [self._partition(), order, frame]))

    def _partition(self) -> str:
        return f"PARTITION BY {self.partition}" if self.partition else ""


@st.composite
def tables(draw: Any) -> tuple[pa.Table, bool, bool]:
    """Events, whether some share a ts, and whether that is a timestamp."""
    size = draw(st.integers(0, 12))
    ties, stamps = draw(st.booleans()), draw(st.booleans())
    times = draw(st.lists(st.integers(0, 12 if ties else 40), min_size=size, max_size=size, unique=not ties))
    ts = [EPOCH + datetime.timedelta(minutes=each) for each in times] if stamps else times
    columns = {
        name: pa.array(draw(st.lists(st.sampled_from(some), min_size=size, max_size=size)), SCHEMA[name])
        for name, some in VALUES.items()
    }
    kind = pa.timestamp("us") if stamps else pa.int64()
    return pa.table({"ts": pa.array(ts, kind), **columns, "rid": pa.array(range(size), pa.int64())}), ties, stamps


@st.composite
def frames(draw: Any, stamps: bool, ordered: bool) -> str:
    kinds = ["", "ROWS", "RANGE"] if ordered else ["", "ROWS"]
    kind = draw(st.sampled_from(kinds))
    if not kind:
        return ""

    def size() -> str:
        amount = draw(st.integers(0, 5))
        return f"INTERVAL {amount} MINUTES" if kind == "RANGE" and stamps else str(amount)

    bounds = ["UNBOUNDED PRECEDING", "{} PRECEDING", "CURRENT ROW", "{} FOLLOWING", "UNBOUNDED FOLLOWING"]
    first = draw(st.integers(0, 3))
    last = draw(st.integers(max(first, 1), 4))
    if last == 2 and draw(st.booleans()) and first < 2:
        return f"{kind} {bounds[first].format(size())}"
    return f"{kind} BETWEEN {bounds[first].format(size())} AND {bounds[last].format(size())}"


@st.composite
def statements(draw: Any, ties: bool, stamps: bool) -> tuple[str, str]:
    """A statement, and the one that DuckDB is given."""
    ours, theirs, named = [], [], []
    front = draw(st.sampled_from(FRONTS))
    aliased = "AS a2" in front
    conditions, partitions = ([*CONDITIONS, "a2 > 2"], [*PARTITIONS, "a2"]) if aliased else (CONDITIONS, PARTITIONS)
    aggregates = OF_ALIASES + AGGREGATES if aliased else AGGREGATES
    for number in range(draw(st.integers(1, 3))):
        ordered = draw(st.booleans()) or draw(st.booleans())
        window = Window(draw(st.sampled_from(["", *partitions])), ordered, draw(frames(stamps, ordered)))
        function = draw(st.sampled_from(draw(st.sampled_from([aggregates, POSITIONS]))))
        name = function.text.split("(")[0]
        by_rows = name in NUMBERED
        by_ts = ordered and not window.frame.startswith("ROWS") and not by_rows
        if function.by_place and by_ts and ties:
            function, name, by_rows = AGGREGATES[0], "SUM", False
        filtered = ""
        if function in aggregates and draw(st.booleans()) and draw(st.booleans()):
            filtered = f" FILTER (WHERE {draw(st.sampled_from(conditions))})"
        around = draw(st.sampled_from(AROUND if function.kind == "number" else ["{0}", "{0} IS NULL"]))
        over = f"({window.ours()})"
        if draw(st.booleans()) and draw(st.booleans()):
            over = f"W{number}"
            named.append(f"w{number} AS ({window.ours()})")
        alias = f"c{number}"
        ours.append(f"{around.format(f'{function.text}{filtered} OVER {over}')} AS {alias}")
        of_peers = name in RANKS  # which know no frames, and take events of the same ts for one
        there = window._replace(frame="").ours() if of_peers else window.theirs(function.by_place, by_rows)
        call = f"{function.text}{filtered} OVER ({there})"
        call = f"COALESCE({call}, 0)" if name == "COUNT_IF" else call  # theirs is null of no rows, ours 0
        theirs.append(f"{around.format(call)} AS {alias}")
    where = f" WHERE {draw(st.sampled_from(conditions))}" if draw(st.booleans()) else ""
    windows = f" WINDOW {', '.join(named)}" if named else ""
    qualify = draw(st.sampled_from(["", "", " QUALIFY c0 IS NOT NULL", " QUALIFY rid % 2 = 0"]))
    order = draw(st.sampled_from(["", "", *ORDERS]))
    if "x + 1" in front:
        order = order.replace("x, ", "")
    mine = f"SELECT {front}, {', '.join(ours)} FROM events AS e{where}{windows}{qualify}{order}"
    other = f"SELECT {front}, {', '.join(theirs)} FROM events AS e{where}{qualify}{order or ' ORDER BY rid'}"
    return mine, other


def same(ours: Any, theirs: Any) -> bool:
    if ours is None or theirs is None:
        return ours is theirs
    if isinstance(ours, float) or isinstance(theirs, float):
        a, b = float(ours), float(theirs)
        return (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-6)
    return bool(ours == theirs)


def check(connection: duckdb.DuckDBPyConnection, events: pa.Table, ours: str, theirs: str) -> None:
    cursor = connection.execute(theirs)
    names, expected = [each[0] for each in cursor.description], cursor.fetchall()
    found = sw.evaluate(ours, events)
    assert found.column_names == names
    rows = list(zip(*(column.to_pylist() for column in found.columns), strict=True))
    assert len(rows) == len(expected), (ours, rows, expected)
    for one, other in zip(rows, expected, strict=True):
        differ = [each for each in zip(names, one, other, strict=True) if not same(*each[1:])]
        assert not differ, (differ, ours, theirs)


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    """In one thread: tables are tiny, and to begin threads takes longer than to answer."""
    with duckdb.connect(config={"threads": 1}) as connection:
        yield connection


@settings(
    max_examples=share(400), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(data=st.data())
def test_a_statement_gives_what_duckdb_gives(database: duckdb.DuckDBPyConnection, data: Any) -> None:
    """Ten statements over each table: to draw one takes as long as to answer several."""
    events, ties, stamps = data.draw(tables())
    database.register("events", events)
    for _ in range(10):
        check(database, events, *data.draw(statements(ties, stamps)))
