"""Updates and lookups mixed, one at a time, in one compiled loop per structure: what is compared are the structures."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np

from bench import bare
from bench.bare import Bare
from bench.timing import cpu_clock, elapsed
from kernels.operators import monoids
from kernels.rings.timeline import HEAD, TAIL

WINDOWS = 1000
UPDATE = -1
SHORTEST = 0.02  # seconds that a measured run takes, at least


def structures() -> list[Bare]:
    sums = bare.base(WINDOWS, monoids.Sum(), np.int64)
    ours = [bare.running_integers(WINDOWS), bare.running_body(WINDOWS), sums]
    return [*ours, bare.search_tree(WINDOWS), bare.materialize_all(WINDOWS), bare.materialize_none(WINDOWS)]


def operations(count: int, updates: int, seed: int = 4) -> np.ndarray:
    """UPDATE, or the width of the window that is looked up; `updates` percent of them, in random order."""
    rng = np.random.default_rng(seed)
    widths = rng.integers(1, WINDOWS + 1, count)
    return np.where(rng.permutation(count) < count * updates // 100, UPDATE, widths)


@cache
def _loop(update: Any, lookup: Any) -> Callable[..., int]:
    @numba.njit(
        _nrt=False
    )  # counting references to a kernel's arrays cost R-INT three quarters of its rate, others less
    def run(ops, column, rings, nmax, update_args, lookup_args, window):
        keys, lo, hi, out = window
        mask, check = column.size - 1, 0
        for j in range(ops.size):
            tail = rings[0, TAIL]
            if ops[j] < 0:
                if tail - rings[0, HEAD] == nmax:
                    rings[0, HEAD] += 1
                column[tail & mask] = j & 1023
                rings[0, TAIL] = tail + 1
                update(*update_args)
            else:
                lo[0, 0], hi[0, 0] = tail - ops[j], tail
                lookup(*lookup_args, keys, (lo, hi), out)
                check += out[0]
        return check

    return run


def perform(structure: Bare, ops: np.ndarray) -> int:
    """Returns the sum of all answers, by which structures can be told to agree."""
    structure.counts[0] = 1
    window = bare.KEY, np.zeros((1, 1), np.int64), np.zeros((1, 1), np.int64), np.zeros(1, np.int64)
    loop = _loop(structure.update, structure.lookup)
    return int(
        loop(
            ops, structure.column, structure.rings, structure.nmax, structure.update_args, structure.lookup_args, window
        )
    )


def fill(structure: Bare) -> None:
    perform(structure, np.full(2 * WINDOWS, UPDATE))


def rate(structure: Bare, updates: int, rounds: int, shortest: float = SHORTEST) -> float:
    """Operations per second of CPU time; runs are made long enough for the clock."""
    count = 1000
    ops = operations(count, updates)  # made outside the clock: making them takes longer than most structures do
    while elapsed(lambda ops=ops: perform(structure, ops), cpu_clock) < shortest and count < 1 << 21:
        count *= 2
        ops = operations(count, updates)
    return count / min(elapsed(lambda: perform(structure, ops), cpu_clock) for _ in range(rounds))
