"""Whole numbers that meet floats: breaks of any number cut them where they are, and so does a delta beside a float."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import frames as fr
import swag as sw

WHOLE = st.sampled_from([0, 1, 2, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), None])
BREAKS = st.sampled_from([-np.inf, -1e300, -(2**53) - 1, 0.5, 1, 1.5, 2**53, 2**53 + 0.0, 2**53 + 1, 2**63, np.inf])


@given(values=st.lists(WHOLE, min_size=1, max_size=6), breaks=st.sets(BREAKS, min_size=1))
@example(values=[2**53, 2**53 + 1], breaks={1.5, 2**53})
@example(values=[2**53], breaks={2**53 + 3})
def test_breaks_cut_whole_numbers_and_floats_where_they_are(values, breaks):
    cuts = sorted(breaks)
    if cuts[0] < -(2**63):
        values = [value if value is None or abs(value) <= 2**53 else 0 for value in values]
    for kind in (pa.int64(), pa.float64()):
        column = (
            pa.array(values, kind)
            if kind == pa.int64()
            else pa.array([None if v is None else float(v) for v in values])
        )
        table = pa.table({"ts": np.arange(len(values)), "own": np.arange(len(values)), "x": column})
        found = fr.detect(fr.Boundary("x", breaks=cuts, max_rows=1), table)
        wanted = [None if v is None else sum(b < v for b in cuts) for v in column.to_pylist()]
        assert found["cell_x"].to_pylist() == wanted


NUMBERS = st.sampled_from([0, 1, 2, 5, None])


@given(
    rows=st.lists(st.tuples(st.sampled_from([0.0, 1.0, 2.0, None]), NUMBERS), min_size=1, max_size=7),
    cuts=st.lists(st.integers(1, 3), max_size=7),
    measure=st.sampled_from(["first", "range"]),
)
@example(
    rows=[(None, None), (2.0, 0), (None, 2), (0.0, 2)], cuts=[1, 1, 1], measure="first"
)  # no whole number at first
def test_a_delta_of_floats_and_whole_numbers_is_that_of_all_events_however_they_come(rows, cuts, measure):
    x, i = pa.array([x for x, _ in rows], pa.float64()), pa.array([i for _, i in rows], pa.int64())
    table = pa.table({"ts": np.arange(len(rows)), "x": x, "i": i})
    query = fr.FrameQuery(fr.Delta({"x": 1.5, "i": 2}, measure=measure), sw.count(), name="q")
    engine, at = sw.Engine(), 0
    engine.register(query)
    for size in [*cuts, len(rows)]:
        engine.append(table.slice(at, size))
        at += size
    found = engine.emitted("q")
    assert found.to_pylist() == sw.evaluate(query, table).to_pylist()[: found.num_rows]


@pytest.mark.parametrize("text", ["[FRAME GRID i (0.5, 9007199254740992)]", "[FRAME GRID i (0, 9007199254740992)]"])
def test_breaks_of_a_statement_do_so_too(text):
    events = pa.table({"ts": [1, 2, 3], "i": pa.array([2, 2**53, 2**53 + 1], pa.int64())})
    assert sw.evaluate(f"SELECT COUNT(*) AS n FROM s {text}", events)["n"].to_pylist() == [2, 1]
