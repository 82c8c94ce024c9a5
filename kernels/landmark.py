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

`sweep` is the same idea over stored events, where windows come in order: one landmark that moves on when the last window
has left it behind (van Herk; Gil & Werman), so a single pass serves any width with two combines per answer.
"""

import numpy as np

from kernels.jit import kernel
from kernels.monoids import combine, lift, load, store
from kernels.timeline import CAPACITY, HEAD, OFFSET, TAIL


@kernel
def update(op, columns, rings, group, state, own, keys, counts):
    """Rows [tail - counts[r], tail) of keys[r] are new. `rings`: where the columns are; `own`: where this group is."""
    prefix, longer, suffix = state
    for r in range(keys.size):
        k = keys[r]
        at, mask = rings[k, OFFSET], rings[k, CAPACITY] - 1
        offset, own_mask = own[k, OFFSET], own[k, CAPACITY] - 1
        head, tail = own[k, HEAD], own[k, TAIL]
        for p in range(max(head, tail - counts[r]), tail):
            slot = offset + (p & own_mask)
            x = lift(op, columns, at + (p & mask))
            into = p & ((1 << group) - 1)
            if p == head:
                store(prefix, slot, x)
                store(longer, slot, x)
            else:
                before = offset + ((p - 1) & own_mask)
                block = load(prefix, before)
                store(longer, slot, combine(op, block if into == 0 else load(longer, before), x))
                store(prefix, slot, x if into == 0 else combine(op, block, x))
            if into == (1 << group) - 1:
                store(suffix, slot, x)
                for q in range(p - 1, max(head, p - into) - 1, -1):
                    x = combine(op, lift(op, columns, at + (q & mask)), x)
                    store(suffix, offset + (q & own_mask), x)


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
    run = load(scratch, -1)
    for i in range(lo.size):
        a, b = lo[i], hi[i]
        if a >= b:
            continue
        if a >= m:
            acc = lift(op, columns, b - 1)
            store(scratch, b - 1 - a, acc)
            for p in range(b - 2, a - 1, -1):
                acc = combine(op, lift(op, columns, p), acc)
                store(scratch, p - a, acc)
            m, base, upto = b, a, b
            store(out, i, acc)
            continue
        if upto < b:
            if upto == m:
                run = lift(op, columns, m)
                upto += 1
            for p in range(upto, b):
                run = combine(op, run, lift(op, columns, p))
            upto = b
        if b > m:
            store(out, i, combine(op, load(scratch, a - base), run))
        else:
            store(out, i, load(scratch, a - base))
    mark[0], mark[1], mark[2] = m, base, upto
    store(scratch, np.int64(-1), run)
