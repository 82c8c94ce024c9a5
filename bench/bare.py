"""Each structure of kernels/ on one ring, with nothing around it: what rates and figures are measured on."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numba
import numpy as np

from kernels.baselines import naive, psoup
from kernels.operators import monoids
from kernels.operators.monoids import combine, invert, lift, load, store
from kernels.rings.timeline import CAPACITY, HEAD, OFFSET, TAIL
from kernels.windows import dyadic, landmark, running, sorted_runs

KEY = np.zeros(1, np.int64)


@dataclass
class Bare:
    """A ring that keeps `nmax` rows, and a structure over it: kernels with all arguments but the windows."""

    name: str
    nmax: int
    column: np.ndarray
    rings: np.ndarray
    counts: np.ndarray
    update: Any
    update_args: tuple[Any, ...]
    lookup: Any
    lookup_args: tuple[Any, ...]
    ranked: bool = False

    def append(self, count: int, batch: int | None = None) -> None:
        """`count` more rows, the values being those that lie there: only the structure is at work."""
        self.counts[0] = min(batch or self.nmax, self.nmax, count)
        repeat(self.update)(self.rings, self.nmax, self.counts, count // self.counts[0], self.update_args)

    def ask(self, lo: np.ndarray, hi: np.ndarray, out: np.ndarray) -> None:
        """out[0, w] = the aggregate of positions [lo, hi)[0, w]; of a quantile structure, the 0.99-quantile."""
        if self.ranked:
            ranks = np.maximum((0.99 * (hi - lo)).astype(np.int64) - 1, 0)
            self.lookup(*self.lookup_args, KEY, (lo, hi), ranks, out, np.empty_like(out))
        else:
            self.lookup(*self.lookup_args, KEY, (lo, hi), out.ravel())

    def windows(self, count: int, narrowest: int, widest: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Widths uniform in the range, placed uniformly over what is kept: suffix windows and historical ones."""
        rng = np.random.default_rng(seed)
        width = rng.integers(narrowest, widest + 1, (1, count))
        lo = self.rings[0, HEAD] + rng.integers(0, self.nmax - width + 1)
        return lo, lo + width


@cache
def repeat(update: Any) -> Callable[..., None]:
    """Batch after batch, no Python between them."""

    @numba.njit(_nrt=False)
    def run(rings, nmax, counts, times, arguments):
        for _ in range(times):
            rings[0, TAIL] += counts[0]
            rings[0, HEAD] = max(rings[0, HEAD], rings[0, TAIL] - nmax)
            update(*arguments)

    return run


def _ring(nmax: int, dtype: Any) -> tuple[int, np.ndarray, np.ndarray, np.ndarray]:
    capacity = max(8, 1 << (nmax - 1).bit_length())
    rng = np.random.default_rng(7)
    column = rng.integers(1, 1000, capacity).astype(dtype)
    return capacity, column, np.array([[0, capacity, 0, 0]], np.int64), np.ones(1, np.int64)


def running_integers(nmax: int) -> Bare:
    capacity, column, rings, counts = _ring(nmax, np.int64)
    op, state, total = monoids.Sum(), np.zeros(capacity, np.int64), np.zeros(1, np.int64)
    arguments = (op, column, state, total, rings, KEY, counts)
    return Bare(
        "R-INT", nmax, column, rings, counts, running.update, arguments, running.lookup, (op, state, total, rings)
    )


def running_body(nmax: int) -> Bare:
    """R-INT by the bodies of its kernels' loops: one row, one window, without a call made for batches."""
    structure = running_integers(nmax)
    structure.name, structure.update, structure.lookup = "R-INT (loop body)", _add_one, _ask_one
    return structure


def running_floats(nmax: int) -> Bare:
    capacity, column, rings, counts = _ring(nmax, np.float64)
    run, total = np.zeros(capacity >> running.STRIDE, np.complex128), np.zeros(1, np.complex128)
    state = (column, run, total, rings)
    arguments = (*state, KEY, counts)
    return Bare(
        "R-INT (floats)", nmax, column, rings, counts, running.update_floats, arguments, running.lookup_floats, state
    )


def base(nmax: int, op: Any = None, dtype: Any = np.float64) -> Bare:
    capacity, column, rings, counts = _ring(nmax, dtype)
    state = (op or monoids.Max(), column, np.zeros(capacity, dtype), rings)
    return Bare("B-INT", nmax, column, rings, counts, dyadic.update, (*state, KEY, counts), dyadic.lookup, state)


def landmarks(nmax: int, wmin: int) -> Bare:
    """One group: windows of wmin to twice as many rows."""
    capacity, column, rings, counts = _ring(nmax, np.float64)
    op = monoids.Max()
    group = landmark.Landmarks(wmin, np.zeros(capacity), np.zeros(capacity), np.zeros(capacity), rings)
    arguments = (op, column, rings, group, KEY, counts)
    return Bare("L-INT", nmax, column, rings, counts, landmark.update, arguments, landmark.lookup, (op, group))


def sorted_base(nmax: int) -> Bare:
    capacity, column, rings, counts = _ring(nmax, np.float64)
    runs = np.zeros((nmax.bit_length() - sorted_runs.RUN_BITS, capacity))
    arguments = (column, runs, rings, KEY, counts)
    return Bare(
        "B-INT-QNT",
        nmax,
        column,
        rings,
        counts,
        sorted_runs.update,
        arguments,
        sorted_runs.lookup,
        ((column, runs), rings),
        ranked=True,
    )


def search_tree(nmax: int) -> Bare:
    capacity, column, rings, counts = _ring(nmax, np.int64)
    links, partials = np.zeros((4, capacity), np.int64), np.zeros(capacity, np.int64)
    tree = psoup.Tree(links, partials, rings.copy(), np.full(1, psoup.NONE))
    state = (monoids.Sum(), column, rings, tree)
    return Bare("PSoup", nmax, column, rings, counts, _renew_tree, (*state, KEY), psoup.lookup, state)


def materialize_none(nmax: int) -> Bare:
    _, column, rings, counts = _ring(nmax, np.int64)
    return Bare(
        "materialize none", nmax, column, rings, counts, _nothing, (), naive.lookup, (monoids.Sum(), column, rings)
    )


def materialize_all(nmax: int) -> Bare:
    """The windows of 1, 2 … nmax rows, kept current; the answer of width w is answers[w - 1]."""
    capacity, column, rings, counts = _ring(nmax, np.int64)
    far = np.arange(1, nmax + 1)
    windows = np.zeros((nmax, 6), np.int64)
    windows[:, naive.ROOM], windows[:, naive.PLACE] = far, np.cumsum(far) - far
    front, back = np.zeros(far.sum(), np.int64), (np.zeros(nmax, np.int64), np.zeros(nmax, np.int64))
    answers, edges = np.zeros(nmax, np.int64), (np.zeros(nmax, np.int64), np.zeros(nmax, np.int64))
    arguments = (monoids.Sum(), (column, 0, capacity - 1), windows, front, back, far, *edges, answers, rings)
    return Bare("materialize all", nmax, column, rings, counts, _slide_all, arguments, _recall, (answers,))


@numba.njit(_nrt=False)
def _renew_tree(op, columns, rings, tree, keys):
    psoup.expire(op, columns, rings, tree, keys)
    psoup.update(op, columns, rings, tree, keys)


@numba.njit(_nrt=False)
def _nothing():
    pass


@numba.njit(_nrt=False)
def _slide_all(op, rows, windows, front, back, far, lo, hi, answers, rings):
    head, tail = rings[0, HEAD], rings[0, TAIL]
    for w in range(far.size):
        lo[w], hi[w] = max(tail - far[w], head), tail
    naive.slide(op, rows, windows, front, back, (lo, hi), answers)


@numba.njit(_nrt=False)
def _recall(answers, keys, edges, out):
    lo, hi = edges
    for w in range(lo.shape[1]):
        out[w] = answers[hi[0, w] - lo[0, w] - 1]


@numba.njit(_nrt=False)
def _add_one(op, columns, state, total, rings, keys, counts):
    slot = rings[0, OFFSET] + ((rings[0, TAIL] - 1) & (rings[0, CAPACITY] - 1))
    run = load(total, 0)
    store(state, slot, run)
    store(total, 0, combine(op, run, lift(op, columns, slot)))


@numba.njit(_nrt=False)
def _ask_one(op, state, total, rings, keys, edges, out):
    (lo, hi), offset, mask = edges, rings[0, OFFSET], rings[0, CAPACITY] - 1
    b = hi[0, 0]
    upto = load(total, 0) if b == rings[0, TAIL] else load(state, offset + (b & mask))
    store(out, 0, invert(op, upto, load(state, offset + (lo[0, 0] & mask))))
