"""arg_max, arg_min: the value of one column in the row where another is largest, or smallest; the first such row.

A partial is that value, and the extreme. NaN is beyond everything: the first row that has one wins.
"""

from typing import NamedTuple

from kernels.compile.jit import kernel


class ArgMax(NamedTuple):
    tag: int = 0


class ArgMin(NamedTuple):
    tag: int = 0


@kernel
def lift_row(x, by):
    return x, by


@kernel
def later_max(a, b):
    return b if b[1] > a[1] or (b[1] != b[1] and a[1] == a[1]) else a


@kernel
def later_min(a, b):
    return b if b[1] < a[1] or (b[1] != b[1] and a[1] == a[1]) else a
