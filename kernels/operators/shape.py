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
    """Pébay's update of four moments: from those of two runs of rows, and how far their means are apart."""
    na, mean, a2, a3, a4 = a
    nb, _, b2, b3, b4 = b
    n = na + nb
    one = 1.0 / n  # to divide once
    p, q = na * one, nb * one
    d = b[1] - mean
    w = d * d * (na * q)  # what the distance of the means adds to m2
    m3 = a3 + b3 + d * (w * (p - q) + 3.0 * (p * b2 - q * a2))
    m4 = a4 + b4 + d * (d * (w * (1.0 - 3.0 * p * q) + 6.0 * (p * p * b2 + q * q * a2)) + 4.0 * (p * b3 - q * a3))
    return n, mean + d * q, a2 + b2 + w, m3, m4


@kernel
def skewness(n, m2, m3, out):
    """Of a sample. NaN where a moment is beyond floats. Returns how many are null: of few rows, or of a constant.

    In one pass, with one root: column by column it took as long as the sweep.
    """
    nulls = 0
    for i in range(out.size):
        k = np.float64(n[i])
        value = k / (k - 2.0) * (np.sqrt((k - 1.0) / m2[i]) * (m3[i] / m2[i]))
        out[i] = value if np.isfinite(value) else np.nan
        nulls += (k < 3.0) | (m2[i] == 0.0)
    return nulls


@kernel
def excess_kurtosis(n, m2, m4, out):
    """Of a sample. NaN where a moment is beyond floats. Returns how many are null: of few rows, or of a constant."""
    nulls = 0
    for i in range(out.size):
        k = np.float64(n[i])
        value = (k - 1.0) / ((k - 2.0) * (k - 3.0)) * ((k + 1.0) * k * (m4[i] / m2[i] / m2[i]) - 3.0 * (k - 1.0))
        out[i] = value if np.isfinite(value) else np.nan
        nulls += (k < 4.0) | (m2[i] == 0.0)
    return nulls
