"""A stream to be disturbed: what it reads, what it asks, and a driver of its own that can be killed.

python -m tests.spark.faulty FOLDER      runs it over FOLDER/in into FOLDER/out, with FOLDER/checkpoint
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import swag as sw
import swag.spark
from tests.spark.streams import source

SCHEMA = "ts long, k long, x long"
QUERIES = [
    sw.Query(sw.sum("x"), sw.Range(60), name="total"),
    sw.Query(sw.max("x"), sw.Rows(9), name="top"),
    sw.Query(sw.sum("x"), sw.Range(120), name="hot", having=(">", 200)),
]


def events(batch: int, rows: int = 80) -> pa.Table:
    rng = np.random.default_rng(batch)
    ts = 100 * batch + rng.integers(-15, 100, rows)  # some of them late
    return pa.table({"ts": ts, "k": rng.integers(0, 12, rows), "x": rng.integers(0, 50, rows)})


def answers(spark: Any, folder: Path, queries: list[sw.Query] | None = None, **options: Any) -> Any:
    rows = source(spark, folder / "in", SCHEMA)
    return swag.spark.stream(queries or QUERIES, rows, ts="ts", key="k", lateness=10, **options)


def into_files(frame: Any, folder: Path) -> Any:
    """Spark's own file sink: exactly once, together with the checkpoint."""
    options = {"checkpointLocation": str(folder / "checkpoint"), "path": str(folder / "out")}
    return frame.writeStream.format("parquet").options(**options).start()


def main(folder: Path) -> None:
    from pyspark.sql import SparkSession

    from tests.spark_session import settings

    builder = SparkSession.builder.master("local[2]")
    for name, value in settings(folder).items():
        builder = builder.config(name, value)
    query = into_files(answers(builder.getOrCreate(), folder), folder)
    query.awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
