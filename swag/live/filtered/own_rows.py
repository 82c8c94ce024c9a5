"""Rows of their own for thresholds that shared those of all: what is above the bound of each is written down for it.

A batch has come, say, whose column is of another type, and can not be sorted among the rows that are here.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from kernels.rings.timeline import scatter
from swag.live.filtered.substreams import Substreams
from swag.live.space import EACH, Mask
from swag.live.store import Store
from swag.tables.columns import fixed


def give_rows(
    store: Store, moves: Mapping[Mask, tuple[Mask, Any]], renumber: Callable[[dict[Mask, np.ndarray]], None]
) -> None:
    """moves: to each mask that has no rows yet from one that shares them, whose rows are above a number. renumber: told
    where the rings of other filters lie then."""
    for mask in moves:
        store.space(mask)
    for home in {mask.home for mask in moves}:
        space = store.spaces[home]
        assert isinstance(space, Substreams)
        moved = space.keep_filters(space.filters.keys())
        renumber({} if moved is None else {home: moved})
    for mask, (shared, bound) in moves.items():
        _give(store, mask, shared, bound)


def _give(store: Store, mask: Mask, shared: Mask, bound: Any) -> None:
    """The rows above a bound, with all columns that are beside the one that is compared."""
    source, space = store.spaces[shared.home], store.spaces[mask.home]
    assert isinstance(space, Substreams)
    ids, positions, slots = source.kept_rows(shared, np.arange(store.key_count))
    rows = np.flatnonzero(source.raw[shared.compared].data[slots] > bound)
    batch = space.take(rows, np.full(rows.size, space.filters[mask.where or EACH]), ids)
    own = space.write(batch, positions)
    for name, column in source.raw.items():
        data = space.add_raw(name, column.data.dtype.type).data
        scatter(fixed(column.data[slots]), batch.order, own, data)
