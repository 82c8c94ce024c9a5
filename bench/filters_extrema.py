"""CI-MAX and CI-MIN: the same two questions, growth of lookups and the gain over looking at every key."""

from functools import partial
from typing import Any

import numba
import numpy as np

from bench.filters_data import MAX, MINUTE, settle, zipf
from bench.report import Finding, Report, Table
from bench.timing import best_of, cpu_clock, elapsed
from kernels.key_filters import ci_extrema
from kernels.rings import timeline
from kernels.windows import dyadic
from swag.live.indexing.extrema_index import ExtremaIndex


@numba.njit
def maxima(rows, edges, columns, keys, window, now, v):
    """How many of `keys` have a maximum of at least v: B-INT."""
    rings, times, lost = rows
    lo, hi = edges
    column, state, out = columns
    timeline.edges(rings, times, lost, keys, window, now, edges)
    dyadic.lookup(MAX, column, state, rings, keys, (lo[: keys.size], hi[: keys.size]), out)
    found = 0
    for i in range(keys.size):
        found += hi[i, 0] > lo[i, 0] and out[i] >= v
    return found


@numba.njit
def maxima_indexed(rows, edges, columns, state, out, asks, now):
    """asks[i] = (T, v, threshold)."""
    window = np.ones((1, 3), np.int64)
    found = 0
    for i in range(asks.shape[0]):
        window[0, 1], window[0, 2] = np.int64(asks[i, 0]), 0
        some = ci_extrema.newer(state, np.int64(asks[i, 2]), now - window[0, 1], now, out)
        found += maxima(rows, edges, columns, out[:some], window, now, asks[i, 1])
    return found


@numba.njit
def maxima_naive(rows, edges, columns, every, asks, now):
    window = np.ones((1, 3), np.int64)
    found = 0
    for i in range(asks.shape[0]):
        window[0, 1], window[0, 2] = np.int64(asks[i, 0]), 0
        found += maxima(rows, edges, columns, every, window, now, asks[i, 1])
    return found


def extrema(report: Report, quick: bool) -> None:
    sizes = (10**3, 10**4) if quick else (10**3, 10**4, 10**5, 10**6)
    for kind in ("max", "min"):
        rows = []
        for keys in sizes:
            rows.append(_extrema(kind, keys))
        header = ["keys", "returned", "us per lookup", "us naive", "x naive", "M updates/s", "bytes per key"]
        report.tables.append(Table(f"{kind} with about 100 keys returned, 64 thresholds, exact", header, rows))
        grown = rows[-1][2] / rows[0][2]
        measured = f"{sizes[-1]:,} keys / {sizes[0]:,}"
        report.findings.append(Finding(f"growth of {kind} lookups", measured, grown, "x", 3, at_most=True))
        at = rows[-1 if quick else 2]
        reach = None if quick else 100
        report.findings.append(Finding(f"{kind} against every key (B-INT)", f"{at[0]:,} keys", at[4], "x", reach))


def _extrema(kind: Any, keys: int) -> list[Any]:
    sign = 1.0 if kind == "max" else -1.0
    stream = zipf(keys, max(200_000, 5 * keys), 100 * MINUTE)
    stream.apply(0, stream.ids.size)  # the checks are of maxima: for min, of values turned around
    now, t = int(stream.ts[-1]), 50 * MINUTE
    inside = stream.ts > now - t
    top = np.full(keys, -np.inf)
    np.maximum.at(top, stream.ids[inside], stream.values[inside])
    v = float(np.sort(top)[-100])
    ladder = np.unique(np.append(np.quantile(stream.values, np.linspace(0.5, 0.9999, 63)), v))
    op = ">=" if kind == "max" else "<="
    index = ExtremaIndex(kind, [(op, sign * w) for w in ladder], longest=90 * MINUTE)
    index.add_keys(keys)
    half = stream.ids.size // 2
    index.update(stream.ids[:half], stream.ts[:half], sign * stream.values[:half])
    rest = stream.ids[half:], stream.ts[half:], sign * stream.values[half:]
    seconds = elapsed(lambda: index.update(*rest), cpu_clock)
    times = [int(t * f) for f in np.linspace(0.98, 1.0, 20)]
    settle(index, [(each, op, sign * v) for each in times], now)
    threshold = int(np.searchsorted(index.known.ladder, v))
    asks = np.array([(each, v, threshold) for each in times])
    out = np.empty(keys, np.int64)
    columns = stream.column, stream.state, stream.out
    naive_asks = asks[:1] if keys >= 10**5 else asks
    found = maxima_indexed(stream.rows, stream.edges, columns, index.known, out, naive_asks, now)
    assert found == maxima_naive(stream.rows, stream.edges, columns, stream.all, naive_asks, now)
    many = np.repeat(asks, 10, axis=0)
    rings = stream.rows, stream.edges, columns
    best = best_of(partial(maxima_indexed, *rings, index.known, out, many, now), 7, cpu_clock)
    naive = best_of(partial(maxima_naive, *rings, stream.all, naive_asks, now), 3, cpu_clock)
    best, naive = best / len(many), naive / len(naive_asks)
    rate = rest[0].size / seconds / 1e6
    return [keys, found // len(naive_asks), best * 1e6, naive * 1e6, naive / best, rate, index.bytes / keys]


def run(quick: bool) -> Report:
    report = Report("filters: max and min")
    extrema(report, quick)
    return report
