"""Matches of a pattern in one pass: a table says what becomes of every thread of a key's search, whatever the row is.

      row          conditions that hold, as bits
      state        of the key's search, one number
      codes        of (state, bits): for each thread of the next state, which of this state it was, or a new one

needs, conventions: as in kernels/frames/framing.py; what the table means: frames/patterns/transitions.py
costs   O(threads) per event, O(1) where none of them moves; O(threads) numbers per key
"""

from typing import NamedTuple

import numpy as np

from kernels.compile.jit import kernel
from kernels.frames.framing import BLOCK, COUNT, END, LAST, OPEN, listed, scratch, take_slot

NEW = 127  # as the source of a thread: it begins with this row
STATE, NUMBER, TIED, THREADS = range(4)  # of a key: its state, its rows so far, those before it at its ts; its threads
BEGAN, FIRST, SKIP = range(3)  # of a thread: ts and number of its first row, and how many at that ts came before it
ENDED, FINAL, WIDTH = range(3, 6)  # of a candidate: ts and number of its last row, too


class Machine(NamedTuple):
    """A row for each state and each set of conditions, state * classes + bits; `candidates`, `sizes`: for each state.

    then: the next state; certain: how many matches are certain; total: those, and the threads and candidates of the
    next state; stays: nothing moves; codes: twice the source of each, and one more if it is a match that ends here.
    """

    classes: np.uint64
    then: np.ndarray
    certain: np.ndarray
    total: np.ndarray
    stays: np.ndarray
    codes: np.ndarray
    candidates: np.ndarray
    sizes: np.ndarray


@kernel
def find(events, bits, machine, rule, memory, out, first):
    """rule: the least and the most rows and time of a match. memory: `state` and, per key, its search.

    out: the frames, with their skips and leads beside them. Of one row several matches may become certain.
    """
    ts, (rows, keys), (state, search), (found, skips, leads) = events.ts, scratch(), memory, out
    frames, n, now = found.frames, found.count[0], np.empty((machine.codes.shape[1], WIDTH), np.int64)
    for block in range(first, events.last, BLOCK):
        base, size = np.uint64(block), listed(events, block, rows, keys)
        for i in range(size):
            e, k = base + rows[i], np.uint64(keys[i])
            t, number = ts[e], search[k, NUMBER]
            if t < state[k, LAST]:
                return -1
            if n + now.shape[0] > frames.shape[0]:
                found.count[0] = n
                return np.int64(e)
            tied = (search[k, TIED] + 1) * ((t == state[k, LAST]) & (number > 0))
            at = np.uint64(search[k, STATE]) * machine.classes + bits[e]
            if not machine.stays[at]:
                total, certain = machine.total[at], machine.certain[at]
                for j in range(total):
                    come(search[k], machine.codes[at, j], t, number, tied, now[j])
                for j in range(certain):
                    n += report(now[j], rule, k, np.int64(e), number, (frames, n, skips, leads))
                for j in range(certain, total):
                    at_ = np.uint64(THREADS + (j - certain) * WIDTH)
                    for f in range(WIDTH):
                        search[k, at_ + np.uint64(f)] = now[j, f]
            search[k, STATE], search[k, NUMBER], search[k, TIED] = machine.then[at], number + 1, tied
            state[k, LAST] = t
    found.count[0] = n
    return events.last


@kernel
def come(search, code, t, number, tied, out):
    """A thread or a candidate of the next state, from where it was in this one, or from the row itself."""
    source = code >> 1
    if source == NEW:
        out[BEGAN], out[FIRST], out[SKIP] = t, number, tied
    else:
        at = np.uint64(THREADS + source * WIDTH)
        for f in range(WIDTH):
            out[f] = search[at + np.uint64(f)]
    if code & 1:
        out[ENDED], out[FINAL] = t, number


@kernel
def report(match, rule, k, e, number, out):
    """A match is certain at event e, row `number` of its key. Returns 1 if it is neither too short nor too long."""
    (min_rows, max_rows, min_span, max_span), (frames, n, skips, leads) = rule, out
    rows, span = match[FINAL] - match[FIRST] + 1, np.uint64(match[ENDED] - match[BEGAN])
    if not (min_rows <= rows <= max_rows and min_span <= span <= max_span):
        return 0
    take_slot(frames, n, k, match[BEGAN], e, 0, number - match[FIRST])
    frames[n, END], frames[n, COUNT], frames[n, OPEN] = match[ENDED], rows, 0
    skips[n], leads[n] = match[SKIP], number - match[FIRST]
    return 1


@kernel
def finish(machine, rule, search, out):
    """The streams of all keys are over: threads die, and candidates are matches. Their lead is that of the end."""
    found, skips, leads = out
    n = found.count[0]
    for k in range(search.shape[0]):
        state = search[k, STATE]
        for j in range(machine.sizes[state]):
            if machine.candidates[state, j]:
                match = search[k, THREADS + j * WIDTH : THREADS + (j + 1) * WIDTH]
                n += report(match, rule, np.uint64(k), -1, search[k, NUMBER], (found.frames, n, skips, leads))
        search[k, STATE] = 0
    found.count[0] = n


@kernel
def previous(ids, share, values, valid, memory, out):
    """out[e] = the value in the row before e of the same key, and whether there is one.

    share: of keys with k & mask == part. memory: the last value of every key, and whether there is one; it moves on.
    """
    (part, mask), (last, known), (before, there) = share, memory, out
    for e in range(values.size):
        k = ids[e] if ids.size else 0
        if (k & mask) == part:
            before[e], there[e] = last[k], known[k]
            last[k], known[k] = values[e], valid.size == 0 or valid[e]
