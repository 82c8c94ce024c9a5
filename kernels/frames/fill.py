"""Events into frames: a merge of two sequences that are sorted by key and time.

      frames of a key   starts ascending, `reach` = the largest end so far (so overlapping frames are found too)
      an event at t     frames [first reach >= t, first start > t), of which those with end >= t hold it

needs   frames grouped by key, in order of start
costs   O(1) amortised per event that is in order within its key, O(log frames) otherwise, plus the matches
from    Maier et al. 2012, sections 3.2 and 4.1.2 (FillFrame)
"""

from kernels.compile.jit import kernel

PAGE = 4096  # rows that are compared before the first pause to look


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
    for first in range(0, ts.size - 1, PAGE):
        last, still = min(first + PAGE, ts.size - 1), 0
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
def match(ts, ids, frames, cursor, size, row, frame):
    """List every (row, frame) that belong together, row by row; returns how many, writing no more than fit.

    frames: segments per key, starts, ends, reach. cursor[k]: where the last event of k was found, and when.
    size: 0 to count only.
    """
    segments, starts, ends, reach = frames
    n = 0
    for e in range(ts.size):
        k = ids[e] if ids.size else 0
        if k < 0 or segments[k] == segments[k + 1]:
            continue
        t, stop = ts[e], segments[k + 1]
        again = t >= cursor[k, 2]
        lo = advance_to(reach, cursor[k, 0] if again else segments[k], stop, t)
        hi = advance_above(starts, max(lo, cursor[k, 1]) if again else lo, stop, t)
        cursor[k, 0], cursor[k, 1], cursor[k, 2] = lo, hi, t
        for f in range(lo, hi):
            if ends[f] >= t:
                if size > 0:
                    row[n], frame[n] = e, f
                n += 1
    return n
