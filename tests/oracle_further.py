"""Further aggregates of SPEC section 3, in plain Python: shapes, lines, products, rows of extremes, lists, decay."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

from tests.oracle_arithmetic import Values, co_moment, exact, finite, is_nan, product, root, rounded, total

DIGITS = Context(prec=50)


# --- Moments (as DuckDB has them) --------------------------------------------------------------------------


def floats(xs: Values) -> list[float]:
    return [float(x) for x in xs]


def moment(xs: Values, power: int) -> Fraction:
    """Sum (x - mean x)^power, of finite values."""
    mean = total(xs) / len(xs)
    return sum(((exact(x) - mean) ** power for x in xs), Fraction(0))


def vanishes(x: Fraction) -> bool:
    """As a float it is 0: of a constant, or of values whose squares are too small."""
    return rounded(x) == 0


def _skew(agg: Any, xs: Values) -> float | None:
    """Null of fewer than 3, and of a constant."""
    xs, n = floats(xs), len(xs)
    if n < 3 or not finite(xs):
        return None if n < 3 else math.nan
    m2, m3 = moment(xs, 2), moment(xs, 3)
    if vanishes(m2):
        return None
    size = root(m3**2 / m2**3 * n * n * (n - 1) / Fraction(n - 2) ** 2)
    return size if m3 > 0 else -size


def _kurtosis(agg: Any, xs: Values) -> float | None:
    """Null of fewer than 4, and of a constant."""
    xs, n = floats(xs), len(xs)
    if n < 4 or not finite(xs):
        return None if n < 4 else math.nan
    m2, m4 = moment(xs, 2), moment(xs, 4)
    if vanishes(m2):
        return None
    return rounded((n - 1) * ((n + 1) * n * m4 / m2**2 - 3 * (n - 1)) / Fraction((n - 2) * (n - 3)))


def _line(agg: Any, ys: Values, xs: Values) -> float | None:
    """slope, intercept, r2; of a constant x: NaN, null, null. Of a constant y r2 is 1."""
    xs, ys = floats(xs), floats(ys)
    if not finite(xs, ys):
        return math.nan
    xx, yy, xy = co_moment(xs, xs), co_moment(ys, ys), co_moment(xs, ys)
    if vanishes(xx):
        return math.nan if agg.kind == "slope" else None
    if agg.kind == "r2":
        return 1.0 if vanishes(yy) else rounded(xy * xy / (xx * yy))
    return rounded(xy / xx if agg.kind == "slope" else (total(ys) - xy / xx * total(xs)) / len(xs))


# --- Others -------------------------------------------------------------------------------------------------


def _product(agg: Any, xs: Values) -> float:
    """In IEEE where there is NaN or an infinity; else exact, rounded once."""
    if finite(xs):
        return rounded(math.prod(map(exact, xs), start=Fraction(1)))
    return math.prod(math.copysign(min(abs(x), 2.0), x) if math.isfinite(x) else x for x in floats(xs))


def _extreme_row(better: Callable[[Any, Any], bool]) -> Callable[..., Any]:
    """The first row that none is better than; NaN is better than all else."""

    def found(agg: Any, xs: Values, by: Values) -> Any:
        best = 0
        for i in range(1, len(by)):
            if not is_nan(by[best]) and (is_nan(by[i]) or better(by[i], by[best])):
                best = i
        return xs[best]

    return found


def told_apart(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Equal for equal values: NaN is one, -0.0 is 0.0."""
    return tuple("NaN" if is_nan(x) else (type(x), x) for x in row)


def _mode(agg: Any, xs: Values) -> Any:
    """The most frequent value; of several, the one whose first occurrence is first."""
    values = [told_apart((x,)) for x in xs]
    return xs[max(range(len(xs)), key=lambda i: (values.count(values[i]), -i))]


FURTHER: dict[str, Callable[..., Any]] = {
    "mode": _mode,
    "skew": _skew,
    "kurtosis": _kurtosis,
    "slope": _line,
    "intercept": _line,
    "r2": _line,
    "product": _product,
    "any": lambda agg, bs: any(bs),
    "all": lambda agg, bs: all(bs),
    "arg_max": _extreme_row(lambda a, b: a > b),
    "arg_min": _extreme_row(lambda a, b: a < b),
    "first_n": lambda agg, xs: list(xs[: agg.n]),
    "last_n": lambda agg, xs: list(xs[-agg.n :]),
}


# --- Of time ------------------------------------------------------------------------------------------------


def weight(ago: Any, half_life: int) -> Fraction:
    """2^(-ago / half_life), to 50 digits; 0 where no float is as small."""
    halves = Fraction(ago) / half_life
    if abs(halves) > 5000:
        return Fraction(0)
    return Fraction(DIGITS.power(2, -DIGITS.divide(Decimal(halves.numerator), Decimal(halves.denominator))))


def decayed(agg: Any, window: Any, now: Any, values: list[Any]) -> Any:
    """The sum of weighted values; an infinite one is so however long ago."""
    if not finite(values):
        return total(values)
    return total(product(x, weight(now - e["ts"], agg.half_life)) for x, e in zip(values, window, strict=True))


def values_of(agg: Any, window: Any) -> list[Any]:
    return [e[agg.columns[0]] for e in window] if agg.columns else [1] * len(window)


def _decayed_mean(agg: Any, window: Any) -> float:
    """Whenever it is asked for: relative to the last event."""
    now, values = window[-1]["ts"], values_of(agg, window)
    return rounded(decayed(agg, window, now, values) / decayed(agg, window, now, [1] * len(values)))


TIMED: dict[str, Callable[..., Any]] = {
    "decayed_sum": lambda agg, window: rounded(decayed(agg, window, window.now, values_of(agg, window))),
    "decayed_count": lambda agg, window: rounded(decayed(agg, window, window.now, values_of(agg, window))),
    "decayed_mean": _decayed_mean,
    "age": lambda agg, window: window.now - window[-1]["ts"],
}
