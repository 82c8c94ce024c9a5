"""FREQUENCY over a file of events in bounded memory: the file is a stream, whose ticks are decided chunk by chunk."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swag.cli.stream import FileStream
from swag.evaluate import evaluate
from swag.query.groupings import By, grouping_of, settled
from swag.query.query import Query
from swag.tables.columns import as_table, column, instants
from swag.tables.key_columns import apart, joined, key_name
from swag.ticks.live_stream import LiveStream
from swag.ticks.schedule import slots_of


@dataclass
class Ticking(FileStream):
    """Queries that share one `every`. It owns, while it goes through a file, a stream of its events."""

    def ticks(self, chunks: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """What `evaluate` says of the whole file, a table for each chunk.

        The events of a chunk's last instant wait for the next one, as more may come: so answers at one instant are
        decided together, and come in the order of their keys.
        """
        stream, waiting = LiveStream(self.ts, key_name(self._by)), None
        stream.add([settled(query) for query in self.queries])
        for chunk in map(as_table, chunks):
            rows = chunk if waiting is None else pa.concat_tables([waiting, chunk])
            last = self.check_order(chunk)
            over = int(np.searchsorted(instants(column(rows, self.ts, "ts is"), self.ts), last, side="left"))
            waiting = rows.slice(over).combine_chunks()
            yield self._decided(stream, rows.slice(0, over), last - 1)
        if waiting is not None:
            yield self._decided(stream, waiting, self._end())

    @property
    def _by(self) -> By:
        """The grouping that all queries share."""
        return grouping_of(self.queries[0], self.key)

    def _end(self) -> int:
        """The end of the file decides the slot that the last event is in."""
        every = self.queries[0].every
        assert every is not None and self.last is not None and self.clock is not None
        step = every.step(self.clock.unit)
        return int(slots_of(np.array([self.last]), step)[0]) * step if every.by_time else self.last

    def _decided(self, stream: LiveStream, rows: pa.Table, closed: int) -> pa.Table:
        """The answers at the ticks that these events, and that none up to `closed` is to come, decide."""
        said = evaluate(self.queries, rows.slice(0, 0), ts=self.ts, key=self.key, progress=False)
        every = self.queries[0].every
        assert every is not None
        stream.take(joined(rows, self._by))
        for answers in stream.emission.decided(closed, kept=True):
            columns = [
                values if query.having is None else pc.if_else(pa.array(speaks), values, None)
                for query, values, speaks in zip(self.queries, answers.columns, answers.speaks, strict=True)
            ]
            front = apart(stream.emission.front(answers, every), self._by)
            said = pa.table([*front.columns, *columns], schema=said.schema)
        stream.emission.raise_error()
        return said


def needs_whole_file(queries: list[Query], key: By) -> str:
    """Why ticks can not be told chunk by chunk; nothing if they can."""
    if len({query.every for query in queries}) != 1:
        return "its statements answer at different times"
    return "its statements group differently" if len({grouping_of(query, key) for query in queries}) > 1 else ""
