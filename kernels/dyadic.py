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

from kernels.jit import kernel
from kernels.monoids import combine, lift, load, store
from kernels.timeline import CAPACITY, HEAD, OFFSET, TAIL


@kernel
def node(op, columns, state, offset, mask, start, level):
    """The partial of the base interval of 2^level rows from `start` on."""
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
def lookup(op, columns, state, rings, keys, lo, hi, out):
    """out[i, w] = the aggregate of positions [lo, hi)[i, w] of keys[i]; empty windows are left alone."""
    for i in range(keys.size):
        k = keys[i]
        offset, mask = rings[k, OFFSET], rings[k, CAPACITY] - 1
        for w in range(lo.shape[1]):
            a, b = lo[i, w], hi[i, w]
            if a >= b:
                continue
            level = 0
            acc = lift(op, columns, offset + (a & mask))
            a += 1
            while a < b:  # up to the largest interval that starts at a and fits, then down
                while (a >> level) & 1 == 0 and a + (2 << level) <= b:
                    level += 1
                while a + (1 << level) > b:
                    level -= 1
                acc = combine(op, acc, node(op, columns, state, offset, mask, a, level))
                a += 1 << level
            store(out, i * lo.shape[1] + w, acc)
