"""Matches of a pattern in one pass: a table says what becomes of every thread of a key's search, whatever the row is.

      row          conditions that hold, as bits
      state        of the key's search, one number
      moves        of (state, bits): what each thread of the next state was in this one, if it was at another place

needs, conventions: as in kernels/frames/framing.py; what the table means: frames/patterns/transitions.py
costs   O(1) per event where no thread moves, else O(those that do); O(threads) numbers per key
"""

from typing import NamedTuple

import numpy as np

from kernels.compile.inlining import helper
from kernels.compile.jit import kernel
from kernels.frames.framing import BLOCK, COUNT, END, LAST, OPEN, listed, scratch, take_slot

NEW = 127  # as the source of a thread: it begins with this row
STATE, NUMBER, TIED, THREADS = range(4)  # of a key: its state, its rows so far, those before it at its ts; its threads
BEGAN, FIRST, SKIP = range(3)  # of a thread: ts and number of its first row, and how many at that ts came before it
ENDED, FINAL, WIDTH = range(3, 6)  # of a candidate: ts and number of its last row, too


class Machine(NamedTuple):
    """A row for each state and each set of conditions, state * classes + bits; `candidates`, `sizes`: for each state.

    then: the next state. certain: how many matches are certain, and `matches` of which threads they are. moving: how
    many threads and candidates come to another place, and `moves` of each: to which, from which, does it end here? In
    an order in which they can be moved one by one. A match that ends here: twice its source and one more.
    """

    classes: np.uint64
    then: np.ndarray
    certain: np.ndarray
    matches: np.ndarray
    moving: np.ndarray
    moves: np.ndarray
    candidates: np.ndarray
    sizes: np.ndarray


@kernel
def find(events, bits, machine, rule, memory, out, first):
    """rule: the least and the most rows and time of a match. memory: `state` and, per key, its search.

    out: the frames, with their skips and distances beside them. Of one row several matches may become certain.
    """
    ts, (rows, keys), (state, search) = events.ts, scratch(), memory
    found, n, most = out[0], out[0].count[0], machine.matches.shape[1]
    for block in range(first, events.last, BLOCK):
        base, size = np.uint64(block), listed(events, block, rows, keys)
        for i in range(size):
            e, k = base + rows[i], np.uint64(keys[i])
            t, last, number = ts[e], state[k, LAST], search[k, NUMBER]
            if (t < last) | (n + most > found.frames.shape[0]):
                found.count[0] = n
                return -1 if t < last else np.int64(e)
            tied = (search[k, TIED] + 1) * ((t == last) & (number > 0))
            at = np.uint64(search[k, STATE]) * machine.classes + bits[e]
            for j in range(machine.certain[at]):
                now, thread = machine.matches[at, j] & 1, machine.matches[at, j] >> 1
                match = met(search, k, thread, now, (t, number, tied))
                n += report(match, rule, (k, np.int64(e), number), out, n)
            for j in range(machine.moving[at]):
                how = machine.moves[at, j, 0], machine.moves[at, j, 1], machine.moves[at, j, 2]
                move(search, k, how, (t, number, tied))
            search[k, STATE], search[k, NUMBER], search[k, TIED] = machine.then[at], number + 1, tied
            state[k, LAST] = t
    found.count[0] = n
    return events.last


@helper
def place(thread, field):
    """Where in the search of a key a field of a thread is."""
    return np.uint64(THREADS) + np.uint64(thread) * np.uint64(WIDTH) + np.uint64(field)


@helper
def met(search, k, thread, now, row):
    """The fields of a match: of a candidate, or of a thread that ends with this row; or it is this row alone."""
    if thread == NEW:
        return row[0], row[1], row[2], row[0], row[1]
    began, first = search[k, place(thread, BEGAN)], search[k, place(thread, FIRST)]
    skip = search[k, place(thread, SKIP)]
    if now:
        return began, first, skip, row[0], row[1]
    return began, first, skip, search[k, place(thread, ENDED)], search[k, place(thread, FINAL)]


@helper
def report(match, rule, at, out, n):
    """A match is certain at an event (-1: at the end), row `number` of its key k. 0: it is too short or too long."""
    (began, first, skip, ended, final), (k, e, number), (found, skips, distances) = match, at, out
    rows, span = final - first + 1, np.uint64(ended - began)
    if not (rule[0] <= rows <= rule[1] and rule[2] <= span <= rule[3]):
        return 0
    take_slot(found.frames, n, k, began, e, 0, number - first)
    found.frames[n, END], found.frames[n, COUNT], found.frames[n, OPEN] = ended, rows, 0
    skips[n], distances[n] = skip, number - first
    return 1


@helper
def move(search, k, how, row):
    """A thread or a candidate comes to its place, from another or new; or a match ends here."""
    to, source, now = how
    if source == NEW:
        for f in range(WIDTH - 2):
            search[k, place(to, f)] = row[f]
    elif source != to:
        for f in range(WIDTH):
            search[k, place(to, f)] = search[k, place(source, f)]
    if now:
        search[k, place(to, ENDED)], search[k, place(to, FINAL)] = row[0], row[1]


@kernel
def finish(machine, rule, search, out):
    """The streams of all keys are over: threads die, and candidates are matches. Their distance is from the end."""
    found = out[0]
    n = found.count[0]
    for k in range(search.shape[0]):
        state = search[k, STATE]
        for j in range(machine.sizes[state]):
            if machine.candidates[state, j]:
                match = met(search, k, j, False, (0, 0, 0))
                n += report(match, rule, (k, -1, search[k, NUMBER]), out, n)
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
