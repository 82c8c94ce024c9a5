"""Keys by how recently they were seen: who has an event in a window is the front of a list, whatever the other keys.

      newest  k7 <-> k2 <-> k9 <-> … <-> k4  oldest        a row moves its key to the front
              [------ now - back ------)                   a tick reports from the front, until it meets one too old

needs   rows of all keys in order of time
costs   O(1) per row, O(1) per key reported; nothing per key that is not
"""

from typing import NamedTuple

import numpy as np

from kernels.compile.jit import kernel

NEWER, OLDER = range(2)  # of links; node 0 is both ends, key k is node k + 1
TICK, ROW = range(2)  # of `at`: how far it is


class RecentKeys(NamedTuple):
    """Of each key: its neighbours in the list (-1: never seen), the time of its last row, and how many it has had."""

    links: np.ndarray
    latest: np.ndarray
    rows: np.ndarray


@kernel
def to_front(links, node):
    """The key of a node was seen just now: from its place in the list, if it has one, it moves to the newest end."""
    newer, older = links[node, NEWER], links[node, OLDER]
    if links[0, OLDER] == node:
        return
    if newer >= 0:  # it is somewhere in the list
        links[newer, OLDER], links[older, NEWER] = older, newer
    first = links[0, OLDER]
    links[node, NEWER], links[node, OLDER] = 0, first
    links[first, NEWER], links[0, OLDER] = node, node


@kernel
def renumbered(links, new, out):
    """The same list, of the keys that have a new number: new[k], or -1."""
    out[:] = -1
    node, last = links[0, OLDER], 0
    while node != 0:
        if new[node - 1] >= 0:
            here = new[node - 1] + 1
            out[last, OLDER], out[here, NEWER] = here, last
            last = here
        node = links[node, OLDER]
    out[last, OLDER], out[0, NEWER] = 0, last


@kernel
def reported(ts, ids, ends, since, seen, at, out):
    """The keys with a row newer than since[i] among the first ends[i] rows, and how many rows of theirs there are.

    seen: before these rows; brought up to date. out = tick, key, rows, one column each. Goes on from `at` and returns
    how many columns are filled in: stops before a tick for which there is no more room.
    """
    links, latest, rows = seen
    n, i, row = 0, at[TICK], at[ROW]
    while i < ends.size:
        while row < ends[i]:
            k = ids[row]
            latest[k] = ts[row]
            rows[k] += 1
            to_front(links, k + 1)
            row += 1
        at[TICK], at[ROW], whole = i, row, n
        node = links[0, OLDER]
        while node != 0 and latest[node - 1] > since[i]:
            if n == out.shape[1]:
                return whole
            out[0, n], out[1, n], out[2, n] = i, node - 1, rows[node - 1]
            n += 1
            node = links[node, OLDER]
        i += 1
    at[TICK] = i
    return n
