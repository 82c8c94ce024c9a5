"""Ways of running queries: each takes tables in memory and gives a table, so that one suite holds for all of them.

A runner that does not do something by its nature has no such method, and is not asked (`able` in test_conformance.py).
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

import frames as fr
import swag as sw


class Embedded:
    """The library itself, in this process."""

    name = "embedded"

    def __init__(self, spark: Any = None) -> None: ...

    def at_events(self, queries: Sequence[sw.Query], events: pa.Table, ts: str, key: str | None) -> pa.Table:
        """[key], ts, a column per query."""
        return sw.evaluate(queries, events, ts=ts, key=key)

    def at_requests(
        self, queries: Sequence[sw.Query], events: pa.Table, requests: pa.Table, ts: str, key: str | None
    ) -> pa.Table:
        """The requests' columns, a column per query."""
        return sw.evaluate(queries, events, at=requests, ts=ts, key=key)

    def ticks(self, queries: Sequence[sw.Query], events: pa.Table, ts: str, key: str | None) -> pa.Table:
        """tick, ts, [key], a column per query."""
        return sw.evaluate(queries, events, ts=ts, key=key)

    def filters(self, queries: Sequence[sw.Query], events: pa.Table, times: list[int], ts: str, key: str) -> pa.Table:
        """query, at, key, value."""
        found = []
        engine = sw.Engine(ts=ts, key=key)
        engine.register(list(queries))
        done = 0
        events = events.sort_by(ts)
        for time in sorted(times):
            upto = sum(t <= time for t in events[ts].to_pylist())
            engine.append(events.slice(done, upto - done))
            done = upto
            if upto:
                engine.advance(time)
                passing = engine.filters()
                found.append(passing.add_column(1, "at", pa.array([time] * passing.num_rows, pa.int64())))
        return pa.concat_tables(found, promote_options="permissive")

    def detect(self, spec: Any, events: pa.Table, ts: str, key: str | None) -> pa.Table:
        return fr.detect(spec, events, ts=ts, key=key)

    def fill(self, frames: pa.Table, events: pa.Table, ts: str, key: str | None, before: int, after: int) -> pa.Table:
        return fr.fill(frames, events, ts=ts, key=key, before=before, after=after)

    def summarize(
        self, frames: pa.Table, events: pa.Table, aggregates: Any, ts: str, key: str | None, before: int, after: int
    ) -> pa.Table:
        return fr.summarize(frames, events, aggregates, ts=ts, key=key, before=before, after=after)


class SparkBatch:
    """Over DataFrames; substreams are cut wherever they can be, and blocks are small."""

    name = "spark-batch"

    def __init__(self, spark: Any) -> None:
        from swag.spark import Layout

        self.spark = spark
        self.layout = Layout(tasks=3, sample=1.0, task_rows=10, block_rows=40)

    def at_events(self, queries: Sequence[sw.Query], events: pa.Table, ts: str, key: str | None) -> pa.Table:
        import swag.spark

        return swag.spark.evaluate(queries, self._frame(events), ts=ts, key=key, layout=self.layout).toArrow()

    def at_requests(
        self, queries: Sequence[sw.Query], events: pa.Table, requests: pa.Table, ts: str, key: str | None
    ) -> pa.Table:
        import swag.spark

        frames = self._frame(events), self._frame(requests)
        return swag.spark.evaluate(queries, *frames, ts=ts, key=key, layout=self.layout).toArrow()

    ticks = at_events

    def filters(self, queries: Sequence[sw.Query], events: pa.Table, times: list[int], ts: str, key: str) -> pa.Table:
        import swag.spark

        return swag.spark.filter_substreams(queries, self._frame(events), times, ts, key).toArrow()

    def detect(self, spec: Any, events: pa.Table, ts: str, key: str | None) -> pa.Table:
        import frames.spark

        return frames.spark.detect(spec, self._frame(events), ts=ts, key=key, layout=self.layout).toArrow()

    def fill(self, frames: pa.Table, events: pa.Table, ts: str, key: str | None, before: int, after: int) -> pa.Table:
        import frames.spark as on_spark

        both, margins = (self._frame(frames), self._frame(events)), {"before": before, "after": after}
        return on_spark.fill(*both, ts=ts, key=key, layout=self.layout, **margins).toArrow()

    def summarize(
        self, frames: pa.Table, events: pa.Table, aggregates: Any, ts: str, key: str | None, before: int, after: int
    ) -> pa.Table:
        import frames.spark as on_spark

        both, margins = (self._frame(frames), self._frame(events)), {"before": before, "after": after}
        return on_spark.summarize(*both, aggregates, ts=ts, key=key, layout=self.layout, **margins).toArrow()

    def _frame(self, table: pa.Table) -> Any:
        return self.spark.createDataFrame(table)


class SparkStream:
    """Over a stream of two triggers: everything, and a moment after it that the watermark goes by.

    A stream answers as of the watermark, not at events, and has no end that would decide the last slot or close the
    last frame; those are checked against the oracle in tests/spark/test_shards.py and test_frame_shards.py.
    """

    name = "spark-stream"

    def __init__(self, spark: Any) -> None:
        self.spark = spark

    def at_requests(
        self, queries: Sequence[sw.Query], events: pa.Table, requests: pa.Table, ts: str, key: str | None
    ) -> pa.Table:
        import swag.spark

        after = {ts: max(max(t[ts].to_pylist()) for t in (events, requests)) + 10, key: "after all"}
        last = pa.Table.from_pylist([after], schema=events.schema)
        with tempfile.TemporaryDirectory() as folder:
            streams = [
                self._stream(Path(folder) / "events", [events, last]),
                self._stream(Path(folder) / "r", [requests]),
            ]
            frame = swag.spark.stream(queries, streams[0], requests=streams[1], ts=ts, key=key, lateness=1)
            found: list[pa.Table] = []
            writer = frame.writeStream.foreachBatch(lambda batch, _: found.append(batch.toArrow()))
            query = writer.option("checkpointLocation", f"{folder}/checkpoint").start()
            try:
                query.processAllAvailable()
            finally:
                query.stop()
        return pa.concat_tables(found)

    def _stream(self, folder: Path, tables: list[pa.Table]) -> Any:
        from tests.spark.streams import write

        write(folder, tables)
        schema = self.spark.createDataFrame(tables[0].slice(0, 0)).schema
        return self.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


RUNNERS: list[Any] = [Embedded, SparkBatch, SparkStream]
