"""How fast frames are found and filled, beside gaps-and-islands SQL in DuckDB and Polars expressions, in one run.

python -m bench.frames_speed [--quick] [--events 10000000] [--keys 1000] [--rounds 5]
"""

import argparse
import time
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa

import frames as fr
import swag as sw
from bench import machine
from bench.report import Finding, Report, Table, insert, markdown, plain
from bench.timing import best_of, cpu_clock, interleaved

HIGH, WIDTH, MOVE, LOAD = 1.2, 1.0, 1.0, 25.0
SPECS = {
    "threshold": (fr.Threshold("x", ">", HIGH), 120.0),
    "boundary": (fr.Boundary("x", WIDTH), 100.0),
    "delta": (fr.Delta("x", MOVE), 60.0),
    "aggregate": (fr.Aggregate(sw.sum("v"), ">=", LOAD), 60.0),
    "threshold, predicate of three columns": (fr.Threshold("x > 1.2 AND v > 0.05 AND w < 0.95"), 80.0),
    "session": (fr.Session(5_000), 120.0),
    "state of text, dictionary": (fr.State("level"), 100.0),
    "between": (fr.Between("x > 1.2", "x < -1.2"), 60.0),
    "boundary, breaks": (fr.Boundary("x", breaks=[-1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5]), 150.0),
    "boundary, at most 20 rows": (fr.Boundary("x", WIDTH, max_rows=20), 60.0),
}

OWN = {  # built-in kinds, stated in functions of one's own: frame, and what is compared with it
    "threshold": (
        fr.Threshold("x", ">", HIGH),
        fr.Custom("x", open=lambda e, s: e.x > HIGH, close=lambda e, s: not e.x > HIGH),
    ),
    "aggregate": (
        fr.Aggregate(sw.sum("v"), ">=", LOAD),
        fr.Custom(
            "v", state=0.0, update=lambda e, s: s + e.v, open=lambda e, s: True,
            close=lambda e, s: 2 * (s + e.v >= LOAD), unfinished=False,
        ),
    ),
}  # fmt: skip

ISLANDS = {
    "threshold": """
        WITH numbered AS (SELECT k, ts, x, row_number() OVER (PARTITION BY k ORDER BY ts) AS n FROM events),
             islands AS (SELECT k, ts, n - row_number() OVER (PARTITION BY k ORDER BY ts) AS i
                         FROM numbered WHERE x > {high})
        SELECT k, min(ts) AS start, max(ts) AS "end", count(*) AS n FROM islands GROUP BY k, i""",
    "boundary": """
        WITH cells AS (SELECT k, ts, ceil(x / {width}) AS c FROM events),
             cuts AS (SELECT k, ts, c, (c IS DISTINCT FROM lag(c) OVER (PARTITION BY k ORDER BY ts))::INT AS cut
                      FROM cells),
             islands AS (SELECT k, ts, c, sum(cut) OVER (PARTITION BY k ORDER BY ts) AS i FROM cuts)
        SELECT k, min(ts) AS start, max(ts) AS "end", count(*) AS n, first(c) FROM islands GROUP BY k, i""",
}
RECURSIVE = """
    WITH RECURSIVE numbered AS (SELECT k, ts, v, row_number() OVER (PARTITION BY k ORDER BY ts) AS n FROM events),
    walk AS (
        SELECT k, n, ts, v AS total, ts AS start, 1 AS rows FROM numbered WHERE n = 1
        UNION ALL
        SELECT w.k, e.n, e.ts, CASE WHEN w.total >= {load} THEN 0 ELSE w.total END + e.v,
               CASE WHEN w.total >= {load} THEN e.ts ELSE w.start END,
               CASE WHEN w.total >= {load} THEN 0 ELSE w.rows END + 1
        FROM walk w JOIN numbered e ON e.k = w.k AND e.n = w.n + 1)
    SELECT k, start, ts AS "end", rows, total FROM walk WHERE total >= {load}"""
RANGE_JOIN = 'SELECT e.*, f.frame_id FROM events e JOIN frames f ON e.k = f.k AND e.ts BETWEEN f.start AND f."end"'


def signal(size: int, keys: int, seed: int = 0) -> pa.Table:
    """Waves with noise, one per key, their events interleaved at random; v > 0 adds up to 25 in about 25 rows.

    level: where a wave is, as text.
    """
    rng = np.random.default_rng(seed)
    k = rng.integers(0, keys, size)
    phase, period = rng.uniform(0, 2 * np.pi, keys), rng.uniform(150, 600, keys)
    x = 2 * np.sin(np.arange(size) / keys * (2 * np.pi / period)[k] + phase[k]) + rng.normal(0, 0.01, size)
    words, level = pa.array(["low", "falling", "rising", "high"]), np.clip(np.ceil(x) + 1, 0, 3).astype(np.int32)
    columns = {"ts": np.arange(size), "k": k, "x": x, "v": rng.uniform(0, 2, size), "w": rng.uniform(0, 1, size)}
    return pa.table(columns | {"level": pa.DictionaryArray.from_arrays(pa.array(level), words)})


def by_polars(kind: str, events: pl.DataFrame, grouped: bool) -> pl.DataFrame:
    """The same frames with expressions; events that lie together key by key need no `over`."""
    state = (pl.col("x") > HIGH) if kind == "threshold" else (pl.col("x") / WIDTH).ceil()
    if grouped:
        cut = (pl.col("k") != pl.col("k").shift(1)) | (pl.col("s") != pl.col("s").shift(1))
        marked = events.lazy().with_columns(s=state).with_columns(run=cut.fill_null(True).cum_sum())
    else:
        marked = events.lazy().with_columns(s=state).with_columns(run=pl.col("s").rle_id().over("k"))
    kept = marked.filter("s") if kind == "threshold" else marked
    return (
        kept.group_by("k", "run")
        .agg(start=pl.col("ts").min(), end=pl.col("ts").max(), n=pl.len(), s=pl.col("s").first())
        .collect()
    )


def detection(report: Report, size: int, keys: int, rounds: int) -> None:
    table = signal(size, keys)
    order = pa.array(np.lexsort((np.asarray(table["ts"]), np.asarray(table["k"]))))
    for layout, events in (("interleaved", table), ("key by key", table.take(order).combine_chunks())):
        for kind, (spec, reach) in SPECS.items():
            found = fr.detect(spec, events, key="k").num_rows  # compiles
            contenders: dict[str, Any] = {"frames": lambda spec=spec, events=events: fr.detect(spec, events, key="k")}
            if kind in ISLANDS:
                rows, connection = pl.from_arrow(events), duckdb.connect()
                connection.register("events", events)
                sql = ISLANDS[kind].format(high=HIGH, width=WIDTH)
                contenders["DuckDB"] = lambda sql=sql, connection=connection: connection.sql(sql).arrow()
                contenders["Polars"] = lambda kind=kind, rows=rows, layout=layout: by_polars(
                    kind, rows, layout == "key by key"
                )
                assert contenders["Polars"]().height == contenders["DuckDB"]().read_all().num_rows == found
            best = interleaved(contenders, rounds)
            work = interleaved({"frames": contenders["frames"]}, rounds, cpu_clock)["frames"]
            name = f"{kind}, {layout} ({found:,} frames)"
            report.findings.append(Finding(name, "events per second, wall", size / best["frames"] / 1e6, "M/s", reach))
            report.findings.append(
                Finding(name, "per second of CPU, times 2 cores", 2 * size / work / 1e6, "M/s", reach)
            )
            for other in ("DuckDB", "Polars"):
                if other in best:
                    report.findings.append(Finding(name, f"over {other}", best[other] / best["frames"], "x", 2.0))


def custom(report: Report, size: int, keys: int, rounds: int) -> None:
    """Frames by functions of one's own, one open at a time, beside the built-in kind that they restate."""
    events = signal(size, keys)
    for kind, specs in OWN.items():
        ways = {way: partial(fr.detect, spec, events, key="k") for way, spec in zip(("built in", "own"), specs)}
        found = {find().num_rows for find in ways.values()}  # compiles
        assert len(found) == 1
        best = interleaved(ways, rounds)
        name = f"{kind} by functions of one's own ({found.pop():,} frames)"
        report.findings.append(Finding(name, "events per second, wall", size / best["own"] / 1e6, "M/s"))
        report.findings.append(Finding(name, "over the built-in kind", best["built in"] / best["own"], "x", 0.5))


def against_recursion(report: Report, size: int, keys: int, rounds: int) -> None:
    events = signal(size, keys)
    connection = duckdb.connect()
    connection.register("events", events)
    ask = lambda: connection.sql(RECURSIVE.format(load=LOAD)).arrow().read_all()  # noqa: E731
    spec = SPECS["aggregate"][0]
    assert ask().num_rows == fr.detect(spec, events, key="k").num_rows
    best = interleaved({"frames": lambda: fr.detect(spec, events, key="k"), "DuckDB": ask}, rounds)
    name = f"aggregate frames, {size:,} events of {keys:,} keys"
    report.findings.append(Finding(name, "over DuckDB's recursive query", best["DuckDB"] / best["frames"], "x", 20.0))


def filling(report: Report, size: int, keys: int, frames: int, rounds: int) -> None:
    events = signal(size, keys)
    spec = fr.Aggregate(sw.count(), ">=", size // frames)
    whole = fr.detect(spec, events, key="k")
    found = whole.select(["frame_id", "k", "start", "end"])
    connection = duckdb.connect()
    connection.register("events", events)
    connection.register("frames", found)
    contenders = {
        "frames": lambda: fr.fill(found, events, key="k"),
        "DuckDB": lambda: connection.sql(RANGE_JOIN).arrow().read_all(),
    }
    assert contenders["frames"]().num_rows == contenders["DuckDB"]().num_rows
    best = interleaved(contenders, rounds)
    name = f"fill {size:,} events into {found.num_rows:,} frames"
    report.findings.append(Finding(name, "over DuckDB's range join", best["DuckDB"] / best["frames"], "x", 5.0))
    wanted = [sw.count(), sw.sum("v"), sw.mean("v"), sw.max("x")]
    ways = {
        "fill": (lambda: fr.fill(whole, events, key="k"), 80.0),
        "summarise by 4 aggregates": (lambda: fr.summarize(whole, events, wanted, key="k"), None),
        "detect and summarise": (
            lambda: fr.summarize(fr.detect(spec, events, key="k"), events, wanted, key="k"),
            30.0,
        ),
    }
    for way, (call, reach) in ways.items():
        call()  # compiles
        wall, work = (2 * size / best_of(call, rounds, clock) / 1e6 for clock in (time.perf_counter, cpu_clock))
        said = f"{way}, own events"
        report.findings.append(Finding(name, f"{said}: events per second, wall", wall / 2, "M/s", reach))
        report.findings.append(Finding(name, f"{said}: per second of CPU, times 2 cores", work, "M/s", reach))


def endless(report: Report, batches: int, size: int = 1000) -> None:
    """One frame that never ends, filled from its own stream: what waits, with and without fragments."""
    rows = []
    for fragments in (False, True):
        detector, filler = fr.Detector(fr.Threshold("x", ">", 0), fragments=fragments), fr.Filler()
        most, start = 0, time.perf_counter()
        for batch in range(batches):
            events = {"ts": np.arange(size) + size * batch, "x": np.ones(size)}
            filler.push_events(events)
            most = max(most, filler.buffered)
            detector.push(events)
            filler.push_frames(detector.punctuate(size * batch + size - 1))
            filler.punctuate_frames(detector.promised)
            filler.punctuate_events(size * batch + size - 1)
        rows.append([("fragments" if fragments else "whole frames"), most, round(time.perf_counter() - start, 2)])
        if fragments:
            report.findings.append(
                Finding(
                    "one endless frame, with fragments",
                    "peak buffer of Filler",
                    float(most),
                    "events",
                    2.0 * size,
                    True,
                )
            )
    report.tables.append(
        Table(f"one endless frame, {batches} punctuations of {size:,} events", ["", "peak buffer", "seconds"], rows)
    )


def run(args: argparse.Namespace) -> dict[str, Any]:
    report = measure(args)
    print(plain(report))
    if args.markdown is not None:
        insert(args.markdown, "frames", markdown(report, args.markdown.parent))
    return report.as_json()


def measure(args: argparse.Namespace) -> Report:
    size, keys, rounds = (
        (args.events // 20, args.keys // 10, 2) if args.quick else (args.events, args.keys, args.rounds)
    )
    report = Report(f"frames: {size:,} events of {keys:,} keys, Arrow in, Arrow out")
    if not args.quick:
        machine.touch_memory()
    detection(report, size, keys, rounds)
    custom(report, size, keys, rounds)
    for some in (100,) if args.quick else (100, 1000):
        against_recursion(report, 20_000 if args.quick else 1_000_000, some, 2 if args.quick else 7)  # ours: 10 ms
    filling(report, size, keys, size // 100, rounds)
    endless(report, 50 if args.quick else 500)
    report.notes.append("Contenders take turns, and the best round of each counts: ratios are of wall times.")
    report.notes.append("Wall times include what else the machine does; CPU seconds of all threads do not.")
    return report


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.frames_speed", description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--keys", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--markdown", type=Path, help="a page with a place for the results, e.g. docs/frames.md")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    run(arguments(argv))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
