"""Skewness by prefixes: certain where it says so, and never certain of something else."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.stored import cubed
from tests.kernels.harness import JIT
from tests.kernels.test_swept import HARD, windows


def running(values: np.ndarray, centre: float) -> cubed.CubedSums:
    """The sums that windows are differences of, in one piece around any centre."""
    found = in_pieces(values, 62, values.size)
    with np.errstate(all="ignore"):
        largest, lost = cubed.accumulate_cubed(values, centre, found.sums)
        found.per_square[0], found.error[0] = cubed.ROUNDED_CUBES * largest, cubed.SURE_OF_CUBES * lost
    return found


def in_pieces(values: np.ndarray, shift: int, length: int) -> cubed.CubedSums:
    count = (values.size >> shift) + 1
    sums, bounds, changes = (
        np.empty((count * (length + 1), 6)),
        np.empty((2, count)),
        np.empty(values.size + 1, np.int32),
    )
    found = cubed.CubedSums(values, 0, shift, length, sums, changes, *bounds)
    with np.errstate(all="ignore"):
        cubed.count_changes(values, changes)
        cubed.accumulate_pieces(found)
    return found


def exact(values: list[float]) -> float | None:
    """Of a sample; None of fewer than 3 rows and of a constant."""
    rows, n = [Fraction(x) for x in values], len(values)
    if n < 3 or len(set(rows)) == 1:
        return None
    mean = sum(rows, Fraction(0)) / n
    m2, m3 = (sum((x - mean) ** power for x in rows) for power in (2, 3))
    size = math.sqrt(m3**2 / m2**3 * n * n * (n - 1) / Fraction(n - 2) ** 2)
    return math.copysign(size, m3)


@given(
    column=st.lists(HARD | st.sampled_from([1e-106, 3e-106, -2e-106]), max_size=20),
    centre=st.sampled_from([0.0, 0.5, 1e3]),
)
def test_skews_are_right_or_doubted(column: list[float], centre: float) -> None:
    values = np.array(column)
    lo, hi = windows(values.size)
    out = np.empty(lo.size)
    with np.errstate(all="ignore"):
        doubted = cubed.skews(running(values, centre), lo, hi, out)
    assert doubted == np.count_nonzero(np.isnan(out))
    for a, b, value in zip(lo, hi, out, strict=True):
        if not math.isnan(value):
            assert value == pytest.approx(exact(column[a:b]), rel=1e-6, abs=1e-7)


@given(column=st.lists(HARD, max_size=20), shift=st.integers(0, 3), narrow=st.integers(0, 6))
def test_skews_in_pieces_are_right_or_doubted(column: list[float], shift: int, narrow: int) -> None:
    values = np.array(column)
    lo, hi = windows(values.size)
    lo, hi = lo[hi - lo <= narrow], hi[hi - lo <= narrow]
    out = np.empty(lo.size)
    with np.errstate(all="ignore"):
        doubted = cubed.skews(in_pieces(values, shift, (1 << shift) + narrow), lo, hi, out)
    assert doubted == np.count_nonzero(np.isnan(out))
    for a, b, value in zip(lo, hi, out, strict=True):
        if not math.isnan(value):
            assert value == pytest.approx(exact(column[a:b]), rel=1e-6, abs=1e-7)


def test_values_that_wander_are_certain_in_pieces_alone() -> None:
    values = np.cumsum(np.random.default_rng(5).normal(size=20_000 if JIT else 2000))
    lo = np.arange(0, values.size - 40, 3)
    out = np.empty(lo.size)
    of_all = cubed.skews(running(values, values.mean()), lo, lo + 40, out)
    assert cubed.skews(in_pieces(values, 8, 512), lo, lo + 40, out) == 0 <= of_all
    for i in range(0, lo.size, lo.size // 9):
        assert out[i] == pytest.approx(exact(values[lo[i] : lo[i] + 40].tolist()), abs=1e-7)


def test_skews_of_large_values_are_certain_and_right() -> None:
    noise = np.random.default_rng(4).exponential(size=200_000 if JIT else 2000)
    values = 1e6 + noise
    lo = np.arange(0, values.size - 60, 7)
    out = np.empty(lo.size)
    assert cubed.skews(running(values, values.mean()), lo, lo + 60, out) == 0
    for i in range(0, lo.size, lo.size // 9):
        assert out[i] == pytest.approx(exact(values[lo[i] : lo[i] + 60].tolist()), abs=1e-8)


def test_windows_of_one_row_have_no_skew() -> None:
    values = np.array([1.0, 1.0, 1.0, -2.0, 0.0])
    lo, out = np.arange(5), np.empty(5)
    assert cubed.skews(in_pieces(values, 62, 5), lo, lo + 1, out) == 5


def test_skews_in_doubt_come_from_their_rows() -> None:
    values = np.array([1e9, 1e9, 1e9, 1e9 + 1, 1e9 + 5, math.inf, math.inf])
    lo, hi = np.array([0, 1, 0, 3, 4, 2]), np.array([3, 5, 2, 7, 4, 5])
    out, valid = np.full(lo.size, np.nan), np.ones(lo.size, np.bool_)
    assert cubed.reconsider_skews(running(values, 0.0), lo, hi, out, valid)
    assert valid.tolist() == [False, True, False, True, False, True]
    assert out[[1, 5]] == pytest.approx([exact([0.0, 0.0, 1.0, 5.0]), exact([0.0, 1.0, 5.0])])
    assert math.isnan(out[3])
    rough, out, valid = np.random.default_rng(3).normal(size=60), np.full(1, np.nan), np.ones(1, np.bool_)
    assert not cubed.reconsider_skews(running(rough, 0.0), np.array([0]), np.array([60]), out, valid)
