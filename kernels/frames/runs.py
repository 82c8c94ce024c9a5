"""Threshold, boundary and session frames: maximal runs of events that are alike, by a predicate, their cell, or time.

      key         a a a a a a b b        events of a key that follow each other and are alike are one stretch
      inside      . . x x x . x x        [0, 2) [2, 5) [5, 6) [6, 8)

needs, costs, conventions: as in kernels/frames/framing.py
from    Grossniklaus et al. 2016, sections 5.2.1 and 5.2.2, Maier et al. 2012, section 4.1

Whether an event is inside can not be predicted where keys are interleaved, so only a change of it is branched on. How
long frames may be (kernels/frames/lengths.py) is asked once a stretch is known, so that a stretch costs the same.
Tried: the loop over a stretch as a kernel of its own, which is not inlined: seven times slower.
"""

from typing import NamedTuple

import numpy as np

from kernels.compile.jit import kernel
from kernels.frames import cells as frame_cells
from kernels.frames.framing import BLOCK, LAST, ROWS, SLOT, START, close_slot, listed, scratch, take_slot
from kernels.frames.lengths import grow, is_plain, leave


class Cells(NamedTuple):
    """The codes of cells: of the one that a key is in, and of the one that a frame, by slot, was in."""

    within: np.ndarray
    marks: np.ndarray


@kernel
def threshold(events, values, rule, state, found, first):
    """Maximal runs with lo <= value <= hi; rule: those, the lengths of frames, and whether gaps are wanted too."""
    ts, lo, hi, lengths, gaps, (rows, keys) = events.ts, rule[0], rule[1], rule[2], rule[3], scratch()
    frames, n, splits = found.frames, found.count[0], lengths.splits
    for block in range(first, events.last, BLOCK):
        found.count[0] = n
        if n + BLOCK > frames.shape[0]:
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
            if (inside ^ (state[k, ROWS] > 0)) | (inside & ((state[k, SLOT] < 0) | splits)) | gaps:
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
    ts, (rows, keys), cells = events.ts, scratch(), np.empty((len(dimensions), BLOCK), np.int64)
    frames, n, lengths, (within, marks) = found.frames, found.count[0], rule[0], cells_of
    plain = is_plain(lengths)
    for block in range(first, events.last, BLOCK):
        found.count[0] = n
        if n + BLOCK > frames.shape[0]:
            return block
        for d in range(len(dimensions)):
            frame_cells.find(dimensions[d], block, min(block + BLOCK, events.last), cells[d])
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
            if plain:
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
    for block in range(first, events.last, BLOCK):
        found.count[0] = n
        if n + BLOCK > frames.shape[0]:
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
            if plain:
                state[k, ROWS] += np.int64(j - i)
                state[k, LAST] = until
            else:
                n = grow(ts, (base, rows[i:j]), k, rule, state, frames, n)
            i = j
    found.count[0] = n
    return events.last
