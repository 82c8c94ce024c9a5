"""Between frames: opened by an event for which one predicate holds, closed with one for which another does.

      opens     . x . . x . .        from the first x to the first o behind it; a split piece stays open
      closes    . . . o . . o
      frames      [---] [---]

needs, costs, conventions: as in kernels/frames/framing.py
"""

import numpy as np

from kernels.compile.jit import kernel
from kernels.frames.framing import (
    GAP_START,
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

OPENS, CLOSES = 1, 2  # what an event may do, or both
STAYS_OPEN = GAP_START  # of a key: 1 if a piece was ended by time, and the next one begins with the next event


@kernel
def between(events, what, rule, state, found, first):
    """what[e]: OPENS, CLOSES, both or neither. rule: may an event close the frame that it opens, and lengths."""
    ts, (rows, keys), (same, lengths) = events.ts, scratch(), rule
    frames, n = found.frames, found.count[0]
    for block in range(first, events.last, SCAN_ROWS):
        found.count[0] = n
        if n + SCAN_ROWS > frames.shape[0]:
            return block
        base, size, i = np.uint64(block), listed(events, block, rows, keys), np.uint64(0)
        while i < size:
            k = np.uint64(keys[i])
            last, run, slot, start = state[k, LAST], state[k, ROWS], state[k, SLOT], state[k, START]
            stays_open, state[k, STAYS_OPEN] = state[k, STAYS_OPEN] != 0, 0
            while i < size and keys[i] == k:
                e = base + rows[i]
                t, does, was_open = ts[e], what[e], run > 0 or stays_open
                if t < last:
                    return -1
                if slot >= 0 and run == 0:
                    meet_next(frames, slot, t)
                    slot = -1
                if lengths.splits and was_open and is_full(lengths, run, start, t):
                    close_slot(frames, slot, t if lengths.open else last, run)
                    slot, run = -1, 0
                last, stays_open = t, False
                i += np.uint64(1)
                if not was_open and not does & OPENS:
                    continue
                start = t if run == 0 else start
                run += 1
                if slot < 0 and is_enough(lengths, run, start, t):
                    take_slot(frames, n, k, start, e, 0, run - 1)
                    slot = n
                    n += 1
                if does & CLOSES and (was_open or same):
                    slot = close_inside(frames, slot, t, run, lengths) if slot >= 0 else -1
                    run = 0
            state[k, LAST], state[k, ROWS], state[k, SLOT], state[k, START] = last, run, slot, start
    found.count[0] = n
    return events.last
