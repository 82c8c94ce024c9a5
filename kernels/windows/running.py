"""Running intervals (R-INT): a window is the difference of two running aggregates.

      1 ............ lo ............ hi
      |-- run[lo] --|
      |---------- run[hi] ----------|        answer = run[hi] - run[lo]

needs   an aggregate that can be taken off again
costs   update O(1), lookup O(1), space O(Nmax)
from    Arasu & Widom 2004, section 3.2

Entry p holds the aggregate of the rows before p; the one after the last row is kept per key (`total`), so that a full
ring never has to hold one entry more than it has slots.

Integers wrap and come back: exact. Floats do not, so their running sums are double-doubles (106 bits) at every 4th
position; the up to three rows at either end are added one by one. Every answer is certified: the rounding errors that
two running sums do not share are below rows * |run[lo]| * 2^-103, and where that is not 1e-12 of the answer or less
(a 1e300 has passed, a NaN, or the window cancels to nothing) the window's own rows are added up instead. So an answer
depends on the rows in its window alone, and the planner is told how often the shortcut did not hold.
Tried: a pair hi + lo without renormalisation is four times faster to build, and wrong after a 1e18.
"""

import numpy as np

from kernels.compile.jit import kernel
from kernels.operators.monoids import combine, invert, lift, load, store
from kernels.operators.numbers import minus, plus, two_sum
from kernels.rings.timeline import CAPACITY, HEAD, OFFSET, TAIL

STRIDE = 2  # float sums keep a running sum every 2^STRIDE positions
UNCERTAIN = 1e-19  # 2^-103 / 1e-12
BEFORE = np.array(
    [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0], [0.0, 0.0, 1.0]]
)  # rows 1, 2, 3 of a group, from a on
AFTER = np.array(
    [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0]]
)  # rows 0, 1, 2 of a group, before b


@kernel
def update(op, columns, state, total, rings, keys, counts):
    """Rows [tail - counts[r], tail) of keys[r] are new."""
    for r in range(keys.size):
        k = keys[r]
        offset, mask, tail = rings[k, OFFSET], rings[k, CAPACITY] - 1, rings[k, TAIL]
        run = load(total, k)
        for p in range(tail - counts[r], tail):
            slot = offset + (p & mask)
            store(state, slot, run)
            run = combine(op, run, lift(op, columns, slot))
        store(total, k, run)


@kernel
def lookup(op, state, total, rings, keys, edges, out):
    """out[i, w] (flat) = the aggregate of the positions in edges[i, w] of keys[i]."""
    lo, hi = edges
    for i in range(keys.size):
        k = keys[i]
        offset, mask, tail = rings[k, OFFSET], rings[k, CAPACITY] - 1, rings[k, TAIL]
        for w in range(lo.shape[1]):
            a, b = lo[i, w], hi[i, w]
            if a < b:
                upto_b = load(total, k) if b == tail else load(state, offset + (b & mask))
                store(out, i * lo.shape[1] + w, invert(op, upto_b, load(state, offset + (a & mask))))


@kernel
def add_up(column, offset, mask, lo, hi):
    """The sum of a few or many rows by itself, compensated (Neumaier)."""
    s, c = 0.0, 0.0
    for p in range(lo, hi):
        s, e = two_sum(s, column[offset + (p & mask)])
        c += e
    return s + c if np.isfinite(s) else s


@kernel
def add_up_each(column, rings, keys, edges, out):
    """out[i, w] (flat) = the float sum of each window, row by row: to tell whether an integer sum has wrapped."""
    lo, hi = edges
    for i in range(keys.size):
        k = keys[i]
        for w in range(lo.shape[1]):
            out[i * lo.shape[1] + w] = add_up(column, rings[k, OFFSET], rings[k, CAPACITY] - 1, lo[i, w], hi[i, w])


@kernel
def update_floats(column, run, total, rings, keys, counts):
    """run, total: double-doubles, kept as complex numbers (hi + lo i) so that one is read at once."""
    group = 1 << STRIDE
    for r in range(keys.size):
        k = keys[r]
        offset, mask, tail = rings[k, OFFSET], rings[k, CAPACITY] - 1, rings[k, TAIL]
        head, hi, lo = rings[k, HEAD], total[k].real, total[k].imag
        for p in range(tail - counts[r], tail):
            slot = offset + (p & mask)
            at = p & (group - 1)
            if at == 0:
                run[slot >> STRIDE] = complex(hi, lo)
            elif at == group - 1 and p - at >= head:  # the group is complete, and lies together
                hi, lo = plus(hi, lo, (column[slot - 3] + column[slot - 2]) + (column[slot - 1] + column[slot]))
        total[k] = complex(hi, lo)


@kernel
def lookup_floats(column, run, total, rings, keys, edges, out):
    """out[i, w] (flat) = the sum of the positions in edges[i, w] of keys[i]; returns how many were added up by rows.

    The 0 to 3 rows at either end are weighted by 0 or 1 rather than chosen: branches cost three times as much here. A
    NaN or inf times 0 spoils the sum, which is then not certain, and added up by itself.
    """
    lo, hi = edges
    uncertain = 0
    for i in range(keys.size):
        k = keys[i]
        offset, mask, tail = rings[k, OFFSET], rings[k, CAPACITY] - 1, rings[k, TAIL]
        for w in range(lo.shape[1]):
            a, b = lo[i, w], hi[i, w]
            start, end = (a + 3) & -4, b & -4
            base, s = 0.0, np.nan
            if start < end:
                since = run[(offset + (start & mask)) >> STRIDE]
                upto = total[k] if end == tail else run[(offset + (end & mask)) >> STRIDE]
                x, y = offset + ((a & -4) & mask), offset + (end & mask)
                f, g = a & 3, b & 3
                s = minus(upto.real, upto.imag, since.real, since.imag)
                s += column[x + 1] * BEFORE[f, 0] + column[x + 2] * BEFORE[f, 1] + column[x + 3] * BEFORE[f, 2]
                s += column[y] * AFTER[g, 0] + column[y + 1] * AFTER[g, 1] + column[y + 2] * AFTER[g, 2]
                base = since.real
            if not abs(s) >= (b - a) * abs(base) * UNCERTAIN:
                uncertain += start < end
                s = add_up(column, offset, mask, a, b)
            out[i * lo.shape[1] + w] = s
    return uncertain
