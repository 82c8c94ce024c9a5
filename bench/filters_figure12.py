"""Figure 12 of the paper: lookups and updates in turn, with an index or by looking at every key.

Both sides are jitted, on the same rings; lookups return the exact keys, and the two must agree. Times are CPU times.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numba
import numpy as np

from bench.filters_data import MINUTE, Stream, append, counts_in, roomy, settle, zipf
from bench.report import Finding, Report, Table
from bench.timing import cpu_clock, elapsed
from kernels.key_filters import ci_count, ci_levels
from kernels.rings import in_step, timeline
from kernels.rings.timeline import CAPACITY, HEAD, OFFSET, TAIL
from swag.live.indexing.indexes import CountIndex

PRECISIONS = (1, 2, 4, 8, 16, 32)
ANSWERS = {False: "the keys", True: "the keys and their counts"}  # by count_all
FIGURE = Path(__file__).parent.parent / "docs" / "figure12.png"


@numba.njit
def each_key(rows, keys, starts, x, now):
    """R-INT per key, one key after the other: where the window (x, now] starts."""
    rings, times = rows
    for i in range(keys.size):
        k = keys[i]
        offset, mask = rings[k, OFFSET], rings[k, CAPACITY] - 1
        end = timeline.first_after(times, offset, mask, rings[k, HEAD], rings[k, TAIL], now)
        starts[i] = timeline.first_after(times, offset, mask, rings[k, HEAD], end, x)


@numba.njit
def search_in_step(rows, keys, starts, x, now):
    """The same, keys in step: how the engine asks for windows that end now, with an index or without."""
    rings, times = rows
    in_step.starts_after(rings, times, keys, x, starts)


@numba.njit
def satisfying(rings, keys, starts, v):
    """How many of `keys` have v events or more: a count is a difference of positions."""
    found = 0
    for i in range(keys.size):
        found += rings[keys[i], TAIL] - starts[i] >= v
    return found


@numba.njit
def mixed_naive(search, rows, every, starts, ids, ts, asks):
    """An event, a lookup, an event, a lookup …; asks[e] = (T, v). Returns the keys found in all."""
    rings, times = rows
    found = 0
    for e in range(ids.size):
        append(ids[e : e + 1], ts[e : e + 1], ts[e : e + 1], rings, times, times)
        search(rows, every, starts, ts[e] - asks[e, 0], ts[e])
        found += satisfying(rings, every, starts, asks[e, 1])
    return found


@numba.njit
def mixed_indexed(rows, state, starts, out, ids, ts, asks, count_all):
    """The same through CI-COUNT; asks[e] = (T, v, level, level beyond). count_all: count those that are certain too."""
    rings, times = rows
    found = counted = 0
    for e in range(ids.size):
        append(ids[e : e + 1], ts[e : e + 1], ts[e : e + 1], rings, times, times)
        ci_count.update(state, ids[e : e + 1], ts[e : e + 1], 0, ts[e] - 180 * MINUTE)
        x = ts[e] - asks[e, 0]
        if count_all:
            some, certain = ci_count.newer(state, asks[e, 2], x, out), 0
        else:
            some, certain = ci_count.decided(state, asks[e, 2], asks[e, 3], x, out)
        rest = out[certain:some]
        search_in_step(rows, rest, starts, x, ts[e])
        found += certain + satisfying(rings, rest, starts, asks[e, 1])
        counted += some - certain
    return found, counted


@dataclass
class Workload:
    """The stream up to some moment, and from then on an event and a lookup in turn."""

    stream: Stream
    ids: np.ndarray
    ts: np.ndarray
    asks: list[tuple[int, int]]  # (T, v), each asked many times
    asked: np.ndarray

    def __post_init__(self) -> None:
        self.tails = self.stream.rings[:, TAIL].copy()
        self.starts, self.out = np.empty((2, self.stream.keys), np.int64)

    def rewound(self) -> tuple[np.ndarray, np.ndarray]:
        self.stream.rings[:, TAIL] = self.tails
        return self.stream.rings, self.stream.times

    def naive(self, search: Any) -> int:
        return int(mixed_naive(search, self.rewound(), self.stream.all, self.starts, self.ids, self.ts, self.asked))

    def indexed(self, index: CountIndex, count_all: bool) -> tuple[int, int, float]:
        """Keys found, keys counted, seconds; the index is left as it was."""
        p = index.known.p
        levels = [(ci_levels.level_within(v, p), ci_levels.level_beyond(v, p)) for v in self.asked[:, 1].tolist()]
        full = np.column_stack([self.asked, np.array(levels)])
        again = CountIndex(p, index.longest)
        header, arrays = index.state()
        again.restore((header, {part: array.copy() for part, array in arrays.items()}))
        state, rows = roomy(again, 20_000, 20_000), self.rewound()
        began = cpu_clock()
        found, counted = mixed_indexed(rows, state, self.starts, self.out, self.ids, self.ts, full, count_all)
        return found, counted, cpu_clock() - began


def workload(keys: int, events: int, inputs: int) -> Workload:
    """A trading day, asked from the afternoon on: windows of 15 min to 3 h, 3 to 5 % of the keys returned."""
    stream = zipf(keys, events, 390 * MINUTE)
    warm = int(events * 0.7)
    now = int(stream.ts[warm])
    rng = np.random.default_rng(1)
    asks = []
    for t in np.linspace(15 * MINUTE, 180 * MINUTE, 12).astype(np.int64).tolist():
        asks.append((t, int(np.quantile(counts_in(stream, now, t), 1 - rng.uniform(0.03, 0.05))) + 1))
    asked = np.array(asks, np.int64)[rng.integers(0, len(asks), inputs)]
    stream.apply(0, warm)
    part = slice(warm, warm + inputs)
    return Workload(stream, stream.ids[part], stream.ts[part], asks, asked)


def figure_12(report: Report, quick: bool) -> None:
    keys, events, inputs = (1000, 60_000, 1000) if quick else (5000, 1_500_000, 4000)
    work = workload(keys, events, inputs)
    expected = work.naive(each_key)
    assert work.naive(search_in_step) == expected
    seconds: dict[Any, float] = {}
    counted: dict[Any, float] = {}
    indexes = {p: index_of(work, p) for p in PRECISIONS}
    for _ in range(2 if quick else 6):  # in turn: once measured in a slow moment, the naive side flattered the index
        for search in (each_key, search_in_step):
            seconds[search] = min(seconds.get(search, np.inf), elapsed(partial(work.naive, search), cpu_clock))
        for p, index in indexes.items():
            for count_all in (False, True):
                found, some, took = work.indexed(index, count_all)
                assert found == expected, (p, found, expected)
                seconds[p, count_all] = min(seconds.get((p, count_all), np.inf), took)
                counted[p, count_all] = some / found
    rates = {of: 2 * inputs / each for of, each in seconds.items()}
    naive, together = rates[each_key], rates[search_in_step]
    rows = []
    for p in PRECISIONS:
        line: list[Any] = [p, ci_levels.relaxation(p)]
        for count_all in (False, True):
            line += [counted[p, count_all], rates[p, count_all], rates[p, count_all] / naive]
        rows.append(line)
    header = ["p", "epsilon"] + 2 * ["counted / returned", "inputs/s", "x naive"]
    title = f"figure 12: {keys:,} keys, windows 15 min - 3 h, {expected / inputs / keys:.3f} of the keys returned"
    curves = {name: {p: rates[p, count_all] for p in PRECISIONS} for count_all, name in ANSWERS.items()}
    path = None if quick else plot(title, curves, naive, together)
    about = f"naive: {naive:,.0f} inputs/s; first the keys alone, then with their counts"
    report.tables.append(Table(f"{title}; {about}", header, rows, path))
    for name, rate in curves.items():
        best = max(rate, key=rate.__getitem__)
        measured = f"{name}, exact, p = {best}, lookups and updates in turn"
        report.findings.append(Finding("figure 12", f"{measured} / R-INT per key", rate[best] / naive, "x", 15))
        of = f"{measured} / all keys searched in step"
        report.findings.append(Finding("figure 12", of, rate[best] / together, "x"))


def index_of(work: Workload, p: int) -> CountIndex:
    index = CountIndex(p, longest=180 * MINUTE)
    index.add_keys(work.stream.keys)
    before = int(work.tails.sum())
    index.update(work.stream.ids[:before], work.stream.ts[:before])
    settle(index, [(t, ">=", v) for t, v in work.asks], int(work.ts[0]))
    return index


def plot(title: str, curves: dict[str, dict[int, float]], naive: float, together: float) -> Path:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 4.8), dpi=100)
    for (name, rate), color in zip(curves.items(), ("#1f5fa8", "#c8501e"), strict=True):
        axes.plot(list(rate), list(rate.values()), marker="o", linewidth=1.8, color=color, label=f"CI-COUNT: {name}")
    axes.axhline(together, linestyle=":", color="#777777", label="every key, searched in step")
    axes.axhline(naive, linestyle="--", color="#777777", label="R-INT for every key")
    axes.set(xlabel="p, levels per size", ylabel="inputs per second (lookups and updates)", xscale="log", yscale="log")
    axes.set_xticks(PRECISIONS, [str(p) for p in PRECISIONS])
    axes.set_ylim(naive / 2, 6 * max(max(rate.values()) for rate in curves.values()))
    axes.minorticks_off()
    axes.legend(frameon=False, loc="upper left")
    axes.set_title(title, loc="left", fontsize=10)
    axes.grid(True, color="#e4e4e4", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(FIGURE, bbox_inches="tight")
    plt.close(figure)
    return FIGURE


def run(quick: bool) -> Report:
    report = Report("filters: figure 12")
    figure_12(report, quick)
    return report
