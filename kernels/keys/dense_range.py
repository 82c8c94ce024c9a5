"""Integer keys that lie close together need no hashing: their ids are read off a table of the whole range.

costs   1 ns per row, a quarter of a probe into kernels/keys/hashing.py; space: the range of the keys
"""

import numpy as np

from kernels.compile.jit import kernel

BRANCHLESS = 1024  # rows that are looked at without a branch
WIDEST = 1 << 20  # the largest range worth a table: it should stay in the second-level cache


@kernel
def find_in_range(values, low, table, ids):
    """ids[e] = table[values[e] - low], -1 outside the table. Returns the smallest id found: -1 if a key is unknown."""
    size, least = np.uint64(table.size), np.int32(0)
    for e in range(values.size):
        at = np.uint64(values[e] - low)
        ids[e] = table[at] if at < size else np.int32(-1)
        least = min(least, ids[e])
    return least


@kernel
def changes(values, first, last, rows):
    """List the rows in [first, last), first > 0, that differ from the one before; how many, or -1 if they do not fit.

    A look at a whole page of values without a branch comes first: most hold no change.
    """
    n = 0
    for page in range(first, last, BRANCHLESS):
        stop, some = min(page + BRANCHLESS, last), 0
        for e in range(page, stop):
            some += values[e] != values[e - 1]
        if n + some > rows.size:
            return -1
        for e in range(page, stop if some else page):
            if values[e] != values[e - 1]:
                rows[n] = e
                n += 1
    return n


@kernel
def spread(of_runs, starts, first, ids):
    """ids[i] = the id of the run that row first + i is in; run r begins at row starts[r]."""
    r = np.searchsorted(starts, first, "right") - 1
    i = 0
    while i < ids.size:
        stop = ids.size if r + 1 == starts.size else min(starts[r + 1] - first, ids.size)
        ids[i:stop] = of_runs[r]
        i, r = stop, r + 1
