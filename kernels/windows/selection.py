"""Windows that are put in order when they are asked for: nothing is kept, and a lookup goes through its window's rows.

      column     9 3 5 1 7 2        the window's rows are copied, and parted around pivots until the one of the
      rank 2     1 2 3 | 9 5 7      rank is in its place: what lies before it is no larger, what lies behind no less

needs   values that can be ordered; a window with a NaN gives that
costs   update nothing, lookup O(W), space nothing
from    Hoare 1961, "Find"; the naive side of Arasu & Widom 2004, section 3.3

Where sorted runs (kernels/windows/sorted_runs.py) are looked up seldom, or windows are narrow, this is less work.
"""

import numpy as np

from kernels.compile.jit import kernel
from kernels.operators.numbers import unsigned
from kernels.rings.timeline import CAPACITY, OFFSET


@kernel
def widest(lo, hi):
    most = 1
    for i in range(lo.shape[0]):
        for w in range(lo.shape[1]):
            most = max(most, hi[i, w] - lo[i, w])
    return most


@kernel
def copy(column, ring, lo, hi, rows):
    """The rows of positions [lo, hi). Is there a NaN among them?"""
    (offset, mask), nan = ring, False
    for p in range(lo, hi):
        x = column[unsigned(offset + (p & mask))]
        rows[unsigned(p - lo)] = x
        nan |= x != x
    return nan


@kernel
def middle(a, b, c):
    """The one of three that is between the others."""
    if a > b:
        a, b = b, a
    return a if c < a else b if c > b else c


@kernel
def select(rows, n, k):
    """The element of rank k of n rows, in its place: none before it is larger, and none behind it less."""
    left, right = 0, n - 1
    while left < right:
        pivot = middle(rows[left], rows[(left + right) >> 1], rows[right])
        i, j = left, right
        while i <= j:
            while rows[unsigned(i)] < pivot:
                i += 1
            while rows[unsigned(j)] > pivot:
                j -= 1
            if i <= j:
                rows[unsigned(i)], rows[unsigned(j)] = rows[unsigned(j)], rows[unsigned(i)]
                i += 1
                j -= 1
        if k <= j:
            right = j
        elif k >= i:
            left = i
        else:
            break
    return rows[k]


@kernel
def least(rows, first, n):
    """The smallest of rows [first, n), of which there are some."""
    found = rows[first]
    for i in range(first + 1, n):
        found = min(found, rows[unsigned(i)])
    return found


@kernel
def lookup(column, rings, keys, edges, ranks, out, after):
    """out[i, w] = the element of rank ranks[i, w] (from 0) in the positions edges[i, w]; after: the next one, or the
    last. `after` may be of no size: not asked for."""
    lo, hi = edges
    rows = np.empty(widest(lo, hi), column.dtype)
    for i in range(keys.size):
        ring = rings[keys[i], OFFSET], rings[keys[i], CAPACITY] - 1
        for w in range(lo.shape[1]):
            n, k = hi[i, w] - lo[i, w], ranks[i, w]
            if n <= 0:
                continue
            if copy(column, ring, lo[i, w], hi[i, w], rows):
                out[i, w] = np.nan
                if after.size:
                    after[i, w] = np.nan
                continue
            out[i, w] = select(rows, n, k)
            if after.size:
                after[i, w] = least(rows, k + 1, n) if k + 1 < n else out[i, w]
