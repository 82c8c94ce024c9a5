"""Delta frames: cut where a value has moved too far from where the frame began, or from anywhere in it.

      low .. high      of the values in the frame (measure "range"), or its first value twice ("first")
      the spread with v is  max(high, v) - min(low, v);  one limit per column, whichever is reached first

needs, costs, conventions: as in kernels/frames/framing.py; O(columns) per event
from    Grossniklaus et al. 2016, sections 3.2 and 5.2.3
"""

import numpy as np

from kernels.compile.jit import kernel
from kernels.frames.framing import BLOCK, LAST, ROWS, SLOT, START, close_slot, listed, scratch, take_slot


@kernel
def delta(events, data, rule, spread, state, found, first):
    """rule: limits per column, does the frame close before the event that reaches one, do low and high move.

    spread: low and high of key k, column d, at k * columns + d; low > high where the frame has no value yet.
    Limits are a tuple, so that the compiler knows how many there are: loops over an unknown one or two columns were
    half of the time. Tried: the two inner loops as kernels of their own, which are not inlined: three times slower.
    """
    (values, valid), (limits, before, moving) = data, rule
    low, high, most, least = spread
    ts, (rows, keys), width = events.ts, scratch(), np.uint64(len(limits))
    frames, n = found.frames, found.count[0]
    for block in range(first, events.last, BLOCK):
        found.count[0] = n
        if n + BLOCK > frames.shape[0]:
            return block
        base, size, i = np.uint64(block), listed(events, block, rows, keys), np.uint64(0)
        while i < size:
            k = np.uint64(keys[i])
            last, run, slot = state[k, LAST], state[k, ROWS], state[k, SLOT]
            while i < size and keys[i] == k:
                e = base + rows[i]
                if ts[e] < last:
                    return -1
                reached = False
                for d in range(len(limits)):
                    v, at = values[d, e], k * width + np.uint64(d)
                    apart = max(high[at], v) - min(low[at], v)
                    moved = (low[at] <= high[at]) & (v == v) & (valid.size == 0 or valid[d, e])
                    reached |= moved & ((apart >= limits[d]) | (apart < 0))  # below 0: integers that wrap
                if reached and before:
                    close_slot(frames, slot, last, run)
                    run = 0
                if run == 0:
                    state[k, START] = ts[e]
                    if before:
                        take_slot(frames, n, k, ts[e], e, 0, 0)
                        slot = n
                        n += 1
                run += 1
                last = ts[e]
                if reached and not before:
                    take_slot(frames, n, k, state[k, START], e, 0, run - 1)
                    close_slot(frames, n, last, run)
                    n += 1
                    run = 0
                for d in range(len(limits)):
                    v, at = values[d, e], k * width + np.uint64(d)
                    if reached:
                        low[at], high[at] = most, least
                    empty = low[at] > high[at]
                    if run > 0 and (empty or moving) and v == v and (valid.size == 0 or valid[d, e]):
                        low[at], high[at] = (v, v) if empty else (min(low[at], v), max(high[at], v))
                i += np.uint64(1)
            state[k, LAST], state[k, ROWS], state[k, SLOT] = last, run, slot
    found.count[0] = n
    return events.last
