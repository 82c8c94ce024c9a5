"""Columns of every type that Arrow has: a few values of each, and how they are laid out."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

DAYS = [dt.date(2020, 1, 1), dt.date(1960, 5, 5), dt.date(2030, 1, 1), dt.date(2020, 1, 2)]
CLOCK = [dt.time(1, 2, 3), dt.time(0), dt.time(23, 59, 59), dt.time(5)]
SPANS = [dt.timedelta(seconds=3), dt.timedelta(0), dt.timedelta(days=5), dt.timedelta(seconds=-9)]
INSTANTS = [dt.datetime(year, 1, 1, 6) for year in (2020, 1960, 2030, 2021)]
ZONED = [each.replace(tzinfo=dt.UTC) for each in INSTANTS]
NUMBERS = [Decimal("1.25"), Decimal("-2.5"), Decimal("7.75"), Decimal("0.5")]
TEXT, BYTES = ["b", "a", "ü", ""], [b"b", b"a", b"\xff\0", b""]
UNITS = ("s", "ms", "us", "ns")

WHOLE: dict[pa.DataType, list[Any]] = {
    pa.int8(): [3, -2, 127, -128], pa.int16(): [3, -2, 2**15 - 1, -(2**15)], pa.int32(): [3, -2, 2**31 - 1, -(2**31)],
    pa.int64(): [3, -2, 2**62, -(2**62)], pa.uint8(): [3, 0, 255, 7], pa.uint16(): [3, 0, 2**16 - 1, 7],
    pa.uint32(): [3, 0, 2**32 - 1, 7], pa.uint64(): [3, 0, 2**62, 7], pa.bool_(): [True, False, True, True],
    pa.dictionary(pa.int32(), pa.int64()): [5, -3, 2**61, 5], pa.run_end_encoded(pa.int16(), pa.int64()): [5, 5, -3, 9],
    pa.dictionary(pa.int8(), pa.bool_()): [True, False, True, True],
}  # fmt: skip
FLOATS: dict[pa.DataType, list[Any]] = {
    pa.float16(): [1.5, -2.25, 100.0, 0.5], pa.float32(): [1.5, -2.25, 2.0**100, 0.5],
    pa.float64(): [1.5, -2.25, 2.0**200, 0.5],
    pa.run_end_encoded(pa.int64(), pa.float32()): [5.0, 5.0, -3.0, 9.0],
    pa.dictionary(pa.uint8(), pa.float64()): [1.5, -2.25, 1.5, 0.5],
}  # fmt: skip
TIMES: dict[pa.DataType, list[Any]] = {
    pa.date32(): DAYS, pa.date64(): DAYS,
    **{pa.time32(unit): CLOCK for unit in UNITS[:2]}, **{pa.time64(unit): CLOCK for unit in UNITS[2:]},
    **{pa.duration(unit): SPANS for unit in UNITS}, **{pa.timestamp(unit): INSTANTS for unit in UNITS},
    **{pa.timestamp(unit, zone): ZONED for unit in UNITS for zone in ("UTC", "America/New_York", "+05:30")},
    pa.dictionary(pa.uint16(), pa.timestamp("us")): INSTANTS, pa.run_end_encoded(pa.int32(), pa.date32()): DAYS,
}  # fmt: skip
HANDED_BACK: dict[pa.DataType, list[Any]] = {
    pa.string(): TEXT, pa.large_string(): TEXT, pa.string_view(): TEXT, pa.binary(): BYTES, pa.large_binary(): BYTES,
    pa.binary_view(): BYTES, pa.binary(2): [b"bb", b"aa", b"\xff\0", b"\0\0"],
    pa.decimal32(5, 2): NUMBERS, pa.decimal64(9, 2): NUMBERS, pa.decimal128(20, 3): NUMBERS,
    pa.decimal256(60, 3): NUMBERS,
    pa.dictionary(pa.int8(), pa.string()): TEXT, pa.dictionary(pa.int8(), pa.string_view()): TEXT,
    pa.dictionary(pa.int64(), pa.decimal128(20, 3)): NUMBERS, pa.dictionary(pa.int16(), pa.large_binary()): BYTES,
    pa.run_end_encoded(pa.int32(), pa.string()): ["b", "b", "a", "b"],
    pa.run_end_encoded(pa.int32(), pa.string_view()): ["b", "b", "a", "b"],
}  # fmt: skip
NESTED: dict[pa.DataType, list[Any]] = {
    pa.list_(pa.int64()): [[1], [], [2, 3], [4]], pa.large_list(pa.int64()): [[1], [], [2, 3], [4]],
    pa.list_view(pa.int64()): [[1], [], [2, 3], [4]], pa.list_(pa.int64(), 1): [[1], [3], [2], [4]],
    pa.struct([("a", pa.int64())]): [{"a": 1}, {"a": 2}, {"a": 3}, {"a": None}],
    pa.map_(pa.string(), pa.int64()): [[("a", 1)], [], [("b", 2)], []],
    pa.month_day_nano_interval(): [pa.MonthDayNano([1, 2, 3])] * 4,
}  # fmt: skip
NOTHING: dict[pa.DataType, list[Any]] = {pa.null(): [None] * 4}
ALL = WHOLE | FLOATS | TIMES | HANDED_BACK | NESTED | NOTHING


def column(kind: pa.DataType, values: list[Any]) -> pa.Array:
    """The values in a column of a type; None is null."""
    if pa.types.is_dictionary(kind):
        distinct = list(dict.fromkeys(value for value in values if value is not None))
        places = [None if value is None else distinct.index(value) for value in values]
        return pa.DictionaryArray.from_arrays(pa.array(places, kind.index_type), pa.array(distinct, kind.value_type))
    if pa.types.is_run_end_encoded(kind):
        plain = pa.array(values, kind.value_type)
        if pa.types.is_string_view(kind.value_type):  # Arrow does not encode these itself
            return pa.RunEndEncodedArray.from_arrays(pa.array(range(1, len(values) + 1), kind.run_end_type), plain)
        return pc.run_end_encode(plain, run_end_type=kind.run_end_type)
    return pa.array(values, kind)


def in_units(kind: pa.DataType, value: Any) -> Any:
    """A value as its column gives it back."""
    return column(kind, [value])[0].as_py()
