"""FREQUENCY over a file of events in bounded memory: ticks of a chunk, as far as the chunk decides them.

By time, slots are counted from 0, wherever a chunk begins: the rows kept are those that the next undecided slot can
reach. By rows of the whole stream, a chunk begins at a multiple of the frequency, and its ticks are counted on from
there. What is counted per key, or by rows behind which windows of rows per key look, takes all of the file.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from swag.cli.stream import FileStream
from swag.evaluate import evaluate
from swag.query.query import Query
from swag.query.windows import Rows
from swag.stored.carried import first_needed
from swag.tables.columns import column, instants


@dataclass
class Ticking(FileStream):
    """Queries that share one `every`."""

    begins: int = 0  # how many events came before the rows at hand
    emitted: int = np.iinfo(np.int64).min  # the last tick that was

    def ticks(self, chunks: Iterator[pa.Table]) -> Iterator[pa.Table]:
        every = self.queries[0].every
        assert every is not None
        for chunk in chunks:
            last = self.check_order(chunk)
            assert self.clock is not None
            rows, step = self.carried.before(chunk), every.step(self.clock.unit)
            yield self._decided(rows, self._last_slot(step) if every.by_time else None, step)
            if every.by_time:  # everything in the next slot, and what windows reach from its beginning
                self._carry(rows, self._last_slot(step) * step)
            else:
                self._carry_whole_steps(rows, last, step)
        if self.carried.rows is not None and every.by_time:
            yield self._decided(self.carried.rows, None, 1)

    def _last_slot(self, step: int) -> int:
        """The last slot that no event can change any more: it ended before the newest one."""
        assert self.last is not None
        return (self.last - 1) // step

    def _decided(self, rows: pa.Table, upto: int | None, step: int) -> pa.Table:
        """The ticks after those that were emitted, up to one."""
        answers = evaluate(self.queries, rows, ts=self.ts, key=self.key)
        number = np.asarray(answers.column("tick"))
        by_rows = self.queries[0].every is not None and not self.queries[0].every.by_time
        number = number + self.begins // step if by_rows else number
        new = number > self.emitted if upto is None else (number > self.emitted) & (number <= upto)
        self.emitted = max(self.emitted, int(number[new].max(initial=self.emitted)) if upto is None else upto)
        return answers.set_column(0, "tick", pa.array(number)).filter(pa.array(new))

    def _carry_whole_steps(self, rows: pa.Table, now: int, step: int) -> None:
        """From a multiple of the frequency on: what windows reach, and the rows since the last tick."""
        when = instants(column(rows, self.ts, "ts is"), self.ts)
        first = int(first_needed(self.depth, when, np.array([0, when.size]), now)[0]) // step * step
        self.begins += first
        self.carried.keep(rows.slice(first).combine_chunks())


def counts_from_the_start(queries: list[Query], key: str | None) -> str:
    """Why ticks can not be told from a chunk alone; nothing if they can."""
    everies = {query.every for query in queries}
    if len(everies) != 1 or None in everies:
        return "its statements answer at different times"
    every: Any = everies.pop()
    if every.by_time:
        return ""
    if every.per_key:
        return "FREQUENCY counts from the first event of each key"
    from swag.query.lowering import simple_ones

    if key is not None and any(isinstance(query.window, Rows) for query in simple_ones(queries)):
        return "FREQUENCY counts all events, and windows the rows of each key"
    return ""
