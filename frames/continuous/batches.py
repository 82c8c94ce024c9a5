"""A batch by key, and the pieces that frames, runs and gaps have in it.

      rows of a key     -5 … -3 | -2 -1 |  0  1  2  3  4        below 0: they came before, in the gap or in the run
      a gap                 [-----------------)                 from -5 to 1: gap and run of before, and row 0
      a frame                              [--------)           from 1 to 4

Of the rows that came before, nothing but two partials is there: that of the gap, and that of the run behind it. A piece
that begins before the batch begins with one of them, or with both.
"""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from frames.scans.scan import Scan
from kernels.frames import pieces as frame_pieces
from kernels.windows.totals import Runs
from swag.live.arena import Batch, group
from swag.live.space import values_of
from swag.live.unbounded.accumulators import What, columns_of
from swag.query.kind import AS_FLOAT, factors
from swag.tables.columns import field, valid_rows
from swag.tables.predicate import holds
from swag.tables.waiting import TimedRows

ONE_KEY = np.zeros(1, np.int64)


class Counted(NamedTuple):
    """Which rows count: those for which a predicate holds, and in which columns are not null."""

    where: str | None
    required: tuple[str, ...]


class KeyPieces(NamedTuple):
    """Each of a key, known by its place among those of the batch: rows first … last of it, without the last."""

    places: np.ndarray
    first: np.ndarray
    last: np.ndarray

    def some(self, which: np.ndarray) -> "KeyPieces":
        """Those at these positions, or where a mask holds."""
        return KeyPieces(self.places[which], self.first[which], self.last[which])


class CountedRows(ABC):
    """Rows in an order in which pieces are runs of them. Owns these, and the columns that were read so far.

    Asked of it: which rows of pieces count (`runs`), and the values of a column.
    """

    def __init__(self, table: pa.Table, order: np.ndarray) -> None:
        self.table, self.order = table, order
        self._values: dict[str, np.ndarray] = {}
        self._counted: dict[Counted, tuple[np.ndarray, np.ndarray | None]] = {}
        self._whole: tuple[Any, Runs] | None = None  # of the pieces that were asked for last

    @abstractmethod
    def positions(self, pieces: Any) -> tuple[np.ndarray, np.ndarray]:
        """Where the rows that pieces have begin and end in this order."""

    def runs(self, pieces: Any, slots: np.ndarray, counted: Counted) -> Runs:
        """The rows that pieces have, and that count: those of piece i go to slots[i]."""
        rows, before = self._that_count(counted)
        if self._whole is None or self._whole[0] is not pieces:
            self._whole = pieces, _some(Runs(slots, *self.positions(pieces), self.order))
        runs = self._whole[1]
        return runs if before is None else _some(Runs(runs.slots, before[runs.first], before[runs.last], rows))

    def values(self, name: str) -> np.ndarray:
        """A column as kernels want it, or the product of two that a part of an aggregate is of."""
        if name not in self._values:
            there, plain = self.table.column_names, name.removesuffix(AS_FLOAT)
            reads = (name,) if name in there else factors(plain) or (plain,)
            fields = {each: field(self.table, each, "a query over frames reads") for each in reads}
            self._values[name] = values_of(name, fields)
        return self._values[name]

    def dtypes(self, what: What) -> list[np.dtype]:
        """The types of the columns that something is computed from."""
        return [self.values(name).dtype for name in columns_of(what)]

    def _that_count(self, counted: Counted) -> tuple[np.ndarray, np.ndarray | None]:
        """The rows that count, in order of key; and how many of these lie before each of all rows (None: all do)."""
        if counted not in self._counted:
            mask = counted_rows(self.table, counted)
            if mask is None:
                self._counted[counted] = self.order, None
            else:
                there = mask[self.order]
                self._counted[counted] = self.order[there], np.concatenate([[0], np.cumsum(there)])
        return self._counted[counted]


class KeyedBatch(CountedRows):
    """Rows of a batch in order of key, and how many rows of each key the gap and the run before them have.

    Asked of it: the pieces of frames that ended (`of_frames`), and of the gaps and runs that are left (`left`).
    """

    def __init__(self, rows: TimedRows, scan: Scan, seen: np.ndarray, by_key: Batch | None = None) -> None:
        """scan: which has not seen these yet. seen: a zero for each key. by_key: if somebody has put the rows in order
        already."""
        self.rows = rows
        if by_key is not None or rows.ids.size:
            order, self.keys, self.starts = by_key or group(rows.ids, seen)
        else:
            order, self.keys = np.arange(rows.ts.size), ONE_KEY
            self.starts = np.array([0, rows.ts.size])
        super().__init__(rows.table, order)
        self.run, self.gap = np.empty(self.keys.size, np.int64), np.empty(self.keys.size, np.int64)
        frame_pieces.before(scan.keyed, scan.found.frames, self.keys, self.run, self.gap)

    def join(self, keys: np.ndarray, scan: Scan) -> None:
        """These keys belong to it, too. Those that have no rows in it are as they were before it."""
        more = np.setdiff1d(keys, self.keys)
        run, gap = np.empty(more.size, np.int64), np.empty(more.size, np.int64)
        frame_pieces.before(scan.keyed, scan.found.frames, more, run, gap)
        self.run, self.gap = np.concatenate([self.run, run]), np.concatenate([self.gap, gap])
        self.keys = np.concatenate([self.keys, more])
        self.starts = np.concatenate([self.starts, np.full(more.size, self.starts[-1])])

    def of_frames(self, frames: np.ndarray, slots: np.ndarray, carried: int, places: np.ndarray) -> KeyPieces:
        """The pieces of frames that ended in this batch. carried: slots below it were taken before; places: by key,
        its place here."""
        found = np.empty((3, slots.size), np.int64)
        batch, before = (self.order, self.starts), (self.run, self.gap)
        fits = frame_pieces.of_frames(frames, slots, carried, batch, before, places, found)
        assert fits, "all that is undecided of a key is its last run: Spec.in_runs"
        return KeyPieces(*found)

    def left(self, scan: Scan) -> tuple[KeyPieces, KeyPieces]:
        """The gap and the run that each key has after this batch, which was scanned."""
        runs, gaps = np.empty((3, self.keys.size), np.int64), np.empty((3, self.keys.size), np.int64)
        of_runs, of_gaps = frame_pieces.left(scan.keyed, scan.found.frames, self.keys, self.starts, runs, gaps)
        return KeyPieces(*gaps[:, :of_gaps]), KeyPieces(*runs[:, :of_runs])

    def begins_with(self, pieces: KeyPieces) -> tuple[np.ndarray, np.ndarray]:
        """Which pieces begin with the gap of before, and which hold the run of before, as a whole."""
        run = self.run[pieces.places]
        return pieces.first < -run, (run > 0) & (pieces.first < 0) & (pieces.last > -run)

    def positions(self, pieces: KeyPieces) -> tuple[np.ndarray, np.ndarray]:
        begin = self.starts[pieces.places]
        return begin + np.maximum(pieces.first, 0), begin + np.maximum(pieces.last, 0)


def _some(runs: Runs) -> Runs:
    """Those of at least one row."""
    some = np.flatnonzero(runs.last > runs.first)
    if some.size == runs.slots.size:
        return runs
    return Runs(runs.slots[some], runs.first[some], runs.last[some], runs.rows)


def counted_rows(table: pa.Table, counted: Counted) -> np.ndarray | None:
    """Which rows of a table count; None: all."""
    mask = None if counted.where is None else holds(counted.where, table)
    for name in counted.required:
        valid = valid_rows(table, name, "a query over frames reads")
        if valid is not None:
            mask = valid if mask is None else mask & valid
    return mask
