"""R-INT over floats: what has passed leaves no trace, what is certain is certified, and what is not is counted."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.operators.numbers import two_sum
from kernels.windows import running
from swag.live.structures.baselines import MaterializeAll, MaterializeNone, PSoup
from swag.live.structures.intervals import Dyadic, Landmark, Running, RunningFloats, Structure
from swag.query.kind import Part
from tests.kernels.harness import JIT, filled

SUM = Part("sum", ("x",))
MANY = 10**7 if JIT else 15_000
NUMBERS = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300)


def of(values: np.ndarray, kind: type[Structure] = RunningFloats, part: Part = SUM) -> Structure:
    """A structure over one stream of these values, all kept, appended at once."""
    space = filled(values)
    structure = kind(space, part)
    structure.rebuild()
    return structure


def sums(structure: Structure, windows: list[tuple[int, int]]) -> list[float]:
    lo, hi = (np.array([edge]) for edge in zip(*windows, strict=True))
    state = structure.lookup(np.zeros(1, np.int64), lo, hi)
    return (state[1] if isinstance(state, tuple) else state).tolist()


def is_right(values: np.ndarray, windows: list[tuple[int, int]], answers: list[float]) -> bool:
    """Within 1e-12 of the sum of absolute values in the window."""
    return all(
        abs(answer - math.fsum(values[a:b])) <= 1e-12 * math.fsum(np.abs(values[a:b])) + 1e-307
        for (a, b), answer in zip(windows, answers, strict=True)
    )


@given(a=NUMBERS, b=NUMBERS)
def test_two_sum_is_exact(a: float, b: float) -> None:
    s, e = two_sum(a, b)
    assert s == a + b
    assert Fraction(s) + Fraction(e) == Fraction(a) + Fraction(b)


@given(start=NUMBERS, steps=st.lists(NUMBERS, max_size=50))
def test_a_double_double_loses_no_more_than_its_106_bits(start: float, steps: list[float]) -> None:
    hi, lo, exact, largest = start, 0.0, Fraction(start), abs(start)
    for x in steps:
        hi, lo = running.plus(hi, lo, x)
        exact += Fraction(x)
        largest = max(largest, abs(hi))
        assert abs(lo) <= math.ulp(hi)
        assert abs(Fraction(hi) + Fraction(lo) - exact) <= Fraction(largest) * (len(steps) + 1) / 2**102


@pytest.mark.parametrize("passed", [1e18, -1e18, 1e25])
def test_something_huge_that_has_passed_costs_no_digit_and_no_time(passed: float) -> None:
    """2^-103 of it is less than 1e-12 of any answer: certified, by two running sums."""
    values = 100 + np.random.default_rng(1).normal(size=20_000)
    values[17] = passed
    structure = of(values)
    windows = [(18, 20_000), (18, 60), (400, 500), (19_000, 20_000), (123, 124), (0, 20_000), (17, 30), (999, 19_999)]
    assert is_right(values, windows, sums(structure, windows))
    assert isinstance(structure, RunningFloats)
    assert structure.uncertain == 0 or passed == 1e25


@pytest.mark.parametrize("passed", [1e300, math.nan, math.inf, -math.inf])
def test_what_no_running_sum_survives_is_added_up_row_by_row_and_counted(passed: float) -> None:
    values = np.random.default_rng(2).normal(size=2000)
    values[40] = passed
    structure = of(values)
    clean = [(41, 2000), (500, 600), (1990, 2000), (48, 60)]
    assert is_right(values, clean, sums(structure, clean))
    assert isinstance(structure, RunningFloats)
    assert structure.uncertain == len(clean)
    before = [(0, 36), (3, 34)]
    assert is_right(values, before, sums(structure, before))
    assert structure.uncertain == len(clean), "windows before it are certain"
    assert sums(structure, [(39, 50)])[0] == pytest.approx(passed, nan_ok=True)
    assert structure.lookups == len(clean) + len(before) + 1


def test_a_window_that_cancels_is_not_certain_and_still_exact() -> None:
    values = np.tile([1e16, 1.0, -1e16, -1.0], 100)
    structure = of(values)
    assert sums(structure, [(0, 400), (4, 8), (100, 300)]) == [0.0, 0.0, 0.0]
    assert sums(structure, [(1, 4), (1, 401 - 1)]) == [-1e16, -1e16]


def test_zeros_are_certain() -> None:
    structure = of(np.zeros(100))
    assert sums(structure, [(0, 100), (3, 97)]) == [0.0, 0.0]
    assert isinstance(structure, RunningFloats) and structure.uncertain == 0


@pytest.mark.parametrize("kind", [RunningFloats, Dyadic, Landmark, PSoup, MaterializeNone, MaterializeAll])
def test_ten_million_values_after_1e18_are_as_good_as_ten(kind: type[Structure]) -> None:
    """0.1 is rounded the same way every time, so errors add up where they can."""
    size = MANY if kind is RunningFloats else MANY // 10
    values = np.full(size, 0.1)
    values[0], values[5] = 1e18, -3e17
    windows = [(6, size), (size - 1000, size), (size // 2, size - 1), (size - 7, size), (7, size // 2)]
    structure = of(values, kind)
    if isinstance(structure, MaterializeAll):
        structure.set_windows([])
    answers = sums(structure, windows)
    for (a, b), answer in zip(windows, answers, strict=True):
        assert abs(Fraction(answer) - Fraction(0.1) * (b - a)) <= Fraction(0.1) * (b - a) / 10**12


@pytest.mark.parametrize("kind", [Dyadic, Landmark, PSoup, MaterializeNone])
def test_the_sum_that_moments_keep_is_as_good(kind: type[Structure]) -> None:
    values = np.full(MANY // 10, 0.1)
    windows = [(0, values.size), (3, values.size - 1), (values.size // 3, values.size)]
    answers = sums(of(values, kind, Part("moments", ("x",))), windows)
    for (a, b), answer in zip(windows, answers, strict=True):
        assert abs(Fraction(answer) - Fraction(0.1) * (b - a)) <= Fraction(0.1) * (b - a) / 10**12


@pytest.mark.parametrize("kind", [Dyadic, Landmark, PSoup, MaterializeNone])
def test_the_variance_of_small_noise_on_a_large_value(kind: type[Structure]) -> None:
    values = 1e9 + np.random.default_rng(4).normal(size=MANY // 20)
    structure = of(values, kind, Part("moments", ("x",)))
    lo, hi = np.array([[0, 50, values.size // 2]]), np.array([[values.size, 90, values.size]])
    n, _, _, m2 = structure.lookup(np.zeros(1, np.int64), lo, hi)
    expected = [values[a:b].var() for a, b in zip(lo[0], hi[0], strict=True)]
    assert (m2 / n).tolist() == pytest.approx(expected, rel=1e-6)


def test_integers_wrap_and_come_back() -> None:
    values = np.full(1000, 2**62)
    values[500:] = 3
    structure = of(values, Running)
    assert sums(structure, [(500, 1000), (499, 500), (498, 500)]) == [1500, 2**62, -(2**63)]
