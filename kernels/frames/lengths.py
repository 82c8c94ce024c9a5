"""How short and how long frames may be, and where they end: asked in the same way by the scans of all kinds.

      run       a b c d e f g          max_rows 3, min_rows 2
      pieces    [---] [---] g          the event that would be too much opens the next piece
      frames    [---] [---]            a piece that is too short is none: dropped, or part of the gap around it

      gaps      . . a b . . f g h .    with partition=True, min_rows 3: [......] f g h [.]

A slot is taken as soon as a piece is long enough, so that it is certain to be a frame; until then only the state of its
key knows of it. needs, conventions: as in kernels/frames/framing.py
"""

from typing import NamedTuple

import numpy as np

from kernels.compile.inlining import helper
from kernels.compile.jit import kernel
from kernels.frames.framing import (
    COUNT,
    END,
    GAP_END,
    GAP_ROWS,
    GAP_SLOT,
    GAP_START,
    LAST,
    OPEN,
    ROWS,
    SLOT,
    START,
    close_slot,
    take_slot,
)


class AllowedLengths(NamedTuple):
    """Rows and time, from the first event to the last, of a frame: the least and the most that it may have.

    splits: is there a most? open: is the end of a frame the next event of its key, not the last one that is in it?
    """

    min_rows: int
    max_rows: int
    min_span: np.uint64
    max_span: np.uint64
    splits: bool
    open: bool


@helper
def is_plain(lengths):
    """Is every run a frame, from its first event on and however long?"""
    return not lengths.splits and lengths.min_rows == 1 and lengths.min_span == 0


@helper
def is_full(lengths, rows, start, t):
    """Would a run of so many rows since `start` be too long with one more at t?"""
    return (rows >= lengths.max_rows) | (np.uint64(t - start) > lengths.max_span)


@helper
def is_enough(lengths, rows, start, t):
    """Is a run of so many rows, from `start` to t, long enough?"""
    return (rows >= lengths.min_rows) & (np.uint64(t - start) >= lengths.min_span)


@helper
def close_inside(frames, slot, end, rows, lengths):
    """A frame ends with an event of its own. Returns the slot that its key still has: that of one without an end."""
    frames[slot, END], frames[slot, COUNT] = end, rows
    frames[slot, OPEN] = 1 if lengths.open else 0
    return slot if lengths.open else -1


@helper
def meet_next(frames, slot, t):
    """The next event has come, of a frame that waited for it to know its end."""
    frames[slot, END], frames[slot, OPEN] = t, 0


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
