"""Custom frames: opened, grown and closed by functions of a user's, over an event and a state.

      event     1  7  8  2  9        for each frame that is open:   close(event, its state)  before it, with it, or not
      frames       [----]  [--       if it stays:                   its state = update(event, its state)
      key       .  .  .  .  .        may one open?                  open(event, the key's state); then update that

A frame's state is what `update` makes of its events; that of its key, of all events before this one. Both begin as
`state`. Either one frame is open at a time, and an event that is in none may open the next; or any number are, and
every event may open one.

needs, conventions: as in kernels/frames/framing.py; the functions compiled (kernels/compile/user_functions.py)
costs   three calls per event with one frame open at a time; two for every frame that is open, otherwise
from    Grossniklaus et al. 2016, section 5.1 (the logical frame operator, ProcessTuple: close, update, open)
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from kernels.compile.inlining import helper
from kernels.compile.jit import kernel
from kernels.frames.framing import LAST, ROWS, SCAN_ROWS, START, close_slot, listed, scratch, take_slot
from kernels.operators.monoids import load, store

STAYS, BEFORE, WITH, DROP = 0, 1, 2, -1  # what `close` says: a frame that is dropped ends before the event, as none


class Functions(NamedTuple):
    """event(ts, columns, e), and what the user wrote, of (event, state)."""

    event: Callable[..., Any]
    open: Callable[..., Any]
    update: Callable[..., Any]
    close: Callable[..., Any]


class OpenFrames(NamedTuple):
    """Frames that are open, any number per key, in places of a pool: those of a key are a list in order of opening.

    head[k], following[place]: -1 is none; start, rows and states of each. places: the first that is free, of a list of
    those; how many are in use.
    """

    head: np.ndarray
    following: np.ndarray
    start: np.ndarray
    rows: np.ndarray
    states: Any
    places: np.ndarray


_FUNCTIONS: dict[type, Functions] = {}


def define(name: str, functions: Functions) -> Any:
    """An operator that stands for these functions; lives in this process only."""
    operator = NamedTuple(name, [("tag", int)])  # type: ignore[misc]
    operator.local = True  # type: ignore[attr-defined]
    _FUNCTIONS[operator] = functions
    return operator(0)


def event_of(op, ts, columns, e):
    """Event e, as users know it."""
    return _FUNCTIONS[type(op)].event(ts, columns, e)


def opens(op, event, state):
    """May a frame begin with this event?"""
    return _FUNCTIONS[type(op)].open(event, state)


def updated(op, event, state):
    """The state with one event more."""
    return _FUNCTIONS[type(op)].update(event, state)


def closes(op, event, state):
    """Does a frame stay open, or does it end before this event or with it, or is it none?"""
    return _FUNCTIONS[type(op)].close(event, state)


@overload(event_of)
def _event_overload(op, ts, columns, e):
    f = _FUNCTIONS[op.instance_class].event
    return lambda op, ts, columns, e: f(ts, columns, e)


@overload(opens)
def _opens_overload(op, event, state):
    f = _FUNCTIONS[op.instance_class].open
    return lambda op, event, state: f(event, state)


@overload(updated)
def _updated_overload(op, event, state):
    f = _FUNCTIONS[op.instance_class].update
    return lambda op, event, state: f(event, state)


@overload(closes)
def _closes_overload(op, event, state):
    f = _FUNCTIONS[op.instance_class].close
    return lambda op, event, state: f(event, state)


@helper
def is_allowed(lengths, rows, start, end):
    """Is a frame neither too short nor too long?"""
    span = np.uint64(end - start)
    enough = (rows >= lengths[0]) & (span >= lengths[2])
    return enough & (rows <= lengths[1]) & (span <= lengths[3])


@kernel
def one_at_a_time(op, columns, rule, events, memory, found, first):
    """rule: lengths (least and most rows, least and most time), and the state that all begin with.

    memory: of every key, what scans remember; the state of its frame, and its own.
    """
    (lengths, initial), (state, of_frames, of_keys), ts, (rows, keys) = rule, memory, events.ts, scratch()
    frames, n = found.frames, found.count[0]
    for block in range(first, events.last, SCAN_ROWS):
        found.count[0] = n
        if n + SCAN_ROWS > frames.shape[0]:
            return block
        base, size, i = np.uint64(block), listed(events, block, rows, keys), np.uint64(0)
        while i < size:
            k = np.uint64(keys[i])
            last, run, start = state[k, LAST], state[k, ROWS], state[k, START]
            own, whole = load(of_frames, k), load(of_keys, k)
            while i < size and keys[i] == k:
                e = base + rows[i]
                t = ts[e]
                if t < last:
                    return -1
                event, what = event_of(op, ts, columns, e), STAYS
                if run > 0:
                    what = closes(op, event, own)
                    if what == BEFORE and is_allowed(lengths, run, start, last):
                        take_slot(frames, n, k, start, e, 0, run)
                        close_slot(frames, n, last, run)
                        n += 1
                    run = 0 if what in (BEFORE, DROP) else run + 1
                if run == 0 and opens(op, event, whole):
                    run, start, own = 1, t, initial
                    what = WITH if closes(op, event, initial) == WITH else STAYS
                if what == WITH:
                    if is_allowed(lengths, run, start, t):
                        take_slot(frames, n, k, start, e, 0, run - 1)
                        close_slot(frames, n, t, run)
                        n += 1
                    run = 0
                elif run > 0:
                    own = updated(op, event, own)
                whole = updated(op, event, whole)
                last = t
                i += np.uint64(1)
            state[k, LAST], state[k, ROWS], state[k, START] = last, run, start
            store(of_frames, k, own)
            store(of_keys, k, whole)
    found.count[0] = n
    return events.last


@kernel
def many_at_once(op, columns, rule, events, memory, found, first):
    """memory: of every key, what scans remember; the frames that are open; the states of keys.

    There is room for as many frames more as there are rows in a block, both to open and, with those open, to come out.
    """
    (lengths, initial), (state, pool, of_keys), ts, (rows, keys) = rule, memory, events.ts, scratch()
    frames, n = found.frames, found.count[0]
    for block in range(first, events.last, SCAN_ROWS):
        found.count[0] = n
        if n + pool.places[1] + SCAN_ROWS > frames.shape[0] or pool.places[1] + SCAN_ROWS > pool.start.size:
            return block
        base, size, i = np.uint64(block), listed(events, block, rows, keys), np.uint64(0)
        while i < size:
            k = np.uint64(keys[i])
            e, last = base + rows[i], state[k, LAST]
            if ts[e] < last:
                return -1
            event, whole = event_of(op, ts, columns, e), load(of_keys, k)
            n, tail = grow_each(op, event, (e, ts[e], last, k), lengths, pool, frames, n)
            if opens(op, event, whole):
                alone = closes(op, event, initial) == WITH
                if alone and is_allowed(lengths, 1, ts[e], ts[e]):
                    take_slot(frames, n, k, ts[e], e, 0, 0)
                    close_slot(frames, n, ts[e], 1)
                    n += 1
                if not alone:
                    place = add(pool, k, tail, ts[e])
                    store(pool.states, place, updated(op, event, initial))
            store(of_keys, k, updated(op, event, whole))
            earliest = pool.head[k]
            state[k, LAST], state[k, ROWS] = ts[e], pool.rows[earliest] if earliest >= 0 else 0
            if earliest >= 0:
                state[k, START] = pool.start[earliest]
            i += np.uint64(1)
    found.count[0] = n
    return events.last


@kernel
def grow_each(op, event, at, lengths, pool, frames, n):
    """The frames of a key that are open meet an event; returns the next slot that is free, and the last that stays.

    at: the event's number, its time, that of the one before it, and the key.
    """
    e, t, last, k = at
    tail, place = -1, pool.head[k]
    while place >= 0:
        then, what, start = pool.following[place], closes(op, event, load(pool.states, place)), pool.start[place]
        end, count = (t, pool.rows[place] + 1) if what in (WITH, STAYS) else (last, pool.rows[place])
        if what == STAYS:
            pool.rows[place] = count
            store(pool.states, place, updated(op, event, load(pool.states, place)))
            tail = place
        else:
            if what != DROP and is_allowed(lengths, count, start, end):
                take_slot(frames, n, k, start, e, 0, count - (what == WITH))
                close_slot(frames, n, end, count)
                n += 1
            remove(pool, k, tail, place)
        place = then
    return n, tail


@kernel
def add(pool, k, tail, start):
    """A place for a frame of one event, behind the last one of its key."""
    place = pool.places[0]
    pool.places[0] = pool.following[place]
    pool.places[1] += 1
    pool.following[place], pool.start[place], pool.rows[place] = -1, start, 1
    if tail >= 0:
        pool.following[tail] = place
    else:
        pool.head[k] = place
    return place


@kernel
def remove(pool, k, tail, place):
    """A place is free again; tail: the one before it in the list of its key."""
    if tail >= 0:
        pool.following[tail] = pool.following[place]
    else:
        pool.head[k] = pool.following[place]
    pool.following[place] = pool.places[0]
    pool.places[0] = place
    pool.places[1] -= 1


@kernel
def finish_runs(lengths, state, found):
    """The end of the stream ends the frames of keys that have one open."""
    n = found.count[0]
    for k in range(state.shape[0]):
        if state[k, ROWS] > 0 and is_allowed(lengths, state[k, ROWS], state[k, START], state[k, LAST]):
            take_slot(found.frames, n, k, state[k, START], -1, 0, 0)
            close_slot(found.frames, n, state[k, LAST], state[k, ROWS])
            n += 1
    found.count[0] = n


@kernel
def finish_each(lengths, state, pool, found):
    """The same, of any number that are open."""
    n = found.count[0]
    for k in range(state.shape[0]):
        place = pool.head[k]
        while place >= 0:
            if is_allowed(lengths, pool.rows[place], pool.start[place], state[k, LAST]):
                take_slot(found.frames, n, k, pool.start[place], -1, 0, 0)
                close_slot(found.frames, n, state[k, LAST], pool.rows[place])
                n += 1
            place = pool.following[place]
    found.count[0] = n
