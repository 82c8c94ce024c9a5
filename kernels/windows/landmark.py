"""Landmark intervals (L-INT): a window is cut at the landmark inside it.

      lo ........ m ........ hi        m: a landmark, every `wmin` positions
      suffix[lo]     prefix[hi - 1]    answer = combine(suffix, prefix)

needs   an associative combine; wmin <= hi - lo < 2 wmin
costs   update O(1) amortised, lookup O(1), space 3 partials per kept row
from    Arasu & Widom 2004, section 3.1.2

A group is one such structure; wmin is 2^group, and windows whose widths are spread further take one group per power of
two. A group keeps rows as far back as its own windows reach, so groups of suffix windows are O(Nmax) together.

      suffix[p]   rows p .. the end of p's block
      prefix[p]   rows from the start of p's block .. p
      longer[p]   rows from the start of the block before .. p

Aggregates in wide blocks are put together from stretches of 2^11 rows, which costs two more combines per row: added up
row by row, four million times 0.1 is 3.7e-11 off, and sums are promised to 1e-12.

`sweep` is the same idea over stored events, where windows come in order: one landmark that moves on when the last
window has left it behind (van Herk; Gil & Werman), so a single pass serves any width with two combines per answer.
"""

import numpy as np

from kernels.compile.jit import kernel
from kernels.operators import compensated  # noqa: F401  (an operator to sweep with)
from kernels.operators.monoids import combine, lift, load, store
from kernels.operators.numbers import unsigned
from kernels.rings.timeline import CAPACITY, HEAD, OFFSET, TAIL

STRETCH = 11  # no aggregate of floats is more than a few times 2^STRETCH additions deep


@kernel
def update(op, columns, rings, group, state, own, keys, counts):
    """Rows [tail - counts[r], tail) of keys[r] are new. `rings`: where the columns are; `own`: where this group is."""
    prefix, longer, suffix = state
    for r in range(keys.size):
        k = keys[r]
        at, mask = rings[k, OFFSET], rings[k, CAPACITY] - 1
        offset, own_mask = own[k, OFFSET], own[k, CAPACITY] - 1
        head, tail = max(own[k, HEAD], rings[k, HEAD]), own[k, TAIL]  # the columns may have let go of more rows
        for p in range(max(head, tail - counts[r]), tail):
            slot = offset + (p & own_mask)
            block, stretch = p >> group << group, p >> STRETCH << STRETCH
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
            if p + 1 == block + (1 << group):
                look_back(op, columns, at, mask, suffix, (offset, own_mask), max(head, block), p)


@kernel
def look_back(op, columns, at, mask, suffix, place, first, last):
    """A block is complete: the aggregates from each of its kept rows, `first` on, to the `last`."""
    offset, own_mask = place
    run = lift(op, columns, at + (last & mask))
    store(suffix, offset + (last & own_mask), run)
    for p in range(last - 1, first - 1, -1):
        x = lift(op, columns, at + (p & mask))
        end = p | ((1 << STRETCH) - 1)
        run = x if p == end else combine(op, x, run)
        after = offset + ((end + 1) & own_mask)
        store(suffix, offset + (p & own_mask), run if end >= last else combine(op, run, load(suffix, after)))


@kernel
def lookup(op, group, state, own, keys, lo, hi, out):
    """out[i, w] = the aggregate of positions [lo, hi)[i, w] of keys[i], for the windows of this group."""
    prefix, longer, suffix = state
    for i in range(keys.size):
        k = keys[i]
        offset, mask = own[k, OFFSET], own[k, CAPACITY] - 1
        for w in range(lo.shape[1]):
            a, b = lo[i, w], hi[i, w]
            if (b - a) >> group != 1:
                continue
            m = ((a - 1) >> group) + 1  # the first landmark at or after a, counted in blocks
            last = offset + ((b - 1) & mask)
            acc = load(prefix, last) if (b - 1) >> group == m else load(longer, last)
            if m << group != a:
                acc = combine(op, load(suffix, offset + (a & mask)), acc)
            store(out, i * lo.shape[1] + w, acc)


@kernel
def sweep(op, columns, lo, hi, mark, scratch, out):
    """out[i] = the aggregate of rows [lo[i], hi[i]), both non-decreasing; empty windows are left alone.

    mark = landmark, first row in scratch, rows taken after the landmark: the state to go on with at the next call.
    scratch: partials, one per row of the longest window, and one more at its end: the running aggregate.
    """
    m, base, upto = mark[0], mark[1], mark[2]
    run, i = load(scratch, -1), 0
    while i < lo.size:
        a, b = lo[i], hi[i]
        if a < b and a >= m:
            look_ahead(op, columns, a, b, scratch)
            m, base, upto = b, a, b
        if a >= b or b == m:
            if a < b:
                store(out, i, load(scratch, unsigned(a - base)))
            i += 1
            continue
        if upto == m:
            run = lift(op, columns, unsigned(m))
            upto += 1
        while i < lo.size and lo[unsigned(i)] < m:  # the landmark is in the window: 1 ns faster as a loop of its own
            a, b = unsigned(lo[unsigned(i)]), hi[unsigned(i)]
            while upto < b:
                run = combine(op, run, lift(op, columns, unsigned(upto)))
                upto += 1
            if lo[unsigned(i)] < b:
                store(out, unsigned(i), combine(op, load(scratch, a - unsigned(base)), run))
            i += 1
    mark[0], mark[1], mark[2] = m, base, upto
    store(scratch, np.int64(-1), run)


@kernel
def look_ahead(op, columns, first, end, scratch):
    """scratch[p - first] = the aggregate of rows [p, end)."""
    acc = lift(op, columns, unsigned(end - 1))
    store(scratch, unsigned(end - 1 - first), acc)
    for p in range(end - 2, first - 1, -1):
        acc = combine(op, lift(op, columns, unsigned(p)), acc)
        store(scratch, unsigned(p - first), acc)
