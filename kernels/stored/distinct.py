"""Distinct values and modes of stored events, swept: each row knows those before and after it of its own value.

      rows         0  1  2  3  4  5       a row that enters [lo, hi) is new if the one before it lies before lo;
      value        a  b  a  c  a  b       one that leaves was the last of its value if the one after it lies behind hi
      previous    -1 -1  0 -1  2  1
      following    2  5  4  …  …  …

Rows of all keys are linked through: a row of another key is never in the same window.

needs   windows in order
costs   distinct O(1) per answer and row that enters or leaves; mode O(log D) of D different values
"""

from typing import NamedTuple

import numpy as np

from kernels.compile.jit import kernel
from kernels.operators.numbers import unsigned

FROM, UPTO, COUNT = range(3)  # a cursor: the window, and how many values it holds


class Linked(NamedTuple):
    """Rows by the numbers of their values, each with those before and after it."""

    ids: np.ndarray
    previous: np.ndarray
    following: np.ndarray


class Contest(NamedTuple):
    """Of every value how often it is in the window, and its first row there; a tree of who has the most."""

    seen: np.ndarray
    first: np.ndarray
    winners: np.ndarray
    cursor: np.ndarray


@kernel
def link(ids, last, previous, following):
    """last: -1 for each value."""
    for p in range(ids.size):
        before = last[unsigned(ids[p])]
        previous[p] = before
        following[p] = ids.size
        if before >= 0:
            following[before] = p
        last[unsigned(ids[p])] = p


@kernel
def slide(linked, cursor, lo, hi, out):
    """out[i] = how many different values rows [lo[i], hi[i]) hold."""
    previous, following = linked.previous, linked.following
    left, right, n = cursor[FROM], cursor[UPTO], cursor[COUNT]
    for i in range(lo.size):
        a, b = lo[i], hi[i]
        if a >= b:
            out[i] = 0
            continue
        if a >= right:
            left, right, n = a, a, 0
        for p in range(right, b):
            n += previous[unsigned(p)] < left
        for p in range(left, a):
            n -= following[unsigned(p)] >= b
        left, right = a, b
        out[i] = n
    cursor[FROM], cursor[UPTO], cursor[COUNT] = left, right, n


def contest(values):
    """A contest of so many values, none of which is in the window yet."""
    size = 1 << max(0, int(values - 1).bit_length())
    winners = np.empty(2 * size, np.int64)
    winners[size:] = np.arange(size)
    for level in range(size.bit_length() - 1, 0, -1):  # whoever is first, of those with the same
        winners[1 << (level - 1) : 1 << level] = winners[1 << level : 2 << level : 2]
    return Contest(np.zeros(size, np.int64), np.zeros(size, np.int64), winners, np.zeros(2, np.int64))


@kernel
def replay(seen, first, winners, v):
    """Value v is more or less frequent than it was, or begins elsewhere."""
    at = (winners.size >> 1) + v
    while at > 1:
        at >>= 1
        x, y = winners[unsigned(2 * at)], winners[unsigned(2 * at + 1)]
        later = seen[y] > seen[x] or (seen[y] == seen[x] and first[y] < first[x])
        winners[unsigned(at)] = y if later else x


@kernel
def slide_mode(linked, state, lo, hi, out):
    """out[i] = the first row of the most frequent value of rows [lo[i], hi[i]); of several, of that which is first."""
    (ids, _, following), (seen, first, winners, cursor) = linked, state
    left, right = cursor[FROM], cursor[UPTO]
    for i in range(lo.size):
        if lo[i] >= hi[i]:
            continue
        for p in range(left, min(right, lo[i])):
            v = ids[p]
            seen[v] -= 1
            first[v] = following[p]
            replay(seen, first, winners, v)
        for p in range(max(right, lo[i]), hi[i]):
            v = ids[p]
            if seen[v] == 0:
                first[v] = p
            seen[v] += 1
            replay(seen, first, winners, v)
        left, right = lo[i], hi[i]
        out[i] = first[winners[1]]
    cursor[FROM], cursor[UPTO] = left, right
