"""What keys have of a batch of events: the run and the gap that they had before it, and those that they are left with.

      before  [ gap ][ run ]   batch  . . . . . .          rows of a key, by their place; below 0: before it
      left                         [ gap    ][ run ]

needs, conventions: as in kernels/frames/framing.py
costs   O(1) per key of the batch: one cache line of its state
"""

from kernels.compile.inlining import helper
from kernels.compile.jit import kernel
from kernels.frames.framing import COUNT, GAP_ROWS, ROWS, SLOT


@helper
def run_of(state, frames, k):
    """How many of the last rows of a key are in its run, or in a frame that waits for the next event to end."""
    waits = state[k, ROWS] == 0 and state[k, SLOT] >= 0
    return frames[state[k, SLOT], COUNT] if waits else state[k, ROWS]


@kernel
def before(state, frames, keys, run, gap):
    """How many rows the run and the gap of each key have."""
    for i in range(keys.size):
        run[i], gap[i] = run_of(state, frames, keys[i]), state[keys[i], GAP_ROWS]


@kernel
def left(state, frames, keys, starts, runs, gaps):
    """List the runs and the gaps that keys have now: the place of the key in the batch, the first row, and the one
    behind the last. starts: where the rows of each key begin. Returns how many of either there are."""
    of_runs = of_gaps = 0
    for i in range(keys.size):
        size, run, gap = starts[i + 1] - starts[i], run_of(state, frames, keys[i]), state[keys[i], GAP_ROWS]
        if run > 0:
            runs[0, of_runs], runs[1, of_runs], runs[2, of_runs] = i, size - run, size
            of_runs += 1
        if gap > 0:
            gaps[0, of_gaps], gaps[1, of_gaps], gaps[2, of_gaps] = i, size - run - gap, size - run
            of_gaps += 1
    return of_runs, of_gaps
