"""What a spec compares, and what is said of a frame, is a column or SQL over columns: as of a column that holds it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import frames as fr
import swag as sw
from swag.tables.expressions.expression import compiled, values

TEXT = "COALESCE(x, 0) * y"
SPECS = [
    lambda name: fr.Threshold(name, ">", 1, min_rows=2, partition=True),
    lambda name: fr.Delta(name, 3),
    lambda name: fr.Boundary({name: 2}),
    lambda name: fr.Aggregate(sw.sum(name), ">=", 4),
    lambda name: fr.Aggregate(sw.median(name), "<", 2),
]


def detected(spec: Any, table: pa.Table, name: str, cut: int | None) -> list[dict[str, Any]]:
    """The frames, and what their events add up to; columns that are named by the spec's have one name."""
    if cut is None:
        found = fr.detect(spec, table, key="k")
    else:
        detector = fr.Detector(spec, key="k")
        detector.push(table.slice(0, cut))
        detector.push(table.slice(cut))
        found = detector.finish()
    said = fr.summarize(found, table, [sw.sum(name).alias("s"), sw.count(name).alias("n")], key="k")
    return [{key.replace(name, "z"): value for key, value in row.items()} for row in said.to_pylist()]


@pytest.mark.parametrize("make", SPECS)
@given(rows=st.lists(st.tuples(st.integers(0, 9), st.sampled_from("ab"), st.none() | st.integers(-3, 3),
                               st.integers(-3, 3)), max_size=20), cut=st.none() | st.integers(0, 20))  # fmt: skip
def test_frames_are_those_of_a_column_with_the_same_values(make: Any, rows: list[Any], cut: int | None) -> None:
    ts, k, x, y = zip(*rows, strict=True) if rows else ((), (), (), ())
    table = pa.table({"ts": pa.array(ts, pa.int64()), "k": pa.array(k, pa.string()), "x": pa.array(x, pa.int64()),
                      "y": pa.array(y, pa.int64())})  # fmt: skip
    table = table.append_column("z", values(compiled(TEXT), table, "it"))
    assert detected(make(TEXT), table, TEXT, cut) == detected(make("z"), table, "z", cut)


def test_a_statement_finds_frames_by_an_expression_and_says_one_of_each() -> None:
    text = "SELECT AVG(b * 8) AS bits, COUNT(*) AS n FROM t [FRAME WHERE drops / sent > 0.5 FOR 2 TUPLES]"
    events = {"ts": [1, 2, 3, 4], "drops": [1, 3, 4, 0], "sent": [4, 4, 4, 4], "b": [1, 2, 4, 8]}
    found = sw.evaluate(text, events).to_pylist()
    assert found == [{"frame_id": 0, "start": 2, "end": 3, "rows": 2, "bits": 24.0, "n": 2}]
    [query] = sw.sql(text)
    assert sw.sql(str(query)) == [query]


def test_frames_by_an_expression_know_their_own_events_again() -> None:
    events = {"ts": [1, 1, 2, 2], "x": [1, 5, 6, 0]}
    found = fr.detect(fr.Threshold("x * 2", ">", 4), events)
    assert fr.summarize(found, events, sw.sum("x"))["sum(x)"].to_pylist() == [11]
    assert fr.theory.final(fr.Threshold("x * 2", ">", 4), events) == [(1, 2)]


def test_what_a_spec_can_not_compute_is_said() -> None:
    with pytest.raises(sw.UnknownColumn, match='Threshold reads x \\* w, and with it "w"'):
        fr.detect(fr.Threshold("x * w", ">", 1), {"ts": [1], "x": [1]})
    with pytest.raises(sw.UnknownColumn, match=r"have: ts, x\. Hint"):  # x > 1, that is computed, is no column
        fr.detect(fr.Between("x > 1", "X < 2"), {"ts": [1], "x": [1]})
    with pytest.raises(sw.UnknownColumn, match=r"the events have: ts, x\.$"):
        sw.evaluate([sw.Query(sw.sum(text), sw.Rows(2)) for text in ("x * 2", "zz * 3")], {"ts": [1], "x": [1]})
    with pytest.raises(sw.BadEvents, match="row 1"):
        fr.detect(fr.Threshold("8 % x", ">", 1), {"ts": [1, 2], "x": [1, 0]})
