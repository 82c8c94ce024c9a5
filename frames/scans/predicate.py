"""Predicates of events, as columns that are true or false: what kernels take of them is a byte per event."""

import numpy as np
import pyarrow as pa

from swag.errors import BadType
from swag.tables.columns import Field, column, decoded, one_chunk

TRUE = np.uint8(1), np.uint8(1)  # the interval that what is true lies in


def truth(table: pa.Table, name: str, asked_by: str) -> Field:
    """1 where the column is true, 0 where it is false or null; what is neither true nor false is refused."""
    array = decoded(one_chunk(column(table, name, f"{asked_by} reads")))
    if pa.types.is_null(array.type):
        array = array.cast(pa.bool_())
    if not pa.types.is_boolean(array.type):
        raise BadType(
            f"{asked_by} takes what is true or false, but {name} is {array.type}.",
            f"compare it: {name} > 0, {name} = 'a', {name} IS NOT NULL",
        )
    valid = np.asarray(array.is_valid()) if array.null_count else None
    array = array if valid is None else array.fill_null(False)
    return Field(np.asarray(array.cast(pa.uint8())), valid, array.type)
