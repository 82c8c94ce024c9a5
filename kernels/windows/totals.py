"""Running totals: one partial per key, of all its rows so far. For windows that never let go of a row.

      slots[i]  <--  rows[first[i]:last[i]]          the rows of one key, in order

needs   an associative combine, in stream order
costs   update O(1), lookup O(1), space O(keys): no row is kept
"""

from typing import NamedTuple

import numpy as np

from kernels.compile.jit import kernel
from kernels.operators.monoids import combine, lift, load, store
from kernels.operators.numbers import plus


class Runs(NamedTuple):
    """Rows of some keys: run i, rows[first[i]:last[i]], goes to slots[i]."""

    slots: np.ndarray
    first: np.ndarray
    last: np.ndarray
    rows: np.ndarray


@kernel
def fold(op, columns, runs, n, state):
    """The rows of each run are combined with what its slot holds of the n[slot] rows before."""
    slots, first, last, rows = runs
    for i in range(slots.size):
        k = slots[i]
        for j in range(first[i], last[i]):
            new = lift(op, columns, rows[j])
            if n[k] == 0:
                store(state, k, new)
            else:
                store(state, k, combine(op, load(state, k), new))
            n[k] += 1


@kernel
def count_rows(runs, n):
    """n[slot] grows by how many rows its runs have."""
    for i in range(runs.slots.size):
        n[np.uint64(runs.slots[i])] += runs.last[i] - runs.first[i]


@kernel
def join(op, slots, n, state, others, other_n, other_state):
    """What others[i] holds came behind what slots[i] holds: it is combined with that."""
    for i in range(slots.size):
        k, j = slots[i], others[i]
        if other_n[j] > 0:
            new = load(other_state, j)
            if n[k] == 0:
                store(state, k, new)
            else:
                store(state, k, combine(op, load(state, k), new))
            n[k] += other_n[j]


@kernel
def join_floats(slots, high, low, others, other_high, other_low):
    """The sums of others[i] are added to those of slots[i]."""
    for i in range(slots.size):
        k, j = slots[i], others[i]
        if np.isfinite(high[k] + other_high[j]):
            high[k], low[k] = plus(high[k], low[k], other_high[j])
            high[k], low[k] = plus(high[k], low[k], other_low[j])
        else:
            high[k], low[k] = high[k] + other_high[j], 0.0


@kernel
def add_floats(values, runs, high, low):
    """Sums as double-doubles: 0.1 ten million times is a million, to the last bit but one. What is not finite stays."""
    slots, first, last, rows = runs
    for i in range(slots.size):
        k = slots[i]
        for j in range(first[i], last[i]):
            x = values[rows[j]]
            if np.isfinite(high[k] + x):
                high[k], low[k] = plus(high[k], low[k], x)
            else:
                high[k], low[k] = high[k] + x, 0.0


@kernel
def add_integers(values, runs, exact, about):
    """Sums that wrap, and what they are about, which says whether they have."""
    slots, first, last, rows = runs
    for i in range(slots.size):
        k = slots[i]
        for j in range(first[i], last[i]):
            exact[k] += values[rows[j]]
            about[k] += np.float64(values[rows[j]])


@kernel
def up_to(ts, rows, first, last, bounds):
    """last[i] goes back until rows[first[i]:last[i]], which are in order of time, are no later than bounds[i]."""
    for i in range(first.size):
        lo, hi = first[i], last[i]
        while lo < hi:
            mid = (lo + hi) >> 1
            if ts[rows[mid]] <= bounds[i]:
                lo = mid + 1
            else:
                hi = mid
        last[i] = lo
