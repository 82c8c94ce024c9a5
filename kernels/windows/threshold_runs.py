"""Sorted runs with aggregates inside: what a window holds of the rows whose key is above a bound, whatever the bound.

      runs[l]      | 1 1 2 3 … 8 9 |      the keys of every block of 16 * 2^l rows in order (sorted_runs.py),
      inside[l]    | Σ … … Σ Σ Σ  |      and at each of them the aggregate from there to the end of its run

A window is O(log W) runs and a few loose rows. Where the bound falls in a run, the aggregate of what is above it stands
there, so that nothing is taken off again: an answer holds the rows that it is about, and no trace of others. When two
runs are merged, the aggregate from any place on is that of the two ends which lie behind it: one combine.

needs   a combine in which the order of rows does not matter (sum, min, max); keys that have an order, without NaN
costs   update O(log Nmax) amortised, lookup O(log^2 W), space O(Nmax log Nmax), for any number of bounds
error   of float sums: below (levels + 64) * 2^-53 of the sum of absolute values
"""

from kernels.compile.jit import kernel
from kernels.operators.monoids import combine, lift
from kernels.operators.numbers import two_sum, unsigned
from kernels.rings.timeline import CAPACITY, HEAD, OFFSET, TAIL
from kernels.windows.sorted_runs import RUN_BITS, SHORTEST_RUN, blocks, first_above, highest


@kernel
def sort_block(op, columns, runs, inside, start):
    """The keys of the block at slot `start` in order, and the aggregates from each of them on."""
    values, key = columns
    for i in range(start, start + SHORTEST_RUN):
        x, own, at = key[unsigned(i)], lift(op, values, unsigned(i)), i
        while at > start and runs[unsigned(at - 1)] > x:
            runs[unsigned(at)], inside[unsigned(at)] = runs[unsigned(at - 1)], inside[unsigned(at - 1)]
            at -= 1
        runs[unsigned(at)], inside[unsigned(at)] = x, own
    for i in range(start + SHORTEST_RUN - 1, start, -1):
        inside[unsigned(i - 1)] = combine(op, inside[unsigned(i - 1)], inside[unsigned(i)])


@kernel
def merge(op, below, above, left, size):
    """Two runs of `size` keys, one behind the other from slot `left` on, into one in their slots a level higher."""
    (runs, inside), (merged, merged_inside) = below, above
    i, j, at = left, left + size, left
    middle, end = j, j + size
    while i < middle and j < end:
        x, y = runs[unsigned(i)], runs[unsigned(j)]
        first = x <= y
        merged[unsigned(at)] = x if first else y
        merged_inside[unsigned(at)] = combine(op, inside[unsigned(i)], inside[unsigned(j)])
        i += first
        j += not first
        at += 1
    rest, stop = (i, middle) if i < middle else (j, end)
    for p in range(rest, stop):
        merged[unsigned(at + p - rest)], merged_inside[unsigned(at + p - rest)] = runs[unsigned(p)], inside[unsigned(p)]


@kernel
def add_block(op, columns, levels, ring, end):
    """The block that ends at a position, and all runs that are complete with it."""
    (runs, inside), offset, mask = levels, ring[OFFSET], ring[CAPACITY] - 1
    if runs.shape[0] == 0 or end - SHORTEST_RUN < ring[HEAD]:
        return
    sort_block(op, columns, runs[0], inside[0], offset + ((end - SHORTEST_RUN) & mask))
    size, level = SHORTEST_RUN, 0
    while level + 1 < runs.shape[0] and end & size == 0 and end - 2 * size >= ring[HEAD]:
        below, above = (runs[level], inside[level]), (runs[level + 1], inside[level + 1])
        merge(op, below, above, offset + ((end - 2 * size) & mask), size)
        size *= 2
        level += 1


@kernel
def update(op, columns, levels, rings, keys, counts):
    """Rows [tail - counts[r], tail) of keys[r] are new, or have changed. levels: runs, and what is inside them."""
    for r in range(keys.size):
        ring = rings[keys[r]]
        for block in range((ring[TAIL] - counts[r]) >> RUN_BITS, ring[TAIL] >> RUN_BITS):
            add_block(op, columns, levels, ring, (block + 1) << RUN_BITS)


@kernel
def rebuild_level(op, columns, levels, level, rings):
    """Fill a level that was just added, from the one below."""
    (runs, inside), size = levels, SHORTEST_RUN << level
    for k in range(rings.shape[0]):
        for block in range(-(-rings[k, HEAD] // size), rings[k, TAIL] // size):
            start = rings[k, OFFSET] + ((block * size) & (rings[k, CAPACITY] - 1))
            if level == 0:
                sort_block(op, columns, runs[0], inside[0], start)
            else:
                merge(op, (runs[level - 1], inside[level - 1]), (runs[level], inside[level]), start, size >> 1)


@kernel
def add_loose(op, columns, ring, edges, bound, state, found):
    """Rows of positions edges, one by one: those above the bound into the aggregate of `found` so far, at state[0].
    Returns how many it is of then."""
    (values, key), (offset, mask) = columns, ring
    for p in range(edges[0], edges[1]):
        slot = unsigned(offset + (p & mask))
        if key[slot] > bound:
            own = lift(op, values, slot)
            state[0] = own if found == 0 else combine(op, state[0], own)
            found += 1
    return found


@kernel
def lookup(op, columns, levels, rings, keys, asked, out):
    """Of the positions asked[0][i, w] to asked[1][i, w] of keys[i], those above the bound asked[2][i]: out[0] (flat) is
    how many, out[1] their aggregate, or anything where there is none."""
    (runs, inside), (lo, hi, bounds), (counts, states) = levels, asked, out
    top = runs.shape[0] - 1
    for i in range(keys.size):
        ring = rings[keys[i], OFFSET], rings[keys[i], CAPACITY] - 1
        for w in range(lo.shape[1]):
            a, b, place = lo[i, w], max(lo[i, w], hi[i, w]), i * lo.shape[1] + w
            (at, last), state, level = blocks(a, b), states[place : place + 1], 0
            found = add_loose(op, columns, ring, (a, at), bounds[i], state, 0)
            found = add_loose(op, columns, ring, (last, b), bounds[i], state, found)
            while at < last:
                level = highest(at, last, level, top)
                left = ring[0] + (at & ring[1])
                right = left + (SHORTEST_RUN << level)
                above = first_above(runs, level, left, right, bounds[i])
                if above < right:
                    own = inside[unsigned(level), unsigned(above)]
                    state[0] = own if found == 0 else combine(op, state[0], own)
                    found += right - above
                at += SHORTEST_RUN << level
            counts[place] = found


@kernel
def count(key, runs, rings, keys, asked, counts):
    """As `lookup`: how many rows there are, and nothing else."""
    (lo, hi, bounds), top = asked, runs.shape[0] - 1
    for i in range(keys.size):
        offset, mask = rings[keys[i], OFFSET], rings[keys[i], CAPACITY] - 1
        for w in range(lo.shape[1]):
            a, b = lo[i, w], max(lo[i, w], hi[i, w])
            (at, last), found, level = blocks(a, b), 0, 0
            for p in range(a, at):
                found += key[unsigned(offset + (p & mask))] > bounds[i]
            for p in range(last, b):
                found += key[unsigned(offset + (p & mask))] > bounds[i]
            while at < last:
                level = highest(at, last, level, top)
                left = offset + (at & mask)
                right = left + (SHORTEST_RUN << level)
                found += right - first_above(runs, level, left, right, bounds[i])
                at += SHORTEST_RUN << level
            counts[i * lo.shape[1] + w] = found


@kernel
def add_up_each(columns, rings, keys, asked, out):
    """out[i, w] (flat) = the float sum of each window's rows above a bound, to tell whether an integer sum wrapped."""
    (values, key), (lo, hi, bounds) = columns, asked
    for i in range(keys.size):
        offset, mask = rings[keys[i], OFFSET], rings[keys[i], CAPACITY] - 1
        for w in range(lo.shape[1]):
            s, c = 0.0, 0.0
            for p in range(lo[i, w], hi[i, w]):
                slot = unsigned(offset + (p & mask))
                if key[slot] > bounds[i]:
                    s, e = two_sum(s, values[slot])
                    c += e
            out[i * lo.shape[1] + w] = s + c
