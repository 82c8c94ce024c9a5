"""Frames in one pass: every key keeps a few numbers, every event touches only those of its key.

      values    1  7  8  2  9  9  9        threshold > 5
      state     .  open     .  open
      frames       [0..2]      [4..6]      a slot is taken when a frame is certain, and filled in when it ends

needs   events of one key in order of ts; keys may be interleaved in any way
costs   O(1) per event (one cache line of state), O(1) per frame
from    Grossniklaus et al. 2016, section 5 (ProcessTuple: close, update, open), Maier et al. 2012, section 4.1

`state[k]` is what a key remembers; `frames[slot]` is what comes out, in the order in which frames become certain. Scans
take a block of events at a time, those listed in `rows`. They stop when `frames` is full, to be called again with a
larger one, and return where they stopped: rows.size when done, -1 - row at a row that is older than its key's last.

Events are taken in arrival order, whatever their keys. Indices are unsigned: a signed one, which may be negative as far
as the compiler knows, is checked for that at each use, and the scan takes twice as long.
"""

from typing import NamedTuple

import numpy as np

from kernels.jit import kernel

LAST, START, ROWS, SLOT, GAP_START, GAP_END, GAP_ROWS, GAP_SLOT = range(8)  # of a key's state
KEY, BEGIN, END, COUNT, AT, OPEN, GAP, SENT = range(8)  # of a frame
NEVER = np.iinfo(np.int64).min
NULL_CELL = np.iinfo(np.int64).min


class Block(NamedTuple):
    """Rows base + rows[i] of a batch; ids: the key of each row from `base` on.

    One scan sees the keys of its part only, id % 2^shift == part, and numbers them id >> shift.
    """

    ts: np.ndarray
    ids: np.ndarray
    rows: np.ndarray
    base: int
    shift: int


class Found(NamedTuple):
    """frames[:count[0]] are in use."""

    frames: np.ndarray
    count: np.ndarray


@kernel
def rows_of_part(ids, part, parts, rows):
    """List the rows whose key belongs to a part; returns how many. Branchless: keys come in no order to predict."""
    n = 0
    for e in range(ids.size):
        rows[n] = e
        n += (ids[e] & (parts - 1)) == part
    return n


@kernel
def take_slot(frames, n, k, begin, e, gap):
    frames[n, KEY], frames[n, BEGIN], frames[n, AT] = k, begin, e
    frames[n, OPEN], frames[n, GAP], frames[n, SENT] = 1, gap, 0


@kernel
def end_frame(frames, state, k):
    """The run of key k has ended with its last event: a frame, if it had become one."""
    slot = state[k, SLOT]
    if slot >= 0:
        frames[slot, END], frames[slot, COUNT], frames[slot, OPEN] = state[k, LAST], state[k, ROWS], 0
        state[k, SLOT] = -1
    state[k, ROWS] = 0


@kernel
def threshold(block, values, valid, rule, state, found, first):
    """Maximal runs with lo <= value <= hi; certain once they have min_rows rows and last min_span."""
    lo, hi, min_rows, min_span = rule
    ts, ids, rows, base, shift = block
    frames, n = found.frames, found.count[0]
    for i in range(first, rows.size):
        r = np.uint64(rows[i])
        e, k = r + np.uint64(base), np.uint64(ids[r] >> shift)
        t = ts[e]
        if t < state[k, LAST] or n == frames.shape[0]:
            found.count[0] = n
            return i if n == frames.shape[0] else -1 - np.int64(e)
        if lo <= values[e] <= hi and (valid.size == 0 or valid[e]):
            if state[k, ROWS] == 0:
                state[k, START] = t
            state[k, ROWS] += 1
            if state[k, SLOT] < 0 and state[k, ROWS] >= min_rows and t - state[k, START] >= min_span:
                take_slot(frames, n, k, state[k, START], e, 0)
                state[k, SLOT] = n
                n += 1
        elif state[k, ROWS] > 0:
            end_frame(frames, state, k)
        state[k, LAST] = t
    found.count[0] = n
    return rows.size


@kernel
def end_gap(frames, state, k):
    slot = state[k, GAP_SLOT]
    if slot >= 0:
        frames[slot, END], frames[slot, COUNT], frames[slot, OPEN] = state[k, GAP_END], state[k, GAP_ROWS], 0
        state[k, GAP_SLOT] = -1
    state[k, GAP_ROWS] = 0


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
def threshold_partition(block, values, valid, rule, state, found, first):
    """As `threshold`, and the gaps between: certain at their first event that does not satisfy the predicate."""
    lo, hi, min_rows, min_span = rule
    ts, ids, rows, base, shift = block
    frames, n = found.frames, found.count[0]
    for i in range(first, rows.size):
        r = np.uint64(rows[i])
        e, k = r + np.uint64(base), np.uint64(ids[r] >> shift)
        t = ts[e]
        if t < state[k, LAST] or n == frames.shape[0]:
            found.count[0] = n
            return i if n == frames.shape[0] else -1 - np.int64(e)
        if lo <= values[e] <= hi and (valid.size == 0 or valid[e]):
            if state[k, ROWS] == 0:
                state[k, START] = t
            state[k, ROWS] += 1
            if state[k, SLOT] < 0 and state[k, ROWS] >= min_rows and t - state[k, START] >= min_span:
                end_gap(frames, state, k)
                take_slot(frames, n, k, state[k, START], e, 0)
                state[k, SLOT] = n
                n += 1
        else:
            if state[k, SLOT] >= 0:
                end_frame(frames, state, k)
            run_joins_gap(state, k)
            if state[k, GAP_ROWS] == 0:
                state[k, GAP_START] = t
            state[k, GAP_ROWS] += 1
            state[k, GAP_END] = t
            if state[k, GAP_SLOT] < 0:
                take_slot(frames, n, k, state[k, GAP_START], e, 1)
                state[k, GAP_SLOT] = n
                n += 1
        state[k, LAST] = t
    found.count[0] = n
    return rows.size


@kernel
def finish_gaps(state, found):
    """The end of the stream: unfinished runs that never became frames are gaps, or part of one."""
    n = found.count[0]
    for k in range(state.shape[0]):
        if state[k, SLOT] < 0 and state[k, ROWS] > 0:
            run_joins_gap(state, k)
            if state[k, GAP_SLOT] < 0:
                take_slot(found.frames, n, k, state[k, GAP_START], -1, 1)
                state[k, GAP_SLOT] = n
                n += 1
    found.count[0] = n


@kernel
def cells_of_width(values, valid, width, cells):
    """cells[e] = n with (n-1) width < value <= n width; what no int64 can number goes to the outermost cells."""
    most = 9.2e18
    for e in range(values.size):
        v = values[e] / width
        if v != v or (valid.size and not valid[e]):
            cells[e] = NULL_CELL
        else:
            cells[e] = np.int64(np.ceil(min(max(v, -most), most)))


@kernel
def cells_of_whole_width(values, valid, width, cells):
    """The same for integers, exactly."""
    for e in range(values.size):
        cells[e] = NULL_CELL if valid.size and not valid[e] else -(-values[e] // width)


@kernel
def cells_between(values, valid, breaks, cells):
    """cells[e] = how many breaks are below the value: i with b_i < value <= b_i+1, 0 below the first."""
    for e in range(values.size):
        v = values[e]
        if v != v or (valid.size and not valid[e]):
            cells[e] = NULL_CELL
            continue
        lo, hi = 0, breaks.size
        while lo < hi:
            mid = (lo + hi) >> 1
            if breaks[mid] < v:
                lo = mid + 1
            else:
                hi = mid
        cells[e] = lo


@kernel
def boundary(block, cells, state, within, marks, found, first):
    """Maximal runs of equal cells[:, r], r from `base` on; within[k]: the cell of a key, marks[slot]: of a frame."""
    ts, ids, rows, base, shift = block
    frames, n = found.frames, found.count[0]
    for i in range(first, rows.size):
        r = np.uint64(rows[i])
        e, k = r + np.uint64(base), np.uint64(ids[r] >> shift)
        t = ts[e]
        if t < state[k, LAST] or n == frames.shape[0]:
            found.count[0] = n
            return i if n == frames.shape[0] else -1 - np.int64(e)
        same = state[k, ROWS] > 0
        for d in range(cells.shape[0]):
            same = same and cells[d, r] == within[k, d]
        if not same:
            end_frame(frames, state, k)
            for d in range(cells.shape[0]):
                within[k, d] = marks[n, d] = cells[d, r]
            take_slot(frames, n, k, t, e, 0)
            state[k, SLOT] = n
            n += 1
        state[k, ROWS] += 1
        state[k, LAST] = t
    found.count[0] = n
    return rows.size


@kernel
def touch_open(frames, count, state):
    """Frames still open, as far as they go."""
    for slot in range(count):
        if frames[slot, OPEN]:
            k = frames[slot, KEY]
            end, rows = (GAP_END, GAP_ROWS) if frames[slot, GAP] else (LAST, ROWS)
            frames[slot, END], frames[slot, COUNT] = state[k, end], state[k, rows]


@kernel
def keep_open(frames, count, state):
    """Move the open frames to the front, forget the others; returns how many are left."""
    n = 0
    for slot in range(count):
        if frames[slot, OPEN]:
            frames[n] = frames[slot]
            state[frames[n, KEY], GAP_SLOT if frames[n, GAP] else SLOT] = n
            n += 1
    return n


@kernel
def first_instants(ts, ids, instants):
    """instants[k] = the ts of the first row of key k."""
    for e in range(ts.size - 1, -1, -1):
        instants[ids[e] if ids.size else 0] = ts[e]
