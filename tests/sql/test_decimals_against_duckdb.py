"""Decimals in expressions: what Python's fractions give, exactly, or an error; casts are DuckDB's."""

import math
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
