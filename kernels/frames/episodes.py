"""Frames of neighbouring keys that overlap in time, joined into episodes: a forest of frames, and a sweep per edge.

      key a    [-----]        [--]            frames of a and b in order of start; of each key those are kept that the
      key b       [------------]   [---]      other has not met yet, and one that stands for all it has met
      episode  0  0           0    1

needs   frames grouped by key, in order of start; pairs of keys, each pair once
costs   O(frames of a + frames of b) per pair of keys (a, b), however many of them overlap, but for the height of trees
from    the future work of Maier et al. 2012: frames over space; paths are halved as Tarjan & van Leeuwen 1984 do

A frame that meets several of the other key makes them one episode, so of those it is enough to know the one that lasts
longest: whoever meets any of them later meets that one.
"""

from kernels.compile.jit import kernel


@kernel
def root(parent, f):
    """The frame that stands for the tree of f; the path to it is halved on the way."""
    while parent[f] != f:
        parent[f] = parent[parent[f]]
        f = parent[f]
    return f


@kernel
def unite(parent, f, g):
    """The earlier root stays one, so that it does not depend on the order of pairs."""
    a, b = root(parent, f), root(parent, g)
    if a < b:
        parent[b] = a
    else:
        parent[a] = b


@kernel
def met(parent, frame, ends, since, waiting, size):
    """A frame that begins at `since` meets those of the other key that wait; those that are over leave.

    Returns how many wait from then on: one, which lasts longest, stands for all that were met.
    """
    best = -1
    for i in range(size):
        f = waiting[i]
        if ends[f] >= since:
            unite(parent, frame, f)
            if best < 0 or ends[f] > ends[best]:
                best = f
    if best >= 0:
        waiting[0] = best
    return 1 if best >= 0 else 0


@kernel
def connect(segments, starts, ends, pairs, parent, waiting):
    """Unite the frames of both keys of each pair that overlap. segments: of frames per key; waiting: room for two keys.

    Two frames overlap if neither begins after the other's end. A key that is its own neighbour is swept as one list,
    where everything waits for itself.
    """
    for p in range(pairs.shape[0]):
        a, b = pairs[p, 0], pairs[p, 1]
        i, j, stop_a, stop_b = segments[a], segments[b], segments[a + 1], segments[b + 1]
        if a == b:
            j = stop_b
        size_a, size_b = 0, 0
        while i < stop_a or j < stop_b:
            if j == stop_b or (i < stop_a and starts[i] <= starts[j]):
                if a == b:
                    size_a = met(parent, i, ends, starts[i], waiting[0], size_a)
                else:
                    size_b = met(parent, i, ends, starts[i], waiting[1], size_b)
                waiting[0, size_a] = i
                size_a += 1
                i += 1
            else:
                size_a = met(parent, j, ends, starts[j], waiting[0], size_a)
                waiting[1, size_b] = j
                size_b += 1
                j += 1
    for f in range(parent.size):
        parent[f] = root(parent, f)
