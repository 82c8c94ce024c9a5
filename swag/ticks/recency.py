"""Which keys a tick of the whole stream reports: those seen recently enough (kernels/ticks/recency.py)."""

from dataclasses import dataclass, field

import numpy as np

from kernels.operators.numbers import EARLIEST, LATEST
from kernels.ticks import recency
from swag.durable.state import State
from swag.ticks.counters import new_ids

ROOM = 1 << 16  # keys reported at once, at least


def _ends() -> np.ndarray:
    return np.zeros((1, 2), np.int64)


@dataclass(eq=False)
class Recency:
    """It owns a list of keys, the newest first (`links`), and of each key the time of its last row, and its rows."""

    links: np.ndarray = field(default_factory=_ends)
    latest: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    seen: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def bytes(self) -> int:
        return sum(each.nbytes for each in self.state()[1].values())

    def state(self) -> State:
        return {}, {"links": self.links, "latest": self.latest, "seen": self.seen}

    def restore(self, state: State) -> None:
        self.links, self.latest, self.seen = (state[1][name] for name in ("links", "latest", "seen"))

    def grow(self, keys: int) -> None:
        more = max(keys, 2 * self.latest.size) - self.latest.size
        if keys > self.latest.size:
            self.links = np.concatenate([self.links, np.full((more, 2), -1)])
            self.latest = np.concatenate([self.latest, np.full(more, EARLIEST)])
            self.seen = np.concatenate([self.seen, np.zeros(more, np.int64)])

    def renumber(self, kept: np.ndarray) -> None:
        """Key kept[i] is key i from now on."""
        self.grow(int(kept.max(initial=-1)) + 1)
        links = np.empty((kept.size + 1, 2), np.int64)
        recency.renumbered(self.links, new_ids(kept, self.latest.size), links)
        self.links, self.latest, self.seen = links, self.latest[kept], self.seen[kept]

    def reported(
        self, ts: np.ndarray, ids: np.ndarray, ends: np.ndarray, since: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Tick, key and the rows that the key has then: for every tick, the keys with a row newer than `since`."""
        at, found = np.zeros(2, np.int64), [np.empty((3, 0), np.int64)]
        keys = recency.RecentKeys(self.links, self.latest, self.seen)
        while at[recency.TICK] < ends.size:
            room = np.empty((3, max(ROOM, self.latest.size)), np.int64)
            n = recency.reported(ts, ids, ends, since, keys, at, room)
            found.append(room[:, :n])
        tick, key, rows = np.concatenate(found, axis=1)
        return tick, key, rows

    def note(self, ts: np.ndarray, ids: np.ndarray) -> None:
        """Rows, without a tick."""
        self.reported(ts, ids, np.array([ts.size]), np.array([LATEST]))
