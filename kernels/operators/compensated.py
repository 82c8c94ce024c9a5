"""An operator for float sums that never subtracts: a sum and what its additions have lost, as exact as a double-double.

What is swept with it imports this file, so that compiled code follows its changes.
"""

from typing import NamedTuple

import numpy as np

from kernels.compile.jit import kernel
from kernels.operators import monoids
from kernels.operators.numbers import two_sum


class Compensated(NamedTuple):
    tag: int = 0


@kernel
def _lift(x):
    return np.float64(x), 0.0


@kernel
def _combine(a, b):
    s, e = two_sum(a[0], b[0])
    return s, a[1] + b[1] + e


monoids.register(Compensated, _lift, _combine, (np.float64, np.float64))


@kernel
def settle(sums, lost, out):
    """Partials to sums; where a sum is infinite or NaN, what it lost is no number either."""
    for i in range(out.size):
        out[i] = sums[i] + lost[i] if np.isfinite(sums[i]) else sums[i]
