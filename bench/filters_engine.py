"""`engine.lookup` and `engine.filters` as users call them, Arrow tables included, with an index and without."""

from typing import Any

import numpy as np

import swag as sw
from bench.filters_data import MINUTE, counts_in, zipf
from bench.report import Finding, Report, Table
from bench.timing import best_of, interleaved

MANY = 200


def filters(stream: Any, index: bool) -> list[sw.Query]:
    """MANY counts, each over a window of its own, with a threshold that about 100 keys reach."""
    found, now = [], int(stream.ts[-1])
    for i, t in enumerate(np.linspace(30 * MINUTE, 50 * MINUTE, MANY).astype(int)):
        v = int(np.sort(counts_in(stream, now, int(t)))[-100])
        found.append(sw.Query(sw.count(), sw.Range(int(t)), name=f"busy {i}", having=(">=", v), index=index))
    return found


def engine_of(stream: Any, index: bool) -> sw.Engine:
    engine = sw.Engine(key="k")
    engine.register(filters(stream, index))
    for rows in np.array_split(np.arange(stream.ids.size), max(1, stream.ids.size // 500_000)):
        engine.append({"ts": stream.ts[rows], "k": stream.ids[rows]})
    return engine


def measured(keys: int) -> list[Any]:
    stream = zipf(keys, max(200_000, 5 * keys), 100 * MINUTE)
    indexed, plain = engine_of(stream, True), engine_of(stream, False)
    one = {"index": lambda: indexed.lookup("busy 99"), "none": lambda: plain.lookup("busy 99")}
    assert one["index"]().equals(one["none"]())
    some = interleaved(one, 10)
    rows, every = indexed.filters(), best_of(indexed.filters, 3)
    line = [keys, one["index"]().num_rows, some["index"] * 1e6, some["none"] * 1e6, some["none"] / some["index"]]
    if keys > 10**5:  # all of them without an index would take a minute
        return [*line, every * 1e3, "-"]
    assert rows.equals(plain.filters())
    return [*line, every * 1e3, best_of(plain.filters, 1) / every]


def run(quick: bool) -> Report:
    sizes = (10**3,) if quick else (10**3, 10**4, 10**5, 10**6)
    lines = [measured(keys) for keys in sizes]
    report = Report("filters: the engine's calls, Python and Arrow included")
    header = ["keys", "returned", "us, lookup(name)", "us, index=False", "x", f"ms, filters(), {MANY} at once", "x"]
    report.tables.append(Table("about 100 keys returned by each filter, all exact; wall time", header, lines))
    grown = lines[-1][2] / lines[0][2]
    report.findings.append(Finding("growth of engine.lookup", f"{sizes[-1]:,} keys / {sizes[0]:,}", grown, "x"))
    report.findings.append(Finding("engine.lookup, index / none", f"{sizes[-1]:,} keys", lines[-1][4], "x"))
    return report
