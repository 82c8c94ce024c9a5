"""Columns that are no numbers, as an engine keeps them: `first` and `last` of text need only tell values apart.

Every value is kept once and rows hold its number. Values that no row holds any more are forgotten now and then, so that
a column of order numbers, each seen once, takes no more memory than the rows that are kept.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from swag.live.space import Space
from swag.tables.columns import Field, column, is_discrete, is_number, one_chunk
from swag.tables.keys import KeyTable, is_groupable

MANY = 4096  # values that are not worth looking through


class Words:
    def __init__(self) -> None:
        self.tables: dict[str, KeyTable] = {}

    def needed(self, kind: pa.DataType) -> bool:
        """Is it a type of values that kernels do not know, but that can be told apart?"""
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        return not is_number(kind) and not is_discrete(kind) and is_groupable(kind)

    def field(self, table: pa.Table, name: str, asked_by: str) -> Field:
        """The numbers of a column's values; new values get the next ones."""
        array = one_chunk(column(table, name, asked_by))
        words = self.tables.setdefault(name, KeyTable(array.type))
        if array.null_count == 0:
            return Field(words.encode(array, name), None, words.type)
        valid = np.asarray(array.is_valid())
        numbers = np.zeros(len(array), np.int64)
        numbers[valid] = words.encode(array.drop_null(), name)
        return Field(numbers, valid, words.type)

    def values(self, name: str, numbers: np.ndarray, valid: np.ndarray) -> pa.Array:
        """Back from numbers to values."""
        words = self.tables[name]
        if words.count == 0:
            return pa.nulls(numbers.size, words.type)
        return words.column().take(pa.array(numbers, mask=~valid))

    def tidy(self, spaces: Iterable[Space]) -> None:
        """Forget the values that no row holds, where they are most of them."""
        for name, words in self.tables.items():
            if words.count <= MANY:
                continue
            columns = [space.raw[name].data for space in spaces if name in space.raw]
            if words.count > 2 * sum(data.size for data in columns):
                used = np.unique(np.concatenate(columns)) if columns else np.zeros(0, np.int64)
                self.tables[name] = KeyTable(words.type)
                renumbered = np.zeros(words.count, np.int64)
                renumbered[used] = self.tables[name].encode(words.column(used), name)
                for data in columns:
                    data[:] = renumbered[data]

    @property
    def bytes(self) -> int:
        return sum(table.bytes for table in self.tables.values())

    def state(self) -> dict[str, dict[str, np.ndarray]]:
        return {name: table.state() for name, table in self.tables.items()}

    def restore(self, types: dict[str, pa.DataType], saved: dict[str, dict[str, Any]]) -> None:
        self.tables = {name: KeyTable.restore(types[name], arrays) for name, arrays in saved.items()}
