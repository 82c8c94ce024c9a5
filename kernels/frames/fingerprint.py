"""A number that tells arrays apart: values and their places, each pair multiplied into one sum.

      h = sum over i of  low(v_i ^ k_i) * high(v_i ^ k_i)        k_i: the i-th multiple of an odd constant

needs   unsigned integers; floats as their bits
costs   0.3 ns a value out of the cache, no more than to read it from memory
from    NH of UMAC (Black et al. 1999), with a Weyl sequence for its key

A sum does not mind in which order its parts are added: batches are mixed as they come, if each says with which place it
begins. Of a long array one page in a few is read: what it takes to read a column is what it takes to find frames in it.
Made to notice accidents (another column, rows that were left out or moved), not attacks, nor one value in ten million.
"""

import numpy as np

from kernels.compile.jit import kernel

KEY_STEP = np.uint64(0x9E3779B97F4A7C15)
LOW, HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
READ_WHOLE = 1 << 17  # places before this one are all read
PAGE, ONE_IN = 1 << 12, 16  # behind it, one page of so many


def mix_all(arrays, sums):
    """Add the values of arrays, by name, to their sums: how many values there have been, and what they add up to.

    Their bits are given to kernels as read-only, as Arrow's own are, so that these are compiled for one type.
    """
    for name, array in arrays.items():
        if array.size:
            bits = array.view(f"u{array.itemsize}")
            bits.flags.writeable = False
            count, before = sums.get(name, (0, 0))
            sums[name] = count + array.size, (before + int(mix(bits, count))) % 2**64


def slices_read(first, size):
    """Which of so many values, the first of which is at place `first`, are read: slices of them."""
    at = 0
    while at < size:
        place = first + at
        page = place // PAGE
        if place >= READ_WHOLE and page % ONE_IN:
            at = (page // ONE_IN + 1) * ONE_IN * PAGE - first
            continue
        until = min((READ_WHOLE if place < READ_WHOLE else (page + 1) * PAGE) - first, size)
        yield slice(at, until)
        at = until


@kernel
def mix(values, first):
    """The part of the sum that these values add, the first of which is at place `first`."""
    total, at = np.uint64(0), 0
    while at < values.size:
        place = first + at
        page = place // PAGE
        if place >= READ_WHOLE and page % ONE_IN:
            at = (page // ONE_IN + 1) * ONE_IN * PAGE - first
            continue
        until = min((READ_WHOLE if place < READ_WHOLE else (page + 1) * PAGE) - first, values.size)
        total += of_slice(values[at:until], place)
        at = until
    return total


@kernel
def of_slice(values, first):
    total, key = np.uint64(0), (np.uint64(first) + np.uint64(1)) * KEY_STEP
    for i in range(values.size):
        both = np.uint64(values[i]) ^ key
        total += (both & LOW) * (both >> HALF)
        key += KEY_STEP
    return total
