"""Many different `where` over one stream: what an event costs follows the filters that it satisfies.

Thresholds of one column are another question: an event satisfies half of them, so they share one structure.
"""

from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa

import swag as sw
from bench.report import Finding, Report, Table
from bench.timing import elapsed
from swag.live.filtered import thresholds

EVENTS, PER_SYMBOL = 5000, 4  # of which an event satisfies about half
WINDOW = 10_000  # rows, of thresholds
NEVER = 10**9  # thresholds, from which on they share


def queries(count: int) -> list[sw.Query]:
    """symbol = c AND price > d: four prices for each symbol."""
    wheres = [f"symbol = 's{i // PER_SYMBOL}' AND price > {25 * (i % PER_SYMBOL) + i / 1e5}" for i in range(count)]
    return [sw.Query(sw.sum("price"), sw.Range(4 * EVENTS), f"q{i}", where=where) for i, where in enumerate(wheres)]


def batch(rng: np.random.Generator, symbols: int, number: int) -> pa.Table:
    names = pa.array([f"s{i}" for i in range(symbols)])
    columns = {"symbol": names.take(pa.array(rng.integers(0, symbols, EVENTS))), "price": rng.random(EVENTS) * 100}
    return pa.table({"ts": np.arange(EVENTS) + number * EVENTS} | columns)


class Contender:
    """An engine with so many filters, and batches for it. It owns both."""

    def __init__(self, count: int, asked: list[sw.Query] | None = None) -> None:
        self.rng, self.symbols, self.number = np.random.default_rng(count), max(1, count // PER_SYMBOL), 0
        self.engine = sw.Engine()
        asked = queries(count) if asked is None else asked
        self.registered = elapsed(lambda: self.engine.register(asked))
        self.first = self.append()
        for _ in range(4):
            self.append()

    def append(self) -> float:
        rows, self.number = batch(self.rng, self.symbols, self.number), self.number + 1
        return elapsed(lambda: self.engine.append(rows))

    def matches(self) -> float:
        before = self.engine.stats()["updates"]
        self.append()
        return (self.engine.stats()["updates"] - before) / EVENTS


def unmatched() -> float:
    """Bytes that a filter takes which has matched nothing."""
    sizes = []
    for count in (1000, 2000):
        engine = sw.Engine()
        engine.register(queries(count))
        engine.append({"ts": [1], "symbol": ["none of them"], "price": [1.0]})
        sizes.append(engine.stats()["bytes"])
    return (sizes[1] - sizes[0]) / 1000


def threshold_contenders(count: int) -> dict[str, Contender]:
    """price > c for so many c, a sum over 10,000 rows each: with rows of their own, and sharing."""
    wheres = [f"price > {100 * (i + 0.5) / count}" for i in range(count)]
    asked = [sw.Query(sw.sum("price"), sw.Rows(WINDOW), f"q{i}", where=where) for i, where in enumerate(wheres)]
    many, thresholds.MANY_THRESHOLDS = thresholds.MANY_THRESHOLDS, NEVER
    try:
        apart = Contender(count, asked)
    finally:
        thresholds.MANY_THRESHOLDS = many
    return {"rows of their own": apart, "sorted runs that they share": Contender(count, asked)}


def add_thresholds(report: Report, count: int, rounds: int) -> None:
    """What 1,000 thresholds of one column cost an event, both ways, in turns."""
    contenders = threshold_contenders(count)
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, each in contenders.items():
            times[name].append(each.append())
    lines: list[list[Any]] = []
    for name, each in contenders.items():
        looked_up = min(elapsed(each.engine.lookup_all) for _ in range(3))
        per_event, size = median(times[name]) / EVENTS, each.engine.stats()["bytes"]
        lines.append([name, each.matches(), per_event * 1e6, size / 1e6, looked_up * 1e6 / count])
    header = ["thresholds have", "rows written per event", "us per event", "MB", "us per threshold, lookup_all"]
    title = f"{count:,} thresholds, price > c, a sum over {WINDOW:,} rows for each; medians, in turns"
    report.tables.append(Table(title, header, lines))
    if count == 1000:
        (apart, shared), what = lines, f"{count:,} thresholds of one column"
        report.findings.append(Finding(what, "an event, rows of their own / shared", apart[2] / shared[2], "x", 20))
        report.findings.append(Finding(what, "memory, rows of their own / shared", apart[3] / shared[3], "x", 20))


def run(quick: bool) -> Report:
    sizes = (1, 100) if quick else (1, 100, 1000, 10_000)
    contenders = {count: Contender(count) for count in sizes}
    times: dict[int, list[float]] = {count: [] for count in sizes}
    for _ in range(3 if quick else 25):
        for count, each in contenders.items():
            times[count].append(each.append())
    report = Report(f"filters: {EVENTS:,} events and 1 to {sizes[-1]:,} different `where`")
    lines: list[list[Any]] = []
    for count, each in contenders.items():
        took, looked_up = median(times[count]), elapsed(each.engine.lookup_all)
        times_one = took / median(times[1])
        setup = (each.registered + each.first) / count
        lines.append([count, each.matches(), took * 1e3, times_one, setup * 1e6, looked_up * 1e3])
    header = ["filters", "matches per event", "ms per batch", "x one filter", "us to set up, each", "ms, lookup_all"]
    report.tables.append(Table("symbol = c AND price > d, a sum for each; medians, in turns", header, lines))
    for count, ratio in ((line[0], line[3]) for line in lines if line[0] == 1000):
        report.findings.append(Finding(f"{count:,} filters / one", "a batch of events", ratio, "x", 15, at_most=True))
    report.findings.append(Finding("a filter that matched nothing", "stats()", unmatched(), "bytes", 200, at_most=True))
    add_thresholds(report, 50 if quick else 1000, 3 if quick else 9)
    report.notes.append("To set up: to register, and the first batch, which makes the index over constants.")
    return report
