"""Small parts of arithmetic that kernels of every room are made of, and the ends of time."""

import numpy as np
from numba.cpython.unsafe.numbers import leading_zeros, trailing_zeros
from numba.extending import overload

from kernels.compile.jit import kernel

EARLIEST, LATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max  # the first and the last time that int64 has

# An index that is not negative. Numba lets negative ones wrap, which is nearly 40 % of a loop that gathers.
unsigned = np.uint64


def lowest(word):
    """The number of the lowest set bit."""
    word = int(word)
    return np.uint64((word & -word).bit_length() - 1)


def highest(word):
    """The number of the highest set bit."""
    return np.uint64(int(word).bit_length() - 1)


@overload(lowest)
def _lowest(word):
    return lambda word: np.uint64(trailing_zeros(word))


@overload(highest)
def _highest(word):
    return lambda word: np.uint64(63) - np.uint64(leading_zeros(word))


@kernel
def two_sum(a, b):
    """a + b as the rounded sum and its exact error."""
    s = a + b
    c = s - a
    return s, (a - (s - c)) + (b - c)


@kernel
def plus(hi, lo, x):
    """The double-double hi + lo, and x, renormalised."""
    s, e = two_sum(hi, x)
    e += lo
    hi = s + e
    return hi, e - (hi - s)


@kernel
def minus(a_hi, a_lo, b_hi, b_lo):
    """The difference of two double-doubles, rounded."""
    s, e = two_sum(a_hi, -b_hi)
    return s + (e + (a_lo - b_lo))
