"""Few windows over many rows: rows are added up in plain loops, and nothing is built for rows that no window sees.

      [lo ....... hi)        [lo ....... hi)    windows that hardly overlap: one by one, rows in between are not touched
      [....|....[....|....)....|....)           others cut each other into pieces: running sums of those do for all

needs   windows that are many rows apart
costs   O(rows in windows); a running sum of rows takes ten times as long for each, and writes 16 bytes
error   pieces of 512 rows in four lanes, each within 128 eps of its absolute sum; pieces are put together compensated
"""

from typing import NamedTuple

import numpy as np

from kernels.compile.jit import kernel
from kernels.operators.numbers import unsigned

SPREAD_OVER = 512


class Panes(NamedTuple):
    """Runs of rows: run r is rows order[starts[r]:starts[r + 1]], those of key keys[r] in window windows[r]."""

    order: np.ndarray
    starts: np.ndarray
    windows: np.ndarray
    keys: np.ndarray


@kernel
def piece(values, lo, hi):
    """The sum of rows lo … hi - 1, in four lanes that do not wait for each other."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    p = lo
    while p + 4 <= hi:
        a += values[unsigned(p)]
        b += values[unsigned(p + 1)]
        c += values[unsigned(p + 2)]
        d += values[unsigned(p + 3)]
        p += 4
    while p < hi:
        a += values[unsigned(p)]
        p += 1
    return (a + b) + (c + d)


@kernel
def sums(values, lo, hi, out):
    """out[i] = the sum of rows lo[i] … hi[i] - 1. False if one is not finite: it may have overflowed on the way."""
    sure = True
    for i in range(lo.size):
        total, lost, p = 0.0, 0.0, lo[i]
        while p < hi[i]:
            end = min(p + SPREAD_OVER, hi[i])
            x = piece(values, p, end)
            s = total + x
            lost += (total - s) + x if abs(total) >= abs(x) else (x - s) + total
            total, p = s, end
        out[i] = total + lost
        sure &= np.isfinite(out[i])
    return sure


@kernel
def cut(lo, hi, bounds, covered, first, last):
    """Cut rows at every edge of windows [lo[i], hi[i]), which never go back: window i is pieces [first[i], last[i]).

    bounds: where pieces begin, and the end; covered: is a piece in any window at all? Returns how many pieces.
    """
    n, a, b = 0, 0, 0
    while b < hi.size:
        at = lo[a] if a < lo.size and lo[a] < hi[b] else hi[b]
        bounds[n] = at
        while a < lo.size and lo[a] == at:
            first[a] = n
            a += 1
        while b < hi.size and hi[b] == at:
            last[b] = n
            b += 1
        covered[n] = a > b
        n += 1
    return max(n - 1, 0)


@kernel
def piece_sums(values, bounds, covered, out):
    """out[j] = the sum of rows bounds[j] … of a piece, 0 for one in no window. False if one is not finite."""
    sure = True
    for j in range(out.size):
        out[j] = 0.0
        if covered[j]:
            sure &= sums(values, bounds[j : j + 1], bounds[j + 1 : j + 2], out[j : j + 1])
    return sure


@kernel
def group(ids, rows, ends, widths, key_count, panes):
    """Rows in windows, window after window; within each, key by key: a run for every key there is.

    Window w is the rows ends[w] - widths[w] … ends[w] - 1 of ids. rows: where those are (none given: as they are
    here). Fills in the panes and returns the number of runs.
    """
    order, starts, windows, owners = panes
    counts, met = np.zeros(key_count, np.int64), np.empty(key_count, np.int64)
    runs, at = 0, 0
    for w in range(ends.size):
        first, end, found = ends[w] - widths[w], ends[w], 0
        for p in range(first, end):
            k = unsigned(ids[p])
            if counts[k] == 0:
                met[found] = ids[p]
                found += 1
            counts[k] += 1
        if found * 8 > key_count:
            found = 0
            for k in range(key_count):
                if counts[k] > 0:
                    met[found] = k
                    found += 1
        else:
            met[:found].sort()
        for i in range(found):
            k = met[i]
            starts[runs], windows[runs], owners[runs] = at, w, k
            at += counts[k]
            counts[k] = starts[runs]
            runs += 1
        for p in range(first, end):
            k = unsigned(ids[p])
            order[unsigned(counts[k])] = rows[unsigned(p)] if rows.size > 0 else p
            counts[k] += 1
        for i in range(found):
            counts[met[i]] = 0
    starts[runs] = at
    return runs
