"""The table of ticks that an engine hands out."""

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from swag.emission import Emission


def emitted_table(emission: "Emission", ts: str, key: str | None) -> pa.Table:
    """Table(query, tick, ts, [key], value) of the ticks that nobody has fetched yet."""
    parts, store = emission.emitted(), emission.store
    kind = common_type([*emission.kinds.values(), *(ticks.schema.field("value").type for _, ticks in parts)])
    schema = [("query", pa.string()), ("tick", pa.int64()), (ts, store.clock.type if store.clock else pa.int64())]
    schema += [] if key is None else [(key, store.keys.type if store.keys else pa.null())]
    tables = [pa.schema([*schema, ("value", kind)]).empty_table()]
    for name, ticks in parts:
        query = pa.DictionaryArray.from_arrays(np.zeros(ticks.num_rows, np.int32), [name]).cast(pa.string())
        value = ticks.column("value").cast(kind, safe=False)
        tables.append(ticks.drop_columns(["value"]).add_column(0, "query", query).append_column("value", value))
    return pa.concat_tables(tables, promote_options="permissive")


def common_type(kinds: list[pa.DataType]) -> pa.DataType:
    """The type of a column for answers of all of them."""
    distinct = {kind for kind in kinds if not pa.types.is_null(kind)}
    if len(distinct) <= 1:
        return distinct.pop() if distinct else pa.float64()
    if all(pa.types.is_integer(kind) for kind in distinct):
        return pa.int64()
    if all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in distinct):
        return pa.float64()
    return pa.string()
