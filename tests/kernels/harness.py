"""Streams for kernel tests: batches through a Store, as the engine applies them, next to plain lists of all that came.

    stream = Stream(plan, values)
    stream.structures.append(Dyadic(stream.space, part))
    stream.append(batch)                 expires, relocates, writes, then brings every structure up to date
    stream.rows[k][lo:hi]                what a window [lo, hi) of key k holds

A plan is numbers that Hypothesis draws and shrinks; everything else follows from its seed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numba
import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from kernels.rings import timeline
from kernels.rings.timeline import CAPACITY, HEAD, OFFSET, TAIL
from swag.live import window_edges
from swag.live.arena import Arena
from swag.live.filtered.checked_rows import CheckedRows
from swag.live.space import Mask, Space
from swag.live.store import EVERY_EVENT, Retention, Store
from swag.live.structures.intervals import Structure
from swag.live.time import Time
from swag.live.vocabulary.dictionary import Dictionary
from swag.query.windows import Depth, Reach

JIT = not numba.config.DISABLE_JIT
COUNTED = Mask(required=frozenset({"counted"}))  # the mask of a space in which not every row counts
COLUMNS = ("x", "y")
REGISTERED = [Reach(False, 1, 0), Reach(False, 7, 0), Reach(False, 40, 3), Reach(True, 9, 0), Reach(True, 30, 11)]
FEWER = settings(max_examples=max(5, settings.default.max_examples // 12))  # for what is tried with many structures


@dataclass(frozen=True)
class Batch:
    """rows more, after which at least `keep` of each key are kept (and those of the last `age`)."""

    rows: int
    keep: int
    age: int | None


@dataclass(frozen=True)
class Plan:
    """A stream to be: reproducible from its numbers, and small when Hypothesis has shrunk it."""

    keys: int
    masked: bool
    odd: float  # how many values are out of the ordinary
    seed: int
    batches: tuple[Batch, ...]


def plans(most_rows: int = 60) -> st.SearchStrategy[Plan]:
    keep = st.sampled_from([0, 1, 3, 9, 30, 100])
    batch = st.builds(Batch, st.integers(0, most_rows), keep, st.sampled_from([None, None, 5, 40]))
    batches = st.lists(batch, min_size=1, max_size=8).map(tuple)
    odd = st.sampled_from([0.0, 0.0, 0.02, 0.2])
    return st.builds(Plan, st.integers(1, 4), st.booleans(), odd, st.integers(0, 2**32 - 1), batches)


Values = Callable[[np.random.Generator, int, float], np.ndarray]  # (rng, how many, share of odd ones)


@dataclass
class Stream:
    plan: Plan
    values: Values
    columns: int = 1
    rows: list[list[tuple[Any, ...]]] = field(default_factory=list)  # per key: the rows that count, all there ever were
    times: list[list[int]] = field(default_factory=list)  # per key: of all rows
    structures: list[Structure] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.plan.seed)
        self.store = Store(keyed=True, time=Time(SimpleNamespace(unit=None)), dictionary=Dictionary())  # type: ignore[arg-type]
        self.store.keys = SimpleNamespace(count=0)  # type: ignore[assignment]
        self.space: Space = self.store.space(COUNTED if self.plan.masked else EVERY_EVENT)
        dtype = self.values(self.rng, 1, 0.0).dtype
        for name in COLUMNS[: self.columns]:
            self.space.add_raw(name, dtype.type)

    def append(self, batch: Batch) -> None:
        """As Grouping.apply does."""
        store, n = self.store, batch.rows
        if store.keys.count < self.plan.keys and n:  # keys come one by one
            store.keys.count += 1
            self.rows.append([])
            self.times.append([])
        store.grow_keys()
        store.retention = Retention(Depth(batch.age or 0, batch.keep))
        ids = self.rng.integers(0, max(1, store.keys.count), n)
        ts = max(store.now, 0) + np.cumsum(self.rng.integers(0, 3, n))
        counted = self.rng.random(n) < 0.7 if self.plan.masked else np.ones(n, bool)
        data = {name: self.values(self.rng, n, self.plan.odd) for name in COLUMNS[: self.columns]}
        fields: Any = {name: SimpleNamespace(values=values, valid=None) for name, values in data.items()}
        rows = CheckedRows(ts, ids, fields | {"counted": SimpleNamespace(valid=counted)})
        by_key = store.grouped(rows)
        store.time.go_on(int(ts.max(initial=store.now)))
        runs = store.append(rows, by_key)
        for e in range(n):
            self.times[ids[e]].append(int(ts[e]))
            if counted[e]:
                self.rows[ids[e]].append(tuple(values[e].item() for values in data.values()))
        for structure in self.structures:
            structure.follow(runs[self.space.mask])
        store.tidy(self.rng.integers(0, 4))

    @property
    def keys(self) -> np.ndarray:
        return np.arange(self.store.key_count)

    def kept(self, k: int) -> tuple[int, int]:
        """The positions [head, tail) of key k that can be asked for."""
        ring = self.space.arena.rings[k]
        return int(ring[HEAD]), int(ring[TAIL])

    def windows(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Any windows inside what is kept, a row per key: first of all of it, suffixes, single rows, and empty ones."""
        rings = self.space.arena.rings[self.keys]
        head, tail = rings[:, HEAD, None], rings[:, TAIL, None]
        a, b = head + (self.rng.random((2, self.keys.size, count)) * (tail - head + 1)).astype(np.int64)
        lo, hi = np.minimum(a, b), np.maximum(a, b)
        lo[:, 0], hi[:, 0] = head[:, 0], tail[:, 0]
        hi[:, 1::3] = tail
        lo[:, 2::6] = np.maximum(hi[:, 2::6] - 1, head)
        return lo, hi

    def registered(self) -> tuple[np.ndarray, np.ndarray]:
        """The windows that MaterializeAll was told of, as the engine asks for them."""
        lo, hi, _ = window_edges.edges(self.store, self.keys, window_edges.lengths_of(REGISTERED), self.store.now)
        return self.space.to_positions(self.keys, lo, hi)


def filled(values: np.ndarray) -> Space:
    """One stream of these values, all kept, without the plain lists: for millions of rows."""
    space, key, count = Space(EVERY_EVENT), np.zeros(1, np.int64), np.array([values.size])
    column = space.add_raw("x", values.dtype.type)
    space.arena.add_keys(1)
    space.arena.make_room(key, count, lambda keys, coming: None)
    batch = timeline.Batch(np.arange(values.size), key, np.array([0, values.size]))
    column.data[space.arena.take_slots(batch)] = values
    return space


def check_arena(arena: Arena) -> None:
    """Rings are powers of two, hold what they keep, and do not overlap each other or what is free."""
    rings = arena.rings[arena.rings[:, CAPACITY] > 0]
    assert (arena.rings[:, TAIL] - arena.rings[:, HEAD] <= arena.rings[:, CAPACITY]).all()
    assert (arena.rings[:, HEAD] <= arena.rings[:, TAIL]).all()
    assert (rings[:, CAPACITY] & (rings[:, CAPACITY] - 1) == 0).all()
    places = [(int(ring[OFFSET]), int(ring[CAPACITY])) for ring in rings]
    places += [(int(offset), size) for size, offsets in arena._free.items() for offset in offsets]
    check_apart(places, arena._slots)
    for column in arena.columns:
        assert column.data.shape[-1] == arena._slots >> column.shift


def check_apart(places: Sequence[tuple[int, int]], end: int) -> None:
    upto = 0
    for offset, size in sorted(places):
        assert offset >= upto, f"the place at {offset} begins before {upto}, where another ends: {sorted(places)}"
        upto = offset + size
    assert upto <= end
