"""Aggregates of a frame's events, and conditions over them, by definition: in exact arithmetic, slowly."""

import math
import operator
import sys
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

from frames.theory.lengths import units
from swag.query.expression import Expression, Operators

Event = dict[str, Any]
WHEN = " when"  # the time of an event, whatever its column is called


def truth(term: Any, extent: Sequence[Event]) -> bool | None:
    """Of a condition over aggregates: true, false, or None where a null leaves it open. NaN satisfies nothing."""
    if term.op in ("and", "or"):
        found = [truth(each, extent) for each in term.operands]
        decides = term.op == "or"
        return decides if decides in found else None if None in found else not decides
    if term.op == "between":
        x, low, high = term.operands
        return truth(Expression("and", (Expression(">=", (x, low)), Expression("<=", (x, high)))), extent)
    a, b = (value(each, extent) for each in term.operands)
    if a is None or b is None:
        return None
    if term.op == "<>":
        return a == a and b == b and bool(a != b)
    return b == b and satisfies(a, "==" if term.op == "=" else term.op, b)


def value(term: Any, extent: Sequence[Event]) -> Any:
    """Of an expression over aggregates; None if one of them is."""
    if not isinstance(term, Expression):
        return aggregate(term, extent) if isinstance(term, Operators) else term
    operands = [value(each, extent) for each in term.operands]
    return None if None in operands else ARITHMETIC[term.op](*operands)


def _divided(a: Any, b: Any) -> float:
    """As floats are: by zero it is infinite, and nothing by nothing is NaN."""
    if b != 0:
        return float(a / b)
    return math.copysign(math.inf, a) * math.copysign(1, b) if a == a and a != 0 else math.nan


ARITHMETIC: dict[str, Callable[..., Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": _divided, "neg": operator.neg, "abs": abs,
}  # fmt: skip


def satisfies(value: Any, op: str, c: Any) -> bool:
    """Null and NaN satisfy nothing.

    >>> import frames as fr
    >>> fr.theory.satisfies(3, ">=", 2), fr.theory.satisfies(None, ">=", 2)
    (True, False)
    """
    if value is None or value != value:
        return False
    if isinstance(value, Decimal) and isinstance(c, float):
        c = Decimal(repr(float(c)))  # the number as it is written
    return bool({"<": value < c, "<=": value <= c, ">": value > c, ">=": value >= c, "==": value == c}[op])


def aggregate(what: Any, extent: Sequence[Event]) -> Any:
    """An aggregate of the events of a frame: nulls skipped; None where there is nothing to say.

    >>> import frames as fr, swag as sw
    >>> fr.theory.aggregate(sw.mean("x"), [{"x": 1}, {"x": None}, {"x": 4}])
    2.5
    """
    rows = [tuple(event[c] for c in what.columns) for event in extent]
    there = [i for i, row in enumerate(rows) if all(v is not None for v in row)]
    rows = [rows[i] for i in there]
    if what.kind in ("count", "count_if"):
        return len(rows) if what.kind == "count" else sum(flag for (flag,) in rows)
    if what.kind in ("count_distinct", "approx_count_distinct"):
        return len({_told_apart(x) for (x,) in rows})
    if len(rows) <= (what.ddof or 0):
        return None
    columns: list[Any] = [list(c) for c in zip(*rows, strict=True)]
    xs = columns[0] if columns else [1] * len(rows)
    if what.kind in ("sum", "mean"):
        s = _total(xs)
        return s if what.kind == "sum" else s / len(xs)
    if what.kind in ("min", "max"):
        return math.nan if any(x != x for x in xs) else (min(xs) if what.kind == "min" else max(xs))
    if what.kind in ("first", "last"):
        return xs[0 if what.kind == "first" else -1]
    if what.kind == "quantile":
        return _quantile(what, xs)
    if what.kind == "aggregate":
        return _folded(what.user, xs)
    if what.kind == "wmean":
        weights = _total(columns[1])
        return _total([x * w for x, w in zip(*columns, strict=True)]) / weights if weights else math.nan
    if what.kind.startswith("decayed"):
        return _decayed(what, extent, there, xs)
    if what.kind in ("var", "std", "cov", "corr"):
        return _spread_of(what, columns)
    return FURTHER[what.kind](*columns)


def _told_apart(x: Any) -> Any:
    """Equal for equal values: one NaN is another, and -0.0 is 0.0."""
    return "NaN" if x != x else (x,)


def _mode(xs: Sequence[Any]) -> Any:
    """The most frequent value; of several, the one that comes first."""
    values = [_told_apart(x) for x in xs]
    return xs[max(range(len(xs)), key=lambda i: (values.count(values[i]), -i))]


def _decayed(what: Any, extent: Sequence[Event], there: list[int], xs: Sequence[Any]) -> float:
    """As of the last event, whether it has a value or not: each counts for half as much with every half-life."""
    times: list[Any] = [event.get(WHEN, event.get("ts")) for event in extent]
    half_life: int = units(what.half_life, "half_life", times[-1])
    now = times[there[-1]] if what.kind == "decayed_mean" else times[-1]  # which is the same as of any time
    weights = [2.0 ** -((now - times[i]) / half_life) for i in there]
    weighted: Any = _total([x * w for x, w in zip(xs, weights, strict=True)])
    total: Any = _total(weights) if what.kind == "decayed_mean" else 1
    return float(weighted / total)


def _total(xs: Sequence[Any]) -> Any:
    if all(isinstance(x, int) for x in xs):
        return sum(xs)
    return math.fsum(xs) if all(math.isfinite(x) for x in xs) else sum(xs)


def _spread_of(what: Any, columns: list[list[Any]]) -> float:
    """Variance, deviation, covariance or correlation of a frame's events, in fractions; NaN where it is not known."""
    if not all(math.isfinite(v) for column in columns for v in column):
        return math.nan
    exact = [[Fraction(v) for v in column] for column in columns]
    means = [sum(column) / len(column) for column in exact]
    away = [[v - m for v in column] for column, m in zip(exact, means, strict=True)]
    xx, yy = (sum(v * v for v in away[i]) for i in (0, -1))
    xy = sum(x * y for x, y in zip(away[0], away[-1], strict=True))
    if what.kind == "corr":
        known = all(sys.float_info.min <= squares <= sys.float_info.max for squares in (xx, yy))
        return math.copysign(math.sqrt(xy * xy / (xx * yy)), xy) if known else math.nan
    v = float(xy / (len(exact[0]) - (what.ddof or 0)))
    return math.sqrt(v) if what.kind == "std" else v


def _quantile(what: Any, xs: Sequence[Any]) -> Any:
    """Of sorted values, by rank or interpolated between two; NaN if one of them is."""
    if any(x != x for x in xs):
        return math.nan
    ordered = sorted(xs)
    if what.method == "floor":
        return ordered[max(1, math.floor(what.phi * len(xs))) - 1]
    at = what.phi * (len(xs) - 1)
    low, high, part = ordered[math.floor(at)], ordered[math.ceil(at)], at - math.floor(at)
    if low == high:
        return float(low)
    return low + (high - low) * part if part < 0.5 else high - (high - low) * (1 - part)


def _folded(user: Any, xs: Sequence[Any]) -> Any:
    partial = user.lift(xs[0])
    for x in xs[1:]:
        partial = user.combine(partial, user.lift(x))
    return user.lower(partial)


def _shape(power: int, xs: Sequence[Any]) -> float | None:
    """Skew (the third power) or excess kurtosis (the fourth) of a sample; None of too few values, or of a constant."""
    n = len(xs)
    if n < power:
        return None
    if not all(math.isfinite(x) for x in xs):
        return math.nan
    mean = sum(map(Fraction, xs)) / n
    m2, high = (sum((Fraction(x) - mean) ** each for x in xs) for each in (2, power))
    if m2 == 0:
        return None
    if power == 3:
        return math.sqrt(n * (n - 1)) / (n - 2) * float(high / n) / float(m2 / n) ** 1.5
    return float(Fraction(n - 1, (n - 2) * (n - 3)) * ((n + 1) * n * high / m2 / m2 - 3 * (n - 1)))


def _line(asked: str, ys: Sequence[Any], xs: Sequence[Any]) -> float | None:
    """Of the line through (x, y) with the least squares."""
    if not all(math.isfinite(v) for v in (*xs, *ys)):
        return math.nan
    n = len(xs)
    x_mean, y_mean = sum(map(Fraction, xs)) / n, sum(map(Fraction, ys)) / n
    dx, dy = [Fraction(x) - x_mean for x in xs], [Fraction(y) - y_mean for y in ys]
    xx, yy, xy = (sum(a * b for a, b in zip(*pair, strict=True)) for pair in ((dx, dx), (dy, dy), (dx, dy)))
    if xx == 0:
        return math.nan if asked == "slope" else None
    if asked == "r2":
        return float(xy * xy / (xx * yy)) if yy else 1.0
    return float(xy / xx) if asked == "slope" else float(y_mean - xy / xx * x_mean)


def _product(xs: Sequence[Any]) -> float:
    finite = all(math.isfinite(x) for x in xs)
    return float(math.prod(map(Fraction, xs))) if finite else math.prod(map(float, xs))


def _extreme_row(largest: bool, xs: Sequence[Any], by: Sequence[Any]) -> Any:
    """The value in the first row where another column is largest, or smallest; NaN is both."""
    unknown = [x for x, other in zip(xs, by, strict=True) if other != other]
    return unknown[0] if unknown else xs[by.index(max(by) if largest else min(by))]


FURTHER: dict[str, Callable[..., Any]] = {
    "mode": _mode,
    "any": any,
    "all": all,
    "skew": partial(_shape, 3),
    "kurtosis": partial(_shape, 4),
    "product": _product,
    "slope": partial(_line, "slope"),
    "intercept": partial(_line, "intercept"),
    "r2": partial(_line, "r2"),
    "arg_max": partial(_extreme_row, True),
    "arg_min": partial(_extreme_row, False),
}
