"""Matches of a pattern in one pass: a table says what becomes of every thread of a key's search, whatever the row is.

      row          conditions that hold, as bits
      state        of the key's search, one number
      moves        of (state, bits): what each thread of the next state was in this one, if it was at another place

needs, conventions: as in kernels/frames/framing.py; what the table means: frames/patterns/transitions.py
costs   O(1) per event where no thread moves, else O(those that do); O(threads) numbers per key
"""

from typing import NamedTuple

import numpy as np

from kernels.compile.inlining import bare, helper
from kernels.compile.jit import kernel
from kernels.frames.framing import COUNT, END, OPEN, SCAN_ROWS, listed, scratch, take_slot

NEW, FRESH = 127, 126  # as the source of a thread: it begins with this row, or began with the last
STATE, NUMBER, TIED, WHEN, THREADS = range(5)  # of a key: its state; its rows so far; of the last: ties before it, ts
BEGAN, FIRST, SKIP = range(3)  # of a thread: ts and number of its first row, and how many at that ts came before it
ENDED, FINAL, WIDTH = range(3, 6)  # of a candidate: ts and number of its last row, too
THREAD = 1  # what is at a place of a state: 1 a thread, 2 a candidate; 2 more if it is the last row alone


class Machine(NamedTuple):
    """A row for each state and each set of conditions, state * classes + bits; `kinds`: for each state, of each place.

    then: twice the next state, and one more if anything is certain or moves. certain: how many matches are, and
    `matches` of what: twice a source, and one more if it ends here. moving: how many threads and candidates come to
    another place, and `moves` of each: to which, from which, does it end here? They can be moved one by one.
    """

    classes: np.uint64
    then: np.ndarray
    certain: np.ndarray
    matches: np.ndarray
    moving: np.ndarray
    moves: np.ndarray
    kinds: np.ndarray


@kernel
def find(events, bits, machine, rule, search, out, first):
    """rule: the least and the most rows and time of a match. search: per key, how far it has got.

    out: the frames, with their skips and distances beside them. Of one row several matches may become certain.
    Where nothing moves, as with most rows, a step is one look at the table.
    """
    ts, (rows, keys), search, found, machine = bare(events.ts), scratch(), bare(search), out[0], opened(machine)
    n, most, out = found.count[0], machine.matches.shape[1], (bare(found.frames), bare(out[1]), bare(out[2]))
    for block in range(first, events.last, SCAN_ROWS):
        base, size = np.uint64(block), listed(events, block, rows, keys)
        for i in range(size):
            e, k = base + rows[i], np.uint64(keys[i])
            t, last, number, tied = ts[e], search[k, WHEN], search[k, NUMBER], search[k, TIED]
            if (t < last) & (number > 0):
                return -1
            at = np.uint64(search[k, STATE]) * machine.classes + bits[e]
            then, ties = machine.then[at], (tied + 1) * ((t == last) & (number > 0))
            if then & 1:
                if n + most > out[0].shape[0]:
                    found.count[0] = n
                    return np.int64(e)
                row, before = (t, number, ties), (last, number - 1, tied)
                for j in range(machine.certain[at]):
                    now, source = machine.matches[at, j] & 1, machine.matches[at, j] >> 1
                    n += report(met(search, k, (source, now), row, before), rule, (k, np.int64(e), number), out, n)
                for j in range(machine.moving[at]):
                    how = machine.moves[at, j, 0], machine.moves[at, j, 1], machine.moves[at, j, 2]
                    move(search, k, how, row, before)
            search[k, STATE], search[k, NUMBER], search[k, TIED], search[k, WHEN] = then >> 1, number + 1, ties, t
    found.count[0] = n
    return events.last


@helper
def opened(machine):
    """The same with bare arrays: references to those inside of loops are counted, which took half of the time."""
    then, certain, matches = bare(machine.then), bare(machine.certain), bare(machine.matches)
    return Machine(
        machine.classes, then, certain, matches, bare(machine.moving), bare(machine.moves), bare(machine.kinds)
    )


@helper
def place(thread, field):
    """Where in the search of a key a field of a thread is."""
    return np.uint64(THREADS) + np.uint64(thread) * np.uint64(WIDTH) + np.uint64(field)


@helper
def met(search, k, how, row, before):
    """The fields of a match: of a candidate, or of a thread that ends with this row; of this row, or of the last."""
    source, now = how
    if source >= FRESH:
        of = row if source == NEW else before
        began, first, skip, ended, final = of[0], of[1], of[2], of[0], of[1]
    else:
        began, first, skip = (
            search[k, place(source, BEGAN)],
            search[k, place(source, FIRST)],
            search[k, place(source, SKIP)],
        )
        ended, final = search[k, place(source, ENDED)], search[k, place(source, FINAL)]
    return began, first, skip, row[0] if now else ended, row[1] if now else final


@helper
def report(match, rule, at, out, n):
    """A match is certain at an event (-1: at the end), row `number` of its key k. 0: it is too short or too long."""
    (began, first, skip, ended, final), (k, e, number), (frames, skips, distances) = match, at, out
    rows, span = final - first + 1, np.uint64(ended - began)
    if not (rule[0] <= rows <= rule[1] and rule[2] <= span <= rule[3]):
        return 0
    take_slot(frames, n, k, began, e, 0, number - first)
    frames[n, END], frames[n, COUNT], frames[n, OPEN] = ended, rows, 0
    skips[n], distances[n] = skip, number - first
    return 1


@helper
def move(search, k, how, row, before):
    """A thread or a candidate comes to its place, from another, or from the last row; or a match ends here."""
    to, source, now = how
    if source == FRESH:
        for f in range(WIDTH):
            search[k, place(to, f)] = before[f % 3]
    elif source != to:
        for f in range(WIDTH):
            search[k, place(to, f)] = search[k, place(source, f)]
    if now:
        search[k, place(to, ENDED)], search[k, place(to, FINAL)] = row[0], row[1]


@kernel
def finish(machine, rule, search, out):
    """The streams of all keys are over: threads die, and candidates are matches. Their distance is from the end."""
    found = out[0]
    n, out = found.count[0], (found.frames, out[1], out[2])
    for k in range(search.shape[0]):
        last = search[k, WHEN], search[k, NUMBER] - 1, search[k, TIED]
        for j in range(machine.kinds.shape[1]):
            kind = machine.kinds[search[k, STATE], j]
            if kind > 0 and kind % 2 == 0:
                match = met(search, k, (FRESH if kind > 2 else j, False), last, last)
                n += report(match, rule, (k, -1, search[k, NUMBER]), out, n)
        search[k, STATE] = 0
    found.count[0] = n


@kernel
def previous(ids, span, values, valid, memory, out):
    """The value in the row before of the same key, and whether there is one, of rows from … until, into `out`.

    memory: the last value of every key, whether there is one, and the first row of each key, -1 at first: where one
    before these rows is still to be put in.
    """
    (last, known, firsts), (before, there) = memory, out
    for i in range(np.uint64(span[1] - span[0])):
        e = np.uint64(span[0]) + i
        k = np.uint64(ids[e]) if ids.size else np.uint64(0)
        if firsts[k] == -1:
            firsts[k] = e
        before[i], there[i] = last[k], known[k]
        last[k], known[k] = values[e], valid.size == 0 or valid[e]
