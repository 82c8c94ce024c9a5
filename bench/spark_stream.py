"""Streaming on Spark: what a trigger costs, against a stream that keeps nothing, and while the state grows.

Triggers of 100,000 rows over a million keys, `local[2]`, a shard per executor, RocksDB with changelog checkpoints, into
the noop sink. Between measurements the state grows by larger triggers. Both streams read the same kind of files, in
turn.
"""

import json
import os
import shutil
import statistics
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import swag as sw
from bench.report import Finding, Report, Table
from bench.spark_session import say, session

KEYS, ROWS, SHARDS, MEASURED = 1_000_000, 100_000, 1, 10
SCHEMA = "ts timestamp, k long, x double"
QUERIES = [
    sw.Query(sw.sum("x"), sw.Range("1d"), name="sum"),
    sw.Query(sw.count(), sw.Range("1h"), name="count"),
]


def run(quick: bool) -> Report:
    """$SWAG_BENCH_STATE_MB: at which sizes of the state triggers are measured."""
    sizes = [int(size) for size in os.environ.get("SWAG_BENCH_STATE_MB", "2,10" if quick else "10,100,1000").split(",")]
    folder = Path(tempfile.mkdtemp(prefix="swag-bench-"))
    store = "spark.sql.streaming.stateStore"
    chosen = {
        "spark.local.dir": str(folder / "local"),
        "spark.sql.shuffle.partitions": str(SHARDS),
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
        f"{store}.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        f"{store}.rocksdb.changelogCheckpointing.enabled": "true",
    }
    spark = session(2, **chosen)
    try:
        return measure(spark, folder, sizes, ROWS // 10 if quick else ROWS)
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


def measure(spark: Any, folder: Path, sizes: list[int], rows: int) -> Report:
    import swag.spark

    feed, other = Feed(folder / "in"), Feed(folder / "other")
    stateful = swag.spark.stream(QUERIES, read(spark, feed), ts="ts", key="k", shards=SHARDS)
    plain = read(spark, other).mapInPandas(same, SCHEMA)
    curve = []
    for i, size in enumerate(sizes):
        with Running(stateful, folder / "checkpoint") as stream:
            stream.settle(lambda: feed.add(rows))
            while stream.state() < size * 1e6:
                missing = int((size * 1e6 - stream.state()) / 24) + 1
                stream.settle(lambda: feed.add(min(20 * rows, missing)))  # noqa: B023
            stream.settle(lambda: [feed.add(rows) for _ in range(MEASURED + 3)])
            state, seconds, replayed = stream.state() / 1e6, stream.seconds[-MEASURED:], stream.replayed()
        with Running(plain, folder / f"checkpoint {i}") as stream:
            stream.settle(lambda: [other.add(rows) for _ in range(MEASURED + 3)])
            alone = statistics.median(stream.seconds[-MEASURED:])
        other.skip()
        curve.append([state, statistics.median(seconds), alone, max(seconds), replayed])
        say(f"  state {state:,.0f} MB: {curve[-1][1]:.2f} s, stateless {alone:.2f} s")
    return reported(curve, rows)


def read(spark: Any, feed: "Feed") -> Any:
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(feed.folder))


def reported(curve: list[list[Any]], rows: int) -> Report:
    report = Report("streaming on Spark")
    table = [[size, took, alone, took / alone, worst, replayed] for size, took, alone, worst, replayed in curve]
    header = ["state, MB", "trigger, s", "stateless mapInPandas, s", "ratio", "slowest, s", "rows replayed"]
    report.tables.append(Table(f"triggers of {rows:,} rows", header, table))
    first, last = curve[0], curve[-1]
    what = f"trigger of {rows:,} rows, {KEYS:,} keys, {last[0]:,.0f} MB of state"
    spread = f"{last[0]:,.0f} MB / {first[0]:,.0f} MB, medians"
    report.findings += [
        Finding(what, "median / stateless mapInPandas", last[1] / last[2], "x", 2.0, at_most=True),
        Finding("trigger time by state", spread, last[1] / first[1], "x", 1.5, at_most=True),
    ]
    report.notes.append(f'"Flat" is judged as at most 1.5x. Medians of {MEASURED} triggers; state: bytes of segments.')
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

    def skip(self) -> None:
        for path in self.folder.glob("*.parquet"):
            path.unlink()


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

    def settle(self, feeding: Any = lambda: None) -> None:
        feeding()
        self._query.processAllAvailable()
        self._reports |= {each.batchId: json.loads(each.json) for each in self._query.recentProgress}

    @property
    def seconds(self) -> list[float]:
        """Of triggers that brought rows, in order."""
        data = [each for _, each in sorted(self._reports.items()) if each["numInputRows"]]
        return [each["durationMs"]["triggerExecution"] / 1000 for each in data]

    @property
    def observed(self) -> dict[str, int]:
        last = max((batch for batch, each in self._reports.items() if each["numInputRows"]), default=None)
        return {} if last is None else self._reports[last]["observedMetrics"]["swag"]

    def state(self) -> int:
        return self.observed.get("bytes", 0)

    def replayed(self) -> int:
        found = [
            (each.get("observedMetrics") or {}).get("swag", {}).get("replayed") or 0
            for _, each in sorted(self._reports.items())
        ]
        return sum(found[-MEASURED:])
