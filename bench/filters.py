"""Substream filters: candidates from an index and a check of just those, against a check of every key.

Both sides are jitted, on the same rings; lookups return the exact keys, and the two must agree. Times are CPU times.
"""

import argparse
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numba
import numpy as np

from bench.report import Finding, Report, Table, plain
from bench.timing import best_of, cpu_clock, elapsed
from kernels import ci_count, ci_extrema, dyadic, monoids, timeline
from kernels.timeline import CAPACITY, OFFSET, TAIL
from swag.substreams import CountIndex, ExtremaIndex, SubstreamIndex, SumIndex

FIGURE = Path(__file__).parent.parent / "docs" / "figure12.png"
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


@numba.njit
def satisfying(rows, edges, keys, window, now, v):
    """How many of `keys` have at least v events in the window: R-INT, where a count is a difference of positions."""
    rings, times, lost = rows
    lo, hi = edges
    timeline.edges(rings, times, lost, keys, window, now, lo, hi)
    found = 0
    for i in range(keys.size):
        found += hi[i, 0] - lo[i, 0] >= v
    return found


@numba.njit
def mixed_naive(rows, edges, every, ids, ts, asks):
    """An event, a lookup, an event, a lookup …; asks[e] = (T, v). Returns the keys found in all."""
    rings, times, _ = rows
    window = np.ones((1, 3), np.int64)
    found = 0
    for e in range(ids.size):
        append(ids[e : e + 1], ts[e : e + 1], ts[e : e + 1], rings, times, times)
        window[0, 1], window[0, 2] = ts[e] - asks[e, 0], ts[e]
        found += satisfying(rows, edges, every, window, ts[e], asks[e, 1])
    return found


@numba.njit
def mixed_indexed(rows, edges, state, out, ids, ts, asks, count_all):
    """The same through CI-COUNT; asks[e] = (T, v, level, level beyond). count_all: check those that are certain too."""
    rings, times, _ = rows
    window = np.ones((1, 3), np.int64)
    found = checked = 0
    for e in range(ids.size):
        append(ids[e : e + 1], ts[e : e + 1], ts[e : e + 1], rings, times, times)
        ci_count.update(state, ids[e : e + 1], ts[e : e + 1], 0, ts[e] - 180 * MINUTE)
        window[0, 1], window[0, 2] = ts[e] - asks[e, 0], ts[e]
        some, certain = ci_count.decided(state, asks[e, 2], asks[e, 3], window[0, 1], out)
        if count_all:
            certain = 0
        found += certain + satisfying(rows, edges, out[certain:some], window, ts[e], asks[e, 1])
        checked += some - certain
    return found, checked


@numba.njit
def lookups_indexed(rows, edges, state, out, level, asks, now):
    """asks[i] = (T, v): lookups one after the other, checked."""
    window = np.ones((1, 3), np.int64)
    found = 0
    for i in range(asks.shape[0]):
        window[0, 1], window[0, 2] = now - asks[i, 0], now
        some = ci_count.newer(state, level, window[0, 1], out)
        found += satisfying(rows, edges, out[:some], window, now, asks[i, 1])
    return found


@numba.njit
def lookups_naive(rows, edges, every, asks, now):
    window = np.ones((1, 3), np.int64)
    found = 0
    for i in range(asks.shape[0]):
        window[0, 1], window[0, 2] = now - asks[i, 0], now
        found += satisfying(rows, edges, every, window, now, asks[i, 1])
    return found


@numba.njit
def maxima(rows, edges, columns, keys, window, now, v):
    """How many of `keys` have a maximum of at least v: B-INT."""
    rings, times, lost = rows
    lo, hi = edges
    column, state, out = columns
    timeline.edges(rings, times, lost, keys, window, now, lo, hi)
    dyadic.lookup(MAX, column, state, rings, keys, lo[: keys.size], hi[: keys.size], out)
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
        window[0, 1], window[0, 2] = now - np.int64(asks[i, 0]), now
        some = ci_extrema.newer(state, np.int64(asks[i, 2]), window[0, 1], now, out)
        found += maxima(rows, edges, columns, out[:some], window, now, asks[i, 1])
    return found


@numba.njit
def maxima_naive(rows, edges, columns, every, asks, now):
    window = np.ones((1, 3), np.int64)
    found = 0
    for i in range(asks.shape[0]):
        window[0, 1], window[0, 2] = now - np.int64(asks[i, 0]), now
        found += maxima(rows, edges, columns, every, window, now, asks[i, 1])
    return found


def counts_in(stream: Stream, now: int, t: int) -> np.ndarray:
    inside = (stream.ts > now - t) & (stream.ts <= now)
    return np.bincount(stream.ids[inside], minlength=stream.keys)


def roomy(index: CountIndex, blocks: int, spare: int) -> ci_count.Levels:
    """The index with room enough that a jitted loop need not stop for more."""
    index.state = ci_count.with_room(index.state, blocks, spare)
    return index.state


def settle(index: SubstreamIndex, asks: list[tuple[int, Any, Any]], now: int) -> None:
    """Let the first lookups divide what they must."""
    for _ in range(6):
        for t, op, v in asks:
            index.candidates(t, op, v, now)


# -- figure 12 --------------------------------------------------------------------------------------------------------


def figure_12(report: Report, quick: bool) -> None:
    keys, events, inputs = (1000, 60_000, 1000) if quick else (5000, 1_500_000, 4000)
    span = 390 * MINUTE  # a trading day
    stream = zipf(keys, events, span)
    warm = int(events * 0.7)
    now = int(stream.ts[warm])
    rng = np.random.default_rng(1)
    windows = np.linspace(15 * MINUTE, 180 * MINUTE, 12).astype(np.int64)
    asks = []
    for t in windows:
        counts = counts_in(stream, now, int(t))
        asks.append((int(t), int(np.quantile(counts, 1 - rng.uniform(0.03, 0.05))) + 1))
    which = rng.integers(0, len(asks), inputs)
    asked = np.array(asks, np.int64)[which]
    part = slice(warm, warm + inputs)
    ids, ts = stream.ids[part], stream.ts[part]
    stream.apply(0, warm)
    tails = stream.rings[:, TAIL].copy()

    def naive() -> int:
        stream.rings[:, TAIL] = tails
        return int(mixed_naive(stream.rows, stream.edges, stream.all, ids, ts, asked))

    naive()
    expected = naive()
    naive_seconds = best_of(naive, 4, cpu_clock)
    rows = []
    rates: dict[str, dict[int, float]] = {"the keys": {}, "the keys and their counts": {}}
    out = np.empty(keys, np.int64)
    for p in (1, 2, 4, 8, 16, 32):
        index = CountIndex(p, longest=180 * MINUTE)
        index.add_keys(keys)
        index.update(stream.ids[:warm], stream.ts[:warm])
        settle(index, [(t, ">=", v) for t, v in asks], now)
        levels = [(ci_count.level_within(v, p), ci_count.level_beyond(v, p)) for v in asked[:, 1].tolist()]
        full = np.column_stack([asked, np.array(levels)])
        line: list[Any] = [p, ci_count.relaxation(p)]
        for (name, rate), count_all in zip(rates.items(), (False, True), strict=True):
            best = np.inf
            for _ in range(10):
                start = index.saved()
                again = CountIndex(p, longest=180 * MINUTE)
                again.restored({part: array.copy() for part, array in start.items()})
                state = roomy(again, 20_000, 20_000)
                stream.rings[:, TAIL] = tails
                began = cpu_clock()
                found, checked = mixed_indexed(stream.rows, stream.edges, state, out, ids, ts, full, count_all)
                best = min(best, cpu_clock() - began)
                assert found == expected, (name, found, expected)
            rate[p] = 2 * inputs / best
            line += [checked / found, rate[p], rate[p]]
        rows.append(line)
        # In turn with the index: once measured in a slow moment, the naive side flattered it by a third.
        naive_seconds = min(naive_seconds, elapsed(naive, cpu_clock))
    naive_rate = 2 * inputs / naive_seconds
    rows = [[each / naive_rate if i in (4, 7) else each for i, each in enumerate(line)] for line in rows]
    header = ["p", "epsilon"] + 2 * ["checked / returned", "inputs/s", "x naive"]
    title = f"figure 12: {keys:,} keys, windows 15 min - 3 h, {expected / inputs / keys:.3f} of the keys returned"
    path = None if quick else plot(title, rates, naive_rate)
    columns = "first the keys alone, then with their counts"
    report.tables.append(Table(f"{title}; naive: {naive_rate:,.0f} inputs/s; {columns}", header, rows, path))
    for name, rate in rates.items():
        chosen = max(rate, key=rate.__getitem__)
        measured = f"{name}, exact, p = {chosen}, lookups and updates in turn / R-INT per key"
        report.findings.append(Finding("figure 12", measured, rate[chosen] / naive_rate, "x", 15))


def plot(title: str, rates: dict[str, dict[int, float]], naive: float) -> Path:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 4.8), dpi=100)
    for (name, rate), color in zip(rates.items(), ("#1f5fa8", "#c8501e"), strict=True):
        axes.plot(list(rate), list(rate.values()), marker="o", linewidth=1.8, color=color, label=f"CI-COUNT: {name}")
    axes.axhline(naive, linestyle="--", color="#777777", label="R-INT for every key")
    axes.set(xlabel="p, levels per size", ylabel="inputs per second (lookups and updates)", xscale="log", yscale="log")
    axes.set_xticks([1, 2, 4, 8, 16, 32], ["1", "2", "4", "8", "16", "32"])
    axes.set_ylim(naive / 2, 4 * max(max(rate.values()) for rate in rates.values()))
    axes.minorticks_off()
    axes.legend(frameon=False, loc="upper left")
    axes.set_title(title, loc="left", fontsize=10)
    axes.grid(True, color="#e4e4e4", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(FIGURE, bbox_inches="tight")
    plt.close(figure)
    return FIGURE


# -- growth -----------------------------------------------------------------------------------------------------------


def growth(report: Report, quick: bool) -> None:
    sizes = (10**3, 10**4) if quick else (10**3, 10**4, 10**5, 10**6)
    rows = []
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
        level, out = ci_count.level_within(v, 8), np.empty(keys, np.int64)
        arguments = stream.rows, stream.edges, index.state, out, level
        naive_asks = asks[:1] if keys >= 10**5 else asks
        found = lookups_indexed(*arguments, naive_asks, now)
        assert found == lookups_naive(stream.rows, stream.edges, stream.all, naive_asks, now)
        many = np.repeat(asks, 10, axis=0)
        best = best_of(partial(lookups_indexed, *arguments, many, now), 7, cpu_clock) / len(many)
        every = stream.rows, stream.edges, stream.all, naive_asks, now
        naive = best_of(partial(lookups_naive, *every), 3, cpu_clock) / len(naive_asks)
        rows.append([keys, found // len(naive_asks), best * 1e6, naive * 1e6, naive / best])
    header = ["keys", "returned", "us per lookup", "us naive", "x naive"]
    report.tables.append(Table("lookups with about 100 keys returned, p = 8, exact", header, rows))
    grown = rows[-1][2] / rows[0][2]
    measured = f"{sizes[-1]:,} keys / {sizes[0]:,}, output fixed"
    report.findings.append(Finding("growth of lookups", measured, grown, "x", 3, at_most=True))
    reach = None if quick else 1000
    report.findings.append(Finding("lookup against every key", f"{sizes[-1]:,} keys", rows[-1][4], "x", reach))


# -- updates and memory -----------------------------------------------------------------------------------------------


def updates(report: Report, quick: bool) -> None:
    sizes = (10**3, 10**4) if quick else (10**3, 10**4, 10**5, 10**6)
    batch = 1 << (16 if quick else 20)
    rows = []
    for keys in sizes:
        rng = np.random.default_rng(5)
        warm = 6 * max(keys, batch // 4)
        uniform, skewed = rng.integers(0, keys, warm + 4 * batch), zipf_ids(keys, warm + 4 * batch, rng)
        ts = np.arange(uniform.size)
        line: list[Any] = [keys]
        for ids, filters in ((uniform, 8), (uniform, None), (skewed, None)):
            index = CountIndex(4, longest=warm)
            index.add_keys(keys)
            index.update(ids[:warm], ts[:warm])
            used = int(index.state.blocks[:, ci_count.SIZE].max()) + 1
            levels = 4 * used if filters is None else filters
            for level in range(0, 4 * used, max(1, 4 * used // levels)):
                v = ci_count.span(level, 4)[1]
                settle(index, [(int(warm * f), ">=", v) for f in (0.1, 0.5, 0.9)], warm)
            seconds = []
            for b in range(4):
                part = slice(warm + b * batch, warm + (b + 1) * batch)
                seconds.append(elapsed(lambda i=index, rows=(ids[part], ts[part]): i.update(*rows), cpu_clock))
            line.append(batch / min(seconds[1:]) / 1e6)
            if ids is uniform and filters is None:
                blocks = index.state.blocks.shape[0] - 1 - int(index.state.blocks[0, ci_count.FILL])
                per_key, depth = index.bytes / keys, 4 * blocks / keys
        rows.append([*line, per_key, depth])
    header = ["keys", "M/s, 8 levels indexed", "M/s, all", "M/s, all, Zipf", "bytes per key", "levels per key"]
    report.tables.append(Table(f"updates at p = 4, batches of {batch:,}, windows over the last events", header, rows))
    measured = f"{sizes[-1]:,} keys, p = 4, all levels indexed, one core"
    report.findings.append(Finding("updates", measured, rows[-1][2], "M/s", 2.0))
    slower, reach = rows[0][2] / rows[-1][2], np.log2(sizes[-1]) / np.log2(sizes[0])
    measured = f"{sizes[-1]:,} keys / {sizes[0]:,}, against the growth of log keys"
    report.findings.append(Finding("growth of the cost of updates", measured, slower, "x", float(reach), at_most=True))
    measured = f"{sizes[-1]:,} keys, per key and level (16 + 16 / p, and 16 per key; a third is room to grow)"
    report.findings.append(Finding("memory, CI-COUNT", measured, per_key / depth, "bytes"))


def sums(report: Report, quick: bool) -> None:
    keys, batch = (1000, 1 << 14) if quick else (10**5, 1 << 19)
    rng = np.random.default_rng(6)
    rows = []
    for bits in (1, 8, 20, 40):
        index = SumIndex(4, longest=4 * batch)
        index.add_keys(keys)
        seconds = []
        for b in range(6):
            ids, values = rng.integers(0, keys, batch), rng.integers(0, 1 << bits, batch)
            ts = np.arange(b * batch, (b + 1) * batch)
            seconds.append(elapsed(lambda i=index, a=(ids, ts, values): i.update(*a), cpu_clock))
        rows.append([f"2^{bits}", batch / min(seconds[2:]) / 1e6])
    title = f"CI-SUM updates at p = 4, {keys:,} keys, by size of the values"
    report.tables.append(Table(title, ["values below", "M/s"], rows))


# -- extrema ----------------------------------------------------------------------------------------------------------


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
    threshold = int(np.searchsorted(index.state.ladder, v))
    asks = np.array([(each, v, threshold) for each in times])
    out = np.empty(keys, np.int64)
    columns = stream.column, stream.state, stream.out
    naive_asks = asks[:1] if keys >= 10**5 else asks
    found = maxima_indexed(stream.rows, stream.edges, columns, index.state, out, naive_asks, now)
    assert found == maxima_naive(stream.rows, stream.edges, columns, stream.all, naive_asks, now)
    many = np.repeat(asks, 10, axis=0)
    rings = stream.rows, stream.edges, columns
    best = best_of(partial(maxima_indexed, *rings, index.state, out, many, now), 7, cpu_clock)
    naive = best_of(partial(maxima_naive, *rings, stream.all, naive_asks, now), 3, cpu_clock)
    best, naive = best / len(many), naive / len(naive_asks)
    rate = rest[0].size / seconds / 1e6
    return [keys, found // len(naive_asks), best * 1e6, naive * 1e6, naive / best, rate, index.bytes / keys]


def run(quick: bool) -> list[Report]:
    reports = []
    for title, parts in (("filters: count", (figure_12, growth, updates, sums)), ("filters: max and min", (extrema,))):
        report = Report(title)
        for part in parts:
            part(report, quick)
        reports.append(report)
    return reports


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.filters", description=__doc__)
    parser.add_argument("--quick", action="store_true")
    for report in run(parser.parse_args().quick):
        print(plain(report))
