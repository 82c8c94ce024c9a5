"""Events of open frames, for aggregates of which nothing less than these can be kept: quantiles, distinct values, text.

      key a     0 1 2 [3 4 5 6 7          an event is known by its key, and by its number there
      key b     0 1 2 3 4 [5              from the bracket on they may be in a frame that is still to come out

Those before the bracket go when they are half of all. So memory follows the length of open frames here.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from frames.continuous.batches import KeyedBatch
from frames.continuous.partials import Asked
from frames.finding.intervals import Times, over_intervals
from frames.scans.scan import extended
from swag.durable.state import State, table_from_array, table_to_array
from swag.tables.columns import Clock
from swag.tables.waiting import NO_IDS

SMALL = 4096  # events that are not worth the trouble of looking which of them may go


class EventSpan:
    """Events of frames, by the key of each, from a number on to another: without the last."""

    def __init__(self, keys: np.ndarray, first: np.ndarray, last: np.ndarray) -> None:
        self.keys, self.first, self.last = keys, first, last

    def some(self, which: np.ndarray) -> "EventSpan":
        return EventSpan(self.keys[which], self.first[which], self.last[which])


class KeptEvents:
    """Owns the events that may still be needed: their columns, keys, times, and numbers within their key (`at`); of
    every key how many events there were (`count`), and how many of its last ones are needed (`needed`).

    Asked of it: to `add` a batch, what aggregates are of some `spans` of events, and to `let_go`.
    """

    def __init__(self, asked: Sequence[Asked], columns: Sequence[str]) -> None:
        self.asked, self.columns = list(asked), list(columns)
        self.tables: list[pa.Table] = []
        self.parts: list[tuple[np.ndarray, ...]] = []  # keys, times, numbers
        self.count, self.needed = NO_IDS, NO_IDS
        self.kept = 0

    def grow(self, keys: int) -> None:
        """Room for so many keys."""
        if keys > self.count.size:
            size = max(keys, 2 * self.count.size)
            self.count, self.needed = extended(self.count, size, 0), extended(self.needed, size, 0)

    def add(self, batch: KeyedBatch) -> None:
        """The events of a batch."""
        sizes = np.diff(batch.starts)
        numbers, own = np.empty(batch.order.size, np.int64), np.empty(batch.order.size, np.int64)
        numbers[batch.order] = np.arange(batch.order.size) + np.repeat(
            self.count[batch.keys] - batch.starts[:-1], sizes
        )
        own[batch.order] = np.repeat(batch.keys, sizes)
        self.tables.append(batch.table.select(self.columns) if self.columns else pa.table({"": own}))
        self.parts.append((own, batch.rows.ts, numbers))
        self.count[batch.keys] += sizes
        self.kept += own.size

    def need(self, keys: np.ndarray, rows: np.ndarray) -> None:
        """Of these keys so many of the last events are needed from now on."""
        self.needed[keys] = rows

    def let_go(self) -> None:
        """Of what nobody needs, where that is half of all."""
        if self.kept > SMALL and self.kept > 2 * int(self.needed.sum()):
            table, ids, ts, at = self._all()
            keep = at >= (self.count - self.needed)[ids]
            self._set(table.filter(pa.array(keep)).combine_chunks(), ids[keep], ts[keep], at[keep])

    def answers(self, span: EventSpan, clock: Clock) -> list[Any]:
        """A column per aggregate, of the events of each frame. To what decays or ages, its last one is `now`."""
        table, ids, ts, at = self._all()
        first = np.full(self.count.size, np.iinfo(np.int64).max)
        last = np.full(self.count.size, -1)
        np.minimum.at(first, span.keys, span.first)
        np.maximum.at(last, span.keys, span.last)
        rows = np.flatnonzero((at >= first[ids]) & (at < last[ids]))
        rows = rows[np.lexsort((at[rows], ids[rows]))]
        lo = np.searchsorted(ids[rows], span.keys) + span.first - first[span.keys]
        hi = lo + span.last - span.first
        ends = ts[rows[np.maximum(hi, 1) - 1]] if rows.size else np.zeros(hi.size, np.int64)
        return over_intervals(self.asked, table, rows, (lo, hi), Times(clock, ts, ends))

    def _all(self) -> tuple[Any, ...]:
        """All events that are kept, as one table and arrays beside it."""
        if len(self.tables) > 1:
            table = pa.concat_tables(self.tables, promote_options="permissive").combine_chunks()
            self._set(table, *(np.concatenate(each) for each in zip(*self.parts, strict=True)))
        return self.tables[0], *self.parts[0]

    def _set(self, table: pa.Table, ids: np.ndarray, ts: np.ndarray, at: np.ndarray) -> None:
        self.tables, self.parts, self.kept = [table], [(ids, ts, at)], ids.size

    def renumber(self, kept: np.ndarray) -> None:
        """Key kept[i] is key i from now on, and there are no others."""
        place = np.full(max(self.count.size, int(kept.max(initial=-1)) + 1), -1)
        place[kept] = np.arange(kept.size)
        if self.tables:
            table, ids, ts, at = self._all()
            keep = place[ids] >= 0
            self._set(table.filter(pa.array(keep)), place[ids[keep]], ts[keep], at[keep])
        self.count, self.needed = (extended(each, place.size, 0)[kept] for each in (self.count, self.needed))

    @property
    def bytes(self) -> int:
        own = sum(table.nbytes for table in self.tables) + sum(each.nbytes for part in self.parts for each in part)
        return int(own + self.count.nbytes + self.needed.nbytes)

    def state(self) -> State:
        arrays = {"count": self.count, "needed": self.needed}
        if self.tables:
            table, ids, ts, at = self._all()
            arrays |= {"table": table_to_array(table), "ids": ids, "ts": ts, "at": at}
        return {}, arrays

    def restore(self, state: State) -> None:
        _, arrays = state
        self.count, self.needed = arrays["count"].copy(), arrays["needed"].copy()
        if "table" in arrays:
            self._set(table_from_array(arrays["table"]), arrays["ids"], arrays["ts"], arrays["at"])
