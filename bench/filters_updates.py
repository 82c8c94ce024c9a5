"""Updates of CI-COUNT and CI-SUM, and the memory they take."""

from typing import Any

import numpy as np

from bench.filters_data import settle, zipf_ids
from bench.report import Finding, Report, Table
from bench.timing import cpu_clock, elapsed
from kernels.key_filters import bands, ci_count, ci_levels
from swag.live.indexing.indexes import CountIndex, SumIndex


def steady(keys: int, events: int) -> list[Any]:
    """A window of 6 events per key, and all levels asked after every batch: alike for any number of keys."""
    rng = np.random.default_rng(5)
    window = 6 * keys
    index = CountIndex(4, longest=window)
    index.add_keys(keys)
    index.update(rng.integers(0, keys, 2 * window), np.arange(2 * window))
    now = 2 * window
    conditions = [ci_levels.span(level, 4)[1] for level in range(4 * used_sizes(index))]
    seconds, placed = [], 0
    for _ in range(max(4, events // keys)):
        settle(index, [(int(window * f), ">=", v) for v in conditions for f in (0.1, 0.5, 0.9)], now, times=1)
        batch = rng.integers(0, keys, keys), np.arange(now, now + keys)
        before = index.known.order.rows[0, bands.PLACED]
        seconds.append(elapsed(lambda batch=batch: index.update(*batch), cpu_clock))
        placed += index.known.order.rows[0, bands.PLACED] - before
        now += keys
    per_event = float(np.median(seconds)) / keys
    return [keys, per_event * 1e9, 1e-6 / per_event, float(placed / len(seconds) / keys)]


def used_sizes(index: CountIndex) -> int:
    return int(index.known.blocks[:, ci_count.SIZE].max()) + 1


def growth(report: Report, quick: bool) -> None:
    sizes = (10**3, 10**4) if quick else (10**3, 10**4, 10**5, 10**6)
    rows = [steady(keys, 10**4 if quick else 10**6) for keys in sizes]
    title = "updates at p = 4 as keys are added: 6 events per key and window, batches of one per key, all levels asked"
    header = ["keys", "ns per event", "M/s", "changes of band per event"]
    report.tables.append(Table(title, header, rows))
    slower, reach = rows[-1][1] / rows[0][1], np.log2(sizes[-1]) / np.log2(sizes[0])
    measured = f"{sizes[-1]:,} keys / {sizes[0]:,}, as many events per key"
    report.findings.append(Finding("growth of the cost of updates", measured, slower, "x", float(reach), at_most=True))
    measured = f"{sizes[-1]:,} keys / {sizes[0]:,}, changes of band per event"
    report.findings.append(Finding("growth of the work of updates", measured, rows[-1][3] / rows[0][3], "x"))


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
            used = used_sizes(index)
            levels = 4 * used if filters is None else filters
            for level in range(0, 4 * used, max(1, 4 * used // levels)):
                v = ci_levels.span(level, 4)[1]
                settle(index, [(int(warm * f), ">=", v) for f in (0.1, 0.5, 0.9)], warm)
            seconds = []
            for b in range(4):
                part = slice(warm + b * batch, warm + (b + 1) * batch)
                seconds.append(elapsed(lambda i=index, rows=(ids[part], ts[part]): i.update(*rows), cpu_clock))
            line.append(batch / min(seconds[1:]) / 1e6)
            if ids is uniform and filters is None:
                blocks = index.known.blocks.shape[0] - 1 - int(index.known.blocks[0, ci_count.FILL])
                per_key, depth = index.bytes / keys, 4 * blocks / keys
        rows.append([*line, per_key, depth])
    header = ["keys", "M/s, 8 levels indexed", "M/s, all", "M/s, all, Zipf", "bytes per key", "levels per key"]
    report.tables.append(Table(f"updates at p = 4, batches of {batch:,}, windows over the last events", header, rows))
    measured = f"{sizes[-1]:,} keys, p = 4, all levels indexed, one core"
    report.findings.append(Finding("updates", measured, rows[-1][2], "M/s", 2.0))
    measured = f"{sizes[-1]:,} keys / {sizes[0]:,}, as many events over more keys"
    logarithm = float(np.log2(sizes[-1]) / np.log2(sizes[0]))
    slower = rows[0][2] / rows[-1][2]
    report.findings.append(Finding("growth of the cost of updates", measured, slower, "x", logarithm, at_most=True))
    measured = f"{sizes[-1]:,} keys, per key and level (20 + 16 / p, and 16 per key; a third is room to grow)"
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


def run(quick: bool) -> Report:
    report = Report("filters: updates and memory")
    updates(report, quick)
    growth(report, quick)
    sums(report, quick)
    report.notes.append(
        "Growth is judged against that of log keys, in two ways. With as many events per key, only the number of keys "
        "differs. With as many events over more keys, those of a key also lie further apart in time and change bands "
        "more often: few keys stay in a band, and in the cache."
    )
    return report
