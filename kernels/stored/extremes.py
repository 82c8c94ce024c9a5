"""Smallest and largest values over stored events: a table of the extremes of 1, 2, 4, 8 … rows, from each row on.

      lo .............. hi         a window of n rows is two runs of 2^l rows, l = floor(log2(n)):
      |--- 2^l ---|                one begins at lo, one ends at hi
            |--- 2^l ---|          what lies in both counts twice, which changes no extreme

needs   an operator that may count a row twice: min, max
costs   1.5 to 2.2 ns per answer, whatever the width and the order of windows; 0.5 ns per row and level, once for all
        windows. A moving landmark takes 3.5 to 10 ns per answer (most where windows are short and keys many: then each
        of its branches is a guess), and has nothing to build.
space   a value per row and level
from    Bender & Farach-Colton 2000, "The LCA problem revisited" (sparse tables)
"""

from kernels.compile.jit import kernel
from kernels.operators.numbers import highest, unsigned


@kernel
def extreme(largest, a, b):
    """The larger or the smaller one; NaN wins. (As monoids have it, but one kernel is compiled for both.)"""
    return a if (a > b if largest else a < b) or a != a else b


@kernel
def deepen(levels, level, largest):
    """levels[level, i] = the extreme of rows i … i + 2^level - 1, given the level below."""
    half = 1 << (level - 1)
    left, right, out = levels[level - 1], levels[level - 1, half:], levels[level]
    for i in range(right.size - half):
        out[i] = extreme(largest, left[i], right[i])


@kernel
def lookup(levels, base, largest, lo, hi, out):
    """out[i] = the extreme of rows [lo[i], hi[i]); levels begin at row `base`. Of an empty window, anything."""
    for i in range(lo.size):
        n = unsigned(max(hi[i] - lo[i], 1))
        level, first = highest(n), unsigned(lo[i] - base)
        out[i] = extreme(largest, levels[level, first], levels[level, first + n - (unsigned(1) << level)])
