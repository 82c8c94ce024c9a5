"""Landmark intervals (L-INT): a window is cut at the landmark inside it.

      lo ........ m ........ hi        m: a landmark, every `wmin` positions
      suffix[lo]     prefix[hi - 1]    answer = combine(suffix, prefix)

needs   an associative combine; wmin <= hi - lo < 2 wmin
costs   update O(1) amortised, lookup O(1), space 3 partials per kept row
from    Arasu & Widom 2004, section 3.1.2

A group is one such structure, for a cluster of widths; windows whose widths are spread further take several, each for
widths up to twice its own wmin. A group keeps rows as far back as its own windows reach, so groups of suffix windows
are O(Nmax) together.

      suffix[p]   rows p .. the end of p's block
      prefix[p]   rows from the start of p's block .. p
      longer[p]   rows from the start of the block before .. p

Aggregates in wide blocks are put together from stretches of 2^11 rows, which costs two more combines per row: added up
row by row, four million times 0.1 is 3.7e-11 off, and sums are promised to 1e-12.

The same idea over stored events is kernels/stored/moving_landmark.py.
"""

from typing import Any, NamedTuple

import numpy as np

from kernels.compile.jit import kernel
from kernels.operators.monoids import combine, lift, load, store
from kernels.rings.timeline import CAPACITY, HEAD, OFFSET, TAIL

STRETCH_BITS = 11  # no aggregate of floats is more than a few times 2^STRETCH_BITS additions deep


class Landmarks(NamedTuple):
    """The landmark intervals of windows of wmin to 2 wmin - 1 rows: three partials per row, in own rings."""

    wmin: int
    prefix: Any
    longer: Any
    suffix: Any
    rings: np.ndarray


@kernel
def update(op, columns, rings, group, keys, counts):
    """Rows [tail - counts[r], tail) of keys[r] are new. `rings`: where the columns are."""
    wmin, prefix, longer, suffix, own = group
    for r in range(keys.size):
        k = keys[r]
        at, mask = rings[k, OFFSET], rings[k, CAPACITY] - 1
        offset, own_mask = own[k, OFFSET], own[k, CAPACITY] - 1
        head, tail = max(own[k, HEAD], rings[k, HEAD]), own[k, TAIL]  # the columns may have let go of more rows
        first = max(head, tail - counts[r])
        block = first - first % wmin
        for p in range(first, tail):
            slot = offset + (p & own_mask)
            if p - block == wmin:
                block = p
            stretch = p >> STRETCH_BITS << STRETCH_BITS
            run = lift(op, columns, at + (p & mask))
            if p > max(head, block, stretch):
                run = combine(op, load(suffix, offset + ((p - 1) & own_mask)), run)
            store(suffix, slot, run)  # until the block is complete: the rows of its stretch so far
            if stretch > max(head, block):
                run = combine(op, load(prefix, offset + ((stretch - 1) & own_mask)), run)
            store(prefix, slot, run)
            if block > head:
                run = combine(op, load(prefix, offset + ((block - 1) & own_mask)), run)
            store(longer, slot, run)
            if p + 1 == block + wmin:
                look_back(op, columns, (at, mask), suffix, (offset, own_mask), max(head, block), p)


@kernel
def look_back(op, columns, ring, suffix, own, first, last):
    """A block is complete: the aggregates from each of its kept rows, `first` on, to the `last`.

    ring, own = where the key's rows are, and where its partials are: offset, mask.
    """
    (at, mask), (offset, own_mask) = ring, own
    run = lift(op, columns, at + (last & mask))
    store(suffix, offset + (last & own_mask), run)
    for p in range(last - 1, first - 1, -1):
        x = lift(op, columns, at + (p & mask))
        end = p | ((1 << STRETCH_BITS) - 1)
        run = x if p == end else combine(op, x, run)
        after = offset + ((end + 1) & own_mask)
        store(suffix, offset + (p & own_mask), run if end >= last else combine(op, run, load(suffix, after)))


@kernel
def lookup(op, group, keys, edges, out):
    """out[i, w] (flat) = the aggregate of the positions in edges[i, w] of keys[i], for the windows of this group.

    Landmarks are counted by a product, that of a number a bit too small, as it takes 0.4 ns less than to divide.
    """
    (wmin, prefix, longer, suffix, own), (lo, hi) = group, edges
    blocks = (1 - 1e-15) / wmin  # per row
    for i in range(keys.size):
        k = keys[i]
        offset, mask = own[k, OFFSET], own[k, CAPACITY] - 1
        for w in range(lo.shape[1]):
            a, b = lo[i, w], hi[i, w]
            if np.uint64(b - a - wmin) >= np.uint64(wmin):  # those that are shorter wrap to a large number
                continue
            m = np.int64(a * blocks) * wmin  # the last landmark before a, or the one before that
            m += wmin if m < a else 0
            m += wmin if m < a else 0  # the first at or after a
            last = offset + ((b - 1) & mask)
            acc = load(prefix, last) if b - m <= wmin else load(longer, last)
            if m != a:
                acc = combine(op, load(suffix, offset + (a & mask)), acc)
            store(out, i * lo.shape[1] + w, acc)
