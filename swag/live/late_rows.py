"""Late rows in their place: a batch of which some rows belong before rows that are here already.

    Grouping.apply > displacing     how many rows each key's part of the batch displaces; nobody's, as a rule
                   > put_in_place   times, columns and ranks of every space are merged from the first displaced row on
                   > Plan.update    structures are redone from there on (Structure.redo)
                   > Filters.redo   indexes over keys: those of keys with displaced rows are made again

What it costs are the rows that were displaced, once for a batch, however many of its rows were late.
"""

import numpy as np

from kernels.rings import late
from kernels.rings.timeline import TAIL
from swag.live.arena import Batch, NewRows
from swag.live.space import Mask, Space
from swag.live.store import EVERY_EVENT, CheckedRows, Store, values_of
from swag.tables.columns import fixed


def displacing(store: Store, rows: CheckedRows, batch: Batch) -> np.ndarray | None:
    """How many rows each run of a batch displaces; None if none does.

    Room is made first: what that lets go of, as time has gone on with this batch, is displaced no more.
    """
    store.main.arena.make_room(batch.keys, batch.counts, store.expire)
    displaced = np.empty(batch.keys.size, np.int64)
    rings, ts = store.main.arena.rings, fixed(rows.ts)
    total = late.count_displaced(ts, tuple(batch), rings, store.ts.data, store.latest, displaced)
    return displaced if total else None


def put_in_place(store: Store, rows: CheckedRows, batch: Batch, displaced: np.ndarray) -> dict[Mask, NewRows]:
    """As Store.append, of a batch that displaces rows, for which there is room. Returns, for every space, what
    structures have to redo."""
    store.events += rows.ts.size
    arena, counts = store.main.arena, batch.counts
    arena.rings[batch.keys, TAIL] += counts
    ends = np.concatenate([[0], np.cumsum(displaced + counts)])
    merge = late.Merge(displaced, ends, np.empty(ends[-1], np.bool_))
    late.merge_times(fixed(rows.ts), tuple(batch), arena.rings, store.ts.data, merge)
    newest = rows.ts[batch.order[batch.starts[1:] - 1]]
    store.latest[batch.keys] = np.maximum(store.latest[batch.keys], newest)
    redo = {EVERY_EVENT: _merge_columns(store.main, rows, batch, merge)}
    for mask, space in store.spaces.items():
        if space is not store.main:
            redo[mask] = _put_inside(store, space, rows, batch, merge)
    return redo


def _put_inside(store: Store, space: Space, rows: CheckedRows, batch: Batch, merge: late.Merge) -> NewRows:
    """The rows that count in a masked space, by where they went among all."""
    chosen = rows.chosen[space.mask]
    counted = np.ones(rows.ts.size, np.bool_) if chosen is None else chosen
    inside = late.Merge(np.empty_like(merge.displaced), merge.ends, np.empty_like(merge.fresh))
    main, arena = store.main.arena, space.arena
    assert space.rank is not None
    late.merge_ranks(counted, tuple(batch), main.rings, space.rank.data, merge, arena.rings, inside)
    own = batch.only(counted)
    arena.make_room(own.keys, own.counts, space.expire_with_parent)
    arena.rings[own.keys, TAIL] += own.counts
    return _merge_columns(space, rows, own, inside)


def _merge_columns(space: Space, rows: CheckedRows, batch: Batch, merge: late.Merge) -> NewRows:
    for name, column in space.raw.items():
        late.merge_column(fixed(values_of(name, rows.fields)), tuple(batch), space.arena.rings, merge, column.data)
    counts = batch.counts + merge.displaced
    return NewRows(batch.keys, counts, int(counts.sum()), merge.displaced)
