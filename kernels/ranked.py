"""Sliding order statistics over stored events: a bitmap of the ranks in the window, and a cursor that follows a quantile.

      values   30 10 50 20 40        sorted once, so a value is its rank
      ranks     2  0  4  1  3
      window       [0  4  1]         bits  1 1 . . 1       cursor: a set bit, and how many are below it
                                           ^               one bit enters, one leaves: it moves a step or two

needs   values that can be ordered; windows in order
costs   enter, leave and step O(1) each (three levels of 64-bit words, each a summary of the one below), so about 25 ns per answer
        whatever the window; one sort of the rows
space   a bit and a rank per row

NaN sorts last: ranks from `numbers` on are NaN, counted apart. Far jumps cost the rows that enter and leave, no more.
"""

from typing import NamedTuple

import numpy as np
from numba.cpython.unsafe.numbers import leading_zeros, trailing_zeros
from numba.extending import overload

from kernels.jit import kernel

FROM, UPTO, AT, BELOW, NANS, NUMBERS = range(6)  # a cursor: its window, a rank in it, ranks below that, NaNs; all numbers
ONE, WORD = np.uint64(1), np.uint64(63)
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


class Ranking(NamedTuple):
    """Rows ranked by value, the set of those in the window, and a cursor into it.

    Rank r is bit r & 63 of low[r >> 6]; a bit of mid, top says that a word of the level below is not 0.
    """

    ranks: np.ndarray
    ordered: np.ndarray
    low: np.ndarray
    mid: np.ndarray
    top: np.ndarray
    cursor: np.ndarray


@kernel
def invert(order, ranks):
    for r in range(order.size):
        ranks[order[r]] = r


def rank(values):
    """The rank of each row, and the values by rank."""
    order = np.argsort(values)
    ranks = np.empty(values.size, np.int64)
    invert(order, ranks)
    return ranks, values[order]


def room(ranks, ordered):
    """Ranked rows, none of them in the window yet."""
    low, mid, top = (np.zeros((ranks.size >> shift) + 1, np.uint64) for shift in (6, 12, 18))
    return Ranking(ranks, ordered, low, mid, top, np.zeros(6, np.int64))


def empty(rows):
    """Back to before the first row."""
    for words in (rows.low, rows.mid, rows.top, rows.cursor):
        words[:] = 0
    ordered = rows.ordered
    rows.cursor[AT] = -1
    rows.cursor[NUMBERS] = np.searchsorted(ordered, np.inf, side="right") if ordered.dtype == np.float64 else ordered.size


def lowest(word):
    """The number of the lowest set bit."""
    word = int(word)
    return (word & -word).bit_length() - 1


def highest(word):
    """The number of the highest set bit."""
    return int(word).bit_length() - 1


@overload(lowest)
def _lowest(word):
    return lambda word: np.int64(trailing_zeros(word))


@overload(highest)
def _highest(word):
    return lambda word: np.int64(63) - np.int64(leading_zeros(word))


@kernel
def bit(i):
    return ONE << (np.uint64(i) & WORD)


@kernel
def enter(rows, r):
    rows.low[r >> 6] |= bit(r)
    rows.mid[r >> 12] |= bit(r >> 6)
    rows.top[r >> 18] |= bit(r >> 12)


@kernel
def leave(rows, r):
    rows.low[r >> 6] &= ~bit(r)
    if rows.low[r >> 6] == 0:
        rows.mid[r >> 12] &= ~bit(r >> 6)
        if rows.mid[r >> 12] == 0:
            rows.top[r >> 18] &= ~bit(r >> 12)


@kernel
def above(words, i):
    """The bits of i's word that are higher than i."""
    return words[i >> 6] & ((ALL << (np.uint64(i) & WORD)) << ONE)


@kernel
def beneath(words, i):
    """The bits of i's word that are lower than i."""
    return words[i >> 6] & ~(ALL << (np.uint64(i) & WORD))


@kernel
def following(rows, r):
    """The next rank in the set, or -1."""
    word = above(rows.low, r)
    if word == 0:
        r >>= 6
        word = above(rows.mid, r)
        if word == 0:
            r >>= 6
            word = above(rows.top, r)
            r >>= 6
            while word == 0:
                r += 1
                if r == rows.top.size:
                    return -1
                word = rows.top[r]
            r = (r << 6) + lowest(word)
            word = rows.mid[r]
        else:
            r >>= 6
        r = (r << 6) + lowest(word)
        word = rows.low[r]
    else:
        r >>= 6
    return (r << 6) + lowest(word)


@kernel
def preceding(rows, r):
    """The rank in the set before r, or -1."""
    word = beneath(rows.low, r)
    if word == 0:
        r >>= 6
        word = beneath(rows.mid, r)
        if word == 0:
            r >>= 6
            word = beneath(rows.top, r)
            r >>= 6
            while word == 0:
                r -= 1
                if r < 0:
                    return -1
                word = rows.top[r]
            r = (r << 6) + highest(word)
            word = rows.mid[r]
        else:
            r >>= 6
        r = (r << 6) + highest(word)
        word = rows.low[r]
    else:
        r >>= 6
    return (r << 6) + highest(word)


@kernel
def move(rows, lo, hi):
    """From the cursor's window to rows [lo, hi), neither edge before the old one."""
    cursor = rows.cursor
    at, below, nans, numbers = cursor[AT], cursor[BELOW], cursor[NANS], cursor[NUMBERS]
    for p in range(max(cursor[UPTO], lo), hi):
        r = rows.ranks[p]
        if r >= numbers:
            nans += 1
            continue
        enter(rows, r)
        if at < 0:
            at, below = r, 0
        else:
            below += r < at
    for p in range(cursor[FROM], min(lo, cursor[UPTO])):
        r = rows.ranks[p]
        if r >= numbers:
            nans -= 1
            continue
        leave(rows, r)
        below -= r < at
        if r == at:
            at = following(rows, r)
            if at < 0:
                at = preceding(rows, r)
                below -= 1
    cursor[FROM], cursor[UPTO], cursor[AT], cursor[BELOW], cursor[NANS] = lo, hi, at, below, nans


@kernel
def slide(rows, lo, hi, wanted, low, high):
    """low[i] = the element of rank wanted[i] (from 0) in rows [lo[i], hi[i]); high[i] the one after it, if `high` has room.

    A window with a NaN gives the last of all values, which is one. Empty windows are left alone.
    """
    cursor = rows.cursor
    for i in range(lo.size):
        if lo[i] >= hi[i]:
            continue
        move(rows, lo[i], hi[i])
        if cursor[NANS] > 0:
            low[i] = rows.ordered[-1]
            if high.size:
                high[i] = low[i]
            continue
        at, below = cursor[AT], cursor[BELOW]
        while below < wanted[i]:
            at = following(rows, at)
            below += 1
        while below > wanted[i]:
            at = preceding(rows, at)
            below -= 1
        cursor[AT], cursor[BELOW] = at, below
        low[i] = rows.ordered[at]
        if high.size:
            more = following(rows, at)
            high[i] = rows.ordered[at if more < 0 else more]
