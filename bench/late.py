"""What late events cost where they are put into their place (hold=False), against the same events in order."""

import numpy as np
import pyarrow as pa

import swag as sw
from bench.report import Finding, Report, Table
from bench.timing import elapsed

BATCH, DISPLACED, SHARE = 10_000, 10_000, 0.01
WINDOWS = (1_000, 10_000, 100_000)  # rows, as there is one for every instant
AGGREGATES = {"sums": [sw.sum], "maxima": [sw.max], "sums and maxima": [sw.sum, sw.max]}


def run(quick: bool) -> Report:
    batches = 12 if quick else 120
    report = Report(f"late events in their place: one substream, batches of {BATCH:,} events, {SHARE:.0%} of them late")
    arrived = stream(batches)
    rows = []
    for label, aggregates in AGGREGATES.items():
        times = _times(arrived, aggregates)
        in_order, waiting, late = (float(np.median(each)) for each in times.values())
        ratio = float(np.median(times["late"] / times["in order"]))
        reach = 3 if label == "sums and maxima" else None
        report.findings.append(
            Finding(label, f"late by up to {DISPLACED:,} rows / the same events in order", ratio, "x", reach, True)
        )
        rows.append([label, in_order * 1e3, late * 1e3, waiting * 1e3, BATCH / late / 1e6])
    report.tables.append(
        Table(
            "milliseconds to append a batch, medians",
            ["windows of 1,000 to 100,000 rows", "in order", "hold=False", "hold=True", "hold=False, M events/s"],
            rows,
        )
    )
    report.notes.append(
        f"A late event comes up to {DISPLACED:,} events after its time, so that nearly every batch displaces that many "
        "rows. Engines take turns, batch by batch; what is compared are the medians of the ratios of their times."
    )
    return report


def stream(batches: int) -> pa.Table:
    """Events in order of arrival."""
    rng, count = np.random.default_rng(6), batches * BATCH
    ts = np.arange(count)
    arrival = ts + np.where(rng.random(count) < SHARE, rng.integers(1, DISPLACED, count), 0)
    order = np.argsort(arrival, kind="stable")
    return pa.table({"ts": ts[order], "x": rng.normal(size=count)})


def _times(arrived: pa.Table, aggregates: list) -> dict[str, np.ndarray]:  # type: ignore[type-arg]
    """Seconds per batch, without the first ones, which fill the windows."""
    in_order = arrived.take(pa.array(np.argsort(arrived["ts"].to_numpy(), kind="stable")))
    engines = {
        "in order": (sw.Engine(), in_order),
        "waiting": (sw.Engine(lateness=DISPLACED), arrived),
        "late": (sw.Engine(lateness=DISPLACED, hold=False), arrived),
    }
    for engine, _ in engines.values():
        engine.register([sw.Query(each("x"), sw.Range(width)) for each in aggregates for width in WINDOWS])
    seconds: dict[str, list[float]] = {name: [] for name in engines}
    for first in range(0, arrived.num_rows, BATCH):
        for name, (engine, events) in engines.items():
            batch = events.slice(first, BATCH)
            seconds[name].append(elapsed(lambda engine=engine, batch=batch: engine.append(batch)))  # type: ignore[misc]
    skipped = min(20, arrived.num_rows // BATCH // 3)
    return {name: np.array(each[skipped:]) for name, each in seconds.items()}
