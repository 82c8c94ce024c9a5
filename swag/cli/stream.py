"""Through a file of events in bounded memory: chunk by chunk, each behind the rows that windows can still reach.

    chunk 1        |  halo |  chunk 2      |  halo |  chunk 3 …
    answered       |       |  answered     |       |

Events in order of ts are all this takes. The rows kept between two chunks are those of the longest window of time, and
of the longest window of rows per key, of every grouping (swag/stored/carried.py).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from swag.errors import BadEvents
from swag.evaluate import evaluate
from swag.query.groupings import By, by_grouping
from swag.query.lowering import components, depth
from swag.query.query import Query
from swag.query.windows import Depth, Unbounded, sees_later
from swag.stored.carried import CarriedRows, first_needed
from swag.stored.ordered_rows import Stored, as_clock
from swag.tables.columns import Clock, clock_of, column, instants


class Disorder(Exception):
    """The events are not in order of ts: chunks would not do."""


@dataclass
class FileStream:
    """Events of a file, chunk by chunk. It owns the rows that windows of later chunks can still reach.

    Asked of it: answers for a chunk, and whether chunks are in order (`check_order`).
    """

    queries: list[Query]
    ts: str
    key: By
    clock: Clock | None = None
    last: int | None = None
    seen: int = 0  # events, in chunks before this one
    carried: CarriedRows = field(default_factory=CarriedRows)

    def at_events(self, chunks: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """Every query at every event, a table for each chunk."""
        for chunk in chunks:
            last = self.check_order(chunk)
            rows = self.carried.before(chunk)
            answers = evaluate(self.queries, rows, ts=self.ts, key=self.key)
            yield answers.slice(self.carried.count)
            self._carry(rows, last)
            del answers, rows

    def at_requests(self, chunks: Iterator[pa.Table], requests: pa.Table) -> Iterator[pa.Table]:
        """Every query at every request; the requests come in order of ts, and are answered as events pass them."""
        done = 0
        for chunk in chunks:
            last = self.check_order(chunk)
            assert self.clock is not None
            when = instants(as_clock(column(requests, self.ts, "requests are at"), self.clock, self.ts), self.ts)
            rows = self.carried.before(chunk)
            decided = int(np.searchsorted(when, last, side="left"))  # more events may come with the last ts
            if decided > done:
                yield self._answered(rows, requests.slice(done, decided - done))
                done = decided
            self._carry(rows, last)
        if self.carried.rows is not None and done < requests.num_rows:
            yield self._answered(self.carried.rows, requests.slice(done))

    def _answered(self, rows: pa.Table, requests: pa.Table) -> pa.Table:
        return evaluate(self.queries, rows, at=requests, ts=self.ts, key=self.key)

    def check_order(self, chunk: pa.Table) -> int:
        """The ts of the last event; raises if any comes before the one before it."""
        array = column(chunk, self.ts, "ts is")
        self.clock = self.clock or clock_of(array, self.ts)
        try:
            when = instants(array, self.ts)
        except BadEvents as why:  # which counts the rows of a chunk
            raise BadEvents(f"after {self.seen:,} rows, {why.message}", why.hint) if self.seen else why from None
        self.seen += chunk.num_rows
        if (self.last is not None and when[0] < self.last) or not bool((when[1:] >= when[:-1]).all()):
            raise Disorder
        self.last = int(when[-1])
        return self.last

    def _carry(self, rows: pa.Table, now: int) -> None:
        """Keep the rows that a window may hold which ends at `now`, or later."""
        assert self.clock is not None
        needed = np.zeros(rows.num_rows, bool)
        for by, some in by_grouping(self.queries, self.key).items():
            needed |= self._needed(rows, by, depth(some, self.clock.unit), now)
        self.carried.keep(rows.filter(pa.array(needed)).combine_chunks())

    def _needed(self, rows: pa.Table, by: By, far: Depth, now: int) -> np.ndarray:
        by = by if far.rows else ()  # as they lie, if time alone decides
        stored = Stored.of(rows, self.ts, by)
        first = first_needed(far, stored.ts, stored.starts, now)
        needed = np.empty(rows.num_rows, bool)
        place = slice(None) if stored.order is None else stored.order
        needed[place] = np.arange(rows.num_rows) >= np.repeat(first, np.diff(stored.starts))
        return needed


def needs_all(queries: list[Any]) -> str:
    """Why these queries can not be answered chunk by chunk; nothing if they can."""
    if any(query.source is not None for query in queries):
        return "a statement in FROM is answered first"
    windows = {leaf.window for query in queries if isinstance(query, Query) for leaf in components(query)}
    if any(map(sees_later, windows)):
        return "windows that lie ahead, or see peers, hold events that come later"
    return "an unbounded window holds all events before" if any(isinstance(w, Unbounded) for w in windows) else ""
