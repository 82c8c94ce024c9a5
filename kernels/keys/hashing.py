"""Keys to dense ids: open addressing over 64-bit integers or over byte strings, a whole batch per call.

A table is an int64 array, a power of two long: 0 is free, otherwise id + 1. Ids are given in order of first appearance,
so taking back the newest ones, in reverse order, leaves the table exactly as it was (a refused batch).
"""

import numpy as np

from kernels.compile.inlining import AHEAD, fetch
from kernels.compile.jit import kernel

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
PRIME = np.uint64(0xBF58476D1CE4E5B9)


@kernel
def mix(h):
    h = np.uint64(h)
    h ^= h >> np.uint64(32)
    h *= PRIME
    h ^= h >> np.uint64(29)
    h *= GOLDEN
    return h ^ (h >> np.uint64(32))


@kernel
def encode_integers(values, table, known, count, ids):
    """ids[e] of every value; new values are added to `known`, which has room for them all. Returns the new count.

    count: how many are known so far; -1: nothing is added, and unknown ones get id -1. Places of values that come next
    are fetched: of five million keys two thirds of the time, of ten thousand no more than without.
    """
    mask = np.uint64(table.size - 1)
    for e in range(values.size):
        v = values[e]
        at = mix(v) & mask
        if e + 2 * AHEAD < values.size:
            fetch(table, mix(values[e + 2 * AHEAD]) & mask)
            fetch(known, max(table[mix(values[e + AHEAD]) & mask] - 1, 0))
        while table[at] != 0 and known[table[at] - 1] != v:
            at = (at + np.uint64(1)) & mask
        if table[at] == 0 and count >= 0:
            known[count] = v
            count += 1
            table[at] = count
        ids[e] = table[at] - 1
    return count


def find_integers(values, table, known, ids):
    """ids[e] of every value, -1 for unknown ones; adds nothing."""
    encode_integers(values, table, known, -1, ids)


@kernel
def rehash_integers(table, known, first, count):
    """Enter known[first:count] into a table that has room."""
    mask = np.uint64(table.size - 1)
    for i in range(first, count):
        at = mix(known[i]) & mask
        while table[at] != 0:
            at = (at + np.uint64(1)) & mask
        table[at] = i + 1


@kernel
def forget(table, count):
    """Take back every id >= count (they were the last to come, so no probe sequence runs through their places)."""
    for at in range(table.size):
        if table[at] > count:
            table[at] = 0


@kernel
def hash_bytes(data, offsets, hashes):
    """A 64-bit hash of each string data[offsets[e]:offsets[e + 1]]."""
    for e in range(hashes.size):
        h = GOLDEN
        word = np.uint64(0)
        n = 0
        for i in range(offsets[e], offsets[e + 1]):
            word = (word << np.uint64(8)) | np.uint64(data[i])
            n += 1
            if n & 7 == 0:
                h = mix(h ^ word)
                word = np.uint64(0)
        hashes[e] = mix(h ^ word) + np.uint64(n)


@kernel
def same_bytes(a, a_from, a_to, b, b_from, b_to):
    if a_to - a_from != b_to - b_from:
        return False
    for i in range(a_to - a_from):
        if a[a_from + i] != b[b_from + i]:
            return False
    return True


@kernel
def encode_bytes(data, offsets, hashes, table, known, count, ids):
    """As encode_integers, for strings. known = their hashes, bytes and offsets, with room for all that may come."""
    seen, text, ends = known
    mask = np.uint64(table.size - 1)
    for e in range(hashes.size):
        h = hashes[e]
        at = h & mask
        while table[at] != 0:
            i = table[at] - 1
            if seen[i] == h and same_bytes(text, ends[i], ends[i + 1], data, offsets[e], offsets[e + 1]):
                break
            at = (at + np.uint64(1)) & mask
        if table[at] == 0 and count >= 0:
            seen[count] = h
            size = offsets[e + 1] - offsets[e]
            for b in range(size):
                text[ends[count] + b] = data[offsets[e] + b]
            ends[count + 1] = ends[count] + size
            count += 1
            table[at] = count
        ids[e] = table[at] - 1
    return count


def find_bytes(data, offsets, hashes, table, known, ids):
    """As find_integers, for strings."""
    encode_bytes(data, offsets, hashes, table, known, -1, ids)


@kernel
def rehash_bytes(table, seen, first, count):
    mask = np.uint64(table.size - 1)
    for i in range(first, count):
        at = seen[i] & mask
        while table[at] != 0:
            at = (at + np.uint64(1)) & mask
        table[at] = i + 1
