"""The table of ticks that an engine hands out."""

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from swag.tables.answers import common_type, of_common_type, own_name

if TYPE_CHECKING:
    from swag.ticks.emission import Emission


def emitted_table(emission: "Emission", name: str | None) -> pa.Table:
    """Table(query, tick, ts, [key], value) of the ticks, of all queries or of one, that nobody has fetched yet.

    They are let go of once the table is there: where one column can not hold all values, nothing is lost.
    """
    emission.raise_error()
    parts = emission.waiting(name)
    kinds = {query: kind for query, kind in emission.kinds.items() if name in (None, query)}
    kind = common_type(kinds | {query: ticks.schema.types[-1] for query, ticks in parts}, "emitted")
    tables = [_nothing(emission, kind)]
    for query, ticks in parts:
        names = pa.DictionaryArray.from_arrays(np.zeros(ticks.num_rows, np.int32), [query]).cast(pa.string())
        value = of_common_type(query, ticks.column(ticks.num_columns - 1), kind, "emitted")
        columns = [names, *ticks.columns[:-1], value]
        tables.append(pa.table(columns, names=tables[0].column_names))
    table = pa.concat_tables(tables, promote_options="permissive")
    emission.fetched(name)
    return table


def _nothing(emission: "Emission", kind: pa.DataType) -> pa.Table:
    ts, key, clock, keys = emission.ts, emission.key, emission.core.time.clock, emission.core.store.keys
    columns = [(own_name("query", ts, key), pa.string()), (own_name("tick", ts, key), pa.int64())]
    columns += [(ts, clock.type if clock else pa.int64())]
    columns += [] if key is None else [(key, keys.type if keys else pa.null())]
    return pa.schema([*columns, (own_name("value", ts, key), kind)]).empty_table()
