"""Frames of a substream that is cut in time: segments of each piece, found apart; then joined where the cuts are.

      piece 0                    piece 1                  threshold > 5, of at least 3 rows
    |  gap   run   gap   RUN  |  RUN   gap   run  |       upper case: segments that touch a cut
       .     frame? .    ?       ?     .     frame?       a run inside a piece is a frame or it is not; at a cut, wait
             [.....]     [..........]        [...]        runs on both sides of a cut are one

The segments of a piece hold each of its events once: runs for which the predicate holds and gaps between them, or runs
of one cell or value. Whatever lies inside a piece is settled by its own task (`segments`). A second pass (`joined`) has
a few rows per piece to put together, and numbers the frames.

Frames whose spec does not cut (frames/specs/spec.py), delta and aggregate among them, and all that are split by a
greatest length, are not found so: where one begins depends on where the last has ended, and so on to the first event. A
piece read from its own start need never come upon the frames of the whole.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from frames.scans.scan import allowed
from frames.spark.batch.tasks import FrameBlock, FrameTask, ScannedFrames, blocks, scans
from swag.spark.batch.layout import WHOLE
from swag.spark.key_runs import differs
from swag.tables.columns import instants, one_chunk

GAP, RUN, FRAME = range(3)  # a run may yet be either
FIRST_SEGMENT, LAST_SEGMENT = 1, 2  # segments that the piece's first event is in, or its last
NUMBERS = ("n", "edge", "kind", "t", "b", "skip", "rows")  # columns of a segment, between those of its piece and cells


@dataclass(frozen=True)
class Rule:
    """What makes a run a frame, and whether all others are reported; a spec that leaves none between its frames says
    yes."""

    rows: int
    duration: int
    gaps: bool

    @classmethod
    def of(cls, task: FrameTask) -> "Rule":
        assert task.spec is not None
        lengths = allowed(task.spec, task.clock)
        leaves_none = "kind" not in task.spec.segments().reported and lengths.min_rows == 1 and not lengths.min_span
        return cls(lengths.min_rows, int(lengths.min_span), leaves_none or "kind" in task.spec.reported)


@dataclass(frozen=True, eq=False)
class Segments:
    """Some segments, in order. of: their substream, by number; at: where else something is known of them."""

    of: np.ndarray
    at: np.ndarray
    edge: np.ndarray
    kind: np.ndarray
    start: np.ndarray
    end: np.ndarray
    rows: np.ndarray

    def some(self, which: np.ndarray) -> "Segments":
        return Segments(*(getattr(self, name)[which] for name in self.__dataclass_fields__))

    def merged(self, begins: np.ndarray) -> "Segments":
        """Segments that do not begin go on where the one before them ends."""
        if begins.all():
            return self
        first = np.flatnonzero(begins)
        last = np.append(first[1:], begins.size) - 1
        edge = (self.edge[first] & FIRST_SEGMENT) | (self.edge[last] & LAST_SEGMENT)
        return replace(self.some(first), edge=edge, end=self.end[last], rows=np.add.reduceat(self.rows, first))

    def settled(self, rule: Rule) -> "Segments":
        """Runs that touch no cut become frames, or part of the gap around them."""
        span = (self.end - self.start).view(np.uint64)  # from the least to the largest it is more than int64 holds
        enough = (self.rows >= rule.rows) & (span >= np.uint64(rule.duration))
        sure = (self.kind == RUN) & (self.edge == 0)
        mine = replace(self, kind=np.where(sure, np.where(enough, FRAME, GAP), self.kind))
        gap = mine.kind == GAP
        if not rule.gaps:
            return mine.some(~gap | (mine.edge != 0))
        begins = np.ones(gap.size, bool)
        begins[1:] = ~(gap[1:] & gap[:-1]) | (mine.of[1:] != mine.of[:-1])
        return mine.merged(begins)


def segments(task: FrameTask, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The first pass: the segments of some pieces, settled as far as a piece can tell."""
    assert task.spec is not None
    rule = Rule.of(task)
    for found in scans(replace(task, spec=task.spec.segments()), batches):
        cut = np.asarray(one_chunk(found.substreams.column("piece"))) != WHOLE
        edge = np.where(cut, (found.numbers == 0) * FIRST_SEGMENT + found.last * LAST_SEGMENT, 0)
        start, end = (instants(found.frames.column(name), name) for name in ("start", "end"))
        kind, cells = np.full(start.size, FRAME if rule.gaps else RUN), found.frames.column_names[3:]
        if "kind" in cells:
            kind = np.where(np.asarray(found.frames.column("kind")) == "gap", GAP, RUN)
            cells.remove("kind")
        rows = np.asarray(found.frames.column("rows"))
        all_ = Segments(found.ids, np.arange(start.size), edge, kind, start, end, rows)
        some = all_.settled(rule)
        yield from task.output(_columns(some, found, found.frames.select(cells)))


def _columns(some: Segments, found: ScannedFrames, cells: pa.Table) -> list[Any]:
    at = pa.array(some.at)
    own = [found.numbers[some.at], some.edge, some.kind, some.start, some.end, found.skips[some.at], some.rows]
    return [*found.substreams.take(at).columns, *map(pa.array, own), *cells.take(at).columns]


def joined(task: FrameTask, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The second pass: the segments of some keys, in order, as numbered frames."""
    joint = Joint(task, Rule.of(task))
    for block, over in blocks(task, batches, lambda _: joint.open):
        yield from joint.frames(block, over)


@dataclass(eq=False)
class Joint:
    """Where pieces meet. Owns the segments that wait for what comes after them, and how many frames their key has had.

    It is told of every block of segments, and gives the frames that are settled by it.
    """

    task: FrameTask
    rule: Rule
    open: pa.Table = field(default_factory=lambda: pa.table({}))
    _count: int = 0

    def frames(self, block: FrameBlock, over: bool) -> Iterator[pa.RecordBatch]:
        """The frames that a block of segments settles, numbered on for each key; what is at its end may wait."""
        some = self._together(block, over)
        waits = np.zeros(some.of.size, bool)
        if not over:  # a gap, and a run that may yet be part of it
            waits[-2:] = some.of[-2:] == block.starts.size - 1
            self._keep(block, some.some(waits))
        found = some.some(~waits & ((some.kind == FRAME) | (self.rule.gaps & (some.kind == GAP))))
        numbers = np.arange(found.of.size) - np.searchsorted(found.of, found.of)
        numbers[found.of == 0] += self._count
        last = int((found.of == block.starts.size - 1).sum())
        self._count = last + (self._count if block.starts.size == 1 else 0)
        kinds = [pa.array(["gap", "run", "frame"]).take(pa.array(found.kind))] if self._with_kind else []
        keys = block.table.select(list(self.task.names)).take(pa.array(block.starts[found.of]))
        cells = block.table.select(self._cells(block)).take(pa.array(found.at))
        numbered = [pa.array(each) for each in (found.start, found.end, found.rows)]
        skips = [block.table.column("skip").take(pa.array(found.at))] if self.task.skips else []
        yield from self.task.output([pa.array(numbers), *keys.columns, *numbered, *kinds, *cells.columns, *skips])

    def _together(self, block: FrameBlock, over: bool) -> Segments:
        """The segments of a block, joined where a cut went through a run or a cell, and settled but for the last."""
        edge, kind = block.numbers("edge"), block.numbers("kind")
        begins = np.ones(edge.size, bool)
        begins[1:] = ((edge[:-1] & LAST_SEGMENT) == 0) | ((edge[1:] & FIRST_SEGMENT) == 0) | (kind[1:] != kind[:-1])
        for name in self._cells(block):
            begins[1:] |= differs(one_chunk(block.table.column(name)))
        begins[block.starts] = True
        each = Segments(block.ids, np.arange(edge.size), edge, kind, block.t, block.numbers("b"), block.numbers("rows"))
        some = each.merged(begins)
        edge = np.zeros_like(some.edge)
        if not over:
            edge[-1] = some.edge[-1] & LAST_SEGMENT
        return replace(some, edge=edge).settled(self.rule)

    def _keep(self, block: FrameBlock, some: Segments) -> None:
        table = block.table.take(pa.array(some.at))
        new = {"edge": some.edge, "kind": some.kind, "t": some.start, "b": some.end, "rows": some.rows}
        for name, values in new.items():
            table = table.set_column(table.schema.get_field_index(name), name, pa.array(values))
        self.open = table

    @property
    def _with_kind(self) -> bool:
        return self.task.spec is not None and "kind" in self.task.spec.reported

    def _cells(self, block: FrameBlock) -> list[str]:
        names = block.table.column_names
        return names[names.index("rows") + 1 :]
