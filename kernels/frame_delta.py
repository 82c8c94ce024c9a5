"""Delta frames: cut where a value has moved too far from where the frame began, or from anywhere in it.

      low .. high      of the values in the frame (measure "range"), or its first value twice ("first")
      the spread with v is  max(high, v) - min(low, v);  one limit per column, whichever is reached first

needs, costs, conventions: as in kernels/framing.py; O(columns) per event
from    Grossniklaus et al. 2016, sections 3.2 and 5.2.3
"""

from kernels.framing import LAST, ROWS, SLOT, START, end_frame, take_slot
from kernels.jit import kernel


@kernel
def reaches(values, valid, e, low, high, k, limits):
    """Would row e bring the spread of any column to its limit? Null, NaN and a column's first value move nothing."""
    for d in range(values.shape[0]):
        v = values[d, e]
        if v == v and (valid.size == 0 or valid[d, e]) and low[k, d] <= high[k, d]:
            spread = max(high[k, d], v) - min(low[k, d], v)
            if spread >= limits[d] or spread < 0:  # below 0: integers so far apart that they wrap
                return True
    return False


@kernel
def widen(values, valid, e, low, high, k, moving):
    """Row e joins the frame of key k."""
    for d in range(values.shape[0]):
        v = values[d, e]
        if v == v and (valid.size == 0 or valid[d, e]):
            if low[k, d] > high[k, d]:
                low[k, d], high[k, d] = v, v
            elif moving:
                low[k, d], high[k, d] = min(low[k, d], v), max(high[k, d], v)


@kernel
def delta(events, values, valid, rule, spread, state, found, first):
    """rule: limits per column, does the frame close before the event that reaches one, do low and high move."""
    limits, before, moving = rule
    low, high, nothing = spread
    ts, ids, rows, frames, n = events.ts, events.ids, events.rows, found.frames, found.count[0]
    size = rows.size if rows.size else ts.size
    for i in range(first, size):
        e = rows[i] if rows.size else i
        k = ids[e] >> events.shift if ids.size else 0
        t = ts[e]
        if t < state[k, LAST] or n == frames.shape[0]:
            found.count[0] = n
            return i if n == frames.shape[0] else -1 - e
        reached = state[k, ROWS] > 0 and reaches(values, valid, e, low, high, k, limits)
        if reached and before:
            end_frame(frames, state, k)
            low[k], high[k] = nothing[0], nothing[1]
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
            low[k], high[k] = nothing[0], nothing[1]
        else:
            widen(values, valid, e, low, high, k, moving)
    found.count[0] = n
    return size
