"""Events into frames: a merge of two sequences that are sorted by key and time.

      frames of a key   starts ascending, `reach` = the largest end so far (so overlapping frames are found too)
      an event at t     frames [first reach >= t, first start > t), of which those with end >= t hold it

needs   frames grouped by key, in order of start
costs   O(1) amortised per event that is in order within its key, O(log frames) otherwise, plus the matches
from    Maier et al. 2012, sections 3.2 and 4.1.2 (FillFrame)
"""

import numpy as np

from kernels.compile.jit import kernel
from kernels.operators.numbers import EARLIEST, LATEST

LOOKED_AT_ONCE = 4096  # rows that are compared before the first pause to look


@kernel
def first_from(values, lo, hi, x):
    """The first position in [lo, hi) whose value is >= x, or hi. (To ask for > x - 1 would miss the least x.)"""
    while lo < hi:
        mid = (lo + hi) >> 1
        if values[mid] < x:
            lo = mid + 1
        else:
            hi = mid
    return lo


@kernel
def first_above(values, lo, hi, x):
    """The first position in [lo, hi) whose value is > x, or hi."""
    while lo < hi:
        mid = (lo + hi) >> 1
        if values[mid] <= x:
            lo = mid + 1
        else:
            hi = mid
    return lo


@kernel
def spans(ts, segments, ids, starts, ends, lo, hi):
    """lo, hi[f]: the positions [lo, hi) of the events of key ids[f] with starts[f] <= ts <= ends[f]."""
    for f in range(ids.size):
        a, b = segments[ids[f]], segments[ids[f] + 1]
        lo[f] = first_from(ts, a, b, starts[f])
        hi[f] = max(lo[f], first_above(ts, lo[f], b, ends[f]))


@kernel
def rises(ts):
    """Is each ts larger than the one before? Page by page without a branch, as stored/edges.py sees that it falls."""
    for first in range(0, ts.size - 1, LOOKED_AT_ONCE):
        last, still = min(first + LOOKED_AT_ONCE, ts.size - 1), 0
        here, then = ts[first:last], ts[first + 1 : last + 1]
        for i in range(here.size):
            still += then[i] <= here[i]
        if still:
            return False
    return True


@kernel
def furthest(segments, ends, reach):
    """reach[f] = the largest end among the frames of its key up to f."""
    for k in range(segments.size - 1):
        for f in range(segments[k], segments[k + 1]):
            reach[f] = ends[f] if f == segments[k] else max(reach[f - 1], ends[f])


@kernel
def advance_to(values, at, stop, x):
    """The first position from `at` on with a value >= x: a few steps, then a search."""
    for _ in range(4):
        if at == stop or values[at] >= x:
            return at
        at += 1
    return first_from(values, at, stop, x)


@kernel
def advance_above(values, at, stop, x):
    """The first position from `at` on with a value > x: a few steps, then a search."""
    for _ in range(4):
        if at == stop or values[at] > x:
            return at
        at += 1
    return first_above(values, at, stop, x)


@kernel
def match(ts, ids, first, frames, cursor, row, frame):
    """List every (row, frame) that belong together, row by row; returns how many, writing no more than fit.

    first: the number of the first row. frames: segments per key, starts, ends, reach, and what each is called.
    cursor[k]: the frames that the last event of k was found in, from lo to hi, when that was, and until when there are
    no others: that most events are before it takes one look to know, at one line of memory.
    """
    segments, starts, ends, reach, names = frames
    n, size = np.uint64(0), np.uint64(row.size)
    for e in range(ts.size):
        if ids.size > 0 and ids[e] < 0:
            continue
        t, k = ts[e], np.uint64(ids[e]) if ids.size > 0 else np.uint64(0)
        if (t < cursor[k, 2]) | (t > cursor[k, 3]):
            again, stop = t >= cursor[k, 2], segments[k + np.uint64(1)]
            lo = advance_to(reach, cursor[k, 0] if again else segments[k], stop, t)
            hi = advance_above(starts, max(lo, cursor[k, 1]) if again else lo, stop, t)
            cursor[k, 0], cursor[k, 1] = lo, hi
            until = reach[lo] if lo < stop else LATEST
            cursor[k, 3] = min(until, starts[hi] - 1) if hi < stop else until
        cursor[k, 2] = t
        for f in range(np.uint64(cursor[k, 0]), np.uint64(cursor[k, 1])):
            if ends[f] >= t:
                if n < size:
                    row[n], frame[n] = first + e, names[f]
                n += np.uint64(1)
    return n


@kernel
def count_keys(ids, counts):
    """counts[k] = how many rows key k has; -1 is none."""
    for e in range(ids.size):
        if ids[e] >= 0:
            counts[np.uint64(ids[e])] += 1


@kernel
def lay_out(ts, ids, first, at, order, when):
    """Rows come to the places of their keys, as they arrive: at[k] is the next one of key k. first: the number of the
    first row. Returns whether those of each key are in order of ts; one of key -1 is left out."""
    falls, last = 0, np.full(at.size, EARLIEST)
    for e in range(ts.size):
        if ids[e] >= 0:
            k = np.uint64(ids[e])
            place = np.uint64(at[k])
            order[place], when[place] = first + e, ts[e]
            at[k] += 1
            falls += ts[e] < last[k]
            last[k] = ts[e]
    return falls == 0
