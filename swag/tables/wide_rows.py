"""Tables of many columns and few rows, at once.

Arrow makes columns one by one, which takes 2 µs each: of 80 features of one customer, that would be most of the time.
Read from one message of Arrow's own format for transport they take 30 µs together: the head of such a message depends
on the types and the number of rows alone, so it is written once, and then only the numbers in it change.

    message     head: lengths, how many nulls each column has | body: of each column 64 bits of validity, then values

Columns that are there already go into the message as well, where they are words: to put one in front of 80 others makes
a schema of 81 names, which takes 15 µs.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from swag.tables.columns import with_bitmap

MOST_ROWS = 64  # whose validity is one word
WORDS = (pa.int64(), pa.float64())  # types that are written as they are


class Head(NamedTuple):
    """A message without nulls, the word at which their numbers begin, that at which the body does, and its schema."""

    message: np.ndarray
    nulls: int
    body: int
    schema: pa.Schema


class WideRows:
    """Columns of these names and types. It owns the heads of messages, by number of rows and what stands in front.

    Asked of it: a page to write answers on, and a table of what was written, behind columns that are there already.
    slots: which row of the page is that of each column.
    """

    def __init__(self, names: list[str], kinds: list[pa.DataType], slots: list[int]) -> None:
        self.names, self.kinds, self._slots = names, kinds, np.array(slots, np.int64)
        self._as_words = bool(kinds) and all(kind in WORDS for kind in kinds)
        self._heads: dict[tuple[int | str, ...], Head | None] = {}

    def page(self, rows: int) -> tuple[np.ndarray, np.ndarray]:
        """Room for int64 (or the bits of float64), and for which are not null: a row of them for each column."""
        shape = len(self.kinds), rows
        return np.empty(shape, np.int64), np.empty(shape, bool)

    def table(self, front: pa.Table, values: np.ndarray, valid: np.ndarray) -> pa.Table:
        """front, then a column for each row of a page."""
        words = _words(front)
        batch = self._batch(front, words, values, valid) if self._as_words and 0 < front.num_rows <= MOST_ROWS else None
        if batch is None:
            pairs = zip(self._slots, self.kinds, strict=True)
            columns = [_column(values[slot], valid[slot], kind) for slot, kind in pairs]
            return pa.Table.from_arrays([*front.columns, *columns], [*front.column_names, *self.names])
        table = pa.Table.from_batches([batch])
        if not words:
            for i, name in enumerate(front.column_names):
                table = table.add_column(i, name, front.column(i))
        return table

    def _batch(
        self, front: pa.Table, words: list[np.ndarray], values: np.ndarray, valid: np.ndarray
    ) -> pa.RecordBatch | None:
        """The table as read from one message: its head, the words in front, then values and nulls of the page."""
        before, (columns, rows) = len(words), values.shape
        of = (rows, *(each.dtype.char for each in words))
        if of not in self._heads:
            fields = [*zip(front.column_names, front.schema.types, strict=True)] if words else []
            self._heads[of] = _head(pa.schema([*fields, *zip(self.names, self.kinds, strict=True)]), rows)
        head = self._heads[of]
        if head is None:
            return None
        message = head.message.copy()
        content = message[head.body :].reshape(before + columns, 1 + rows)
        for own, each in zip(content, words, strict=False):
            own[1:] = each.view(np.int64)
        content[before:, 1:] = values[self._slots]
        if not valid.all():
            valid = valid[self._slots]
            bits = valid.astype(np.uint64) << np.arange(rows, dtype=np.uint64)
            message[head.nulls + 2 * before : head.nulls + 2 * (before + columns) : 2] = rows - valid.sum(axis=1)
            content[before:, 0] = bits.sum(axis=1, dtype=np.uint64).view(np.int64)
        return pa.ipc.read_record_batch(pa.py_buffer(message), head.schema)


def _words(front: pa.Table) -> list[np.ndarray]:
    """The columns of a table, if all of them are words without nulls; else nothing."""
    found = []
    for column in front.columns:
        if column.type not in WORDS or column.null_count or column.num_chunks != 1:
            return []
        found.append(column.chunk(0).to_numpy())
    return found


def _column(values: np.ndarray, valid: np.ndarray, kind: pa.DataType) -> pa.Array:
    carrier = values.view(np.float64) if pa.types.is_floating(kind) else values
    return with_bitmap(carrier, None if valid.all() else np.packbits(valid, bitorder="little"), kind)


def _head(schema: pa.Schema, rows: int) -> Head | None:
    """None where this Arrow writes messages otherwise than described above."""
    count = len(schema)
    nothing = pa.RecordBatch.from_arrays([pa.nulls(rows, kind) for kind in schema.types], schema=schema)
    written = nothing.serialize().to_pybytes()
    size = 8 * count * (1 + rows)
    head, lengths = written[: len(written) - size], np.full(2 * count, rows, np.int64).tobytes()
    at = head.find(lengths)
    if len(written) % 8 or at < 0 or at % 8 or head.find(lengths, at + 1) >= 0:
        return None
    message, nulls, body = np.frombuffer(written, np.int64).copy(), at // 8 + 1, len(head) // 8
    message[nulls : nulls + 2 * count : 2] = 0
    return Head(message, nulls, body, schema)
