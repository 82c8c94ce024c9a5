"""Threshold and boundary frames: maximal runs of events that are alike, by a predicate or by the cell they lie in.

      key         a a a a a a b b        events of a key that follow each other and are alike are one stretch
      inside      . . x x x . x x        [0, 2) [2, 5) [5, 6) [6, 8)

needs, costs, conventions: as in kernels/frames/framing.py
from    Grossniklaus et al. 2016, sections 5.2.1 and 5.2.2, Maier et al. 2012, section 4.1

Whether an event is inside can not be predicted where keys are interleaved, so only a change of it is branched on.
Tried: the loop over a stretch as a kernel of its own, which is not inlined: seven times slower.
"""

import numpy as np

from kernels.compile.jit import kernel
from kernels.frames import cells as frame_cells
from kernels.frames.framing import (
    BLOCK,
    GAP_END,
    GAP_ROWS,
    GAP_SLOT,
    GAP_START,
    LAST,
    ROWS,
    SLOT,
    START,
    close_slot,
    listed,
    scratch,
    take_slot,
)


@kernel
def threshold(events, values, rule, state, found, first):
    """Maximal runs with lo <= value <= hi; rule: those, min_rows and min_span, and whether gaps are wanted too."""
    ts, lo, hi, gaps, (rows, keys) = events.ts, rule[0], rule[1], rule[4], scratch()
    frames, n = found.frames, found.count[0]
    for block in range(first, events.last, BLOCK):
        found.count[0] = n
        if n + BLOCK > frames.shape[0]:
            return block
        base, size, i = np.uint64(block), listed(events, block, rows, keys), np.uint64(0)
        while i < size:
            e, k = base + rows[i], np.uint64(keys[i])
            if ts[e] < state[k, LAST]:
                return -1
            inside = (lo <= values[e]) & (values[e] <= hi)
            until, j = ts[e], i + np.uint64(1)
            while j < size and keys[j] == k:
                v, t = values[base + rows[j]], ts[base + rows[j]]
                if (t < until) | (((lo <= v) & (v <= hi)) != inside):
                    break
                until = t
                j += np.uint64(1)
            if (inside ^ (state[k, ROWS] > 0)) | (inside & (state[k, SLOT] < 0)) | gaps:
                stretch = base, rows[i:j]
                n += enter(ts, stretch, k, rule, state, frames, n) if inside else 0
                n += 0 if inside else leave(ts, stretch, k, gaps, state, frames, n)
            state[k, ROWS] += np.int64(j - i) * inside
            state[k, LAST] = until
            i = j
    found.count[0] = n
    return events.last


@kernel
def enter(ts, stretch, k, rule, state, frames, n):
    """Before a stretch inside: is it now that the run of key k becomes a frame? Returns how many slots were taken.

    stretch = the first row of the block, and the rows of the stretch, counted from there.
    """
    (base, rows), min_rows, min_span = stretch, rule[2], rule[3]
    if state[k, ROWS] == 0:
        state[k, START] = ts[base + rows[0]]
    if state[k, SLOT] >= 0:
        return 0
    for i in range(rows.size):
        e = base + rows[i]
        if state[k, ROWS] + i + 1 >= min_rows and np.uint64(ts[e] - state[k, START]) >= min_span:
            close_slot(frames, state[k, GAP_SLOT], state[k, GAP_END], state[k, GAP_ROWS])
            state[k, GAP_SLOT], state[k, GAP_ROWS] = -1, 0
            take_slot(frames, n, k, state[k, START], e, 0, state[k, ROWS] + i)
            state[k, SLOT] = n
            return 1
    return 0


@kernel
def leave(ts, stretch, k, gaps, state, frames, n):
    """Before a stretch outside: the run of key k is over. A gap is certain at its first event outside."""
    base, rows = stretch
    if state[k, SLOT] >= 0 or not gaps:
        close_slot(frames, state[k, SLOT], state[k, LAST], state[k, ROWS])
        state[k, SLOT], state[k, ROWS] = -1, 0
    if not gaps:
        return 0
    run_joins_gap(state, k)
    before = state[k, GAP_ROWS]
    if before == 0:
        state[k, GAP_START] = ts[base + rows[0]]
    state[k, GAP_ROWS] += rows.size
    state[k, GAP_END] = ts[base + rows[-1]]
    if state[k, GAP_SLOT] >= 0:
        return 0
    take_slot(frames, n, k, state[k, GAP_START], base + rows[0], 1, before)
    state[k, GAP_SLOT] = n
    return 1


@kernel
def run_joins_gap(state, k):
    """A run that was too short is part of the gap around it."""
    if state[k, ROWS] > 0:
        if state[k, GAP_ROWS] == 0:
            state[k, GAP_START] = state[k, START]
        state[k, GAP_ROWS] += state[k, ROWS]
        state[k, GAP_END] = state[k, LAST]
        state[k, ROWS] = 0


@kernel
def finish_gaps(state, found):
    """The end of the stream: unfinished runs that never became frames are gaps, or part of one."""
    n = found.count[0]
    for k in range(state.shape[0]):
        if state[k, SLOT] < 0 and state[k, ROWS] > 0:
            run_joins_gap(state, k)
            if state[k, GAP_SLOT] < 0:
                take_slot(found.frames, n, k, state[k, GAP_START], -1, 1, 0)
                state[k, GAP_SLOT] = n
                n += 1
    found.count[0] = n


@kernel
def boundary(events, dimensions, state, within, marks, found, first):
    """Maximal runs inside one cell; within[k]: the code of a key's cell, marks[slot]: of a frame's."""
    ts, (rows, keys), cells = events.ts, scratch(), np.empty((len(dimensions), BLOCK), np.int64)
    frames, n = found.frames, found.count[0]
    for block in range(first, events.last, BLOCK):
        found.count[0] = n
        if n + BLOCK > frames.shape[0]:
            return block
        for d in range(len(dimensions)):
            frame_cells.find(dimensions[d], block, min(block + BLOCK, events.last), cells[d])
        base, size, i = np.uint64(block), listed(events, block, rows, keys), np.uint64(0)
        while i < size:
            r, k = np.uint64(rows[i]), np.uint64(keys[i])
            until, j = ts[base + r], i + np.uint64(1)
            if until < state[k, LAST]:
                return -1
            same = state[k, ROWS] > 0
            for d in range(cells.shape[0]):
                same &= cells[d, r] == within[k, d]
            if not same:
                close_slot(frames, state[k, SLOT], state[k, LAST], state[k, ROWS])
                take_slot(frames, n, k, until, base + r, 0, 0)
                for d in range(cells.shape[0]):
                    within[k, d] = marks[n, d] = cells[d, r]
                state[k, START], state[k, SLOT], state[k, ROWS] = until, n, 0
                n += 1
            while j < size and keys[j] == k:
                stay = ts[base + rows[j]] >= until
                for d in range(cells.shape[0]):
                    stay &= cells[d, rows[j]] == cells[d, r]
                if not stay:
                    break
                until = ts[base + rows[j]]
                j += np.uint64(1)
            state[k, ROWS] += np.int64(j - i)
            state[k, LAST] = until
            i = j
    found.count[0] = n
    return events.last
