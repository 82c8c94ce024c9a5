"""How far from the exact answer a float may be: SPEC section 3."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from fractions import Fraction
from numbers import Integral
from typing import Any

from tests.oracle_aggregates import (
    AGGREGATES,
    MEDIAN,
    Agg,
    Event,
    Number,
    Values,
    co_moment,
    exact,
    finite,
    is_nan,
    neighbours,
    non_null,
    product,
    root,
    rounded,
    total,
)


def same(expected: Any, actual: Any, allowed: float = 0.0) -> bool:
    """Null only equals null, NaN NaN; integers, infinities and text exactly; floats within `allowed`."""
    if expected is None or actual is None or not isinstance(expected, (int, float)):
        return expected is actual or (expected is not None and expected == actual)
    if isinstance(expected, int) and allowed == 0:
        return isinstance(actual, Integral) and expected == actual  # an integer stays one
    if expected == actual or allowed == math.inf:
        return True
    if not finite([expected, float(actual)]):
        return math.isnan(expected) and math.isnan(actual)
    return abs(exact(expected) - exact(float(actual))) <= allowed


def tolerance(agg: Agg, window: Iterable[Event]) -> float:
    """The absolute error allowed over a window: 0 is exact, inf where float64 can be held to nothing."""
    columns = list(zip(*non_null(agg, window), strict=True))
    if not columns or agg.kind not in TOLERANCES:
        return 0.0
    return rounded(TOLERANCES[agg.kind](agg, *columns)) if agg.kind in ANY_VALUE or finite(*columns) else 0.0


E12, TINY = Fraction(1, 10**12), Fraction(sys.float_info.min)  # TINY: what underflow may cost


def size(xs: Iterable[Any]) -> Fraction:
    """The sum of absolute values."""
    return total(abs(exact(x)) for x in xs)


def in_float64(x: Fraction) -> bool:
    """Neither overflows nor underflows, with room to spare."""
    return x == 0 or Fraction(1, 10**290) < abs(x) < 10**290


def _wmean_tolerance(agg: Agg, ps: Values, vs: Values) -> Number:
    """1e-12 of the absolute values in both sums; nothing is promised where float weights cancel."""
    if not finite(vs):
        return 0.0
    pv, v = [x for x in map(product, ps, vs) if isinstance(x, Fraction)], abs(total(vs))
    small_integers = size(vs) < 2**53 and all(x == int(x) for x in vs)
    above, below = E12 * size(pv) + len(pv) * TINY, 0 if small_integers else E12 * size(vs)
    if v <= below or not in_float64(size(pv)) or not in_float64(size(vs)):
        return math.inf if v or below else 0.0
    return (above + abs(total(pv) / total(vs)) * below) / (v - below) + TINY


def _cov_tolerance(agg: Agg, xs: Values, ys: Values) -> Number:
    """1e-6 of both standard deviations, 1e-12 of both largest deviations, and the values' own last digits."""
    freedom = len(xs) - agg.ddof
    if freedom <= 0 or not all(size(map(product, c, c)) < 10**290 for c in (xs, ys)):
        return math.inf if freedom > 0 else 0.0
    spread = Fraction(root(co_moment(xs, xs) * co_moment(ys, ys))) / freedom
    deviations = math.prod(max(abs(exact(x) - total(c) / len(c)) for x in c) for c in (xs, ys))
    digits = math.prod(4 * Fraction(math.ulp(max(map(abs, c)))) for c in (xs, ys))
    return spread / 10**6 + E12 * deviations + digits + TINY


def _std_tolerance(agg: Agg, xs: Values) -> Number:
    """That of the variance, through |√a - √b| <= min(√|a - b|, |a - b| / √a)."""
    allowed, std = rounded(_cov_tolerance(agg, xs, xs)), AGGREGATES["std"](agg, xs)
    return min(math.sqrt(allowed), allowed / std) if std else math.sqrt(allowed)


def _corr_tolerance(agg: Agg, xs: Values, ys: Values) -> Number:
    """1e-6 where both columns vary by 1e-10 of their size, or one is constant; else nothing is promised."""
    sxx, syy = co_moment(xs, xs), co_moment(ys, ys)
    varied = all(s * 10**20 >= size(map(product, c, c)) for s, c in ((sxx, xs), (syy, ys)))
    return 1e-6 if sxx * syy == 0 or (varied and all(map(in_float64, (sxx, syy, sxx * syy)))) else math.inf


def _quantile_tolerance(agg: Agg, xs: Values) -> Number:
    """Floor picks an element; linear rounds a few times."""
    if agg.method == "floor" or any(map(is_nan, xs)):
        return 0.0
    a, b, _ = neighbours(xs, agg.phi)
    return 8 * math.ulp(max(abs(a), abs(b))) if finite([a, b]) else 0.0


ANY_VALUE = ("wmean", "quantile", "median", "user")  # these may need room also where there is an infinity
TOLERANCES: dict[str, Callable[..., Number]] = {
    "sum": lambda agg, xs: 0.0 if all(isinstance(x, int) for x in xs) else E12 * size(xs),
    "mean": lambda agg, xs: E12 * size(xs) / len(xs) + TINY,
    "var": lambda agg, xs: _cov_tolerance(agg, xs, xs),
    "std": _std_tolerance,
    "cov": _cov_tolerance,
    "corr": _corr_tolerance,
    "wmean": _wmean_tolerance,
    "quantile": _quantile_tolerance,
    "median": lambda agg, xs: _quantile_tolerance(MEDIAN, xs),
    "user": lambda agg, xs: 1e-9 * abs(AGGREGATES["user"](agg, xs)) + float(TINY),
}
