"""Delta frames: cut where a value has moved too far from where the frame began, or from anywhere in it.

      low .. high      of the values in the frame (measure "range"), or its first value twice ("first")
      the spread with v is  max(high, v) - min(low, v);  one limit per column, whichever is reached first

needs, costs, conventions: as in kernels/frames/framing.py; O(columns) per event
from    Grossniklaus et al. 2016, sections 3.2 and 5.2.3

Limits are a tuple, so that the compiler knows how many there are: loops over an unknown one or two columns were half of
the time. The loops over columns are helpers on bare arrays: as kernels, which are not inlined, they made the scan three
times slower.
"""

from typing import Any, NamedTuple

import numpy as np

from kernels.compile.inlining import bare, helper
from kernels.compile.jit import kernel
from kernels.frames.framing import (
    LAST,
    ROWS,
    SCAN_ROWS,
    SLOT,
    START,
    close_inside,
    close_slot,
    is_enough,
    is_full,
    listed,
    meet_next,
    scratch,
    take_slot,
)


class Spread(NamedTuple):
    """The lowest and the highest value in the frame of key k, column d, at k * columns + d.

    most, least: what they are where the frame has no value yet, so that low > high.
    """

    low: np.ndarray
    high: np.ndarray
    most: Any
    least: Any


@helper
def opened(data, spread):
    """The same with bare arrays, as helpers take them."""
    return (bare(data[0]), bare(data[1])), Spread(bare(spread.low), bare(spread.high), spread.most, spread.least)


@helper
def counts(data, d, e):
    """Has event e a value in column d?"""
    values, valid = data
    return (values[d, e] == values[d, e]) & (valid.size == 0 or valid[d, e])


@helper
def is_reached(data, limits, spread, first, e):
    """Is a limit reached with event e? first: where the columns of its key begin in `spread`."""
    values, low, high, reached = data[0], spread.low, spread.high, False
    for d in range(len(limits)):
        v, at = values[d, e], first + np.uint64(d)
        apart = max(high[at], v) - min(low[at], v)
        moved = (low[at] <= high[at]) & counts(data, d, e)
        reached |= moved & ((apart >= limits[d]) | (apart < 0))  # below 0: integers that wrap
    return reached


@helper
def follow(data, rule, spread, first, e, ended, inside):
    """What the frame of a key spans after event e: nothing if that has ended it, and its values if it is inside."""
    (limits, _, moving, _), values, low, high = rule, data[0], spread.low, spread.high
    for d in range(len(limits)):
        v, at = values[d, e], first + np.uint64(d)
        if ended:
            low[at], high[at] = spread.most, spread.least
        empty = low[at] > high[at]
        if inside and (empty or moving) and counts(data, d, e):
            low[at], high[at] = (v, v) if empty else (min(low[at], v), max(high[at], v))


@kernel
def delta(events, data, rule, spread, state, found, first):
    """rule: limits per column, does the frame close before the event that reaches one, do low and high move; lengths.

    data = the values by column and event, and which of them count (empty: all).
    """
    (limits, before, _, lengths), (data, spread) = rule, opened(data, spread)
    ts, (rows, keys), width = events.ts, scratch(), np.uint64(len(limits))
    frames, n = found.frames, found.count[0]
    for block in range(first, events.last, SCAN_ROWS):
        found.count[0] = n
        if n + SCAN_ROWS > frames.shape[0]:
            return block
        base, size, i = np.uint64(block), listed(events, block, rows, keys), np.uint64(0)
        while i < size:
            k = np.uint64(keys[i])
            last, run, slot, start, own = state[k, LAST], state[k, ROWS], state[k, SLOT], state[k, START], k * width
            while i < size and keys[i] == k:
                e = base + rows[i]
                t = ts[e]
                if t < last:
                    return -1
                full = lengths.splits and run > 0 and is_full(lengths, run, start, t)
                reached = is_reached(data, limits, spread, own, e) and not full
                if slot >= 0 and run == 0:
                    meet_next(frames, slot, t)
                    slot = -1
                if full and not before and is_enough(lengths, run, start, last):
                    take_slot(frames, n, k, start, e, 0, run)
                    slot = n
                    n += 1
                if full or (reached and before):
                    close_slot(frames, slot, t if lengths.open else last, run)
                    slot, run = -1, 0
                start = t if run == 0 else start
                run += 1
                last = t
                if slot < 0 and (before or reached) and is_enough(lengths, run, start, t):
                    take_slot(frames, n, k, start, e, 0, run - 1)
                    slot = n
                    n += 1
                if reached and not before:
                    slot = close_inside(frames, slot, last, run, lengths) if slot >= 0 else -1
                    run = 0
                follow(data, rule, spread, own, e, full or reached, run > 0)
                i += np.uint64(1)
            state[k, LAST], state[k, ROWS], state[k, SLOT], state[k, START] = last, run, slot, start
    found.count[0] = n
    return events.last
