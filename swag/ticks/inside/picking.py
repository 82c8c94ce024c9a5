"""The frequency operator on tuples: which events F_n and F_t pick, over stored events and as they come.

    F_3     . . x . . x . . x      every third one of a partition
    F_t     |..x|.. x|x|   |       of each slot ((j-1) t, j t] the first at its very end, else its last

A partition is the events with equal values in some columns: those of PARTITIONED BY, the key, or none.
"""

import numpy as np
import pyarrow as pa

from swag.durable.state import State, nested, part, types_from_array, types_to_array, with_arrays
from swag.errors import BadQuery
from swag.query.every import Every
from swag.tables.key_columns import joined, key_name
from swag.tables.keys import KeyTable
from swag.tables.waiting import Waiting
from swag.ticks.schedule import slots_of


def partition_columns(every: Every, key: str | None) -> tuple[str, ...]:
    """By what a frequency parts the events of a stream with this key."""
    if every.per_key:
        if key is None:
            raise BadQuery(f"{every!r} picks per key, but there is no key.", 'key="…", or sw.Every(…, by="…")')
        return (key,)
    return tuple(every.by or ())


def picked(every: Every, table: pa.Table, ts: np.ndarray, by: tuple[str, ...], step: int) -> np.ndarray:
    """Of stored events in any order: the places of those that are picked, in the order in which they are given."""
    order = np.argsort(ts, kind="stable")
    ids = partitions(table, by)[order]
    chosen = standing(ts[order], ids, step)[0] if every.by_time else np.flatnonzero(_ordinals(ids) % step == 0)
    return np.sort(order[chosen])


def partitions(table: pa.Table, by: tuple[str, ...], known: KeyTable | None = None) -> np.ndarray:
    """The partition of each row, as a number."""
    if not by:
        return np.zeros(table.num_rows, np.int64)
    name = key_name(by)
    assert name is not None
    column = joined(table, by).column(name)
    return (known or KeyTable(column.type)).encode(column, name).astype(np.int64)


def standing(ts: np.ndarray, ids: np.ndarray, step: int) -> tuple[np.ndarray, np.ndarray]:
    """The rows that stand for their slots, in order, and the slots; rows are in order of time within each partition."""
    slots = slots_of(ts, step)
    order = np.lexsort((slots, ids))  # stable: rows of a slot stay in order
    own, slot, at_end = ids[order], slots[order], (ts == slots * step)[order]
    first = np.flatnonzero(np.concatenate([[True], (own[1:] != own[:-1]) | (slot[1:] != slot[:-1])])[: own.size])
    last = np.append(first[1:], own.size) - 1
    ends = np.add.reduceat(at_end, first) if first.size else first  # which are the last ones of their slot
    chosen = np.sort(order[np.where(ends > 0, last - ends + 1, last)])
    return chosen, slots[chosen]


def _ordinals(ids: np.ndarray) -> np.ndarray:
    """The number of each row within its partition, counted from 1."""
    order = np.argsort(ids, kind="stable")
    own = ids[order]
    first = np.flatnonzero(np.concatenate([[True], own[1:] != own[:-1]])[: own.size])
    found = np.empty(ids.size, np.int64)
    found[order] = np.arange(1, ids.size + 1) - np.repeat(first, np.diff(np.append(first, ids.size)))
    return found


class Counting:
    """F_n of events as they come. It owns how many each partition has had.

    Asked of it: which rows of a batch are picked, and its state. A batch decides all that it picks.
    """

    def __init__(self, by: tuple[str, ...]) -> None:
        self.by = by
        self.known: KeyTable | None = None
        self.counts = np.zeros(1, np.int64)

    def take(self, table: pa.Table, step: int) -> np.ndarray:
        """The places of the rows of a batch that F_n picks: every `step`-th of a partition, counted on from before."""
        if self.by and self.known is None:
            self.known = KeyTable(joined(table, self.by).column(key_name(self.by)).type)
        ids = partitions(table, self.by, self.known)
        more = int(ids.max(initial=-1)) + 1 - self.counts.size
        self.counts = np.concatenate([self.counts, np.zeros(max(more, 0), np.int64)])
        numbers = self.counts[ids] + _ordinals(ids)
        np.add.at(self.counts, ids, 1)
        return np.flatnonzero(numbers % step == 0)

    @property
    def bytes(self) -> int:
        return int(self.counts.nbytes) + (0 if self.known is None else self.known.bytes)

    def state(self) -> State:
        kind = {} if self.known is None else {"type": types_to_array({"": self.known.type})}
        keys = None if self.known is None else self.known.state()
        return with_arrays(nested({}, {"known": keys}), {"counts": self.counts} | kind)

    def restore(self, state: State) -> None:
        self.counts = state[1]["counts"]
        if state[0]["known"] is not None:
            self.known = KeyTable(types_from_array(state[1]["type"])[""])
            self.known.restore(part(state, "known"))


class Slots:
    """F_t of events as they come. It owns, of each partition, the rows that stand for slots which are not over, and
    which of them are known to (`told`): the first at the very end of a slot stands for it at once.

    Asked of it: to `take` rows, and those that are decided (`leave`).
    """

    def __init__(self, by: tuple[str, ...]) -> None:
        self.by = by
        self.waiting, self.told = Waiting(), np.zeros(0, bool)

    def take(self, table: pa.Table, ts: np.ndarray, step: int) -> None:
        told = np.concatenate([self.told, np.zeros(ts.size, bool)])
        self.waiting.add(table, ts)
        self._keep(standing(self.waiting.rows.ts, self._ids(), step)[0], told)

    def leave(self, done: int, step: int, at_once: bool) -> pa.Table | None:
        """The rows that are decided by now, in order of time. done: every event up to this time has come. at_once: the
        order of partitions is of no importance, so that each is as far as its own rows say."""
        if not self.waiting.count:
            return None
        rows, told = self.waiting.rows, self.told
        slots = slots_of(rows.ts, step)
        over = slots * step <= done
        decided = over | (rows.ts == slots * step) | self._passed(slots) if at_once else over
        leaving = np.flatnonzero(decided & ~told)
        leaving = leaving[np.argsort(rows.ts[leaving], kind="stable")]
        self._keep(np.flatnonzero(~over & ~(decided & (rows.ts < slots * step))), told | decided)
        return rows.some(leaving).table if leaving.size else None

    def _passed(self, slots: np.ndarray) -> np.ndarray:
        """Which rows have one of a later slot in their own partition."""
        ids = self._ids()
        latest = np.full(int(ids.max(initial=-1)) + 1, np.iinfo(np.int64).min)
        np.maximum.at(latest, ids, slots)
        return np.asarray(slots < latest[ids])

    def _ids(self) -> np.ndarray:
        return partitions(self.waiting.rows.table, self.by)

    def _keep(self, kept: np.ndarray, told: np.ndarray) -> None:
        rows, self.waiting = self.waiting.rows.some(kept), Waiting()
        self.waiting.add(rows.table, rows.ts)
        self.told = told[kept]

    @property
    def bytes(self) -> int:
        return self.waiting.bytes + int(self.told.nbytes)

    def state(self) -> State:
        return with_arrays(nested({}, {"waiting": self.waiting.state()}), {"told": self.told})

    def restore(self, state: State) -> None:
        self.waiting.restore(part(state, "waiting"))
        self.told = state[1]["told"]
