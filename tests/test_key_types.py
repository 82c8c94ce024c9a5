"""Keys of every type, alone and beside others, go through every way to ask: they are told apart, or refused."""

import math
from pathlib import Path
from typing import Any

import numpy as np
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
