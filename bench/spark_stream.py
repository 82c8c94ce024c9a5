"""Streaming on Spark: what a trigger costs, against a stream that keeps nothing, and while the state grows.

Triggers of 100,000 rows over a million keys, `local[2]`, RocksDB with changelog checkpoints, into the noop sink. Both
streams run in one session, on the same kind of files, and take turns, trigger by trigger. Before anything is measured,
other streams of the same kind run until their triggers get no faster; between measurements the state grows by larger
triggers. Spark is told not to run batches without data: then a trigger takes its rows and answers for those before.
"""

import json
import os
import shutil
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import swag as sw
from bench.report import Finding, Report, Table
from bench.spark_session import say, session

KEYS, ROWS, MEASURED = 1_000_000, 100_000, 12
ROUND = 20  # triggers in a row, while warming up …
LEVEL = 0.97  # … until they take no less than so much of what those before took
SCHEMA = "ts timestamp, k long, x double"
QUERIES = [  # the first alone gives about as many rows as come in, both give twice as many
    sw.Query(sw.sum("x"), sw.Range("1d"), name="sum"),
    sw.Query(sw.count(), sw.Range("1h"), name="count"),
]


def run(quick: bool) -> Report:
    """$SWAG_BENCH_STATE_MB: at which sizes of the state triggers are measured."""
    sizes = [int(size) for size in os.environ.get("SWAG_BENCH_STATE_MB", "2,10" if quick else "5,100,1000").split(",")]
    folder = Path(tempfile.mkdtemp(prefix="swag-bench-"))
    store = "spark.sql.streaming.stateStore"
    chosen = {
        "spark.local.dir": str(folder / "local"),
        "spark.sql.streaming.numRecentProgressUpdates": "20",
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.sql.streaming.pollingDelay": "100ms",  # of the stream that waits for its turn
        f"{store}.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        f"{store}.rocksdb.changelogCheckpointing.enabled": "true",
    }
    spark = session(2, **chosen)
    try:
        return measure(Bench(spark, folder, ROWS // 10 if quick else ROWS), sizes, quick)
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


def measure(bench: "Bench", sizes: list[int], quick: bool) -> Report:
    with bench.streams("warm", 1, QUERIES) as both:
        both.until_level(1 if quick else 10)
    rows = []
    with bench.streams("measured", 1, QUERIES[:1]) as both:
        for size in sizes:
            both.grow(size * 10**6)
            rows.append([1, 1, *both.measured()])
    for queries, shards in ((QUERIES, 1), (QUERIES[:1], 2)):
        with bench.streams(f"{len(queries)} queries, {shards} shards", shards, queries) as both:
            both.until_level(1 if quick else 3)
            rows.append([len(queries), shards, *both.measured()])
    return reported(rows, len(sizes), bench.rows)


@dataclass
class Bench:
    spark: Any
    folder: Path
    rows: int

    @contextmanager
    def streams(self, name: str, shards: int, queries: list[sw.Query]) -> Iterator["Both"]:
        """A stream of swag and one that keeps nothing, from the start, each with files of its own."""
        import swag.spark

        feeds = [Feed(self.folder / name / "in"), Feed(self.folder / name / "other")]
        events, others = (read(self.spark, feed) for feed in feeds)
        self.spark.conf.set("spark.sql.shuffle.partitions", str(shards))
        frames = swag.spark.stream(queries, events, ts="ts", key="k", shards=shards), others.mapInPandas(same, SCHEMA)
        checkpoints = [self.folder / name / f"checkpoint {i}" for i in range(2)]
        with Running(frames[0], checkpoints[0]) as stateful, Running(frames[1], checkpoints[1]) as plain:
            yield Both((stateful, feeds[0]), (plain, feeds[1]), self.rows)


@dataclass
class Both:
    """The two streams, each with its feed."""

    stateful: tuple["Running", "Feed"]
    plain: tuple["Running", "Feed"]
    rows: int

    def turns(self, count: int) -> tuple[list[float], list[float]]:
        """Seconds of so many triggers, in turn."""
        took: tuple[list[float], list[float]] = [], []
        for _ in range(count):
            for found, (stream, feed) in zip(took, (self.stateful, self.plain), strict=True):
                feed.add(self.rows)
                stream.settle()
                found.append(stream.seconds)
        return took

    def until_level(self, most: int) -> None:
        before = float("inf")
        for _ in range(most):
            now = statistics.median(self.turns(ROUND)[0])
            say(f"  warming up: {now:.2f} s")
            if now > LEVEL * before:
                return
            before = now

    def grow(self, size: int) -> None:
        stream, feed = self.stateful
        self.turns(2)
        while (missing := int((size - stream.state) / 24)) > 0:
            feed.add(min(20 * self.rows, missing))
            stream.settle()
        self.turns(6)  # after large triggers, memory is laid out for small ones again

    def measured(self) -> list[Any]:
        stream, before = self.stateful[0], self.stateful[0].state
        replayed = stream.replayed
        seconds, plain = self.turns(MEASURED)
        state, took, alone = (before + stream.state) / 2e6, statistics.median(seconds), statistics.median(plain)
        say(f"  state {state:,.0f} MB: {took:.2f} s, stateless {alone:.2f} s, {took / alone:.2f}x")
        return [state, took, alone, took / alone, max(seconds), stream.replayed - replayed]


def read(spark: Any, feed: "Feed") -> Any:
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(feed.folder))


def reported(rows: list[list[Any]], sizes: int, per_trigger: int) -> Report:
    report = Report("streaming on Spark")
    header = ["queries", "shards", "state, MB", "trigger, s", "stateless mapInPandas, s", "ratio", "slowest, s"]
    report.tables.append(Table(f"triggers of {per_trigger:,} rows", [*header, "rows replayed"], rows))
    first, last, two = rows[0], rows[sizes - 1], rows[sizes]
    what = f"trigger of {per_trigger:,} rows, {KEYS:,} keys"
    spread = f"{last[2]:,.0f} MB / {first[2]:,.0f} MB, medians"
    alike = "median / stateless mapInPandas"
    report.findings += [
        Finding(f"{what}, {last[2]:,.0f} MB of state, one query", alike, last[5], "x", 2.0, at_most=True),
        Finding(f"{what}, {two[2]:,.0f} MB of state, two queries", alike, two[5], "x", 2.0, at_most=True),
        Finding("trigger time by state", spread, last[3] / first[3], "x", 1.5, at_most=True),
    ]
    report.notes.append(
        f'"Flat" is judged as at most 1.5x. Medians of {MEASURED} triggers; state: bytes of segments. One query '
        "answers with about as many rows as come in, as the stateless stream does; two with twice as many. "
        "Two shards on one machine meet either Python worker, which then reads what the other has applied."
    )
    return report


def same(frames: Any) -> Any:
    yield from frames


class Feed:
    """Files of events, each later than the one before."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.number, self.now = folder, 0, 1_700_000_000_000_000
        folder.mkdir(parents=True)
        self.rng = np.random.default_rng(0)

    def add(self, rows: int) -> None:
        ts = self.now + np.arange(rows) * 10
        self.now = int(ts[-1]) + 1000
        x, k = self.rng.normal(size=rows), self.rng.integers(0, KEYS, rows)
        table = pa.table({"ts": pa.array(ts, pa.timestamp("us", "UTC")), "k": k, "x": x})
        part = self.folder / f".{self.number:05}"
        pq.write_table(table, part, compression="none")
        os.utime(part, (self.number + 1e9, self.number + 1e9))
        part.rename(self.folder / f"{self.number:05}.parquet")
        self.number += 1


class Running:
    """A streaming query into the noop sink, and what Spark reports of its triggers."""

    def __init__(self, frame: Any, checkpoint: Path) -> None:
        self._writer = frame.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
        self._reports: dict[int, dict[str, Any]] = {}

    def __enter__(self) -> "Running":
        self._query = self._writer.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._query.stop()

    def settle(self) -> None:
        self._query.processAllAvailable()
        self._reports |= {each.batchId: json.loads(each.json) for each in self._query.recentProgress}

    @property
    def _with_rows(self) -> list[dict[str, Any]]:
        return [each for _, each in sorted(self._reports.items()) if each["numInputRows"]]

    @property
    def seconds(self) -> float:
        """Of the last trigger that brought rows."""
        return self._with_rows[-1]["durationMs"]["triggerExecution"] / 1000

    @property
    def state(self) -> int:
        return self._with_rows[-1]["observedMetrics"]["swag"]["bytes"]

    @property
    def replayed(self) -> int:
        """Rows, in all triggers so far."""
        return sum((each["observedMetrics"] or {}).get("swag", {}).get("replayed") or 0 for each in self._with_rows)
