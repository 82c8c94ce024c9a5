"""Jumping windows: a frequency that is pushed down, against tagging every tuple with its windows, and against peers."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

import swag as sw
from bench import machine, plots
from bench.report import Finding, Report, Table
from bench.timing import elapsed, interleaved
from bench.window_ids import means

FIGURES = Path(__file__).parent.parent / "docs" / "figures"
SHARES = (0.1, 0.3, 0.5, 0.7, 1.0)
SECOND = 1000  # ts of the peers' events is in milliseconds
KEYS = 100
UNNESTED = """SELECT tick, avg(x) FROM (
    SELECT x, unnest(range(slot, slot + {minutes})) AS tick
    FROM (SELECT x, ceil(epoch_ms(ts) / 60000.0)::BIGINT AS slot FROM events)
) GROUP BY tick ORDER BY tick"""


def run(quick: bool) -> Iterator[Report]:
    if not quick:
        machine.touch_memory()
    yield figure_1(quick, by_key=False)
    yield figure_1(quick, by_key=True)
    yield figure_2(quick)
    yield in_batches(quick)
    yield hopping(quick)


@contextmanager
def _one_thread() -> Iterator[None]:
    before = os.environ.get("SWAG_THREADS")
    os.environ["SWAG_THREADS"] = "1"
    try:
        yield
    finally:
        os.environ.pop("SWAG_THREADS") if before is None else os.environ.update(SWAG_THREADS=before)


def sequence(count: int, seed: int = 4) -> pa.Table:
    """A tuple per unit of time, so that a window by time is one of as many tuples of the whole stream."""
    rng = np.random.default_rng(seed)
    return pa.table({"ts": np.arange(1, count + 1), "k": rng.integers(0, KEYS, count), "x": rng.random(count)})


def figure_1(quick: bool, by_key: bool) -> Report:
    count, frequencies = (50_000, [100, 1_000]) if quick else (5_000_000, [100, 300, 1_000, 3_000, 10_000])
    grouped = " GROUP BY k" if by_key else ""
    report = Report(f"AVG(x) [W tuples, FREQUENCY F TUPLES]{grouped}, {count:,} tuples: pushed down against tagged")
    events = sequence(count)
    values, keys = (events.column(name).to_numpy() for name in ("x", "k"))
    ratios: dict[float, list[float]] = {share: [] for share in SHARES}
    costs: dict[float, list[float]] = {share: [] for share in SHARES}
    with _one_thread():
        for frequency in frequencies:
            for share in SHARES:
                width = int(frequency * share)
                window = sw.Range(width) if by_key else sw.Rows(width)
                query = sw.Query(sw.mean("x"), window, "mean", every=sw.Every(frequency))
                key, groups = ("k", keys) if by_key else (None, None)
                contenders = {
                    "swag": lambda q=query, k=key: sw.evaluate([q], events, key=k),
                    "tagged": lambda f=frequency, w=width, g=groups: means(values, g, f, w, KEYS),
                }
                agree(contenders)
                best = interleaved(contenders, 1 if quick else 5)
                ratios[share].append(best["tagged"] / best["swag"])
                costs[share].append(1e9 * best["swag"] / count)
    _conclude(report, frequencies, ratios, costs, by_key, quick)
    return report


def agree(contenders: dict) -> None:
    """The same answers, whoever gives them."""
    ours, theirs = contenders["swag"](), contenders["tagged"]()
    order = np.lexsort(theirs[:-1][::-1])
    np.testing.assert_array_equal(ours.column("tick").to_numpy(), theirs[0][order])
    np.testing.assert_allclose(ours.column("mean").to_numpy(), theirs[-1][order], rtol=1e-9)


def _conclude(
    report: Report,
    frequencies: list[int],
    ratios: dict[float, list[float]],
    costs: dict[float, list[float]],
    by_key: bool,
    quick: bool,
) -> None:
    everywhere = [ratio for share in SHARES for ratio in ratios[share]]
    average = {share: float(np.mean(costs[share])) for share in SHARES}
    took = f"{average[0.1]:.1f} ns per tuple at W/F = 10 %, {average[1.0]:.1f} ns at 100 %"
    report.findings += [
        Finding("faster than tagging, at the worst", "the least of all ratios", min(everywhere), "x", reach=1),
        Finding("cost falls with W/F", took, average[1.0] / average[0.1], "x", reach=1),
    ]
    header = ["frequency F", *(f"W/F = {share:.0%}" for share in SHARES)]
    rows = [[f, *(round(ratios[share][i], 2) for share in SHARES)] for i, f in enumerate(frequencies)]
    name = "figure-frequency-1b.png" if by_key else "figure-frequency-1a.png"
    figure = None if quick else plots.lines(
        FIGURES / name, "time of tagging / time of the pushed-down frequency", "frequency F (tuples)", "times faster",
        [float(f) for f in frequencies], {f"W/F = {share:.0%}": ratios[share] for share in SHARES}, log_x=True,
    )  # fmt: skip
    report.tables.append(Table("How many times faster than tagging each tuple", header, rows, figure))
    rows = [[f, *(round(costs[share][i], 2) for share in SHARES)] for i, f in enumerate(frequencies)]
    report.tables.append(Table("Pushed down: ns per tuple of the stream", header, rows))
    report.notes.append(
        "Both on one thread, in turns, the best of five. Tagging (bench/window_ids.py) is compiled too: one pass tags, "
        "one groups by a hash of the tags; ours also checks that ts is in order."
    )


def figure_2(quick: bool) -> Report:
    """Mixed jumping windows: a range of time, a frequency in tuples."""
    count = 50_000 if quick else 2_000_000
    rng = np.random.default_rng(5)
    ts = np.cumsum(rng.exponential(SECOND / 100, count)).astype(np.int64)  # a hundred tuples per second
    events = pa.table({"ts": ts, "x": rng.random(count)})
    report = Report(f"AVG(x) [RANGE W seconds, FREQUENCY F TUPLES], {count:,} tuples, 100 per second")
    frequencies, seconds = [100, 1_000, 10_000], [1, 10, 60, 600]
    rows = []
    for frequency in frequencies:
        row: list[object] = [frequency]
        for width in seconds:
            query = sw.Query(sw.mean("x"), sw.Range(width * SECOND), "mean", every=sw.Every(frequency))
            best = interleaved({"swag": lambda q=query: sw.evaluate([q], events)}, 1 if quick else 3)
            row.append(round(1e6 * best["swag"] / (count // frequency), 2))
        rows.append(row)
    report.tables.append(Table("µs per answer", ["frequency F", *(f"{s} s" for s in seconds)], rows))
    slowest = max(cell for row in rows for cell in row[1:])  # type: ignore[type-var]
    report.findings.append(Finding("mixed jumping windows", "the slowest answer", float(slowest), "µs"))  # type: ignore[arg-type]
    return report


def in_batches(quick: bool) -> Report:
    """A batch that decides a tick costs its rows and the lookup, however many rows the window holds."""
    batch, widths = (100, [1_000, 10_000]) if quick else (1_000, [10_000, 100_000, 1_000_000])
    report = Report(
        f"[RANGE W, FREQUENCY {batch:,} TUPLES] in an engine, batches of {batch:,} tuples, each decides a tick"
    )
    aggregates = {"mean": sw.mean("x"), "max": sw.max("x"), "median": sw.median("x")}
    rows = []
    for name, aggregate in aggregates.items():
        for key in (None, "k"):
            took = [1e3 * _per_batch(aggregate, width, batch, key, 3 if quick else 60) for width in widths]
            label = f"{name}{', GROUP BY k' if key else ''}"
            rows.append([label, *(round(ms, 2) for ms in took)])
            most = max(after / before for before, after in pairwise(took))
            said = " ms, ".join(f"{ms:.2f}" for ms in took)
            report.findings.append(Finding(f"{label}: ten times the rows", f"{said} ms", most, "x", 1.5, at_most=True))
    report.tables.append(Table("ms per batch", ["aggregate", *(f"W = {width:,}" for width in widths)], rows))
    return report


def _per_batch(aggregate: sw.Aggregate, width: int, batch: int, key: str | None, batches: int) -> float:
    """The median, once the window is full."""
    events = sequence(width + batch * (batches + 1))
    engine = sw.Engine(key=key)
    engine.register(sw.Query(aggregate, sw.Range(width), "q", every=sw.Every(batch)))
    engine.append(events[: width + batch])
    times = [
        elapsed(lambda at=at: engine.append(events[at : at + batch])) for at in range(width + batch, len(events), batch)
    ]
    assert engine.emitted().num_rows >= batches
    return float(np.median(times))


def hopping(quick: bool) -> Report:
    """Hopping windows: DuckDB unnests the windows of each event and groups; Polars has group_by_dynamic."""
    import duckdb
    import polars as pl

    count = 50_000 if quick else 2_000_000
    rng = np.random.default_rng(6)
    ts = np.cumsum(rng.exponential(SECOND / 10, count)).astype(np.int64).astype("datetime64[ms]")
    events = pa.table({"ts": pa.array(ts), "x": rng.random(count)})
    frame = pl.from_arrow(events)
    report = Report(f"mean of hopping windows over {count:,} events, on all cores")
    database = duckdb.connect()
    database.register("events", events)
    for width in ("1m", "5m", "1h"):
        query = sw.Query(sw.mean("x"), sw.Range(width), "mean", every=sw.Every("1m"))
        minutes = {"1m": 1, "5m": 5, "1h": 60}[width]
        contenders = {
            "swag": lambda q=query: sw.evaluate([q], events),
            "Polars": lambda w=width: frame.group_by_dynamic(
                "ts", every="1m", period=w, closed="right", label="right"
            ).agg(pl.col("x").mean()),
            "DuckDB": lambda m=minutes: database.sql(UNNESTED.format(minutes=m)).to_arrow_table(),
        }
        answer = contenders["swag"]().column("mean").to_numpy()
        theirs = np.asarray(contenders["DuckDB"]().column(1))[: answer.size]
        np.testing.assert_allclose(answer, theirs, rtol=1e-9)
        best = interleaved(contenders, 1 if quick else 12)
        for peer in ("Polars", "DuckDB"):
            took = f"swag {1e3 * best['swag']:.1f} ms, {peer} {1e3 * best[peer]:.1f} ms"
            reach = None if minutes == 1 else 5  # tumbling is not hopping: nothing is shared, every event is added once
            report.findings.append(Finding(f"{width} every 1m", took, best[peer] / best["swag"], "x", reach))
    report.notes.append("Polars gives a window of its own before the first full slot; the others are the same.")
    return report
