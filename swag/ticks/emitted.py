"""The table of ticks that an engine hands out."""

from typing import TYPE_CHECKING

import pyarrow as pa

from swag.query.groupings import By
from swag.tables.answers import answers_table, own_name

if TYPE_CHECKING:
    from swag.ticks.emission import Emission


def emitted_table(emissions: "dict[By, Emission]", name: str | None, by_of: By | None = None) -> pa.Table:
    """Table(query, tick, ts, [keys], value) of the ticks, of all queries or of one, that nobody has fetched yet.

    emissions: by the key columns of their groupings; they have one ts, and one time. What waits is let go of once the
    table is there: where one column can not hold all values, nothing is lost.
    """
    for emission in emissions.values():
        emission.raise_error()
    some = next(iter(emissions.values()))
    clock = some.core.time.clock
    kinds = {query: kind for each in emissions.values() for query, kind in each.kinds.items() if name in (None, query)}
    types = {by: kinds for each in emissions.values() for by, kinds in each.key_types.items()}
    parts: dict[By, list[tuple[str, pa.Table]]] = {by: [] for by in types}
    for emission in emissions.values():
        for query, ticks, by in emission.waiting(name):
            parts.setdefault(by, []).append((query, ticks))
    if name is not None:  # which is of one grouping
        parts = {by: some for by, some in parts.items() if some} or {asked: [] for asked in (by_of or (),)}
    types = {by: types.get(by, [pa.null()] * len(by)) for by in parts}
    tick = own_name("tick", some.ts, *(column for by in parts for column in by))
    front = [(tick, pa.int64()), (some.ts, clock.type if clock else pa.int64())]
    table = answers_table(parts, types, front, kinds, "emitted")
    for emission in emissions.values():
        emission.fetched(name)
    return table
