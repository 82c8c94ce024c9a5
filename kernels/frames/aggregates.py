"""Aggregate frames: cut where an aggregate of the frame's own events passes a bound.

      before   sum < 10    3 4 2 | 5 1 3 | …      closed by the event that would break it
      with     sum >= 10   3 4 5 | 9 2 | …        closed with the event that makes it true

needs   an operator of kernels/frames/growing.py: those of operators.py, user-defined ones, conditions over several
costs   one lift, one combine and one measure per event, whatever the aggregate; O(1) state per key
from    Grossniklaus et al. 2016, sections 3.2 and 5.2.4; conventions as in kernels/frames/framing.py
"""

import numpy as np

from kernels.compile.jit import kernel
from kernels.frames.framing import (
    KEY,
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
from kernels.frames.growing import answer, combine, lift, load, measure, opened, store, wrapped

OVERFLOW = np.iinfo(np.int64).min  # returned when an integer sum has left int64


@kernel
def close_before(op, data, rule, events, memory, out, first):
    """lo <= aggregate <= hi holds over every frame; an event that breaks it alone is in no frame.

    memory: state, and per key the partial of its frame and of how many values that is. out: frames, and their answers.
    """
    (columns, valid), (state, partials, counts), found = data, memory, out[0]
    columns = opened(op, columns)
    (lo, hi, needs, lengths), ts, (rows, keys) = rule, events.ts, scratch()
    frames, n = found.frames, found.count[0]
    for block in range(first, events.last, SCAN_ROWS):
        found.count[0] = n
        if n + SCAN_ROWS > frames.shape[0]:
            return block
        base, size, i = np.uint64(block), listed(events, block, rows, keys), np.uint64(0)
        while i < size:
            k = np.uint64(keys[i])
            last, run, slot, m, partial = state[k, LAST], state[k, ROWS], state[k, SLOT], counts[k], load(partials, k)
            start = state[k, START]
            while i < size and keys[i] == k:
                e, outside = base + rows[i], False
                t = ts[e]
                if t < last:
                    return -1
                if lengths.splits and run > 0 and is_full(lengths, run, start, t):
                    close_measured(op, (m, partial), slot, t if lengths.open else last, run, out, needs)
                    m, run, slot = 0, 0, -1
                if valid.size == 0 or valid[e]:
                    x = lift(op, columns, e)
                    new = combine(op, partial, x) if m > 0 else x
                    value, over = measure(op, m + 1, new), wrapped(op, new)
                    if over and value >= 0:  # a sum that wraps upwards was below int64, and breaks no `<`
                        return OVERFLOW
                    if over or (m + 1 >= needs and not lo <= value <= hi):
                        close_measured(op, (m, partial), slot, t if lengths.open else last, run, out, needs)
                        new, m, run, slot = x, 0, 0, -1
                        outside = needs <= 1 and not lo <= measure(op, 1, x) <= hi
                    partial, m = new, 0 if outside else m + 1
                start = t if run == 0 else start
                run += not outside
                if slot < 0 and not outside and is_enough(lengths, run, start, t):
                    take_slot(frames, n, k, start, e, 0, run - 1)
                    slot = n
                    n += 1
                last = t
                i += np.uint64(1)
            state[k, LAST], state[k, ROWS], state[k, SLOT], state[k, START] = last, run, slot, start
            counts[k] = m
            store(partials, k, partial)
    found.count[0] = n
    return events.last


@kernel
def close_with(op, data, rule, events, memory, out, first):
    """A frame ends with the event that brings the aggregate into lo .. hi; an unfinished one is none.

    One that was as long as it may be is a frame, too, and the event that was too much for it may end the next one by
    itself: there is room for two frames per event.
    """
    (columns, valid), (state, partials, counts), (found, values, sizes) = data, memory, out
    columns = opened(op, columns)
    (lo, hi, needs, lengths), ts, (rows, keys) = rule, events.ts, scratch()
    frames, n = found.frames, found.count[0]
    for block in range(first, events.last, SCAN_ROWS):
        found.count[0] = n
        if n + 2 * SCAN_ROWS > frames.shape[0]:
            return block
        base, size, i = np.uint64(block), listed(events, block, rows, keys), np.uint64(0)
        while i < size:
            k = np.uint64(keys[i])
            last, run, slot, m, partial = state[k, LAST], state[k, ROWS], state[k, SLOT], counts[k], load(partials, k)
            start = state[k, START]
            while i < size and keys[i] == k:
                e = base + rows[i]
                t = ts[e]
                if t < last:
                    return -1
                if slot >= 0:
                    meet_next(frames, slot, t)
                    slot = -1
                if lengths.splits and run > 0 and is_full(lengths, run, start, t):
                    if is_enough(lengths, run, start, last):
                        take_slot(frames, n, k, start, e, 0, run)
                        close_measured(op, (m, partial), n, t if lengths.open else last, run, out, needs)
                        n += 1
                    run, m = 0, 0
                start = t if run == 0 else start
                run += 1
                last = t
                i += np.uint64(1)
                if valid.size and not valid[e]:
                    continue
                x = lift(op, columns, e)
                partial, m = combine(op, partial, x) if m > 0 else x, m + 1
                if wrapped(op, partial):
                    return OVERFLOW
                value = measure(op, m, partial)
                if m >= needs and lo <= value <= hi:
                    if is_enough(lengths, run, start, t):
                        take_slot(frames, n, k, start, e, 0, run - 1)
                        slot = close_inside(frames, n, last, run, lengths)
                        values[n], sizes[n] = answer(op, m, partial)
                        n += 1
                    run, m = 0, 0
            state[k, LAST], state[k, ROWS], state[k, SLOT], state[k, START] = last, run, slot, start
            counts[k] = m
            store(partials, k, partial)
    found.count[0] = n
    return events.last


@kernel
def close_measured(op, held, slot, end, rows, out, needs):
    """A frame, if the slot is one, ends with what it holds: of how many values, and their partial."""
    (m, partial), (found, values, sizes) = held, out
    if slot >= 0:
        sizes[slot] = m
        if m >= needs:
            values[slot], sizes[slot] = answer(op, m, partial)
        close_slot(found.frames, slot, end, rows)


@kernel
def measure_open(op, needs, memory, out, slots):
    """The aggregates of the frames in these slots, which are still open, so far."""
    (_, partials, counts), (found, values, sizes) = memory, out
    for slot in slots:
        k = found.frames[slot, KEY]
        sizes[slot] = counts[k]
        if counts[k] >= needs:
            values[slot], sizes[slot] = answer(op, counts[k], load(partials, k))
