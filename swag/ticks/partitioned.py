"""PARTITIONED BY some columns of a key: a tick is counted within a partition, and reports the keys in it.

    partition n    a . b a . b . .      every 4 rows of n: T T, each with a row for a and one for b
    partition s    . c . . d . c d

Events of all partitions are in order of time. A partition is a number here, and so is a key.
"""

import numpy as np
import pyarrow as pa

from swag.durable.state import State, nested, part, types_from_array, types_to_array, with_arrays
from swag.query.every import Every
from swag.query.windows import Reach
from swag.stored.ordered_rows import Requests, Stored, runs_of
from swag.tables.key_columns import joined, key_name
from swag.tables.keys import KeyTable
from swag.ticks import schedule as schedules
from swag.ticks.inside.picking import partitions
from swag.ticks.schedule import Span, Ticks


def partition_of_keys(keys: pa.Array, by: tuple[str, ...]) -> np.ndarray:
    """The partition of each key, of structs with these fields among others."""
    return partitions(_fields(keys, by), by) if len(keys) else np.zeros(0, np.int64)


def _fields(keys: pa.Array, by: tuple[str, ...]) -> pa.Table:
    return pa.table({name: keys.field(name) for name in by})


def ticks_of_partitions(
    every: Every, stored: Stored, ids: np.ndarray, keys: pa.Array, reaches: set[Reach], end: int | None, later: bool
) -> tuple[Requests, Ticks]:
    """Of stored rows that are in order of time: what each partition's ticks ask of each of its keys.

    ids: the key of each row, in order of time; stored: the same rows, key by key. later: windows hold rows that come
    after a tick, so that a key is asked for which has none before it.
    """
    assert every.by is not None
    step = every.step(stored.clock.unit)
    of_key = partition_of_keys(keys, every.by)
    of_row = of_key[ids]
    order = np.argsort(of_row, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(of_row, minlength=int(of_key.max(initial=-1)) + 1))])
    ts = (stored.ts if stored.order is None else _as_given(stored))[order]
    since = np.full(starts.size - 1, schedules.NEVER)
    filled = schedules.filled_from(stored.ts, stored.starts, schedules.fewest_rows(reaches))
    np.minimum.at(since, of_key, filled[: of_key.size])
    span = Span.of_all(every, step, ts, starts, end, max(0, schedules.farthest_ahead(reaches)))
    ticks = schedules.schedule(every, step, ts, starts, span, reaches, since)
    place = np.empty(ids.size, np.int64)
    place[order] = np.arange(ids.size)
    rows = place if stored.order is None else place[stored.order]
    keys_of_rows = np.repeat(np.arange(of_key.size), np.diff(stored.starts)[: of_key.size])
    all_its = np.searchsorted(ticks.segment, of_key), ends_of(ticks.segment, of_key)
    key, tick = pairs(*(all_its if later else _lifetimes(ticks, of_key, rows, stored, reaches)))
    seen = rows_before(keys_of_rows, rows, key, ticks.end[tick])
    some = np.flatnonzero(later | (seen > stored.starts[key]))
    key, tick, seen = key[some], tick[some], seen[some]
    by_time = np.lexsort((key, ticks.number[tick], ticks.now[tick]))
    rank = np.empty_like(by_time)
    rank[by_time] = np.arange(by_time.size)
    runs = runs_of(np.concatenate([[0], np.cumsum(np.bincount(key, minlength=stored.starts.size - 1))]))
    requests = Requests(ticks.now[tick], seen, runs, rank, False)
    key, tick, seen = key[by_time], tick[by_time], seen[by_time]
    return requests, Ticks(ticks.number[tick], ticks.now[tick], seen, key)


def _as_given(stored: Stored) -> np.ndarray:
    ts = np.empty_like(stored.ts)
    ts[stored.order] = stored.ts
    return ts


def _lifetimes(
    ticks: Ticks, of_key: np.ndarray, rows: np.ndarray, stored: Stored, reaches: set[Reach]
) -> tuple[np.ndarray, np.ndarray]:
    """Of each key, from which tick on, and up to which, there may be a row of it in a window. rows: their places among
    those of all partitions, one after the other, key by key."""
    starts = stored.starts[: of_key.size + 1]
    first, last = np.searchsorted(ticks.end, rows[starts[:-1]], side="right"), ends_of(ticks.segment, of_key)
    if all(each.by_time for each in reaches):
        far = max((min(each.far, schedules.FARTHEST) for each in reaches), default=0)
        times = np.sort(ticks.now)
        latest = np.minimum(stored.ts[starts[1:] - 1], schedules.NEVER - far)
        gone = np.searchsorted(times, latest + far)  # the first tick of any that does not see it
        code = ticks.segment * (times.size + 1) + np.searchsorted(times, ticks.now)
        last = np.minimum(last, np.searchsorted(code, of_key * (times.size + 1) + gone))
    return first, np.maximum(first, last)


def ends_of(segment: np.ndarray, of_key: np.ndarray) -> np.ndarray:
    """Behind the last tick of each key's partition. segment: of each tick, in order."""
    return np.searchsorted(segment, of_key, side="right")


def pairs(first: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every key with every tick from its first until its last, key by key."""
    counts = last - first
    key = np.repeat(np.arange(first.size), counts)
    tick = np.arange(key.size) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(first, counts)
    return key, tick


def rows_before(keys: np.ndarray, places: np.ndarray, key: np.ndarray, end: np.ndarray) -> np.ndarray:
    """How many rows, of all that lie key by key at these places, are of a key before `key`, or of it and before
    `end`."""
    size = int(max(places.max(initial=0), end.max(initial=0))) + 1
    return np.searchsorted(keys * size + places, key * size + end)


class PartitionsOfKeys:
    """Which partition the keys of a stream are in. It owns their numbers, by the values of the columns `by`.

    Asked of it: the partitions of the rows of a batch (`of_rows`), which it notes as those of their keys (`of_key`).
    """

    def __init__(self, by: tuple[str, ...]) -> None:
        self.by = by
        self.known: KeyTable | None = None
        self.of_key = np.zeros(0, np.int64)

    @property
    def count(self) -> int:
        return 0 if self.known is None else self.known.count

    def of_rows(self, table: pa.Table, ids: np.ndarray) -> np.ndarray:
        if self.known is None:
            self.known = KeyTable(joined(table, self.by).column(key_name(self.by)).type)
        found = partitions(table, self.by, self.known)
        more = int(ids.max(initial=-1)) + 1 - self.of_key.size
        self.of_key = np.concatenate([self.of_key, np.full(max(more, 0), -1)])
        self.of_key[ids] = found
        return found

    def of_keys(self, keys: pa.Array) -> np.ndarray:
        """Of keys that were there before."""
        return self.of_rows(_fields(keys, self.by), np.arange(len(keys)))

    def renumber(self, kept: np.ndarray) -> None:
        """Key kept[i] is key i from now on."""
        self.of_key = self.of_key[kept[kept < self.of_key.size]]

    @property
    def bytes(self) -> int:
        return int(self.of_key.nbytes) + (0 if self.known is None else self.known.bytes)

    def state(self) -> State:
        kind = {} if self.known is None else {"type": types_to_array({"": self.known.type})}
        keys = None if self.known is None else self.known.state()
        return with_arrays(nested({}, {"known": keys}), {"of_key": self.of_key} | kind)

    def restore(self, state: State) -> None:
        self.of_key = state[1]["of_key"]
        if state[0]["known"] is not None:
            self.known = KeyTable(types_from_array(state[1]["type"])[""])
            self.known.restore(part(state, "known"))
