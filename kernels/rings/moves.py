"""When events enter windows and leave them: what time alone does to an answer, it does at these instants.

      an event of time t      enters (now - far, now - near] at t + near, and leaves it at t + far

needs   windows as kernels/rings/pairs.py has them, one for each key that is asked for
costs   the next one O(log rows); all of a span, as many as there are
"""

import numpy as np

from kernels.compile.jit import kernel
from kernels.operators.numbers import EARLIEST, LATEST
from kernels.rings.timeline import CAPACITY, HEAD, OFFSET, TAIL, first_after


@kernel
def next_move(rings, ts, keys, now, lengths, due):
    """due[i] = when the next event of keys[i] passes the edge of a window that is lengths[i] ago; LATEST if none does.

    Events that are still to come pass it later.
    """
    for i in range(keys.size):
        k, length, due[i] = keys[i], lengths[i], LATEST
        head, tail = rings[k, HEAD], rings[k, TAIL]
        if tail == head:
            continue
        offset, mask = rings[k, OFFSET], rings[k, CAPACITY] - 1
        since = now - length if now >= EARLIEST + length else EARLIEST
        p = first_after(ts, offset, mask, head, tail, since)
        if p < tail and ts[offset + (p & mask)] <= LATEST - length:
            due[i] = ts[offset + (p & mask)] + length


@kernel
def moves(rings, ts, keys, span, windows, starts, out):
    """out[starts[i]:starts[i + 1]] = when events entered the window of keys[i] or left it, in (since[i], now]; in no
    order, some twice. span: since, now. Without room for any (out.size == 0) they are only counted."""
    since, now = span
    by_time, fars, nears = windows
    for i in range(keys.size):
        k, n = keys[i], starts[i]
        offset, mask, p, tail = rings[k, OFFSET], rings[k, CAPACITY] - 1, rings[k, HEAD], rings[k, TAIL]
        far, near = (fars[i], nears[i]) if by_time[i] else (np.int64(0), np.int64(0))
        if p < tail:
            p = first_after(ts, offset, mask, p, tail, since[i] - far if since[i] >= EARLIEST + far else EARLIEST)
        for q in range(p, tail):
            t = ts[offset + (q & mask)]
            for length in (near, far):
                if t <= LATEST - length and since[i] < t + length <= now:
                    if out.size:
                        out[n] = t + length
                    n += 1
        starts[i + 1] = n


@kernel
def in_order(pair, instant, starts, own, ordered):
    """own, ordered = pair, instant, pair by pair in order of time, each once; returns how many they are. starts: zeros,
    one more than there are pairs."""
    for i in range(pair.size):
        starts[pair[i] + 1] += 1
    for p in range(1, starts.size):
        starts[p] += starts[p - 1]
    for i in range(pair.size):  # now starts[p] moves on to the end of pair p
        ordered[starts[pair[i]]] = instant[i]
        starts[pair[i]] += 1
    begin, n = 0, 0
    for p in range(starts.size - 1):
        some = ordered[begin : starts[p]]
        some.sort()
        for i in range(some.size):
            if i == 0 or some[i] != some[i - 1]:
                own[n], ordered[n] = p, some[i]
                n += 1
        begin = starts[p]
    return n


@kernel
def began(pair, instant, passes, passing, when):
    """when[p] = the first instant from which on pair p was as it is now (passing[p]), or its last one if it was not
    even then; of one without any instants it stays. pair, instant: as `in_order` gives them."""
    last = pair.size
    while last > 0:
        p, first = pair[last - 1], last
        while first > 0 and pair[first - 1] == p and passes[first - 1] == passing[p]:
            first -= 1
        when[p] = instant[min(first, last - 1)]
        while first > 0 and pair[first - 1] == p:
            first -= 1
        last = first
