"""The first three moments of a column, of which skew is read: n, mean, m2, m3.

As kernels/operators/shape.py has them.
"""

from typing import NamedTuple

import numpy as np

from kernels.compile.jit import kernel
from kernels.operators.monoids import register


class Skewness(NamedTuple):
    tag: int = 0


@kernel
def lift_skewness(x):
    return 1.0, np.float64(x), 0.0, 0.0


@kernel
def combine_skewness(a, b):
    """Pébay's update of three moments: from those of two runs of rows, and how far their means are apart."""
    na, mean, a2, a3 = a
    nb, _, b2, b3 = b
    n = na + nb
    one = 1.0 / n  # to divide once
    p, q = na * one, nb * one
    d = b[1] - mean
    w = d * d * (na * q)  # what the distance of the means adds to m2
    return n, mean + d * q, a2 + b2 + w, a3 + b3 + d * (w * (p - q) + 3.0 * (p * b2 - q * a2))


@kernel
def take_in_skewness(a, x):
    """The same, of one more row: two thirds of the work."""
    na, mean, a2, a3 = a
    n = na + 1.0
    q = 1.0 / n
    p = na * q
    d = x - mean
    w = d * d * p
    return n, mean + d * q, a2 + w, a3 + d * (w * (p - q) - 3.0 * (q * a2))


register(Skewness, lift_skewness, combine_skewness, (np.float64,) * 4, take_in_skewness)
