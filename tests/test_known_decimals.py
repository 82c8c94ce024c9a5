"""Decimals of a stream are of the type that they came in first, however many digits those of a batch happen to have."""

from decimal import Decimal as D
from typing import Any

import hypothesis.strategies as st
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given

import frames as fr
import swag as sw

MONEY = [D("1.10"), D("12.50"), D("-1234567.89"), D("0.01"), D("100.00")]
FITS = pa.decimal128(18, 2)
BATCHES: dict[str, Any] = {
    "lists": lambda ts, m: {"ts": [ts], "m": [m]},
    "dicts": lambda ts, m: [{"ts": ts, "m": m}],
    "pandas": lambda ts, m: pd.DataFrame({"ts": [ts], "m": [m]}),
    "a series": lambda ts, m: {"ts": [ts], "m": pd.Series([m])},
    "Arrow": lambda ts, m: pa.table({"ts": [ts], "m": pa.array([m])}),  # whose digits are those of the value
}


def appended(engine: sw.Engine, batches: Any, *queries: sw.Query) -> sw.Engine:
    engine.register(queries)
    for batch in batches:
        engine.append(batch)
    return engine


@pytest.mark.parametrize("form", BATCHES)
@pytest.mark.parametrize("options", [{}, {"lateness": 3}, {"lateness": 3, "hold": False}], ids=str)
def test_money_is_taken_batch_by_batch(form: str, options: dict[str, Any]) -> None:
    first = {"ts": pa.array([0]), "m": pa.array([D("0.00")], FITS)}
    batches = [first, *(BATCHES[form](i + 1, m) for i, m in enumerate(MONEY))]
    queries = [sw.Query(sw.sum("m"), sw.Rows(9), "sum"), sw.Query(sw.min("m"), sw.Rows(9), "min"),
               sw.Query(sw.sum("m"), sw.Rows(9), "large", where="m > 5"),
               sw.Query(sw.sum("m"), sw.Rows(9), "ticks", every=sw.Every(1), where="m > 5"),
               sw.Query(sw.sum("m * 2"), sw.Rows(9), "twice")]  # fmt: skip
    engine = appended(sw.Engine(**options), batches if form == "Arrow" else batches[1:], *queries)
    engine.advance(20)
    assert engine.lookup("sum") == sum(MONEY) and engine.lookup("min") == min(MONEY)
    assert engine.lookup("large") == D("112.50") and engine.lookup("twice") == 2 * sum(MONEY)
    assert engine.emitted("ticks")["value"].to_pylist()[-1] == D("112.50")


def test_the_type_of_python_decimals_has_room_for_others() -> None:
    first = sw.Query(sw.last("m"), sw.Rows(1), "m")
    for value, kind in [
        ("1.10", FITS), ("0.01", FITS), ("7", pa.decimal128(18, 0)), ("1234567890123456789.5", pa.decimal128(38, 1)),
        ("0.0000000001", pa.decimal128(38, 10)), ("1" * 39 + ".5", pa.decimal256(76, 1)),
    ]:  # fmt: skip
        frame = pd.DataFrame({"ts": [1], "m": [D(value)]})
        for events in (
            {
                "ts": [1],
                "m": [
                    D(value),
                ],
            },
            frame,
        ):
            found = sw.evaluate(first, events)["m"]
            assert (found.type, found.to_pylist()) == (kind, [D(value)])
    own = pd.DataFrame({"ts": [1], "m": pd.array([D("1.1")], pd.ArrowDtype(pa.decimal128(5, 2)))})
    assert sw.evaluate(first, own)["m"].type == pa.decimal128(5, 2)


@given(st.lists(st.tuples(st.integers(-(10**6), 10**6), st.integers(0, 4)), min_size=1, max_size=6))
def test_what_fits_exactly_is_taken_and_nothing_else(values: list[tuple[int, int]]) -> None:
    known = pa.decimal128(6, 2)
    engine = appended(sw.Engine(), [pa.table({"ts": [0], "m": pa.array([D(0)], known)})],
                      sw.Query(sw.sum("m"), sw.Rows(99), "v"))  # fmt: skip
    total = D(0)
    for units, scale in values:
        value = D(units).scaleb(-scale)
        batch = pa.table({"ts": [1], "m": pa.array([value], pa.decimal128(9, scale))})
        if value == value.quantize(D("0.01")) and abs(value) < 10000:
            engine.append(batch)
            total += value
        else:
            with pytest.raises(sw.BadType, match="does not fit"):
                engine.append(batch)
    assert engine.lookup("v") == total


def test_what_does_not_fit_is_told_with_its_row_and_a_hint_that_works() -> None:
    query = sw.Query(sw.sum("m"), sw.Rows(5), "v")
    engine = appended(sw.Engine(), [{"ts": [1], "m": [D("1.10")]}], query)
    with pytest.raises(sw.BadType) as told:
        engine.append({"ts": [2, 3, 4], "m": [D("0.5000"), D("0.1234"), D("0.2345")]})
    assert str(told.value) == (
        'column "m" is decimal128(18, 4), but has been decimal128(18, 2) so far, which 0.1234 in row 1 does not fit. '
        "Hint: pa.array(values, pa.decimal128(38, 4)) from the first batch on"
    )
    assert engine.lookup("v") == D("1.10")
    batches = [pa.array(values, pa.decimal128(38, 4)) for values in ([D("1.10")], [D("0.1234")])]
    engine = appended(sw.Engine(), [{"ts": [i], "m": batch} for i, batch in enumerate(batches)], query)
    assert engine.lookup("v") == D("1.2234")


@pytest.mark.parametrize("key", ["m", ("m", "s")])
def test_keys_may_be_decimals_of_any_digits(key: Any) -> None:
    batches = [{"ts": [i], "m": [D(text)], "s": [i % 1]} for i, text in enumerate(["1.10", "12.50", "1.1", "12.500"])]
    query = sw.Query(sw.count(), sw.Rows(9), "n")
    engine = appended(sw.Engine(key=key), batches, query)
    one = D("1.1") if key == "m" else (D("1.1"), 0)
    assert engine.lookup("n", key=one) == 2
    with pytest.raises(sw.BadType, match=r'column "m" is decimal128\(18, 3\), .* which 1\.125 in row 0 does not fit'):
        engine.append({"ts": [9], "m": [D("1.125")], "s": [0]})
    detector = fr.Detector(fr.Session(9), key=key)
    for batch in batches:
        detector.push(batch)
    with pytest.raises(sw.BadType, match=r"which 1\.125 in row 0 does not fit"):
        detector.push({"ts": [9], "m": [D("1.125")], "s": [0]})
    assert detector.finish()["rows"].to_pylist() == [2, 2]
    at = {"ts": [9, 9, 9], "m": [D("1.100"), D("12.5"), D("1.125")], "s": [0, 0, 0]}
    assert sw.evaluate(query, batches[0], at=at, key=key)["n"].to_pylist() == [1, 0, 0]
    assert engine.features(at)["n"].to_pylist()[:2] == [2, 2]


def test_detectors_and_fillers_take_money_batch_by_batch() -> None:
    spec = fr.Threshold("m", ">", 1)
    batches = [{"ts": [i], "m": [m]} for i, m in enumerate(MONEY)]
    whole = fr.detect(spec, {"ts": range(len(MONEY)), "m": MONEY})
    detector, filler = fr.Detector(spec), fr.Filler()
    filler.push_frames(whole)
    found = []
    for batch in batches:
        detector.push(batch)
        found += filler.push_events(batch)["m"].to_pylist()
    assert detector.finish().to_pylist() == whole.to_pylist()
    assert found == [m for m in MONEY if m > 1]
    with pytest.raises(sw.BadType, match=r"which 1\.125 in row 0 does not fit"):
        detector = fr.Detector(spec)
        detector.push(batches[0])
        detector.push({"ts": [9], "m": [D("1.125")]})


def test_frames_in_an_engine_and_the_stream_they_are_filled_from_take_it_too(tmp_path: Any) -> None:
    engine = sw.Engine()
    engine.register(fr.FrameQuery(fr.Threshold("m", ">", 1), sw.sum("m"), name="own"))
    engine.register(fr.FrameQuery(fr.Threshold("m", ">", 1), sw.sum("x"), name="filled", fill_from="other"))
    for i, m in enumerate(MONEY):
        engine.append({"ts": [i], "m": [m]})
        engine.append({"ts": [i], "x": [m]}, stream="other")
        engine.save(tmp_path / "snapshot")
        engine = sw.Engine.load(tmp_path / "snapshot")
    engine.append({"ts": [9], "m": [D(0)]})
    engine.append({"ts": [9], "x": [D(0)]}, stream="other")
    engine.advance(20)
    assert engine.emitted("own").to_pylist()[0]["sum(m)"] == D("13.60")
    assert [row["sum(x)"] for row in engine.emitted("filled").to_pylist()] == [D("13.60"), D("100.00")]


def test_a_snapshot_knows_the_types_also_of_columns_that_are_only_compared(tmp_path: Any) -> None:
    query = sw.Query(sw.count(), sw.Rows(9), "v", where="m > 1", every=sw.Every(1))
    engine = appended(sw.Engine(), [pa.table({"ts": [1], "m": pa.array([D("1.10")])})], query)
    engine.save(tmp_path / "snapshot")
    again = sw.Engine.load(tmp_path / "snapshot")
    again.append({"ts": [2], "m": [D("1.20")]})
    assert again.emitted("v")["value"].to_pylist() == [1, 2]
