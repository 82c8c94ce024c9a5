"""Frames in one pass: every key keeps a few numbers, every event touches only those of its key.

      values    1  7  8  2  9  9  9        threshold > 5
      state     .  open     .  open
      frames       [0..2]      [4..6]      a slot is taken when a frame is certain, and filled in when it ends

needs   events of one key in order of ts; keys may be interleaved in any way
costs   O(1) per event (one cache line of state), O(1) per frame
from    Grossniklaus et al. 2016, section 5 (ProcessTuple: close, update, open), Maier et al. 2012, section 4.1

How long frames may be, and where they end, is asked in the same way by the scans of all kinds: a slot is taken as soon
as a run is long enough, and a run that one more event would make too long ends before it.

`state[k]` is what a key remembers; `frames[slot]` is what comes out, in the order in which frames become certain. Scans
(runs.py, between.py, delta.py, aggregates.py) take events block by block in arrival order, whatever their
keys, and what a key remembers is read and written once for events of it that follow each other. They return the row
where a block may no longer fit into `frames`, to be called again from there with a larger one; the end when done; -1 at
a row that is older than its key's last.

Indices are unsigned: a signed one, which may be negative as far as the compiler knows, is checked for that at each use,
and the scan takes twice as long.
"""

from typing import NamedTuple

import numpy as np

from kernels.compile.inlining import helper
from kernels.compile.jit import kernel

LAST, START, ROWS, SLOT, GAP_START, GAP_END, GAP_ROWS, GAP_SLOT = range(8)  # of a key's state
KEY, BEGIN, END, COUNT, AT, OPEN, GAP, SENT = range(8)  # of a frame
OVER = 2  # OPEN of a frame that the end of the stream has ended, where frames end with the next event of their key
LEAD = SENT  # of a frame that no detector has looked at yet: how many of its events come before the one AT
SCAN_ROWS = 2048  # rows whose numbers and keys stay in the first-level cache


class ScannedEvents(NamedTuple):
    """Rows of a batch up to `last`, of those the ones whose key is in a part: id % 2^shift == part.

    ids: the key of each row, empty if all have the same. One scan sees one part, and numbers its keys id >> shift.
    """

    ts: np.ndarray
    ids: np.ndarray
    last: int
    part: int
    shift: int


class FoundFrames(NamedTuple):
    """frames[:count[0]] are in use."""

    frames: np.ndarray
    count: np.ndarray


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


@kernel
def scratch():
    """Room for the rows of a block, and for their keys."""
    return np.empty(SCAN_ROWS + 1, np.uint32), np.empty(SCAN_ROWS + 1, np.uint32)


@kernel
def listed(events, base, rows, keys):
    """List what a part has in the block from `base` on: rows counted from there, and their keys; returns how many.

    Branchless: keys come in no order to predict.
    """
    ids, part, shift = events.ids[base : base + SCAN_ROWS], events.part, events.shift
    size, mask = np.uint64(min(events.last - base, SCAN_ROWS)), (1 << shift) - 1
    if ids.size == 0 or shift == 0:
        for i in range(size):
            rows[i] = i
            keys[i] = ids[i] if ids.size else 0
        return size
    n = np.uint64(0)
    for i in range(size):
        rows[n] = i
        keys[n] = ids[i] >> shift
        n += np.uint64((ids[i] & mask) == part)
    return n


@helper
def take_slot(frames, n, k, begin, e, gap, lead):
    """A frame of key k is certain at event e, its event number `lead`, counted from 0."""
    frames[n, KEY], frames[n, BEGIN], frames[n, AT] = k, begin, e
    frames[n, OPEN], frames[n, GAP], frames[n, LEAD] = 1, gap, lead


@helper
def close_slot(frames, slot, end, rows):
    """A run has ended: a frame, if it had become one."""
    if slot >= 0:
        frames[slot, END], frames[slot, COUNT], frames[slot, OPEN] = end, rows, 0


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
def goes_on(lengths, state, k, more, until):
    """Is nothing decided by so many more events, up to `until`, of a run that is a frame already? Else ask `grow`.

    Asked where it is used: a call for each of events that are interleaved was four times the time of all the rest.
    """
    fits = (state[k, ROWS] + more <= lengths.max_rows) & (np.uint64(until - state[k, START]) <= lengths.max_span)
    return (state[k, SLOT] >= 0) & fits


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
def touch_open(frames, count, state):
    """Frames still open, as far as they go. One that waits for the next event alone, to know its end, is as it is."""
    for slot in range(count):
        if frames[slot, OPEN]:
            k = frames[slot, KEY]
            end, rows = (GAP_END, GAP_ROWS) if frames[slot, GAP] else (LAST, ROWS)
            if state[k, rows] > 0:
                frames[slot, END], frames[slot, COUNT] = state[k, end], state[k, rows]


@kernel
def end_open(frames, state, as_open):
    """The stream is over: frames still open end with the last event of their key. as_open: 0, or OVER."""
    for k in range(state.shape[0]):
        for which, end, rows in ((SLOT, LAST, ROWS), (GAP_SLOT, GAP_END, GAP_ROWS)):
            slot = state[k, which]
            if slot >= 0:
                if state[k, rows] > 0:
                    frames[slot, END], frames[slot, COUNT] = state[k, end], state[k, rows]
                frames[slot, OPEN] = as_open


@kernel
def keep_open(frames, count, state, gone, moves):
    """Frames in these slots, given in order, are forgotten; into their places come the last ones that are open.

    moves[0], moves[1]: from which slot to which those moved; returns how many. All that stay where they are cost
    nothing: of 30,000 open frames, to move up the rest took as long as to scan a batch of 10,000 events.
    """
    last, behind, n = count, gone.size, 0
    for slot in gone[: np.searchsorted(gone, count - gone.size)]:
        last -= 1
        while gone[behind - 1] == last:
            behind, last = behind - 1, last - 1
        for field in range(frames.shape[1]):  # a row at once would compile for 3 s: Numba words its error in it
            frames[slot, field] = frames[last, field]
        state[frames[slot, KEY], GAP_SLOT if frames[slot, GAP] else SLOT] = slot
        moves[0, n], moves[1, n] = last, slot
        n += 1
    return n


@kernel
def at_rest(state, found):
    """found[k]: is nothing open of key k?"""
    for k in range(state.shape[0]):
        closed = (state[k, SLOT] < 0) & (state[k, GAP_SLOT] < 0)
        found[k] = closed & (state[k, ROWS] == 0) & (state[k, GAP_ROWS] == 0)


@kernel
def first_instants(ts, ids, instants):
    """instants[k] = the ts of the first row of key k."""
    for e in range(ts.size - 1, -1, -1):
        instants[ids[e] if ids.size else 0] = ts[e]
