"""What runs in Spark's Python workers, for frames: sorted rows in, block after block, what is unfinished carried on."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from frames.detection import search
from frames.detector import Detector
from frames.filling import Summary, fill, rows_between
from frames.owning.meeting import Meeting
from frames.owning.owning import Owner, of_skips, own_spans
from frames.specs import Spec
from frames.tables import noted_extent
from swag.query.expression import Operators
from swag.spark import process
from swag.spark.batch.tasks import of_type
from swag.spark.key_runs import refuse_nulls, run_starts
from swag.spark.places import free
from swag.stored.carried import CarriedRows
from swag.tables.columns import Clock, one_chunk

if TYPE_CHECKING:
    from frames.query import FrameQuery

T, K = " t", " k"  # time, and the number of the substream, where all columns have names of ours
OPENS, EVENT, CLOSES = range(3)  # kinds of rows, in the order in which they are wanted at one time


@dataclass(frozen=True)
class FrameTask:
    """What a worker is told. names: the user's, of k0, k1 …; read: those of e0, e1 …; out: the schema of the answer.

    skips: are frames found with a last column of their skips (frames/finding/ties.py), or answered with two, of their
    skips and rows? half_open: those that are answered. fills: with their events.
    """

    by: tuple[str, ...]
    names: dict[str, str]
    ts: str
    read: tuple[str, ...]
    clock: Clock
    out: pa.Schema
    block_rows: int
    spec: Spec | None = None
    aggregates: tuple[Operators, ...] = ()
    query: "FrameQuery | None" = None
    skips: bool = False
    half_open: bool = False
    fills: bool = False

    @property
    def when(self) -> str:
        """What ts is called in a table of events, beside the columns that are read."""
        return free(" t", self.read)

    @property
    def who(self) -> str:
        """The same, of the number of the substream."""
        return free(" k", self.read)

    @property
    def apart(self) -> list[str]:
        """The key's columns, and those that tell substreams apart."""
        return list(dict.fromkeys([*self.names, *self.by]))

    def output(self, columns: list[Any]) -> Iterator[pa.RecordBatch]:
        columns = [of_type(column, want.type) for column, want in zip(columns, self.out, strict=True)]
        yield from pa.Table.from_arrays(columns, schema=self.out).to_batches()


@dataclass(eq=False)
class FrameBlock:
    """Rows in order of (key, t); starts: of each key's."""

    table: pa.Table
    t: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, table: pa.Table, by: tuple[str, ...]) -> "FrameBlock":
        t = np.asarray(one_chunk(table.column("t")))
        return cls(table, t, run_starts([one_chunk(table.column(name)) for name in by], t.size))

    @property
    def ids(self) -> np.ndarray:
        """Which key each row is of."""
        return np.repeat(np.arange(self.starts.size), np.diff(self.starts, append=self.t.size))

    def numbers(self, name: str) -> np.ndarray:
        return np.asarray(one_chunk(self.table.column(name)).fill_null(0))


def blocks(
    task: FrameTask, batches: Iterable[pa.RecordBatch], keep: Callable[[FrameBlock], pa.Table]
) -> Iterator[tuple[FrameBlock, bool]]:
    """Blocks of rows, each with what was kept of the one before; and whether it is the last."""
    carried = CarriedRows()
    for table, last in carried.blocks(batches, task.block_rows, lambda new: refuse_nulls(new, task.names, task.ts)):
        block = FrameBlock.of(table, task.by)
        yield block, last
        carried.keep(keep(block))


@dataclass(frozen=True, eq=False)
class ScannedFrames:
    """Frames that became certain. ids: of their substreams, in order; numbers: within these; last: is it the last?

    substreams: the columns that tell them apart, beside each frame; frames: start, end, rows and what goes with them.
    skips: as frames/finding/ties.py has them, or 0 where they are not asked for.
    """

    frames: pa.Table
    skips: np.ndarray
    ids: np.ndarray
    numbers: np.ndarray
    last: np.ndarray
    substreams: pa.Table


def detected(task: FrameTask, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for found in scans(task, batches):
        keys = found.substreams.select(list(task.names))
        skips = [pa.array(found.skips)] if task.skips else []
        yield from task.output([pa.array(found.numbers), *keys.columns, *found.frames.columns, *skips])


def scans(task: FrameTask, batches: Iterable[pa.RecordBatch]) -> Iterator[ScannedFrames]:
    """Keys that are whole in a block are scanned together; one that fills a block has a detector of its own."""
    process.begin()
    large = LargeKey(task)

    def unfinished(block: FrameBlock) -> pa.Table:
        return block.table.slice(block.t.size if large.open else int(block.starts[-1]))

    for block, over in blocks(task, batches, unfinished):
        yield from large.go_on(block, over)
        first, last = large.taken, int(block.t.size if over or large.open else block.starts[-1])
        if first < last:
            yield _scanned(task, block, first, last)
    yield from large.finish()


def _scanned(task: FrameTask, block: FrameBlock, first: int, last: int) -> ScannedFrames:
    """The frames of keys that are whole in these rows of a block, key by key and numbered within each."""
    assert task.spec is not None
    found = search(task.spec, _slice(task, block, first, last), task.when, task.who)
    table, skips = found.table(), found.skips() if task.skips else np.zeros(found.count, np.int64)
    ids = np.asarray(table.column(1))
    if not (ids[1:] >= ids[:-1]).all():
        order = np.argsort(ids, kind="stable")
        ids, table, skips = ids[order], table.take(pa.array(order)), skips[order]
    begins = np.append(True, ids[1:] != ids[:-1])[: ids.size]
    firsts = np.flatnonzero(begins)
    numbers = np.arange(ids.size) - np.repeat(firsts, np.diff(firsts, append=ids.size))
    substreams = block.table.select(task.apart).take(pa.array(block.starts[ids]))
    return ScannedFrames(_rest(table, 2), skips, ids, numbers, np.roll(begins, -1), substreams)


def _slice(task: FrameTask, block: FrameBlock, first: int, last: int) -> pa.Table:
    """Rows of a block under the names that a spec knows."""
    table = block.table.slice(first, last - first)
    columns = [table.column(f"e{i}") for i in range(len(task.read))]
    when, who = of_type(table.column("t"), task.clock.type), pa.array(block.ids[first:last])
    return pa.Table.from_arrays([*columns, when, who], names=[*task.read, task.when, task.who])


def _rest(found: pa.Table, front: int) -> pa.Table:
    """front: how many columns say which frame it is, and of which key."""
    return found.select(range(front, found.num_columns))


@dataclass(eq=False)
class LargeKey:
    """A key that goes on from block to block. Owns its detector while it does, and how many frames it has had.

    It is told of every block, and says which frames that decides. taken: the rows of this block that were its.
    """

    task: FrameTask
    taken: int = 0
    _detector: Detector | None = None
    _key: pa.Table | None = None
    _count: int = 0

    @property
    def open(self) -> bool:
        return self._detector is not None

    @property
    def _must_be_whole(self) -> bool:
        """Of frames that overlap, which events are their own is told where all events of the key are."""
        return self.task.skips and getattr(self.task.spec, "overlap", False)

    def go_on(self, block: FrameBlock, over: bool) -> Iterator[ScannedFrames]:
        """The frames that a block decides of the key that goes on; a block that is all of one key begins such a key."""
        self.taken = 0
        if self._detector is None:
            if over or block.starts.size > 1 or self._must_be_whole:
                return
            self._start(block)
        assert self._detector is not None and self._key is not None
        here = self._rows_here(block)
        self.taken = here
        if here:
            self._detector.push(_slice(self.task, block, 0, here).drop_columns([self.task.who]))
        ended = over or here < block.t.size
        found = self._detector.finish() if ended else self._detector.punctuate_before(int(block.t[here - 1]))
        yield from self._report(found, ended)
        if ended:
            self._detector = None

    def finish(self) -> Iterator[ScannedFrames]:
        if self._detector is not None:
            yield from self._report(self._detector.finish(), True)

    def _start(self, block: FrameBlock) -> None:
        assert self.task.spec is not None
        self._detector, self._count = Detector(self.task.spec, ts=self.task.when), 0
        if self.task.skips:
            self._detector.with_skips()
        self._key = block.table.select(self.task.apart).slice(0, 1)

    def _rows_here(self, block: FrameBlock) -> int:
        """How many rows, from the first on, are of the open key."""
        assert self._key is not None
        first = block.table.select(self._key.column_names).slice(0, 1)
        both = pa.concat_tables([self._key, first])
        same = run_starts([one_chunk(both.column(name)) for name in self.task.by], 2).size == 1
        ends = np.append(block.starts[1:], block.t.size)
        return int(ends[0]) if same else 0

    def _report(self, found: pa.Table, ended: bool) -> Iterator[ScannedFrames]:
        """Frames of the large key as scans report them, numbered on from block to block."""
        assert self._detector is not None and self._key is not None
        zeros = np.zeros(found.num_rows, np.int64)
        numbers = self._count + np.arange(found.num_rows)
        self._count += found.num_rows
        if found.num_rows:
            last = ended & (numbers == self._count - 1)
            skips = self._detector.skips if self.task.skips else zeros
            yield ScannedFrames(_rest(found, 1), skips, zeros, numbers, last, self._key.take(pa.array(zeros)))


def filled(task: FrameTask, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Events of a block against the frames that have opened."""
    process.begin()
    for block, _ in blocks(task, batches, _frames_that_reach):
        yield from task.output(_filled(task, block, block.numbers("kind")))


def summarized(task: FrameTask, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Frames of a block that close, over the events since they opened."""
    process.begin()
    for block, _ in blocks(task, batches, _open_frames_and_events):
        yield from task.output(_summarized(task, block, block.numbers("kind")))


def _filled(task: FrameTask, block: FrameBlock, kind: np.ndarray) -> list[Any]:
    events = _events(block, kind, [f"e{i}" for i in range(len(task.read))], T, K)
    opened = np.flatnonzero(kind != EVENT)
    spans = {"start": block.t[opened], "end": block.numbers("b")[opened], K: block.ids[opened]}
    inside = fill(pa.table({"frame_id": np.arange(opened.size), **spans}), events, ts=T, key=K)
    numbers = block.numbers("frame_id")[opened][np.asarray(inside.column("frame_id"))]
    return [*(inside.column(i) for i in range(len(task.read))), pa.array(numbers)]


def _summarized(task: FrameTask, block: FrameBlock, kind: np.ndarray) -> list[Any]:
    """The frames of a block that close, each with its aggregates or what the query says of it, as columns of output."""
    events = _events(block, kind, list(task.read), task.when, task.who)
    closed = np.flatnonzero(kind == CLOSES)
    spans = {"start": block.numbers("a")[closed], "end": block.t[closed], task.who: block.ids[closed]}
    frames = pa.table({"frame_id": np.arange(closed.size), **spans})
    frames = _half_open(frames) if task.half_open else frames
    handed_on = block.table.take(pa.array(closed))
    if task.fills:
        return _with_events(task, frames, events, handed_on)
    front = len(task.out) - len(task.aggregates if task.query is None else task.query.values)
    mine, owner, passing = [handed_on.column(f"r{i}") for i in range(front)], _owner(task, handed_on, front), None
    if task.query is not None:  # by the query itself: predicates and expressions mean here what they mean in memory
        values, passing = task.query.answers(frames, events, task.when, task.who, owner)
    else:
        values = Summary(Meeting.of(frames, events, task.when, task.who), owner).said(task.aggregates)
    if passing is None:
        return [*mine, *values]
    return [column.filter(pa.array(passing)) for column in (*mine, *values)]


def _with_events(task: FrameTask, frames: pa.Table, events: pa.Table, handed_on: pa.Table) -> list[Any]:
    """The events of each frame, and its frame_id, which was handed on."""
    meeting = Meeting.of(frames, events, task.when, task.who)
    row, frame = rows_between(meeting, *own_spans(meeting, _owner(task, handed_on, 1)))
    inside = events.take(pa.array(row))
    return [*(inside.column(i) for i in range(len(task.read))), handed_on.column("r0").take(pa.array(frame))]


def _owner(task: FrameTask, handed_on: pa.Table, front: int) -> Owner | None:
    """Which events are whose, by the two columns behind the first ones; frames without a skip are filled by time."""
    if not task.skips:
        return None
    skips, rows = (one_chunk(handed_on.column(f"r{i}")) for i in (front, front + 1))
    return of_skips(np.asarray(skips.fill_null(-1)), np.asarray(rows.fill_null(0)), must=task.half_open)


def _half_open(frames: pa.Table) -> pa.Table:
    """Frames whose last instant is known, as such that end behind it."""
    end = np.minimum(np.asarray(frames.column("end")), np.iinfo(np.int64).max - 1) + 1
    return frames.set_column(2, "end", pa.array(end)).replace_schema_metadata(noted_extent("open"))


def _events(block: FrameBlock, kind: np.ndarray, names: list[str], when: str, who: str) -> pa.Table:
    """names: of the columns e0, e1 …, of the time, and of the number of the substream."""
    rows = np.flatnonzero(kind == EVENT)
    table = block.table.take(pa.array(rows))
    columns = [table.column(f"e{i}") for i in range(len(names))]
    return pa.Table.from_arrays(
        [*columns, pa.array(block.t[rows]), pa.array(block.ids[rows])], names=[*names, when, who]
    )


def _frames_that_reach(block: FrameBlock) -> pa.Table:
    """The frames of the last key that an event to come may lie in."""
    rows = np.arange(int(block.starts[-1]), block.t.size)
    reaching = (block.numbers("kind")[rows] != EVENT) & (block.numbers("b")[rows] >= block.t[-1])
    return block.table.take(pa.array(rows[reaching]))


def _open_frames_and_events(block: FrameBlock) -> pa.Table:
    """The frames of the last key that have opened and not closed, and the events since the first of them did."""
    rows = np.arange(int(block.starts[-1]), block.t.size)
    kind, t = block.numbers("kind")[rows], block.t[rows]
    still = (kind != EVENT) & (kind != CLOSES) & (block.numbers("b")[rows] >= t[-1])
    since = t[still].min(initial=np.iinfo(np.int64).max)
    return block.table.take(pa.array(rows[still | ((kind == EVENT) & (t >= since))]))
