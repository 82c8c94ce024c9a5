"""Decimals in expressions: what Python's fractions give, exactly, or an error; casts are DuckDB's."""

import math
import operator
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import frames as fr
import swag as sw

DIGITS = Context(prec=200)
KINDS = st.integers(1, 38).flatmap(lambda p: st.builds(pa.decimal128, st.just(p), st.integers(0, p)))


def rounded(value: Fraction, digits: int) -> Fraction:
    """Ties away from zero."""
    whole = int(abs(value) * Fraction(10) ** digits + Fraction(1, 2))
    return (whole if value > 0 else -whole) / Fraction(10) ** digits


OF_EVENTS = {
    "a + b": lambda a, b: a + b, "a - b": lambda a, b: a - b, "a * b": lambda a, b: a * b, "a + i": lambda a, b: a + 7,
    "i * b": lambda a, b: 7 * b, "-a": lambda a, b: -a, "ABS(b)": lambda a, b: abs(b), "GREATEST(a, b)": max,
    "CASE WHEN i = 7 THEN a ELSE b END": lambda a, b: a, "LEAST(a, i)": lambda a, b: min(a, 7),
    "COALESCE(b, a)": lambda a, b: b, "a > b": lambda a, b: a > b, "a = b": lambda a, b: a == b,
    "a <= b": lambda a, b: a <= b, "a >= i": lambda a, b: a >= 7, "a BETWEEN b AND i": lambda a, b: b <= a <= 7,
    "ROUND(a, 1)": lambda a, b: rounded(a, 1), "ROUND(b)": lambda a, b: rounded(b, 0), "TRUNC(a)": lambda a, b: int(a),
    "ROUND(a, -2)": lambda a, b: rounded(a, -2), "FLOOR(a)": lambda a, b: math.floor(a),
    "CEIL(b)": lambda a, b: math.ceil(b), "SIGN(a)": lambda a, b: (a > 0) - (a < 0),
    "TRY_CAST(a AS BIGINT)": lambda a, b: n if -(2**63) <= (n := rounded(a, 0)) < 2**63 else None,
}  # fmt: skip
OF_ANSWERS = {
    "LAST(a) + LAST(b)": lambda a, b: a + b, "LAST(a) - SUM(b)": lambda a, b: a - b,
    "SUM(a) * MAX(b)": lambda a, b: a * b, "SUM(a) - COUNT(*)": lambda a, b: a - 1,
    "SUM(a) > SUM(b)": lambda a, b: a > b, "MAX(a) = MIN(b)": lambda a, b: a == b,
    "SUM(a) <= LAST(i)": lambda a, b: a <= 7,
}  # fmt: skip


@st.composite
def decimals(draw: st.DrawFn, kind: pa.DataType) -> Decimal:
    digits = draw(st.integers(0, kind.precision))
    return Decimal(draw(st.integers(-(10**digits) + 1, 10**digits - 1))).scaleb(-kind.scale, DIGITS)


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    one = draw(KINDS)
    other = draw(KINDS | st.just(one))
    a, b = draw(decimals(one)), draw(decimals(other))
    return pa.table({"ts": [1], "a": pa.array([a], one), "b": pa.array([b], other), "i": [7]})


@given(table=tables(), asked=st.sampled_from([*OF_EVENTS, *OF_ANSWERS]))
def test_decimals_are_computed_with_exactly_or_refused(table: pa.Table, asked: str) -> None:
    a, b = (Fraction(table[name][0].as_py()) for name in "ab")
    text = asked if asked in OF_ANSWERS else f"LAST({asked})"
    found: Any = None
    try:
        found = sw.evaluate(f"SELECT {text} AS q FROM t [ROWS 1]", table)["q"]
    except sw.SwagError as why:
        found = str(why)
    if isinstance(found, str):
        assert any(each in found for each in ("in precision", "38 digits", "digits behind the point"))
        assert not_to_be_held(table, asked, a, b)
    else:
        assert found[0].as_py() == (OF_EVENTS | OF_ANSWERS)[asked](a, b)  # type: ignore[no-untyped-call]


def not_to_be_held(table: pa.Table, asked: str, a: Fraction, b: Fraction) -> bool:
    """Are there more than 38 digits, with those behind the point that the two types together have?"""
    scales = [table.schema.field(name).type.scale for name in "ab"]
    behind = sum(scales) if asked in ("a * b", "SUM(a) * MAX(b)") else max(scales)
    sizes = [abs(each or 0) for each in (a, b, (OF_EVENTS | OF_ANSWERS)[asked](a, b), 7)]  # type: ignore[no-untyped-call]
    return behind > 38 or any(size * 10**behind >= 10**38 for size in sizes)


TO = st.integers(1, 38).flatmap(lambda p: st.tuples(st.just(p), st.integers(0, p)))


@given(table=tables(), to=TO, data=st.data())
def test_casts_to_decimals_are_those_of_duckdb(table: pa.Table, to: tuple[int, int], data: st.DataObject) -> None:
    value = table["a"][0].as_py()
    text = data.draw(
        st.sampled_from([str(value), f"{value:f}", f"+{abs(value):f}", f"{value:f}5", f"00{abs(value):f}"])
    )
    t = table.append_column("s", [[text]]).append_column("n", [[data.draw(st.integers(-(2**63), 2**63 - 1))]])
    for name in ("a", "s", "n"):
        cast = f"TRY_CAST({name} AS DECIMAL({to[0]}, {to[1]}))"
        ours = sw.evaluate(sw.Query(sw.last(cast), sw.Rows(1), name="q"), t)["q"][0].as_py()
        right = exactly_cast(t[name][0].as_py(), *to)
        assert ours == right, (name, t[name][0])
        if "e" not in text.lower():
            assert duckdb.sql(f"SELECT {cast} AS q FROM t").fetchall() == [(right,)]


def exactly_cast(value: Any, precision: int, scale: int) -> Decimal | None:
    """Rounded away from zero; None where it does not fit."""
    units = abs(Fraction(value)) * 10**scale
    whole = int(units + Fraction(1, 2))
    return None if whole >= 10**precision else Decimal(whole if Fraction(value) > 0 else -whole).scaleb(-scale, DIGITS)


@pytest.mark.parametrize(
    ("text", "to", "wanted"),
    [
        ("123456789012345678901234.5", "38, 2", Decimal("123456789012345678901234.50")), ("1" * 77, "38, 3", None),
        ("1.5e3", "9, 2", Decimal("1500.00")), ("1e40", "38, 0", None), ("1e-5", "9, 2", Decimal("0.00")),
        ("-99999999999999999999999999999999999999", "38, 0", Decimal(-(10**38) + 1)), ("0.05", "3, 1", Decimal("0.1")),
        ("12345678901234567890123456789e30", "38, 0", None), ("", "9, 2", None), ("x", "9, 2", None),
    ],
)  # fmt: skip
def test_text_is_a_decimal_to_the_last_digit_or_none(text: str, to: str, wanted: Decimal | None) -> None:
    query = sw.Query(sw.last(f"TRY_CAST(s AS DECIMAL({to}))"), sw.Rows(1), name="q")
    assert sw.evaluate(query, {"ts": [1], "s": [text]})["q"].to_pylist() == [wanted]


@given(table=tables(), to=st.sampled_from(["DOUBLE", "FLOAT"]))
def test_a_decimal_as_a_float_is_the_one_next_to_it(table: pa.Table, to: str) -> None:
    value = table["a"][0].as_py()
    query = sw.Query(sw.last(f"CAST(a AS {to})"), sw.Rows(1), name="q")
    found = sw.evaluate(query, table)["q"][0].as_py()
    assert found == (float(value) if to == "DOUBLE" else float(np.float32(float(value))))
    assert sw.evaluate("SELECT LAST(a / 1) AS q FROM t [ROWS 1]", table)["q"][0].as_py() == float(value)


WRITTEN = st.decimals(-1000, 1000, allow_nan=False, places=2) | st.decimals(-1, 1, allow_nan=False, places=5)


@given(
    units=st.lists(st.integers(-(10**5), 10**5), min_size=1, max_size=8), scale=st.integers(0, 5),
    written=WRITTEN, is_there=st.booleans(), op=st.sampled_from(["=", "<>", "<", "<=", ">", ">="]),
)  # fmt: skip
@example(units=[330, 110, 5], scale=2, written=Decimal("3.3"), is_there=False, op="=")
def test_a_fraction_beside_decimals_is_the_one_that_is_written(
    units: list[int], scale: int, written: Decimal, is_there: bool, op: str
) -> None:
    """Wherever the two meet: in WHERE, in aggregates, in HAVING and QUALIFY, in frames; stored, and in an engine."""
    kind = pa.decimal128(9, scale)
    values = [Decimal(each).scaleb(-scale) for each in units]
    c = format(values[0] if is_there else written, "f") + (
        "" if "." in f"{values[0] if is_there else written:f}" else ".0"
    )
    events = pa.table({"ts": range(len(values)), "k": range(len(values)), "d": pa.array(values, kind)})
    right = [COMPARED[op](value, Decimal(c)) for value in values]
    assert duckdb.sql(f"SELECT d {op} {c} FROM events ORDER BY ts").fetchall() == [(each,) for each in right]
    for text in (f"d {op} {c}", f"{c} {BEHIND[op]} d", f"d + 0 {op} {c}", f"CASE WHEN d {op} {c} THEN TRUE END"):
        found = sw.evaluate(sw.Query(sw.count_if(text), sw.Rows(1), name="n"), events)["n"].to_pylist()
        assert found == list(map(int, right)), text
        assert (
            sw.evaluate(sw.Query(sw.count(), sw.Rows(1), name="n", where=text), events, key="k")["n"].to_pylist()
            == found
        )
    having = f"SELECT k, SUM(d) AS s FROM t [ROWS 1] GROUP BY k HAVING s {op} {c}"
    over = f"SELECT k, SUM(d) OVER w AS s FROM t WINDOW w AS (PARTITION BY k ORDER BY ts) QUALIFY s {op} {c}"
    keys = [k for k, holds in enumerate(right) if holds]
    assert [row["k"] for row in sw.evaluate(having, events).to_pylist() if row["s"] is not None] == keys
    assert sw.evaluate(over, events)["k"].to_pylist() == keys
    for text in (having, over):
        engine = sw.Engine(key="k")
        engine.register(text)
        engine.append(events)
        assert engine.lookup("s")["k"].to_pylist() == keys
    if op in ("<", "<=", ">", ">="):
        query = sw.Query(sw.sum("d"), sw.Rows(1), name="s", having=(op, float(c)))
        engine = sw.Engine(key="k")
        engine.register(query)
        engine.append(events)
        assert engine.lookup("s")["k"].to_pylist() == keys
    found = fr.detect(fr.Threshold(f"d {op} {c} AND ts >= 0"), events, key="k")["k"].to_pylist()
    assert found == keys


COMPARED = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
BEHIND = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
