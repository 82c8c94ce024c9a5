"""Products, as a number near 1 and a power of two: in whatever order factors come together, none of them overflows.

1e200 * 1e200 * 1e-300 is 1e100, also where a structure has the first two in one partial.
"""

from typing import NamedTuple

import numpy as np

from kernels.compile.jit import kernel

EXPONENT_STEP = 600
UP, DOWN = 2.0**EXPONENT_STEP, 2.0**-EXPONENT_STEP
LARGEST_FACTOR = 2.0**500  # two factors up to this, and down to one by this, have a product as exact as they are
SMALLEST_FACTOR = 2.0**-500


class Product(NamedTuple):
    tag: int = 0


@kernel
def _within(m, e):
    """m * 2^e with m within the bounds, or 0, infinite, NaN."""
    size = abs(m)
    if size > LARGEST_FACTOR:
        return m * DOWN, e + EXPONENT_STEP
    if size < SMALLEST_FACTOR:
        return m * UP, e - EXPONENT_STEP
    return m, e


@kernel
def lift_product(x):
    return _within(np.float64(x), np.int64(0))


@kernel
def combine_product(a, b):
    return _within(a[0] * b[0], a[1] + b[1])
