"""Sums whose terms lose half of their weight with every half-life, relative to any later time.

    weight of a row at ts   2^(ts / h) = 2^phase * 2^k,  k = floor(ts / h)       what only depends on the row
    partial                 s, lost, k: the sum is (s + lost) * 2^k              k is that of the latest row
    answer at a time now    (s + lost) * 2^k / 2^(now / h)

Rows come with 2^phase worked in (swag/tables/decay.py), so to combine takes a power of two, which is exact, and no
time is too long ago to be counted from. What additions lose is kept, as in kernels/operators/compensated.py.
"""

from typing import NamedTuple

import numpy as np

from kernels.compile.jit import kernel
from kernels.operators.numbers import two_sum

FURTHEST = 1022
POWERS = 2.0 ** -np.arange(FURTHEST + 1)


class Decayed(NamedTuple):
    tag: int = 0


@kernel
def lift_decayed(y, k):
    return np.float64(y), 0.0, k


@kernel
def _fallen(x, d):
    """x * 2^-d; an infinite one stays so, however long ago. d < 0: so long that int64 does not hold it."""
    if 0 <= d <= FURTHEST:
        return x * POWERS[d]
    return x * POWERS[FURTHEST] * POWERS[FURTHEST] * POWERS[FURTHEST]


@kernel
def combine_decayed(a, b):
    s, lost = a[0], a[1]
    d = b[2] - a[2]
    if d != 0:
        s, lost = _fallen(s, d), _fallen(lost, d)
    s, e = two_sum(s, b[0])
    return s, lost + b[1] + e, b[2]


@kernel
def as_of(partials, then, weight, out):
    """Partials to sums, as of the times whose turns and weights these are. Of windows ahead, turns are less."""
    sums, lost, turns = partials
    for i in range(out.size):
        s = sums[i] + lost[i] if np.isfinite(sums[i]) else sums[i]
        if turns[i] <= then[i]:
            out[i] = _fallen(s, then[i] - turns[i]) / weight[i]
        else:
            ahead = turns[i] - then[i]
            while ahead > FURTHEST and s != 0 and np.isfinite(s):
                s, ahead = s / POWERS[FURTHEST], ahead - FURTHEST
            out[i] = s / POWERS[min(ahead, FURTHEST)] / weight[i] if ahead >= 0 else s
