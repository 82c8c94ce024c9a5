"""Tables of many columns and few rows, at once.

Arrow makes columns one by one, which takes 2 µs each: of 80 features of one customer, that would be most of the time.
Read from one message of Arrow's own format for transport they take 30 µs together: the head of such a message depends
on the types and the number of rows alone, so it is written once, and then only the numbers in it change.

    message     head: lengths, how many nulls each column has | body: of each column 64 bits of validity, then values
"""

import numpy as np
import pyarrow as pa

from swag.tables.columns import with_bitmap

MOST_ROWS = 64  # whose validity is one word
WORDS = (pa.int64(), pa.float64())  # types that are written as they are
Head = tuple[np.ndarray, int, int]  # a message of nulls, the word at which numbers of nulls begin, that of the body


class WideRows:
    """Columns of these names and types. It owns the heads of messages, by number of rows.

    Asked of it: a table of some rows, behind columns that are there already.
    """

    def __init__(self, names: list[str], kinds: list[pa.DataType]) -> None:
        self.names, self.kinds = names, kinds
        self._schema = pa.schema(list(zip(names, kinds, strict=True)))
        self._as_words = bool(kinds) and all(kind in WORDS for kind in kinds)
        self._heads: dict[int, Head | None] = {}

    def table(self, front: pa.Table, values: np.ndarray, valid: np.ndarray) -> pa.Table:
        """front, then a column for each row of `values`: int64, or the bits of float64. valid: which are not null."""
        batch = self._batch(values, valid) if self._as_words and 0 < front.num_rows <= MOST_ROWS else None
        if batch is None:
            columns = [_column(*each) for each in zip(values, valid, self.kinds, strict=True)]
            return pa.Table.from_arrays([*front.columns, *columns], [*front.column_names, *self.names])
        table = pa.Table.from_batches([batch])
        for i, name in enumerate(front.column_names):
            table = table.add_column(i, name, front.column(i))
        return table

    def _batch(self, values: np.ndarray, valid: np.ndarray) -> pa.RecordBatch | None:
        columns, rows = values.shape
        if rows not in self._heads:
            self._heads[rows] = _head(self.kinds, rows)
        head = self._heads[rows]
        if head is None:
            return None
        message, nulls, body = head[0].copy(), head[1], head[2]
        bits = valid.astype(np.uint64) << np.arange(rows, dtype=np.uint64)
        message[nulls : nulls + 2 * columns : 2] = rows - valid.sum(axis=1)
        content = message[body:].reshape(columns, 1 + rows)
        content[:, 0] = bits.sum(axis=1, dtype=np.uint64).view(np.int64)
        content[:, 1:] = values
        return pa.ipc.read_record_batch(pa.py_buffer(message), self._schema)


def _column(values: np.ndarray, valid: np.ndarray, kind: pa.DataType) -> pa.Array:
    carrier = values.view(np.float64) if pa.types.is_floating(kind) else values
    return with_bitmap(carrier, None if valid.all() else np.packbits(valid, bitorder="little"), kind)


def _head(kinds: list[pa.DataType], rows: int) -> Head | None:
    """None where this Arrow writes messages otherwise than described above."""
    nothing = pa.RecordBatch.from_arrays([pa.nulls(rows, kind) for kind in kinds], [str(i) for i in range(len(kinds))])
    written = nothing.serialize().to_pybytes()
    size = 8 * len(kinds) * (1 + rows)
    head, lengths = written[: len(written) - size], np.full(2 * len(kinds), rows, np.int64).tobytes()
    at = head.find(lengths)
    if len(written) % 8 or at < 0 or at % 8 or head.find(lengths, at + 1) >= 0:
        return None
    return np.frombuffer(written, np.int64).copy(), at // 8 + 1, len(head) // 8
