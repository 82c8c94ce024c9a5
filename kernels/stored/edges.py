"""Window edges over stored events: where each window begins and ends, for a block of requests at a time.

      segment 0            segment 1       rows lie key by key, by time within a key: a segment each
    |...............|....................|
            ^ lo    ^ hi                   a window is two positions, absolute: [lo, hi)

Requests come in the same order, so edges never go back, also from segment to segment: what reads them sweeps.

By time, an edge is found without looking at the one before: `index` says for each bucket of time where it begins, and
with 2 to 4 buckets per row a step or two remain. Two pointers that chase each other cost 9 ns per edge on Poisson
arrivals, each step a branch mispredicted; this costs 1.6 ns, about as much as two pointers on regular ones. Where a
bucket is crowded (bursts, a gap of years) a gallop from the last edge found takes over.
"""

from typing import NamedTuple

import numpy as np

from kernels.compile.jit import kernel
from kernels.operators.numbers import EARLIEST, LATEST, unsigned

BUCKETS = 4  # at most, per row; half as many cost 0.5 ns per edge more, and half of the memory
ROWS_WITHOUT_INDEX = 8  # so few need no index
BRANCHLESS = 1024  # rows that are looked at without a branch

# Two tables, each with one row more for the end:
START, SHIFT, OFFSET = range(3)  # segment k: rows from segments[k, START] on; buckets of 2^SHIFT from OFFSET on
FIRST, SEGMENT = range(2)  # run r: requests from runs[r, FIRST] on, all of one segment


class Timeline(NamedTuple):
    """Rows in time: ts, segment after segment; the table of segments; and the index, empty where there is none."""

    ts: np.ndarray
    segments: np.ndarray
    index: np.ndarray


@kernel
def group(ids, starts, order):
    """A stable counting sort: order[starts[k]:starts[k + 1]] are the rows with id k."""
    at = starts.copy()
    for e in range(ids.size):
        order[at[ids[e]]] = e
        at[ids[e]] += 1


@kernel
def is_sorted(keys):
    """Block by block without a branch: four times as fast as to stop at the first pair that is not in order, and by
    slices, which are known to begin at 0, four times as fast again: 0.18 ns a row."""
    for first in range(0, keys.size - 1, BRANCHLESS):
        last, fall = min(first + BRANCHLESS, keys.size - 1), 0
        here, then = keys[first:last], keys[first + 1 : last + 1]
        for i in range(here.size):
            fall += then[i] < here[i]
        if fall:
            return False
    return True


@kernel
def ordered(ts, starts):
    """Is ts non-decreasing within each segment?"""
    for k in range(starts.size - 1):
        if not is_sorted(ts[starts[k] : starts[k + 1]]):
            return False
    return True


@kernel
def measure(ts, segments, per_row):
    """Given where segments start: how wide their buckets are, and where those go. -1: this segment does without."""
    segments[0, OFFSET] = 0
    for k in range(segments.shape[0] - 1):
        first, end = segments[k, START], segments[k + 1, START]
        buckets, shift = 0, -1
        if end - first > ROWS_WITHOUT_INDEX and (ts[first] >= 0 or ts[end - 1] <= LATEST + ts[first]):
            span, shift = ts[end - 1] - ts[first], 0
            while (span >> shift) + 1 > per_row * (end - first):
                shift += 1
            buckets = (span >> shift) + 1
        segments[k, SHIFT] = shift
        segments[k + 1, OFFSET] = segments[k, OFFSET] + buckets


@kernel
def fill(ts, segments, index):
    """index[offset + b] = the first row of a segment in bucket b or a later one. Given all -1.

    First the buckets that have rows, then the gaps: 5 ms for a million rows, whatever the arrivals. To walk along rows
    and buckets together takes 13 ms on Poisson arrivals, and 2 ms on regular ones.
    """
    for k in range(segments.shape[0] - 1):
        first, end, shift, at = segments[k, START], segments[k + 1, START], segments[k, SHIFT], segments[k, OFFSET]
        if shift >= 0:
            for p in range(end - 1, first - 1, -1):
                index[unsigned(at + ((ts[p] - ts[first]) >> shift))] = p
            row = end
            for b in range(segments[k + 1, OFFSET] - 1, at - 1, -1):
                row = index[b] if index[b] >= 0 else row
                index[b] = row


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
def search(ts, segment, index, now, back, out):
    """out[i] = the first row of a segment with ts > now[i] - back. segment = its first row, its end, its shift."""
    first, end, shift = segment
    t0, last, i, stop = ts[first], ts[end - 1], 0, now.size
    if t0 > 0 and back > LATEST - t0:  # t0 + back would wrap: nothing has left the window
        i = stop
        out[:] = first
    while i < stop and now[i] < t0 + back and (back >= 0 or t0 >= EARLIEST - back):
        out[i] = first
        i += 1
    while i < stop and back < 0 and now[stop - 1] > LATEST + back:  # it ends after all of time
        stop -= 1
        out[stop] = end
    while i < stop and now[stop - 1] - back >= last:
        stop -= 1
        out[stop] = end
    now, out, before = now[i:stop], out[i:stop], first  # loops from 0 on: any other start, and each index might wrap
    if shift < 0:
        for j in range(now.size):
            before = gallop(ts, before, end, now[j] - back)
            out[j] = before
        return
    for j in range(now.size):
        x = now[j] - back
        lo = np.int64(index[unsigned((x - t0) >> shift)])
        lo += ts[unsigned(lo)] <= x
        if ts[unsigned(lo)] <= x:
            lo = gallop(ts, max(lo, before), end, x)
        before = lo
        out[j] = lo


@kernel
def run_of(runs, at):
    """The run that request `at` is in. (NumPy's search, made for any type, takes half a second to compile.)"""
    lo, hi = np.int64(0), runs.shape[0]
    while hi - lo > 1:
        mid = (lo + hi) >> 1
        if runs[mid, FIRST] <= at:
            lo = mid
        else:
            hi = mid
    return lo


@kernel
def by_time(timeline, runs, now, back, at, out):
    """out[i] = the first row of its segment with ts > now[at + i] - back, for as many requests as out has room for."""
    ts, segments, index = timeline
    r, i = run_of(runs, at), 0
    while i < out.size:
        stop, k = min(out.size, runs[r + 1, FIRST] - at), runs[r, SEGMENT]
        first, end = segments[k, START], segments[k + 1, START]
        if first == end:
            out[i:stop] = first
        else:
            buckets = index[segments[k, OFFSET] : segments[k + 1, OFFSET]]
            search(ts, (first, end, segments[k, SHIFT]), buckets, now[at + i : at + stop], back, out[i:stop])
        i = stop
        r += 1


@kernel
def peers(ts, runs, at, out):
    """out[i] = the row behind the last one of its segment that has the time of row at + i. Requests are the events.

    3.4 ns each in many short segments, of one profile on a busy machine, where a search in time took 5 to 9."""
    r, i = run_of(runs, at), 0
    while i < out.size:
        stop = min(out.size, runs[r + 1, FIRST] - at)
        times, behind = ts[at + i : at + stop], out[i:stop]
        then = times[times.size - 1]
        end = gallop(ts, at + stop - 1, runs[r + 1, FIRST], then)
        for j in range(times.size - 1, -1, -1):
            if times[j] != then:
                end, then = at + i + j + 1, times[j]
            behind[j] = end
        i = stop
        r += 1


@kernel
def by_rows(segments, runs, end, back, at, out):
    """out[i] = the row `back` before end[at + i], or after it if that is negative, within its segment."""
    r, i = run_of(runs, at), 0
    while i < out.size:
        stop, k = min(out.size, runs[r + 1, FIRST] - at), runs[r, SEGMENT]
        start, behind = segments[k, START], segments[k + 1, START]
        last, edge = end[at + i : at + stop], out[i:stop]
        for j in range(edge.size):
            edge[j] = min(max(last[j] - back, start), behind)
        i = stop
        r += 1


@kernel
def count_uneven(ts, step, out):
    """out[i] = how many steps up to row i are not `step`."""
    uneven = 0
    out[:1] = 0
    later = ts[1:]
    for i in range(later.size):
        uneven += later[i] - ts[i] != step
        out[i + 1] = uneven


@kernel
def renumber(rank, positions, out):
    """out[i] = rank[positions[i]]: e.g. positions among all rows -> positions among those that count."""
    for i in range(positions.size):
        out[i] = rank[unsigned(positions[i])]


@kernel
def choose(chosen, order, rank, rows):
    """rank[p] = how many of the rows order[:p] are chosen, and rows, one behind the other, which. Returns how many."""
    n = 0
    for p in range(order.size):
        row = order[p]
        rank[p], rows[n] = n, row
        n += chosen[unsigned(row)]
    rank[order.size] = n
    return n


@kernel
def narrowest(lo, hi):
    """The number of rows in the smallest window."""
    least = LATEST
    for i in range(lo.size):
        least = min(least, hi[i] - lo[i])
    return least


@kernel
def widest(lo, hi):
    """The number of rows in the largest window."""
    most = np.int64(0)
    for i in range(lo.size):
        most = max(most, hi[i] - lo[i])
    return most


@kernel
def clear_bits(bitmap, places):
    """The bits of these places, the lowest of a byte first, become 0."""
    for i in range(places.size):
        bitmap[unsigned(places[i] >> 3)] &= ~(1 << (places[i] & 7))


@kernel
def invert(order, out):
    """out[order[i]] = i."""
    for i in range(order.size):
        out[unsigned(order[i])] = i
