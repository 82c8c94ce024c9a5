"""The table of ticks that an engine hands out."""

from typing import TYPE_CHECKING

import pyarrow as pa

from swag.query.groupings import By
from swag.tables.answers import answers_table, own_name

if TYPE_CHECKING:
    from swag.ticks.emission import Emission


def emitted_table(emissions: "dict[By, Emission]", name: str | None) -> pa.Table:
    """Table(query, tick, ts, [keys], value) of the ticks, of all queries or of one, that nobody has fetched yet.

    emissions: by the key columns of their groupings; they have one ts, and one time. What waits is let go of once the
    table is there: where one column can not hold all values, nothing is lost.
    """
    for emission in emissions.values():
        emission.raise_error()
    some = next(iter(emissions.values()))
    clock = some.core.time.clock
    kinds = {query: kind for each in emissions.values() for query, kind in each.kinds.items() if name in (None, query)}
    parts = {by: [(query, ticks) for query, ticks in each.waiting(name)] for by, each in emissions.items()}
    types = {by: each.core.key_types for by, each in emissions.items()}
    tick = own_name("tick", some.ts, *(column for by in emissions for column in by))
    front = [(tick, pa.int64()), (some.ts, clock.type if clock else pa.int64())]
    table = answers_table(parts, types, front, kinds, "emitted")
    for emission in emissions.values():
        emission.fetched(name)
    return table
