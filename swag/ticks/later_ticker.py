"""Ticks whose windows hold rows that come after them: those that lie ahead, and those with peers.

      rows that wait    . . . . . . . . . . . .
      a tick                  T                          is picked when its slot is over, or its row has come
      its window          [---T------]                   and answered when the stream has passed the window's end

Rows wait for as long as a tick that is not decided may see them. Ticks are answered from these as over stored events.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.operators.numbers import EARLIEST
from swag.errors import BadQuery
from swag.query.lowering import components
from swag.query.query import Query
from swag.query.try_out import try_out
from swag.query.windows import Range, sees_later
from swag.tables.columns import Clock
from swag.tables.keys import KeyTable
from swag.tables.waiting import Waiting
from swag.ticks.lookback import ranked
from swag.ticks.schedule import FARTHEST, NEVER, Span, StreamProgress, TickAnswers, farthest_ahead, slots_of
from swag.ticks.stored_ticks import Stretch, jump
from swag.ticks.ticker import FEW_WAITING, Ticker


def waits_for_later(query: Query) -> bool:
    """Does any of its windows hold rows that come after a tick?"""
    assert query.every is not None
    at_slots = query.every.by_time and query.every.anchor == "tick"
    windows = [each.window for each in components(query)]
    return any(sees_later(window) and (not at_slots or str(window.until).startswith("-")) for window in windows)


@dataclass(eq=False)
class LaterTicker(Ticker):
    """As a Ticker, whose rows are all that it owns: nothing is looked up, so its lookback stays empty."""

    _clock: Clock | None = None

    def add(self, query: Query) -> None:
        """One more query whose windows see later rows; refused if it counts by partitions, or a window is no Range."""
        if self.partitions is not None or self.every.own:
            of = "all rows for one key" if self.partitions is None else f"by {', '.join(self.partitions.by)}"
            raise BadQuery(
                f'query "{query.title}": where windows lie ahead or see peers, an engine does not count {of}.',
                "sw.Every(…, per_key=True), or sw.evaluate over stored events",
            )
        for each in components(query):
            try_out(each.aggregate)
            if not isinstance(each.window, Range):
                raise BadQuery(
                    f'query "{query.title}": where windows lie ahead or see peers, an engine does not answer '
                    f"{each.window!r} at ticks.",
                    "sw.Range(…), or sw.evaluate over stored events",
                )
        self.queries[query.label] = query
        self._look_again()

    def remove(self, name: str) -> None:
        del self.queries[name]
        self._look_again()

    def check_functions(self, table: Any) -> None:
        """What a user's function raises of rows is said when a tick sees them."""

    def take(self, table: Any, ts: np.ndarray, ids: np.ndarray, segments: int, clock: Clock) -> None:
        """Keep rows that were applied; a new segment begins with the first slot whose window sees ahead to its row."""
        before = self.counters.next.copy()
        super().take(table, ts, ids, segments, clock)
        if not self.every.by_time or self.every.anchor == "tuple" or not ts.size:
            return
        segment, first = (np.array([0]), np.array([0])) if self.whole else np.unique(ids, return_index=True)
        new = (segment >= before.size) | (np.append(before, NEVER)[np.minimum(segment, before.size)] == NEVER)
        seen = shifted(ts[first[new]], self._ahead(clock))  # a slot before it may see the first row
        self.counters.next[segment[new]] = slots_of(np.maximum(seen, -FARTHEST), self.every.step(clock.unit))

    def _ahead(self, clock: Clock) -> int:
        return max(0, farthest_ahead(self._back(clock).reaches))

    def decide(self, progress: StreamProgress, clock: Clock, keys: KeyTable | None) -> TickAnswers | None:
        self._clock = clock
        return super().decide(progress, clock, keys)

    def _last(self, progress: StreamProgress, step: int) -> tuple[np.ndarray, np.ndarray]:
        """All segments, and the last tick of each whose windows the stream has passed."""
        self._touched = []
        upto, count = self._passed(progress), self.counters.next.size
        if self.every.by_time:
            return np.arange(count), upto // step
        _, ts, ids = self.pending.rows
        own = np.zeros(ts.size, np.int64) if self.whole else ids
        rows = self.counters.gone + np.bincount(own[ts <= upto[own]], minlength=count)
        return np.arange(count), rows // step

    def _passed(self, progress: StreamProgress) -> np.ndarray:
        """Per segment, the time up to which windows of ticks have ended."""
        assert self._clock is not None
        return shifted(progress.done(self.whole)[: self.counters.next.size], self._ahead(self._clock))

    def _answered(
        self, segments: np.ndarray, bounds: np.ndarray, clock: Clock, keys: KeyTable | None
    ) -> TickAnswers | None:
        """The answers of ticks whose windows are over, made as over stored events from the rows that wait."""
        table, ts, ids = self.pending.rows
        if not ts.size:
            return None
        given = None if keys is None else ranked(ids, keys)
        span = Span(bounds, self.counters.gone[segments])
        if not self.whole:
            assert given is not None
            span = self._by_rank(segments, bounds, ids, given[0], len(given[1]))
        answers = jump(list(self.queries.values()), self.every, Stretch(table, clock, ts, self.key, given), span)
        self.ticks += answers.number.size
        return answers if answers.number.size else None

    def _by_rank(self, segments: np.ndarray, bounds: np.ndarray, ids: np.ndarray, rank: np.ndarray, count: int) -> Span:
        """The ticks to answer of keys that have rows, in order of these."""
        own = np.zeros(count, np.int64)
        own[rank] = ids
        place = np.full(self.counters.next.size, -1)
        place[segments] = np.arange(segments.size)
        due = place[own]
        nothing = np.column_stack([np.zeros(count, np.int64), np.full(count, -1)])
        return Span(np.where((due >= 0)[:, None], bounds[due], nothing), self.counters.gone[own])

    def _let_go(self, progress: StreamProgress, clock: Clock, keys: KeyTable | None) -> None:
        """Rows that no undecided tick can see, where they are most of those that wait."""
        _, ts, ids = self.pending.rows
        self._clock = clock
        soonest, following = self._passed(progress), self.counters.next
        if self.every.by_time:
            soonest = np.where(following == NEVER, EARLIEST, (following - 1) * self.every.step(clock.unit))
        oldest = shifted(soonest, min(self._back(clock).depth.time, FARTHEST))
        own = np.zeros(ts.size, np.int64) if self.whole else ids
        gone = ts <= oldest[own]
        if 2 * np.count_nonzero(gone) > max(ts.size, FEW_WAITING):
            self.counters.gone += np.bincount(own[gone], minlength=self.counters.gone.size)
            some = self.pending.rows.some(np.flatnonzero(~gone))
            self.pending = Waiting()
            self.pending.add(*some)

    def needs(self, count: int) -> np.ndarray:
        needed = np.zeros(count, bool)
        needed[self.pending.rows.ids] = True
        if not self.whole and not self.every.by_time:  # ticks are counted, and numbered
            needed[np.flatnonzero(self.counters.total[:count])] = True
        return needed


def shifted(times: np.ndarray, back: int) -> np.ndarray:
    """Times so far back, no further than int64 goes."""
    return np.where(times < EARLIEST + back, EARLIEST, times - min(back, int(NEVER)))
