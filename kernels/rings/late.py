"""Late rows in their place: a batch is merged into the tails of rings, from the first row on that it displaces.

      ring     1 3 5 8 9           batch, in order: 4 9 12
      merged   1 3 4 5 8 9 9 12    of equal times the one that came later stands behind
      fresh        T F F F T T     from the first displaced position on: is it a row of the batch?

One comparison of times says how all columns of a space are merged, and a masked space by its ranks. Everything goes
from the end, in place: a row is never written where one is still to be read.

needs   batches whose runs are in order of time; rings with room for them, tails that have moved on
costs   O(displaced rows + rows of the batch) for each column, once for a batch
"""

from typing import NamedTuple

import numpy as np

from kernels.compile.jit import kernel
from kernels.rings.timeline import CAPACITY, HEAD, OFFSET, TAIL, first_after


class Merge(NamedTuple):
    """How the runs of a batch are merged into rings. Of run r `fresh` has its last displaced[r] + rows entries before
    ends[r + 1]: is the row there one of the batch?"""

    displaced: np.ndarray
    ends: np.ndarray
    fresh: np.ndarray


@kernel
def count_displaced(ts, batch, rings, kept, latest, displaced):
    """displaced[r] = the rows kept of keys[r] that are newer than the first of its run. Returns their number."""
    order, keys, starts = batch
    total = 0
    for r in range(keys.size):
        k, t = keys[r], ts[order[starts[r]]]
        displaced[r] = 0
        if latest[k] > t:
            tail = rings[k, TAIL]
            place = first_after(kept, rings[k, OFFSET], rings[k, CAPACITY] - 1, rings[k, HEAD], tail, t)
            displaced[r] = tail - place
            total += tail - place
    return total


@kernel
def merge_times(ts, batch, rings, kept, merge):
    """Merge the times of a batch into those kept; says in merge.fresh how."""
    (order, keys, starts), (displaced, ends, fresh) = batch, merge
    for r in range(keys.size):
        k = keys[r]
        offset, mask = rings[k, OFFSET], rings[k, CAPACITY] - 1
        w = rings[k, TAIL] - 1
        i = w - (starts[r + 1] - starts[r])
        first, at = i - displaced[r], ends[r + 1] - 1
        for j in range(starts[r + 1] - 1, starts[r] - 1, -1):
            t = ts[order[j]]
            while i > first and kept[offset + (i & mask)] > t:
                kept[offset + (w & mask)] = kept[offset + (i & mask)]
                fresh[at] = False
                i, w, at = i - 1, w - 1, at - 1
            kept[offset + (w & mask)] = t
            fresh[at] = True
            w, at = w - 1, at - 1


@kernel
def merge_column(values, batch, rings, merge, column):
    """The same for another column, by what is known of the times."""
    (order, keys, starts), (displaced, ends, fresh) = batch, merge
    for r in range(keys.size):
        k = keys[r]
        offset, mask = rings[k, OFFSET], rings[k, CAPACITY] - 1
        rows, j, w = starts[r + 1] - starts[r], starts[r + 1] - 1, rings[k, TAIL] - 1
        i = w - rows
        for at in range(ends[r + 1] - 1, ends[r + 1] - 1 - displaced[r] - rows, -1):
            if fresh[at]:
                column[offset + (w & mask)] = values[order[j]]
                j -= 1
            else:
                column[offset + (w & mask)] = column[offset + (i & mask)]
                i -= 1
            w -= 1


@kernel
def merge_ranks(chosen, batch, rings, rank, merge, rings_inside, inside):
    """The ranks of a masked space, and how its own rows are merged (`inside`).

    chosen[e]: row e of the batch counts there. rings_inside: its rings, whose tails have not moved yet. A row that was
    here counts if the one after it has a higher rank.
    """
    (order, keys, starts), fresh = batch, merge.fresh
    for r in range(keys.size):
        k = keys[r]
        offset, mask = rings[k, OFFSET], rings[k, CAPACITY] - 1
        j, w, at_inside = starts[r + 1] - 1, rings[k, TAIL] - 1, merge.ends[r + 1]
        i = w - (starts[r + 1] - starts[r])
        tail = rings_inside[k, TAIL]
        before, after, displaced = tail, tail, 0  # the rank after row i as it was; after row w as it will be
        for e in order[starts[r] : starts[r + 1]]:
            after += chosen[e]
        for at in range(merge.ends[r + 1] - 1, merge.ends[r] - 1, -1):
            if fresh[at]:
                counts = chosen[order[j]]
                j -= 1
                if counts:
                    displaced = tail - before
            else:
                own = rank[offset + (i & mask)]
                counts = own < before
                before = own
                i -= 1
            if counts:
                after -= 1
                at_inside -= 1
                inside.fresh[at_inside] = fresh[at]
            rank[offset + (w & mask)] = after
            w -= 1
        inside.displaced[r] = displaced


@kernel
def places(batch, rings, merge, positions, moved):
    """Where rows are in the rings of their keys, whose times are merged: positions[e] of row e of the batch, and one
    after the other in `moved`, those of rows that were displaced."""
    (order, keys, starts), (displaced, ends, fresh) = batch, merge
    last = 0
    for r in range(keys.size):
        j, w = starts[r + 1] - 1, rings[keys[r], TAIL] - 1
        last += displaced[r]
        old = last - 1
        for at in range(ends[r + 1] - 1, ends[r] - 1, -1):
            if fresh[at]:
                positions[order[j]] = w
                j -= 1
            else:
                moved[old] = w
                old -= 1
            w -= 1
