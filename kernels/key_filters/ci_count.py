"""CI-COUNT: which keys had more than v events in the last T, without looking at the others.

      events of a key, newest last           p = 2: two levels of each size
      ... o o o o | o o o o | o o | o o | o | o |
           size 4     4        2     2    1   1
           *          *          *     *   *   *      kept: the event whose position is a multiple of the size

A level keeps the time of one event. A key with more than v events in the window has the v-th event from the end inside
it, hence also any kept event nearer to the end: the last level that lies wholly within the last v events gives a
superset, and it is nearly v events deep. An ordered index per level (bands.py) returns the keys whose kept time
is inside the window, all of them and no others. `count < v` asks the first level that lies wholly beyond: what is kept
there must be out of the window, for the keys with an event in it.

An event moves the kept times one level up; those of size 2^s move when m + p is a multiple of 2^s (m: events so far):

      z = trailing zeros of m + p:   new -> size 1 -> ... -> size 2^z, one level each, the last one falls off

needs   time-based windows that end now; times that do not decrease within a key
costs   update O(p) amortised, lookup O(keys returned) for > and >=; for < and <= the keys with an event in the window
space   per key and size (p levels): 20 p + 16 bytes; sizes up to log2(events in the longest window / p)
from    Arasu & Widom 2004, sections 4.1.1 and 4.1.2

Returned for `> v`: more than v (1 - eps), eps = 2 / (p + 2), and 3/4 for p = 1. See kernels/key_filters/ci_levels.py.

Levels are indexed from the first lookup that asks for them: a level that no condition needs only has its times moved,
which is a copy within one cache line. The unit of memory is a block, the p levels of one size; a key has a chain.
Tried: the kept times of a candidate also narrow the search for its window's edge when it is checked; following the
chain took longer (28 us for 213 keys) than the plain binary search over its rows (20 us).
"""

from typing import NamedTuple

import numpy as np

from kernels.compile.inlining import bare, fetch, helper, part
from kernels.compile.jit import kernel
from kernels.key_filters import band_walks, bands
from kernels.operators.numbers import EARLIEST

FIRST_BLOCK, TOTAL = 0, 1  # columns of keys
OWNER, UPPER, SIZE, FILL = range(4)  # columns of blocks; UPPER: the block of the next size, 0 for none


class Levels(NamedTuple):
    p: int
    keys: np.ndarray  # int64 [key, 2]: its block of size 1, 0 if it has none; events so far (CI-SUM: their sum)
    blocks: np.ndarray  # int32 [block, 4]; row 0: in FILL how many are free, in UPPER the first, which has the next
    order: bands.Bands  # entry: block * p + q, level q of the block's size; its order is in row 1 + s * p + q


def empty(p: int, keys: int = 0) -> Levels:
    return Levels(p, np.zeros((keys, 2), np.int64), np.zeros((1, 4), np.int32), bands.empty(0, p))


def with_keys(state: Levels, keys: int) -> Levels:
    grown = np.zeros((keys, 2), np.int64)
    grown[: state.keys.shape[0]] = state.keys
    return state._replace(keys=grown)


def with_room(state: Levels, blocks: int, spare: int) -> Levels:
    """At least so many free blocks and spare chunks; what is short grows by half."""
    if state.order.rows[0, bands.SPARE] < spare:
        state = state._replace(order=bands.with_spare(state.order, spare))
    if state.blocks[0, FILL] >= blocks:
        return state
    have = state.blocks.shape[0]
    count = have + max(have // 2, blocks)
    table = np.zeros((count, 4), np.int32)
    table[:have] = state.blocks
    table[have:, SIZE] = -1
    table[have:, UPPER] = np.arange(have + 1, count + 1)
    table[-1, UPPER] = state.blocks[0, UPPER]
    table[0, UPPER] = have
    table[0, FILL] += count - have
    return state._replace(blocks=table, order=bands.with_entries(state.order, count * state.p))


def indexed(state: Levels, level: int) -> Levels:
    """With an index of a level, if it had none, and room for a lookup there to cut a band."""
    state = with_room(state, 0, 3)
    if level + 1 < state.order.rows.shape[0] and state.order.rows[level + 1, bands.COUNT] > 0:
        return state
    if level + 1 >= state.order.rows.shape[0]:
        state = state._replace(order=bands.with_orders(state.order, level + 1))
    members = np.count_nonzero(state.blocks[:, SIZE] == level // state.p)
    state = with_room(state, 0, 4 + members // (bands.CHUNK_WORDS - 1))
    build(state, level)
    return state


# -- updates ----------------------------------------------------------------------------------------------------------


@helper
def opened(state):
    """The same with bare arrays, as helpers take them."""
    return Levels(state.p, bare(state.keys), bare(state.blocks), bands.opened(state.order))


@part
def take_block(blocks, owner, size):
    b = np.int64(blocks[0, UPPER])
    blocks[0, UPPER] = blocks[b, UPPER]
    blocks[0, FILL] -= 1
    blocks[b, OWNER], blocks[b, UPPER] = owner, 0
    blocks[b, SIZE], blocks[b, FILL] = size, 0
    return b


@part
def put(order, level, entry, fresh, t):
    """An entry gets time t; fresh: it had none."""
    cells, rows = order.cells, order.rows
    if not bands.begun(rows, level + 1):
        cells[entry, 0] = t
    elif fresh:
        bands.place(order, level + 1, entry, t)
    else:
        bands.move(order, level + 1, entry, t)


@helper
def shift_in(levels, b, t):
    """Time t enters a block, everything in it moves one level up; returns the time that falls off, or EARLIEST."""
    p, _, blocks, order = levels
    cells = order.cells
    fill, level, entry = np.int64(blocks[b, FILL]), np.int64(blocks[b, SIZE]) * p, b * p
    out = cells[entry + p - 1, 0] if fill == p else EARLIEST
    for q in range(min(fill, p - 1), -1, -1):
        put(order, level + q, entry + q, q == fill, cells[entry + q - 1, 0] if q > 0 else t)
    blocks[b, FILL] = min(fill + 1, p)
    return out


@kernel
def drop(levels, b, keep):
    """Forget all but the first `keep` levels of a block."""
    p, _, blocks, order = levels
    for q in range(keep, blocks[b, FILL]):
        row = np.int64(blocks[b, SIZE]) * p + q + 1
        if bands.begun(order.rows, row):
            bands.remove(order, row, b * p + q)
    blocks[b, FILL] = keep


@kernel
def drop_chain(levels, b):
    """Free a block and all above it."""
    blocks = levels.blocks
    while b > 0:
        drop(levels, b, 0)
        above = np.int64(blocks[b, UPPER])
        blocks[b, SIZE] = -1
        blocks[b, UPPER] = blocks[0, UPPER]
        blocks[0, UPPER] = b
        blocks[0, FILL] += 1
        b = above


@part
def trim(levels, b, horizon):
    """If the oldest time of a block is past the horizon, forget it and what is older. Was it?"""
    p, blocks, cells = levels.p, levels.blocks, levels.order.cells
    keep = np.int64(blocks[b, FILL])
    if cells[b * p + keep - 1, 0] > horizon:
        return False
    while keep > 1 and cells[b * p + keep - 1, 0] <= horizon:
        keep -= 1
    drop(levels, b, keep)
    drop_chain(levels, np.int64(blocks[b, UPPER]))
    blocks[b, UPPER] = 0
    return True


@kernel
def places_by_key(ids, shift, starts, places):
    """places[e] = where row e goes so that neighbouring keys (2^shift of them) are together, in order of arrival.

    starts: a zero per neighbourhood and one more. With 10^6 keys a batch of as many events is taken in twice as fast
    this way: what it touches of blocks and piles is in the cache.
    """
    for e in range(ids.size):
        starts[(ids[e] >> shift) + 1] += 1
    for i in range(1, starts.size):
        starts[i] += starts[i - 1]
    for e in range(ids.size):
        places[e] = starts[ids[e] >> shift]
        starts[ids[e] >> shift] += 1


@kernel
def put_at(places, column, out):
    """out[places[e]] = column[e]: a few hundred streams of writes. Reading as many streams took three times as long."""
    for e in range(places.size):
        out[places[e]] = column[e]


@part
def fetch_block(levels, b):
    p, blocks, cells = levels.p, levels.blocks, levels.order.cells
    fetch(blocks, b)
    fetch(cells, b * p)
    fetch(cells, b * p + p - 1)


@helper
def fetch_ahead(levels, ids, e):
    """Ask for what later events touch: their keys, a while later the first blocks, then the blocks above these.

    With 10^6 keys and no level indexed an event took 220 ns without, 130 with first blocks only, and takes 68 now.
    """
    keys, blocks, last = levels.keys, levels.blocks, ids.size - 1
    fetch(keys, ids[min(e + 24, last)])
    fetch_block(levels, keys[ids[min(e + 16, last)], FIRST_BLOCK])
    fetch_block(levels, np.int64(blocks[keys[ids[min(e + 8, last)], FIRST_BLOCK], UPPER]))


@kernel
def update(state, ids, ts, begin, horizon):
    """Events [begin, …) arrive. Returns the first one that there was no room for, or ids.size.

    horizon: times up to this one are in no window any more.
    """
    levels = opened(state)
    p, keys, blocks, order = levels
    for e in range(begin, ids.size):
        fetch_ahead(levels, ids, e)
        k, t = ids[e], ts[e]
        z, rest = 0, keys[k, TOTAL] + 1 + p
        while rest & 1 == 0:
            z += 1
            rest >>= 1
        if blocks[0, FILL] < 2 or order.rows[0, bands.SPARE] < p * (z + 1):
            return e
        keys[k, TOTAL] += 1
        if keys[k, FIRST_BLOCK] == 0:
            keys[k, FIRST_BLOCK] = take_block(blocks, k, 0)
        b = keys[k, FIRST_BLOCK]
        for s in range(z + 1):
            t = shift_in(levels, b, t)
            if trim(levels, b, horizon) or t <= horizon or s == z:
                break
            if blocks[b, UPPER] == 0:
                blocks[b, UPPER] = take_block(blocks, k, s + 1)
            b = np.int64(blocks[b, UPPER])
    return ids.size


@kernel
def expire(state, begin, end, horizon):
    """Forget what no window can reach of keys [begin, end): all of a silent key, whose memory is then free."""
    levels = opened(state)
    p, keys, blocks, order = levels
    cells = order.cells
    for k in range(begin, end):
        fetch_block(levels, keys[min(k + 16, end - 1), FIRST_BLOCK])
        fetch_block(levels, np.int64(blocks[keys[min(k + 8, end - 1), FIRST_BLOCK], UPPER]))
        b = keys[k, FIRST_BLOCK]
        if b > 0 and cells[b * p, 0] <= horizon:
            drop_chain(levels, b)
            keys[k, FIRST_BLOCK] = b = 0
        while b > 0 and not trim(levels, b, horizon):
            above = np.int64(blocks[b, UPPER])
            if above > 0 and cells[above * p, 0] <= horizon:
                drop_chain(levels, above)
                blocks[b, UPPER] = above = 0
            b = above


@kernel
def forget(state, ids):
    """All that is kept of some keys."""
    levels = opened(state)
    keys = levels.keys
    for i in range(ids.size):
        drop_chain(levels, keys[ids[i], FIRST_BLOCK])
        keys[ids[i], FIRST_BLOCK] = keys[ids[i], TOTAL] = 0


# -- lookups ----------------------------------------------------------------------------------------------------------


@kernel
def build(state, level):
    """Index a level that was not asked for before, for which there is a row and room."""
    p, _, blocks, order = opened(state)
    bands.begin(order.rows, level + 1)
    for b in range(1, blocks.shape[0]):
        if blocks[b, SIZE] == level // p and blocks[b, FILL] > level % p:
            entry = b * p + level % p
            bands.place(order, level + 1, entry, order.cells[entry, 0])


@helper
def block_of(entry, share):
    """entry // p for share = 1 / p: entries are below 2^31, so this is exact, and it takes a third of the division."""
    return np.int64((entry + 0.5) * share)


@kernel
def newer(state, level, x, out):
    """out = the keys whose kept time at a level is after x; how many, or out.size + 1 if they do not fit."""
    p, _, blocks, order = opened(state)
    found = band_walks.walk(order, level + 1, x, out)
    for i in range(found if found <= out.size else 0):
        out[i] = blocks[block_of(out[i], 1 / p), OWNER]
    return found


@kernel
def newer_each(state, levels, xs, starts, begin, out):
    """As `newer`, for many lookups: out[starts[r]:starts[r + 1]] are the keys of lookup r, from `begin` on.

    Returns the first lookup that there was no room for, or levels.size.
    """
    p, _, blocks, order = opened(state)
    for r in range(begin, levels.size):
        rest = out[starts[r] :]
        found = band_walks.walk(order, levels[r] + 1, xs[r], rest)
        if found > rest.size:
            return r
        for i in range(found):
            rest[i] = blocks[block_of(rest[i], 1 / p), OWNER]
        starts[r + 1] = starts[r] + found
    return levels.size


@kernel
def decided(state, level, beyond, x, out):
    """As `newer`, the keys first whose kept time at the level `beyond` is after x too; how many, and how many of these.

    level, beyond: the level within and the one beyond the v-th event from the end. They are at most two apart, so the
    entry found leads to the other one; the keys that come first have v events for certain, only the rest need a check.
    """
    p, _, blocks, order = opened(state)
    cells = order.cells
    found = band_walks.walk(order, level + 1, x, out)
    certain = 0
    for i in range(found if found <= out.size else 0):
        b = block_of(out[i], 1 / p)
        owner = np.int64(blocks[b, OWNER])
        for _ in range(beyond // p - level // p):
            b = np.int64(blocks[b, UPPER]) if b > 0 else b
        if b > 0 and beyond % p < blocks[b, FILL] and cells[b * p + beyond % p, 0] > x:
            out[i] = out[certain]
            out[certain] = owner
            certain += 1
        else:
            out[i] = owner
    return found, certain


@helper
def kept_time(levels, k, level):
    """The time kept for a key at a level, or EARLIEST."""
    p, keys, blocks, cells = levels.p, levels.keys, levels.blocks, levels.order.cells
    b = keys[k, FIRST_BLOCK]
    for _ in range(level // p):
        b = np.int64(blocks[b, UPPER]) if b > 0 else b
    return cells[b * p + level % p, 0] if b > 0 and level % p < blocks[b, FILL] else EARLIEST


@kernel
def without(state, level, x, chosen):
    """Keep of the keys in `chosen`, in place, those whose kept time at a level is not after x; how many."""
    levels, found = opened(state), 0
    for i in range(chosen.size):
        if kept_time(levels, chosen[i], level) <= x:
            chosen[found] = chosen[i]
            found += 1
    return found
