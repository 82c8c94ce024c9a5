"""What keys have of a batch of events: the run and the gap that they had before it, and those that they are left with.

      before  [ gap ][ run ]   batch  . . . . . .          rows of a key, by their place; below 0: before it
      left                         [ gap    ][ run ]

needs, conventions: as in kernels/frames/framing.py
costs   O(1) per key of the batch: one cache line of its state
"""

import numpy as np

from kernels.compile.inlining import helper
from kernels.compile.jit import kernel
from kernels.frames.framing import AT, COUNT, GAP, GAP_ROWS, KEY, LEAD, ROWS, SLOT


@helper
def run_of(state, frames, k):
    """How many of the last rows of a key are in its run, or in a frame that waits for the next event to end.

    One branch, that is seldom taken: one on rows alone, which nobody can predict, would wait for the memory of each key
    before that of the next is asked for.
    """
    rows, slot = state[k, ROWS], state[k, SLOT]
    if (rows == 0) & (slot >= 0):
        return frames[np.uint64(slot), COUNT]
    return rows


@kernel
def before(state, frames, keys, run, gap):
    """How many rows the run and the gap of each key have."""
    for i in range(keys.size):
        k = np.uint64(keys[i])
        run[i], gap[i] = run_of(state, frames, k), state[k, GAP_ROWS]


@kernel
def left(state, frames, keys, starts, runs, gaps):
    """List the runs and the gaps that keys have now: the place of the key in the batch, the first row, and the one
    behind the last. starts: where the rows of each key begin. Returns how many of either there are."""
    of_runs, of_gaps = np.uint64(0), np.uint64(0)
    for i in range(keys.size):
        k = np.uint64(keys[i])
        size, run, gap = starts[i + 1] - starts[i], run_of(state, frames, k), state[k, GAP_ROWS]
        runs[0, of_runs], runs[1, of_runs], runs[2, of_runs] = i, size - run, size
        gaps[0, of_gaps], gaps[1, of_gaps], gaps[2, of_gaps] = i, size - run - gap, size - run
        of_runs += np.uint64(run > 0)
        of_gaps += np.uint64(gap > 0)
    return of_runs, of_gaps


@kernel
def of_frames(frames, slots, carried, batch, before, places, found):
    """found[0], found[1], found[2]: of frames in these slots the place of the key in the batch, the first row, and the
    one behind the last. carried: slots below it were taken before. before: as `before` gives it; places: by key.

    Returns whether each begins where a gap or a run of before does, or later, and ends with the batch at the latest.
    """
    (order, starts), (run, gap), fits = batch, before, True
    for i in range(slots.size):
        slot = np.uint64(slots[i])
        place = places[frames[slot, KEY]]
        begin, end = starts[place], starts[place + 1]
        first = -run[place] - gap[place] if frames[slot, GAP] == 1 else -run[place]
        if slots[i] >= carried:  # rows of a key are in order
            at = np.searchsorted(order[begin:end], frames[slot, AT])
            first = at - frames[slot, LEAD]
        last = first + frames[slot, COUNT]
        fits &= (first >= 0) | (first == -run[place]) | (first == -run[place] - gap[place])
        fits &= last <= end - begin
        found[0, i], found[1, i], found[2, i] = place, first, last
    return fits
