"""How fast a query over frames runs in an engine, batch by batch, and what it keeps of frames that never end.

python -m bench.frames_continuous [--quick] [--events 2000000] [--keys 100000] [--batch 10000] [--rounds 3]
"""

import argparse
import time
from typing import Any

import numpy as np
import pyarrow as pa

import frames as fr
import swag as sw
from bench.frames_speed import HIGH, signal
from bench.report import Finding, Report, Table, plain

VALUES = {"mean": sw.mean("v"), "n": sw.count()}


def batches_of(events: pa.Table, size: int) -> list[pa.Table]:
    return [events.slice(at, size).combine_chunks() for at in range(0, events.num_rows, size)]


def run_through(query: fr.FrameQuery, batches: list[pa.Table], clock: Any = time.perf_counter) -> tuple[float, int]:
    """Seconds to append all batches, and rows that came out; the first batch is not among the seconds."""
    engine = sw.Engine(key="k")
    engine.register(query)
    engine.append(batches[0])
    start = clock()
    for batch in batches[1:]:
        engine.append(batch)
    return clock() - start, engine.emitted(query.label).num_rows


def throughput(report: Report, size: int, keys: int, batch: int, rounds: int) -> None:
    """A threshold for so long, with a mean and a count: as events come, and of all of them at the end."""
    events = signal(size, keys)
    query = fr.FrameQuery(fr.Threshold("x", ">", HIGH, min_duration=2 * keys), VALUES, name="q")
    parts = batches_of(events, batch)
    run_through(query, parts[:3])
    found = [run_through(query, parts) for _ in range(rounds)]
    work = [run_through(query, parts, time.process_time) for _ in range(rounds)]
    stored = sw.evaluate(query, events, key="k").num_rows
    assert stored >= found[0][1] >= stored - keys
    took, events_timed = min(seconds for seconds, _ in found), size - batch
    name = f"{size:,} events of {keys:,} keys, batches of {batch:,}, T+D with AVG and COUNT ({found[0][1]:,} frames)"
    report.findings.append(Finding(name, "events per second, wall", events_timed / took / 1e6, "M/s", 3.0))
    cpu = min(seconds for seconds, _ in work)
    report.findings.append(Finding(name, "events per second of CPU", events_timed / cpu / 1e6, "M/s", 3.0))


def endless(report: Report, batches: int, size: int = 10_000, keys: int = 100) -> None:
    """Frames that never end: what an engine keeps of them."""
    rows = []
    for what, values in (("AVG, COUNT, MAX, STDDEV", [sw.mean("x"), sw.count(), sw.max("x"), sw.std("x")]),
                         ("MEDIAN", [sw.median("x")])):  # fmt: skip
        engine, ts = sw.Engine(key="k"), np.arange(size)
        engine.register(fr.FrameQuery(fr.Threshold("x", ">", 0), values, name="q"))
        sizes = []
        for batch in range(batches):
            engine.append({"ts": ts + batch * size, "k": ts % keys, "x": np.ones(size)})
            sizes.append(engine.stats()["bytes"])
        rows.append([what, sizes[1], sizes[-1], engine.stats()["kept"]])
    report.tables.append(
        Table(
            f"{keys} frames that never end, {batches} batches of {size:,} events",
            ["values", "bytes after 2 batches", "bytes at the end", "events kept"],
            rows,
        )
    )
    growth = rows[0][2] / rows[0][1]
    report.findings.append(
        Finding("frames that never end", "bytes at the end over those at first", growth, "x", 1.1, True)
    )


def measure(args: argparse.Namespace) -> Report:
    size, keys = (args.events // 20, args.keys // 20) if args.quick else (args.events, args.keys)
    report = Report("frames in an engine, as events come")
    throughput(report, size, keys, args.batch, 1 if args.quick else args.rounds)
    endless(report, 5 if args.quick else 50)
    return report


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.frames_continuous", description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--batch", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    print(plain(measure(arguments(argv))))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
