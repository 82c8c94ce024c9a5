"""How far the ticks of a stream are: counters per segment, and the rows that wait, laid out by segment.

A segment is a sequence that is counted by itself: the stream, or the rows of one key.
"""

from dataclasses import dataclass, field

import numpy as np

from kernels.operators.numbers import EARLIEST
from kernels.ticks import schedule as kernels
from swag.durable.state import State
from swag.live.arena import group
from swag.tables.waiting import Waiting
from swag.ticks.schedule import NEVER


@dataclass(eq=False)
class StreamProgress:
    """How far a stream is: the latest event of each key and of all, and the time up to which slots are over.

    closed: as Time has it. kept: what is closed never comes. together: nothing older than the latest event of any key
    comes.
    """

    latest: np.ndarray
    top: int
    closed: int
    kept: bool
    together: bool = False

    def done(self, whole: bool) -> np.ndarray:
        """Per segment, the time up to which everything has come. Of an event's own time more may follow."""
        if whole:
            return np.array([self.done_of_all])
        seen = np.maximum(self.top if self.together else self.latest, EARLIEST + 1) - 1
        return np.maximum(seen, np.full(self.latest.size, self.closed))

    @property
    def done_of_all(self) -> int:
        """The same where all keys are in order together."""
        return max(self.closed, self.top - 1 if self.top > EARLIEST else EARLIEST)


@dataclass(eq=False)
class Counters:
    """Per segment: the first tick not decided (NEVER: no row yet), the rows it has had, how many of them wait no
    longer, and the time of the last of those (EARLIEST: none)."""

    next: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    total: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    gone: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    newest: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def bytes(self) -> int:
        return sum(each.nbytes for each in self.state()[1].values())

    def state(self) -> State:
        return {}, {"next": self.next, "total": self.total, "gone": self.gone, "newest": self.newest}

    def restore(self, state: State) -> None:
        arrays = state[1]
        self.next, self.total, self.gone, self.newest = (arrays[n] for n in ("next", "total", "gone", "newest"))

    def grow(self, segments: int, total: np.ndarray | None = None) -> None:
        """Room for more segments. total: how many rows they have had, of which none is here."""
        more = segments - self.next.size
        if more > 0:
            before = np.zeros(more, np.int64) if total is None else total[self.next.size : segments]
            self.next = np.concatenate([self.next, np.full(more, NEVER)])
            self.gone, self.total = np.concatenate([self.gone, before]), np.concatenate([self.total, before])
            self.newest = np.concatenate([self.newest, np.full(more, EARLIEST)])

    def renumber(self, kept: np.ndarray) -> None:
        """Segment kept[i] is segment i from now on."""
        self.grow(int(kept.max(initial=-1)) + 1)
        self.next, self.total = self.next[kept], self.total[kept]
        self.gone, self.newest = self.gone[kept], self.newest[kept]


def new_ids(kept: np.ndarray, count: int) -> np.ndarray:
    """The new id of each of `count` old ones, where key kept[i] is key i from now on; -1: none."""
    new = np.full(max(count, int(kept.max(initial=-1)) + 1), -1)
    new[kept] = np.arange(kept.size)
    return new


@dataclass(eq=False)
class SegmentLayout:
    """The rows that wait, segment by segment, each behind the last one that waits no longer.

    segments: their ids. rows: the place of each among those that wait (-1: it does not).
    """

    segments: np.ndarray
    ts: np.ndarray
    rows: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, segments: np.ndarray, pending: Waiting, newest: np.ndarray, whole: bool) -> "SegmentLayout":
        _, waiting, ids = pending.rows
        ids = np.zeros(waiting.size, np.int64) if whole else ids
        batch = group(ids, np.zeros(newest.size, np.int64))
        runs = np.empty(newest.size, np.int64)
        runs[segments] = -1
        runs[batch.keys] = np.arange(batch.keys.size)
        ts, rows = np.empty((2, waiting.size + segments.size), np.int64)
        starts = np.empty(segments.size + 1, np.int64)
        n = kernels.lay_out(waiting, batch, runs[segments], newest[segments], ts, rows, starts)
        return cls(segments, ts[:n], rows[:n], starts)
