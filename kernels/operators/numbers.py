"""Small parts of arithmetic that kernels of every room are made of."""

import numpy as np

from kernels.compile.jit import kernel


@kernel
def unsigned(i):
    """An index that is not negative. Numba lets negative ones wrap, which is nearly 40 % of a loop that gathers."""
    return np.uint64(i)


@kernel
def two_sum(a, b):
    """a + b as the rounded sum and its exact error."""
    s = a + b
    c = s - a
    return s, (a - (s - c)) + (b - c)
