"""Tables of many columns and few rows, at once.

Arrow makes columns one by one, which takes 2 µs each: of 80 features of one customer, that would be most of the time.
Read from one message of Arrow's own format for transport they take 30 µs together: the head of such a message depends
on the types and the number of rows alone, so it is written once, and then only the numbers in it change.

    message     head: lengths, how many nulls each column has | body: of each column 64 bits of validity, then values

Columns that are there already go into the message as well, where they are words: to put one in front of 80 others makes
a schema of 81 names, which takes 15 µs.
"""

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kernels.windows import wide
from swag.errors import BadEvents
from swag.tables.columns import as_table, room, with_bitmap
from swag.tables.few_words import FEW_ROWS, TYPES, WORDS, few_words, table_of_words


class Head(NamedTuple):
    """A message without nulls, the word at which their numbers begin, that at which the body does, and its schema."""

    message: np.ndarray
    nulls: int
    body: int
    schema: pa.Schema


class Entities:
    """The keys whose features are asked for, and the columns beside those, which stand in front of them.

    It owns these columns: as words if they are few and plain, else as a table. Asked of it: their names, how many
    `rows` they have, some `columns`, the `words`, and the `table` of them all.
    """

    def __init__(self, given: Any) -> None:
        self._few = few_words(given)
        self._table = None if self._few else as_table(given, what="entities are")
        self.names: list[str] = list(self._few) if self._table is None else self._table.column_names
        if len(set(self.names)) < len(self.names):
            raise BadEvents(f"two columns of the entities have one name: {', '.join(self.names)}.", "rename one")
        self.words: list[np.ndarray] = list(self._few.values()) if self._table is None else _words(self._table)
        self.rows: int = self.words[0].size if self._table is None else self._table.num_rows

    @cached_property
    def table(self) -> pa.Table:
        return table_of_words(self._few) if self._table is None else self._table

    def columns(self, names: tuple[str, ...]) -> list[Any]:
        """Some of them, as arrays or as Arrow has them."""
        return [self._few[name] if self._table is None else self._table.column(name) for name in names]


class Page(NamedTuple):
    """Answers, a slot for each query and a row for each key: words, and which of them are not null."""

    values: np.ndarray
    valid: np.ndarray

    def of(self, slots: slice) -> "Page":
        """Some of its slots."""
        return Page(self.values[slots], self.valid[slots])


class WideRows:
    """Columns of these names and types. It owns the heads of messages, by number of rows and what stands in front.

    Asked of it: a page to write answers on, and a table of what was written, behind columns that are there already.
    slots: which row of the page is that of each column.
    """

    def __init__(self, names: list[str], kinds: list[pa.DataType], slots: list[int]) -> None:
        self.names, self.kinds, self._slots = names, kinds, np.array(slots, np.int64)
        self._words = [kind in WORDS for kind in kinds]
        self._as_words = bool(kinds) and all(self._words)
        self._heads: dict[tuple[int | str, ...], Head | None] = {}

    def page(self, rows: int) -> Page:
        """Room for int64 (or the bits of float64), and for which are not null: a row of them for each column."""
        count = len(self.kinds)
        return Page(
            room(count * rows, np.int64).reshape(count, rows), room(count * rows, np.bool_).reshape(count, rows)
        )

    def table(self, front: Entities, page: Page) -> pa.Table:
        """front, then a column for each row of a page."""
        message = self._message(front, page) if self._as_words and 0 < front.rows <= FEW_ROWS else None
        if message is None:
            columns = self._columns(page)
            return pa.Table.from_arrays([*front.table.columns, *columns], [*front.names, *self.names])
        table = pa.Table.from_batches([message])
        if not front.words:
            for i, name in enumerate(front.names):
                table = table.add_column(i, name, front.table.column(i))
        return table

    def _message(self, front: Entities, page: Page) -> pa.RecordBatch | None:
        """The table as read from one message: its head, the words in front, then values and nulls of the page."""
        words, rows = front.words, front.rows
        before, columns = len(words), len(self.kinds)
        of = (rows, *(each.dtype.char for each in words))
        if of not in self._heads:
            fields = [(name, TYPES[each.dtype]) for name, each in zip(front.names, words, strict=bool(words))]
            self._heads[of] = _head(pa.schema([*fields, *zip(self.names, self.kinds, strict=True)]), rows)
        head = self._heads[of]
        if head is None:
            return None
        message = head.message.copy()
        body = message[head.body :].reshape(before + columns, 1 + rows)
        for own, each in zip(body, words, strict=False):
            own[1:] = each.view(np.int64)
        wide.pack((page.values, page.valid), self._slots, body[before:], message[head.nulls + 2 * before :])
        return pa.ipc.read_record_batch(pa.py_buffer(message), head.schema)

    def _columns(self, page: Page) -> list[pa.Array]:
        """The columns one by one, each with the bits of its nulls; words lie where they were written."""
        count, rows = page.valid.shape
        bits, nulls = np.zeros((count, (rows + 63) >> 6 << 3), np.uint8), np.empty(count, np.int64)
        wide.bitmaps(page.valid, bits, nulls)
        values, bitmaps, size, width = pa.py_buffer(page.values), pa.py_buffer(bits), 8 * rows, bits.shape[1]
        found = []
        for slot, kind, is_word in zip(self._slots.tolist(), self.kinds, self._words, strict=True):
            if is_word:
                bitmap = bitmaps.slice(slot * width, width) if nulls[slot] else None
                buffers = [bitmap, values.slice(slot * size, size)]
                found.append(pa.Array.from_buffers(kind, rows, buffers, int(nulls[slot])))
            else:
                carrier = page.values[slot].view(np.float64 if pa.types.is_floating(kind) else np.int64)
                found.append(with_bitmap(carrier, bits[slot] if nulls[slot] else None, kind))
        return found


def _words(table: pa.Table) -> list[np.ndarray]:
    """The columns of a table, if all of them are words without nulls; else nothing."""
    found = []
    for column in table.columns:
        if column.type not in WORDS or column.null_count or column.num_chunks != 1:
            return []
        found.append(column.chunk(0).to_numpy())
    return found


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
