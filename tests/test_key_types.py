"""Keys of every type, alone and beside others, go through every way to ask: they are told apart, or refused."""

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import frames as fr
import swag as sw
from tests.every_type import ALL, NESTED, NOTHING, column, in_units
from tests.test_types import in_two_batches

ids = {"ids": str}
GROUPED = {kind: values for kind, values in ALL.items() if kind not in NESTED and kind not in NOTHING}


def total_by(rows: list[dict[str, Any]], value: str, by: tuple[str, ...]) -> dict[Any, Any]:
    return {tuple(row[name] for name in by): row[value] for row in rows}


@pytest.mark.parametrize("by", [("k",), ("k", "j"), ("j", "k")], ids=["alone", "first", "second"])
@pytest.mark.parametrize("kind", GROUPED, **ids)
def test_keys_of_every_type(kind: pa.DataType, by: tuple[str, ...], tmp_path: Path) -> None:
    keys, others = [*GROUPED[kind][:3], GROUPED[kind][0]], ["p", "q", "p", "p"]
    table = pa.table({"ts": range(4), "k": column(kind, keys), "j": others, "x": [1, 2, 4, 8]})
    wanted: dict[Any, int] = {}
    for key, other, x in zip(keys, others, [1, 2, 4, 8], strict=True):
        named = {"k": in_units(kind, key), "j": other}
        whole = tuple(named[name] for name in by)
        wanted[whole] = wanted.get(whole, 0) + x
    total = sw.Query(sw.sum("x"), sw.Range(99), name="q")
    ticks = sw.Query(sw.sum("x"), sw.Range(99), name="e", every=sw.Every(4))
    per_key = sw.Query(sw.sum("x"), sw.Range(99), name="p", every=sw.Every(1, per_key=True))
    passing = sw.Query(sw.sum("x"), sw.Range(99), name="h", having=(">", 0))
    requests = sw.evaluate([total], table, at=table.set_column(0, "ts", [[9] * 4]), key=by)
    assert total_by(requests.to_pylist(), "q", by) == wanted
    assert total_by(sw.evaluate([ticks], table, key=by).to_pylist(), "e", by) == wanted
    for engine in (sw.Engine(key=by), sw.Engine(key=by, lateness=1)):
        engine.register([ticks, per_key, passing])
        engine = in_two_batches(engine, total, table, tmp_path)
        assert total_by(engine.lookup("q", at=20).to_pylist(), "value", by) == wanted
        assert total_by(engine.lookup_all(at=9).to_pylist(), "q", by) == wanted
        assert total_by(engine.filters(at=9).to_pylist(), "value", by) == wanted
        assert total_by(engine.emitted("e").to_pylist(), "value", by) == wanted
        assert total_by(engine.emitted("p").to_pylist(), "value", by) == wanted
        of_one = {key: engine.lookup("q", key=key if len(by) > 1 else key[0], at=20) for key in wanted}
        assert of_one == wanted
    frames = fr.detect(fr.Threshold("x", ">", 0), table, key=by)
    assert total_by(fr.summarize(frames, table, sw.sum("x"), key=by).to_pylist(), "sum(x)", by) == wanted
    assert fr.fill(frames, table, key=by, own=True)["x"].to_pylist() == [1, 2, 4, 8]


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()], **ids)
@pytest.mark.parametrize("by", [("k",), ("k", "j")], ids=["alone", "in a pair"])
def test_floats_are_grouped_as_sql_does(kind: pa.DataType, by: tuple[str, ...]) -> None:
    """-0.0 is 0.0, and one NaN is another, whatever its bits."""
    odd = np.array([0x7FF8000000000001, 0x7FF8000000000000], np.uint64).view(np.float64)
    values = np.array([0.0, -0.0, *odd, math.inf], np.float64)
    keys = pa.array(values.astype(kind.to_pandas_dtype()), kind)
    table = pa.table({"ts": range(5), "k": keys, "j": ["p"] * 5, "x": [1, 2, 4, 8, 16]})
    query = sw.Query(sw.sum("x"), sw.Range(99), name="q")
    assert sw.evaluate([query], table, key=by)["q"].to_pylist() == [1, 3, 4, 12, 16]
    engine = sw.Engine(key=by)
    engine.register(query)
    engine.append(table)
    assert engine.lookup("q")["value"].to_pylist() == [3, 12, 16]
    frames = fr.detect(fr.Threshold("x", ">", 0), table, key=by)
    assert frames["rows"].to_pylist() == [2, 2, 1]


@pytest.mark.parametrize("size", [4, 300_000])
@pytest.mark.parametrize("name", ["k", "j"])
def test_a_null_in_any_key_column_is_refused_by_row_and_column(name: str, size: int) -> None:
    row = size - 2
    columns: dict[str, Any] = {"ts": np.arange(size), "k": np.arange(size) % 9, "j": np.arange(size) % 7}
    nulls = np.arange(size) == row
    table = pa.table({**columns, name: pa.array(columns[name], mask=nulls), "x": np.ones(size)})
    spec, query = fr.Threshold("x", ">", 0), sw.Query(sw.sum("x"), sw.Rows(9), name="q")
    whole, engine, by = pa.table({**columns, "x": np.ones(size)}), sw.Engine(key=("k", "j")), ("k", "j")
    engine.register(query)
    detector, filler, frames = fr.Detector(spec, key=by), fr.Filler(key=by), fr.detect(spec, whole.slice(0, 9), key=by)
    for call in (
        lambda: sw.evaluate([query], table, key=by),
        lambda: engine.append(table),
        lambda: fr.detect(spec, table, key=by),
        lambda: fr.fill(frames, table, key=by),
        lambda: fr.summarize(frames, table, sw.count(), key=by),
        lambda: detector.push(table),
        lambda: filler.push_events(table),
    ):
        with pytest.raises(sw.BadEvents, match=f'row {row} has no key: "{name}" is null'):
            call()
    engine.append(whole.slice(0, 3))  # nothing is left of what was refused
    detector.push(whole.slice(0, 3))
    assert filler.push_events(whole.slice(0, 3)).num_rows == 0
    assert (engine.stats()["events"], detector.buffered, filler.buffered) == (3, 3, 3)


@pytest.mark.parametrize("kind", NESTED | NOTHING, **ids)
def test_keys_of_other_types_are_refused(kind: pa.DataType) -> None:
    table = pa.table({"ts": range(4), "k": column(kind, ALL[kind]), "j": range(4), "x": [1, 2, 4, 8]})
    query = sw.Query(sw.sum("x"), sw.Rows(9), name="q")
    for key in ("k", ("j", "k")):
        engine = sw.Engine(key=key)
        engine.register(query)
        for call in (
            lambda key=key: sw.evaluate([query], table, key=key),
            lambda engine=engine: engine.append(table),
            lambda key=key: fr.detect(fr.Threshold("x", ">", 0), table, key=key),
        ):
            with pytest.raises(sw.BadType, match="can not be grouped by"):
                call()
        engine.append({"ts": [1], "k": ["a"], "j": [1], "x": [1]})  # nothing is left of what was refused


# -- keys that are asked for ------------------------------------------------------------------------------------------

MOMENTS = (dt.datetime, dt.date)
NEAR = [
    1.9, 1.0, 3.0, 3.5, Decimal("1.1"), Decimal(3), 2**53 + 1, 2**64 - 1, -1, math.nan, -math.inf, Decimal("NaN"),
    dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, 13), dt.datetime(2020, 1, 1, tzinfo=dt.UTC), dt.date(2020, 1, 1),
    dt.time(1, 2, 3, 5), dt.time(1, 2, 3, tzinfo=dt.UTC), dt.timedelta(seconds=3, microseconds=1), b"a", "a", "a ",
    0.1, True, "1.25", np.float32(1.5), np.timedelta64(3, "s"), np.datetime64("2020-01-01"),
    np.datetime64("2020-01-01T00:00:00.000000001"),
]  # fmt: skip


def equal(asked: Any, key: Any) -> bool:
    """As SQL has it; what is of another sort than the key is no key."""
    if isinstance(asked, np.generic):
        asked = asked.item() if not isinstance(asked, np.datetime64) or asked == asked.astype("M8[us]") else None
    if isinstance(asked, bool) != isinstance(key, bool):
        return False
    if type(asked) is dt.datetime and type(key) is dt.date:
        return asked == dt.datetime.combine(key, dt.time())
    return bool(asked == key or (asked != asked and key != key))


def counting(key: pa.Array) -> sw.Engine:
    engine = sw.Engine(key="k")
    engine.register(sw.Query(sw.count(), sw.Rows(9), name="n"))
    engine.append(pa.table({"ts": range(len(key)), "k": key}))
    return engine


@pytest.mark.parametrize("kind", GROUPED, **ids)
def test_a_key_is_found_by_what_equals_it_and_by_nothing_else(kind: pa.DataType) -> None:
    keys = [in_units(kind, key) for key in GROUPED[kind]]
    engine = counting(column(kind, GROUPED[kind]))
    temporal = isinstance(keys[0], (*MOMENTS, dt.time, dt.timedelta))

    def of_their_own(asked: Any) -> bool:
        """Whole numbers count units of time; a time without the zone that keys have is refused."""
        moments = isinstance(asked, MOMENTS) and isinstance(keys[0], dt.datetime)
        return (temporal and type(asked) is int) or moments or isinstance(asked, np.datetime64)

    for asked in NEAR:
        if not of_their_own(asked):
            assert engine.lookup("n", key=asked) == sum(equal(asked, key) for key in keys), asked
    for other, values in GROUPED.items():
        given = [in_units(other, value) for value in values]
        if not of_their_own(given[0]):
            wanted = [sum(equal(asked, key) for key in keys) for asked in given]
            assert engine.features({"k": column(other, values)})["n"].to_pylist() == wanted, other


def test_what_is_cut_off_is_no_key() -> None:
    day, hour = dt.date(2024, 3, 1), 3600 * 10**9
    for key, asked, found in (
        (pa.array([1]), [1.9, 1.0, 2.5], [0, 1, 0]),
        (pa.array([day]), [dt.datetime(2024, 3, 1, 13), dt.datetime(2024, 3, 1)], [0, 1]),
        (pa.array([day], pa.date64()), np.array(["2024-03-01T13", "2024-03-01T00"], "M8[ns]"), [0, 1]),
        (pa.array([dt.time(1)], pa.time32("s")), [dt.time(1, 0, 0, 5), dt.time(1)], [0, 1]),
        (pa.array([dt.time(1)], pa.time64("us")), pa.array([hour + 5, hour], pa.time64("ns")), [0, 1]),
        (pa.array([2.0**53]), [2**53 + 1, 2**53], [0, 1]),
    ):
        assert counting(key).features({"k": asked})["n"].to_pylist() == found


def test_what_is_no_point_in_time_is_no_key_where_keys_are_times() -> None:
    for zone in (None, "UTC"):
        engine = counting(pa.array([5], pa.timestamp("s", zone)))
        for asked in ("a", "", 1.5, 2**64, True, dt.time(1), pd.NaT, b"a", [1]):
            assert engine.lookup("n", key=asked) == 0
        assert engine.features({"k": ["a", None]})["n"].to_pylist() == [0, 0]
        assert engine.lookup("n", key=5) == engine.features({"k": [5]})["n"][0].as_py() == 1


@pytest.mark.parametrize("by", ["k", ("k", "j")])
def test_whole_numbers_of_any_width_are_the_same_key(by: str | tuple[str, ...]) -> None:
    query, narrow, wide = sw.Query(sw.count(), sw.Rows(9), name="n"), [1, 2, -1], [1, 2**32 + 1, -1]
    for own, other in ((pa.int64(), pa.int8()), (pa.int8(), pa.int64()), (pa.uint32(), pa.int64())):
        table = pa.table({"ts": [1, 2, 3], "k": pa.array([1, 1, 7], own), "j": ["a"] * 3})
        asked = pa.table({"ts": [9] * 3, "k": pa.array(narrow if other == pa.int8() else wide, other), "j": ["a"] * 3})
        engine = sw.Engine(key=by)
        engine.register(query)
        engine.append(table)
        assert sw.evaluate(query, table, at=asked, key=by)["n"].to_pylist() == [2, 0, 0]
        assert engine.features(asked)["n"].to_pylist() == [2, 0, 0]


def test_a_tuple_of_one_value_is_the_key_of_one_column():
    engine = sw.Engine(key=["k"])
    engine.register(sw.Query(sw.count(), sw.Rows(5), "c"))
    engine.append({"ts": [1], "k": ["a"]})
    assert engine.lookup("c", key=("a",)) == engine.lookup("c", key=["a"]) == engine.lookup("c", key="a") == 1
    for key in (("a", "b"), ()):
        with pytest.raises(sw.BadQuery, match='is no value of one column, "k"'):
            engine.lookup("c", key=key)
