"""Previous occurrences: of every row, the position of the one before it that has the same value.

      position     0  1  2  3  4  5        distinct values of [2, 6): the rows there whose previous one lies before 2
      value        a  b  a  c  a  b        (a at 2, c at 3, b at 5), so 3: a rank among sorted runs of `previous`
      previous    -1 -1  0 -1  2  1        (kernels/windows/sorted_runs.py)

A table tells where each value was seen last: rows of ring + 1 (0: free), the value as a word, its position. Positions
before the head of a ring are forgotten when the table is made anew, as it is whenever it is half full.

needs   values as 64-bit words; of floats -0.0 is 0.0, and NaN is one value
costs   update O(1), distinct O(log^2 W), mode O(W)
"""

from typing import NamedTuple

import numpy as np

from kernels.compile.jit import kernel
from kernels.keys.hashing import GOLDEN, mix
from kernels.operators.numbers import EARLIEST, unsigned
from kernels.rings.timeline import CAPACITY, HEAD, OFFSET, TAIL
from kernels.windows.sorted_runs import SHORTEST_RUN, blocks, first_not_below, highest

RING, WORD, PLACE = range(3)  # of a row of the table
NONE = -1
INFINITE = 0x7FF0000000000000
NAN = 0x7FF8000000000000


class WordColumn(NamedTuple):
    """A column as words; are they floats?"""

    words: np.ndarray
    floats: bool


@kernel
def word(column, slot):
    x = column.words[unsigned(slot)]
    if column.floats:
        if x == EARLIEST:  # -0.0
            return np.int64(0)
        if x & np.int64(0x7FFFFFFFFFFFFFFF) > INFINITE:
            return np.int64(NAN)
    return x


@kernel
def find(table, ring, x):
    """The row of a value in the table, or the free one that it would take."""
    mask = unsigned(table.shape[0] - 1)
    at = mix(unsigned(x) + unsigned(ring) * GOLDEN) & mask
    while table[at, RING] != 0 and (table[at, WORD] != x or table[at, RING] != ring + 1):
        at = (at + unsigned(1)) & mask
    return at


@kernel
def note(column, previous, table, rings, runs, progress):
    """Rows [tail - counts[r], tail) of keys[r] are new: runs = keys, counts. False: there is no room for all of them.

    progress = the next run, how many of its rows are done, and how many places of the table are taken.
    """
    (keys, counts), most = runs, table.shape[0] >> 1
    done, used = progress[1], progress[2]
    for r in range(progress[0], keys.size):
        k = keys[r]
        offset, mask, tail = rings[k, OFFSET], rings[k, CAPACITY] - 1, rings[k, TAIL]
        for p in range(tail - counts[r] + done, tail):
            slot = offset + (p & mask)
            x = word(column, slot)
            at = find(table, k, x)
            if table[at, RING] == 0:
                if used == most:
                    progress[0], progress[1], progress[2] = r, p - (tail - counts[r]), used
                    return False
                table[at, RING], table[at, WORD], table[at, PLACE] = k + 1, x, NONE
                used += 1
            previous[unsigned(slot)] = table[at, PLACE]
            table[at, PLACE] = p
        done = 0
    progress[0], progress[1], progress[2] = 0, 0, used
    return True


@kernel
def take_back(column, previous, table, rings, runs, again):
    """The last counts[r] rows of keys[r] are new, or were displaced: the table is as it was before the first of them.

    again[r]: how many were known, from there on; their `previous` are still there, and those that lie before the first
    row say where a value was seen last.
    """
    keys, counts = runs
    for r in range(keys.size):
        k = keys[r]
        offset, mask = rings[k, OFFSET], rings[k, CAPACITY] - 1
        first = rings[k, TAIL] - counts[r]
        for p in range(first, rings[k, TAIL] if again[r] > 0 else first):
            at = find(table, k, word(column, offset + (p & mask)))
            if table[at, RING] != 0 and table[at, PLACE] >= first:
                table[at, PLACE] = NONE
        for p in range(first, first + again[r]):
            before = previous[offset + (p & mask)]
            if rings[k, HEAD] <= before < first:
                table[find(table, k, word(column, offset + (before & mask))), PLACE] = before


@kernel
def count_kept(table, rings, number):
    """How many places of the table are those of rows that are kept. number[ring]: its number from now on, or -1."""
    kept = 0
    for at in range(table.shape[0]):
        if table[at, RING] != 0:
            k = number[table[at, RING] - 1]
            kept += k >= 0 and table[at, PLACE] >= rings[k, HEAD]
    return kept


@kernel
def refill(table, rings, number, larger):
    """What is kept, into another table."""
    for at in range(table.shape[0]):
        if table[at, RING] != 0:
            k = number[table[at, RING] - 1]
            if k >= 0 and table[at, PLACE] >= rings[k, HEAD]:
                to = find(larger, k, table[at, WORD])
                larger[to, RING], larger[to, WORD], larger[to, PLACE] = k + 1, table[at, WORD], table[at, PLACE]


@kernel
def count_before(column, ring, lo, hi, x):
    """How many rows of positions [lo, hi) hold less than x."""
    (offset, mask), n = ring, 0
    for p in range(lo, hi):
        n += column[unsigned(offset + (p & mask))] < x
    return n


@kernel
def distinct(sorted_previous, rings, keys, edges, out):
    """out[i, w] = how many different values there are at the positions edges[i, w]. sorted_previous: and its runs."""
    (previous, runs), (lo, hi), top = sorted_previous, edges, sorted_previous[1].shape[0] - 1
    for i in range(keys.size):
        k = keys[i]
        ring = rings[k, OFFSET], rings[k, CAPACITY] - 1
        for w in range(lo.shape[1]):
            a, b = lo[i, w], hi[i, w]
            if a >= b:
                continue
            at, last = blocks(a, b)
            found, level = count_before(previous, ring, a, at, a) + count_before(previous, ring, last, b, a), 0
            while at < last:
                level = highest(at, last, level, top)
                slot = ring[0] + (at & ring[1])
                found += first_not_below(runs, level, slot, slot + (SHORTEST_RUN << level), a) - slot
                at += SHORTEST_RUN << level
            out[i * lo.shape[1] + w] = found


@kernel
def mode(column, previous, rings, keys, edges, out):
    """out[i, w] = the value that is most frequent at the positions edges[i, w]; of several, whose first row is first.

    A row is one more of its value than the one before it was, whose first row is its own.
    """
    lo, hi = edges
    seen, first = np.empty(64, np.int64), np.empty(64, np.int64)
    for i in range(keys.size):
        k = keys[i]
        offset, mask = rings[k, OFFSET], rings[k, CAPACITY] - 1
        for w in range(lo.shape[1]):
            a, most, best = lo[i, w], 0, -1
            if hi[i, w] - a > seen.size:
                seen, first = np.empty(2 * (hi[i, w] - a), np.int64), np.empty(2 * (hi[i, w] - a), np.int64)
            for p in range(a, hi[i, w]):
                before = previous[unsigned(offset + (p & mask))] - a
                n = seen[before] + 1 if before >= 0 else 1
                origin = first[before] if before >= 0 else p
                seen[p - a], first[p - a] = n, origin
                if n > most or (n == most and origin < best):
                    most, best = n, origin
            if most > 0:
                out[i * lo.shape[1] + w] = column[offset + (best & mask)]
