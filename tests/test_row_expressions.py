"""Expressions over the columns of events: what raises names the row, what a row does not come to never raises."""

import datetime
import math
from decimal import Decimal
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import swag as sw
from swag.tables.expressions.expression import compiled, values
from swag.tables.predicate import holds

NAN = float("nan")
DAY = datetime.date(2020, 1, 5)


def of(expression: str, **columns: Any) -> list[Any]:
    found: list[Any] = values(compiled(expression), pa.table(columns), f'"{expression}"').to_pylist()
    return found


@pytest.mark.parametrize(
    ("expression", "columns", "message"),
    [
        ("a % b", {"a": [1, 2, 3], "b": [1, 0, 0]}, "row 1, where a = 2, b = 0: a % b: division by zero"),
        ("a // b", {"a": [1, 2, 3], "b": [1, 2, 0]}, "row 2, where a = 3, b = 0: a // b: division by zero"),
        ("a * 4", {"a": [1, 2**62]}, r"row 1, where a = 4611686018427387904: a \* 4: overflow"),
        ("CAST(s AS BIGINT)", {"s": ["1", None, "x"]}, "row 2, where s = 'x': CAST"),
        ("CAST(f AS INT)", {"f": [1.0, 1e12]}, r"row 1, where f = 1e\+?12|1000000000000.0: CAST"),
        ("CAST(f AS FLOAT)", {"f": [1.0, math.inf, 1e300]}, r"row 2, where f = 1e\+300: CAST.* out of range of float"),
        ("CASE WHEN a > 1 THEN 1 % b END", {"a": [1, 2, 2], "b": [0, 1, 0]}, "row 2, where a = 2, b = 0"),
    ],
)
def test_a_row_that_can_not_be_computed_is_named(expression: str, columns: dict[str, Any], message: str) -> None:
    with pytest.raises(sw.BadEvents, match=message):
        of(expression, **columns)


def test_what_a_row_does_not_come_to_never_raises() -> None:
    columns = {"a": [0, 3, None, 5], "b": [1, 0, 2, 2**62]}
    assert of("CASE WHEN a <> 0 THEN 7 % a ELSE -1 END", **columns) == [-1, 1, -1, 2]
    assert of("CASE WHEN a = 0 THEN 0 WHEN 7 % a = 1 THEN 1 ELSE b * 2 END", a=[0, 3, None], b=[2**62, 2**62, 2]) == [
        0, 1, 4]  # fmt: skip
    assert of("COALESCE(a, 1 // (b - b))", a=[1, 2], b=[1, 1]) == [1, 2]
    assert of("a <> 0 AND 7 % a = 1", **columns) == [False, True, None, False]
    assert of("7 % a = 1 AND a <> 0", **columns) == [False, True, None, False]
    assert of("a = 0 OR 7 % a = 1", **columns) == [True, True, None, False]
    assert holds("a <> 0 AND 7 % a = 1", pa.table(columns)).tolist() == [False, True, False, False]


def test_a_value_that_no_row_comes_to_needs_no_room_in_the_type_that_all_have() -> None:
    wide, whole = pa.array([2**63, 2**63, 5], pa.uint64()), [1, 2, None]
    assert of("CASE WHEN i > 0 THEN i ELSE u END", u=wide, i=whole) == [1, 2, 5]
    assert of("COALESCE(i, u)", u=wide, i=whole) == [1, 2, 5]
    events = {"ts": [1, 2, 3], "u": wide, "i": whole}
    first = sw.Query(sw.last("i").coalesce(sw.last("u")), sw.Rows(1), name="q")
    assert sw.evaluate(first, events)["q"].to_pylist() == [1, 2, 5]
    with pytest.raises(sw.SumOverflow, match="does not fit int64"):
        sw.evaluate(sw.Query(sw.last("u").coalesce(sw.last("i")), sw.Rows(1)), events)
    with pytest.raises(sw.BadEvents, match=r"of row 1, where i = -1, u = 9223372036854775808: CASE"):
        of("IF(i > 0, i, u)", u=wide, i=[1, -1, 1])
    text = "CASE WHEN a = 0 THEN '2020-01-05' WHEN 7 % a = 0 THEN t ELSE t END"  # beside a time, also step by step
    noon = datetime.datetime(2020, 1, 1, 12)
    assert of(text, a=[0, 1], t=[noon, noon]) == [datetime.datetime(2020, 1, 5), noon]


def test_a_time_that_python_can_not_show_is_shown_as_it_is_kept() -> None:
    far = pa.array([1, 2**62], pa.timestamp("s"))
    with pytest.raises(sw.BadEvents, match=r"row 1, where t = 4611686018427387904, u = .*: t > u: .*out of bounds"):
        of("t > u", t=far, u=pa.array([1, 1], pa.timestamp("ns")))


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
@pytest.mark.parametrize(
    "expression", ["YEAR(t)", "HOUR(t)", "DATE_TRUNC('day', t)", "CAST(t AS TEXT)", "CAST(t AS DATE)",
                   "DATE_DIFF('day', t, t)", "t AT TIME ZONE 'UTC'"],
)  # fmt: skip
def test_beyond_the_years_of_the_calendar_nothing_is_made_up(unit: str, expression: str) -> None:
    """Arrow counts years modulo 2^16."""
    per_day = 86_400 * {"s": 1, "ms": 10**3, "us": 10**6}[unit]
    last, first = 11_248_737 * per_day, -12_687_428 * per_day
    for beyond in (last + per_day, first - 1, 2**62, -(2**62)):
        table = pa.table({"t": pa.array([0, last, beyond, None], pa.timestamp(unit))})
        with pytest.raises(sw.BadEvents, match=r"of row 2.*beyond the years -32767 to 32767"):
            values(compiled(expression), table, "it")
    table = pa.table({"t": pa.array([first, last, None], pa.timestamp(unit))})
    assert values(compiled(expression), table, "it").is_valid().to_pylist() == [True, True, False]
    table = pa.table({"t": pa.array([last, 2**62], pa.timestamp(unit))})
    assert values(compiled("TRY_CAST(t AS TEXT)"), table, "it")[1].as_py() is None
    assert values(compiled("YEAR(t)"), table.slice(0, 1), "it").to_pylist() == [32767]


def test_what_a_narrower_float_has_no_room_for_is_null_if_it_is_tried() -> None:
    assert of("TRY_CAST(f AS FLOAT)", f=[1.5, 1e300, math.inf, None, -1e39]) == [1.5, None, math.inf, None, None]
    assert of("TRY_CAST(1e300 AS FLOAT)", f=[1]) == [None]


def test_what_is_rounded_to_the_end_of_a_type_is_cast_beside_what_is_not() -> None:
    assert of("TRY_CAST(f AS TINYINT)", f=[-128.5, 127.5, -128.51]) == [-128, None, None]
    m = [Decimal("-0.05"), Decimal("255.49"), Decimal("255.50")]
    assert of("TRY_CAST(m AS UTINYINT)", m=m) == [0, 255, None]


def test_a_decimal_is_true_unless_it_is_0() -> None:
    assert of("CAST(m AS BOOLEAN)", m=[Decimal("0.5"), Decimal("0.0"), None]) == [True, False, None]
    assert of("TRY_CAST(m AS BOOLEAN)", m=[Decimal("0.5"), Decimal("0.0"), None]) == [True, False, None]


def test_whole_numbers_that_are_too_large_compute_with_floats() -> None:
    assert of("f - 9223372036854775808", f=[2.0**63]) == [0.0]
    assert of("a < 9223372036854775808", a=[2**63 - 1]) == [True]


def test_half_floats_compute_as_floats_do() -> None:
    half = pa.array([1.5, 3.0, None, math.inf], pa.float16())
    assert of("h > 2", h=half) == [False, True, None, True]
    assert of("h = 1.5 OR h IN (3)", h=half) == [True, True, None, False]
    assert of("NULLIF(h, 3)", h=half) == [1.5, None, None, math.inf]
    assert of("CASE WHEN h > 2 THEN h END", h=half) == [None, 3.0, None, math.inf]
    assert of("TRY_CAST(h AS INTEGER)", h=half) == [2, 3, None, None]
    events = {"ts": [1, 2, 3, 4], "h": half}
    answers = sw.evaluate("SELECT MAX(h) AS m FROM t [ROWS 1] WHERE h > 2 HAVING MAX(h) > 2", events)
    assert answers["m"].to_pylist() == [None, 3.0, None, math.inf]
    rows = sw.evaluate("SELECT h, COUNT(*) OVER () AS n FROM t ORDER BY h DESC NULLS LAST", events)
    assert rows["h"].to_pylist() == [math.inf, 3.0, 1.5, None]


def test_division_is_that_of_floats() -> None:
    assert of("a / b", a=[1, -1, 7], b=[0, 0, 2]) == [math.inf, -math.inf, 3.5]
    assert math.isnan(of("a / b", a=[0], b=[0])[0])
    assert math.isnan(of("a % b", a=[1.5], b=[0.0])[0])


def test_the_minimum_and_maximum_of_columns_are_nan_where_one_is() -> None:
    assert math.isnan(of("LEAST(a, 1)", a=[NAN])[0])
    assert of("GREATEST(a, b)", a=[None, 2.0], b=[1.0, None]) == [1.0, 2.0]


def test_replacing_nothing_changes_nothing() -> None:
    assert values(compiled("REPLACE(s, '', 'x')"), pa.table({"s": ["ab", None, ""]}), "it").to_pylist() == [
        "ab",
        None,
        "",
    ]


def test_what_clocks_show_twice_is_the_later_and_what_they_leave_out_goes_by_how_they_stood() -> None:
    shown = [datetime.datetime(2024, 3, 31, 2, 30), datetime.datetime(2024, 10, 27, 2, 30), None]
    found = values(compiled("w AT TIME ZONE 'Europe/Berlin'"), pa.table({"w": shown}), "it").cast(
        pa.timestamp("us", "UTC")
    )
    utc = [datetime.datetime(2024, month, day, 1, 30, tzinfo=datetime.UTC) for month, day in ((3, 31), (10, 27))]
    assert found.to_pylist() == [*utc, None]


def test_times_stand_beside_text_dates_and_intervals() -> None:
    zone = "America/New_York"
    midnight = datetime.datetime(2020, 1, 5, 5)  # in UTC
    ts = pa.array([midnight - datetime.timedelta(seconds=1), midnight], pa.timestamp("s", zone))
    for text in ("ts >= '2020-01-05'", "ts >= DATE '2020-01-05'", "ts >= TIMESTAMP '2020-01-05 00:00:00'",
                 "ts >= '2020-01-05T05:00:00Z'", "ts >= '2020-01-05 06:00:00+01:00'"):  # fmt: skip
        assert of(text, ts=ts) == [False, True], text
    assert of("EXTRACT(hour FROM ts)", ts=ts) == [23, 0]
    assert of("CAST(ts AS DATE)", ts=ts) == [datetime.date(2020, 1, 4), DAY]
    assert of("ts AT TIME ZONE 'UTC' = TIMESTAMP '2020-01-05 05:00:00'", ts=ts) == [False, True]
    assert of("d + INTERVAL '1' DAY > '2020-01-05 12:00:00'", d=[DAY]) == [True]
    assert of("ts - INTERVAL 1 WEEK", ts=ts.cast(pa.timestamp("s")))[1] == midnight - datetime.timedelta(days=7)


def test_times_of_day_go_on_behind_midnight() -> None:
    for kind in (pa.time32("s"), pa.time64("us")):
        o = pa.array([datetime.time(23, 30), datetime.time(0, 30), None], kind)
        assert of("o + INTERVAL '90' MINUTES", o=o) == [datetime.time(1), datetime.time(2), None]
        assert of("o - INTERVAL '25' HOURS", o=o) == [datetime.time(22, 30), datetime.time(23, 30), None]
        assert of("o + NULL", o=o) == [None] * 3
    assert of("p + INTERVAL '5' MILLISECONDS", p=pa.array([1], pa.time32("s"))) == [datetime.time(0, 0, 1, 5000)]
    clocks = {"o": pa.array([1], pa.time64("us")), "p": pa.array([1], pa.time32("s"))}
    assert of("COALESCE(o, p) < GREATEST(o, p) AND o IS DISTINCT FROM p", **clocks) == [True]


def test_nothing_is_computed_of_what_lies_beneath_nulls() -> None:
    """Beneath those of pandas' times there is the least of all."""
    events = {"ts": [1, 2], "u": pd.Series(pd.to_datetime([None, "2020-01-05"]))}
    for text in ("u - INTERVAL 1 DAY", "u - (u - TIMESTAMP '2020-01-04 00:00:00')"):
        rows = sw.evaluate(f"SELECT {text} AS day, COUNT(*) OVER () AS n FROM t", events)
        assert rows["day"].cast(pa.timestamp("s")).to_pylist() == [None, datetime.datetime(2020, 1, 4)]


def test_what_a_zone_shows_twice_is_cut_off_and_counted_by_what_passed() -> None:
    hours = [datetime.datetime(2023, 11, 5, hour, 30, tzinfo=datetime.UTC) for hour in (4, 5, 6, 7)]
    z = pa.array(hours, pa.timestamp("us", "America/New_York"))  # 0:30, 1:30, and again 1:30, 2:30
    on_the_hour = [each.replace(minute=0) for each in hours]
    for unit, wanted in (("hour", on_the_hour), ("minute", hours), ("day", on_the_hour[:1] * 4)):
        assert [each.astimezone(datetime.UTC) for each in of(f"DATE_TRUNC('{unit}', z)", z=z)] == wanted
    assert of("DATE_DIFF('hour', TIMESTAMPTZ '2023-11-05 04:00:00+00', z)", z=z) == [0, 1, 2, 3]
    assert of("DATE_DIFF('minute', y, z)", y=pa.array(hours[:1] * 4, z.type), z=z) == [0, 60, 120, 180]


def test_instants_of_two_zones_go_together() -> None:
    """In the first of the zones that is not UTC."""
    hours = [datetime.datetime(2023, 11, 5, hour, tzinfo=datetime.UTC) for hour in (4, 5)]
    y, z = (pa.array(hours, pa.timestamp(unit, zone)) for unit, zone in (("s", "Europe/Berlin"), ("us", "Asia/Tokyo")))
    assert of("z = y AND z IS NOT DISTINCT FROM y", y=y, z=z) == [True, True]
    assert of("GREATEST(z, y) - LEAST(z, y)", y=y, z=z) == [datetime.timedelta(0)] * 2
    utc = "TIMESTAMPTZ '2023-11-05 04:30:00+00'"
    for text, zone in (
        ("COALESCE(y, z)", "Europe/Berlin"),
        (f"CASE WHEN z > {utc} THEN {utc} ELSE z END", "Asia/Tokyo"),
    ):
        found = values(compiled(text), pa.table({"y": y, "z": z}), "it")
        assert found.type == pa.timestamp("us", zone)


def test_large_text_is_cast_to_a_time_of_day() -> None:
    for kind in (pa.string(), pa.large_string()):
        assert of("TRY_CAST(s AS TIME)", s=pa.array(["9:30", "09:30", None], kind))[1:] == [datetime.time(9, 30), None]


def test_decimals_are_written_without_exponents() -> None:
    m = pa.array([Decimal("1E-9"), Decimal("0E-9"), None, Decimal("-2.5")], pa.decimal128(18, 9))
    assert of("CAST(m AS TEXT)", m=m) == ["0.000000001", "0.000000000", None, "-2.500000000"]
    assert of("CAST(CAST('1e-9' AS DECIMAL(18, 9)) AS TEXT)", m=m) == ["0.000000001"] * 4


@pytest.mark.parametrize(
    ("expression", "columns", "message"),
    [
        ("a + s", {"a": [1], "s": ["x"]}, "a is int64, s is string"),
        ("CASE WHEN a > 1 THEN a ELSE 'x' END", {"a": [1]}, "int64 and string have no type in common"),
        ("f // 2", {"f": [1.5]}, "FLOOR"),
        ("LENGTH(a)", {"a": [1]}, "is no text"),
        ("YEAR(a)", {"a": [1]}, "is no date or time"),
        ("a AND b", {"a": [1], "b": [True]}, "neither true nor false"),
        ("d > 'x'", {"d": [DAY]}, "x"),
        ("'5' = 5", {"a": [1]}, "can not be computed: string and int64 do not go together in '5' = 5. Hint"),
        ("ABS(s)", {"s": ["x"]}, r"s is string. ABS\(s\) is of string. Hint"),
        ("a - 9223372036854775808", {"a": [1]}, "int64, which has no room for 9223372036854775808. Hint: .*808.0"),
        ("GREATEST(a, -9223372036854775809)", {"a": [1]}, "int64, which has no room for -9223372036854775809"),
    ],
)
def test_types_that_do_not_go_together_are_named(expression: str, columns: dict[str, Any], message: str) -> None:
    with pytest.raises(sw.BadType, match=message):
        of(expression, **columns)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("SUM(x)", "is an aggregate"), ("foo(x)", r"FOO\(x\) is not supported"), ("x -> y", "is not supported"),
        ("ts + INTERVAL '1' MONTH", "months and years differ in length"), ("CAST(x AS JSON)", "there is no type JSON"),
        ("DATE '2020-13-01'", "2020-13-01"), ("ROUND(x, y)", "y has to be a constant"),
        ("EXTRACT(era FROM ts)", "no part"), ("DATE_TRUNC('decade', ts)", "no such unit"),
    ],
)  # fmt: skip
def test_what_there_is_not_is_refused_by_name(expression: str, message: str) -> None:
    with pytest.raises(sw.BadQuery, match=message):
        compiled(expression)


def test_columns_of_nulls_alone_compute() -> None:
    nothing = pa.nulls(2)
    for text in ("x + 1", "ABS(x)", "LENGTH(x)", "YEAR(x)", "x > 1", "x || 'a'", "COALESCE(x, x)", "ROUND(x, 1)",
                 "x % 2", "CAST(x AS DATE)", "x + INTERVAL '1' DAY", "GREATEST(x, 1) - 1 - x"):  # fmt: skip
        assert of(text, x=nothing) == [None, None], text
