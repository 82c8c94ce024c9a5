"""Streams of Parquet files for tests: one file, one trigger."""

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


def write(folder: Path, tables: list[pa.Table], first: int = 0) -> None:
    """Files whose order is that of the list; each appears whole."""
    folder.mkdir(exist_ok=True)
    for i, table in enumerate(tables, first):
        part = folder / f".{i:04}.part"
        pq.write_table(table, part)
        os.utime(part, (1_600_000_000 + i, 1_600_000_000 + i))  # Spark goes by the time of files
        part.rename(folder / f"{i:04}.parquet")


def source(spark: Any, folder: Path, schema: str) -> Any:
    options = {"maxFilesPerTrigger": 1, "latestFirst": False}
    return spark.readStream.schema(schema).options(**options).parquet(str(folder))


class Sink:
    """foreachBatch into a list. A batch that comes twice replaces itself, as in any idempotent sink."""

    def __init__(self) -> None:
        self.batches: dict[int, list[tuple]] = {}

    def __call__(self, frame: Any, batch: int) -> None:
        self.batches[batch] = [tuple(row) for row in frame.collect()]

    @property
    def rows(self) -> list[tuple]:
        return [row for batch in sorted(self.batches) for row in self.batches[batch]]


def run(frame: Any, checkpoint: Path, sink: Any = None) -> tuple[Any, list[Any]]:
    """Run until everything there was is processed; what came out, and Spark's reports of the triggers."""
    sink = Sink() if sink is None else sink
    query = frame.writeStream.foreachBatch(sink).option("checkpointLocation", str(checkpoint)).start()
    try:
        query.processAllAvailable()
        return sink, list(query.recentProgress)
    finally:
        query.stop()
