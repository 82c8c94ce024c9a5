"""Rows that wait for a tick to be decided, in the batches they came in."""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from swag.durable.state import State, table_from_array, table_to_array


@dataclass(eq=False)
class Pending:
    """It owns the rows, as tables, times and key ids, one of each for every batch that is not used up yet."""

    tables: list[pa.Table] = field(default_factory=list)
    times: list[np.ndarray] = field(default_factory=list)
    keys: list[np.ndarray] = field(default_factory=list)

    @property
    def count(self) -> int:
        return sum(each.size for each in self.times)

    @property
    def bytes(self) -> int:
        return sum(each.nbytes for each in [*self.tables, *self.times, *self.keys])

    def add(self, table: pa.Table, ts: np.ndarray, ids: np.ndarray) -> None:
        self.tables.append(table)
        self.times.append(ts)
        self.keys.append(ids)

    @property
    def ts(self) -> np.ndarray:
        self._close_up()
        return self.times[0] if self.times else np.zeros(0, np.int64)

    @property
    def ids(self) -> np.ndarray:
        self._close_up()
        return self.keys[0] if self.keys else np.zeros(0, np.int64)

    @property
    def table(self) -> pa.Table:
        self._close_up()
        return self.tables[0]

    def state(self) -> State:
        if not self.count:
            return {"rows": 0}, {}
        return {"rows": self.count}, {"table": table_to_array(self.table), "ts": self.ts, "ids": self.ids}

    def restore(self, state: State) -> None:
        arrays = state[1]
        if arrays:
            self.add(table_from_array(arrays["table"]), arrays["ts"], arrays["ids"])

    def _close_up(self) -> None:
        """One batch."""
        if len(self.times) > 1:
            self.tables = [pa.concat_tables(self.tables, promote_options="permissive").combine_chunks()]
            self.times, self.keys = [np.concatenate(self.times)], [np.concatenate(self.keys)]

    def renumber(self, kept: np.ndarray) -> None:
        """Key kept[i] is key i from now on; the keys of all rows here are kept."""
        new = np.empty(int(kept.max(initial=-1)) + 1, np.int64)
        new[kept] = np.arange(kept.size)
        self.keys = [new[ids] for ids in self.keys]

    def drop(self, rows: int) -> int:
        """The first rows go; returns the time of the last of them."""
        newest = 0
        while rows > 0:
            size = self.times[0].size
            newest = int(self.times[0][min(rows, size) - 1])
            if rows < size:
                self.tables[0], self.times[0], self.keys[0] = (
                    self.tables[0][rows:], self.times[0][rows:], self.keys[0][rows:],
                )  # fmt: skip
                break
            del self.tables[0], self.times[0], self.keys[0]
            rows -= size
        return newest
