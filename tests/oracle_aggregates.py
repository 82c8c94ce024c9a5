"""What an aggregate answers over the events of a window, in plain and slow Python: SPEC section 3.

Sums are taken in exact fractions and rounded once, so a float answer here is the correctly rounded one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tests.oracle_arithmetic import (
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
from tests.oracle_further import FURTHER, TIMED, told_apart

Event = Mapping[Any, Any]


@dataclass(frozen=True)
class Agg:
    """One aggregate of section 3; `agg` writes it shorter."""

    kind: str
    columns: tuple[str, ...] = ()
    ddof: int = 1  # var, std, cov
    phi: float = 0.5  # quantile
    method: str = "floor"  # quantile
    # user: lower(combine(... combine(identity, lift(v1)) ..., lift(vn)))
    lift: Any = None
    combine: Any = None
    lower: Any = None
    identity: Any = None
    half_life: int = 1  # decayed_sum, decayed_mean, decayed_count
    n: int = 1  # first_n, last_n


def agg(kind: str, *columns: str, **params: Any) -> Agg:
    """agg("count"), agg("wmean", "price", "volume"), agg("quantile", "x", phi=0.9, method="linear")."""
    return Agg(kind, columns, **params)


def aggregate(agg: Agg, window: Iterable[Event]) -> Any:
    """Nulls are skipped; an empty window gives count 0, and null for all else (3). Where it matters when the window was
    asked for, it says so itself: window.now."""
    window = counted(agg, window) if agg.kind in TIMED else window
    rows = non_null(agg, window)
    if agg.kind in COUNTS:
        return COUNTS[agg.kind](rows)
    if agg.kind in TIMED:
        return TIMED[agg.kind](agg, window) if rows else None
    return AGGREGATES[agg.kind](agg, *zip(*rows, strict=True)) if rows else None


def counted(agg: Agg, window: Any) -> Any:
    """The same window without the events of which a column is null."""
    kept = type(window)([], window.now)
    kept.extend(e for e in window if not any(e[c] is None for c in agg.columns))
    return kept


def non_null(agg: Agg, window: Iterable[Event]) -> list[tuple[Any, ...]]:
    """The rows where all the aggregate's columns are non-null: all rows for count()."""
    rows = [tuple(e[c] for c in agg.columns) for e in window]
    return [row for row in rows if not any(v is None for v in row)]


def _sum(agg: Agg, xs: Values) -> int | float:
    """Integer sums are exact and fit int64; a float sum that does not fit float64 is infinite."""
    if not all(isinstance(x, int) for x in xs):
        return rounded(total(xs))
    if not -(2**63) <= sum(xs) < 2**63:
        raise OverflowError(f"the sum {sum(xs)} does not fit int64")
    return sum(xs)


def _mean(agg: Agg, xs: Values) -> float:
    """Sum / n, rounded once; infinite where the sum is."""
    s = total(xs)
    return rounded(s / len(xs)) if math.isfinite(rounded(s)) else rounded(s)


def _cov(agg: Agg, xs: Values, ys: Values) -> float | None:
    """Null where n - ddof <= 0; NaN where the window holds NaN or an infinity. var(x) = cov(x, x)."""
    if len(xs) <= agg.ddof:
        return None
    return rounded(co_moment(xs, ys) / (len(xs) - agg.ddof)) if finite(xs, ys) else math.nan


def _std(agg: Agg, xs: Values) -> float | None:
    """As var."""
    if len(xs) <= agg.ddof:
        return None
    return root(co_moment(xs, xs) / (len(xs) - agg.ddof)) if finite(xs) else math.nan


def _corr(agg: Agg, xs: Values, ys: Values) -> float:
    """Sxy / sqrt(Sxx Syy); NaN for a constant."""
    if not finite(xs, ys) or co_moment(xs, xs) * co_moment(ys, ys) == 0:
        return math.nan
    magnitude = root(co_moment(xs, ys) ** 2 / (co_moment(xs, xs) * co_moment(ys, ys)))
    return magnitude if co_moment(xs, ys) > 0 else -magnitude


def _wmean(agg: Agg, ps: Values, vs: Values) -> float:
    """Sum pv / sum v; NaN where sum v is 0."""
    return rounded(total(map(product, ps, vs)) / total(vs)) if total(vs) != 0 else math.nan


def _quantile(agg: Agg, xs: Values) -> Any:
    """Floor: the element at position max(1, floor(phi N)), counted from 1. A window with NaN gives NaN."""
    if any(map(is_nan, xs)):
        return math.nan
    if agg.method == "floor":
        return sorted(xs)[max(1, math.floor(agg.phi * len(xs))) - 1]
    a, b, t = neighbours(xs, agg.phi)
    return rounded(exact(a) if a == b else total([product(a, 1 - t), product(b, t)]))


def neighbours(xs: Values, phi: float) -> tuple[Any, Any, Fraction]:
    """NumPy's linear: at index phi (N-1) from 0, the elements either side and how far it is between them."""
    index = phi * (len(xs) - 1)
    return sorted(xs)[math.floor(index)], sorted(xs)[math.ceil(index)], Fraction(index) % 1


def _user(agg: Agg, xs: Values) -> Any:
    """A fold in order of position."""
    state = agg.identity
    for x in xs:
        state = agg.combine(state, agg.lift(x))
    return agg.lower(state)


COUNTS: dict[str, Callable[..., int]] = {
    "count": len,
    "count_if": lambda rows: sum(row[0] for row in rows),
    "count_distinct": lambda rows: len(set(map(told_apart, rows))),
    "approx_count_distinct": lambda rows: len(set(map(told_apart, rows))),  # where there are rows, they are counted
}
MEDIAN = Agg("quantile", phi=0.5, method="linear")
AGGREGATES: dict[str, Callable[..., Any]] = {
    "sum": _sum,
    "mean": _mean,
    "min": lambda agg, xs: math.nan if any(map(is_nan, xs)) else min(xs),
    "max": lambda agg, xs: math.nan if any(map(is_nan, xs)) else max(xs),
    "first": lambda agg, xs: xs[0],  # by position, among the non-null
    "last": lambda agg, xs: xs[-1],
    "var": lambda agg, xs: _cov(agg, xs, xs),
    "std": _std,
    "cov": _cov,
    "corr": _corr,
    "wmean": _wmean,
    "quantile": _quantile,
    "median": lambda agg, xs: _quantile(MEDIAN, xs),
    "user": _user,
    **FURTHER,
}
