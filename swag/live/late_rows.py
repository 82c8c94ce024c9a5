"""Late rows in their place: a batch of which some rows belong before rows that are here already.

    Grouping.apply > displacing     how many rows each key's part of the batch displaces; nobody's, as a rule
                   > put_in_place   times, columns and ranks of every space are merged from the first displaced row on
                   > Plan.update    structures are redone from there on (Structure.redo)
                   > Filters.redo   indexes over keys: those of keys with displaced rows are made again

What it costs are the rows that were displaced, once for a batch, however many of its rows were late.
"""

from typing import NamedTuple

import numpy as np

from kernels.rings import late
from kernels.rings.timeline import CAPACITY, HEAD, OFFSET, TAIL
from swag.live.arena import Batch, NewRows
from swag.live.filtered.checked_rows import CheckedRows
from swag.live.filtered.substreams import Substreams
from swag.live.space import Mask, Space, values_of
from swag.live.store import EVERY_EVENT, Store
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
    for space in store.ranked:
        redo[space.mask] = _put_inside(store, space, rows, batch, merge)
    if store.families:
        moved = Moved.by(store, rows, batch, merge)
        redo |= {space.mask: _put_filtered(store, space, rows, batch, moved) for space in store.families}
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


class Moved(NamedTuple):
    """Where the rows of a batch are in the main space, and where those are that they displaced there: for each key the
    first such position (-1: there is none), where its rows begin in `places`, and these."""

    positions: np.ndarray
    first: np.ndarray
    begins: np.ndarray
    places: np.ndarray

    @classmethod
    def by(cls, store: Store, rows: CheckedRows, batch: Batch, merge: late.Merge) -> "Moved":
        rings, displaced = store.main.arena.rings, merge.displaced
        positions, places = np.empty(rows.ts.size, np.int64), np.empty(int(displaced.sum()), np.int64)
        late.places(tuple(batch), rings, merge, positions, places)
        first, begins = np.full(rings.shape[0], -1), np.zeros(rings.shape[0], np.int64)
        some = displaced > 0
        first[batch.keys[some]] = (rings[batch.keys, TAIL] - batch.counts - displaced)[some]
        begins[batch.keys] = np.cumsum(displaced) - displaced
        return cls(positions, first, begins, places)


def _put_filtered(store: Store, space: Substreams, rows: CheckedRows, batch: Batch, moved: Moved) -> NewRows:
    """The rows that filters let pass, by where they went among all: their positions there are what they are merged by.
    Of pairs that got none, positions have moved on, and nothing else has changed."""
    space.follow_displaced(moved.first, moved.begins, moved.places)
    own = store.filtered(space, rows, batch, moved.positions).without_empty()
    rings, positions = space.arena.rings, fixed(moved.positions)
    ring = rings[own.keys]
    last = np.full(rings.shape[0], -1)
    slots = ring[:, OFFSET] + ((ring[:, TAIL] - 1) & (ring[:, CAPACITY] - 1))
    held = ring[:, TAIL] > ring[:, HEAD]
    last[own.keys[held]] = space.position.data[slots[held]]
    displaced = np.empty(own.keys.size, np.int64)
    late.count_displaced(positions, tuple(own), rings, space.position.data, last, displaced)
    rings[own.keys, TAIL] += own.counts
    ends = np.concatenate([[0], np.cumsum(displaced + own.counts)])
    merge = late.Merge(displaced, ends, np.empty(ends[-1], np.bool_))
    late.merge_times(positions, tuple(own), rings, space.position.data, merge)
    return _merge_columns(space, rows, own, merge)


def _merge_columns(space: Space, rows: CheckedRows, batch: Batch, merge: late.Merge) -> NewRows:
    for name, column in space.raw.items():
        late.merge_column(fixed(values_of(name, rows.fields)), tuple(batch), space.arena.rings, merge, column.data)
    counts = batch.counts + merge.displaced
    return NewRows(batch.keys, counts, int(counts.sum()), merge.displaced)
