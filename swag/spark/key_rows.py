"""In a worker: keys of any type, of several columns, as dense whole numbers, and back."""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from swag.tables.columns import one_chunk
from swag.tables.keys import KeyTable


@dataclass(eq=False)
class KeyRows:
    """Keys in order of first appearance; key i is row i of `rows`, in the columns it came in.

    known_by: the one column that tells keys apart: the key itself, or text written from several columns.
    """

    names: list[str]
    known_by: str
    _table: KeyTable | None = None
    _rows: list[pa.Table] = field(default_factory=list)

    def ids(self, table: pa.Table) -> np.ndarray:
        """The number of each row's key; of a key that is new, its columns are kept."""
        column = one_chunk(table.column(self.known_by))
        if self._table is None:
            self._table = KeyTable(column.type)
        before = self._table.count
        ids = self._table.encode(column, self.known_by)
        if self._table.count > before:
            _, first = np.unique(ids, return_index=True)
            new = np.sort(first[ids[first] >= before])  # new keys are numbered as they appear
            self._rows.append(table.select(self.names).take(pa.array(new)))
        return ids

    def columns(self, ids: np.ndarray) -> list[pa.ChunkedArray]:
        """The key's columns, of these keys."""
        if len(self._rows) > 1:
            self._rows = [pa.concat_tables(self._rows).combine_chunks()]
        return list(self._rows[0].take(pa.array(ids)).columns)
