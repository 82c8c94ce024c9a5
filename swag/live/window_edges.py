"""Where windows begin and end among the rows kept of a grouping, and whether all rows that they need are there.

Windows are given as lengths, for many keys at once: all at one time, each at its own, or each key with its own window.
"""

from dataclasses import replace

import numpy as np

from kernels.operators.numbers import EARLIEST, LATEST
from kernels.rings import pairs, timeline
from kernels.rings.timeline import CAPACITY, HEAD, OFFSET, TAIL
from swag.live.store import Store
from swag.query.windows import Reach

Edges = tuple[np.ndarray, np.ndarray]  # lo, hi: one row per key, one column per window


def edges(
    store: Store, keys: np.ndarray, lengths: np.ndarray, at: int
) -> tuple[np.ndarray, np.ndarray, tuple[int, int] | None]:
    """Positions [lo, hi) in the main space of every window for every key; the first (key, window) cut short.

    lengths: of the windows, as `lengths_of` has them.
    """
    count = lengths.shape[0]
    lo, hi = np.empty((2, keys.size, count), np.int64)
    short = timeline.edges(store.main.arena.rings, store.ts.data, store.lost, keys, lengths, at, (lo, hi))
    return lo, hi, None if short < 0 else (int(keys[short // count]), int(short % count))


def as_of(store: Store, reaches: list[Reach], at: int) -> list[Reach]:
    """The same windows at one time, when those that begin with the calendar are as long as any others."""
    if all(reach.since is None for reach in reaches):
        return reaches
    return [reach if reach.since is None else replace(reach, far=at - _begin(store, reach, at)) for reach in reaches]


def _begin(store: Store, reach: Reach, at: int) -> int:
    """The last instant that is not in a window any more."""
    return int(_begins(store, reach, np.array([at]))[0])


def _begins(store: Store, reach: Reach, instants: np.ndarray) -> np.ndarray:
    if reach.since is not None:
        assert store.clock is not None
        return reach.since.starts(instants, store.clock) - 1
    far = min(reach.far, int(LATEST))
    return np.where(instants < EARLIEST + far, EARLIEST, instants - far)


def reaches_forgotten(store: Store, reaches: list[Reach], at: int) -> int | None:
    """The first of these windows that may hold rows of keys that are no longer known, if any does."""
    if store.forgotten == EARLIEST:
        return None
    early = (w for w, reach in enumerate(reaches) if reach.by_time and _begin(store, reach, at) < store.forgotten)
    return next(early, None)


def edges_each(
    store: Store, keys: np.ndarray, reaches: list[Reach], instants: np.ndarray, seen: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """As `edges`, every key at a time of its own. seen: of the rows before these positions, else of all."""
    rings, ts = store.main.arena.rings, store.ts.data
    windows = lengths_of(reaches)
    if seen is None:
        seen = np.empty(keys.size, np.int64)
        timeline.seen_at(rings, ts, keys, instants, seen)
    lo, hi = np.empty((2, keys.size, len(reaches)), np.int64)
    timeline.edges_each(rings, ts, keys, instants, seen, windows, (lo, hi))
    for w, reach in enumerate(reaches):
        if reach.since is not None:
            begins = np.empty(keys.size, np.int64)
            timeline.seen_at(rings, ts, keys, _begins(store, reach, instants), begins)
            lo[:, w] = np.minimum(begins, hi[:, w])
    return lo, hi


def edges_kept(
    store: Store, keys: np.ndarray, reaches: list[Reach], instants: np.ndarray
) -> tuple[np.ndarray, np.ndarray, tuple[int, int] | None]:
    """As `edges_each`, and the first (key, window) whose rows are not all there."""
    lo, hi = edges_each(store, keys, reaches, instants)
    lost, rings = store.lost[keys], store.main.arena.rings[keys]
    past = (instants < store.now) & (lost > EARLIEST)
    if past.any():
        for w, reach in enumerate(reaches):
            if reach.by_time:
                short = past & (_begins(store, reach, instants) < lost)
            else:  # it would begin before the first row kept
                seen = np.empty(keys.size, np.int64)
                timeline.seen_at(store.main.arena.rings, store.ts.data, keys, instants, seen)
                short = past & (seen - reach.far < rings[:, HEAD])
            if short.any():
                return lo, hi, (int(keys[int(np.argmax(short))]), w)
    return lo, hi, None


def edges_of_pairs(
    store: Store, keys: np.ndarray, windows: pairs.PairWindows, instants: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """As `edges_each`, every key with a window of its own. instants: of each, or one for all."""
    lo, hi = np.empty((2, keys.size), np.int64)
    pairs.edges(store.main.arena.rings, store.ts.data, keys, instants, windows, (lo, hi))
    return lo, hi


def times(store: Store, keys: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """The timestamps at positions that are kept."""
    rings = store.main.arena.rings[keys]
    return store.ts.data[rings[:, OFFSET] + (positions & (rings[:, CAPACITY] - 1))]


def has_all_rows(store: Store, n: int, after: int, none_before: bool) -> bool:
    """Do the last n rows of every key count: those after a time, or all it ever had if none was lost?

    none_before: rows up to that time do not count, lost or not.
    """
    count = store.key_count
    rings, lost = store.main.arena.rings[:count], store.lost[:count]
    oldest = np.maximum(rings[:, TAIL] - n, 0)
    slots = rings[:, OFFSET] + (oldest & (rings[:, CAPACITY] - 1))
    there = (oldest >= rings[:, HEAD]) & (rings[:, TAIL] > oldest)
    newer = there.copy()
    newer[there] = store.ts.data[slots[there]] > after
    whole = (lost == EARLIEST) & (not none_before)
    return store.forgotten == EARLIEST and bool((newer & ((oldest > 0) | (lost == EARLIEST)) | whole).all())


def kept_from(store: Store, key: int) -> int:
    """The oldest timestamp kept of a key."""
    rings = store.main.arena.rings
    if rings[key, HEAD] == rings[key, TAIL]:
        return store.now
    return int(store.ts.data[rings[key, 0] + (rings[key, HEAD] & (rings[key, 1] - 1))])


def lengths_of(reaches: list[Reach]) -> np.ndarray:
    """Windows as kernels take them: by_time, far, near."""
    most = int(LATEST)
    rows = [(reach.by_time, min(reach.far, most), min(reach.near, most)) for reach in reaches]
    return np.array(rows, np.int64).reshape(len(reaches), 3)
