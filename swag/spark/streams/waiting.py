"""Rows that wait for the watermark: in order of arrival, until it passes them; then in order of time."""

import numpy as np
import pyarrow as pa

from swag.spark.streams.watermark import instants_of


class Waiting:
    """Rows that came, in order of arrival, until the watermark passes them: it owns those tables.

    Asked of it: to take a table, and the rows that are due (`due`), in order of time.
    """

    def __init__(self, ts: str) -> None:
        self.ts = ts
        self._tables: list[pa.Table] = []

    def add(self, table: pa.Table) -> None:
        if table.num_rows:
            self._tables.append(table)

    def due(self, upto: int | None) -> pa.Table | None:
        """What the watermark has passed, in order of time, ties as they came; None if nothing has."""
        if not self._tables or upto is None:
            return None
        table = pa.concat_tables(self._tables, promote_options="permissive")
        instants = instants_of(table.column(self.ts))
        due = np.flatnonzero(instants <= upto)
        self._tables = [table] if due.size < instants.size else []
        if due.size == 0:
            return None
        if self._tables:
            self._tables = [table.filter(pa.array(instants > upto))]
        in_order = bool((instants[1:] >= instants[:-1]).all())
        if in_order:
            return table.slice(0, due.size)
        return table.take(pa.array(due[np.argsort(instants[due], kind="stable")]))

    @property
    def first(self) -> int | None:
        """The earliest instant that waits."""
        return min((int(instants_of(t.column(self.ts)).min()) for t in self._tables), default=None)

    @property
    def count(self) -> int:
        return sum(table.num_rows for table in self._tables)

    @property
    def bytes(self) -> int:
        return sum(table.nbytes for table in self._tables)
