"""How fast patterns are found: dips in prices, threshold frames as a pattern, beside `re`, NumPy and DuckDB.

python -m bench.patterns [--quick] [--events 10000000] [--keys 1000] [--rounds 5] [--markdown page]
"""

import argparse
import re
import tracemalloc
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import frames as fr
import swag as sw
from bench import machine
from bench.frames_speed import HIGH, ISLANDS, signal
from bench.report import Finding, Report, Table, insert, markdown, plain
from bench.timing import cpu_clock, interleaved

DIP = fr.Pattern("A B+ C", {"B": "x < PREV(x)", "C": "x > PREV(x)"})
LOW = fr.Pattern("A B+ C", DIP.define, {"low": "LAST(B.x)"})
EPISODE = fr.Pattern("A{20,}", {"A": f"x > {HIGH}"})
MEAN = fr.Pattern("A B+ C", {"B": "x < PREV(x)", "C": "x > AVG(B.x)"})


def key_by_key(events: pa.Table) -> tuple[np.ndarray, ...]:
    """k, ts, x in order of key; and of each row, whether it is of the same key as the one before."""
    columns = tuple(np.asarray(events[name]) for name in ("k", "ts", "x"))
    if not bool((columns[0][1:] >= columns[0][:-1]).all()):
        order = np.argsort(columns[0], kind="stable")
        columns = tuple(each[order] for each in columns)
    return *columns, np.append(False, columns[0][1:] == columns[0][:-1])


def by_expressions(events: pa.Table) -> int:
    """Dips by Python's `re`: rows as letters, key by key; a match is three arrays more that nobody makes here."""
    _, _, x, same = key_by_key(events)
    letters = np.full(x.size, ord("s"), np.uint8)
    letters[1:][same[1:] & (x[1:] < x[:-1])] = ord("d")
    letters[1:][same[1:] & (x[1:] > x[:-1])] = ord("u")
    return sum(1 for _ in re.finditer(rb".d+u", letters.tobytes(), re.DOTALL))


def dips_by_hand(events: pa.Table) -> int:
    """Dips by NumPy alone, as one who knows it well may write them: runs that fall, each with a rise behind it.

    Matches do not overlap. A run right behind the rise that ended a match has to give its first row away, which one of
    a single row can not; so among such runs, one behind the other, every second one is a match.
    """
    k, ts, x, same = key_by_key(events)
    falls = np.append(same[1:] & (x[1:] < x[:-1]), False)  # row i + 1 is below row i
    edges = np.diff(falls.astype(np.int8), prepend=0)
    first, last = np.flatnonzero(edges > 0), np.flatnonzero(edges < 0) + 1
    rises = (last < x.size) & same[np.minimum(last, x.size - 1)]
    rises[rises] = x[last[rises]] > x[last[rises] - 1]
    first, last = first[rises], last[rises]
    at, meets = np.arange(first.size), np.append(False, first[1:] == last[:-1])
    free = ~meets | (last - first > 2)
    met = (at - np.maximum.accumulate(np.where(free, at, 0))) % 2 == 0
    first = first + (meets & np.append(False, met[:-1]))
    first, last = first[met], last[met]
    return pa.table({"k": k[first], "start": ts[first], "end": ts[last], "rows": last - first + 1}).num_rows


def episodes_by_hand(events: pa.Table) -> int:
    """Rows above the threshold for 20 rows, by NumPy alone."""
    k, ts, x, same = key_by_key(events)
    high = x > HIGH
    first = np.flatnonzero(high & ~(np.append(False, high[:-1]) & same))
    last = np.flatnonzero(high & ~np.append(high[1:] & same[1:], False))
    long = last - first >= 19
    first, last = first[long], last[long]
    return pa.table({"k": k[first], "start": ts[first], "end": ts[last], "rows": last - first + 1}).num_rows


def detection(report: Report, size: int, keys: int, rounds: int) -> None:
    table = signal(size, keys)
    order = pa.array(np.lexsort((np.asarray(table["ts"]), np.asarray(table["k"]))))
    connection = duckdb.connect()
    connection.register("events", table)
    islands = ISLANDS["threshold"].format(high=HIGH) + " HAVING n >= 20"
    peers: dict[str, dict[str, Any]] = {
        "A B+ C": {"re": by_expressions, "NumPy by hand": dips_by_hand},
        "A{20,}": {
            "DuckDB": lambda _: connection.sql(islands).arrow().read_all().num_rows,
            "NumPy by hand": episodes_by_hand,
        },
    }
    for layout, events in (("interleaved", table), ("key by key", table.take(order).combine_chunks())):
        for spec, reach in ((DIP, 50.0), (EPISODE, 50.0), (LOW, None), (MEAN, None)):
            found = fr.detect(spec, events, key="k").num_rows  # compiles
            others = {} if spec.measures or spec is MEAN else peers[spec.pattern]
            others = {name: partial(ask, events) for name, ask in others.items()}
            for ask in others.values():
                assert ask() == found
            ours = {"frames": lambda spec=spec, events=events: fr.detect(spec, events, key="k")}
            turns = 1 if reach is None else rounds
            best = interleaved(ours | others, turns)
            work = interleaved(ours, turns, cpu_clock)["frames"]
            said = ", LAST(B.x)" if spec is LOW else ", C above AVG(B.x)" if spec is MEAN else ""
            name = f"{spec.pattern}{said}, {layout} ({found:,} matches)"
            report.findings.append(Finding(name, "events per second, wall", size / best["frames"] / 1e6, "M/s", reach))
            report.findings.append(
                Finding(name, "per second of CPU, times 2 cores", 2 * size / work / 1e6, "M/s", reach)
            )
            for other in others:
                report.findings.append(Finding(name, f"over {other}", best[other] / best["frames"], "x", 10.0))


def three_ways(report: Report, size: int, keys: int, rounds: int) -> None:
    """The same episodes by a frame, a pattern, and a sliding window whose passing rows are put together again."""
    events = signal(size, keys)
    frame = fr.Threshold("x", ">", HIGH, min_rows=20)
    query = sw.Query(sw.min("x"), sw.Rows(20), name="low")
    count = sw.Query(sw.count(), sw.Rows(20), name="n")

    def by_windows() -> int:
        answers = sw.evaluate([query, count], events, key="k")
        passing = (np.asarray(answers["low"]) > HIGH) & (np.asarray(answers["n"]) == 20)
        order = np.argsort(np.asarray(answers["k"]), kind="stable")
        passing, k = passing[order], np.asarray(answers["k"])[order]
        return int((passing & np.append(True, ~passing[:-1] | (k[1:] != k[:-1]))).sum())

    ways = {
        "frame": lambda: fr.detect(frame, events, key="k").num_rows,
        "pattern": lambda: fr.detect(EPISODE, events, key="k").num_rows,
        "window": by_windows,
    }
    assert len({ask() for ask in ways.values()}) == 1
    best = interleaved(ways, rounds)
    lines = {"frame": 1, "pattern": 1, "window": 7}
    kept = {way: kept_by(way, events.slice(0, min(size, 200_000))) for way in ways}
    rows = [[way, lines[way], f"{size / best[way] / 1e6:.3g}", kept[way]] for way in ways]
    header = ["", "statements", "events per second (M)", "bytes per key while events arrive"]
    report.tables.append(Table("the same episodes three ways: above the threshold for 20 rows", header, rows))


def kept_by(way: str, events: pa.Table) -> int:
    """What is remembered of a key, about, after some events; arrays that grow by doubling are counted as they are."""
    keys = len(set(events["k"].to_pylist()))
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    if way == "window":
        holder: Any = sw.Engine(ts="ts", key="k")
        holder.register([sw.Query(sw.min("x"), sw.Rows(20), name="low")])
        holder.append(events)
    else:
        holder = fr.Detector(EPISODE if way == "pattern" else fr.Threshold("x", ">", HIGH, min_rows=20), key="k")
        holder.push(events)
        holder.punctuate(int(events["ts"][-1].as_py()))
    used = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    del holder
    return max(used, 0) // keys


def measure(args: argparse.Namespace) -> Report:
    """All of it, or a twentieth of the events."""
    size, keys, rounds = (
        (args.events // 20, args.keys // 10, 2) if args.quick else (args.events, args.keys, args.rounds)
    )
    report = Report(f"patterns: {size:,} events of {keys:,} keys, Arrow in, Arrow out")
    if not args.quick:
        machine.touch_memory()
    detection(report, size, keys, rounds)
    three_ways(report, size, keys, rounds)
    report.notes.append("Contenders take turns, and the best round of each counts: ratios are of wall times.")
    return report


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.patterns", description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--keys", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--markdown", type=Path, help="a page with a place for the results")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    args = arguments(argv)
    report = measure(args)
    print(plain(report))
    if args.markdown is not None:
        insert(args.markdown, "patterns", markdown(report, args.markdown.parent))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
