"""Delta frames: cut where a value has moved too far from where the frame began, or from anywhere in it.

      low .. high      of the values in the frame (measure "range"), or its first value twice ("first")
      the spread with v is  max(high, v) - min(low, v);  one limit per column, whichever is reached first

needs, costs, conventions: as in kernels/framing.py; O(columns) per event
from    Grossniklaus et al. 2016, sections 3.2 and 5.2.3
"""

import numpy as np

from kernels.framing import LAST, ROWS, SLOT, START, end_frame, take_slot
from kernels.jit import kernel


@kernel
def delta(block, values, valid, rule, spread, state, found, first):
    """rule: limits per column, does the frame close before the event that reaches one, do low and high move.

    spread: low and high of key k, column d, at k * columns + d; low > high where the frame has no value yet.
    Tried: the two inner loops as kernels of their own, which are not inlined: three times slower.
    """
    limits, before, moving = rule
    low, high, most, least = spread
    ts, ids, rows, base, shift = block
    frames, n, width = found.frames, found.count[0], np.uint64(limits.size)
    for i in range(first, rows.size):
        r = np.uint64(rows[i])
        e, k = r + np.uint64(base), np.uint64(ids[r] >> shift)
        t = ts[e]
        if t < state[k, LAST] or n == frames.shape[0]:
            found.count[0] = n
            return i if n == frames.shape[0] else -1 - np.int64(e)
        reached = False
        for d in range(width):
            v, at = values[d, e], k * width + d
            if low[at] <= high[at] and v == v and (valid.size == 0 or valid[d, e]):
                apart = max(high[at], v) - min(low[at], v)
                reached |= apart >= limits[d] or apart < 0  # below 0: integers so far apart that they wrap
        if reached and before:
            end_frame(frames, state, k)
            for d in range(width):
                low[k * width + d], high[k * width + d] = most, least
        if state[k, ROWS] == 0:
            state[k, START] = t
            if before:
                take_slot(frames, n, k, t, e, 0)
                state[k, SLOT] = n
                n += 1
        state[k, ROWS] += 1
        state[k, LAST] = t
        if reached and not before:
            take_slot(frames, n, k, state[k, START], e, 0)
            state[k, SLOT] = n
            n += 1
            end_frame(frames, state, k)
            for d in range(width):
                low[k * width + d], high[k * width + d] = most, least
            continue
        for d in range(width):
            v, at = values[d, e], k * width + d
            empty = low[at] > high[at]
            if (empty or moving) and v == v and (valid.size == 0 or valid[d, e]):
                low[at], high[at] = (v, v) if empty else (min(low[at], v), max(high[at], v))
    found.count[0] = n
    return rows.size
