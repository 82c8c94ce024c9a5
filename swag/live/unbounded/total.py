"""All rows so far of one sort: a partial per key as of some time, and the rows since.

    rows so far      . . . . . . . . . . | . . . .  now
    folded in        [------------------]  ^^^^^^^  wait: they may be asked for one by one, or others put between them

A row waits for as long as windows end before now (`until`), or late rows may come (`lateness`, where they are not
held back). Where neither is so, it is folded in at once, and no row is kept at all.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from kernels.operators.numbers import EARLIEST
from kernels.windows.totals import Runs, up_to
from swag.durable.state import State
from swag.live.arena import Batch, Column
from swag.live.filtered.checked_rows import CheckedRows
from swag.live.space import Mask, values_of
from swag.live.unbounded.accumulators import Accumulator, What, accumulator, columns_of, held_by

NO_ROWS = np.zeros(0, np.int64)


class RowsThatCount(NamedTuple):
    """Which rows a total is of: where a predicate holds and columns are not null, from some event on; until when."""

    mask: Mask
    until: Any


class HeldWords(NamedTuple):
    """Numbers of words that the dictionary must not forget, as a space holds them."""

    raw: dict[str, Column]


@dataclass(eq=False)
class Total:
    """All rows so far of one sort, as partials per key. It owns those, and the rows that wait to be folded in.

    Asked of it: to take a batch, and what it holds for some keys at some times (`at`). n: how many rows each key has
    had; newest: the time of the last that was folded in.
    """

    of: RowsThatCount
    whats: dict[What, Accumulator | None] = field(default_factory=dict)  # None: no row that counts has come
    n: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    newest: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    ts: np.ndarray = field(default_factory=lambda: NO_ROWS)  # of the rows that wait, as they came
    ids: np.ndarray = field(default_factory=lambda: NO_ROWS)
    columns: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def _names(self) -> list[str]:
        return list(dict.fromkeys(name for what in self.whats for name in columns_of(what)))

    def grow(self, size: int) -> None:
        if size > self.n.size:
            more = max(size, 2 * self.n.size) - self.n.size
            self.n = np.concatenate([self.n, np.zeros(more, np.int64)])
            self.newest = np.concatenate([self.newest, np.full(more, EARLIEST)])
            for each in self.whats.values():
                if each is not None:
                    each.grow(self.n.size)

    def renumber(self, kept: np.ndarray) -> None:
        """Key kept[i] is key i from now on: of others, partials and rows that wait are forgotten."""
        self.grow(int(kept.max(initial=-1)) + 1)
        number = np.full(max(self.n.size, int(self.ids.max(initial=-1)) + 1), -1)
        number[kept] = np.arange(kept.size)
        there = number[self.ids] >= 0
        self.ts, self.ids = self.ts[there], number[self.ids[there]]
        self.columns = {name: values[there] for name, values in self.columns.items()}
        self.n, self.newest = self.n[kept], self.newest[kept]
        self.whats = {what: None if each is None else each.taken(kept) for what, each in self.whats.items()}

    def take(self, rows: CheckedRows, batch: Batch, now: int, delay: int) -> None:
        """The rows of a batch that count: folded in at once, or kept until `delay` has passed since their time."""
        counted = rows.chosen[Mask(self.of.mask.where, self.of.mask.required)]
        own = batch if counted is None else batch.only(counted)
        if delay == 0:
            self._fold(own.order, own.keys, own.starts, rows.ts, lambda name: values_of(name, rows.fields))
            return
        self.ts, self.ids = np.append(self.ts, rows.ts[own.order]), np.append(self.ids, rows.ids[own.order])
        for name in self._names if own.order.size else ():
            values = values_of(name, rows.fields)[own.order]
            self.columns[name] = np.append(self.columns.get(name, values[:0]), values)
        self.settle(now - delay if now >= EARLIEST + delay else EARLIEST)

    def settle(self, upto: int) -> None:
        """Rows up to a time wait no longer."""
        passed = self.ts <= upto
        if not passed.any():
            return
        by_key = np.lexsort((self.ts, self.ids))  # stable: equal times in the order in which they came
        order = by_key[passed[by_key]]
        keys, first = np.unique(self.ids[order], return_index=True)
        self._fold(order, keys, np.append(first, order.size), self.ts, self.columns.__getitem__)
        self.ts, self.ids = self.ts[~passed], self.ids[~passed]
        self.columns = {name: values[~passed] for name, values in self.columns.items()}

    def _fold(self, order: np.ndarray, keys: np.ndarray, starts: np.ndarray, ts: np.ndarray, values: Any) -> None:
        some = np.flatnonzero(np.diff(starts))
        if not some.size:
            return
        runs = Runs(keys[some], starts[some], starts[some + 1], order)
        self._accumulate(self.whats, runs, values, self.n)
        last = ts[order[runs.last - 1]]
        self.newest[runs.slots] = np.maximum(self.newest[runs.slots], last)

    def _accumulate(self, whats: dict[What, Accumulator | None], runs: Runs, values: Any, n: np.ndarray) -> None:
        for what, each in whats.items():
            if each is None:
                whats[what] = each = accumulator(what, [values(name).dtype for name in columns_of(what)])
                each.grow(n.size)
            each.take(runs, values, n)
        n[runs.slots] += runs.last - runs.first

    def at(self, ids: np.ndarray, bounds: np.ndarray) -> "Total":
        """What it holds for each of these keys, of rows up to a time of its own."""
        whats = {what: None if each is None else each.taken(ids) for what, each in self.whats.items()}
        found = Total(self.of, whats, self.n[ids], self.newest[ids])
        if self.ts.size:
            by_key = np.lexsort((self.ts, self.ids))
            sorted_ids = self.ids[by_key]
            first, last = (np.searchsorted(sorted_ids, ids, side) for side in ("left", "right"))
            up_to(self.ts, by_key, first, last, bounds)
            some = np.flatnonzero(last > first)
            if some.size:
                runs = Runs(some, first[some], last[some], by_key)
                found._accumulate(found.whats, runs, self.columns.__getitem__, found.n)
        return found

    def words(self) -> Iterator[HeldWords]:
        for each in self.whats.values():
            for name, values in {} if each is None else held_by(each).items():
                yield HeldWords({name: Column(values)})
        for name, values in self.columns.items():
            yield HeldWords({name: Column(values)})

    @property
    def bytes(self) -> int:
        own = [self.n, self.newest, self.ts, self.ids, *self.columns.values()]
        return sum(each.nbytes for each in (*own, *(a for w in self.whats.values() if w for a in w.arrays)))

    def state(self, names: dict[What, list[Any]]) -> State:
        """names: whose each is, a query's, and which of its own."""
        made = [each for each in self.whats.values() if each is not None]
        saved = [[*names[each.what], " ".join(map(str, each.dtypes)), len(each.arrays)] for each in made]
        header = {"mask": self.of.mask.to_json(), "until": self.of.until, "columns": list(self.columns)}
        header["made"] = saved
        arrays = {"n": self.n, "newest": self.newest, "ts": self.ts, "ids": self.ids}
        arrays |= {f"column {i}": each for i, each in enumerate(self.columns.values())}
        arrays |= {f"{i} {j}": array for i, each in enumerate(made) for j, array in enumerate(each.arrays)}
        return header, arrays

    def restore(self, state: State, whats: Callable[[str], tuple[What, ...]]) -> None:
        """whats: what a query is computed from, by its label."""
        header, arrays = state
        self.n, self.newest, self.ts, self.ids = (arrays[name] for name in ("n", "newest", "ts", "ids"))
        self.columns = {name: arrays[f"column {i}"] for i, name in enumerate(header["columns"])}
        for i, (label, place, dtypes, count) in enumerate(header["made"]):
            what = whats(label)[place]
            self.whats[what] = accumulator(what, dtypes.split(), [arrays[f"{i} {j}"] for j in range(count)])
