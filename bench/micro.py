"""How many lookups and updates per second the structures do, batched, on one core, with nothing around them."""

import numpy as np

from bench import bare
from bench.bare import Bare
from bench.report import Finding, Report
from bench.timing import best_of, cpu_clock

NMAX, WIDEST = 1 << 17, 100_000


def run(quick: bool) -> Report:
    lookups, updates, rounds = (20_000, 1 << 18, 2) if quick else (1_000_000, 1 << 22, 15)
    report = Report(f"batched lookups and updates on one core, a ring of {NMAX:,} rows, windows of up to {WIDEST:,}")
    for structure, label, fewer, reach_lookups, reach_updates in (
        (bare.running_integers(NMAX), "R-INT sum of integers", 1, 100, 200),
        (bare.running_floats(NMAX), "R-INT sum of floats", 1, None, 80),
        (bare.base(NMAX), "B-INT max", 1, 10, 50),
        (bare.landmarks(NMAX, 1 << 16), "L-INT max", 1, None, None),
        (bare.sorted_base(NMAX), "B-INT-QNT 0.99-quantile", 50, None, None),
    ):
        added, asked = (
            rate_of_updates(structure, updates // fewer, rounds),
            rate_of_lookups(structure, lookups // fewer, rounds),
        )
        report.findings.append(
            Finding(f"{label}, lookups", "windows anywhere, in batches", asked, "M/s", reach_lookups)
        )
        report.findings.append(Finding(f"{label}, updates", "in batches of a ring", added, "M/s", reach_updates))
    report.notes.append(
        "Rates are per second of CPU time: with more to do than cores, wall time counts the pauses of every run longer "
        "than a time slice. CPU time does not, but feels who shares the caches: B-INT lookups vary most between runs."
    )
    report.notes.append(
        "An update is the structure's own work: the column lies in place. L-INT is one group (65,536 - 100,000 rows); "
        "every further group costs its updates again."
    )
    return report


def rate_of_updates(structure: Bare, count: int, rounds: int, batch: int | None = None) -> float:
    """Millions per second."""
    count = max(count, structure.nmax)
    structure.append(count, batch)  # compile, fill the ring
    return count / best_of(lambda: structure.append(count, batch), rounds, cpu_clock) / 1e6


def rate_of_lookups(structure: Bare, count: int, rounds: int, narrowest: int = 1, widest: int = WIDEST) -> float:
    """Millions per second, of a ring that is full."""
    if structure.name == "L-INT":  # the widths of its group
        narrowest = max(narrowest, structure.lookup_args[1].wmin)
    lo, hi = structure.windows(count, narrowest, widest)
    out = np.empty(lo.shape, structure.column.dtype)
    structure.ask(lo[:, :10].copy(), hi[:, :10].copy(), out[:, :10].copy())
    return count / best_of(lambda: structure.ask(lo, hi, out), rounds, cpu_clock) / 1e6
