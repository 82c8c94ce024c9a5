"""CI-MAX: which keys had a value above v in the last T. CI-MIN is CI-MAX of the values turned around.

      value                          a key's staircase: the elements not dominated by a later, larger one
        |  o-----+  rank 3
     v2 |--------|---------------    thresholds v0 <= v1 <= v2, known in advance
        |        |
     v1 |--------o----+  rank 2      a stair answers for the thresholds between the next stair and itself:
        |             |              the latest element above v2 is the first stair, above v1 the second one
     v0 |-------------o  rank 1
        +---------------------- time

A key qualifies for `max >= v` if its latest element not below v is inside the window. Only an element's rank matters
(how many thresholds it reaches), so the stairs of a key have strictly falling ranks, and an element that reaches no
threshold costs a search and nothing more. The band of a stair is cut into nodes of a segment tree over the thresholds;
every node has an ordered index of times (bands.py). A lookup walks the nodes from its threshold to the root.

needs   time-based windows that end now; the thresholds (others get the next lower one's answer: a superset)
costs   update O(log m) amortised for m thresholds, lookup O(log m + keys returned), both exact
space   24 bytes per key, 24 per stair, 32 per node of a band; a key has at most m stairs
from    Arasu & Widom 2004, section 4, which leaves MAX and MIN to its full version; ranks and the segment tree are ours

NaN: a window with a NaN in it has no maximum, so each key keeps the time of its last NaN, and is left out while that is
inside. `max < v` is the complement among the keys with an element in the window (`without`).
"""

from typing import NamedTuple

import numpy as np

from kernels.compile.inlining import bare, fetch, helper
from kernels.compile.jit import kernel
from kernels.key_filters import band_walks, bands
from kernels.operators.numbers import EARLIEST

NEWEST, LAST_TIME, NAN_TIME = range(3)  # columns of keys
OWNER, OLDER, RANK, NODES = range(4)  # columns of stairs; row 0: in RANK how many are free, in OLDER the first
STAIR, SIBLING, NODE = range(3)  # columns of entries; row 0: in STAIR how many are free, in SIBLING the first


class Stairs(NamedTuple):
    ladder: np.ndarray  # the thresholds w, ascending: an element reaches w if it is >= w
    keys: np.ndarray  # int64 [key, 3]: its newest stair (0: none), the times of its latest element and latest NaN
    stairs: np.ndarray  # int32 [stair, 4]: whose, the stair before, rank, first of its entries
    times: np.ndarray  # int64 per stair
    entries: np.ndarray  # int32 [entry, 3]: its stair, the next entry of that stair, its node
    order: bands.Bands  # row: the node of the segment tree; the leaf of threshold i is m + i


def empty(ladder: np.ndarray, keys: int = 0) -> Stairs:
    about = np.full((keys, 3), EARLIEST, np.int64)
    about[:, NEWEST] = 0
    stairs, entries = np.zeros((1, 4), np.int32), np.zeros((1, 3), np.int32)
    order = bands.empty(2 * ladder.size - 1, 1)
    for node in range(1, 2 * ladder.size):
        bands.begin(order.rows, node)
    return with_room(Stairs(ladder, about, stairs, np.zeros(1, np.int64), entries, order))


def with_keys(state: Stairs, keys: int) -> Stairs:
    about = np.full((keys, 3), EARLIEST, np.int64)
    about[:, NEWEST] = 0
    about[: state.keys.shape[0]] = state.keys
    return state._replace(keys=about)


def with_room(state: Stairs) -> Stairs:
    """Room for one more element at least; what is short grows by half."""
    need = room(state.ladder.size)
    if state.order.rows[0, bands.SPARE] < need:
        state = state._replace(order=bands.with_spare(state.order, need))
    if state.stairs[0, RANK] < 2:
        stairs = _grown(state.stairs, 16, OLDER, RANK)
        times = np.zeros(stairs.shape[0], np.int64)
        times[: state.times.size] = state.times
        state = state._replace(stairs=stairs, times=times)
    if state.entries[0, STAIR] < need:
        entries = _grown(state.entries, need, SIBLING, STAIR)
        state = state._replace(entries=entries, order=bands.with_entries(state.order, entries.shape[0]))
    return state


def _grown(table: np.ndarray, wanted: int, link: int, count: int) -> np.ndarray:
    """A table whose free rows are chained by a column, with more of them."""
    have = table.shape[0]
    size = have + max(have // 2, wanted)
    grown = np.zeros((size, table.shape[1]), np.int32)
    grown[:have] = table
    grown[have:, link] = np.arange(have + 1, size + 1)
    grown[-1, link] = table[0, link]
    grown[0, link] = have
    grown[0, count] += size - have
    return grown


@kernel
def room(m):
    """Entries, or chunks, that one element may need: two bands of at most two nodes per depth of the tree."""
    depth = 1
    while m > 0:
        m >>= 1
        depth += 1
    return 4 * depth


@helper
def rank(ladder, value):
    """How many thresholds a value reaches."""
    lo, hi = 0, ladder.size
    while lo < hi:
        mid = (lo + hi) >> 1
        if ladder[mid] <= value:
            lo = mid + 1
        else:
            hi = mid
    return lo


@helper
def opened(state):
    """The same with bare arrays, as helpers take them."""
    stairs, times, entries = bare(state.stairs), bare(state.times), bare(state.entries)
    return Stairs(state.ladder, bare(state.keys), stairs, times, entries, bands.opened(state.order))


@helper
def clear_band(state, stair):
    """Take a stair out of all its nodes."""
    stairs, entries, order = state.stairs, state.entries, state.order
    entry = np.int64(stairs[stair, NODES])
    while entry > 0:
        bands.remove(order, np.int64(entries[entry, NODE]), entry)
        after = np.int64(entries[entry, SIBLING])
        entries[entry, SIBLING] = entries[0, SIBLING]
        entries[0, SIBLING] = entry
        entries[0, STAIR] += 1
        entry = after
    stairs[stair, NODES] = 0


@helper
def set_band(state, stair, lo, hi, t):
    """Put a stair with time t into the nodes that make up the leaves [lo, hi)."""
    stairs, entries, order = state.stairs, state.entries, state.order
    while lo < hi:
        for _ in range((lo & 1) + (hi & 1)):
            if lo & 1:
                node = lo
                lo += 1
            else:
                hi -= 1
                node = hi
            entry = np.int64(entries[0, SIBLING])
            entries[0, SIBLING] = entries[entry, SIBLING]
            entries[0, STAIR] -= 1
            entries[entry, STAIR], entries[entry, SIBLING], entries[entry, NODE] = stair, stairs[stair, NODES], node
            stairs[stair, NODES] = entry
            bands.place(order, node, entry, t)
        lo >>= 1
        hi >>= 1


@helper
def move_band(state, stair, t):
    """A stair's time moves on; its band stays."""
    stairs, entries, order = state.stairs, state.entries, state.order
    entry = np.int64(stairs[stair, NODES])
    while entry > 0:
        bands.move(order, np.int64(entries[entry, NODE]), entry, t)
        entry = np.int64(entries[entry, SIBLING])


@helper
def free_stair(state, stair):
    """Free a stair; returns the one before it."""
    stairs = state.stairs
    clear_band(state, stair)
    older = np.int64(stairs[stair, OLDER])
    stairs[stair, OLDER] = stairs[0, OLDER]
    stairs[0, OLDER] = stair
    stairs[0, RANK] += 1
    return older


@helper
def take_stair(stairs, times, k, r, older, t):
    stair = np.int64(stairs[0, OLDER])
    stairs[0, OLDER] = stairs[stair, OLDER]
    stairs[0, RANK] -= 1
    stairs[stair, OWNER], stairs[stair, OLDER], stairs[stair, RANK], stairs[stair, NODES] = k, older, r, 0
    times[stair] = t
    return stair


@helper
def fetch_ahead(state, ids, e):
    """Ask for what later elements touch: their keys, a while later the newest stairs, then the entries of these."""
    keys, stairs, times, entries, cells = state.keys, state.stairs, state.times, state.entries, state.order.cells
    last = ids.size - 1
    fetch(keys, ids[min(e + 24, last)])
    stair = keys[ids[min(e + 16, last)], NEWEST]
    fetch(stairs, stair)
    fetch(times, stair)
    entry = np.int64(stairs[keys[ids[min(e + 8, last)], NEWEST], NODES])
    fetch(entries, entry)
    fetch(cells, entry)


@kernel
def update(state, ids, ts, values, begin):
    """Elements [begin, …) arrive. Returns the first one that there was no room for, or ids.size."""
    state = opened(state)
    ladder, keys, stairs, times, entries, order = state
    m, need = ladder.size, room(ladder.size)
    for e in range(begin, ids.size):
        fetch_ahead(state, ids, e)
        k, t = ids[e], ts[e]
        if min(stairs[0, RANK] * need, entries[0, STAIR], order.rows[0, bands.SPARE]) < need:
            return e
        keys[k, LAST_TIME] = t
        if values[e] != values[e]:
            keys[k, NAN_TIME] = t
            continue
        r, stair = rank(ladder, values[e]), keys[k, NEWEST]
        if r > 0 and stair > 0 and stairs[stair, RANK] == r:  # the band of the newest stair, as so often
            times[stair] = t
            move_band(state, stair, t)
        elif r > 0:
            while stair > 0 and stairs[stair, RANK] <= r:
                stair = free_stair(state, stair)
            new = take_stair(stairs, times, k, r, stair, t)
            keys[k, NEWEST] = new
            for which, low in ((stair, r), (new, 0)):  # the stair before gives up what the new one reaches
                if which > 0:
                    clear_band(state, which)
                    high = np.int64(stairs[which, RANK])
                    set_band(state, which, m + low, m + high, times[which])
    return ids.size


@kernel
def expire(state, begin, end, horizon):
    """Forget the stairs of keys [begin, end) that no window can reach, and free their memory."""
    state = opened(state)
    _, keys, stairs, times, _, _ = state
    for k in range(begin, end):
        newer, stair = np.int64(0), keys[k, NEWEST]
        while stair > 0 and times[stair] > horizon:
            newer, stair = stair, np.int64(stairs[stair, OLDER])
        if stair > 0 and newer > 0:
            stairs[newer, OLDER] = 0
        elif stair > 0:
            keys[k, NEWEST] = 0
        while stair > 0:
            stair = free_stair(state, stair)


@kernel
def forget(state, ids):
    """All that is kept of some keys."""
    state = opened(state)
    keys = state.keys
    for i in range(ids.size):
        stair = keys[ids[i], NEWEST]
        while stair > 0:
            stair = free_stair(state, stair)
        keys[ids[i], NEWEST] = 0
        keys[ids[i], LAST_TIME] = keys[ids[i], NAN_TIME] = EARLIEST


@kernel
def newer(state, threshold, x, end, out):
    """out = the keys that reached a threshold after x; how many, or out.size + 1 if they do not fit.

    A key whose last NaN is in (x, end] is left out: exact for windows (x, end] with end at or after all elements.
    """
    _, keys, stairs, _, entries, order = opened(state)
    found, node = 0, state.ladder.size + threshold
    while node > 0:
        rest = out[found:]
        more = band_walks.walk(order, node, x, rest)
        if more > rest.size:
            return out.size + 1
        for i in range(more):
            k = stairs[entries[rest[i], STAIR], OWNER]
            if not x < keys[k, NAN_TIME] <= end:
                out[found] = k
                found += 1
        node >>= 1
    return found


@kernel
def without(state, threshold, x, chosen):
    """Keep of the keys in `chosen`, in place, those with elements after x, none of them NaN or up to a threshold.

    threshold: its index, or the number of thresholds for none. Returns how many.
    """
    _, keys, stairs, times, _, _ = opened(state)
    found = 0
    for i in range(chosen.size):
        k = chosen[i]
        stair = keys[k, NEWEST]
        while stair > 0 and stairs[stair, RANK] <= threshold:
            stair = np.int64(stairs[stair, OLDER])
        reached = times[stair] if stair > 0 else EARLIEST
        if keys[k, LAST_TIME] > x and keys[k, NAN_TIME] <= x and reached <= x:
            chosen[found] = k
            found += 1
    return found
