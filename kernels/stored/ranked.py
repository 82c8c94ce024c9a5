"""Sliding order statistics over stored events: a bitmap of the ranks in the window, a cursor that follows a quantile.

      values   30 10 50 20 40        sorted once, so a value is its rank
      ranks     2  0  4  1  3
      window       [0  4  1]         bits  1 1 . . 1       cursor: a set bit, and how many are below it
                                           ^               one bit enters, one leaves: it moves a step or two

needs   values that can be ordered; windows in order
costs   enter, leave and step O(1) each, so 20 to 35 ns per answer whatever the window; one sort of the rows
space   a bit and a rank per row

The bitmap has three levels in one array of 64-bit words: a bit of the middle or top one says that a word of the level
below is not 0. (Three arrays in a named tuple, handed from function to function, took 70 to 100 ns per answer.) NaN
sorts last: ranks from `numbers` on are NaN, counted apart. A far jump costs the rows that enter and leave.
"""

from typing import NamedTuple

import numpy as np

from kernels.compile.jit import kernel
from kernels.operators.numbers import highest, lowest, unsigned

FROM, UPTO, AT, BELOW, NANS, NUMBERS, MID, TOP = range(
    8
)  # a cursor: window, rank it is at, rows below, NaNs; then constants
ZERO, ONE, SIX, LAST_BIT = np.uint64(0), np.uint64(1), np.uint64(6), np.uint64(63)
ALL_BITS = np.uint64(0xFFFFFFFFFFFFFFFF)


class Ranking(NamedTuple):
    """Rows ranked by value, the set of those in the window, and a cursor into it."""

    ranks: np.ndarray
    ordered: np.ndarray
    words: np.ndarray
    cursor: np.ndarray


@kernel
def invert(order, ranks):
    for r in range(order.size):
        ranks[unsigned(order[r])] = r


def rank(values):
    """The rank of each row, and the values by rank."""
    order = np.argsort(values)
    ranks = np.empty(values.size, np.int64)
    invert(order, ranks)
    return ranks, values[order]


def room(ranks, ordered):
    """Ranked rows, none of them in the window yet."""
    low, mid, top = ((ranks.size >> shift) + 1 for shift in (6, 12, 18))
    numbers = np.searchsorted(ordered, np.inf, side="right") if ordered.dtype == np.float64 else ordered.size
    cursor = np.array([0, 0, -1, 0, 0, numbers, low, low + mid])
    return Ranking(ranks, ordered, np.zeros(low + mid + top, np.uint64), cursor)


def empty(rows):
    """Back to before the first row."""
    rows.words[:] = 0
    rows.cursor[:NUMBERS] = 0, 0, -1, 0, 0


@kernel
def enter(words, mid, top, r):
    w = r >> SIX
    v = w >> SIX
    words[w] |= ONE << (r & LAST_BIT)
    words[mid + v] |= ONE << (w & LAST_BIT)
    words[top + (v >> SIX)] |= ONE << (v & LAST_BIT)


@kernel
def leave(words, mid, top, r):
    w = r >> SIX
    words[w] &= ~(ONE << (r & LAST_BIT))
    if words[w] == ZERO:
        v = w >> SIX
        words[mid + v] &= ~(ONE << (w & LAST_BIT))
        if words[mid + v] == ZERO:
            words[top + (v >> SIX)] &= ~(ONE << (v & LAST_BIT))


@kernel
def above(words, level, i):
    """The bits of i's word that are higher than i."""
    return words[level + (i >> SIX)] & ((ALL_BITS << (i & LAST_BIT)) << ONE)


@kernel
def beneath(words, level, i):
    """The bits of i's word that are lower than i."""
    return words[level + (i >> SIX)] & ~(ALL_BITS << (i & LAST_BIT))


@kernel
def following(words, mid, top, r):
    """The next rank in the set, or -1."""
    word, w = above(words, ZERO, r), r >> SIX
    if word == ZERO:
        word, v = above(words, mid, w), w >> SIX
        if word == ZERO:
            word, u = above(words, top, v), v >> SIX
            while word == ZERO:
                u += ONE
                if top + u == np.uint64(words.size):
                    return np.int64(-1)
                word = words[top + u]
            v = (u << SIX) + lowest(word)
            word = words[mid + v]
        w = (v << SIX) + lowest(word)
        word = words[w]
    return np.int64((w << SIX) + lowest(word))


@kernel
def preceding(words, mid, top, r):
    """The rank in the set before r, or -1."""
    word, w = beneath(words, ZERO, r), r >> SIX
    if word == ZERO:
        word, v = beneath(words, mid, w), w >> SIX
        if word == ZERO:
            word, u = beneath(words, top, v), v >> SIX
            while word == ZERO:
                if u == ZERO:
                    return np.int64(-1)
                u -= ONE
                word = words[top + u]
            v = (u << SIX) + highest(word)
            word = words[mid + v]
        w = (v << SIX) + highest(word)
        word = words[w]
    return np.int64((w << SIX) + highest(word))


@kernel
def slide(rows, lo, hi, wanted, low, high):
    """low[i] = the element of rank wanted[i] (from 0) in rows [lo[i], hi[i]); high[i] the next one, if `high` has room.

    A window with a NaN gives the last of all values, which is one. Empty windows are left alone.
    (In one piece: with the loops over rows as functions of their own an answer takes twice as long.)
    """
    ranks, ordered, words, cursor = rows
    left, right, at, below, nans = cursor[FROM], cursor[UPTO], cursor[AT], cursor[BELOW], cursor[NANS]
    mid, top, numbers = unsigned(cursor[MID]), unsigned(cursor[TOP]), cursor[NUMBERS]
    for i in range(lo.size):
        if lo[i] >= hi[i]:
            continue
        for p in range(max(right, lo[i]), hi[i]):
            r = ranks[unsigned(p)]
            if r >= numbers:
                nans += 1
                continue
            enter(words, mid, top, unsigned(r))
            if at < 0:
                at, below = r, 0
            below += r < at
        for p in range(left, min(right, lo[i])):
            r = ranks[unsigned(p)]
            if r >= numbers:
                nans -= 1
                continue
            leave(words, mid, top, unsigned(r))
            below -= r < at
            if r == at:  # the cursor's own row: on to the next one, or back if it was the last
                at = following(words, mid, top, unsigned(r))
                if at < 0:
                    at = preceding(words, mid, top, unsigned(r))
                    below -= 1
        left, right = lo[i], hi[i]
        if nans > 0:
            low[i] = ordered[-1]
        else:
            while below < wanted[i]:
                at = following(words, mid, top, unsigned(at))
                below += 1
            while below > wanted[i]:
                at = preceding(words, mid, top, unsigned(at))
                below -= 1
            low[i] = ordered[unsigned(at)]
        if high.size:
            more = following(words, mid, top, unsigned(at)) if nans == 0 else -1
            high[i] = ordered[more] if more >= 0 else low[i]
    cursor[FROM], cursor[UPTO], cursor[AT], cursor[BELOW], cursor[NANS] = left, right, at, below, nans
