"""What ticks to come can still see: rows that none can are let go, and keys without any other are forgotten."""

from dataclasses import dataclass

import numpy as np

from kernels.operators.numbers import EARLIEST
from swag.query.every import Every
from swag.query.windows import Depth
from swag.ticks.counters import Counters, StreamProgress
from swag.ticks.schedule import FARTHEST, NEVER, slots_of


@dataclass(eq=False)
class Horizon:
    """whole: one count for all rows. progress: how far the stream is, but for what is of each key. depth: how far back
    windows reach."""

    every: Every
    whole: bool
    counters: Counters
    progress: StreamProgress
    depth: Depth
    step: int

    @property
    def far(self) -> int:
        """How far back windows by time go; 0 if there are none."""
        return min(self.depth.time, FARTHEST)

    @property
    def oldest(self) -> int:
        """No window by time will see what is not newer than this, of the whole stream."""
        soonest, undecided = self.progress.top, int(self.counters.next[0])  # no tick to come is before soonest
        if self.far == 0 or undecided == NEVER:
            return NEVER if self.far == 0 else EARLIEST
        if self.every.by_time:
            at_tick = self.every.anchor == "tick"
            soonest = undecided * self.step if at_tick else max(soonest, (undecided - 1) * self.step)
        elif self.progress.kept:
            soonest = max(soonest, self.progress.closed + 1 if self.progress.closed > EARLIEST else EARLIEST)
        return max(EARLIEST, soonest - self.far)

    @property
    def needed_from(self) -> int:
        """No window by rows will see a row before this one of the whole stream, counted from the first."""
        rows = min(self.depth.rows, FARTHEST)
        if rows == 0:
            return NEVER
        if self.every.by_time:
            return int(self.counters.total[0]) - rows
        undecided = int(self.counters.next[0])
        return (0 if undecided == NEVER else undecided) * self.step - rows

    def is_seen(self, newest: np.ndarray) -> np.ndarray:
        """May a tick to come see the newest row of each key, which is of this time (EARLIEST: there is none)?"""
        if self.depth.rows:
            return newest > EARLIEST
        if self.whole:
            return newest > self.oldest
        stream = self.progress
        over = max(stream.closed, stream.top - 1 if stream.together and stream.top > EARLIEST else EARLIEST)
        as_old_as = EARLIEST if over == EARLIEST else over + 1  # an event to come may be
        soonest = np.full(newest.size, as_old_as)
        undecided = self.counters.next[: newest.size]
        some = np.flatnonzero(undecided != NEVER)
        if self.every.by_time and self.every.anchor == "tick":
            soonest[some] = undecided[some] * self.step
        seen = newest > np.where(soonest < EARLIEST + self.far, EARLIEST, soonest - self.far)
        if self.every.by_time:  # it may be the tuple that stands for a slot
            some = some[newest[some] > EARLIEST]
            seen[some] |= slots_of(newest[some], self.step) >= undecided[some]
        return seen
