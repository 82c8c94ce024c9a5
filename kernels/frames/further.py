"""More operators that frames grow by: of flags, of shapes and lines, of the row where another column is extreme.

They are the monoids of the windows (kernels/operators), and what a partial of n values stands for. Some have no answer
for all values (the skew of a constant): `known` says so.
"""

from typing import NamedTuple

import numpy as np

from kernels.compile.jit import kernel
from kernels.operators import monoids
from kernels.operators.extreme_rows import later_max, later_min, lift_row
from kernels.operators.products import combine_product, lift_product
from kernels.operators.shape import combine_shape, lift_shape
from kernels.operators.skewness import combine_skewness, lift_skewness

BEYOND = 1 << 12  # a power of two that no float comes back from
COUNT_IF, ANY, ALL = range(3)
SLOPE, INTERCEPT, R2 = range(3)


class Flags(NamedTuple):
    """How many are true; what is asked of that."""

    asked: int


class GrowingSkew(NamedTuple):
    tag: int = 0


class GrowingKurtosis(NamedTuple):
    tag: int = 0


class GrowingProduct(NamedTuple):
    tag: int = 0


class GrowingArgMax(NamedTuple):
    tag: int = 0


class GrowingArgMin(NamedTuple):
    tag: int = 0


class GrowingLine(NamedTuple):
    """Of the line through (x, y), where the columns are y and x."""

    asked: int


@kernel
def _flags(op, n, a):
    if op.asked == ANY:
        return np.int64(a > 0)
    return np.int64(a == n) if op.asked == ALL else a


@kernel
def _skew(op, n, a):
    k = np.float64(n)
    value = np.sqrt(k * (k - 1.0)) / (k - 2.0) * (np.sqrt(k / a[2]) * (a[3] / a[2]))
    return value if np.isfinite(value) else np.nan


@kernel
def _kurtosis(op, n, a):
    k = np.float64(n)
    value = (k - 1.0) / ((k - 2.0) * (k - 3.0)) * ((k + 1.0) * k * (a[4] / a[2] / a[2]) - 3.0 * (k - 1.0))
    return value if np.isfinite(value) else np.nan


@kernel
def _product(op, n, a):
    """m * 2^e: in steps that floats have, as e may be far beyond them and m not."""
    value, power = a[0], min(max(a[1], -BEYOND), BEYOND)
    while power > 0:
        step = min(power, 1000)
        value, power = value * 2.0**step, power - step
    while power < 0:
        step = min(-power, 1000)
        value, power = value * 2.0**-step, power + step
    return value


@kernel
def _row_value(op, n, a):
    return a[0]


@kernel
def _line(op, n, a):
    """n, mean y, mean x, yy, xx, xy: see swag/query/kinds/regression.py."""
    if not (np.isfinite(a[1]) and np.isfinite(a[2]) and np.isfinite(a[3]) and np.isfinite(a[4])):
        return np.nan
    if a[4] == 0:
        return np.nan  # only a slope is asked for, then
    if op.asked == R2:
        return 1.0 if a[3] == 0 else min((a[5] / a[4]) * (a[5] / a[3]), 1.0)
    slope = a[5] / a[4]
    return slope if op.asked == SLOPE else a[1] - slope * a[2]


@kernel
def _skew_known(op, n, a):
    return n >= 3 and a[2] != 0


@kernel
def _kurtosis_known(op, n, a):
    return n >= 4 and a[2] != 0


@kernel
def _line_known(op, n, a):
    return op.asked == SLOPE or a[4] != 0 or not (np.isfinite(a[1]) and np.isfinite(a[2]))


FURTHER = {  # lift, combine, the dtypes of a partial, its answer, and where it is known (None: everywhere)
    Flags: (monoids.lift_value, monoids.add, None, _flags, None),
    GrowingSkew: (lift_skewness, combine_skewness, (np.float64,) * 4, _skew, _skew_known),
    GrowingKurtosis: (lift_shape, combine_shape, (np.float64,) * 5, _kurtosis, _kurtosis_known),
    GrowingProduct: (lift_product, combine_product, (np.float64, np.int64), _product, None),
    GrowingArgMax: (lift_row, later_max, (None, monoids.SECOND), _row_value, None),
    GrowingArgMin: (lift_row, later_min, (None, monoids.SECOND), _row_value, None),
    GrowingLine: (monoids.lift_comoments, monoids.combine_comoments, (np.float64,) * 6, _line, _line_known),
}
