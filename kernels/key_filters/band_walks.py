"""Walks through bands (kernels/key_filters/bands.py), and the cuts they make.

      before    |                band                 |          the walk wants what is right of x
                                         x
      after     |      band      |  band  |  band     |          cut below x, and half-way through what was in vain

costs   O(entries returned) amortised; a cut O(entries of the band), which the walk has looked at anyway
"""

import numpy as np

from kernels.compile.inlining import helper
from kernels.compile.jit import kernel
from kernels.key_filters.bands import (
    BANDS,
    CHUNK_WORDS,
    COUNT,
    ITEMS,
    LIVE,
    PILE,
    PILE_END,
    SPARE,
    band_of,
    free,
    push,
    tidy,
)
from kernels.operators.numbers import EARLIEST

VAIN_COMPARISONS = 16  # comparisons in vain that a walk takes without cutting


@helper
def walk(order, r, x, out):
    """out = the entries with time > x, in any order; how many, or (out holding anything) out.size + 1 if they do not
    fit.

    Cuts the band that x is in if comparing it was mostly in vain (and two chunks are spare to do it with).
    """
    cells, piles, rows = order
    found, last = 0, band_of(rows, r, x)
    for j in range(last):
        if rows[r, ITEMS + j] > 2 * rows[r, LIVE + j]:
            tidy(order, r, j)
        at, end = rows[r, PILE + j] * CHUNK_WORDS + 1, rows[r, PILE_END + j]
        stale = rows[r, ITEMS + j] > rows[r, LIVE + j]
        if found + rows[r, LIVE + j] > out.size:
            return out.size + 1
        while end > 0 and at != end:
            if at & (CHUNK_WORDS - 1) == 0:
                at = np.int64(piles[at - CHUNK_WORDS]) * CHUNK_WORDS + 1
            entry = np.int64(piles[at])
            if not stale or cells[entry, 1] == at:
                out[found] = entry
                found += 1
            at += 1
    if last > 0 and rows[r, last - 1] == x:
        return found
    return compare(order, r, last, x, out, found)


@helper
def compare(order, r, j, x, out, found):
    """The band that x is in, entry by entry."""
    cells, piles, rows = order
    vain, newest, oldest = 0, np.int64(EARLIEST), x
    at, end = rows[r, PILE + j] * CHUNK_WORDS + 1, rows[r, PILE_END + j]
    while end > 0 and at != end:
        if at & (CHUNK_WORDS - 1) == 0:
            at = np.int64(piles[at - CHUNK_WORDS]) * CHUNK_WORDS + 1
        entry = np.int64(piles[at])
        if cells[entry, 1] == at:
            t = cells[entry, 0]
            if t <= x:
                vain += 1
                newest, oldest = max(newest, t), min(oldest, t)
            elif found < out.size:
                out[found] = entry
                found += 1
            else:
                return out.size + 1
        at += 1
    if vain > VAIN_COMPARISONS + found and rows[0, SPARE] > 2:
        divide(order, r, newest, oldest, vain > 8 * (VAIN_COMPARISONS + found))
    return found


@kernel
def divide(order, r, newest, oldest, halve):
    """Cut below the times that a walk took, and (halve) once more between the newest and the oldest that it did not."""
    _, piles, rows = order
    cut(order, r, newest)
    middle = (newest >> 1) + (oldest >> 1) + (newest & oldest & 1)
    if halve and oldest < newest:
        cut(order, r, middle)
    newer, j = np.int64(0), 0
    while j + 1 < rows[r, COUNT]:
        if rows[r, LIVE + j] + rows[r, LIVE + j + 1] <= newer:
            join(piles, rows, r, j)
        else:
            newer += rows[r, LIVE + j]
            j += 1


@kernel
def cut(order, r, t):
    """The band of t becomes two, of the times above t and the others. Takes two spare chunks at most."""
    cells, piles, rows = order
    if rows[r, COUNT] == BANDS:
        join(piles, rows, r, least_needed(rows, r))
    j, last = band_of(rows, r, t), rows[r, COUNT] - 1
    chunk, end = rows[r, PILE + j], rows[r, PILE_END + j]
    for i in range(last, j - 1, -1):
        for column in (0, PILE, PILE_END, LIVE, ITEMS):
            rows[r, column + i + 1] = rows[r, column + i]
    rows[r, j] = t
    rows[r, COUNT] += 1
    for i in (j, j + 1):
        for column in (PILE, PILE_END, LIVE, ITEMS):
            rows[r, column + i] = 0
    moved = np.empty(CHUNK_WORDS, np.int64)
    while chunk > 0:
        n, after = 0, np.int64(piles[chunk * CHUNK_WORDS])
        for at in range(chunk * CHUNK_WORDS + 1, (chunk + 1) * CHUNK_WORDS if after > 0 else end):
            if cells[piles[at], 1] == at:
                moved[n] = piles[at]
                n += 1
        piles[chunk * CHUNK_WORDS] = 0
        free(piles, rows, chunk)
        for i in range(n):
            push(order, r, j + (cells[moved[i], 0] <= t), moved[i])
        chunk = after


@kernel
def least_needed(rows, r):
    """The band that, with the next older one, is smallest beside what is newer."""
    best, least, newer = 0, np.inf, VAIN_COMPARISONS
    for j in range(rows[r, COUNT] - 1):
        share = (rows[r, LIVE + j] + rows[r, LIVE + j + 1]) / newer
        if share < least:
            best, least = j, share
        newer += rows[r, LIVE + j]
    return best


@kernel
def join(piles, rows, r, j):
    """Bands j and j + 1 become one: the pile of the older one, then that of the newer."""
    end = rows[r, PILE_END + j + 1]
    if rows[r, PILE_END + j] == 0:
        rows[r, PILE + j], rows[r, PILE_END + j] = rows[r, PILE + j + 1], end
    elif end > 0:
        while end & (CHUNK_WORDS - 1) != 0:
            piles[end] = 0
            rows[r, ITEMS + j] += 1
            end += 1
        piles[end - CHUNK_WORDS] = rows[r, PILE + j]
        rows[r, PILE + j] = rows[r, PILE + j + 1]
    rows[r, LIVE + j] += rows[r, LIVE + j + 1]
    rows[r, ITEMS + j] += rows[r, ITEMS + j + 1]
    last = rows[r, COUNT] - 1
    rows[r, j] = rows[r, j + 1]
    for i in range(j + 1, last):
        for column in (0, PILE, PILE_END, LIVE, ITEMS):
            rows[r, column + i] = rows[r, column + i + 1]
    for column in (PILE, PILE_END, LIVE, ITEMS):
        rows[r, column + last] = 0
    rows[r, last] = EARLIEST
    rows[r, COUNT] = last
