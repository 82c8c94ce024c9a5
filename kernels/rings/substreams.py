"""Substreams of substreams: the rows of a key that satisfy a filter, in a ring of their own, by their positions there.

      key 7             a b c d e f g h        positions 0 .. 7 of its own ring
      filter 2, key 7   a   c     f g          positions 0 2 5 6, which increase: where a window of the key begins
                                               and ends in this ring is a search for its edges

A pair (filter, key) is one number, filter << 32 | key, and has a ring once the filter has met a row of the key. Ring 0
is nobody's and always empty: pairs that have none are looked up there.
"""

from kernels.compile.jit import kernel
from kernels.rings.timeline import CAPACITY, HEAD, OFFSET, TAIL, first_after

FILTERED_KEY_BITS = 32
KEYS = (1 << FILTERED_KEY_BITS) - 1


@kernel
def positions_of(batch, rings, positions):
    """positions[e]: of row e in the ring of its key, once the rows of a batch have their slots."""
    order, keys, starts = batch
    for r in range(keys.size):
        tail = rings[keys[r], TAIL]
        for i in range(starts[r], starts[r + 1]):
            positions[order[i]] = tail - (starts[r + 1] - i)


@kernel
def pairs_of(rows, filters, ids, pairs):
    """pairs[m]: of the filter and the key of row rows[m]."""
    for m in range(rows.size):
        pairs[m] = (filters[m] << FILTERED_KEY_BITS) | ids[rows[m]]


@kernel
def to_own(rings, positions, substreams, edges):
    """Edges of windows over a key's rows -> over those of its substream, in place.

    The longest window holds all that is kept, and one that ends now its end. Tried: searches in step, as those of
    kernels/rings/in_step.py; rings are short, and it took longer.
    """
    lo, hi = edges
    for i in range(substreams.size):
        s = substreams[i]
        offset, mask, head, tail = rings[s, OFFSET], rings[s, CAPACITY] - 1, rings[s, HEAD], rings[s, TAIL]
        oldest = positions[offset + (head & mask)] if tail > head else 0
        for w in range(lo.shape[1]):
            lo[i, w] = head if lo[i, w] <= oldest else first_after(positions, offset, mask, head, tail, lo[i, w] - 1)
            hi[i, w] = first_after(positions, offset, mask, lo[i, w], tail, hi[i, w] - 1)


@kernel
def follow(rings, positions, pairs, parent, substreams):
    """Let go of the rows that their keys have let go of."""
    for r in range(substreams.size):
        s = substreams[r]
        head, tail = rings[s, HEAD], rings[s, TAIL]
        if tail > head:
            gone = parent[pairs[s] & KEYS, HEAD] - 1
            rings[s, HEAD] = first_after(positions, rings[s, OFFSET], rings[s, CAPACITY] - 1, head, tail, gone)


@kernel
def wasteful(rings, positions, pairs, parent, substreams, which):
    """which[:n]: the substreams of whose rows three quarters or more could go. Returns n."""
    n = 0
    for r in range(substreams.size):
        s = substreams[r]
        head, tail = rings[s, HEAD], rings[s, TAIL]
        p = min(tail - 1, head + (3 * (tail - head) >> 2))
        if p >= head and positions[rings[s, OFFSET] + (p & (rings[s, CAPACITY] - 1))] < parent[pairs[s] & KEYS, HEAD]:
            which[n] = s
            n += 1
    return n


@kernel
def shift(rings, positions, pairs, displaced):
    """Rows of keys were displaced by others that came late: where they are now. displaced: for each key the position
    of its first such row (-1: there is none), where in `moved` its rows begin, and `moved`, their new positions."""
    first, begins, moved = displaced
    for s in range(1, pairs.size):
        k = pairs[s] & KEYS
        if k >= first.size or first[k] < 0:
            continue
        offset, mask = rings[s, OFFSET], rings[s, CAPACITY] - 1
        for p in range(rings[s, TAIL] - 1, rings[s, HEAD] - 1, -1):
            old = positions[offset + (p & mask)]
            if old < first[k]:
                break
            positions[offset + (p & mask)] = moved[begins[k] + old - first[k]]
