"""Runs that time ends, or that have all the rows they may have: no event that is still to come can belong to them.

      session(3)   1 2 . . .|        up to 5 all events have come: a later one comes more than 3 after 2
      max_rows=2   1 2|              at once

      queue        a heap of keys by the time their runs are over at the earliest; events that come later put that off,
                   which is found out when the key is its first: then it is put in again

needs   events of one key in order of ts; what may be over at a time is never over earlier than it was thought to be
costs   O(1) per event, O(log keys) for each time that a key is looked at: no more often than it has events
"""

from typing import NamedTuple

import numpy as np

from kernels.compile.inlining import helper
from kernels.compile.jit import kernel
from kernels.frames.framing import LAST, ROWS, SLOT, START
from kernels.operators.numbers import EARLIEST, LATEST

QUEUED, LISTED = 1, 2  # what is known of a key: it is in the heap; it is among the keys whose runs are over


class RunLimits(NamedTuple):
    """For how long nothing may come and how long a run may be (-1: for ever), and how many rows it may have.

    timed: does time end runs? waits: does a frame wait for the next event, with which it ends? gaps: is a run that is
    not certain to be a frame part of a gap, once the next event tells?
    """

    silence: int
    max_span: int
    max_rows: int
    timed: bool
    waits: bool
    gaps: bool


class DueQueue(NamedTuple):
    """A heap of keys (`who`) by time (`when`), of so many (`size[0]`), and what is known of each key (`marks`)."""

    when: np.ndarray
    who: np.ndarray
    size: np.ndarray
    marks: np.ndarray


@helper
def later(instant, span):
    """So much after an instant; what is never, or beyond the last one, is at the last one."""
    return LATEST if span < 0 or (instant > 0 and span > LATEST - instant) else instant + span


@helper
def over_from(limits, last, start):
    """Once all events up to this time have come, a run is over."""
    return min(later(last, limits.silence), later(start, limits.max_span))


@kernel
def ended(ids, until, state, limits, queue, found):
    """List the keys among these whose runs are over now that all of their events up to `until` have come, each once;
    of the others, those that time will end are queued. Returns how many were listed.

    until: EARLIEST, here and below, if nothing was promised.
    """
    marks, n = queue.marks, 0
    for i in range(ids.size):
        k = np.uint64(ids[i])
        rows, waits = state[k, ROWS], limits.waits if state[k, SLOT] >= 0 else limits.gaps
        if rows <= 0 or marks[k] & LISTED:
            continue
        over = over_from(limits, state[k, LAST], state[k, START]) if limits.timed else LATEST
        if rows >= limits.max_rows or (until > EARLIEST and over <= until):
            if not waits:
                marks[k] |= LISTED
                found[n] = k
                n += 1
        elif limits.timed and not marks[k] & QUEUED:
            marks[k] |= QUEUED
            push(queue, over, k)
    return n


@kernel
def due(until, state, limits, queue, found, n):
    """List behind the first n the keys of the queue whose runs are over, now that all events up to `until` have come;
    others that were thought to be are put off. Returns how many are listed."""
    marks = queue.marks
    while until > EARLIEST and queue.size[0] > 0 and queue.when[0] <= until:
        k = np.uint64(pop(queue))
        marks[k] &= LISTED
        if state[k, ROWS] <= 0 or marks[k] & LISTED:
            continue
        over = over_from(limits, state[k, LAST], state[k, START])
        if over > until:
            marks[k] |= QUEUED
            push(queue, over, k)
        elif not (limits.waits if state[k, SLOT] >= 0 else limits.gaps):
            marks[k] |= LISTED
            found[n] = k
            n += 1
    for i in range(n):
        marks[found[i]] &= QUEUED
    return n


@kernel
def push(queue, time, k):
    """A key comes into the heap."""
    when, who, at = queue.when, queue.who, queue.size[0]
    queue.size[0] += 1
    while at > 0 and when[(at - 1) // 2] > time:
        when[at], who[at] = when[(at - 1) // 2], who[(at - 1) // 2]
        at = (at - 1) // 2
    when[at], who[at] = time, k


@kernel
def pop(queue):
    """The first key leaves the heap."""
    when, who = queue.when, queue.who
    first = who[0]
    queue.size[0] -= 1
    size, at, below = queue.size[0], 0, 1
    time, k = when[size], who[size]
    while below < size:
        if below + 1 < size and when[below + 1] < when[below]:
            below += 1
        if when[below] >= time:
            break
        when[at], who[at] = when[below], who[below]
        at, below = below, 2 * below + 1
    when[at], who[at] = time, k
    return first
