"""Sums and variances by prefixes: certain where they say so, and never certain of something else."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.stored import swept
from tests.kernels.harness import JIT

ORDINARY = st.floats(-1e6, 1e6) | st.sampled_from([0.1, 0.0, 1e-3])
HARD = ORDINARY | st.sampled_from([1e18, -1e18, 1e-18, 1e300, -1e300, 5e-324, math.inf, math.nan])
COLUMNS = st.lists(ORDINARY, max_size=30) | st.lists(HARD, max_size=30)


def windows(n: int) -> tuple[np.ndarray, np.ndarray]:
    """All of them, by their ends."""
    pairs = [(a, b) for b in range(n + 1) for a in range(b + 1)]
    return np.array([a for a, _ in pairs]), np.array([b for _, b in pairs])


def exact(values: np.ndarray) -> float:
    return float(sum(map(Fraction, values.tolist()), Fraction(0)))


@given(column=COLUMNS, base=st.integers(0, 3))
def test_sums_are_right_or_doubted(column: list[float], base: int) -> None:
    values = np.array([7.0] * base + column)
    pairs = np.empty((len(column) + 1, 2))
    lost, size = swept.accumulate(values[base:], pairs)
    sure = swept.certainty(values[base:], lost, size)
    lo, hi = (edge + base for edge in windows(len(column)))
    out = np.empty(lo.size)
    doubted = swept.subtract(pairs, base, sure, lo, hi, False, out)
    certain = np.abs(out) >= sure
    assert doubted == np.count_nonzero(~certain)
    for a, b, s in zip(lo[certain], hi[certain], out[certain], strict=True):
        assert abs(s - exact(values[a:b])) <= 1e-12 * np.abs(values[a:b]).sum()


@given(column=st.lists(st.integers(-(2**40), 2**40).map(lambda x: x * 0.25), max_size=30))
def test_multiples_of_a_grain_add_up_exactly_and_are_never_doubted(column: list[float]) -> None:
    values = np.array(column)
    pairs = np.empty((len(column) + 1, 2))
    sure = swept.certainty(values, *swept.accumulate(values, pairs))
    lo, hi = windows(len(column))
    out = np.empty(lo.size)
    assert sure == 0
    assert swept.subtract(pairs, 0, sure, lo, hi, False, out) == 0
    assert out.tolist() == [exact(values[a:b]) for a, b in zip(lo, hi, strict=True)]


def test_a_million_ordinary_doubles_lose_nothing() -> None:
    values = np.random.default_rng(1).normal(100, 10, 10**6 if JIT else 1000)
    lost, size = swept.accumulate(values, np.empty((values.size + 1, 2)))
    assert lost == 0
    assert swept.certainty(values, lost, size) == 0


def test_what_is_doubted_is_added_up_as_long_as_it_is_cheap() -> None:
    values = np.array([1e300, 1.0, 2.0, -2.0, 4.0])
    lo, hi = np.array([0, 1, 1, 1]), np.array([1, 2, 3, 4])
    out = np.zeros(4)
    assert swept.reconsider(values, 1e290, lo, hi, out)
    assert out.tolist() == [1e300, 1.0, 3.0, 1.0]
    assert not swept.reconsider(np.ones(50), np.inf, np.array([0]), np.array([50]), np.zeros(1))


def test_windows_in_step_are_those_one_by_one() -> None:
    values = np.random.default_rng(2).normal(size=50)
    pairs, one, other = np.empty((51, 2)), np.empty(20), np.empty(20)
    swept.accumulate(values, pairs)
    swept.subtract(pairs, 0, 0.0, np.arange(10, 30), np.arange(17, 37), False, one)
    swept.subtract_in_step(pairs[10:], pairs[17:], 0.0, other)
    assert one.tolist() == other.tolist()


@pytest.mark.parametrize("root", [False, True])
def test_variances_in_step_are_those_one_by_one(root: bool) -> None:
    values = np.random.default_rng(2).normal(size=1500)
    values[700:760] = 5.0  # constant: in doubt
    sums, one, other = np.empty((1501, 4)), np.empty(1400), np.empty(1400)
    changes = np.empty(1501, np.int32)
    error = swept.SURE * swept.accumulate_centred(values, 0.5, sums, changes)
    lo = np.arange(10, 1410)
    doubted = swept.variances(swept.CentredSums(values, 0, sums, changes, error), lo, lo + 7, 1, root, one)
    assert doubted == swept.variances_in_step(sums[10:], sums[17:], 7, error, 1, root, other) > 0
    assert np.array_equal(one, other, equal_nan=True)


@given(column=st.lists(HARD, max_size=25), ddof=st.integers(0, 2), root=st.booleans())
def test_variances_are_right_or_doubted(column: list[float], ddof: int, root: bool) -> None:
    values = np.array(column)
    sums, changes = np.empty((len(column) + 1, 4)), np.empty(len(column) + 1, np.int32)
    with np.errstate(all="ignore"):
        error = swept.SURE * swept.accumulate_centred(values, 0.5, sums, changes)
        lo, hi = windows(len(column))
        keep = hi - lo > ddof
        lo, hi = lo[keep], hi[keep]
        out = np.empty(lo.size)
        doubted = swept.variances(swept.CentredSums(values, 0, sums, changes, error), lo, hi, ddof, root, out)
    assert doubted == np.count_nonzero(np.isnan(out))
    for a, b, v in zip(lo, hi, out, strict=True):
        if not math.isnan(v):
            rows = [Fraction(x) for x in values[a:b].tolist()]
            mean = sum(rows, Fraction(0)) / len(rows)
            expected = float(sum((x - mean) ** 2 for x in rows) / (len(rows) - ddof))
            assert v == pytest.approx(math.sqrt(expected) if root else expected, rel=1e-8, abs=1e-300)


def test_short_windows_of_prices_that_wander_are_certain() -> None:
    values = 100 + np.cumsum(np.random.default_rng(4).normal(0, 0.01, 200_000 if JIT else 2000))
    sums, changes = np.empty((values.size + 1, 4)), np.empty(values.size + 1, np.int32)
    error = swept.SURE * swept.accumulate_centred(values, values.mean(), sums, changes)
    lo = np.arange(0, values.size - 60, 7)
    out = np.empty(lo.size)
    assert swept.variances(swept.CentredSums(values, 0, sums, changes, error), lo, lo + 60, 1, False, out) == 0
    rows = np.lib.stride_tricks.sliding_window_view(values, 60)[lo]
    assert out == pytest.approx(rows.var(axis=1, ddof=1), rel=1e-8)


def centred(values: np.ndarray, changes: np.ndarray) -> swept.CentredSums:
    """Rows whose running sums nobody looks at."""
    return swept.CentredSums(values, 0, np.zeros((values.size + 1, 4)), changes, 0.0)


def test_variances_in_doubt_come_from_their_rows() -> None:
    values = np.array([1e9, 1e9, 1e9, 1e9 + 1, math.inf, math.inf])
    changes = np.array([0, 0, 0, 0, 1, 2, 2], np.int32)
    lo, hi = np.array([0, 1, 2, 4]), np.array([3, 4, 4, 6])
    out = np.full(4, np.nan)
    assert swept.reconsider_variances(centred(values, changes), lo, hi, 1, False, out)
    assert out[:3] == pytest.approx([0, 1 / 3, 0.5])
    assert math.isnan(out[3])
    rough, changes, out = np.random.default_rng(3).normal(size=60), np.arange(61, dtype=np.int32), np.full(1, np.nan)
    one = np.array([0]), np.array([60])
    assert not swept.reconsider_variances(centred(rough, changes), *one, 1, False, out)


@given(column=st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20))
def test_integers_in_halves_know_whether_they_fit(column: list[int]) -> None:
    values = np.array(column, np.int64)
    halves = np.empty((len(column) + 1, 2), np.int64)
    swept.accumulate_halves(values, halves)
    lo, hi = windows(len(column))
    out, approximate = np.empty(lo.size, np.int64), np.empty(lo.size)
    beyond = swept.wide_differences(halves, 0, lo, hi, out, approximate)
    sums = [sum(column[a:b]) for a, b in zip(lo, hi, strict=True)]
    fit = [-(2**63) <= s < 2**63 for s in sums]
    assert beyond == (-1 if all(fit) else fit.index(False))
    assert [s for s, f in zip(sums, fit, strict=True) if f] == out[fit].tolist()
    assert approximate == pytest.approx(np.array(sums, np.float64), rel=1e-15)
