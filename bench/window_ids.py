"""The window-identifier way to answer jumping windows, to compare with: tag each tuple with its windows, then group.

As in the literature: a function from a tuple to the identifiers of the windows it is in, then an aggregation by hash,
grouped by identifier (and key). Compiled, in two passes over plain arrays; a tuple in several windows is repeated.
"""

import numpy as np

from kernels.compile.jit import kernel


@kernel
def count_tags(rows, frequency, width):
    """How many (tuple, window) pairs there are."""
    n = 0
    for i in range(rows):
        first = i // frequency + 1  # window j holds the rows j * frequency - width + 1 … j * frequency, from 1
        last = min((i + width) // frequency, rows // frequency)
        n += max(0, last - first + 1)
    return n


@kernel
def tag(rows, frequency, width, tuples, windows):
    n = 0
    for i in range(rows):
        first = i // frequency + 1
        last = min((i + width) // frequency, rows // frequency)
        for j in range(first, last + 1):
            tuples[n], windows[n] = i, j
            n += 1


@kernel
def grouped(values, tuples, windows, table, ids, sums, counts):
    """Mean by window: open addressing over identifiers. Returns the number of groups."""
    mask, groups = table.size - 1, 0
    for n in range(tuples.size):
        w = windows[n]
        slot = (w * np.int64(-7046029254386353131) >> 20) & mask
        while table[slot] >= 0 and ids[table[slot]] != w:
            slot = (slot + 1) & mask
        if table[slot] < 0:
            table[slot] = groups
            ids[groups], sums[groups], counts[groups] = w, 0.0, 0
            groups += 1
        g = table[slot]
        sums[g] += values[tuples[n]]
        counts[g] += 1
    return groups


@kernel
def grouped_by_key(values, keys, tuples, windows, table, ids, own, sums, counts):
    """Mean by window and key."""
    mask, groups = table.size - 1, 0
    for n in range(tuples.size):
        w, k = windows[n], keys[tuples[n]]
        slot = ((w * np.int64(-7046029254386353131) + k * np.int64(-4417276706812531889)) >> 20) & mask
        while table[slot] >= 0 and (ids[table[slot]] != w or own[table[slot]] != k):
            slot = (slot + 1) & mask
        if table[slot] < 0:
            table[slot] = groups
            ids[groups], own[groups], sums[groups], counts[groups] = w, k, 0.0, 0
            groups += 1
        g = table[slot]
        sums[g] += values[tuples[n]]
        counts[g] += 1
    return groups


def means(values: np.ndarray, keys: np.ndarray | None, frequency: int, width: int, per_window: int) -> list[np.ndarray]:
    """AVG(values) [ROWS width, FREQUENCY frequency TUPLES] GROUP BY keys: identifiers, keys, means.

    per_window: at most so many groups in a window, which is what the hash table has room for.
    """
    pairs = count_tags(values.size, frequency, width)
    tuples, windows = np.empty(pairs, np.int64), np.empty(pairs, np.int64)
    tag(values.size, frequency, width, tuples, windows)
    most = (values.size // frequency) * min(per_window, width) + 1
    table = np.full(1 << int(np.ceil(np.log2(2 * most))), -1, np.int64)
    ids, sums, counts = np.empty(most, np.int64), np.empty(most), np.empty(most, np.int64)
    if keys is None:
        groups = grouped(values, tuples, windows, table, ids, sums, counts)
        return [ids[:groups], sums[:groups] / counts[:groups]]
    own = np.empty(most, np.int64)
    groups = grouped_by_key(values, keys, tuples, windows, table, ids, own, sums, counts)
    return [ids[:groups], own[:groups], sums[:groups] / counts[:groups]]
