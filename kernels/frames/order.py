"""The order of frames that several scans have found: by the event that made them certain, (ts, arrival).

Each scan lists its frames in order of arrival. Where time does not follow arrival (events that lie one key after the
other) they are sorted, digit by digit, by each scan for itself; then each finds out how many frames of the others come
before its own, and writes them to their places.

costs   sort: 3 ns per frame and 11 bits of the range of times; ranks: 1 ns per frame of all scans
"""

import numpy as np

from kernels.compile.jit import kernel
from kernels.frames.framing import AT, LEAD
from kernels.operators.numbers import EARLIEST, LATEST

DIGIT = 11


@kernel
def certainty(frames, instants, sure):
    """sure[f] = the ts of the event that made frame f certain. Are they in order?"""
    fall, before = 0, EARLIEST
    for f in range(frames.shape[0]):
        at = frames[f, AT]
        sure[f] = instants[np.uint64(at)] if at >= 0 else LATEST
        fall += sure[f] < before
        before = sure[f]
    return fall == 0


@kernel
def add_ranks(own, other, places):
    """places[i] += how many frames of another scan come before the i-th of this one. Each: sure, slots, frames.

    A step goes on in one list or in the other, without a branch on which: nobody can predict that, and it took twice
    the time.
    """
    (sure, slots, frames), (other_sure, other_slots, other_frames) = own, other
    i, j, size, others = np.uint64(0), np.uint64(0), np.uint64(sure.size), np.uint64(other_sure.size)
    while i < size and j < others:
        before = other_sure[j] < sure[i]
        if other_sure[j] == sure[i]:
            before = other_frames[other_slots[j], AT] < frames[slots[i], AT]
        places[i] += np.int64(j) * (not before)
        j += np.uint64(before)
        i += np.uint64(not before)
    while i < size:
        places[i] += np.int64(others)
        i += np.uint64(1)


def sort(keys, order):
    """Sort `keys` in place, equal ones as they were, and `order`, which is 0, 1, 2 …, along with them."""
    if not sort_words(keys, order):
        by_key = np.argsort(keys, kind="stable")
        order[:], keys[:] = by_key, keys[by_key]


@kernel
def sort_words(keys, order):
    """The same, where a key and its place fit one word and can move as one; False: they do not, nothing was done.

    To move both apart, digit by digit, took a third longer.
    """
    if keys.size == 0:
        return True
    low, bits = keys.min(), width(np.uint64(keys.size))
    until = bits + width(np.uint64(keys.max() - low))
    if until > 64:
        return False
    words, others = np.empty(keys.size, np.uint64), np.empty(keys.size, np.uint64)
    for i in range(keys.size):
        words[i] = np.uint64(keys[i] - low) << bits | np.uint64(i)
    shift, ends = bits, np.empty((1 << DIGIT) + 1, np.int64)
    while shift < until:
        by_digit(words, shift, ends, others)
        words, others = others, words
        shift += np.uint64(DIGIT)
    last = (np.uint64(1) << bits) - np.uint64(1)
    for i in range(keys.size):
        keys[i], order[i] = np.int64(words[i] >> bits) + low, np.int64(words[i] & last)
    return True


@kernel
def width(number):
    """How many bits it has."""
    bits = np.uint64(0)
    while bits < 64 and number >> bits > 0:
        bits += np.uint64(1)
    return bits


@kernel
def by_digit(words, shift, ends, out):
    """Stably by one digit."""
    last = np.uint64((1 << DIGIT) - 1)
    ends[:] = 0
    for i in range(words.size):
        ends[((words[i] >> shift) & last) + np.uint64(1)] += 1
    for d in range(1 << DIGIT):
        ends[d + 1] += ends[d]
    for i in range(words.size):
        d = (words[i] >> shift) & last
        out[np.uint64(ends[d])] = words[i]
        ends[d] += 1


@kernel
def scatter(frames, slots, places, shift, part, fields):
    """fields[c, places[i]] = frames[slots[i], c] for all columns but the last, which are the leads of frames.

    The key is as numbered in all parts. In one pass: where slots are in no order, to read a frame is what takes time.
    """
    lead = fields.shape[0] - 1
    for i in range(places.size):
        place, slot = np.uint64(places[i]), np.uint64(slots[i])
        fields[0, place] = (frames[slot, 0] << shift) | part
        for c in range(1, lead):
            fields[c, place] = frames[slot, c]
        fields[lead, place] = frames[slot, LEAD]


@kernel
def put(values, slots, places, out):
    """out[d, places[i]] = values[slots[i], d]."""
    for d in range(out.shape[0]):
        for i in range(places.size):
            out[d, np.uint64(places[i])] = values[np.uint64(slots[i]), d]
