"""Exact arithmetic for the oracle: fractions, rounded once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

Values = Sequence[Any]  # non-null values of one column, in order of position
Number = Any  # a Fraction, or a float that is NaN or infinite


def exact(x: Any) -> Number:
    return x if isinstance(x, float) and not math.isfinite(x) else Fraction(x)


def finite(*columns: Iterable[Any]) -> bool:
    return all(isinstance(exact(x), Fraction) for xs in columns for x in xs)


def is_nan(x: Any) -> bool:
    return isinstance(x, float) and math.isnan(x)


def product(x: Any, y: Any) -> Number:
    """With NaN or an infinity as in IEEE (inf * 0 is NaN)."""
    return exact(x) * exact(y) if finite([x, y]) else float(x) * float(y)


def total(xs: Iterable[Any]) -> Number:
    """With NaN or infinities as in IEEE (inf - inf is NaN)."""
    numbers = [exact(x) for x in xs]
    special = [x for x in numbers if isinstance(x, float)]
    return sum(special) if special else sum(numbers, Fraction(0))


def co_moment(xs: Values, ys: Values) -> Fraction:
    """Sum (x - mean x)(y - mean y), of finite values."""
    return total(map(product, xs, ys)) - total(xs) * total(ys) / len(xs)


def rounded(x: Number) -> float:
    """To the nearest float; beyond the largest one, infinite."""
    try:
        return float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.inf


def root(x: Fraction) -> float:
    """The square root, from 60 digits."""
    digits = Context(prec=60)
    return float(digits.sqrt(digits.divide(Decimal(x.numerator), Decimal(x.denominator))))
