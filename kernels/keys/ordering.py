"""Words in order of their bytes: where new ones belong among those that are in order, and labels with gaps between.

A label is an int64 that compares as its word does, so what knows whole numbers knows words. A new word gets a label
between those of its neighbours, and nothing that is kept has to be changed.
"""

import numpy as np

from kernels.compile.jit import kernel

# Between the labels of neighbours, as long as they are few: halved for 40 batches before all are given out anew.
LABEL_STEP = 1 << 40
LARGEST_LABEL = 1 << 62  # labels are between this and its negative


@kernel
def is_before(text, ends, a, b):
    """Is word a before word b?"""
    shared = min(ends[a + 1] - ends[a], ends[b + 1] - ends[b])
    for i in range(shared):
        x, y = text[ends[a] + i], text[ends[b] + i]
        if x != y:
            return x < y
    return ends[a + 1] - ends[a] < ends[b + 1] - ends[b]


@kernel
def places(text, ends, in_order, new, out):
    """out[i]: how many of the words `in_order` are before new[i]; words are known by their numbers."""
    for i in range(new.size):
        first, last = 0, in_order.size
        while first < last:
            middle = (first + last) >> 1
            if is_before(text, ends, in_order[middle], new[i]):
                first = middle + 1
            else:
                last = middle
        out[i] = first


@kernel
def sort_words(text, ends, words, scratch):
    """Bring words in order, by merging ever longer runs of them; known by their numbers."""
    width = 1
    while width < words.size:
        for first in range(0, words.size, 2 * width):
            a, middle = first, min(first + width, words.size)
            b, last = middle, min(first + 2 * width, words.size)
            for to in range(first, last):
                if b < last and (a >= middle or is_before(text, ends, words[b], words[a])):
                    scratch[to] = words[b]
                    b += 1
                else:
                    scratch[to] = words[a]
                    a += 1
        for i in range(words.size):  # `words[:] = scratch` would compile for 4 s: Numba words its error in it
            words[i] = scratch[i]
        width *= 2


@kernel
def label_between(known, place, out):
    """Labels for new words in order, of which so many known ones (there are some) are before each: evenly in the gap,
    or a step apart at either end. False if there is no room between two."""
    step = min(LABEL_STEP, LARGEST_LABEL // (known.size + place.size + 1))
    first = 0
    while first < place.size:
        last = first
        while last < place.size and place[last] == place[first]:
            last += 1
        at, parts = place[first], last - first + 1
        low = known[at - 1] if at > 0 else max(-LARGEST_LABEL, known[at] - parts * step)
        high = known[at] if at < known.size else min(LARGEST_LABEL, low + parts * step)
        if high - low < parts:
            return False
        for i in range(last - first):
            out[first + i] = low + (i + 1) * ((high - low) // parts)
        first = last
    return True


def fresh(count: int) -> np.ndarray:
    """Labels for so many words, as far apart as can be, around 0."""
    step = min(LABEL_STEP, LARGEST_LABEL // (count + 1))
    return (np.arange(count) - count // 2) * step
