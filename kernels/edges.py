"""Window edges over stored events: where each window begins and ends, for a block of requests at a time.

      segment 0            segment 1       rows lie key by key, by time within a key: a segment each
    |...............|....................|
            ^ lo    ^ hi                   a window is two positions, absolute: [lo, hi)

Requests come in the same order, so edges never go back, from one segment to the next neither: what reads them can sweep.

By time, an edge is found without looking at the one before: `index` says for each bucket of time where it begins, and
with 2 to 4 buckets per row a step or two remain. Two pointers that chase each other cost 9 ns per edge on Poisson
arrivals, each step a branch mispredicted; this costs 2.6 ns, and 1.4 ns dearer than two pointers on regular ones. Where
a bucket is crowded (bursts, a gap of years) a gallop from the last edge found takes over.
"""

from typing import NamedTuple

import numpy as np

from kernels.jit import kernel

LATEST = np.iinfo(np.int64).max
BUCKETS = 4  # at most, per row; half as many cost 0.5 ns per edge more
FEW = 8  # rows that need no index


class Timeline(NamedTuple):
    """Rows by (segment, time). Segment k: rows starts[k]:starts[k+1], buckets of 2^shift[k] at index[offset[k]:]."""

    ts: np.ndarray
    starts: np.ndarray
    shift: np.ndarray
    offset: np.ndarray
    index: np.ndarray


class Runs(NamedTuple):
    """Requests by segment: run r is requests first[r]:first[r+1], all of segment[r]."""

    first: np.ndarray
    segment: np.ndarray


@kernel
def group(ids, starts, order):
    """A stable counting sort: order[starts[k]:starts[k + 1]] are the rows with id k."""
    at = starts.copy()
    for e in range(ids.size):
        order[at[ids[e]]] = e
        at[ids[e]] += 1


@kernel
def ordered(ts, starts):
    """Is ts non-decreasing within each segment?"""
    for k in range(starts.size - 1):
        for p in range(starts[k] + 1, starts[k + 1]):
            if ts[p] < ts[p - 1]:
                return False
    return True


@kernel
def measure(ts, starts, shift, offset):
    """How wide the buckets of each segment are, and where they go; -1 for a segment that does without."""
    offset[0] = 0
    for k in range(starts.size - 1):
        rows, buckets = starts[k + 1] - starts[k], 0
        shift[k] = -1
        if rows > FEW and (ts[starts[k]] >= 0 or ts[starts[k + 1] - 1] <= LATEST + ts[starts[k]]):
            span, s = ts[starts[k + 1] - 1] - ts[starts[k]], 0
            while (span >> s) + 1 > BUCKETS * rows:
                s += 1
            shift[k], buckets = s, (span >> s) + 1
        offset[k + 1] = offset[k] + buckets


@kernel
def fill(timeline):
    """index[offset[k] + b] = the first row of segment k in bucket b or a later one."""
    ts, starts, shift, offset, index = timeline
    for k in range(starts.size - 1):
        if shift[k] < 0:
            continue
        at, t0 = offset[k], ts[starts[k]]
        for p in range(starts[k], starts[k + 1]):
            upto = offset[k] + ((ts[p] - t0) >> shift[k])
            while at <= upto:
                index[at] = p
                at += 1


@kernel
def gallop(ts, lo, end, x):
    """The first position in [lo, end) with ts > x, or end."""
    step = 1
    while lo + step < end and ts[lo + step] <= x:
        lo += step
        step *= 2
    end = min(lo + step, end)
    while lo < end:
        mid = (lo + end) >> 1
        if ts[mid] <= x:
            lo = mid + 1
        else:
            end = mid
    return lo


@kernel
def search(ts, first, end, shift, index, now, back, out):
    """out[i] = the first row of a segment first:end with ts > now[i] - back."""
    t0, last, lo = ts[first], ts[end - 1], first
    if t0 > 0 and back > LATEST - t0:  # t0 + back would wrap: nobody has left the window
        out[:] = first
        return
    least, before = t0 + back, first
    for i in range(now.size):
        lo = first
        if now[i] >= least:
            x = now[i] - back
            if x >= last:
                lo = end
            elif shift < 0:
                lo = gallop(ts, before, end, x)
            else:
                lo = np.int64(index[(x - t0) >> shift])
                lo += ts[lo] <= x
                if ts[lo] <= x:
                    lo = gallop(ts, max(lo, before), end, x)
            before = lo
        out[i] = lo


@kernel
def by_time(timeline, runs, now, back, at, out):
    """out[i] = the first row of request at + i's segment with ts > now[at + i] - back; out is as long as is asked for."""
    ts, starts, shift, offset, index = timeline
    r, i = np.searchsorted(runs.first, at, side="right") - 1, 0
    while i < out.size:
        stop, k = min(out.size, runs.first[r + 1] - at), runs.segment[r]
        if starts[k] == starts[k + 1]:
            out[i:stop] = starts[k]
        else:
            buckets = index[offset[k] : offset[k + 1]]
            search(ts, starts[k], starts[k + 1], shift[k], buckets, now[at + i : at + stop], back, out[i:stop])
        i = stop
        r += 1


@kernel
def by_rows(timeline, runs, end, back, at, out):
    """out[i] = the row `back` before end[at + i], no further back than its segment begins."""
    r, i = np.searchsorted(runs.first, at, side="right") - 1, 0
    while i < out.size:
        stop, start = min(out.size, runs.first[r + 1] - at), timeline.starts[runs.segment[r]]
        for j in range(i, stop):
            out[j] = max(end[at + j] - back, start)
        i = stop
        r += 1


@kernel
def renumber(rank, positions, out):
    """Positions among all rows -> positions among those that count."""
    for i in range(positions.size):
        out[i] = rank[positions[i]]


@kernel
def narrowest(lo, hi):
    """The number of rows in the smallest window."""
    least = LATEST
    for i in range(lo.size):
        least = min(least, hi[i] - lo[i])
    return least


@kernel
def blank(lo, hi, least, values, present):
    """Windows of fewer than `least` rows have no answer."""
    for i in range(lo.size):
        present[i] = hi[i] - lo[i] >= least
        if not present[i]:
            values[i] = 0


@kernel
def scatter(values, order, out):
    for i in range(values.size):
        out[order[i]] = values[i]
