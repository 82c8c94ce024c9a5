"""Aggregate frames: cut where an aggregate of the frame's own events passes a bound.

      before   sum < 10    3 4 2 | 5 1 3 | …      closed by the event that would break it
      with     sum >= 10   3 4 5 | 9 2 | …        closed with the event that makes it true

needs   an operator of kernels/frame_operators.py, user-defined ones included
costs   one lift, one combine and one measure per event, whatever the aggregate; O(1) state per key
from    Grossniklaus et al. 2016, sections 3.2 and 5.2.4; conventions as in kernels/framing.py
"""

import numpy as np

from kernels.frame_operators import measure, wrapped
from kernels.framing import KEY, LAST, OPEN, ROWS, SLOT, START, end_frame, take_slot
from kernels.jit import kernel
from kernels.monoids import combine, lift, load, store

OVERFLOW = np.iinfo(np.int64).min  # returned when an integer sum has left int64


@kernel
def close_before(op, data, rule, block, keys, out, first):
    """lo <= aggregate <= hi holds over every frame; an event that breaks it alone is in no frame.

    keys: state, and per key the partial of its frame and how many values that is of. out: frames, and their answers.
    """
    (columns, valid), (state, partials, counts), (found, values, sizes) = data, keys, out
    lo, hi, needs = rule
    ts, ids, rows, base, shift = block
    frames, n = found.frames, found.count[0]
    for i in range(first, rows.size):
        r = np.uint64(rows[i])
        e, k = r + np.uint64(base), np.uint64(ids[r] >> shift)
        t = ts[e]
        if t < state[k, LAST] or n == frames.shape[0]:
            found.count[0] = n
            return i if n == frames.shape[0] else -1 - np.int64(e)
        outside = False
        if valid.size == 0 or valid[e]:
            x = lift(op, columns, e)
            m = counts[k]
            new = combine(op, load(partials, k), x) if m > 0 else x
            answer = measure(op, m + 1, new)
            over = wrapped(op, new)
            if over and answer >= 0:  # a sum that wraps upwards was below int64, and breaks no `<`
                return OVERFLOW
            if over or (m + 1 >= needs and not lo <= answer <= hi):
                if state[k, ROWS] > 0:
                    slot = state[k, SLOT]
                    sizes[slot] = m
                    if m >= needs:
                        values[slot] = measure(op, m, load(partials, k))
                    end_frame(frames, state, k)
                new, m = x, 0
                outside = needs <= 1 and not lo <= measure(op, 1, x) <= hi
            store(partials, k, new)
            counts[k] = 0 if outside else m + 1
        if not outside:
            if state[k, ROWS] == 0:
                state[k, START] = t
                take_slot(frames, n, k, t, e, 0)
                state[k, SLOT] = n
                n += 1
            state[k, ROWS] += 1
        state[k, LAST] = t
    found.count[0] = n
    return rows.size


@kernel
def close_with(op, data, rule, block, keys, out, first):
    """A frame ends with the event that brings the aggregate into lo .. hi; an unfinished one is none."""
    (columns, valid), (state, partials, counts), (found, values, sizes) = data, keys, out
    lo, hi, needs = rule
    ts, ids, rows, base, shift = block
    frames, n = found.frames, found.count[0]
    for i in range(first, rows.size):
        r = np.uint64(rows[i])
        e, k = r + np.uint64(base), np.uint64(ids[r] >> shift)
        t = ts[e]
        if t < state[k, LAST] or n == frames.shape[0]:
            found.count[0] = n
            return i if n == frames.shape[0] else -1 - np.int64(e)
        if state[k, ROWS] == 0:
            state[k, START] = t
        state[k, ROWS] += 1
        state[k, LAST] = t
        if valid.size and not valid[e]:
            continue
        x = lift(op, columns, e)
        m = counts[k]
        new = combine(op, load(partials, k), x) if m > 0 else x
        if wrapped(op, new):
            return OVERFLOW
        answer = measure(op, m + 1, new)
        store(partials, k, new)
        counts[k] = m + 1
        if m + 1 >= needs and lo <= answer <= hi:
            take_slot(frames, n, k, state[k, START], e, 0)
            state[k, SLOT] = n
            values[n], sizes[n] = answer, m + 1
            n += 1
            end_frame(frames, state, k)
            counts[k] = 0
    found.count[0] = n
    return rows.size


@kernel
def measure_open(op, needs, keys, out):
    """The aggregates of frames still open, so far."""
    (_, partials, counts), (found, values, sizes) = keys, out
    for slot in range(found.count[0]):
        if found.frames[slot, OPEN]:
            k = found.frames[slot, KEY]
            sizes[slot] = counts[k]
            if counts[k] >= needs:
                values[slot] = measure(op, counts[k], load(partials, k))
