"""CI-COUNT: which keys had more than v events in the last T, without looking at the others.

      events of a key, newest last           p = 2: two levels of each size
      ... o o o o | o o o o | o o | o o | o | o |
           size 4     4        2     2    1   1
           *          *          *     *   *   *      kept: the event whose position is a multiple of the size

A level keeps the time of one event. A key with more than v events in the window has the v-th event from the end inside
it, hence also any kept event nearer to the end: the last level that lies wholly within the last v events gives a
superset, and it is nearly v events deep. An ordered index per level (kernels/wheel.py) returns the keys whose kept time is
inside the window, all of them and no others. `count < v` asks the first level that lies wholly beyond: what is kept
there must be out of the window, for the keys with an event in it.

An event moves the kept times one level up; those of size 2^s move when m + p is a multiple of 2^s (m: events so far):

      z = trailing zeros of m + p:   new -> size 1 -> ... -> size 2^z, one level each, the last one falls off

needs   time-based windows that end now; times that do not decrease within a key
costs   update O(p) amortised, lookup O(keys returned) for > and >=; for < and <= the keys with an event in the window
space   per key and size (p levels): 16 p + 16 bytes; sizes up to log2(events in the longest window / p)
from    Arasu & Widom 2004, sections 4.1.1 and 4.1.2

Returned for `> v`: more than v (1 - eps), eps = 2 / (p + 2), and 3/4 for p = 1. See `relaxation`.

Levels are indexed from the first lookup that asks for them: a level that no condition needs only has its times moved,
which is a copy within one cache line. Blocks of p levels of one size are the unit of memory; a key's blocks are a chain.
"""

from typing import NamedTuple

import numpy as np

from kernels import wheel as wheels
from kernels.jit import kernel

SIZES = 56  # sizes 2^0 .. 2^55: more than any window holds, and what CI-SUM counts in stays within int64
NEVER = np.iinfo(np.int64).min  # in no window
OWNER, UPPER, SIZE, FILL = range(4)  # columns of blocks; UPPER: the block of the next size, -1 for none


class Levels(NamedTuple):
    p: int
    first: np.ndarray  # int32 per key: its block of size 1, -1 if it has none
    total: np.ndarray  # int64 per key: events so far (CI-SUM: their sum)
    blocks: np.ndarray  # int32 [block, 4]
    free: np.ndarray  # int32: how many blocks are free, and which
    indexed: np.ndarray  # bool per level s * p + q: is there a wheel at that root?
    wheel: wheels.Wheel  # entry: block * p + q; root: the level


def empty(p: int, keys: int = 0, blocks: int = 16) -> Levels:
    levels = SIZES * p
    first = np.full(keys, -1, np.int32)
    free = np.zeros(blocks + 1, np.int32)
    free[0] = blocks
    free[1:] = np.arange(blocks - 1, -1, -1)
    table = np.full((blocks, 4), -1, np.int32)
    table[:, FILL] = 0
    return Levels(p, first, np.zeros(keys, np.int64), table, free, np.zeros(levels, np.bool_), wheels.empty(levels, blocks * p))


def with_keys(state: Levels, keys: int) -> Levels:
    have = state.first.size
    first, total = np.full(keys, -1, np.int32), np.zeros(keys, np.int64)
    first[:have], total[:have] = state.first, state.total
    return state._replace(first=first, total=total)


def with_room(state: Levels, blocks: int, spare: int) -> Levels:
    """At least so many free blocks and spare wheels; what is short is doubled."""
    if state.wheel.spare[0] < spare:
        state = state._replace(wheel=wheels.with_spare(state.wheel, spare))
    if state.free[0] >= blocks:
        return state
    have = state.blocks.shape[0]
    count = max(2 * have, have + blocks)
    table = np.full((count, 4), -1, np.int32)
    table[:, FILL] = 0
    table[:have] = state.blocks
    left = int(state.free[0])
    free = np.zeros(count + 1, np.int32)
    free[0] = left + count - have
    free[1 : 1 + count - have] = np.arange(count - 1, have - 1, -1)
    free[1 + count - have : 1 + count - have + left] = state.free[1 : 1 + left]
    return state._replace(blocks=table, free=free, wheel=wheels.with_entries(state.wheel, count * state.p))


# -- which level answers for a threshold ------------------------------------------------------------------------------


def span(level: int, p: int) -> tuple[int, int]:
    """The events a level covers, counted from the end: nearest and farthest."""
    s, q = divmod(level, p)
    nearest = p * ((1 << s) - 1) + (q << s) + 1
    return nearest, nearest + (1 << s) - 1


def level_within(v: int, p: int) -> int:
    """The last level that lies wholly within the last v >= 1 events."""
    s = ((v + p) // (p + 1)).bit_length() - 1
    return min(s * p + min(((v + p) >> s) - p - 1, p - 1), SIZES * p - 1)


def level_beyond(v: int, p: int) -> int | None:
    """The first level that lies wholly at or beyond the v-th event from the end; None if no level is that far."""
    reach = v + p - 1
    s = max(0, -(-reach // (2 * p - 1)) - 1).bit_length()
    level = s * p + max(-(-reach // (1 << s)) - p, 0)
    return level if level < SIZES * p else None


def relaxation(p: int, below: bool = False) -> float:
    """The eps that holds for every threshold: a count returned for > v is above v (1 - eps); for < v, below v (1 + eps)."""
    if below:
        return 3.0 if p == 1 else 2 / p
    return 0.75 if p == 1 else 2 / (p + 2)


def levels_for(epsilon: float) -> int:
    """The smallest p whose relaxation is at most epsilon, for > and >=."""
    return 1 if epsilon >= 0.75 else max(2, int(np.ceil(2 / epsilon - 2 - 1e-9)))


# -- updates ----------------------------------------------------------------------------------------------------------


@kernel
def take_block(state, owner, size):
    b = state.free[state.free[0]]
    state.free[0] -= 1
    state.blocks[b, OWNER], state.blocks[b, UPPER] = owner, -1
    state.blocks[b, SIZE], state.blocks[b, FILL] = size, 0
    return np.int64(b)


@kernel
def put(state, b, q, fresh, t):
    """Level q of block b gets time t; fresh: it had none."""
    level, entry = state.blocks[b, SIZE] * state.p + q, b * state.p + q
    if not state.indexed[level]:
        state.wheel.cells[entry, 0] = t
    elif fresh:
        wheels.place(state.wheel, level, entry, t)
    else:
        wheels.move(state.wheel, level, entry, t, state.indexed.size)


@kernel
def shift_in(state, b, t):
    """Time t enters a block, everything in it moves one level up; returns the time that falls off, or NEVER."""
    p, fill, cells = state.p, np.int64(state.blocks[b, FILL]), state.wheel.cells
    out = cells[b * p + p - 1, 0] if fill == p else NEVER
    for q in range(min(fill, p - 1), 0, -1):
        put(state, b, q, q == fill, cells[b * p + q - 1, 0])
    put(state, b, 0, fill == 0, t)
    state.blocks[b, FILL] = min(fill + 1, p)
    return out


@kernel
def drop(state, b, keep):
    """Forget all but the first `keep` levels of a block."""
    for q in range(keep, state.blocks[b, FILL]):
        if state.indexed[state.blocks[b, SIZE] * state.p + q]:
            wheels.remove(state.wheel, b * state.p + q, state.indexed.size)
    state.blocks[b, FILL] = keep


@kernel
def drop_chain(state, b):
    """Free a block and all above it."""
    while b >= 0:
        drop(state, b, 0)
        state.free[0] += 1
        state.free[state.free[0]] = b
        state.blocks[b, SIZE] = -1
        b = np.int64(state.blocks[b, UPPER])


@kernel
def trim(state, b, horizon):
    """If the oldest time of a block is past the horizon, forget it and what is older. Was it?"""
    keep = np.int64(state.blocks[b, FILL])
    if state.wheel.cells[b * state.p + keep - 1, 0] > horizon:
        return False
    while keep > 1 and state.wheel.cells[b * state.p + keep - 1, 0] <= horizon:
        keep -= 1
    drop(state, b, keep)
    drop_chain(state, np.int64(state.blocks[b, UPPER]))
    state.blocks[b, UPPER] = -1
    return True


@kernel
def update(state, ids, ts, begin, horizon):
    """Events [begin, …) arrive. Returns the first one that there was no room for, or ids.size.

    horizon: times up to this one are in no window any more.
    """
    p = state.p
    for e in range(begin, ids.size):
        k = ids[e]
        z, rest = 0, state.total[k] + 1 + p
        while rest & 1 == 0:
            z += 1
            rest >>= 1
        if state.free[0] < 1 or state.wheel.spare[0] < p * (z + 1):
            return e
        state.total[k] += 1
        if state.first[k] < 0:
            state.first[k] = take_block(state, k, 0)
        b, t = np.int64(state.first[k]), ts[e]
        for s in range(z + 1):
            t = shift_in(state, b, t)
            if trim(state, b, horizon) or t <= horizon or s == z:
                break
            if state.blocks[b, UPPER] < 0:
                state.blocks[b, UPPER] = take_block(state, k, s + 1)
            b = np.int64(state.blocks[b, UPPER])
    return ids.size


@kernel
def expire(state, begin, end, horizon):
    """Forget what no window can reach of keys [begin, end): all of a silent key, whose memory is then free."""
    for k in range(begin, end):
        b = np.int64(state.first[k])
        if b < 0:
            continue
        if state.wheel.cells[b * state.p, 0] <= horizon:
            drop_chain(state, b)
            state.first[k] = -1
            continue
        while b >= 0 and not trim(state, b, horizon):
            below, b = b, np.int64(state.blocks[b, UPPER])
            if b >= 0 and state.wheel.cells[b * state.p, 0] <= horizon:
                drop_chain(state, b)
                state.blocks[below, UPPER] = -1
                break


# -- lookups ----------------------------------------------------------------------------------------------------------


@kernel
def build(state, level):
    """Index a level that was not asked for before."""
    size, q = level // state.p, level % state.p
    state.indexed[level] = True
    for b in range(state.blocks.shape[0]):
        if state.blocks[b, SIZE] == size and state.blocks[b, FILL] > q:
            entry = b * state.p + q
            wheels.place(state.wheel, level, entry, state.wheel.cells[entry, 0])


@kernel
def newer(state, level, x, out):
    """out = the keys whose kept time at a level is after x; how many, or out.size + 1 if they do not fit."""
    found = wheels.walk(state.wheel, level, x, True, out)
    for i in range(min(found, out.size)):
        out[i] = state.blocks[out[i] // state.p, OWNER]
    return found


@kernel
def kept_time(state, k, level):
    """The time kept for a key at a level, or NEVER."""
    b = np.int64(state.first[k])
    for _ in range(level // state.p):
        if b < 0:
            return NEVER
        b = np.int64(state.blocks[b, UPPER])
    q = level % state.p
    return state.wheel.cells[b * state.p + q, 0] if b >= 0 and q < state.blocks[b, FILL] else NEVER


@kernel
def without(state, level, x, keys):
    """Keep of `keys`, in place, those whose kept time at a level is not after x; how many."""
    found = 0
    for i in range(keys.size):
        if kept_time(state, keys[i], level) <= x:
            keys[found] = keys[i]
            found += 1
    return found
