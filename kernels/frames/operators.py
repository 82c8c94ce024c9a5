"""The operators that frames grow by: those of the windows (operators/monoids.py), and simpler ones where frames allow.

Frames only grow. So a running float sum is a double-double (a naive one decides 0.1 * 10 >= 1 wrongly), first and last
are partials, and a quantile that is compared with one constant needs no sorted runs: how many values lie on either side
of it, and the nearest of each, decide it (`Split`). MEASURE is the answer that a partial stands for, KNOWN whether it
has one; kernels/frames/growing.py asks them.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from kernels.compile.jit import kernel
from kernels.frames.further import FURTHER
from kernels.operators import monoids
from kernels.operators.numbers import plus

TINIEST = float(np.finfo(np.float64).tiny)


class GrowingFirst(NamedTuple):
    tag: int = 0


class GrowingLast(NamedTuple):
    tag: int = 0


class WholeSum(NamedTuple):
    """Integers: the sum, and whether it has wrapped."""

    tag: int = 0


class WholeMean(NamedTuple):
    tag: int = 0


class FloatSum(NamedTuple):
    """Floats: a double-double."""

    mean: bool = False


class GrowingWeightedMean(NamedTuple):
    """Two double-doubles: of x w, and of w."""

    tag: int = 0


class GrowingVariance(NamedTuple):
    ddof: int
    root: bool


class GrowingCovariance(NamedTuple):
    ddof: int
    correlation: bool


class Split(NamedTuple):
    """Rows, rows below the constant, the largest of those, the smallest of the others."""

    phi: float
    linear: bool


@kernel
def _lift_whole(x):
    return x, 0


@kernel
def _lift_float(x):
    return x, 0.0


@kernel
def _lift_weighted(x, w):
    return x * w, 0.0, np.float64(w), 0.0


@kernel
def _lift_split(x, below):
    return 1.0, below, x if below else -np.inf, np.inf if below else x


@kernel
def _first(a, b):
    return a


@kernel
def _last(a, b):
    return b


@kernel
def _whole(a, b):
    s = a[0] + b[0]
    return s, a[1] | b[1] | (((a[0] ^ s) & (b[0] ^ s)) < 0)


@kernel
def _twice(hi, lo, x):
    """The double-double hi + lo, and x; once a sum is not finite it is what IEEE says."""
    s = hi + x
    return plus(hi, lo, x) if np.isfinite(s) else (s, 0.0)


@kernel
def _float(a, b):
    """b is one value: frames only grow. To add its low part, which is 0, was half of the time."""
    return _twice(a[0], a[1], b[0])


@kernel
def _weighted(a, b):
    x, x_lo = _twice(a[0], a[1], b[0])
    w, w_lo = _twice(a[2], a[3], b[2])
    return x, x_lo, w, w_lo


@kernel
def _split(a, b):
    largest, smallest = max(a[2], b[2]), a[3]
    if not smallest <= b[3] and smallest == smallest:  # NaN wins
        smallest = b[3]
    return a[0] + b[0], a[1] + b[1], largest, smallest


@kernel
def _value(op, n, a):
    return a


@kernel
def _whole_value(op, n, a):
    return a[0]


@kernel
def _whole_mean(op, n, a):
    return a[0] / n


@kernel
def _float_value(op, n, a):
    return a[0] / n if op.mean else a[0]


@kernel
def _weighted_value(op, n, a):
    return a[0] / a[2] if a[2] != 0 else np.nan


@kernel
def _variance(op, n, a):
    v = a[3] / (n - op.ddof) if np.isfinite(a[2]) else np.nan
    return np.sqrt(v) if op.root else v


@kernel
def _covariance(op, n, a):
    if not (np.isfinite(a[1]) and np.isfinite(a[2])):
        return np.nan
    if op.correlation:
        known = TINIEST <= a[3] < np.inf and TINIEST <= a[4] < np.inf  # smaller ones have lost their digits
        return max(-1.0, min(1.0, a[5] / (np.sqrt(a[3]) * np.sqrt(a[4])))) if known else np.nan
    return a[5] / (n - op.ddof)


@kernel
def _past_ddof(op, n, a):
    return n > op.ddof


@kernel
def _split_value(op, n, a):
    """A number on the same side of the constant as the quantile; the quantile itself if its neighbours straddle it."""
    if a[3] != a[3]:
        return np.nan
    at = op.phi * (n - 1) if op.linear else max(np.floor(op.phi * n), 1.0) - 1
    rank = np.floor(at)
    if rank >= a[1]:
        return a[3]
    if rank + 1 < a[1] or at == rank:
        return a[2]
    step, part = a[3] - a[2], at - rank
    return a[2] + step * part if part < 0.5 else a[3] - step * (1 - part)


_OPERATORS: dict[type, tuple[Callable[..., Any], Callable[..., Any], Any, Callable[..., Any]]] = {
    GrowingFirst: (monoids.lift_value, _first, None, _value),
    GrowingLast: (monoids.lift_value, _last, None, _value),
    WholeSum: (_lift_whole, _whole, (np.int64, np.int64), _whole_value),
    WholeMean: (_lift_whole, _whole, (np.int64, np.int64), _whole_mean),
    FloatSum: (_lift_float, _float, (np.float64, np.float64), _float_value),
    GrowingWeightedMean: (_lift_weighted, _weighted, (np.float64,) * 4, _weighted_value),
    GrowingVariance: (monoids.lift_moments, monoids.combine_moments, monoids.STATE[monoids.Moments], _variance),
    GrowingCovariance: (
        monoids.lift_comoments,
        monoids.combine_comoments,
        monoids.STATE[monoids.CoMoments],
        _covariance,
    ),
    Split: (_lift_split, _split, (np.float64,) * 4, _split_value),
}
WRAPPING = (WholeSum, WholeMean)  # partials say in their second place whether the first has left int64
MEASURE: dict[type, Callable[..., Any]] = {monoids.Max: _value, monoids.Min: _value, monoids.Sum: _value}
KNOWN: dict[type, Callable[..., Any]] = {GrowingVariance: _past_ddof, GrowingCovariance: _past_ddof}
for _op, (_lift, _combine, _dtypes, _measure) in _OPERATORS.items():
    monoids.register(_op, _lift, _combine, _dtypes)
    MEASURE[_op] = _measure
for _op, (_lift, _combine, _dtypes, _measure, _known) in FURTHER.items():
    monoids.register(_op, _lift, _combine, _dtypes)
    MEASURE[_op] = _measure
    if _known is not None:
        KNOWN[_op] = _known
