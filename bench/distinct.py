"""Distinct values and quantiles: stored events against DuckDB, lookups and updates of an engine, on one core."""

from collections.abc import Callable

import duckdb
import numpy as np
import pyarrow as pa

import swag as sw
from bench.report import Finding, Report
from bench.timing import best_of, cpu_clock, interleaved

VALUES, WINDOWS, STEP, ROWS = 10_000, 20, 10, 10_000
SHARE = 5  # one window in so many is asked of DuckDB: it takes as long for each
ASKED: dict[str, Callable[[], sw.Aggregate]] = {
    "count_distinct": lambda: sw.count_distinct("x"),
    "0.99-quantile": lambda: sw.quantile("x", 0.99),
    "median": lambda: sw.median("x"),
}


def run(quick: bool) -> Report:
    count, keys = (20_000, 4) if quick else (1_000_000, 64)
    report = Report(f"distinct values, {VALUES:,} of them, and quantiles")
    report.findings.append(_against_duckdb(stream(count), 1 if quick else 3))
    for label, make in ASKED.items():
        report.findings += _engine(label, make(), keys, 4 if quick else 12)
    report.notes.append(
        f"DuckDB is asked for one window in {SHARE}, and its time multiplied. Rates are per second of CPU time, of an "
        f"engine with {WINDOWS} windows of {ROWS:,} rows, more or less, of {keys} keys, whose answers are looked up at "
        "once."
    )
    return report


def stream(count: int, keys: int = 1) -> pa.Table:
    rng = np.random.default_rng(3)
    return pa.table({"ts": np.arange(count) * STEP, "k": np.arange(count) % keys, "x": rng.integers(0, VALUES, count)})


def _against_duckdb(events: pa.Table, rounds: int) -> Finding:
    widths = [int(w) for w in np.geomspace(100 * STEP, 100_000 * STEP, WINDOWS)]
    connection = duckdb.connect()
    connection.register("arrived", events)
    connection.execute("CREATE TABLE events AS SELECT * FROM arrived")
    over = [
        f"count(DISTINCT x) OVER (ORDER BY ts RANGE BETWEEN {w - 1} PRECEDING AND CURRENT ROW) AS w{w}"
        for w in widths[::SHARE]
    ]
    queries = [sw.Query(sw.count_distinct("x"), sw.Range(w), f"w{w}") for w in widths]
    sw.evaluate(queries, events.slice(0, 100))
    contenders = {
        "swag": lambda: sw.evaluate(queries, events),
        "DuckDB": lambda: connection.sql(f"SELECT {', '.join(over)} FROM events").to_arrow_table(),
    }
    best = interleaved(contenders, rounds, cpu_clock)
    measured = f"{WINDOWS} Range windows at each of {events.num_rows:,} events, DuckDB / swag"
    return Finding("count_distinct", measured, SHARE * best["DuckDB"] / best["swag"], "x", 30)


def _engine(label: str, of: sw.Aggregate, keys: int, rounds: int) -> list[Finding]:
    """Each key has filled its windows once when lookups begin."""
    engine, batch = sw.Engine(key="k"), keys * 2_500
    events = stream(5 * batch, keys)
    engine.register([sw.Query(of, sw.Rows(ROWS - 10 * i), f"w{i}") for i in range(WINDOWS)])
    for at in range(0, 4 * batch, batch):
        engine.append(events.slice(at, batch))
    engine.lookup_all()
    lookups = WINDOWS * keys / best_of(engine.lookup_all, rounds, cpu_clock) / 1e6
    updates = batch / best_of(lambda: engine.append(_later(engine, events, batch)), rounds // 2, cpu_clock) / 1e6
    of_rows = f"{ROWS:,} rows"
    return [
        Finding(f"{label}, lookups", of_rows, lookups, "M/s", 0.5),
        Finding(f"{label}, updates", of_rows, updates, "M/s", 5 if label == "count_distinct" else None),
    ]


def _later(engine: sw.Engine, events: pa.Table, batch: int) -> pa.Table:
    """The same events again, behind all that came."""
    some = events.slice(0, batch)
    ts = some["ts"].to_numpy() + engine.stats()["events"] * STEP
    return some.set_column(0, "ts", pa.array(ts))
