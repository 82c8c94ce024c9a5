"""Point-in-time features: what was known of a key at the moment of each request, against DuckDB's window query."""

import numpy as np

from bench import data
from bench.competitors import FEATURES, DuckDB, Swag
from bench.data import DAY, HOUR
from bench.report import Finding, Report
from bench.timing import best_of


def run(quick: bool) -> Report:
    count, keys, asked, windows = (20_000, 200, 4_000, 4) if quick else (1_000_000, 10_000, 200_000, 20)
    events = data.trades(count, keys)
    requests = data.requests(events, asked)
    widths = data.widths(windows, HOUR, 7 * DAY)
    some = widths[windows // 8 :: windows // 4]
    ours, theirs = Swag(events), DuckDB(events)
    theirs.load_requests(requests)
    agree(ours.features(requests, some), theirs.features(some), len(some))
    part = best_of(lambda: theirs.features(some), 1)
    mine = best_of(lambda: ours.features(requests, widths), 1 if quick else 3)
    whole = part * len(widths) / len(some)
    report = Report(
        f"point-in-time features: {count:,} events of {keys:,} keys, "
        f"{windows} windows x {len(FEATURES)} aggregates, {asked:,} requests"
    )
    took = f"swag {mine:.2f} s, DuckDB {whole:.1f} s (from {len(some)} of {len(widths)} windows)"
    report.findings.append(Finding("count, sum, mean, max of 1 h - 7 d", took, whole / mine, "x", reach=30))
    report.notes.append(
        "Requests are joined in as rows of DuckDB's window query. Its time is that of some windows, scaled to all."
    )
    return report


def agree(mine: object, other: object, windows: int) -> None:
    other = other.sort_by("row")
    for i in range(windows):
        for kind in FEATURES:
            a, b = (np.asarray(table[f"{kind}{i}"].to_numpy(), np.float64) for table in (mine, other))
            if not np.allclose(a, b, equal_nan=True, rtol=1e-9):
                raise AssertionError(f"swag and DuckDB differ in {kind} of window {i}.")
