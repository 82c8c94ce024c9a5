"""Streaming on Spark: what a trigger costs, against a stream that keeps nothing, and while the state grows.

Triggers of 100,000 rows over a million keys, `local[2]`, a shard per core, RocksDB with changelog checkpoints, into the
noop sink. Between measurements the state grows by triggers of a million rows. Both streams read the same kind of files.
"""

import json
import os
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import swag as sw
from bench.report import Finding, Report, Table

KEYS, ROWS, SHARDS, MEASURED = 1_000_000, 100_000, 2, 10
SCHEMA = "ts timestamp, k long, x double"
ROOT = Path(__file__).parent.parent
QUERIES = [
    sw.Query(sw.sum("x"), sw.Range("1d"), name="sum"),
    sw.Query(sw.count(), sw.Range("1h"), name="count"),
]


def run(quick: bool) -> Report:
    """$SWAG_BENCH_STATE_MB: at which sizes of the state triggers are measured; to 1000 takes ten minutes."""
    sizes = [int(size) for size in os.environ.get("SWAG_BENCH_STATE_MB", "2,10" if quick else "10,100,1000").split(",")]
    folder = Path(tempfile.mkdtemp(prefix="swag-bench-"))
    spark = session(folder)
    try:
        return measure(spark, folder, sizes, ROWS // 10 if quick else ROWS)
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


def measure(spark: Any, folder: Path, sizes: list[int], rows: int) -> Report:
    import swag.spark

    feed = Feed(folder / "in")
    events = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(feed.folder))
    stateful = swag.spark.stream(QUERIES, events, ts="ts", key="k", shards=SHARDS)
    curve, plain = [], []
    with Running(stateful, folder / "checkpoint") as stream:
        for size in sizes:
            while stream.state() < size * 1e6 - rows * 24:
                feed.add(min(10 * rows, int((size * 1e6 - stream.state()) / 24) + 1))
                stream.settle()
            stream.settle(lambda: [feed.add(rows) for _ in range(MEASURED + 3)])
            seconds, applied = stream.seconds[-MEASURED - 1 : -1], stream.observed["lookups"]
            curve.append([stream.state() / 1e6, statistics.median(seconds), max(seconds), stream.replayed()])
            print(
                f"  state {curve[-1][0]:,.0f} MB: {curve[-1][1]:.2f} s, {applied:,} answers",
                file=sys.stderr,
                flush=True,
            )
        feed.skip()
    other = Feed(folder / "other")
    events = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(other.folder))
    for _ in range(MEASURED + 3):
        other.add(rows)
    with Running(events.mapInPandas(same, SCHEMA), folder / "other checkpoint") as stream:
        stream.settle()
        plain = stream.seconds[-MEASURED:]
    return reported(curve, statistics.median(plain), rows)


def reported(curve: list[list[Any]], plain: float, rows: int) -> Report:
    report = Report("streaming on Spark")
    table = [[size, seconds, seconds / plain, worst, replayed] for size, seconds, worst, replayed in curve]
    header = ["state, MB", "trigger, s", "x stateless", "slowest, s", "rows replayed"]
    report.tables.append(Table(f"triggers of {rows:,} rows; stateless mapInPandas: {plain:.2f} s", header, table))
    first, last = curve[0], curve[-1]
    report.findings += [
        Finding(
            f"trigger of {rows:,} rows, {KEYS:,} keys, {last[0]:,.0f} MB of state",
            "median / stateless mapInPandas",
            last[1] / plain,
            "x",
            2.0,
            at_most=True,
        ),
        Finding(
            "trigger time by state",
            f"{last[0]:,.0f} MB / {first[0]:,.0f} MB, medians",
            last[1] / first[1],
            "x",
            1.5,
            at_most=True,
        ),
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


def session(folder: Path) -> Any:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    store = "spark.sql.streaming.stateStore"
    chosen = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "4g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.shuffle.partitions": str(SHARDS),
        "spark.sql.session.timeZone": "UTC",
        "spark.showConsoleProgress": "false",
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
        f"{store}.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        f"{store}.rocksdb.changelogCheckpointing.enabled": "true",
    }
    builder = SparkSession.builder.master("local[2]").appName("swag bench")
    for name, value in chosen.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark
