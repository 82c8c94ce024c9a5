"""Base intervals (B-INT): a window is put together from O(log W) dyadic intervals.

      level 2   |---------------|               in one array, in order: position c = 2^(l-1) * odd
      level 1   |-------|-------|-------|       holds the aggregate of its level-l interval
      level 0   |---|---|---|---|---|---|                 [c - 2^(l-1), c + 2^(l-1))
                                                level 0 is the column itself

needs   an associative combine, in stream order
costs   update O(1) amortised, lookup O(log W), space O(Nmax): one partial per kept row
from    Arasu & Widom 2004, section 3.1.1 (whose level arrays are interleaved here, so that a ring that grows is copied
        like any column)

Intervals that begin before the ring's head are never completed and never asked for.
"""

from kernels.compile.jit import kernel
from kernels.operators.monoids import combine, lift, load, store
from kernels.rings.timeline import CAPACITY, HEAD, OFFSET, TAIL


@kernel
def node(op, columns, state, offset, mask, start, level):
    """The partial of the base interval of 2^level rows from `start` on.

    The level, rather than the size, is what LLVM makes fast code of: updates took seven times as long by sizes.
    """
    if level == 0:
        return lift(op, columns, offset + (start & mask))
    return load(state, offset + ((start + (1 << (level - 1))) & mask))


@kernel
def update(op, columns, state, rings, keys, counts):
    """Rows [tail - counts[r], tail) of keys[r] are new: complete the intervals that end with them."""
    for r in range(keys.size):
        k = keys[r]
        offset, mask = rings[k, OFFSET], rings[k, CAPACITY] - 1
        head, tail = rings[k, HEAD], rings[k, TAIL]
        for end in range(tail - counts[r] + 1, tail + 1):
            half, level = 1, 0
            while end & half == 0 and end - 2 * half >= head:
                left = node(op, columns, state, offset, mask, end - 2 * half, level)
                right = node(op, columns, state, offset, mask, end - half, level)
                store(state, offset + ((end - half) & mask), combine(op, left, right))
                half *= 2
                level += 1


@kernel
def lookup(op, columns, state, rings, keys, edges, out):
    """out[i, w] (flat) = the aggregate of the positions in edges[i, w] of keys[i]; empty windows are left alone.

    Intervals grow from the left end, then shrink towards the right end; walking the right ones from the end needs no
    search for the next size. Both loops run over the intervals used, so a lookup mispredicts a handful of branches:
    five times faster than stepping through the levels and asking at each whether it is used.
    """
    lo, hi = edges
    for i in range(keys.size):
        k = keys[i]
        offset, mask = rings[k, OFFSET], rings[k, CAPACITY] - 1
        for w in range(lo.shape[1]):
            a, b = lo[i, w], hi[i, w]
            if a >= b:
                continue
            acc = lift(op, columns, offset + (a & mask))
            if b - a > 1:
                last = lift(op, columns, offset + ((b - 1) & mask))
                acc = combine(op, acc, between(op, columns, state, (offset, mask), a + 1, b - 1, last))
            store(out, i * lo.shape[1] + w, acc)


@kernel
def between(op, columns, state, ring, a, b, last):
    """The partial of rows [a, b) followed by `last`."""
    offset, mask = ring
    right = last
    if b & 1 and a < b:
        b -= 1
        right = combine(op, lift(op, columns, offset + (b & mask)), right)
    left = right
    some = False
    if a & 1 and a < b:
        left = lift(op, columns, offset + (a & mask))
        some = True
        a += 1
    size = a & -a
    while size != 0 and a + size <= b:
        x = load(state, offset + ((a + (size >> 1)) & mask))
        left = combine(op, left, x) if some else x
        some = True
        a += size
        size = a & -a
    while a < b:
        size = b & -b
        b -= size
        right = combine(op, load(state, offset + ((b + (size >> 1)) & mask)), right)
    return combine(op, left, right) if some else right
