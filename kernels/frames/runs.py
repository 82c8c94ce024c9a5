"""Threshold, boundary and session frames: maximal runs of events that are alike, by a predicate, their cell, or time.

      key         a a a a a a b b        events of a key that follow each other and are alike are one stretch
      inside      . . x x x . x x        [0, 2) [2, 5) [5, 6) [6, 8)

      run         a b c d e f g          max_rows 3, min_rows 2
      pieces      [---] [---] g          the event that would be too much opens the next piece; one that is too short is
                                         no frame: dropped, or with partition=True part of the gap around it

needs, costs, conventions: as in kernels/frames/framing.py
from    Grossniklaus et al. 2016, sections 5.2.1 and 5.2.2, Maier et al. 2012, section 4.1

Whether an event is inside can not be predicted where keys are interleaved, so only a change of it is branched on. How
long frames may be is asked once a stretch is known (`grow`), so that a stretch costs the same.
Tried: the loop over a stretch as a kernel of its own, which is not inlined: seven times slower.
"""

from typing import NamedTuple

import numpy as np

from kernels.compile.jit import kernel
from kernels.frames import cells as frame_cells
from kernels.frames.framing import (
    GAP_END,
    GAP_ROWS,
    GAP_SLOT,
    GAP_START,
    LAST,
    ROWS,
    SCAN_ROWS,
    SLOT,
    START,
    close_slot,
    goes_on,
    is_enough,
    is_full,
    is_plain,
    listed,
    scratch,
    take_slot,
)


class Cells(NamedTuple):
    """The codes of cells: of the one that a key is in, and of the one that a frame, by slot, was in."""

    within: np.ndarray
    marks: np.ndarray


@kernel
def threshold(events, values, rule, state, found, first):
    """Maximal runs with lo <= value <= hi; rule: those, the lengths of frames, and whether gaps are wanted too."""
    ts, lo, hi, lengths, gaps, (rows, keys) = events.ts, rule[0], rule[1], rule[2], rule[3], scratch()
    frames, n, splits = found.frames, found.count[0], lengths.splits
    for block in range(first, events.last, SCAN_ROWS):
        found.count[0] = n
        if n + SCAN_ROWS > frames.shape[0]:
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
            splits_now = splits and not goes_on(lengths, state, k, np.int64(j - i), until)
            if (inside ^ (state[k, ROWS] > 0)) | (inside & ((state[k, SLOT] < 0) | splits_now)) | gaps:
                stretch = base, rows[i:j]
                if inside:
                    n = grow(ts, stretch, k, (lengths, gaps), state, frames, n)
                else:
                    n = leave(ts, stretch, k, (lengths, gaps), state, frames, n)
            else:
                state[k, ROWS] += np.int64(j - i) * inside
                state[k, LAST] = until
            i = j
    found.count[0] = n
    return events.last


@kernel
def boundary(events, dimensions, rule, state, cells_of, found, first):
    """Maximal runs inside one cell, of so many dimensions. rule: lengths, no gaps. cells_of: of keys and of frames."""
    ts, (rows, keys), cells = events.ts, scratch(), np.empty((len(dimensions), SCAN_ROWS), np.int64)
    frames, n, lengths, (within, marks) = found.frames, found.count[0], rule[0], cells_of
    plain = is_plain(lengths)
    for block in range(first, events.last, SCAN_ROWS):
        found.count[0] = n
        if n + SCAN_ROWS > frames.shape[0]:
            return block
        for d in range(len(dimensions)):
            frame_cells.find(dimensions[d], block, min(block + SCAN_ROWS, events.last), cells[d])
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
                close_slot(frames, state[k, SLOT], until if lengths.open else state[k, LAST], state[k, ROWS])
                for d in range(cells.shape[0]):
                    within[k, d] = cells[d, r]
                state[k, SLOT], state[k, ROWS] = -1, 0
                if plain:
                    take_slot(frames, n, k, until, base + r, 0, 0)
                    for d in range(cells.shape[0]):
                        marks[n, d] = cells[d, r]
                    state[k, START], state[k, SLOT] = until, n
                    n += 1
            while j < size and keys[j] == k:
                stay = ts[base + rows[j]] >= until
                for d in range(cells.shape[0]):
                    stay &= cells[d, rows[j]] == cells[d, r]
                if not stay:
                    break
                until = ts[base + rows[j]]
                j += np.uint64(1)
            if plain or goes_on(lengths, state, k, np.int64(j - i), until):
                state[k, ROWS] += np.int64(j - i)
                state[k, LAST] = until
            else:
                new = grow(ts, (base, rows[i:j]), k, rule, state, frames, n)
                for slot in range(n, new):
                    for d in range(cells.shape[0]):
                        marks[slot, d] = cells[d, r]
                n = new
            i = j
    found.count[0] = n
    return events.last


@kernel
def session(events, gap, rule, state, found, first):
    """Maximal runs of events none of which comes more than `gap` after the one before. rule: lengths, no gaps."""
    ts, (rows, keys), lengths = events.ts, scratch(), rule[0]
    frames, n, plain = found.frames, found.count[0], is_plain(lengths)
    for block in range(first, events.last, SCAN_ROWS):
        found.count[0] = n
        if n + SCAN_ROWS > frames.shape[0]:
            return block
        base, size, i = np.uint64(block), listed(events, block, rows, keys), np.uint64(0)
        while i < size:
            e, k = base + rows[i], np.uint64(keys[i])
            until, j, last = ts[e], i + np.uint64(1), state[k, LAST]
            if until < last:
                return -1
            if (state[k, ROWS] == 0) | (np.uint64(until - last) > gap):
                close_slot(frames, state[k, SLOT], until if lengths.open else last, state[k, ROWS])
                state[k, SLOT], state[k, ROWS] = -1, 0
                if plain:
                    take_slot(frames, n, k, until, e, 0, 0)
                    state[k, START], state[k, SLOT] = until, n
                    n += 1
            while j < size and keys[j] == k:
                t = ts[base + rows[j]]
                if (t < until) | (np.uint64(t - until) > gap):
                    break
                until = t
                j += np.uint64(1)
            if plain or goes_on(lengths, state, k, np.int64(j - i), until):
                state[k, ROWS] += np.int64(j - i)
                state[k, LAST] = until
            else:
                n = grow(ts, (base, rows[i:j]), k, rule, state, frames, n)
            i = j
    found.count[0] = n
    return events.last


@kernel
def grow(ts, stretch, k, rule, state, frames, n):
    """A stretch of events goes on with the run of key k, or begins one; returns the next slot that is free.

    stretch = the first row of the block, and the rows of the stretch, counted from there. rule = lengths, and whether
    gaps are wanted too.
    """
    (base, rows), lengths = stretch, rule[0]
    for i in range(rows.size):
        e = base + rows[i]
        t = ts[e]
        if lengths.splits and state[k, ROWS] > 0 and is_full(lengths, state[k, ROWS], state[k, START], t):
            n = split(e, t, k, rule, state, frames, n)
        if state[k, ROWS] == 0:
            state[k, START] = t
        state[k, ROWS] += 1
        state[k, LAST] = t
        if state[k, SLOT] < 0 and is_enough(lengths, state[k, ROWS], state[k, START], t):
            if state[k, GAP_ROWS] > 0:
                end_gap(frames, state, k, lengths.open)
            take_slot(frames, n, k, state[k, START], e, 0, state[k, ROWS] - 1)
            state[k, SLOT] = n
            n += 1
        if state[k, SLOT] >= 0 and not lengths.splits:  # the rest of the stretch decides nothing
            state[k, ROWS] += rows.size - i - 1
            state[k, LAST] = ts[base + rows[-1]]
            return n
    return n


@kernel
def split(e, t, k, rule, state, frames, n):
    """Event e, at t, is too much for the piece of key k: that ends before it. Returns the next slot that is free."""
    lengths, gaps = rule
    if state[k, SLOT] >= 0 or not gaps:
        end_run(frames, state, k, t, lengths.open)
        return n
    run_joins_gap(state, k)
    return gap_is_certain(frames, n, state, k, e, state[k, GAP_ROWS])


@kernel
def end_run(frames, state, k, t, is_open):
    """The run of key k ends before the event at t: a frame, if it had become one."""
    close_slot(frames, state[k, SLOT], t if is_open else state[k, LAST], state[k, ROWS])
    state[k, SLOT], state[k, ROWS] = -1, 0


# -- Gaps: what is in no frame, where partition=True reports it --------------------------------------------------------


@kernel
def leave(ts, stretch, k, rule, state, frames, n):
    """A stretch outside: the run of key k is over, and a gap goes on or begins. Returns the next slot that is free."""
    (base, rows), (lengths, gaps) = stretch, rule
    first = ts[base + rows[0]]
    if state[k, SLOT] >= 0 or not gaps:
        end_run(frames, state, k, first, lengths.open)
    state[k, LAST] = ts[base + rows[-1]]
    if not gaps:
        return n
    run_joins_gap(state, k)
    before = state[k, GAP_ROWS]
    if before == 0:
        state[k, GAP_START] = first
    state[k, GAP_ROWS] += rows.size
    state[k, GAP_END] = state[k, LAST]
    return gap_is_certain(frames, n, state, k, base + rows[0], before)


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
def gap_is_certain(frames, n, state, k, e, before):
    """A gap is certain with its first event outside, or when a piece has failed. before: its rows before event e."""
    if state[k, GAP_SLOT] >= 0:
        return n
    take_slot(frames, n, k, state[k, GAP_START], e, 1, before)
    state[k, GAP_SLOT] = n
    return n + 1


@kernel
def end_gap(frames, state, k, is_open):
    """The run of key k is certain to be a frame: the gap before it is over."""
    end = state[k, START] if is_open else state[k, GAP_END]
    close_slot(frames, state[k, GAP_SLOT], end, state[k, GAP_ROWS])
    state[k, GAP_SLOT], state[k, GAP_ROWS] = -1, 0


@kernel
def finish_gaps(state, found):
    """The end of the stream: unfinished runs that never became frames are gaps, or part of one."""
    n = found.count[0]
    for k in range(state.shape[0]):
        if state[k, SLOT] < 0 and state[k, ROWS] > 0:
            run_joins_gap(state, k)
            n = gap_is_certain(found.frames, n, state, k, -1, 0)
    found.count[0] = n
