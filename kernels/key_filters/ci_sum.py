"""CI-SUM: CI-COUNT over values: an element of value a counts as a copies, and is added in one go.

      M, the sum so far, counts copies; position P is the P-th copy.        p = 1, M = 13, then a = 6:

      level          3            2        1    0          3             2          1      0
      distances    8..15        4..7     2..3   1        8..15         4..7       2..3     1
      kept P         -            8       12    13         8            16         18     19
                                                       was level 2     <----- new: P > 13 ----->

After a, level (s, q) must hold P = 2^s ((M + p) / 2^s - p - q). Beyond the old M that is a copy of the new element.
Else P was kept before, as P is a multiple of all smaller sizes too: in the level that P's old distance to the end fell
in. Sizes are redone from the largest that changes down, so what is read has not been overwritten, and the largest that
changes is the top bit in which M + p differs: log2(a) + 1 on average, whatever M is.

needs   values >= 0; a zero adds nothing
costs   update O(p log a) amortised; lookups, space and guarantee are those of kernels/key_filters/ci_count.py
from    Arasu & Widom 2004, section 4.2; the single pass over the levels is ours

Floats are counted in units of 1 / scale, and each key carries the fraction of a unit it has not counted yet
(`in_units`): the units of a window then differ from its sum by less than one unit at either end, however many elements
it holds, and a threshold moved by two units keeps the superset. Rounding each value up would keep it for > and lose it
for <; rounding down, the other way round.
"""

import numpy as np

from kernels.compile.inlining import helper
from kernels.compile.jit import kernel
from kernels.key_filters import bands
from kernels.key_filters.ci_count import (
    FILL,
    FIRST_BLOCK,
    TOTAL,
    UPPER,
    fetch_ahead,
    opened,
    put,
    take_block,
    trim,
)
from kernels.key_filters.ci_levels import SIZES
from kernels.operators.numbers import EARLIEST

LARGEST_COUNTED = 1 << 55  # a larger value counts as this; thresholds above it are asked as this
WRAP = (1 << 61) - 1  # sums are kept modulo 2^61: positions matter up to the largest size only


@kernel
def first_negative(values):
    """The first row with a value below zero, or -1."""
    for e in range(values.size):
        if values[e] < 0:
            return e
    return -1


@kernel
def in_units(values, ids, scale, rest, out):
    """out[e] = the whole units that key ids[e] has come to by values[e]; rest[k]: the fraction left. NaN adds none."""
    for e in range(ids.size):
        units = values[e] * scale
        if units >= LARGEST_COUNTED or values[e] == np.inf:
            out[e] = LARGEST_COUNTED
        elif units > 0:
            units += rest[ids[e]]
            out[e] = np.int64(units)
            rest[ids[e]] = units - out[e]
        else:
            out[e] = 0


@helper
def top_bit(x):
    """floor(log2(x)) for x > 0, at most SIZES - 1."""
    z = 0
    while x > 1 and z < SIZES - 1:
        x >>= 1
        z += 1
    return z


@helper
def chain_of(blocks, b, z, chain):
    """chain[s] = the block of size 2^s, from b on, 0 where there is none."""
    for s in range(z + 1):
        chain[s] = b
        b = np.int64(blocks[b, UPPER]) if b > 0 else 0


@helper
def kept_before(levels, chain, s, place, before):
    """The time that was kept for position `place`, a multiple of 2^s, when M + p was `before`; or EARLIEST."""
    p, blocks, cells = levels.p, levels.blocks, levels.order.cells
    q = (before >> s) - p - (place >> s)
    while q < 0:
        s -= 1
        q = (before >> s) - p - (place >> s)
    b = chain[s]
    return cells[b * p + q, 0] if b > 0 and q < blocks[b, FILL] else EARLIEST


@helper
def redo_size(levels, chain, s, k, before, after, t):
    """The levels of one size, once the sum has gone from before - p to after - p at time t."""
    p, _, blocks, order = levels
    fill = np.int64(blocks[chain[s], FILL]) if chain[s] > 0 else 0
    filled = fill
    for q in range(p - 1, -1, -1):
        place = ((after >> s) - p - q) << s
        new = t if place > before - p else kept_before(levels, chain, s, place, before)
        if new != EARLIEST:
            if chain[s] == 0:
                chain[s] = take_block(blocks, k, s)
            put(order, s * p + q, chain[s] * p + q, q >= fill, new)
            filled = max(filled, q + 1)
    if chain[s] > 0:
        blocks[chain[s], FILL] = filled


@kernel
def update(state, ids, ts, values, begin, horizon):
    """Elements [begin, …) arrive, values >= 0. Returns the first one that there was no room for, or ids.size."""
    levels = opened(state)
    p, keys, blocks, order = levels
    chain = np.zeros(SIZES + 1, np.int64)
    for e in range(begin, ids.size):
        fetch_ahead(levels, ids, e)
        a, k = min(values[e], LARGEST_COUNTED), ids[e]
        if a == 0:
            continue
        before = keys[k, TOTAL] + p
        z = top_bit(before ^ (before + a))
        if blocks[0, FILL] < z + 2 or order.rows[0, bands.SPARE] < p * (z + 1):
            return e
        chain_of(blocks, keys[k, FIRST_BLOCK], z, chain)
        top = np.int64(blocks[chain[z], UPPER]) if chain[z] > 0 else 0
        for s in range(z, -1, -1):
            redo_size(levels, chain, s, k, before, before + a, ts[e])
        keys[k, TOTAL] = (before - p + a) & WRAP
        keys[k, FIRST_BLOCK] = chain[0]
        for s in range(z + 1):
            if chain[s] > 0:
                blocks[chain[s], UPPER] = chain[s + 1] if s < z else top
        for s in range(z + 1):
            if chain[s] == 0 or trim(levels, chain[s], horizon):
                break
    return ids.size
