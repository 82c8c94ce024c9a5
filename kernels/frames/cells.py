"""The cells that boundary frames stay in, as codes: equal exactly where the cells are.

A code is the cell's number, or, for widths of floats, the bits of that number as a float, which spares a conversion
that no vector unit has (AVX2; cells of 10M values: 6.7 ms instead of 12.2). They are found block by block, where they
are used: codes of all events at once would be written to memory and read again, twice the time of the whole scan.
"""

from typing import NamedTuple

import numpy as np

from kernels.compile.jit import kernel

NULL_CELL = np.iinfo(np.int64).min
OUTERMOST = 9.2e18  # what no int64 can number goes to the outermost cells
FEW_BREAKS = 24  # breaks: to compare with each costs less than to search among them
WIDTH, WHOLE_WIDTH, BREAKS, WHOLE_BREAKS, NUMBERED = range(5)  # NUMBERED: the values are codes already


class Dimension(NamedTuple):
    """Values, which of them are valid (empty: all), the width or the breaks. Whole numbers as the bits of floats."""

    kind: int
    values: np.ndarray
    valid: np.ndarray
    cut: np.ndarray


@kernel
def find(dimension, first, last, codes):
    """codes[e - first] = the cell of event e."""
    kind, values, valid, cut = dimension
    values, valid = values[first:last], valid[first:last]
    if kind == WIDTH:
        of_width(values, valid, cut[0], codes.view(np.float64))
    elif kind == BREAKS:
        between(values, valid, cut, codes)
    elif kind == WHOLE_WIDTH:
        of_whole_width(values.view(np.int64), valid, cut.view(np.int64)[0], codes)
    elif kind == NUMBERED:
        take_over(values.view(np.int64), codes)
    else:
        between(values.view(np.int64), valid, cut.view(np.int64), codes)


@kernel
def take_over(values, codes):
    """The values are the codes. One by one: all at once would compile for 4 s, in which Numba words its error."""
    for e in range(values.size):
        codes[e] = values[e]


@kernel
def of_width(values, valid, width, codes):
    """n, as a float, with (n-1) width < value <= n width; NaN for null and NaN."""
    for e in range(values.size):
        at = values[e] / width
        n = np.ceil(min(max(at, -OUTERMOST), OUTERMOST)) + 0.0  # -0.0 and 0.0 are one cell
        n = max(n, 1.0) if values[e] > 0 else n  # a quotient too small for a float is 0, but its value is not
        codes[e] = n if at == at else np.nan
    for e in range(valid.size):
        if not valid[e]:
            codes[e] = np.nan


@kernel
def of_whole_width(values, valid, width, codes):
    """The same for integers, exactly: rounded up without a negation, as that of the least int64 is itself."""
    for e in range(values.size):
        below = values[e] // width
        n = max(below + (below * width != values[e]), NULL_CELL + 1)
        codes[e] = NULL_CELL if valid.size and not valid[e] else n


@kernel
def between(values, valid, breaks, codes):
    """How many breaks are below the value: i with b_i < value <= b_i+1, 0 below the first."""
    codes = codes[: values.size]
    if breaks.size <= FEW_BREAKS:
        count_below(values, breaks, codes)
    else:
        search_below(values, breaks, codes)
    for e in range(values.size):
        codes[e] = codes[e] if values[e] == values[e] else NULL_CELL
    for e in range(valid.size):
        if not valid[e]:
            codes[e] = NULL_CELL


@kernel
def count_below(values, breaks, codes):
    """One break after the other: as many passes over values in the cache, each as fast as vectors go."""
    codes[:] = 0
    for b in breaks:
        for e in range(values.size):
            codes[e] += b < values[e]


@kernel
def search_below(values, breaks, codes):
    """By halves, without a branch: where a value lies can not be predicted."""
    for e in range(values.size):
        v, lo, n = values[e], np.uint64(0), np.uint64(breaks.size)
        while n > np.uint64(1):
            half = n >> np.uint64(1)
            lo += half * np.uint64(breaks[lo + half - np.uint64(1)] < v)
            n -= half
        codes[e] = lo + np.uint64(breaks[lo] < v)
