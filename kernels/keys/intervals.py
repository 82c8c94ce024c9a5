"""Which of many intervals hold a value: a tree over the ends of all intervals, whose nodes list who covers them.

      ends         10    20    35           of the intervals of one column, in order
      codes      0  1  2  3  4  5  6        2i + 1: equal to end i; the even ones lie between

      node 1     |-----------------|        x > 10 is the codes 2 .. 6: it is listed by the few nodes that cover these,
      node 2, 3  |-------||--------|        x = 20 by the leaf of code 3 alone. Whoever holds a code is on the way
      leaves     0  1  2  3  4  5  6        from its leaf to the root.

needs   a value per row as its code; -1 where it is null or NaN, which no interval holds
costs   O(log ends + rules that hold it) per row; O(log ends) places for a range, one for an equality
"""

from typing import NamedTuple

import numpy as np

from kernels.compile.jit import kernel


class IntervalTree(NamedTuple):
    """The trees of all columns, one behind the other. leaves[c], first[c]: of column c, how many leaves it has (a power
    of two, 0: no tree) and where its nodes are. Node n lists the rules listed[starts[n]:starts[n + 1]]."""

    leaves: np.ndarray
    first: np.ndarray
    starts: np.ndarray
    listed: np.ndarray


class Further(NamedTuple):
    """What a rule asks of other columns: entries starts[r] .. starts[r + 1] are a column, and the codes low to high."""

    starts: np.ndarray
    column: np.ndarray
    low: np.ndarray
    high: np.ndarray


@kernel
def code(values, valid, ends, codes):
    """codes[e]: the place of each value among the ends, which increase. valid: of each value, or empty (all are)."""
    for e in range(values.size):
        v = values[e]
        if v != v or (valid.size and not valid[e]):
            codes[e] = -1
            continue
        at, size = 0, ends.size
        while size > 0:
            half = (size + 1) >> 1
            at += half * (ends[at + half - 1] < v)
            size -= half
        codes[e] = 2 * at + (at < ends.size and ends[at] == v)


@kernel
def cover(low, high, leaves, nodes):
    """nodes[:n]: the fewest nodes of a tree that make up the leaves low to high. Returns n."""
    n = 0
    a, b = low + leaves, high + leaves + 1
    while a < b:
        if a & 1:
            nodes[n] = a
            n += 1
            a += 1
        if b & 1:
            b -= 1
            nodes[n] = b
            n += 1
        a >>= 1
        b >>= 1
    return n


@kernel
def holds(further, codes, rule, e):
    """Does row e satisfy what a rule asks of other columns?"""
    for j in range(further.starts[rule], further.starts[rule + 1]):
        found = codes[further.column[j], e]
        if found < further.low[j] or found > further.high[j]:
            return False
    return True


@kernel
def stab(codes, tree, further, rows, rules):
    """rows[:n], rules[:n]: every row with every rule that holds it, rows in order. Returns n, which may be more than
    there is room for: then the rest is missing. codes[c, e]: of row e in column c."""
    n = 0
    for e in range(codes.shape[1]):
        for c in range(codes.shape[0]):
            if tree.leaves[c] == 0 or codes[c, e] < 0:
                continue
            node = tree.leaves[c] + codes[c, e]
            while node > 0:
                at = tree.first[c] + node
                for j in range(tree.starts[at], tree.starts[at + 1]):
                    if holds(further, codes, tree.listed[j], e):
                        if n < rows.size:
                            rows[n] = e
                            rules[n] = tree.listed[j]
                        n += 1
                node >>= 1
    return n
