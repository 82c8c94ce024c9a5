"""Ways of running queries: each takes tables in memory and gives a table, so that one suite holds for all of them.

Streams have frames, but none to fill or summarize: that they say so is tested (test_frames_filled_and_summarised).
"""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

import frames as fr
import swag as sw
from tests.conformance.streaming import SparkStream


class Embedded:
    """The library itself, in this process."""

    name = "embedded"
    share = 1  # one in so many queries and specs is asked of it

    def __init__(self, spark: Any = None) -> None: ...

    def at_events(self, queries: Sequence[sw.Query], events: pa.Table, ts: str, key: str | None) -> pa.Table:
        """[key], ts, a column per query."""
        return sw.evaluate(queries, events, ts=ts, key=key)

    def at_requests(
        self, queries: Sequence[sw.Query], events: pa.Table, requests: pa.Table, ts: str, key: str | None
    ) -> pa.Table:
        """The requests' columns, a column per query."""
        return sw.evaluate(queries, events, at=requests, ts=ts, key=key)

    def ticks(self, groups: Sequence[Sequence[sw.Query]], events: pa.Table, ts: str, key: str | None) -> list[pa.Table]:
        """Per group: tick, ts, [key], a column per query."""
        return [sw.evaluate(group, events, ts=ts, key=key) for group in groups]

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

    def detect(self, specs: Sequence[Any], events: pa.Table, ts: str, key: str | None) -> list[pa.Table]:
        return [fr.detect(spec, events, ts=ts, key=key) for spec in specs]

    def fill(self, frames: pa.Table, events: pa.Table, ts: str, key: str | None, before: int, after: int) -> pa.Table:
        return fr.fill(frames, events, ts=ts, key=key, before=before, after=after)

    def summarize(
        self, frames: pa.Table, events: pa.Table, aggregates: Any, ts: str, key: str | None, before: int, after: int
    ) -> pa.Table:
        return fr.summarize(frames, events, aggregates, ts=ts, key=key, before=before, after=after)


class SparkBatch:
    """Over DataFrames; substreams are cut wherever they can be, and blocks are small."""

    name = "spark-batch"
    share = 1

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

    def ticks(self, groups: Sequence[Sequence[sw.Query]], events: pa.Table, ts: str, key: str | None) -> list[pa.Table]:
        return [self.at_events(group, events, ts, key) for group in groups]

    def filters(self, queries: Sequence[sw.Query], events: pa.Table, times: list[int], ts: str, key: str) -> pa.Table:
        import swag.spark

        return swag.spark.filter_substreams(queries, self._frame(events), times, ts, key).toArrow()

    def detect(self, specs: Sequence[Any], events: pa.Table, ts: str, key: str | None) -> list[pa.Table]:
        import frames.spark

        own = self._frame(events)
        return [frames.spark.detect(spec, own, ts=ts, key=key, layout=self.layout).toArrow() for spec in specs]

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


RUNNERS: list[Any] = [Embedded, SparkBatch, SparkStream]
