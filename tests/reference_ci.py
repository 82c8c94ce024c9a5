"""CI-COUNT as the paper writes it (figure 7), on sorted containers: slow, small, the other side of differential tests.

Positions count a key's events from 1. TSTAMP[k, l] is the time of the event that is in level l and whose position is a
multiple of the level's size; SEARCHTREE[l] has the same times in order. With p > 1 (section 4.1.2) there are p levels
of every size; `size(l)` and the distances from the end that a level covers are the only things that change.
"""

from __future__ import annotations

from sortedcontainers import SortedSet


class ReferenceCount:
    def __init__(self, p: int = 1) -> None:
        self.p = p
        self.m: dict[int, int] = {}  # events per key
        self.tstamp: dict[tuple[int, int], int] = {}  # STATE 1-6
        self.searchtree: dict[int, SortedSet] = {}  # STATE 7-8: (time, key)

    def update(self, k: int, time: int) -> None:
        """UPDATE(a, time), generalised: all p levels of a size move together."""
        m = self.m[k] = self.m.get(k, 0) + 1
        p = self.p
        z = (m + p & -(m + p)).bit_length() - 1  # 2: trailing zeros of m + p
        for level in range(p * (z + 1) - 1, 0, -1):  # 3: for l = z downto 1
            self._store(k, level, self.tstamp.get((k, level - 1)))  # 4: TSTAMP[k, l] = TSTAMP[k, l - 1]
        self._store(k, 0, time)  # 5: TSTAMP[k, 0] = time

    def at_least(self, now: int, t: int, v: int) -> set[int]:
        """LOOKUP(now, t, v) for count >= v over now - t < ts <= now: times at or before now - t are out."""
        level = self._level(v)  # 1
        tree = self.searchtree.get(level, SortedSet())
        return {k for _, k in tree.irange((now - t, float("inf")), None)}  # 2-3

    def distances(self, level: int) -> tuple[int, int]:
        """How far from the end the events of a level are: 1 is the last one."""
        s, q = divmod(level, self.p)
        nearest = self.p * (2**s - 1) + q * 2**s + 1
        return nearest, nearest + 2**s - 1

    def _level(self, v: int) -> int:
        """The last level within the last v events (for p = 1 and v no power of two less one: floor(log2 v) - 1)."""
        level = 0
        while self.distances(level + 1)[1] <= v:
            level += 1
        return level

    def _store(self, k: int, level: int, time: int | None) -> None:
        tree = self.searchtree.setdefault(level, SortedSet())
        if (k, level) in self.tstamp:
            tree.discard((self.tstamp.pop((k, level)), k))
        if time is not None:
            self.tstamp[k, level] = time
            tree.add((time, k))

    def check(self, times: dict[int, list[int]]) -> None:
        """TSTAMP is what STATE says, from all times of all keys."""
        expected = {}
        for k, of_key in times.items():
            m, level = len(of_key), 0
            while self.distances(level)[0] <= m:
                near, far = self.distances(level)
                size = far - near + 1
                position = next(i for i in range(m - far + 1, m - near + 2) if i % size == 0)
                if position >= 1:
                    expected[k, level] = of_key[position - 1]
                level += 1
        assert expected == self.tstamp


class ReferenceSum(ReferenceCount):
    """CI-SUM, section 4.2: an element a is a copies of itself, here one by one."""

    def add(self, k: int, time: int, a: int) -> None:
        for _ in range(a):
            self.update(k, time)
