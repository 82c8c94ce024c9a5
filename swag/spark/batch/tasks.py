"""What runs in Spark's Python workers: sorted rows in, answers out, block after block, each with the halo of the last.

A block is some hundred thousand rows, substreams of all sizes among them: one call of the kernels for all. Of a
substream that goes on in the next block, the events that its longest window can still see are carried over. So memory
is that of a block and a window, whatever the partition holds.

mapInArrow, not mapInPandas: with 100 answers per row, the way through pandas takes half as long again.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from swag.errors import BadEvents
from swag.query.lowering import components
from swag.query.query import Query
from swag.spark import process
from swag.spark.batch.cuts import Halo
from swag.spark.batch.layout import Columns
from swag.spark.batch.ordered_input import Promise, in_order
from swag.spark.key_runs import refuse_nulls, run_starts
from swag.spark.places import free
from swag.stored.carried import CarriedRows, first_needed
from swag.stored.evaluation import Evaluation, with_derived
from swag.stored.ordered_rows import Requests, Selection, Stored
from swag.tables.columns import Clock, one_chunk

VALUES_TO_SPARK = 1 << 21  # values that are handed to Spark at once: 16 MB
HELD = 1 << 25  # values that are there at a time: 256 MB, or …
SHARE = 8  # … those of one row in so many: to answer some, all rows that their windows see are gone over again


@dataclass(frozen=True)
class WindowTask:
    """What a worker is told. names: the user's, of k0, k1 …; read: those of e0, e1 …; out: the answers' schema.

    front: the columns of rows that come before the answers (None: as users want them). passes_on: events come out, too,
    without answers: for the next grouping.
    """

    queries: tuple[Query, ...]
    columns: Columns
    names: dict[str, str]
    ts: str
    read: tuple[str, ...]
    clock: Clock
    halo: Halo
    out: pa.Schema
    block_rows: int
    promise: Promise | None = None  # that rows are in order, if Spark has not put them so
    front: tuple[str, ...] | None = None
    passes_on: bool = False

    @property
    def at_requests(self) -> bool:
        return self.columns.asks

    @property
    def width(self) -> int:
        """How many columns there are at a time, those that others are computed from included."""
        return len(self.out) + sum(len(components(query)) for query in self.queries if not query.is_simple)

    def prepared(self, rows: pa.Table) -> pa.Table:
        """Rows with their keys, of which none is null, nor any time."""
        rows = rows if self.columns.cut is None else self.columns.cut.with_keys(rows)
        return refuse_nulls(rows, self.names, self.ts)


def answers(task: WindowTask, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of one partition, in order, answered."""
    process.begin()
    if task.promise is not None:
        batches = in_order(task.promise, batches)
    carried = CarriedRows()
    for table, _ in carried.blocks(batches, task.block_rows, task.prepared):
        block, old = SortedBlock.of(task, table, carried.count), carried.count
        carried.keep(block.halo())
        yield from block.answers()
        if task.passes_on:
            yield from block.events(old)


@dataclass(eq=False)
class SortedBlock:
    """Rows in order; starts: of each substream, among all rows; asks: which of them are answered."""

    task: WindowTask
    table: pa.Table
    t: np.ndarray
    starts: np.ndarray
    asks: np.ndarray

    @classmethod
    def of(cls, task: WindowTask, table: pa.Table, carried: int) -> "SortedBlock":
        """carried: how many rows are the halo of the block before."""
        t = np.asarray(one_chunk(table.column("t")))
        starts = run_starts([one_chunk(table.column(name)) for name in task.columns.by], t.size)
        if task.at_requests:  # of which the halo holds none
            asks = np.asarray(one_chunk(table.column("asks")))
        else:
            cut, asks = task.columns.cut, np.ones(t.size, bool)
            if cut is not None:
                asks = cut.asks(np.asarray(one_chunk(table.column("piece"))), t)
            asks[:carried] = False
        block = cls(task, table, t, starts, asks)
        block._check_halos()
        return block

    def _check_halos(self) -> None:
        """A piece holds as many events before its first row that asks as the longest window by rows, or all there are.

        They were counted when the job was planned. Where they are fewer now, others lie further back, unseen.
        """
        cut, rows, wanted = self.task.columns.cut, np.flatnonzero(self.asks), self.task.halo.rows
        if cut is None or not wanted or not rows.size:
            return
        first, of = self._runs(rows)[:-1].T
        events = ~self.asks if self.task.at_requests else np.ones(self.t.size, bool)
        before = np.concatenate([[0], np.cumsum(events)])
        seen = before[rows[first]] - before[self.starts[of]]
        short = (seen < wanted) & cut.may_lack(np.asarray(one_chunk(self.table.column("piece")))[rows[first]])
        if short.any():
            raise self._changed(int(rows[first[short]][0]), int(seen[short][0]))

    def _changed(self, at: int, seen: int) -> BadEvents:
        key = [f"{name}={self.table.column(ours)[at].as_py()!r}" for ours, name in self.task.names.items()]
        when = self.task.clock.show(int(self.t[at]))
        return BadEvents(
            f"the events have changed since the job was planned: {', '.join(key) or 'the stream'} has {seen} of the "
            f"{self.task.halo.rows} events that were counted before {when}.",
            "events.cache(), or Layout(sample=0), which looks at nothing beforehand",
        )

    def halo(self) -> pa.Table:
        """The events of the last substream that a window in the next block may see."""
        first = int(self.starts[-1])
        table, t = self.table.slice(first), self.t[first:]
        if self.task.at_requests:
            table = table.filter(pa.array(~self.asks[first:]))
            t = t[~self.asks[first:]]
        return table.slice(int(first_needed(self.task.halo, t, np.array([0, t.size]), int(self.t[-1]))[0]))

    def answers(self) -> Iterator[pa.RecordBatch]:
        """Some rows at a time, where there are many, or many columns."""
        rows = np.flatnonzero(self.asks)
        if not rows.size:
            return
        stored, end = self._at_requests(rows) if self.task.at_requests else (self._stored(self.table, self.t), rows + 1)
        some = max(1, HELD // self.task.width, self.t.size // SHARE)
        selections: dict[Any, Selection] = {}
        for first in range(0, rows.size, some):
            mine = slice(first, first + some)
            if not self.task.at_requests and self.t.size == rows.size <= some:
                requests = Requests.at_events(stored)
            else:
                requests = Requests(self.t[rows[mine]], end[mine], self._runs(rows[mine]), None, False)
            yield from self._answered(Evaluation(stored, requests, selections=selections), rows[mine])

    def events(self, carried: int) -> Iterator[pa.RecordBatch]:
        """Those that are here for the first time, and no halo. carried: how many rows are the block's before."""
        own, cut = ~self.asks, self.task.columns.cut
        own[:carried] = False
        if cut is not None:
            own &= cut.asks(np.asarray(one_chunk(self.table.column("piece"))), self.t)
        rows = np.flatnonzero(own)
        if rows.size:
            front = self._front(rows)
            nothing = [pa.nulls(rows.size, want.type) for want in list(self.task.out)[len(front) :]]
            yield from self._handed_out([*front, *nothing])

    def _answered(self, evaluation: Evaluation, rows: np.ndarray) -> Iterator[pa.RecordBatch]:
        columns = [evaluation.add(query) for query in self.task.queries]
        evaluation.run()
        yield from self._handed_out([*self._front(rows), *(column.array(evaluation.stored) for column in columns)])

    def _handed_out(self, arrays: list[Any]) -> Iterator[pa.RecordBatch]:
        arrays = [of_type(array, want.type) for array, want in zip(arrays, self.task.out, strict=True)]
        table = pa.Table.from_arrays(arrays, schema=self.task.out)
        yield from table.to_batches(max_chunksize=max(1, VALUES_TO_SPARK // len(arrays)))

    def _at_requests(self, rows: np.ndarray) -> tuple[Stored, np.ndarray]:
        """Events before a request in the order of rows are those it sees."""
        events, before = ~self.asks, np.concatenate([[0], np.cumsum(~self.asks)])
        return self._stored(self.table.filter(pa.array(events)), self.t[events], before), before[rows]

    def _stored(self, table: pa.Table, t: np.ndarray, before: np.ndarray | None = None) -> Stored:
        """Events under the names that queries know; t is there so that there is a column at all."""
        starts = np.append(self.starts, self.t.size)
        columns = [one_chunk(table.column(name)) for name in (*self._named("e"), "t")]
        events = pa.Table.from_arrays(columns, names=[*self.task.read, free(" t", self.task.read)])
        for query in self.task.queries:
            events = with_derived(events, query) if query.reads_sql else events
        return Stored(events, self.task.clock, t, starts if before is None else before[starts], None, None)

    def _runs(self, rows: np.ndarray) -> np.ndarray:
        """Runs of asking rows: where each substream's begin, and which substream that is."""
        ends = np.searchsorted(rows, np.append(self.starts, self.t.size))
        some = np.flatnonzero(np.diff(ends))
        return np.column_stack([np.append(ends[some], rows.size), np.append(some, -1)])

    def _named(self, letter: str) -> list[str]:
        return [name for name in self.task.columns.others if name.startswith(letter)]

    def _front(self, rows: np.ndarray) -> list[pa.ChunkedArray]:
        """The columns before the answers."""
        front: Sequence[str] = self._named("r") if self.task.at_requests else [*self.task.columns.keys, "t"]
        table = self.table.select(list(front if self.task.front is None else self.task.front))
        if rows[-1] - rows[0] == rows.size - 1:
            return list(table.slice(rows[0], rows.size).columns)
        return list(table.take(pa.array(rows)).columns)


def of_type(array: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """Times come as int64, and take the type of ts without being copied."""
    if array.type == kind:
        return array
    if pa.types.is_date32(kind) and pa.types.is_int64(array.type):
        array = array.cast(pa.int32())
    return array.cast(kind)
