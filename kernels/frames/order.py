"""The order of frames that several scans have found: by the event that made them certain, (ts, arrival).

Each scan lists its frames in order of arrival. Where time does not follow arrival (events that lie one key after the
other) they are sorted, digit by digit, by each scan for itself; then each finds out how many frames of the others come
before its own, and writes them to their places.

costs   sort: 3 ns per frame and 11 bits of the range of times; ranks: 1 ns per frame of all scans
"""

import numpy as np

from kernels.compile.jit import kernel
from kernels.frames.framing import AT
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
    """places[i] += how many frames of another scan come before the i-th of this one. Each: sure, slots, frames."""
    (sure, slots, frames), (other_sure, other_slots, other_frames), j = own, other, 0
    for i in range(sure.size):
        while j < other_sure.size and other_sure[j] <= sure[i]:
            if other_sure[j] == sure[i] and other_frames[other_slots[j], AT] > frames[slots[i], AT]:
                break
            j += 1
        places[i] += j


@kernel
def sort(keys, order):
    """Sort `keys` in place, equal ones as they were, and `order` along with them."""
    if keys.size == 0:
        return
    low, other_keys, other_order = keys.min(), np.empty_like(keys), np.empty_like(order)
    widest, shift, turned = np.uint64(keys.max() - low), np.uint64(0), False
    ends = np.empty((1 << DIGIT) + 1, np.int64)
    while shift < 64 and widest >> shift > 0:
        if turned:
            by_digit(other_keys, other_order, low, shift, ends, keys, order)
        else:
            by_digit(keys, order, low, shift, ends, other_keys, other_order)
        turned = not turned
        shift += np.uint64(DIGIT)
    if turned:
        keys[:], order[:] = other_keys, other_order


@kernel
def by_digit(keys, order, low, shift, ends, out_keys, out_order):
    """Stably by one digit of keys - low; keys move along with their rows, to be read in order the next time."""
    last = np.uint64((1 << DIGIT) - 1)
    ends[:] = 0
    for i in range(keys.size):
        ends[((np.uint64(keys[i] - low) >> shift) & last) + np.uint64(1)] += 1
    for d in range(1 << DIGIT):
        ends[d + 1] += ends[d]
    for i in range(keys.size):
        d = (np.uint64(keys[i] - low) >> shift) & last
        out_keys[ends[d]], out_order[ends[d]] = keys[i], order[i]
        ends[d] += 1


@kernel
def scatter(frames, slots, places, shift, part, fields):
    """fields[c, places[i]] = frames[slots[i], c] for the first columns; the key as numbered in all parts."""
    for i in range(places.size):
        place, slot = np.uint64(places[i]), np.uint64(slots[i])
        fields[0, place] = (frames[slot, 0] << shift) | part
        for c in range(1, fields.shape[0]):
            fields[c, place] = frames[slot, c]


@kernel
def put(values, slots, places, out):
    """out[d, places[i]] = values[slots[i], d]."""
    for d in range(out.shape[0]):
        for i in range(places.size):
            out[d, np.uint64(places[i])] = values[np.uint64(slots[i]), d]
