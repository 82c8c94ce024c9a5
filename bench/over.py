"""A statement of 40 OVER columns over 4 windows and 2 partitions: ours, DuckDB's for the same text, Polars' by hand."""

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa

import swag as sw
from bench.report import Finding, Report
from bench.timing import interleaved

AGGREGATES = (
    "SUM(x)", "AVG(x)", "COUNT(*)", "MIN(x)", "MAX(x)", "STDDEV(x)", "SUM(x * y)", "SUM(x) FILTER (WHERE y > 0)",
    "AVG(y)", "MAX(y)",
)  # fmt: skip
HOUR = "RANGE BETWEEN INTERVAL {} HOURS PRECEDING AND CURRENT ROW"
WINDOWS = {
    "a": ("card", HOUR.format(24)), "b": ("card", "ROWS BETWEEN 99 PRECEDING AND CURRENT ROW"),
    "c": ("shop", HOUR.format(1)), "d": ("shop", HOUR.format(12)),
}  # fmt: skip
STATEMENT = "SELECT {} FROM events WINDOW {}".format(
    ", ".join(f"{of} OVER {name} AS {name}{i}" for name in WINDOWS for i, of in enumerate(AGGREGATES)),
    ", ".join(f"{name} AS (PARTITION BY {by} ORDER BY ts {frame})" for name, (by, frame) in WINDOWS.items()),
)


def run(quick: bool) -> Report:
    count = 50_000 if quick else 5_000_000
    report = Report(f"a statement of {4 * len(AGGREGATES)} OVER columns, 4 windows, 2 partitions, {count:,} events")
    events = payments(count)
    agree(events.slice(0, 20_000))
    jobs = {
        "swag": lambda: sw.evaluate(STATEMENT, events, progress=False),
        "DuckDB": lambda: by_duckdb(events),
        "Polars": lambda: by_polars(events),
    }
    took = interleaved(jobs, 1 if quick else 3)
    for name, reach in (("DuckDB", 10), ("Polars", 3)):
        said = f"swag {took['swag']:.2f} s, {name} {took[name]:.1f} s"
        report.findings.append(Finding(f"against {name}", said, took[name] / took["swag"], "x", reach=reach))
    return report


def payments(count: int) -> pa.Table:
    rng = np.random.default_rng(11)
    ts = np.cumsum(rng.integers(1, 40_000, count)) + 1_700_000_000_000_000  # microseconds: no two events are at once
    return pa.table(
        {
            "ts": pa.array(ts, pa.timestamp("us")),
            "card": rng.integers(0, max(10, count // 500), count),
            "shop": rng.integers(0, max(5, count // 5000), count),
            "x": rng.lognormal(3, 1, count),
            "y": rng.normal(size=count),
        }
    )


def by_duckdb(events: pa.Table) -> pa.Table:
    return duckdb.sql(STATEMENT).to_arrow_table()  # `events` is found by its name


def by_polars(events: pa.Table) -> pl.DataFrame:
    frame = pl.from_arrow(events)
    assert isinstance(frame, pl.DataFrame)
    frame = frame.with_columns(
        one=pl.lit(1, pl.Int64), xy=pl.col("x") * pl.col("y"), chosen=pl.when(pl.col("y") > 0).then(pl.col("x"))
    )
    columns = []
    for name, (by, frame_text) in WINDOWS.items():
        columns += [each.over(by).alias(f"{name}{i}") for i, each in enumerate(_rolling(frame_text))]
    return frame.lazy().select(columns).collect()


def _rolling(frame: str) -> list[pl.Expr]:
    """In the order of the aggregates above."""
    asked = [
        ("sum", "x"), ("mean", "x"), ("sum", "one"), ("min", "x"), ("max", "x"), ("std", "x"), ("sum", "xy"),
        ("sum", "chosen"), ("mean", "y"), ("max", "y"),
    ]  # fmt: skip
    if frame.startswith("ROWS"):
        return [getattr(pl.col(of), f"rolling_{kind}")(100, min_samples=1) for kind, of in asked]
    size = f"{frame.split()[3]}h"
    return [getattr(pl.col(of), f"rolling_{kind}_by")("ts", size, closed="both") for kind, of in asked]


def agree(events: pa.Table) -> None:
    ours, polars = sw.evaluate(STATEMENT, events), by_polars(events)
    theirs = duckdb.sql(f"{STATEMENT} ORDER BY ts").to_arrow_table()
    for name in ours.column_names:
        values = [np.asarray(each[name].to_numpy(), np.float64) for each in (ours, theirs, polars)]
        np.testing.assert_allclose(values[0], values[1], rtol=1e-6, atol=1e-6)
        nulls_apart = np.nan_to_num(values[0]), np.nan_to_num(values[2])  # a sum of nothing is 0 in Polars
        np.testing.assert_allclose(*nulls_apart, rtol=1e-6, atol=1e-6)
