"""arg_max, skew, slope, decayed sums at every event: against DuckDB where it has them, and against our own max."""

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import swag as sw
from bench import data
from bench.data import HOUR
from bench.report import Finding, Report
from bench.timing import best_of

ASKED = {  # ours, and the call of DuckDB
    "max": (sw.max("x"), "max(x)"),
    "arg_max": (sw.arg_max("y", "x"), "arg_max(y, x)"),
    "skew": (sw.skew("x"), "skewness(x)"),
    "slope": (sw.slope("y", "x"), "regr_slope(y, x)"),
    "decayed_sum": (sw.decayed_sum("x", half_life="10m"), None),
}


def run(quick: bool) -> Report:
    count, windows, theirs = (20_000, 4, 2) if quick else (1_000_000, 50, 2)
    events = table(count)
    widths = data.widths(windows, 1000, HOUR)
    some = widths[:: max(1, windows // theirs)][:theirs]
    report = Report(f"further aggregates: {windows} windows of 1 s to 1 h at each of {count:,} events")
    took = {}
    for name, (what, _) in ASKED.items():
        ours(what, events.slice(0, 1000), widths)  # compiled before the clock starts
        took[name] = best_of(lambda what=what: ours(what, events, widths), 1 if quick else 3)
    for name, (what, call) in ASKED.items():
        if name == "max":
            continue
        said = f"{took[name]:.2f} s, max {took['max']:.2f} s"
        report.findings.append(Finding(f"{name}, by max", said, took[name] / took["max"], "x", 3, at_most=True))
        if call is not None:
            agree(ours(what, events, some), duck(call, events, some), name)
            other = best_of(lambda call=call: duck(call, events, some), 1) * len(widths) / len(some)
            said = f"swag {took[name]:.2f} s, DuckDB {other:.1f} s (from {len(some)} of {len(widths)} windows)"
            report.findings.append(Finding(f"{name}, by DuckDB", said, other / took[name], "x", 10))
    return report


def table(count: int) -> pa.Table:
    events = data.stream(count)
    y = np.random.default_rng(5).normal(size=count)
    return pa.table({"ts": events.ts.astype("datetime64[ms]"), "t": events.ts, "x": events.x, "y": y})


def ours(what: sw.Aggregate, events: pa.Table, widths: list[int]) -> pa.Table:
    return sw.evaluate([sw.Query(what, sw.Range(f"{w}ms"), name=f"w{i}") for i, w in enumerate(widths)], events)


def duck(call: str, events: pa.Table, widths: list[int]) -> Any:
    """At each event, of its last w - 1 ms and itself."""
    frames = [f"(ORDER BY t RANGE BETWEEN {w - 1} PRECEDING AND CURRENT ROW)" for w in widths]
    items = ", ".join(f"{call} OVER {frame} AS w{i}" for i, frame in enumerate(frames))
    return duckdb.sql(f"SELECT t, {items} FROM events ORDER BY t").fetch_arrow_table()


def agree(mine: pa.Table, other: pa.Table, name: str) -> None:
    """At events that share no time with a later one: DuckDB's windows hold those as well."""
    t = np.asarray(other["t"])
    last = np.append(t[1:] > t[:-1], True)
    for column in other.column_names[1:]:
        a, b = (np.asarray(each[column].to_numpy(), np.float64)[last] for each in (mine, other))
        if not np.allclose(a, b, equal_nan=True, rtol=1e-6, atol=1e-6):
            raise AssertionError(f"swag and DuckDB differ in {name}, {column}.")
