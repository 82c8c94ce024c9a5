"""Queries that came while events flowed: which of these do not count for them, and since when answers are complete."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from kernels.operators.numbers import EARLIEST, LATEST
from swag.durable.state import State
from swag.live import window_edges
from swag.live.store import Store
from swag.query.query import Query
from swag.query.windows import Rows, whole_from


class LateQueries:
    """It owns what is known of them, by name. Asked of it: how many events do not count for a query (`since`), and the
    time since which its windows hold all that they should (`complete_since`)."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._since: dict[str, int] = {}  # the number of events that do not count, where there are any
        self._counts: Counter[int] = Counter()  # how many queries have each
        self._kept_since: dict[str, int] = {}  # the same as a time: everything after it counts
        self._complete: dict[str, int] = {}  # of these, windows by rows that have been filled since: when
        self._unread: set[str] = set()  # of these, queries whose columns nobody had read of events that waited then
        self._apart: set[str] = set()  # those whose filtered rows lack columns that others have in their space

    @property
    def beginnings(self) -> set[int]:
        """From which events on there are rows that were kept for some query."""
        return {0, *self._counts}

    def since(self, name: str) -> int:
        return self._since.get(name, 0)

    def missing(self, since: int) -> int:
        """The time up to which nothing is known to who starts with an event: that of those who first did so."""
        if since == 0:
            return EARLIEST
        before = (self._kept_since[name] for name, own in self._since.items() if own == since)
        return min(before, default=self._store.now)

    def is_apart(self, name: str) -> bool:
        return name in self._apart

    def set_apart(self, name: str) -> None:
        """Its filtered rows lie in spaces of their own."""
        self._apart.add(name)

    def add(self, name: str, since: int, missing: int, unread: int = EARLIEST) -> None:
        """The events before number `since` do not count. missing: nothing up to this time is known; unread: nor of
        events that waited, up to this one."""
        if since:
            self._since[name] = since
            self._counts[since] += 1
        if max(missing, unread) > EARLIEST:
            self._kept_since[name] = max(missing, unread)
        if unread > EARLIEST:
            self._unread.add(name)

    def remove(self, name: str) -> None:
        self._counts -= Counter([self._since[name]] if name in self._since else [])
        for known in (self._since, self._kept_since, self._complete):
            known.pop(name, None)
        self._unread.discard(name)
        self._apart.discard(name)

    def complete_since(self, queries: Iterable[Query]) -> dict[str, Any]:
        """Per query: None if complete from the first event; else the time since which its window is all kept.

        Of a window by rows that is not complete yet nobody knows when it will be: later than now, for certain.
        """
        clock = self._store.clock
        found: dict[str, Any] = {}
        for query in queries:
            start = self._kept_since.get(query.label)
            if start is not None and clock is not None:
                by_rows = isinstance(query.window, Rows)
                start = self._filled(query) if by_rows else whole_from(query.window, start, clock)
            found[query.label] = None if start is None or clock is None else clock.value(start)
        return found

    def _filled(self, query: Query) -> int:
        """The time at which a window by rows was first seen to be complete; if it is not, the next instant."""
        if query.label not in self._complete:
            now, start = self._store.now, self._kept_since[query.label]
            none_before = query.label in self._unread or self.since(query.label) > 0
            if not window_edges.has_all_rows(self._store, query.window.n, start, none_before):
                return min(now + 1, int(LATEST))
            self._complete[query.label] = now
        return self._complete[query.label]

    def state(self) -> State:
        known = {"since": self._since, "kept_since": self._kept_since, "complete": self._complete}
        return known | {"unread": sorted(self._unread), "apart": sorted(self._apart)}, {}

    def restore(self, state: State) -> None:
        header = state[0]
        self._since, self._kept_since, self._complete = header["since"], header["kept_since"], header["complete"]
        self._counts, self._unread = Counter(self._since.values()), set(header["unread"])
        self._apart = set(header.get("apart", []))
