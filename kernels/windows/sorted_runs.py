"""Sorted base intervals (B-INT-QNT): ranks of any window, and the element of any rank, from O(log W) sorted runs.

      runs[1]   | 1 1 2 3 … 9 9 |       runs[l] holds the column sorted within every block of 16 * 2^l rows;
      runs[0]   | 1 … 9 | 1 … 9 |       the run of positions [a, b) lies at the slots of its own positions
      column      9 3 …   5 1 …  7 2    blocks of fewer rows are not worth a run: they are looked through

needs   values that can be ordered; NaN sorts last
costs   update O(log Nmax) amortised, lookup O(log^2 W) where runs are alike, space O(Nmax log Nmax)
from    Arasu & Widom 2004, section 3.3

Queries with different quantiles share the runs. What was measured at 10,000 rows, on one core:

    searches without a branch       a third of the time: every second step of a search is mispredicted
    brackets (`narrow`)             3 or 4 rounds of searches in place of 13: two elements of the widest run, a bit to
                                    either side of where the rank should fall in it, hold the answer more often than
                                    not, and a hundredth of the rows. A single pivot halves them.
    blocks of 16 without runs       a third less to keep, updates in 75 ns rather than 120; of 32: no faster
    together                        1.0 us for a median, 0.8 for a 0.99-quantile, in place of 5.2 and 4.3
    windows alike (`ALIKE`)         20 windows of a key that differ by 10 rows: 1.7 to 1.9 times as many medians, 1.3
                                    times as many 0.99-quantiles (this kernel alone, one run in turns, a busy machine;
                                    NEAR of 4 and 6 were not told apart by more than that noise)
"""

from typing import NamedTuple

import numpy as np

from kernels.compile.inlining import bare
from kernels.compile.jit import kernel
from kernels.operators.numbers import unsigned
from kernels.rings.timeline import CAPACITY, HEAD, OFFSET, TAIL

RUN_BITS = 4
SHORTEST_RUN = 1 << RUN_BITS  # rows of a run of the lowest level
SORTED_BELOW = 32  # rows that are sorted rather than narrowed down
BRACKET = 1.5  # standard deviations of a rank; 1, 2 and 3 were slower
NARROW = 16  # rows of a run that are too few for a bracket
ALIKE = 64  # by how many rows two windows, or ranks, may differ for the answer of one to be looked for near the other's
NEAR = 4  # ranks to either side of it


class Parts(NamedTuple):
    """What a window is made of: runs, as their levels and slots; `less`, `upto`: where pivots fall in each."""

    level: np.ndarray
    left: np.ndarray
    right: np.ndarray
    less: np.ndarray
    upto: np.ndarray


@kernel
def sort_block(column, row, start):
    """The block of values at slot `start`, sorted, into the same slots of a row."""
    for i in range(start, start + SHORTEST_RUN):
        x = column[unsigned(i)]
        at = i
        while at > start and not (row[unsigned(at - 1)] <= x or x != x):
            row[unsigned(at)] = row[unsigned(at - 1)]
            at -= 1
        row[unsigned(at)] = x


@kernel
def merge(below, above, left, size):
    """Two runs of `size` values, one behind the other from slot `left` on, into one in their slots a level higher."""
    i, j, at = left, left + size, left
    middle, end = j, j + size
    while i < middle and j < end:
        x, y = below[unsigned(i)], below[unsigned(j)]
        first = x <= y or y != y
        above[unsigned(at)] = x if first else y
        i += first
        j += not first
        at += 1
    for rest in range(i, middle):
        above[unsigned(at + rest - i)] = below[unsigned(rest)]
    for rest in range(j, end):
        above[unsigned(at + rest - j)] = below[unsigned(rest)]


@kernel
def update(column, runs, rings, keys, counts):
    """Rows [tail - counts[r], tail) of keys[r] are new, or have changed."""
    for r in range(keys.size):
        k = keys[r]
        offset, mask = rings[k, OFFSET], rings[k, CAPACITY] - 1
        head, tail = rings[k, HEAD], rings[k, TAIL]
        for end in range((((tail - counts[r]) >> RUN_BITS) + 1) << RUN_BITS, tail + 1, SHORTEST_RUN):
            if end - SHORTEST_RUN < head or runs.shape[0] == 0:
                continue
            sort_block(column, runs[0], offset + ((end - SHORTEST_RUN) & mask))
            half, level = SHORTEST_RUN, 0
            while end & half == 0 and end - 2 * half >= head and level + 1 < runs.shape[0]:
                merge(runs[level], runs[level + 1], offset + ((end - 2 * half) & mask), half)
                half *= 2
                level += 1


@kernel
def rebuild_level(column, runs, level, rings):
    """Fill a level that was just added, from the one below."""
    size = SHORTEST_RUN << level
    for k in range(rings.shape[0]):
        offset, mask = rings[k, OFFSET], rings[k, CAPACITY] - 1
        first = -(-rings[k, HEAD] // size)
        for block in range(first, rings[k, TAIL] // size):
            start = offset + ((block * size) & mask)
            if level == 0:
                sort_block(column, runs[0], start)
            else:
                merge(runs[level - 1], runs[level], start, size >> 1)


@kernel
def blocks(lo, hi):
    """The positions of [lo, hi) that lie in whole blocks: from … to."""
    first = min(hi, -(-lo >> RUN_BITS << RUN_BITS))
    return first, max(first, hi >> RUN_BITS << RUN_BITS)


@kernel
def highest(lo, hi, level, top):
    """The level of the longest run that begins at `lo`, ends by `hi`, and is no higher than `top`; that of the run
    before it is a good guess."""
    while level < top and (lo >> (level + RUN_BITS)) & 1 == 0 and lo + (2 * SHORTEST_RUN << level) <= hi:
        level += 1
    while lo & ((SHORTEST_RUN << level) - 1) != 0 or lo + (SHORTEST_RUN << level) > hi:
        level -= 1
    return level


@kernel
def cover(ring, top, lo, hi, parts):
    """The runs that make up the whole blocks [lo, hi). Returns how many."""
    offset, mask = ring
    n, level = 0, 0
    while lo < hi:
        level = highest(lo, hi, level, top)
        parts.level[n] = level
        parts.left[n] = offset + (lo & mask)
        parts.right[n] = parts.left[n] + (SHORTEST_RUN << level)
        n += 1
        lo += SHORTEST_RUN << level
    return n


@kernel
def first_not_below(runs, level, left, right, x):
    """The first of the run at slots [left, right) of a level that is >= x, or right."""
    rows = right - left
    while rows > 0:
        half = (rows + 1) >> 1
        left += half * (runs[unsigned(level), unsigned(left + half - 1)] < x)
        rows -= half
    return left


@kernel
def first_above(runs, level, left, right, x):
    """The first of the run at slots [left, right) of a level that is > x, or right."""
    rows = right - left
    while rows > 0:
        half = (rows + 1) >> 1
        left += half * (runs[unsigned(level), unsigned(left + half - 1)] <= x)
        rows -= half
    return left


@kernel
def gather(column, ring, lo, hi, loose):
    """The rows of [lo, hi) that are in no whole block. Returns how many."""
    (offset, mask), m = ring, 0
    first, last = blocks(lo, hi)
    for p in range(lo, first):
        loose[unsigned(m)] = column[unsigned(offset + (p & mask))]
        m += 1
    for p in range(last, hi):
        loose[unsigned(m)] = column[unsigned(offset + (p & mask))]
        m += 1
    return m


@kernel
def bracket(runs, parts, n, loose, wanted, single, guess):
    """Two values, in order, between which the element of rank k of `total` rows should lie; or one, twice. guess: a
    value that should be near it, and is there one?"""
    (k, total), widest, rows = wanted, -1, 0
    for i in range(n):
        if parts.right[i] - parts.left[i] > rows:
            widest, rows = i, parts.right[i] - parts.left[i]
    if rows == 0:
        return loose[0], loose[0]
    level, left, share = unsigned(parts.level[widest]), parts.left[widest], 0.5 if single else k / total
    if guess[1]:
        middle = np.float64(first_not_below(runs, level, left, left + rows, guess[0]) - left)
        spread = NEAR * rows / total + 1.0
    else:
        middle = share * rows
        spread = 0.0 if single or rows < NARROW else BRACKET * np.sqrt(rows * share * (1.0 - share)) + 1.0
    a, b = max(np.int64(middle - spread), 0), min(np.int64(middle + spread), rows - 1)
    return runs[level, unsigned(left + a)], runs[level, unsigned(left + b)]


@kernel
def search(runs, parts, n, a, b):
    """Where a and b fall in every run; how many are less than a, and how many no more than b."""
    less, upto = 0, 0
    for i in range(n):
        level = parts.level[i]
        parts.less[i] = first_not_below(runs, level, parts.left[i], parts.right[i], a)
        parts.upto[i] = first_above(runs, level, parts.less[i], parts.right[i], b)
        less += parts.less[i] - parts.left[i]
        upto += parts.upto[i] - parts.left[i]
    return less, upto


@kernel
def search_near(runs, parts, n, a, b):
    """The same for values that are near each other: b is looked for from a on, in steps that double."""
    less, upto = 0, 0
    for i in range(n):
        level, right = parts.level[i], parts.right[i]
        at = first_not_below(runs, level, parts.left[i], right, a)
        parts.less[i], step = at, 1
        while at + step <= right and runs[unsigned(level), unsigned(at + step - 1)] <= b:
            at += step
            step *= 2
        parts.upto[i] = first_above(runs, level, at, min(at + step - 1, right), b)
        less += parts.less[i] - parts.left[i]
        upto += parts.upto[i] - parts.left[i]
    return less, upto


@kernel
def keep(parts, n, loose, m, bounds, side):
    """Go on with what is less than a (side < 0), more than b (side > 0), or neither. Returns how many loose rows."""
    (a, b), kept = bounds, 0
    for i in range(n):
        if side >= 0:
            parts.left[i] = parts.less[i] if side == 0 else parts.upto[i]
        if side <= 0:
            parts.right[i] = parts.upto[i] if side == 0 else parts.less[i]
    for i in range(m):
        x = loose[unsigned(i)]
        loose[unsigned(kept)] = x
        kept += (x < a) if side < 0 else (x > b) if side > 0 else ((x >= a) & (x <= b))
    return kept


@kernel
def sort_few(runs, parts, n, loose, m):
    """What is left of the runs, among the loose rows, in order. Returns how many they are."""
    for i in range(n):
        for j in range(parts.left[i], parts.right[i]):
            loose[unsigned(m)] = runs[unsigned(parts.level[i]), unsigned(j)]
            m += 1
    for i in range(1, m):
        x, at = loose[unsigned(i)], i
        while at > 0 and loose[unsigned(at - 1)] > x:
            loose[unsigned(at)] = loose[unsigned(at - 1)]
            at -= 1
        loose[unsigned(at)] = x
    return m


@kernel
def narrow(runs, parts, n, loose, m, wanted, guess):
    """The element of rank k (from 0) of `total` rows, in n runs and m loose rows; the next one, and is that known?

    In each round, what is certainly less or more is cut off. Where a bracket did not help, as of few different values,
    a single pivot will: it is the answer, or is cut off. guess: where to begin, as `bracket` has it.
    """
    (k, total), single, (near, guessed) = wanted, False, guess
    while total > SORTED_BELOW:
        before, bounds = total, bracket(runs, parts, n, loose, (k, total), single, (near, guessed))
        if guessed:
            less, upto = search_near(runs, parts, n, bounds[0], bounds[1])
        else:
            less, upto = search(runs, parts, n, bounds[0], bounds[1])
        for i in range(m):
            less += loose[unsigned(i)] < bounds[0]
            upto += loose[unsigned(i)] <= bounds[1]
        if less <= k < upto and bounds[0] == bounds[1]:
            return bounds[0], bounds[0], k + 1 < upto
        side = -1 if k < less else 1 if k >= upto else 0
        m = keep(parts, n, loose, m, bounds, side)
        if side < 0:
            total = less
        else:
            cut = upto if side > 0 else less
            total, k = (total if side > 0 else upto) - cut, k - cut
        single, guessed = 4 * total > 3 * before and not guessed, False
    m = sort_few(runs, parts, n, loose, m)
    return loose[unsigned(k)], loose[unsigned(min(k + 1, m - 1))], k + 1 < m


@kernel
def next_above(runs, parts, n, loose, m, x):
    """The least value of a window that is above x, which is not the largest."""
    found, least = False, x
    for i in range(n):
        level = parts.level[i]
        at = first_above(runs, level, parts.left[i], parts.right[i], x)
        if at < parts.right[i] and (not found or runs[level, at] < least):
            found, least = True, runs[level, at]
    for i in range(m):
        if loose[i] > x and (not found or loose[i] < least):
            found, least = True, loose[i]
    return least


@kernel
def any_nan(runs, parts, n, loose, m):
    found = False
    for i in range(n):
        last = runs[parts.level[i], parts.right[i] - 1]
        found |= last != last
    for i in range(m):
        found |= loose[i] != loose[i]
    return found


@kernel
def room(size):
    return Parts(np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64),
                 np.empty(size, np.int64), np.empty(size, np.int64))  # fmt: skip


@kernel
def lookup(sorted_column, rings, keys, edges, ranks, out, after):
    """out[i, w] = the element of rank ranks[i, w] (from 0) in the positions edges[i, w]; after: the next one.

    sorted_column: the column, and its runs. A window with a NaN gives that. `after` may be of no size: not asked for.
    References to arrays that are handed on are not counted, which saves a quarter of the time.
    """
    (column, runs), (lo, hi) = sorted_column, edges
    parts, loose = room(most_runs(lo, hi, runs.shape[0] - 1)), np.empty(2 * SHORTEST_RUN + SORTED_BELOW, column.dtype)
    own = Parts(bare(parts.level), bare(parts.left), bare(parts.right), bare(parts.less), bare(parts.upto))
    answers = bare(ranks), bare(out), bare(after)
    look_up((bare(column), bare(runs)), rings, keys, (bare(lo), bare(hi)), answers, own, bare(loose))
    return parts.level.size + loose.size  # both live until here


@kernel
def most_runs(lo, hi, top):
    """Of how many runs a window may be made; levels may lag behind, and then it is more, shorter ones."""
    most = 2 * 64
    for i in range(lo.shape[0]):
        for w in range(lo.shape[1]):
            most = max(most, (hi[i, w] - lo[i, w]) // (SHORTEST_RUN << max(top, 0)) + 2 * top + 2)
    return most


@kernel
def apart(edges, ranks, i, v, w):
    """By how much two windows of a key, and the ranks that are asked of them, differ."""
    lo, hi = edges
    return abs(lo[i, v] - lo[i, w]) + abs(hi[i, v] - hi[i, w]) + abs(ranks[i, v] - ranks[i, w])


@kernel
def look_up(sorted_column, rings, keys, edges, answers, parts, loose):
    """The windows of `lookup`, key by key: covered with sorted runs and loose rows, narrowed down to the rank."""
    (column, runs), (lo, hi), (ranks, out, after) = sorted_column, edges, answers
    top = runs.shape[0] - 1
    for i in range(keys.size):
        ring = rings[keys[i], OFFSET], rings[keys[i], CAPACITY] - 1
        v, answered = loose[0], -1  # the window that was answered last, and what was found there
        for w in range(lo.shape[1]):
            a, b = lo[i, w], hi[i, w]
            if a >= b:
                continue
            first, last = blocks(a, b)
            n, m = cover(ring, top, first, last, parts), gather(column, ring, a, b, loose)
            if any_nan(runs, parts, n, loose, m):
                out[i, w] = np.nan
                if after.size:
                    after[i, w] = np.nan
                continue
            alike = answered >= 0 and apart(edges, ranks, i, answered, w) <= ALIKE
            v, following, known = narrow(runs, parts, n, loose, m, (ranks[i, w], b - a), (v, alike))
            out[i, w], answered = v, w
            if after.size:
                if not known and ranks[i, w] + 1 < b - a:
                    n, m = cover(ring, top, first, last, parts), gather(column, ring, a, b, loose)
                    following = next_above(runs, parts, n, loose, m, v)
                after[i, w] = following
