"""Window edges of pairs: any key with any window, at any time; thousands of conditions are checked in one call.

      pair i:  keys[i], the window by_time, far, near[i], at instants[i]        -->  positions [lo, hi)[i]

needs   pairs in any order; those of one key beside each other find its ring in the cache
costs   O(log rows) per pair
"""

from typing import NamedTuple

import numpy as np

from kernels.compile.jit import kernel
from kernels.operators.numbers import EARLIEST
from kernels.rings.timeline import CAPACITY, HEAD, OFFSET, TAIL, first_after


class PairWindows(NamedTuple):
    """Windows as lengths: by time, now - far < ts <= now - near; by rows, the last `far` rows without `near`."""

    by_time: np.ndarray  # bool
    far: np.ndarray  # int64
    near: np.ndarray


def taken(windows: PairWindows, rows: np.ndarray) -> PairWindows:
    """Some of them, or one of them for each pair."""
    return PairWindows(windows.by_time[rows], windows.far[rows], windows.near[rows])


@kernel
def edges(rings, ts, keys, instants, windows, out):
    """out = lo, hi: the positions [lo, hi)[i] of keys[i] at instants[i] (or at the one there is, for all).

    Rows that are no longer kept are in no window.
    """
    lo, hi = out
    by_time, fars, nears = windows
    for i in range(keys.size):
        k, now = keys[i], instants[min(i, instants.size - 1)]
        offset, mask = rings[k, OFFSET], rings[k, CAPACITY] - 1
        head, tail, far, near = rings[k, HEAD], rings[k, TAIL], fars[i], nears[i]
        m = first_after(ts, offset, mask, head, tail, now) if tail > head else tail
        if by_time[i]:
            since = now - far if now >= EARLIEST + far else EARLIEST
            lo[i] = first_after(ts, offset, mask, head, m, since)
            hi[i] = m
            if near > 0:
                hi[i] = first_after(ts, offset, mask, lo[i], m, now - near if now >= EARLIEST + near else EARLIEST)
        else:
            lo[i] = max(m - far, head)
            hi[i] = max(m - near, lo[i])
