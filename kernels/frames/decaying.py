"""Sums that decay, as frames grow by them: as of the event that was considered last, whether it has a value or not.

    weight of an event at ts    2^(phase - 1) * 2^k     phase and k as in kernels/operators/decayed.py
    partial of a sum            how many values, s, lost, k, weight     k and weight: of the latest event
    partial of a mean           s, lost, w, lost, k     of values and of weights: their quotient is the same at any time

needs   events in order of ts
costs   O(1) per event
"""

from typing import NamedTuple

import numpy as np

from kernels.compile.jit import kernel
from kernels.frames.growing import PartFunctions, register
from kernels.frames.operators import KNOWN
from kernels.operators.decayed import combine_decayed

SUM_PARTIAL = (np.int64, np.float64, np.float64, np.int64, np.float64)
MEAN_PARTIAL = (np.float64, np.float64, np.float64, np.float64, np.int64)


class GrowingDecayedSum(NamedTuple):
    tag: int = 0


class GrowingDecayedMean(NamedTuple):
    tag: int = 0


@kernel
def _lift_sum(op, columns, e):
    """Of what is weighted, turns, weights, and whether there is a value."""
    return columns[3][e], columns[0][e], 0.0, columns[1][e], columns[2][e]


@kernel
def _combine_sum(op, a, b):
    s, lost, k = combine_decayed((a[1], a[2], a[3]), (b[1], b[2], b[3]))
    return a[0] + b[0], s, lost, k, b[4]


@kernel
def _settled(s, lost):
    return s + lost if np.isfinite(s) else s


@kernel
def _sum(op, a):
    return _settled(a[1], a[2]) / a[4]


@kernel
def _lift_mean(op, columns, e):
    """Of what is weighted, turns, weights."""
    return columns[0][e], 0.0, columns[2][e], 0.0, columns[1][e]


@kernel
def _combine_mean(op, a, b):
    s, lost, _ = combine_decayed((a[0], a[1], a[4]), (b[0], b[1], b[4]))
    w, w_lost, k = combine_decayed((a[2], a[3], a[4]), (b[2], b[3], b[4]))
    return s, lost, w, w_lost, k


@kernel
def _mean(op, a):
    return _settled(a[0], a[1]) / _settled(a[2], a[3])


@kernel
def _no_integer(op, a):
    return False


@kernel
def _answered_sum(op, a):
    return _sum(op, a), a[0]


@kernel
def _answered_mean(op, a):
    return _mean(op, a), 1


@kernel
def _has_values(op, n, a):
    return a[0] > 0


register(GrowingDecayedSum, PartFunctions(_lift_sum, _combine_sum, _sum, _no_integer, _answered_sum))
register(GrowingDecayedMean, PartFunctions(_lift_mean, _combine_mean, _mean, _no_integer, _answered_mean))
KNOWN[GrowingDecayedSum] = _has_values
