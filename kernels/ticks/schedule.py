"""Ticks: when a jumping window answers, as vectors, before anything is aggregated.

      rows      1 . . 4 . . 7 . . .        every 3 rows: rows 3, 6, 9 are ticks 1, 2, 3
      slots   ((j-1)t, jt]                 picked: the first row at jt, else the slot's last
                                           anchored at jt: every slot whose window holds a row

A segment is a sequence of its own: the stream, or one key's rows of it. bounds[k] says from which tick to which a
segment is to be answered. Kernels count when given no room (`out` of no columns), and fill `out` when given enough.

needs   ts in order within each segment
costs   O(log) per tick, whatever lies between two; a gap in which nothing ticks is jumped over
from    the sequence model of frequency operators F_n, F_t over windows W_n, W_t; anchoring at jt is what others hop by
"""

import numpy as np

from kernels.compile.jit import kernel
from kernels.operators.numbers import EARLIEST, LATEST
from kernels.stored.edges import gallop

NUMBER, NOW, END, SEGMENT = range(4)  # the rows of `out`: tick j, its time, the rows before it, whose it is
FIRST, LAST = range(2)  # of bounds


@kernel
def plus(t, more):
    """t + more, no further than int64 goes."""
    if more < 0:
        return t + more if t >= EARLIEST - more else EARLIEST
    return t + more if t <= LATEST - more else LATEST


@kernel
def minus(t, less):
    """t - less, no further than int64 goes."""
    if less < 0:
        return t - less if t <= LATEST + less else LATEST
    return t - less if t >= EARLIEST + less else EARLIEST


@kernel
def slot_of(t, step):
    """The slot ((j-1) step, j step] that t lies in."""
    return t // step + (t % step != 0)


@kernel
def put(out, n, number, now, end, segment):
    if n < out.shape[1]:
        out[NUMBER, n], out[NOW, n], out[END, n], out[SEGMENT, n] = number, now, end, segment


@kernel
def by_rows(ts, starts, before, bounds, step, out):
    """Tick j is row j * step of its segment, of which before[k] rows are not here any more."""
    n = 0
    for k in range(starts.size - 1):
        for j in range(bounds[k, FIRST], bounds[k, LAST] + 1):
            end = starts[k] + j * step - before[k]
            put(out, n, j, ts[end - 1], end, k)
            n += 1
    return n


@kernel
def picked(ts, starts, bounds, step, out):
    """One tuple per slot that has any: the first at its very end, else its last."""
    n = 0
    for k in range(starts.size - 1):
        p, end = starts[k], starts[k + 1]
        if p < end and bounds[k, FIRST] > slot_of(ts[p], step):
            p = gallop(ts, p, end, (bounds[k, FIRST] - 1) * step)
        while p < end:
            j = slot_of(ts[p], step)
            if j > bounds[k, LAST]:
                break
            at_end = gallop(ts, p, end, j * step - 1)
            p = gallop(ts, min(at_end, end - 1), end, j * step)
            row = at_end if at_end < p else p - 1
            put(out, n, j, ts[row], row + 1, k)
            n += 1
    return n


@kernel
def anchored(ts, starts, bounds, reaches, rows_from, step, out):
    """Every slot whose window holds a row: one of `reaches` (far, near), or one by rows, filled from rows_from[k] on.

    From one look on, a window is known to hold its newest row until that leaves, or nothing until the next comes.
    """
    n = 0
    at = np.empty(reaches.shape[0], np.int64)
    for k in range(starts.size - 1):
        first, end, last = starts[k], starts[k + 1], bounds[k, LAST]
        j, seen = bounds[k, FIRST], starts[k]
        at[:] = first
        while j <= last and first < end:
            stay, again = j - 1, last + 1
            for r in range(reaches.shape[0]):
                far, near = reaches[r]
                at[r] = gallop(ts, at[r], end, minus(j * step, near)) if at[r] < end else end
                if at[r] > first and ts[at[r] - 1] > minus(j * step, far):
                    stay = max(stay, min(last, plus(ts[at[r] - 1], far - 1) // step))
                elif at[r] < end:
                    again = min(again, slot_of(plus(ts[at[r]], near), step))
            if rows_from[k] <= j * step:
                stay = last
            elif rows_from[k] < LATEST:
                again = min(again, slot_of(rows_from[k], step))
            if stay >= j and out.shape[1] == 0:
                n += stay - j + 1
            elif stay >= j:
                for i in range(j, stay + 1):
                    seen = gallop(ts, seen, end, i * step) if seen < end else end
                    put(out, n, i, i * step, seen, k)
                    n += 1
            j = max(stay + 1, again) if stay < j else stay + 1
    return n


@kernel
def per_key(ts, place, starts, ticks, reaches, least, out):
    """Ticks of the whole stream, key by key: those at which the key has a row in a window.

    place: where each row stands in the stream. ticks = their times, and how many rows of the stream each sees. least:
    as many rows fill a window by rows (0: there is none). Into out: the tick, its time, the row of the key it sees up
    to, the key.
    """
    (now, end), n, count = ticks, 0, ticks[0].size
    at = np.empty(reaches.shape[0], np.int64)
    for k in range(starts.size - 1):
        first, stop = starts[k], starts[k + 1]
        at[:] = first
        seen = first
        i = 0 if first < stop else count
        while i < count:
            if seen < stop and place[seen] < end[i]:
                seen = gallop(place, seen, stop, end[i] - 1)
            some, again = least > 0 and seen - first >= least, count
            for r in range(reaches.shape[0]):
                if some:
                    break
                far, near = reaches[r]
                if near == 0:
                    at[r] = seen
                elif at[r] < stop:
                    at[r] = gallop(ts, at[r], stop, minus(now[i], near))
                some = at[r] > first and ts[at[r] - 1] > minus(now[i], far)
                if not some and at[r] < stop:
                    again = min(again, first_sight(now, end, i, place[at[r]], plus(ts[at[r]], near)))
            if some:
                put(out, n, i, now[i], seen, k)
                n += 1
                i += 1
            else:
                if least > 0 and first + least <= stop:
                    row = first + least - 1
                    again = min(again, first_sight(now, end, i, place[row], ts[row]))
                i = max(again, i + 1)
    return n


@kernel
def seen_of_each(place, starts, ends, out):
    """out[k, i] (flat) = the rows of key k up to those that tick i sees, which are the first ends[i] of the stream."""
    for k in range(starts.size - 1):
        seen = starts[k]
        for i in range(ends.size):
            if seen < starts[k + 1] and place[seen] < ends[i]:
                seen = gallop(place, seen, starts[k + 1], ends[i] - 1)
            out[k * ends.size + i] = seen


@kernel
def first_sight(now, end, i, place, time):
    """The first tick from i on that sees the row at `place` of the stream, at `time` or later."""
    i = gallop(end, i, end.size, place)
    return gallop(now, i, now.size, time - 1) if i < now.size else i


@kernel
def lay_out(ts, batch, runs, newest, out, rows, ends):
    """Row by row, segment s: its newest row that is not here, if any, then those of run runs[s] (-1: it has none).

    batch: the rows by segment (kernels/rings/timeline.py). rows: where each was. ends: where segments begin, and the
    end. Returns the number of rows.
    """
    order, _, starts = batch
    n = 0
    for s in range(runs.size):
        ends[s] = n
        if newest[s] > EARLIEST:
            out[n], rows[n] = newest[s], -1
            n += 1
        if runs[s] >= 0:
            for i in range(starts[runs[s]], starts[runs[s] + 1]):
                out[n], rows[n] = ts[order[i]], order[i]
                n += 1
    ends[runs.size] = n
    return n


@kernel
def places(groups, at, order):
    """order[i] = where i goes if groups are laid out one after the other, group g from at[g] on."""
    for i in range(groups.size):
        order[i] = at[groups[i]]
        at[groups[i]] += 1


@kernel
def cover(lo, end, rows, ends):
    """The rows in any window [lo[i], end[i]), in order; ends[i]: how many of them lie before end[i].

    Edges never go back. Counts when there is no room for rows.
    """
    n, at = 0, 0
    for i in range(lo.size):
        first = max(lo[i], at)
        if rows.size > 0:
            for row in range(first, end[i]):
                rows[n + row - first] = row
        n += max(0, end[i] - first)
        at = max(at, end[i])
        ends[i] = n
    return n
