"""Sorted base intervals (B-INT-QNT): a quantile from O(log W) sorted runs, without merging them.

      level 2   | 1 3 5 9 |             runs[l] holds the column sorted within every block of 2^l rows;
      level 1   | 3 9 | 1 5 | 2 7 |     run [2^l i, 2^l (i + 1)) lies at the slots of its own positions
      column      9 3   5 1   7 2

needs   values that can be ordered; NaN sorts last
costs   update O(log Nmax) amortised, lookup O(log^2 W log log W) or so, space O(Nmax log Nmax)
from    Arasu & Widom 2004, section 3.3

Queries with different quantiles share the runs.
"""

import numpy as np

from kernels.compile.jit import kernel
from kernels.rings.timeline import CAPACITY, HEAD, OFFSET, TAIL


@kernel
def merge(runs, level, left, right, size, into):
    """Two runs of `size` values at slots left and right of `level` -> one at `into`, a level higher."""
    i, j = 0, 0
    for at in range(2 * size):
        if j == size:
            take_left = True
        elif i == size:
            take_left = False
        else:
            x, y = runs[level, left + i], runs[level, right + j]
            take_left = x <= y or y != y
        if take_left:
            runs[level + 1, into + at] = runs[level, left + i]
            i += 1
        else:
            runs[level + 1, into + at] = runs[level, right + j]
            j += 1


@kernel
def update(column, runs, rings, keys, counts):
    """Rows [tail - counts[r], tail) of keys[r] are new. runs[0] is a copy of the column (level 0)."""
    for r in range(keys.size):
        k = keys[r]
        offset, mask = rings[k, OFFSET], rings[k, CAPACITY] - 1
        head, tail = rings[k, HEAD], rings[k, TAIL]
        for end in range(tail - counts[r] + 1, tail + 1):
            slot = offset + ((end - 1) & mask)
            runs[0, slot] = column[slot]
            half, level = 1, 0
            while end & half == 0 and end - 2 * half >= head and level + 1 < runs.shape[0]:
                start = offset + ((end - 2 * half) & mask)
                merge(runs, level, start, start + half, half, start)
                half *= 2
                level += 1


@kernel
def rebuild_level(runs, level, rings):
    """Fill a level that was just added, from the one below."""
    size = 1 << (level - 1)
    for k in range(rings.shape[0]):
        offset, mask = rings[k, OFFSET], rings[k, CAPACITY] - 1
        first = (rings[k, HEAD] + 2 * size - 1) >> level
        for block in range(first, rings[k, TAIL] >> level):
            start = offset + ((block << level) & mask)
            merge(runs, level - 1, start, start + size, size, start)


@kernel
def cover(ring, top, lo, hi, parts):
    """The runs that make up [lo, hi), no higher than level `top`: parts = their level and slots. Returns how many."""
    (offset, mask), (level_of, left, right) = ring, parts
    n, level = 0, 0
    while lo < hi:
        while level < top and (lo >> level) & 1 == 0 and lo + (2 << level) <= hi:
            level += 1
        while (lo >> level) << level != lo or lo + (1 << level) > hi:
            level -= 1
        level_of[n] = level
        left[n] = offset + (lo & mask)
        right[n] = left[n] + (1 << level)
        n += 1
        lo += 1 << level
    return n


@kernel
def below(row, left, right, x, or_equal):
    """How many of the sorted row[left:right] are < x (or <= x)."""
    start = left
    while left < right:
        mid = (left + right) >> 1
        v = row[mid]
        if v < x or (or_equal and v == x):
            left = mid + 1
        else:
            right = mid
    return left - start


@kernel
def select(runs, parts, n, k):
    """The k-th smallest (from 0) of the first n parts; how many are less, or no more than it, and k among what is left.

    Parts get narrower on the way: what is certainly less or more is cut off.
    """
    level_of, left, right = parts
    while True:
        widest = 0
        for i in range(1, n):
            if right[i] - left[i] > right[widest] - left[widest]:
                widest = i
        pivot = runs[level_of[widest], (left[widest] + right[widest]) >> 1]
        less, upto = 0, 0
        for i in range(n):
            row = runs[level_of[i]]
            less += below(row, left[i], right[i], pivot, False)
            upto += below(row, left[i], right[i], pivot, True)
        if k < less:
            for i in range(n):
                right[i] = left[i] + below(runs[level_of[i]], left[i], right[i], pivot, False)
        elif k >= upto:
            for i in range(n):
                left[i] += below(runs[level_of[i]], left[i], right[i], pivot, True)
            k -= upto
        else:
            return pivot, less, upto, k


@kernel
def lookup(runs, rings, keys, edges, ranks, out, after):
    """out[i, w] = the element of rank ranks[i, w] (from 0) in the positions edges[i, w]; after: the next one."""
    lo, hi = edges
    most = 2 * 64
    top = runs.shape[0] - 1
    level_of = np.empty(most, np.int64)
    left, right, ends = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    for i in range(keys.size):
        k = keys[i]
        offset, mask = rings[k, OFFSET], rings[k, CAPACITY] - 1
        for w in range(lo.shape[1]):
            a, b = lo[i, w], hi[i, w]
            if a >= b:
                continue
            while ((b - a) >> top) + 2 * top + 2 > left.size:  # levels may lag behind: more, shorter runs
                level_of = np.empty(2 * left.size, np.int64)
                left, right = np.empty(2 * left.size, np.int64), np.empty(2 * left.size, np.int64)
                ends = np.empty(left.size, np.int64)
            n = cover((offset, mask), top, a, b, (level_of, left, right))
            poisoned = False
            for j in range(n):
                ends[j] = right[j]
                last = runs[level_of[j], right[j] - 1]
                if last != last:
                    out[i, w], after[i, w], poisoned = last, last, True
            if poisoned:
                continue
            v, _, upto, rank = select(runs, (level_of, left, right), n, ranks[i, w])
            out[i, w] = v
            after[i, w] = v
            if rank + 1 >= upto and ranks[i, w] + 1 < b - a:
                found = False
                for j in range(n):
                    row = runs[level_of[j]]
                    at = left[j] + below(row, left[j], ends[j], v, True)
                    if at < ends[j] and (not found or row[at] < after[i, w]):
                        after[i, w] = row[at]
                        found = True
