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
    counted,
    neighbours,
    non_null,
)
from tests.oracle_arithmetic import (
    Number,
    Values,
    co_moment,
    exact,
    finite,
    is_nan,
    product,
    root,
    rounded,
    total,
)
from tests.oracle_further import decayed, floats, values_of


def same(expected: Any, actual: Any, allowed: float = 0.0) -> bool:
    """Null only equals null, NaN NaN; integers, infinities and text exactly; floats within `allowed`."""
    if isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all(map(same, expected, actual))
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
    window = list(window) if not hasattr(window, "now") else window
    if agg.kind.startswith("decayed"):
        return _decayed_tolerance(agg, counted(agg, window))
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


def _varied(xs: Values) -> bool:
    """By 1e-10 of their size, and with fourth powers that floats hold."""
    s = co_moment(xs, xs)
    return s * 10**20 >= size(map(product, xs, xs)) and all(in_float64(exact(x) ** 4) for x in xs) and in_float64(s**2)


def _shape_tolerance(agg: Agg, xs: Values) -> Number:
    """1e-6, and 1e-6 of the answer, where the column varies; else nothing is promised."""
    value = AGGREGATES[agg.kind](agg, xs)
    return 0.0 if value is None else 1e-6 * (1 + abs(value)) if _varied(floats(xs)) else math.inf


def _line_tolerance(agg: Agg, ys: Values, xs: Values) -> Number:
    """1e-6 of what both columns vary by, and 1e-12 of their size, where x varies; else nothing is promised."""
    ys, xs = floats(ys), floats(xs)
    value = AGGREGATES[agg.kind](agg, ys, xs)
    if value is None or is_nan(value):
        return 0.0
    if not _varied(xs) or not in_float64(size(map(product, ys, ys))) or not math.isfinite(value):
        return math.inf
    xx, yy = co_moment(xs, xs), co_moment(ys, ys)
    if agg.kind == "r2":
        return 1e-6 if yy == 0 or _varied(ys) else math.inf
    of_slope = Fraction(1, 10**6) * Fraction(root(yy / xx)) + E12 * size(ys) / Fraction(root(xx))
    if agg.kind == "slope":
        return of_slope
    return of_slope * size(xs) + E12 * (size(ys) + abs(exact(value)) + size(xs) * abs(co_moment(xs, ys) / xx))


def _decayed_tolerance(agg: Agg, window: Any) -> float:
    """1e-12 of the weighted absolute values."""
    values = values_of(agg, window)
    if not window or not finite(values):
        return 0.0
    now = window[-1]["ts"] if agg.kind == "decayed_mean" else window.now
    sizes = E12 * decayed(agg, window, now, [abs(exact(x)) for x in values])
    if agg.kind == "decayed_mean":
        sizes /= decayed(agg, window, now, [1] * len(values))
    return rounded(sizes + TINY)


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
    "skew": _shape_tolerance,
    "kurtosis": _shape_tolerance,
    "slope": _line_tolerance,
    "intercept": _line_tolerance,
    "r2": _line_tolerance,
    "product": lambda agg, xs: E12 * abs(exact(AGGREGATES["product"](agg, xs))) + TINY,
    "user": lambda agg, xs: 1e-9 * abs(AGGREGATES["user"](agg, xs)) + float(TINY),
}
