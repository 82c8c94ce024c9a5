"""When runs are over without an event that says so: see kernels/frames/deadlines.py."""

import numpy as np

from kernels.frames import deadlines as frame_deadlines
from kernels.frames.deadlines import DueQueue, RunLimits
from kernels.frames.framing import AllowedLengths
from kernels.operators.numbers import EARLIEST, LATEST
from swag.tables.columns import room

ENDLESS = 2**64 - 1  # no two instants of int64 are further apart


class Deadlines:
    """Owns the queue of the keys whose runs time will end. Asked of it: which runs are `over`, and `is_due`.

    It is no part of what is saved: what keys remember tells all of it, and is looked through after `forget`.
    """

    def __init__(self, lengths: AllowedLengths, silence: int, gaps: bool) -> None:
        """silence: longer ones end a run. gaps: a run that is not certain to be a frame may be part of one."""
        silence, span = (-1 if each == ENDLESS else each for each in (silence, int(lengths.max_span)))
        self.limits = RunLimits(silence, span, lengths.max_rows, max(silence, span) >= 0, lengths.open, gaps)
        self.forget()

    def forget(self) -> None:
        """Keys remember something else now, or have other numbers."""
        self._complete = False
        nothing = np.zeros(0, np.int64)
        self._queue = DueQueue(nothing, nothing, np.zeros(1, np.int64), np.zeros(0, np.uint8))
        self._found = nothing

    def first(self, keyed: np.ndarray) -> int | None:
        """The earliest time that may end a run; None: there is none, or it is the end of time."""
        if not self._complete:
            self._look_through(keyed)
        first = int(self._queue.when[0]) if self._queue.size[0] else LATEST
        return None if first == LATEST else first

    def over(self, keyed: np.ndarray, ids: np.ndarray, until: int, upto: int) -> np.ndarray:
        """The keys whose runs are over; their memory says so still. ids: those that have had events, all of which up to
        `until` have come; upto: the same of all keys."""
        if not self._complete:
            self._look_through(keyed)
        self._make_room(keyed.shape[0])
        count = frame_deadlines.ended(ids, until, keyed, self.limits, self._queue, self._found)
        count = frame_deadlines.due(upto, keyed, self.limits, self._queue, self._found, count)
        return np.sort(self._found[:count])

    def _look_through(self, keyed: np.ndarray) -> None:
        """All keys that there are: what has all of its rows is over when the next event comes, or time says so."""
        self._make_room(keyed.shape[0])
        self._complete = True
        every = np.arange(keyed.shape[0])
        limits = self.limits._replace(max_rows=np.iinfo(np.int64).max)
        frame_deadlines.ended(every, EARLIEST, keyed, limits, self._queue, self._found)

    def _make_room(self, keys: int) -> None:
        known, old = self._queue.marks.size, self._queue
        if keys > known:
            when, who, marks = room(keys, np.int64), room(keys, np.int64), np.zeros(keys, np.uint8)
            when[: old.when.size], who[: old.who.size], marks[:known] = old.when, old.who, old.marks
            self._queue, self._found = DueQueue(when, who, old.size, marks), room(keys, np.int64)
