"""A detector's memory of some keys as a table, and back: what a shard logs of the keys that a trigger touched.

    key | state: the bytes of what is remembered of it | frame, gap: the bytes of its open frames, if it has any

A later record of a key replaces an earlier one. A key of which nothing is open is as one that never was: its record
only says that earlier ones are no longer true, and goes where there are none.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from frames.finding.core import DetectorCore
from frames.finding.key_memory import KeyMemory, remember, remembered
from swag.tables.columns import one_chunk

NO_KEYS = np.zeros(0, np.int64)


def record(core: DetectorCore, ids: np.ndarray) -> pa.Table:
    """What is remembered of these keys."""
    memory = remembered(core, ids)
    columns: dict[str, Any] = {} if core.keys is None else {"key": core.keys.column(ids)}
    columns["state"] = _packed(memory.of_keys)
    for name, (has, arrays) in memory.frames.items():
        place = np.where(has, np.cumsum(has) - 1, 0)
        columns[name] = _packed(arrays).take(pa.array(place, mask=~has))
    return pa.table(columns)


def restore(core: DetectorCore, table: pa.Table) -> None:
    """Of these keys is remembered what the table says, and nothing else."""
    ids = np.zeros(table.num_rows, np.int64)
    if core.keys is not None:
        ids = core.keys.encode(table.column("key"), core.key or "key")
    like, frames = remembered(core, NO_KEYS), {}
    for name, (_, arrays) in like.frames.items():
        column = table.column(name)
        has = np.asarray(column.is_valid())
        frames[name] = has, _unpacked(column.filter(pa.array(has)), arrays)
    remember(core, ids, KeyMemory(_unpacked(table.column("state"), like.of_keys), frames))


def newest(table: pa.Table) -> pa.Table:
    """The last record of every key."""
    if "key" not in table.column_names:
        return table.slice(table.num_rows - 1)
    numbered = table.append_column("row", pa.array(np.arange(table.num_rows)))
    last = numbered.group_by("key").aggregate([("row", "max")]).column("row_max")
    return table.take(pa.array(np.sort(np.asarray(last))))


def still_true(core: DetectorCore, table: pa.Table) -> pa.Table:
    """The last record of every key, where there are no earlier ones: without keys of which nothing is open."""
    table = newest(table)
    if "key" not in table.column_names:
        return table
    assert core.scan is not None
    memory = _unpacked(table.column("state"), remembered(core, NO_KEYS).of_keys)
    return table.filter(pa.array(~core.scan.at_rest(memory)))


def _packed(arrays: list[np.ndarray]) -> pa.Array:
    """Rows of several arrays side by side, as bytes of one length."""
    wide = np.empty(arrays[0].shape[0], _row(arrays))
    for name, array in zip(wide.dtype.names or (), arrays, strict=True):
        wide[name] = array
    return pa.Array.from_buffers(pa.binary(wide.itemsize), wide.size, [None, pa.py_buffer(wide.view(np.uint8))])


def _unpacked(column: pa.ChunkedArray, like: list[np.ndarray]) -> list[np.ndarray]:
    """Rows of several arrays from their bytes. like: arrays of the same types and shapes but for the rows."""
    packed = one_chunk(column)
    wide = np.frombuffer(packed.buffers()[1], _row(like), packed.offset + len(packed))[packed.offset :]
    return [np.ascontiguousarray(wide[name]) for name in wide.dtype.names or ()]


def _row(arrays: list[np.ndarray]) -> np.dtype[Any]:
    return np.dtype([(str(i), array.dtype, array.shape[1:]) for i, array in enumerate(arrays)])
