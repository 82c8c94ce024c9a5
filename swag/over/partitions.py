"""PARTITION BY as keys: columns as they are, where they have no nulls; else numbers, as null is a value here."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swag.tables.columns import column, one_chunk
from swag.tables.expressions.expression import RowExpression, compiled, values
from swag.tables.keys import KeyTable

NUMBERED = "partition· "  # how columns of such numbers begin


class Partitions:
    """The key columns of partitions. It owns the table that they are added to."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self._names: dict[str, str] = {}

    def columns(self, partition: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(map(self._column, partition)))

    def _column(self, text: str) -> str:
        if text not in self._names:
            self._names[text] = self._found(text)
        return self._names[text]

    def _found(self, text: str) -> str:
        """The name of the key column for an item of PARTITION BY: its own, or one of numbers, added to the table."""
        expression = compiled(text)
        for name in sorted(expression.columns):
            column(self.table, name, "PARTITION BY reads")
        found = self._values(expression)
        if expression.is_column and not found.null_count:
            return next(iter(expression.columns))
        name = f"{NUMBERED}{text}"
        self.table = self.table.append_column(name, numbered(one_chunk(found), text))
        return name

    def _values(self, expression: RowExpression) -> pa.ChunkedArray | pa.Array:
        if expression.is_column:
            return self.table.column(next(iter(expression.columns)))
        return values(expression, self.table, f"PARTITION BY {expression.text}")


def numbered(found: pa.Array, name: str) -> pa.Array:
    """A number for each value, the same for equal ones; null is 0."""
    if pa.types.is_null(found.type):
        return pa.array(np.zeros(len(found), np.int64))
    there = np.asarray(pc.is_valid(found))
    numbers = np.zeros(len(found), np.int64)
    numbers[there] = KeyTable(found.type, name).encode(pa.chunked_array([found.drop_null()]), name) + 1
    return pa.array(numbers)
