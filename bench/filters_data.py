"""Streams of many keys for the filters' benches, with a ring for each key, and the ways to look at them key by key."""

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from kernels.key_filters import ci_count
from kernels.operators import monoids
from kernels.rings.timeline import CAPACITY, OFFSET, TAIL
from kernels.windows import dyadic
from swag.live.indexing.indexes import CountIndex, SubstreamIndex

MINUTE = 60_000  # ts in ms
MAX = monoids.Max()


@dataclass
class Stream:
    """Events of many keys, and a ring for each that holds all of them; positions are taken as events are applied."""

    ids: np.ndarray
    ts: np.ndarray
    values: np.ndarray
    keys: int

    def __post_init__(self) -> None:
        counts = np.bincount(self.ids, minlength=self.keys)
        self.rings = np.zeros((self.keys, 4), np.int64)
        self.rings[:, CAPACITY] = 1 << np.ceil(np.log2(np.maximum(counts, 1))).astype(np.int64)
        self.rings[:, OFFSET] = np.concatenate([[0], np.cumsum(self.rings[:-1, CAPACITY])])
        slots = int(self.rings[:, CAPACITY].sum())
        self.times, self.column, self.state = np.zeros(slots, np.int64), np.zeros(slots), np.zeros(slots)
        self.lost = np.full(self.keys, np.iinfo(np.int64).min)
        self.all = np.arange(self.keys)
        self.lo, self.hi = np.zeros((self.keys, 1), np.int64), np.zeros((self.keys, 1), np.int64)
        self.out = np.zeros(self.keys)

    @property
    def rows(self) -> tuple[np.ndarray, ...]:
        return self.rings, self.times, self.lost

    @property
    def edges(self) -> tuple[np.ndarray, np.ndarray]:
        return self.lo, self.hi

    def apply(self, begin: int, end: int) -> None:
        append(self.ids[begin:end], self.ts[begin:end], self.values[begin:end], self.rings, self.times, self.column)
        ids = self.ids[begin:end]
        seen = np.bincount(ids, minlength=self.keys)
        keys = np.flatnonzero(seen)
        dyadic.update(MAX, self.column, self.state, self.rings, keys, seen[keys])


def zipf(keys: int, events: int, span: int, seed: int = 0) -> Stream:
    """Keys at a rate of 1 / rank; times evenly over the span, values mostly small."""
    rng = np.random.default_rng(seed)
    ids = zipf_ids(keys, events, rng)
    return Stream(ids, np.sort(rng.integers(0, span, events)), rng.exponential(1.0, events), keys)


def zipf_ids(keys: int, events: int, rng: np.random.Generator) -> np.ndarray:
    share = np.cumsum(1 / np.arange(1, keys + 1.0))
    return rng.permutation(keys)[np.searchsorted(share, rng.random(events) * share[-1])]


@numba.njit
def append(ids, ts, values, rings, times, column):
    for e in range(ids.size):
        k = ids[e]
        slot = rings[k, OFFSET] + (rings[k, TAIL] & (rings[k, CAPACITY] - 1))
        times[slot], column[slot] = ts[e], values[e]
        rings[k, TAIL] += 1


def counts_in(stream: Stream, now: int, t: int) -> np.ndarray:
    inside = (stream.ts > now - t) & (stream.ts <= now)
    return np.bincount(stream.ids[inside], minlength=stream.keys)


def roomy(index: CountIndex, blocks: int, spare: int) -> ci_count.Levels:
    """The index with room enough that a jitted loop need not stop for more."""
    index.known = ci_count.with_room(index.known, blocks, spare)
    return index.known


def settle(index: SubstreamIndex, asks: list[tuple[int, Any, Any]], now: int, times: int = 6) -> None:
    """Let the first lookups divide what they must."""
    for _ in range(times):
        for t, op, v in asks:
            index.candidates(t, op, v, now)
