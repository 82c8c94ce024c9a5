"""The first four moments of a column, of which skew and kurtosis are read: n, mean, m2, m3, m4 (Pébay 2008).

As with two moments (kernels/operators/monoids.py), only deviations are raised to powers: 1e9 + noise keeps its digits,
and a constant has none.
"""

from typing import NamedTuple

import numpy as np

from kernels.compile.jit import kernel


class Shape(NamedTuple):
    tag: int = 0


@kernel
def lift_shape(x):
    return 1.0, np.float64(x), 0.0, 0.0, 0.0


@kernel
def combine_shape(a, b):
    na, mean, a2, a3, a4 = a
    nb, _, b2, b3, b4 = b
    n = na + nb
    p, q = na / n, nb / n
    d = b[1] - mean
    w = d * d * (na * q)  # what the distance of the means adds to m2
    m3 = a3 + b3 + d * (w * (p - q) + 3.0 * (p * b2 - q * a2))
    m4 = a4 + b4 + d * (d * (w * (1.0 - 3.0 * p * q) + 6.0 * (p * p * b2 + q * q * a2)) + 4.0 * (p * b3 - q * a3))
    return n, mean + d * q, a2 + b2 + w, m3, m4
