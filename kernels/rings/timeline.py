"""Many substreams in one arena: every key owns a power-of-two ring inside shared arrays.

      rings[k] = offset, capacity, head, tail        position p of key k lives at slot  offset + (p & (capacity - 1))

Positions count a key's rows from 0 and never wrap; `head <= p < tail` are kept. All arrays of an arena (timestamps,
columns, structures) use the same slots, so a ring that grows is moved by one kernel, array by array. An array may be
coarser: with `shift` s it holds one entry per 2^s positions.

A batch arrives as runs: run r appends `counts[r]` rows to key `keys[r]`. Structures are updated from positions alone,
after the columns were written, which makes rebuilding one the same call as keeping it up to date.

Windows are asked for as `edges`, a pair of arrays lo, hi[i, w]: positions [lo, hi) of window w for keys[i]. It is a
plain pair: a named tuple takes 1 us longer to hand over, and one lookup hands over several.
"""

from typing import NamedTuple

import numpy as np

from kernels.compile.inlining import AHEAD, fetch
from kernels.compile.jit import kernel
from kernels.operators.numbers import EARLIEST

OFFSET, CAPACITY, HEAD, TAIL = range(4)
SMALLEST_RING = 4  # slots of the smallest ring: of a million keys, most have few rows


class Batch(NamedTuple):
    """The rows of a batch by key: run r is rows order[starts[r]:starts[r + 1]], all of keys[r]."""

    order: np.ndarray
    keys: np.ndarray
    starts: np.ndarray

    @property
    def counts(self) -> np.ndarray:
        """How many rows each run has."""
        return self.starts[1:] - self.starts[:-1]  # a third of the time of np.diff

    def only(self, chosen: np.ndarray) -> "Batch":
        """Of the same runs the rows that are chosen."""
        keep = chosen[self.order]
        return Batch(self.order[keep], self.keys, np.concatenate([[0], np.cumsum(keep)])[self.starts])

    def without_empty(self) -> "Batch":
        """The runs that have rows."""
        some = np.flatnonzero(self.counts)
        return Batch(self.order, self.keys[some], np.append(self.starts[some], self.starts[-1]))


@kernel
def group_by_key(ids, seen, order, keys, starts):
    """Stable grouping of a batch by key: `order` lists its rows key by key; returns the number of runs.

    seen: one zero per key, zero again afterwards. A batch that is small among the keys touches its own keys only; a
    large one lists them in order of id, which is the order of their rings: every later pass then walks forward through
    memory (twice the events per second at 100,000 keys). To look at 32 keys takes less than one miss of the cache.
    """
    runs = 0
    listed = ids.size * 32 < seen.size
    for e in range(ids.size):
        k = ids[e]
        if listed and seen[k] == 0:
            keys[runs] = k
            runs += 1
        seen[k] += 1
    if not listed:
        for k in range(seen.size):
            if seen[k] > 0:
                keys[runs] = k
                runs += 1
    at = 0
    for r in range(runs):
        starts[r] = at
        at += seen[keys[r]]
        seen[keys[r]] = starts[r]
    starts[runs] = at
    for e in range(ids.size):
        k = ids[e]
        order[seen[k]] = e
        seen[k] += 1
    for r in range(runs):
        seen[keys[r]] = 0
    return runs


@kernel
def first_disorder(ts, batch, latest):
    """The first row (in arrival order) that is older than its key's previous one, or -1."""
    order, keys, starts = batch
    worst = ts.size
    for r in range(keys.size):
        last = latest[keys[r]]
        for i in range(starts[r], starts[r + 1]):
            t = ts[order[i]]
            if t < last:
                worst = min(worst, order[i])
                break
            last = t
    return worst if worst < ts.size else -1


@kernel
def first_after(ts, offset, mask, lo, hi, x):
    """The first position in [lo, hi) whose timestamp is > x, or hi.

    Without a branch that depends on timestamps: searches of one key after the other overlap, 45 ns each in place of 60.
    Tried: a first guess as if rows came evenly; for Poisson arrivals it is off by too many rows, 105 ns.
    """
    if lo < hi and ts[offset + ((hi - 1) & mask)] <= x:
        return hi  # the usual request: now
    rows = hi - lo
    while rows > 0:
        half = (rows + 1) >> 1
        lo += half * (ts[offset + ((lo + half - 1) & mask)] <= x)
        rows -= half
    return lo


@kernel
def expire(rings, ts, lost, keys, coming, horizons, rows):
    """Let go of what no window can reach: rows with ts <= horizon that are not among the last `rows`.

    horizons: one for all, or one for each key.
    """
    for r in range(keys.size):
        k = keys[r]
        head, tail = rings[k, HEAD], rings[k, TAIL]
        keep = max(head, min(tail, tail + coming[r] - rows))
        if keep > head:
            offset, mask = rings[k, OFFSET], rings[k, CAPACITY] - 1
            new = first_after(ts, offset, mask, head, keep, horizons[min(k, horizons.size - 1)])
            if new > head:
                lost[k] = ts[offset + ((new - 1) & mask)]
                rings[k, HEAD] = new


@kernel
def wasteful(rings, ts, keys, horizons, rows, which):
    """which[:n]: the keys of whose rows three quarters or more could go. Returns n.

    Less is left for when a ring is full: what is still there can still be asked for.
    """
    n = 0
    for r in range(keys.size):
        k = keys[r]
        head, tail = rings[k, HEAD], rings[k, TAIL]
        p = min(tail - 1, head + (3 * (tail - head) >> 2))
        horizon = horizons[min(k, horizons.size - 1)]
        if p >= head and p < tail - rows and ts[rings[k, OFFSET] + (p & (rings[k, CAPACITY] - 1))] <= horizon:
            which[n] = k
            n += 1
    return n


@kernel
def follow(rings, parent, rank, keys):
    """Expire a masked space by its parent: keep from the rank of the parent's head on."""
    for r in range(keys.size):
        k = keys[r]
        head = parent[k, HEAD]
        if head == parent[k, TAIL]:
            rings[k, HEAD] = rings[k, TAIL]
        else:
            rings[k, HEAD] = rank[parent[k, OFFSET] + (head & (parent[k, CAPACITY] - 1))]


@kernel
def fitting(rings, keys, coming, wanted):
    """wanted[r]: the capacity key r should have, -1 for the one it has. True where nothing must move."""
    calm = True
    for r in range(keys.size):
        k = keys[r]
        need = rings[k, TAIL] - rings[k, HEAD] + coming[r]
        capacity = rings[k, CAPACITY]
        wanted[r] = -1
        if need > capacity or (need * 4 < capacity and (capacity > SMALLEST_RING or need == 0)):
            size = SMALLEST_RING if need > 0 else 0
            while size < need:
                size *= 2
            if size != capacity:
                wanted[r] = size
                calm = False
    return calm


@kernel
def overfull(rings, keys, coming, which):
    """which[:n]: the runs whose keys lack room for what comes. Returns n."""
    n = 0
    for r in range(keys.size):
        k = keys[r]
        if rings[k, TAIL] - rings[k, HEAD] + coming[r] > rings[k, CAPACITY]:
            which[n] = r
            n += 1
    return n


@kernel
def relocate(source, target, shift, rings, keys, offsets, capacities):
    """Copy the kept part of each ring to its new place; `rings` still tells the old one."""
    for r in range(keys.size):
        k = keys[r]
        head, tail = rings[k, HEAD], rings[k, TAIL]
        if head == tail:
            continue
        old, new = rings[k, OFFSET] >> shift, offsets[r] >> shift
        old_mask, new_mask = (rings[k, CAPACITY] >> shift) - 1, (capacities[r] >> shift) - 1
        for q in range(head >> shift, ((tail - 1) >> shift) + 1):
            target[new + (q & new_mask)] = source[old + (q & old_mask)]


@kernel
def take_slots(rings, batch, slots):
    """Advance the tails; slots[i] is where row i of the grouped batch goes."""
    _, keys, starts = batch
    for r in range(keys.size):
        k = keys[r]
        offset, mask, tail = rings[k, OFFSET], rings[k, CAPACITY] - 1, rings[k, TAIL]
        for i in range(starts[r], starts[r + 1]):
            slots[i] = offset + ((tail + i - starts[r]) & mask)
        rings[k, TAIL] = tail + starts[r + 1] - starts[r]


@kernel
def take_times(ts, batch, rings, kept, latest, slots):
    """The same, and the times of the rows are written to `kept`; latest[k] = that of the last row of each key.

    In one kernel: of a batch of one row, most of the time goes into calling them. The rings of keys that come next are
    fetched: of a million keys a quarter less. Times are written afterwards, in a loop of their own: with 100,000 keys
    it takes 0.6 of what it took inside, where every second row waited for a guess at how many a key has.
    """
    order, keys, starts = batch
    for r in range(keys.size):
        k, first, end = np.uint64(keys[r]), np.uint64(starts[r]), np.uint64(starts[r + 1])
        fetch(rings, keys[min(r + AHEAD, keys.size - 1)])
        offset, mask, tail = rings[k, OFFSET], rings[k, CAPACITY] - 1, rings[k, TAIL]
        for i in range(first, end):
            slots[i] = offset + ((tail + np.int64(i - first)) & mask)
        rings[k, TAIL] = tail + np.int64(end - first)
        latest[k] = ts[order[end - np.uint64(1)]]
    for i in range(order.size):
        kept[slots[i]] = ts[order[i]]


@kernel
def pass_times(ts, batch, rings, latest, lost):
    """The same of rows that nobody keeps: they are counted, and gone at once. Their keys have no slots."""
    order, keys, starts = batch
    for r in range(keys.size):
        k, last = np.uint64(keys[r]), starts[r + 1]
        rings[k, TAIL] += last - starts[r]
        rings[k, HEAD] = rings[k, TAIL]
        latest[k] = lost[k] = ts[order[last - 1]]


@kernel
def scatter(values, order, slots, column):
    """column[slots[i]] = values[order[i]]."""
    for i in range(order.size):
        column[slots[i]] = values[order[i]]


@kernel
def take_ranks(chosen, batch, rings, slots, rank):
    """rank[slot] = rows of the key before this one that a masked space counts (chosen[e]: it counts row e).

    rings: those of the masked space. slots: where the rows of the batch went in the space that has all rows.
    """
    order, keys, starts = batch
    for r in range(keys.size):
        tail = rings[keys[r], TAIL]
        for i in range(starts[r], starts[r + 1]):
            rank[slots[i]] = tail
            tail += chosen[order[i]]


@kernel
def rank_by_position(rings, keys, rank):
    """The ranks of a space in which every row has counted so far."""
    for r in range(keys.size):
        k = keys[r]
        for p in range(rings[k, HEAD], rings[k, TAIL]):
            rank[rings[k, OFFSET] + (p & (rings[k, CAPACITY] - 1))] = p


@kernel
def to_ranks(positions, keys, parent, rank, rings):
    """Positions of the parent -> positions of the masked space, in place; one row per key."""
    for i in range(keys.size):
        k = keys[i]
        offset, mask, tail = parent[k, OFFSET], parent[k, CAPACITY] - 1, parent[k, TAIL]
        for w in range(positions.shape[1]):
            p = positions[i, w]
            positions[i, w] = rings[k, TAIL] if p >= tail else rank[offset + (p & mask)]


@kernel
def edges(rings, ts, lost, keys, windows, now, out):
    """out = lo, hi: the positions [lo, hi)[i, w] of window w for keys[i], at time `now`.

    windows[w] = by_time, far, near, as lengths. By time: now - far < ts <= now - near. By rows: the last `far` rows
    without the last `near`. lost[k]: the timestamp of the newest row of k that is no longer kept. Returns the first
    (i, w) whose window reaches back to rows that are gone, as i * windows + w, or -1; such are in no window.
    """
    lo, hi = out
    short = -1
    for i in range(keys.size):
        k = keys[i]
        offset, mask = rings[k, OFFSET], rings[k, CAPACITY] - 1
        head, tail = rings[k, HEAD], rings[k, TAIL]
        m = first_after(ts, offset, mask, head, tail, now) if tail > head else tail
        for w in range(windows.shape[0]):
            far, near = windows[w, 1], windows[w, 2]
            if windows[w, 0]:
                since = now - far if now >= EARLIEST + far else EARLIEST
                until = now - near if now >= EARLIEST + near else EARLIEST
                lo[i, w] = first_after(ts, offset, mask, head, m, since)
                hi[i, w] = first_after(ts, offset, mask, lo[i, w], m, until)
                gone = lost[k] > since
            else:
                first, end = max(m - far, 0), max(m - near, 0)
                lo[i, w] = max(first, head)
                hi[i, w] = max(end, lo[i, w])
                gone = first < head and end > first
            if gone and short < 0:
                short = i * windows.shape[0] + w
    return short


@kernel
def seen_at(rings, ts, keys, instants, seen):
    """seen[i]: the position after the last row of keys[i] at instants[i]."""
    for i in range(keys.size):
        k = keys[i]
        head, tail = rings[k, HEAD], rings[k, TAIL]
        seen[i] = tail
        if tail > head:
            seen[i] = first_after(ts, rings[k, OFFSET], rings[k, CAPACITY] - 1, head, tail, instants[i])


@kernel
def edges_each(rings, ts, keys, instants, seen, windows, out):
    """As `edges`, with a time of its own for every row: lo, hi[i, w] of keys[i] at instants[i], of rows before seen[i].

    windows[w] = by_time, far, near, both as lengths. Rows that are no longer kept are in no window.
    """
    lo, hi = out
    for i in range(keys.size):
        k, now = keys[i], instants[i]
        offset, mask = rings[k, OFFSET], rings[k, CAPACITY] - 1
        head = rings[k, HEAD]
        m = max(seen[i], head)
        for w in range(windows.shape[0]):
            far, near = windows[w, 1], windows[w, 2]
            if windows[w, 0]:
                since = now - far if now >= EARLIEST + far else EARLIEST
                until = now - near if now >= EARLIEST + near else EARLIEST
                lo[i, w] = first_after(ts, offset, mask, head, m, since)
                hi[i, w] = first_after(ts, offset, mask, lo[i, w], m, until)
            else:
                lo[i, w] = max(m - far, head)
                hi[i, w] = max(m - near, lo[i, w])


@kernel
def judge(ts, due, batch, latest, waiting, late):
    """late[e]: an event of the same key, newer than e, was already applied when e arrived.

    due[e]: the time up to which events had been applied then. waiting: scratch, the key's accepted timestamps in order.
    """
    order, keys, starts = batch
    for r in range(keys.size):
        n = 0
        for i in range(starts[r], starts[r + 1]):
            e = order[i]
            t = ts[e]
            if t < due[e]:
                lo, hi = 0, n
                while lo < hi:
                    mid = (lo + hi) >> 1
                    if waiting[mid] <= due[e]:
                        lo = mid + 1
                    else:
                        hi = mid
                if latest[keys[r]] > t or (lo > 0 and waiting[lo - 1] > t):
                    late[e] = True
                    continue
            at = n
            while at > 0 and waiting[at - 1] > t:
                waiting[at] = waiting[at - 1]
                at -= 1
            waiting[at] = t
            n += 1
