"""Whoever hands in NumPy arrays may fill them again: what has been taken is what they held then."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import frames as fr
import swag as sw
from swag.tables.columns import as_table

BATCHES = [(0, 5), (5, 6), (6, 40), (40, 64)]


def arrays(first: int, last: int) -> dict[str, np.ndarray]:
    n = np.arange(first, last)
    return {"ts": 10 * n, "k": n % 3, "x": (n * 37 % 11).astype(float), "t": (n * 7).astype("datetime64[us]")}


def scribbled(columns: dict[str, np.ndarray]) -> None:
    for values in columns.values():
        values[:] = values[::-1] + np.array(3).astype("timedelta64[us]" if values.dtype.kind == "M" else values.dtype)


@pytest.mark.parametrize("wrapped", [dict, pd.DataFrame])
@pytest.mark.parametrize("key", [None, "k"])
@pytest.mark.parametrize("lateness", [None, 25])
def test_an_engine_has_taken_what_arrays_held(wrapped: Any, key: str | None, lateness: int | None) -> None:
    answers = []
    for reuse in (False, True):
        engine = sw.Engine(key=key, lateness=lateness)
        asked = [sw.Query(of, sw.Range(150), str(of)) for of in (sw.sum("x"), sw.last("t"), sw.median("x"))]
        ticking = sw.Query(sw.sum("x"), sw.Range(70), "ticks", every=sw.Every(3))
        inner = sw.Query(sw.max("x"), sw.Rows(2), "chosen", source=sw.Events("x > 4"))
        engine.register([*asked, ticking, inner])
        said: list[Any] = []
        for first, last in BATCHES:
            columns = arrays(first, last)
            engine.append(wrapped(columns, copy=False) if wrapped is pd.DataFrame else columns)
            if reuse:
                scribbled(columns)
            said += [engine.lookup(query.label) for query in (*asked, inner)]
        engine.advance(5000)
        said += [engine.emitted("ticks"), engine.lookup("chosen")]
        answers.append(said)
    assert answers[0] == answers[1]


def test_detectors_and_fillers_have_taken_what_arrays_held() -> None:
    found = []
    for reuse in (False, True):
        detector, filler = fr.Detector(fr.Threshold("x", ">", 4), key="k"), fr.Filler(key="k")
        tables = []
        for first, last in BATCHES:
            columns = arrays(first, last)
            detector.push(columns)
            filler.push_events(columns)
            if reuse:
                scribbled(columns)
            tables.append(detector.punctuate(10 * (last - 3)))
            tables.append(filler.push_frames(tables[-1]))
        found.append([*tables, detector.finish()])
    assert found[0] == found[1]


def test_words_of_pandas_that_wait_are_copied() -> None:
    words = pd.DataFrame({"ts": [1, 2, 3, 4], "s": pd.Categorical(["a", "b", "a", "c"])})
    engine = sw.Engine(lateness=100)
    engine.register(sw.Query(sw.first("s"), sw.Rows(9), "q"))
    engine.append(words)
    words["s"].array[0] = "c"
    engine.advance(1000)
    assert engine.lookup("q") == "a"


def test_of_a_slice_only_its_own_rows_are_kept() -> None:
    ts, x = pa.array(np.arange(1_000_000)), pa.array(np.ones(1_000_000))
    engine = sw.Engine(lateness=10**9)
    engine.register(sw.Query(sw.sum("x"), sw.Range(10), "q"))
    before = pa.total_allocated_bytes()
    for k in range(0, 400, 10):
        engine.append({"ts": ts.slice(k, 10), "x": x.slice(k, 10)})
    assert engine.stats()["held"] == 400
    assert pa.total_allocated_bytes() - before < 2**20


def test_a_copy_holds_what_its_original_does() -> None:
    for array in (
        pa.array([1, None, 3, 4], pa.int32()), pa.array([True, None, False, True]), pa.array(["a", None, "b", "a"]),
        pa.array(["a", None, "b", "a"]).dictionary_encode(), pa.array([1.5, None, 2.5, 3.5], pa.float32()),
        pa.array([1, None, 3, 4], pa.timestamp("us", "UTC")), pa.nulls(4), pa.array([[1], None, [2], [3]]),
    ):  # fmt: skip
        for some in (array, array.slice(1), array.slice(1, 2), array.slice(4)):
            table = as_table({"x": some, "y": pa.chunked_array([some, some]).slice(0, len(some))}, keep=True)
            assert table["x"].to_pylist() == table["y"].to_pylist() == some.to_pylist()
            assert table["x"].type == some.type
