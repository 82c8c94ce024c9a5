"""Through a file of events in bounded memory: chunk by chunk, each behind the rows that windows can still reach.

    chunk 1        |  halo |  chunk 2      |  halo |  chunk 3 …
    answered       |       |  answered     |       |

Events in order of ts are all this takes. The rows kept between two chunks are those of the longest window of time, and
of the longest window of rows per key.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from swag.errors import BadEvents
from swag.evaluate import evaluate
from swag.query.lowering import simple_ones
from swag.query.query import Query
from swag.query.windows import reach
from swag.stored.ordered_rows import as_clock
from swag.tables.columns import Clock, clock_of, column, instants
from swag.tables.keys import KeyTable


class Disorder(Exception):
    """The events are not in order of ts: chunks would not do."""


@dataclass
class FileStream:
    """Events of a file, chunk by chunk. It owns the rows that windows of later chunks can still reach.

    Asked of it: answers for a chunk, and whether chunks are in order (`check_order`).
    """

    queries: list[Query]
    ts: str
    key: str | None
    clock: Clock | None = None
    last: int | None = None
    seen: int = 0  # events, in chunks before this one

    def at_events(self, chunks: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """Every query at every event, a table for each chunk."""
        halo: pa.Table | None = None
        for chunk in chunks:
            self.check_order(chunk)
            rows = chunk if halo is None else pa.concat_tables([halo, chunk])
            answers = evaluate(self.queries, rows, ts=self.ts, key=self.key)
            yield answers.slice(rows.num_rows - chunk.num_rows)
            halo = self._reachable(rows)
            del answers, rows

    def at_requests(self, chunks: Iterator[pa.Table], requests: pa.Table) -> Iterator[pa.Table]:
        """Every query at every request; the requests come in order of ts, and are answered as events pass them."""
        done, halo = 0, None
        for chunk in chunks:
            last = self.check_order(chunk)
            assert self.clock is not None
            when = instants(as_clock(column(requests, self.ts, "requests are at"), self.clock, self.ts), self.ts)
            rows = chunk if halo is None else pa.concat_tables([halo, chunk])
            decided = int(np.searchsorted(when, last, side="left"))  # more events may come with the last ts
            if decided > done:
                yield self._answered(rows, requests.slice(done, decided - done))
                done = decided
            halo = self._reachable(rows)
        if halo is not None and done < requests.num_rows:
            yield self._answered(halo, requests.slice(done))

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

    def _reachable(self, rows: pa.Table) -> pa.Table:
        """The rows that a window of a later event or request may hold."""
        assert self.last is not None
        far, most = self._far()
        keep = instants(column(rows, self.ts, "ts is"), self.ts) > self.last - far
        if most:
            keep |= self._from_the_end(rows) < most
        return rows.filter(pa.array(keep)).combine_chunks()

    def _far(self) -> tuple[int, int]:
        """How far back windows reach, in time and in rows (of a key)."""
        assert self.clock is not None
        reaches = {reach(query.window, self.clock.unit) for query in simple_ones(self.queries)}
        by_time, by_rows = ([r.far for r in reaches if r.by_time is kind] for kind in (True, False))
        return max(by_time, default=0), max(by_rows, default=0)

    def _from_the_end(self, rows: pa.Table) -> np.ndarray:
        """How many rows of its key come after each row."""
        if self.key is None:
            return np.arange(rows.num_rows)[::-1]
        array = column(rows, self.key, "key is")
        ids = KeyTable(array.type).encode(array, self.key)
        order = np.argsort(ids, kind="stable")
        counts = np.bincount(ids)
        rank = np.arange(ids.size) - np.repeat(np.cumsum(counts) - counts, counts)
        after = np.empty(ids.size, np.int64)
        after[order] = np.repeat(counts, counts) - 1 - rank
        return after


def needs_all(queries: list[Any]) -> str:
    """Why these queries can not be answered chunk by chunk; nothing if they can."""
    return "a statement in FROM is answered first" if any(query.source is not None for query in queries) else ""
