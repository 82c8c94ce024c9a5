"""In a worker: rows that come sorted by (key, time), as runs of equal keys. No hash table: neighbours are compared."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swag.errors import BadEvents


def run_starts(columns: list[pa.Array], rows: int) -> np.ndarray:
    """Where a key differs from the one before it (row 0 does)."""
    changed = np.zeros(rows, bool)
    changed[:1] = True
    for column in columns:
        for leaf in leaves(column):
            changed[1:] |= differs(leaf)
    return np.flatnonzero(changed)


def leaves(column: pa.Array) -> Iterator[pa.Array]:
    """A column, or those a struct is made of."""
    if pa.types.is_struct(column.type):
        for each in column.flatten():
            yield from leaves(each)
    else:
        yield column


def differs(column: pa.Array) -> np.ndarray:
    """column[i + 1] != column[i], where null is null and NaN is NaN."""
    if pa.types.is_floating(column.type):
        values = np.asarray(column.fill_null(0))
        unequal = (values[1:] != values[:-1]) & ~(np.isnan(values[1:]) & np.isnan(values[:-1]))
    else:
        unequal = np.asarray(pc.fill_null(pc.not_equal(column[1:], column[:-1]), False))
    if column.null_count:
        missing = np.asarray(column.is_null())
        unequal = unequal | (missing[1:] != missing[:-1])
    return unequal


def refuse_nulls(table: pa.Table, keys: dict[str, str], ts: str) -> pa.Table:
    """Rows of which each has its key and its time, t. keys: our names of the key's columns to the user's."""
    for ours, name, what in (*((ours, name, "key") for ours, name in keys.items()), ("t", ts, "timestamp")):
        if table.column(ours).null_count:
            raise BadEvents(
                f'a row has no {what}: "{name}" is null.', f'drop such rows: df.where("{name} IS NOT NULL")'
            )
    return table
