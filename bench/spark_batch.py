"""swag.spark.evaluate against Spark's own window functions, and against Spark doing nothing, in one run.

Every time is wall time to Spark's `noop` sink, on local[2] (and local[1]). Where Spark's own would take hours, a share
of the keys and of the windows is measured and multiplied: its time is linear in both.

    python -m bench spark [--quick] [--markdown docs/spark.md]
    python -m bench.spark_batch FOLDER CORES        one stream without a key: seconds, for a session of its own
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import swag as sw
from bench.data import widths
from bench.report import Finding, Report

ROOT = Path(__file__).parent.parent
DAY = 86_400
KINDS = ("sum", "mean", "max")
FEATURES = ("count", "sum", "mean", "max")
SEGMENT_TREE = "spark.sql.window.segmentTree.enabled"


@dataclass(frozen=True)
class Size:
    events: int
    keys: int
    requests: int
    windows: tuple[int, ...]
    part: int  # Spark's segment trees answer one key in so many
    few: int  # and its default one in so many …
    skip: int  # … and one window in so many, but for the first number of windows


FULL = Size(5_000_000, 1_000, 1_000_000, (1, 10, 50), 50, 100, 5)
QUICK = Size(20_000, 20, 4_000, (1, 3), 2, 4, 1)


def run(quick: bool) -> Iterator[Report]:
    size = QUICK if quick else FULL
    with tempfile.TemporaryDirectory() as folder:
        events, requests = write(Path(folder), size)
        spark = session(2)
        bench = Bench(spark, size, spark.read.parquet(str(events)), spark.read.parquet(str(requests)))
        try:
            bench.warm()
            yield bench.at_every_event()
            yield bench.point_in_time()
        finally:
            spark.stop()
        yield one_key(events)


def write(folder: Path, size: Size) -> tuple[Path, Path]:
    """A day of trades, in order of time, in files as many as there are cores, and some."""
    rng = np.random.default_rng(0)
    ts = np.sort(rng.integers(0, DAY * 1_000_000, size.events)) + 1_700_000_000_000_000
    trades = pa.table({
        "ts": pa.array(ts).cast(pa.timestamp("us", "UTC")),
        "symbol": pa.array([f"s{k}" for k in range(size.keys)]).take(pa.array(rng.integers(0, size.keys, size.events))),
        "price": 100 + rng.normal(0, 1, size.events).cumsum() * 0.01,
    })  # fmt: skip
    asked = trades.select(["ts", "symbol"]).take(pa.array(rng.integers(0, size.events, size.requests)))
    for name, table in (("events", trades), ("requests", asked)):
        (folder / name).mkdir()
        for i in range(8):
            share = -(-table.num_rows // 8)
            pq.write_table(table.slice(i * share, share), folder / name / f"{i}.parquet")
    return folder / "events", folder / "requests"


def session(cores: int) -> Any:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "6g",
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master(f"local[{cores}]").appName("swag bench")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def seconds(job: Callable[[], Any]) -> float:
    """To plan a job, with what is looked at beforehand, and to run it; its answers go nowhere."""
    start = time.perf_counter()
    job().write.format("noop").mode("overwrite").save()
    took = time.perf_counter() - start
    print(f"{took:7.1f} s", file=sys.stderr, flush=True)  # a full run takes minutes: something moves
    return took


def queries(lengths: list[int], kinds: tuple[str, ...]) -> list[sw.Query]:
    make = {"count": lambda column: sw.count(column), "sum": sw.sum, "mean": sw.mean, "max": sw.max}
    return [sw.Query(make[kind]("price"), sw.Range(f"{w}s"), f"{kind}_{w}") for w in lengths for kind in kinds]


def over(lengths: list[int], kinds: tuple[str, ...]) -> list[Any]:
    """The same in Spark: RANGE over ts in microseconds, without its lower edge."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    make = {"count": F.count, "sum": F.sum, "mean": F.avg, "max": F.max}
    ordered = Window.partitionBy("symbol").orderBy(F.unix_micros("ts"))
    return [
        make[kind]("price").over(ordered.rangeBetween(1 - w * 1_000_000, 0)).alias(f"{kind}_{w}")
        for w in lengths
        for kind in kinds
    ]


def repeated(columns: int, batches: Any) -> Any:
    """Identity, as wide as the answers."""
    for batch in batches:
        names = [*batch.schema.names[:2], *(f"c{i}" for i in range(columns))]
        yield pa.RecordBatch.from_arrays([*batch.columns[:2], *([batch.columns[2]] * columns)], names=names)


@dataclass
class Bench:
    spark: Any
    size: Size
    events: Any
    requests: Any

    def warm(self) -> None:
        """What every session pays once: workers, classes, kernels."""
        share = self.share(self.events, self.size.few)
        seconds(lambda: self.ours(self.events, [60]))
        seconds(lambda: self.native(share, [60], tree=True))
        seconds(lambda: self.nothing(share, 3))

    def share(self, frame: Any, of: int) -> Any:
        """The events of one key in so many."""
        keys = [f"s{k}" for k in range(0, self.size.keys, of)]
        return frame.where(frame["symbol"].isin(keys))

    def ours(self, events: Any, lengths: list[int], kinds: tuple[str, ...] = KINDS, at: Any = None) -> Any:
        import swag.spark

        return swag.spark.evaluate(queries(lengths, kinds), events, at=at, key="symbol")

    def native(self, events: Any, lengths: list[int], tree: bool, kinds: tuple[str, ...] = KINDS) -> Any:
        self.spark.conf.set(SEGMENT_TREE, str(tree).lower())
        return events.select("symbol", "ts", *over(lengths, kinds))

    def nothing(self, events: Any, columns: int) -> Any:
        """What no answer can be had without: shuffle, sort, to Python and back."""
        rows = events.select("symbol", "ts", "price").repartition("symbol").sortWithinPartitions("symbol", "ts")
        types = "symbol string, ts timestamp, " + ", ".join(f"c{i} double" for i in range(columns))
        return rows.mapInArrow(partial(repeated, columns), types)

    def at_every_event(self) -> Report:
        size = self.size
        what = "windows of 1 min - 1 day, sum, mean, max at each"
        report = Report(f"Spark: {size.events:,} events, {size.keys:,} keys, {what}")
        for n in size.windows:
            report.findings += self.windows(n)
        report.notes.append(
            "1 window is one of an hour, measured whole. With more, Spark's own was measured on one key in "
            f"{size.part} with segment trees ({SEGMENT_TREE}), and on one key in {size.few} and one window in "
            f"{size.skip} by default, and multiplied by that."
        )
        return report

    def windows(self, n: int) -> list[Finding]:
        size, lengths = self.size, widths(n, 60, DAY) if n > 1 else [3_600]
        first, last = n == size.windows[0], n == size.windows[-1]
        alone = seconds(lambda: self.nothing(self.events, 3 * n))
        took = seconds(lambda: self.ours(self.events, lengths))
        tree = seconds(lambda: self.native(self._part(first), lengths, tree=True)) * (1 if first else size.part)
        few = lengths if first else lengths[size.skip // 2 :: size.skip]
        default = seconds(lambda: self.native(self._few(first), few, tree=False)) * len(lengths) / len(few)
        default *= 1 if first else size.few
        label, ours = f"{n} window{'s' if n > 1 else ''}", f"swag {took:.1f} s"
        slower, much_slower = (1, 1) if first else (10, 100) if last else (None, None)
        identity = f"{ours}; shuffle, sort and identity with {3 * n} columns {alone:.1f} s"
        return [
            Finding(f"{label}, segment trees", f"{ours}, Spark {tree:.0f} s", tree / took, "x", slower),
            Finding(f"{label}, Spark's default", f"{ours}, Spark {default:,.0f} s", default / took, "x", much_slower),
            Finding(f"{label}, overhead", identity, took / alone, "x", 2, at_most=True),
        ]

    def _part(self, whole: bool) -> Any:
        return self.events if whole else self.share(self.events, self.size.part)

    def _few(self, whole: bool) -> Any:
        return self.events if whole else self.share(self.events, self.size.few)

    def point_in_time(self) -> Report:
        """80 features: 4 aggregates over 20 windows, at requests."""
        size, lengths = self.size, widths(20 if self.size is FULL else 3, 60, DAY)
        columns = len(lengths) * len(FEATURES)
        report = Report(
            f"Spark: point-in-time, {columns} features for {size.requests:,} requests, {size.events:,} events"
        )
        took = seconds(lambda: self.ours(self.events, lengths, FEATURES, at=self.requests))
        theirs = seconds(lambda: self.sql(lengths)) * size.part
        report.findings.append(
            Finding("features", f"swag {took:.1f} s, Spark SQL {theirs:.0f} s", theirs / took, "x", reach=10)
        )
        report.notes.append(
            "Spark SQL: events and requests in one UNION ALL, window functions over it, requests kept; with segment "
            f"trees, on one key in {size.part}, multiplied by that."
        )
        return report

    def sql(self, lengths: list[int]) -> Any:
        from pyspark.sql import functions as F

        self.spark.conf.set(SEGMENT_TREE, "true")
        events = self.share(self.events, self.size.part).withColumn("asks", F.lit(False))
        asked = self.share(self.requests, self.size.part).withColumn("asks", F.lit(True))
        rows = events.unionByName(asked, allowMissingColumns=True)
        return rows.select("symbol", "ts", "asks", *over(lengths, FEATURES)).where("asks").drop("asks")


def one_key(events: Path) -> Report:
    """All events in one stream, without a key: cut in time, answered on all cores."""
    took = {cores: _alone(events, cores) for cores in (1, 2)}
    report = Report("Spark: one stream of all events, 10 windows of 1 min - 1 day")
    measured = f"local[1] {took[1]:.1f} s, local[2] {took[2]:.1f} s"
    report.findings.append(Finding("two cores against one", measured, took[1] / took[2], "x", reach=1.7))
    return report


def _alone(events: Path, cores: int) -> float:
    command = [sys.executable, "-m", "bench.spark_batch", str(events), str(cores)]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return float(answer.stdout.strip().splitlines()[-1])


def main() -> None:
    import swag.spark

    events, cores = sys.argv[1], int(sys.argv[2])
    spark = session(cores)
    frame = spark.read.parquet(events)

    asked = queries(widths(10, 60, DAY), KINDS)
    seconds(lambda: swag.spark.evaluate(asked, frame.where("ts < TIMESTAMP'2023-11-14 23:00:00'")))  # classes, kernels
    print(seconds(lambda: swag.spark.evaluate(asked, frame)))
    spark.stop()


if __name__ == "__main__":
    main()
