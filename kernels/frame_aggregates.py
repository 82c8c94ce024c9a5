"""Aggregate frames: cut where an aggregate of the frame's own events passes a bound.

      before   sum < 10    3 4 2 | 5 1 3 | …      closed by the event that would break it
      with     sum >= 10   3 4 5 | 9 2 | …        closed with the event that makes it true

needs   a monoid (kernels/monoids.py, user-defined ones included) and `measure`: the answer a partial stands for
costs   one lift, one combine and one measure per event, whatever the aggregate; O(1) state per key
from    Grossniklaus et al. 2016, sections 3.2 and 5.2.4; conventions as in kernels/framing.py

The operators of the windows serve here too. Frames only grow, so some are simpler than their window's structure: a
running float sum is a double-double (a naive one decides 0.1 * 10 >= 1 wrongly), first and last are partials, and a
quantile that is compared with one constant needs no sorted runs: how many values lie on either side of the constant, and
the nearest of each, decide it (`Split`).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from kernels import monoids
from kernels.framing import KEY, LAST, OPEN, ROWS, SLOT, START, end_frame, take_slot
from kernels.jit import kernel
from kernels.monoids import combine, lift, load, store
from kernels.running import plus


OVERFLOW = np.iinfo(np.int64).min  # returned when an integer sum has left int64


class Count(NamedTuple):
    tag: int = 0


class First(NamedTuple):
    tag: int = 0


class Last(NamedTuple):
    tag: int = 0


class WholeSum(NamedTuple):
    """Integers: the sum, and whether it has wrapped."""

    tag: int = 0


class WholeMean(NamedTuple):
    tag: int = 0


class FloatSum(NamedTuple):
    """Floats: a double-double."""

    mean: bool = False


class WeightedMean(NamedTuple):
    """Two double-doubles: of x w, and of w."""

    tag: int = 0


class Variance(NamedTuple):
    ddof: int
    root: bool


class Covariance(NamedTuple):
    ddof: int
    correlation: bool


class Split(NamedTuple):
    """Rows, rows below the constant, the largest of those, the smallest of the others."""

    phi: float
    linear: bool


@kernel
def _one(x):
    return 1


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
    hi, lo = _twice(a[0], a[1], b[0])
    return _twice(hi, lo, b[1])


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
        return max(-1.0, min(1.0, a[5] / (np.sqrt(a[3]) * np.sqrt(a[4])))) if a[3] > 0 and a[4] > 0 else np.nan
    return a[5] / (n - op.ddof)


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
    Count: (_one, monoids._sum, np.int64, _value),
    First: (monoids._lift_value, _first, None, _value),
    Last: (monoids._lift_value, _last, None, _value),
    WholeSum: (_lift_whole, _whole, (np.int64, np.int64), _whole_value),
    WholeMean: (_lift_whole, _whole, (np.int64, np.int64), _whole_mean),
    FloatSum: (_lift_float, _float, (np.float64, np.float64), _float_value),
    WeightedMean: (_lift_weighted, _weighted, (np.float64,) * 4, _weighted_value),
    Variance: (monoids._lift_moments, monoids._moments, monoids.STATE[monoids.Moments], _variance),
    Covariance: (monoids._lift_comoments, monoids._comoments, monoids.STATE[monoids.CoMoments], _covariance),
    Split: (_lift_split, _split, (np.float64,) * 4, _split_value),
}
_MEASURE: dict[type, Callable[..., Any]] = {monoids.Max: _value, monoids.Min: _value, monoids.Sum: _value}
for _op, (_lift, _combine, _dtypes, _measure) in _OPERATORS.items():
    monoids._LIFT[_op], monoids._COMBINE[_op], monoids.STATE[_op], _MEASURE[_op] = _lift, _combine, _dtypes, _measure


def measure(op, n, a):
    """The aggregate that the partial of n values stands for."""
    f = _MEASURE.get(type(op))
    return monoids.lower(op, a) if f is None else f(op, n, a)


@overload(measure)
def _measure_overload(op, n, a):
    f = _MEASURE.get(op.instance_class)
    if f is None:
        return lambda op, n, a: monoids.lower(op, a)
    return lambda op, n, a: f(op, n, a)


def wrapped(op, a):
    """Has an integer sum left int64?"""
    return isinstance(op, WholeSum | WholeMean) and a[1] != 0


@overload(wrapped)
def _wrapped_overload(op, a):
    if op.instance_class in (WholeSum, WholeMean):
        return lambda op, a: a[1] != 0
    return lambda op, a: False


@kernel
def close_before(op, data, rule, block, keys, out, first):
    """lo <= aggregate <= hi holds over every frame; an event that breaks it alone is in no frame.

    keys: state, and per key the partial of its frame and how many values that is of. out: frames, and their answers.
    """
    (columns, valid), (state, partials, counts), (found, values, sizes) = data, keys, out
    lo, hi, needs = rule
    ts, ids, rows, base, shift = block
    frames, n = found.frames, found.count[0]
    for i in range(first, rows.size):
        r = np.uint64(rows[i])
        e, k = r + np.uint64(base), np.uint64(ids[r] >> shift)
        t = ts[e]
        if t < state[k, LAST] or n == frames.shape[0]:
            found.count[0] = n
            return i if n == frames.shape[0] else -1 - np.int64(e)
        outside = False
        if valid.size == 0 or valid[e]:
            x = lift(op, columns, e)
            m = counts[k]
            new = combine(op, load(partials, k), x) if m > 0 else x
            answer = measure(op, m + 1, new)
            over = wrapped(op, new)
            if over and answer >= 0:  # a sum that wraps upwards was below int64, and breaks no `<`
                return OVERFLOW
            if over or (m + 1 >= needs and not lo <= answer <= hi):
                if state[k, ROWS] > 0:
                    slot = state[k, SLOT]
                    sizes[slot] = m
                    if m >= needs:
                        values[slot] = measure(op, m, load(partials, k))
                    end_frame(frames, state, k)
                new, m = x, 0
                outside = needs <= 1 and not lo <= measure(op, 1, x) <= hi
            store(partials, k, new)
            counts[k] = 0 if outside else m + 1
        if not outside:
            if state[k, ROWS] == 0:
                state[k, START] = t
                take_slot(frames, n, k, t, e, 0)
                state[k, SLOT] = n
                n += 1
            state[k, ROWS] += 1
        state[k, LAST] = t
    found.count[0] = n
    return rows.size


@kernel
def close_with(op, data, rule, block, keys, out, first):
    """A frame ends with the event that brings the aggregate into lo .. hi; an unfinished one is none."""
    (columns, valid), (state, partials, counts), (found, values, sizes) = data, keys, out
    lo, hi, needs = rule
    ts, ids, rows, base, shift = block
    frames, n = found.frames, found.count[0]
    for i in range(first, rows.size):
        r = np.uint64(rows[i])
        e, k = r + np.uint64(base), np.uint64(ids[r] >> shift)
        t = ts[e]
        if t < state[k, LAST] or n == frames.shape[0]:
            found.count[0] = n
            return i if n == frames.shape[0] else -1 - np.int64(e)
        if state[k, ROWS] == 0:
            state[k, START] = t
        state[k, ROWS] += 1
        state[k, LAST] = t
        if valid.size and not valid[e]:
            continue
        x = lift(op, columns, e)
        m = counts[k]
        new = combine(op, load(partials, k), x) if m > 0 else x
        if wrapped(op, new):
            return OVERFLOW
        answer = measure(op, m + 1, new)
        store(partials, k, new)
        counts[k] = m + 1
        if m + 1 >= needs and lo <= answer <= hi:
            take_slot(frames, n, k, state[k, START], e, 0)
            state[k, SLOT] = n
            values[n], sizes[n] = answer, m + 1
            n += 1
            end_frame(frames, state, k)
            counts[k] = 0
    found.count[0] = n
    return rows.size


@kernel
def measure_open(op, needs, keys, out):
    """The aggregates of frames still open, so far."""
    (state, partials, counts), (found, values, sizes) = keys, out
    for slot in range(found.count[0]):
        if found.frames[slot, OPEN]:
            k = found.frames[slot, KEY]
            sizes[slot] = counts[k]
            if counts[k] >= needs:
                values[slot] = measure(op, counts[k], load(partials, k))
