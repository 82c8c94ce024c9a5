"""swag.spark.evaluate against Spark's own window functions, and against Spark doing nothing, in one run.

Every time is wall time to Spark's `noop` sink, on local[2]. Where Spark's own would take hours, it answers some keys
and some windows; from two numbers of keys follows the time of all: it is linear in both. Each part is a command:

    python -m bench spark             at every event, 1, 10 and 50 windows
    python -m bench spark-features    at requests, 80 features
    python -m bench spark-one-key     one key with all events, on one core and on two
"""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import swag as sw
from bench.data import widths
from bench.report import Finding, Report
from bench.spark_session import seconds, session

DAY = 86_400
KINDS = ("sum", "mean", "max")
SEGMENT_TREE = "spark.sql.window.segmentTree.enabled"


@dataclass(frozen=True)
class Size:
    events: int
    keys: int
    requests: int
    windows: tuple[int, ...]
    features: int  # windows at requests, with four aggregates each
    few: int  # keys that Spark's own is measured with …
    part: int  # … and so many, where not all
    skip: int  # Spark's default frames: one window in so many


FULL = Size(5_000_000, 1_000, 1_000_000, (1, 10, 50), 20, 2, 16, 10)
QUICK = Size(20_000, 20, 4_000, (1, 3), 3, 2, 4, 1)


def run(quick: bool) -> Iterator[Report]:
    with made(QUICK if quick else FULL) as bench:
        for n in bench.size.windows:
            yield bench.windows(n)


@dataclass
class made:
    """Data in a folder, a session, and kernels and classes that are warm."""

    size: Size

    def __enter__(self) -> "Bench":
        self._folder = tempfile.TemporaryDirectory(prefix="swag-bench-")
        self._spark = session(2)
        bench = Bench(self._spark, self.size, write(Path(self._folder.name), self.size))
        bench.check()
        return bench

    def __exit__(self, *_: Any) -> None:
        self._spark.stop()
        self._folder.cleanup()


def write(folder: Path, size: Size) -> Path:
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
    return folder


def queries(lengths: list[int], kinds: tuple[str, ...] = KINDS) -> list[sw.Query]:
    make = {"count": lambda column: sw.count(column), "sum": sw.sum, "mean": sw.mean, "max": sw.max}
    return [sw.Query(make[kind]("price"), sw.Range(f"{w}s"), f"{kind}_{w}") for w in lengths for kind in kinds]


def over(lengths: list[int], kinds: tuple[str, ...] = KINDS) -> list[Any]:
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


def repeated(columns: int, frames: Any) -> Any:
    """Identity, as wide as the answers."""
    import pandas as pd

    for frame in frames:
        price = frame["price"]
        wide = pd.DataFrame({f"c{i}": price for i in range(columns)}, copy=False)
        yield pd.concat([frame[["symbol", "ts"]], wide], axis=1)


@dataclass
class Bench:
    spark: Any
    size: Size
    folder: Path

    @cached_property
    def events(self) -> Any:
        return self.spark.read.parquet(str(self.folder / "events"))

    @cached_property
    def requests(self) -> Any:
        return self.spark.read.parquet(str(self.folder / "requests"))

    def some(self, name: str, keys: int) -> Any:
        """Rows of some keys, in files of their own: looking for them is not part of what is measured."""
        path = self.folder / f"{name}-{keys}"
        if not path.exists():
            wanted = [f"s{k}" for k in range(keys)]
            frame = self.spark.read.parquet(str(self.folder / name))
            frame.where(frame["symbol"].isin(wanted)).write.parquet(str(path))
        return self.spark.read.parquet(str(path))

    def check(self) -> None:
        """The same answers; and what every session pays once: workers, classes, kernels."""
        events, lengths = self.some("events", self.size.few), [60, 3_600, DAY]
        wanted = self.native(events, lengths, tree=False).toPandas().sort_values(["symbol", "ts"])
        for tree in (self.native(events, lengths, tree=True), self.ours(events, lengths)):
            found = tree.toPandas().sort_values(["symbol", "ts"])
            for name in wanted.columns[2:]:
                np.testing.assert_allclose(found[name], wanted[name], rtol=1e-9)
        seconds(lambda: self.nothing(events, 3), "warm")
        seconds(lambda: self.ours(self.events, [60]), "warm")

    def ours(self, events: Any, lengths: list[int], at: Any = None, kinds: tuple[str, ...] = KINDS) -> Any:
        import swag.spark

        return swag.spark.evaluate(queries(lengths, kinds), events, at=at, key="symbol")

    def native(self, events: Any, lengths: list[int], tree: bool) -> Any:
        self.spark.conf.set(SEGMENT_TREE, str(tree).lower())
        return events.select("symbol", "ts", *over(lengths))

    def nothing(self, events: Any, columns: int) -> Any:
        """What no answer can be had without: shuffle, sort, to Python and back."""
        rows = events.select("symbol", "ts", "price").repartition("symbol").sortWithinPartitions("symbol", "ts")
        types = "symbol string, ts timestamp, " + ", ".join(f"c{i} double" for i in range(columns))
        return rows.mapInPandas(partial(repeated, columns), types)

    def of_all_keys(self, job: Callable[[int], Any], what: str) -> float:
        """Seconds for all keys, from two numbers of keys: what a job costs whatever it reads is not multiplied."""
        few, part, keys = self.size.few, self.size.part, self.size.keys
        short, long = (seconds(lambda n=n: job(n), f"{what}, {n} keys") for n in (few, part))
        return short + (long - short) / (part - few) * (keys - few)

    def windows(self, n: int) -> Report:
        """sum, mean, max over n windows at every event."""
        size, lengths = self.size, widths(n, 60, DAY) if n > 1 else [3_600]
        title = f"{n} windows of 1 min - 1 day" if n > 1 else "a window of 1 h"
        report = Report(f"Spark: {title}; sum, mean, max at each of {size.events:,} events of {size.keys:,} keys")
        alone = seconds(lambda: self.nothing(self.events, 3 * n), f"{n} windows: shuffle, sort, identity")
        took = seconds(lambda: self.ours(self.events, lengths), f"{n} windows: swag")
        tree, default = self._theirs(lengths)
        slower, much_slower = {1: (1, 1), max(size.windows): (10, 100)}.get(n, (None, None))
        said = f"swag {took:.1f} s, "
        report.findings += [
            Finding("Spark's segment trees", f"{said}Spark {tree:,.0f} s", tree / took, "x", slower),
            Finding("Spark's default", f"{said}Spark {default:,.0f} s", default / took, "x", much_slower),
            Finding("shuffle, sort, identity", f"{said}{alone:.1f} s", took / alone, "x", 2, at_most=True),
        ]
        if n > 1:
            report.notes.append(
                f"Spark's own: from {size.few} and {size.part} keys; its default also from one window in {size.skip}."
            )
        return report

    def _theirs(self, lengths: list[int]) -> tuple[float, float]:
        """Spark's own, with segment trees and without."""
        if len(lengths) == 1:
            tree, default = (
                seconds(lambda t=t: self.native(self.events, lengths, tree=t), f"Spark, segment trees {t}")
                for t in (True, False)
            )
            return tree, default
        few = lengths[self.size.skip // 2 :: self.size.skip]
        tree = self.of_all_keys(lambda n: self.native(self.some("events", n), lengths, tree=True), "segment trees")
        default = self.of_all_keys(lambda n: self.native(self.some("events", n), few, tree=False), "default")
        return tree, default * len(lengths) / len(few)
