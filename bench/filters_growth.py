"""Lookups of counts with a fixed number of keys returned: does their time follow the keys there are?"""

from functools import partial

import numba
import numpy as np

from bench.filters_data import MINUTE, counts_in, settle, zipf
from bench.filters_figure12 import each_key, satisfying, search_in_step
from bench.report import Finding, Report, Table
from bench.timing import best_of, cpu_clock
from kernels.key_filters import ci_count, ci_levels
from swag.live.indexing.indexes import CountIndex


@numba.njit
def lookups_indexed(rows, state, starts, out, level, asks, now):
    """asks[i] = (T, v): lookups one after the other, counted."""
    found = 0
    for i in range(asks.shape[0]):
        x = now - asks[i, 0]
        some = ci_count.newer(state, level, x, out)
        search_in_step(rows, out[:some], starts, x, now)
        found += satisfying(rows[0], out[:some], starts, asks[i, 1])
    return found


@numba.njit
def lookups_naive(rows, every, starts, asks, now):
    found = 0
    for i in range(asks.shape[0]):
        each_key(rows, every, starts, now - asks[i, 0], now)
        found += satisfying(rows[0], every, starts, asks[i, 1])
    return found


def growth(report: Report, quick: bool) -> None:
    sizes = (10**3, 10**4) if quick else (10**3, 10**4, 10**5, 10**6)
    lines = []
    for keys in sizes:
        stream = zipf(keys, max(200_000, 5 * keys), 100 * MINUTE)
        stream.apply(0, stream.ids.size)
        now, t = int(stream.ts[-1]), 50 * MINUTE
        v = int(np.sort(counts_in(stream, now, t))[-100])
        index = CountIndex(8, longest=90 * MINUTE)
        index.add_keys(keys)
        index.update(stream.ids, stream.ts)
        asks = np.array([(int(t * f), v) for f in np.linspace(0.98, 1.0, 20)], np.int64)
        settle(index, [(int(a), ">=", v) for a, _ in asks], now)
        level, out = ci_levels.level_within(v, 8), np.empty(keys, np.int64)
        rows, starts = (stream.rings, stream.times), np.empty(keys, np.int64)
        arguments = rows, index.known, starts, out, level
        naive_asks = asks[:1] if keys >= 10**5 else asks
        found = lookups_indexed(*arguments, naive_asks, now)
        assert found == lookups_naive(rows, stream.all, starts, naive_asks, now)
        many = np.repeat(asks, 10, axis=0)
        best = best_of(partial(lookups_indexed, *arguments, many, now), 7, cpu_clock) / len(many)
        every = rows, stream.all, starts, naive_asks, now
        naive = best_of(partial(lookups_naive, *every), 3, cpu_clock) / len(naive_asks)
        lines.append([keys, found // len(naive_asks), best * 1e6, naive * 1e6, naive / best])
    header = ["keys", "returned", "us per lookup", "us naive", "x naive"]
    report.tables.append(Table("lookups with about 100 keys returned, p = 8, exact", header, lines))
    grown = lines[-1][2] / lines[0][2]
    measured = f"{sizes[-1]:,} keys / {sizes[0]:,}, output fixed"
    report.findings.append(Finding("growth of lookups", measured, grown, "x", 3, at_most=True))
    reach = None if quick else 1000
    report.findings.append(Finding("lookup against every key", f"{sizes[-1]:,} keys", lines[-1][4], "x", reach))


def run(quick: bool) -> Report:
    report = Report("filters: lookups of counts")
    growth(report, quick)
    return report
