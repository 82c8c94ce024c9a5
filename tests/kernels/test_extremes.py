"""Tables of extremes against the fold of every window, in any order; and against a landmark that moves on."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import swag as sw
from kernels.stored import extremes
from swag.stored import aggregators

INTEGERS = st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 2)
FLOATS = st.floats() | st.sampled_from([math.nan, math.inf, -math.inf, 0.0, 1.0])


@st.composite
def rows_and_windows(draw: st.DrawFn) -> tuple[np.ndarray, int, np.ndarray, np.ndarray]:
    values = draw(
        st.lists(INTEGERS, min_size=1, max_size=40).map(np.int64)
        | st.lists(FLOATS, min_size=1, max_size=40).map(np.float64)
    )
    base = draw(st.integers(0, 5))
    edge = st.integers(base, base + values.size)
    windows = np.array(draw(st.lists(st.tuples(edge, edge).map(sorted), min_size=1, max_size=20)), np.int64)
    return values, base, np.ascontiguousarray(windows[:, 0]), np.ascontiguousarray(windows[:, 1])


@given(case=rows_and_windows(), largest=st.booleans())
def test_each_extreme_is_that_of_its_window(case: tuple[np.ndarray, int, np.ndarray, np.ndarray], largest: bool):
    values, base, lo, hi = case
    table, out = aggregators.ExtremeTable.of(values, base, largest), np.empty(lo.size, values.dtype)
    for level in range(1, table.levels.shape[0]):
        extremes.deepen(table.levels, level, largest)
    extremes.lookup(table.levels, base, largest, lo, hi, out)
    for a, b, found in zip(lo - base, hi - base, out, strict=True):
        if a < b:
            np.testing.assert_equal(found, (np.max if largest else np.min)(values[a:b]))


@pytest.mark.parametrize("kind", [sw.min, sw.max])
@pytest.mark.parametrize("kinds", [np.int64, np.float64])
def test_a_table_answers_as_a_sweep_does(kind, kinds, monkeypatch):
    rng = np.random.default_rng(5)
    events = {"ts": np.sort(rng.integers(0, 2_000, 3_000)), "k": rng.integers(0, 9, 3_000)}
    events["x"] = rng.integers(-50, 50, 3_000).astype(kinds)
    windows = [sw.Range(1), sw.Range(7, until=3), sw.Range(900), sw.Rows(1), sw.Rows(80, until=2), sw.Rows(10**6)]
    queries = [sw.Query(kind("x"), window, where=w) for window in windows for w in (None, "x > 40")]
    by_table = sw.evaluate(queries, events, key="k")
    monkeypatch.setattr(aggregators, "LARGEST_TABLE", 0)
    assert by_table.equals(sw.evaluate(queries, events, key="k"))
