"""What grows with what: updates with queries, lookups with the width of windows, memory with the rows kept."""

import math

import numpy as np
import pyarrow as pa

import swag as sw
from bench import bare
from bench.micro import rate_of_lookups
from bench.report import Finding, Report, Table
from bench.timing import best_of, cpu_clock

NMAX = 100_000
FLAT = 1.5  # "flat": at most this, end to end


def run(quick: bool) -> Report:
    report = Report("growth")
    for part in (queries, widths, memory):
        part(report, quick)
    report.notes.append(
        f'"Flat" is judged as at most {FLAT}x from one end to the other; "logarithmic" as that, '
        "times the growth of log W. CPU time."
    )
    return report


def queries(report: Report, quick: bool) -> None:
    """Sums and maxima over widths that differ; the longest window, and so what is kept, is the same."""
    counts = (1, 10, 100) if quick else (1, 10, 100, 1000)
    batch, rounds = (20_000, 3) if quick else (100_000, 15)
    cost = {count: _append_cost(count, batch, rounds) for count in counts}
    table = [[count, nanoseconds] for count, nanoseconds in cost.items()]
    report.tables.append(
        Table(
            f"ns per event appended, batches of {batch:,}, by queries of sum and of max registered",
            ["queries of each", "ns"],
            table,
        )
    )
    growth = cost[counts[-1]] / cost[1]
    report.findings.append(
        Finding("update cost by queries", f"{counts[-1]:,} of each registered / 1", growth, "x", FLAT, at_most=True)
    )


def _append_cost(count: int, batch: int, rounds: int) -> float:
    engine = sw.Engine(ts="ts")
    for i, width in enumerate(np.linspace(NMAX, NMAX // 100, count).astype(int)):
        engine.register(
            [sw.Query(kind("x"), sw.Rows(int(width)), name=f"{kind.__name__}{i}") for kind in (sw.sum, sw.max)]
        )
    x = np.random.default_rng(0).normal(size=batch)
    tables = iter([pa.table({"ts": np.arange(batch) + b * batch, "x": x}) for b in range(rounds + 6)])
    for _ in range(6):
        engine.append(next(tables))
    return best_of(lambda: engine.append(next(tables)), rounds, cpu_clock) / batch * 1e9


def widths(report: Report, quick: bool) -> None:
    levels = (7, 10, 13, 16)
    lookups, rounds = (20_000, 2) if quick else (200_000, 15)
    rows = []
    for level in levels:
        narrow, wide = 1 << level, min((2 << level) - 1, NMAX)
        made = [bare.running_integers(NMAX), bare.running_floats(NMAX), bare.landmarks(NMAX, narrow), bare.base(NMAX)]
        for structure in made:
            structure.append(2 * NMAX)
        rows.append([narrow, *(1e3 / rate_of_lookups(structure, lookups, rounds, narrow, wide) for structure in made)])
    header = ["W from", "R-INT", "R-INT (floats)", "L-INT max", "B-INT max"]
    report.tables.append(Table(f"ns per lookup by width (W to 2 W), {NMAX:,} rows kept", header, rows))
    for i, name in enumerate(header[1:4], 1):
        measured = f"W = {levels[-1] and rows[-1][0]:,} / W = {rows[0][0]:,}"
        report.findings.append(
            Finding(f"lookup cost by width, {name}", measured, rows[-1][i] / rows[0][i], "x", FLAT, at_most=True)
        )
    logarithmic = FLAT * math.log2(rows[-1][0]) / math.log2(rows[0][0])
    report.findings.append(
        Finding("lookup cost by width, B-INT", measured, rows[-1][4] / rows[0][4], "x", logarithmic, at_most=True)
    )


def memory(report: Report, quick: bool) -> None:
    kept = 1 << (14 if quick else 20)
    for label, kinds, reach in (
        ("sum and count", [sw.sum("x"), sw.count()], 24),
        ("sum, count and max", [sw.sum("x"), sw.count(), sw.max("x")], 40),
    ):
        engine = sw.Engine(ts="ts")
        engine.register([sw.Query(kind, sw.Rows(kept), name=kind.kind) for kind in kinds])
        for b in range(2):
            engine.append({"ts": np.arange(kept) + b * kept, "x": np.ones(kept)})
        engine.lookup_all()
        stats = engine.stats()
        measured = f"stats: bytes / kept, a full ring of {stats['kept']:,}"
        report.findings.append(
            Finding(
                f"memory per kept event, one float column: {label}",
                measured,
                stats["bytes"] / stats["kept"],
                "bytes",
                reach,
                at_most=True,
            )
        )
