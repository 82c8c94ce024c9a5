"""Over streams. What is asked of stored events is asked of a stream in words of its own, and answered one to one:

at every event       every=Every(1), key by key: a tick at each event, which sees the events up to it
at given times       an event of another key at each of them, which takes the watermark there, trigger by trigger
at the end           a stream has none. Slots after the last event's are the stream's own, and not compared; every key
                     gets one more event, which no open frame can hold, and is taken out of what comes again; frames
                     that a quantile cuts would hold any: there it is a null, of which they say nothing

Answers of different types, and frames of different specs, are streams of their own.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import frames as fr
import swag as sw
from frames.finding.quantiles import is_quantile
from tests.spark.streams import run, source, write

OTHER = "other"  # a key that no case has


class SparkStream:
    name = "spark-stream"
    share = 5  # a stream starts for each spec and type, and every answer is a row: windows and aggregates take turns

    def __init__(self, spark: Any) -> None:
        self.spark = spark

    def at_events(self, queries: Sequence[sw.Query], events: pa.Table, ts: str, key: str | None) -> pa.Table:
        each = sw.Every(1, per_key=key is not None)
        asked = [replace(query, every=each, name=query.label) for query in queries]
        (rows,) = self._ticks([asked], events, ts, key)
        return pa.Table.from_pylist(rows, self._answered(queries, events, ts, key))

    def at_requests(
        self, queries: Sequence[sw.Query], events: pa.Table, requests: pa.Table, ts: str, key: str | None
    ) -> pa.Table:
        import swag.spark

        end = _last(pa.concat_tables([events.select([ts]), requests.select([ts])]), ts)
        with self._folder() as folder:
            write(folder / "events", in_triggers([events, moment(events, end, ts, key)], ts))
            write(folder / "requests", [requests])
            streams = [
                self._source(folder / name, table) for name, table in (("events", events), ("requests", requests))
            ]
            frame = swag.spark.stream(queries, streams[0], requests=streams[1], ts=ts, key=key, shards=2)
            rows = self._rows({"": frame}, folder)[""]
        return pa.Table.from_pylist(rows, sw.evaluate(queries, events, at=requests, ts=ts, key=key).schema)

    def ticks(self, groups: Sequence[Sequence[sw.Query]], events: pa.Table, ts: str, key: str | None) -> list[pa.Table]:
        """The answers of each group; its queries share one `every`."""
        found = []
        for group, rows in zip(groups, self._ticks(groups, events, ts, key), strict=True):
            slot = group[0].every.time if group[0].every.by_time else None
            end = int(np.asarray(events.column(ts)).max())
            rows = [row for row in rows if slot is None or row["tick"] <= -(-end // slot)]
            found.append(pa.Table.from_pylist(rows, self._answered(group, events, ts, key)))
        return found

    def filters(self, queries: Sequence[sw.Query], events: pa.Table, times: list[int], ts: str, key: str) -> pa.Table:
        import swag.spark

        triggers, before = [], -(2**40)
        for time in [*sorted(times), _last(events, ts)]:
            fresh = [row for row in events.to_pylist() if before < row[ts] <= time]
            triggers.append(
                pa.concat_tables([pa.Table.from_pylist(fresh, events.schema), moment(events, time, ts, key)])
            )
            before = time
        with self._folder() as folder:
            write(folder / "events", triggers)
            rows = self._rows(
                {"": swag.spark.stream(queries, self._source(folder / "events", events), ts=ts, key=key)}, folder
            )
        answers = [(row["query"], row[ts], row[key], row["value"]) for row in rows[""]]
        answers = [row for row in answers if row[1] in times and row[2] != OTHER]
        return pa.table(dict(zip(["query", "at", key, "value"], zip(*answers, strict=True), strict=True)))

    def detect(self, specs: Sequence[Any], events: pa.Table, ts: str, key: str | None) -> list[pa.Table]:
        import frames.spark

        end = _last(events, ts)
        keys = sorted(set(events.column(key).to_pylist())) if key is not None else [None]
        closing = {"x": -1e15, "i": -(10**9)}  # in no range, cell or run of the events before
        with self._folder() as folder:
            own = {}
            for name, values in (("closed", closing), ("open", {})):
                last = [{ts: end, **({} if key is None else {key: k}), **values} for k in keys]
                ends = [pa.Table.from_pylist(last, events.schema), moment(events, end + 1, ts, key)]
                write(folder / name, in_triggers([events, *ends], ts))
                own[name] = self._source(folder / name, events)
            found = {
                str(n): frames.spark.stream(
                    spec, own["open" if is_quantile(spec) else "closed"], ts=ts, key=key, shards=2
                )
                for n, spec in enumerate(specs)
            }
            rows = self._rows(found, folder)
        return [self._united(spec, rows[str(n)], events, end, ts, key) for n, spec in enumerate(specs)]

    def _united(self, spec: Any, pieces: list[dict], events: pa.Table, end: int, ts: str, key: str | None) -> pa.Table:
        """Frames of their pieces, without the event at `end`; one that was waiting for it to be complete is none."""
        like = fr.detect(spec, events, ts=ts, key=key).schema
        waits = getattr(spec, "op", "") in (">", ">=") and not isinstance(spec, fr.Threshold)
        last = {each.get(key): each[ts] for each in events.sort_by(ts).to_pylist()}
        frames = fr.united(pa.Table.from_pylist(pieces, pa.schema([*like, ("final", pa.bool_())]))).to_pylist()
        kept = []
        for frame in frames:
            if frame["end"] == end:
                frame |= {"end": last.get(frame.get(key)), "rows": frame["rows"] - 1}
                frame["rows"] *= not waits
            kept += [frame] if frame["rows"] and frame["start"] < end else []
        return pa.Table.from_pylist(kept, like)

    # -- Spark --------------------------------------------------------------------------------------------------------

    def _ticks(
        self, groups: Sequence[Sequence[sw.Query]], events: pa.Table, ts: str, key: str | None
    ) -> list[list[dict[str, Any]]]:
        """Per group a row for each tick: tick, ts, [key], the queries that have something to say."""
        import swag.spark

        kinds = [self._answered(group, events, ts, key) for group in groups]
        by_type: dict[pa.DataType, list[sw.Query]] = {}  # one column of values for all of one type
        for n, group in enumerate(groups):
            for query in group:
                kind = kinds[n].field(query.label).type
                by_type.setdefault(kind, []).append(replace(query, name=f"{n} {query.label}"))
        with self._folder() as folder:
            write(folder / "events", in_triggers([events, moment(events, _last(events, ts), ts, key)], ts))
            own = self._source(folder / "events", events)
            found = {f"{t}": swag.spark.stream(q, own, ts=ts, key=key, shards=2) for t, q in by_type.items()}
            answers = self._rows(found, folder)
        rows: list[dict[tuple, dict[str, Any]]] = [{} for _ in groups]
        for row in (row for each in answers.values() for row in each):
            n, label = int(row["query"].split()[0]), row["query"].split(" ", 1)[1]
            front = {name: row[name] for name in ("tick", ts, *([] if key is None else [key]))}
            if front.get(key) != OTHER and front[ts] < _last(events, ts):
                whole = pa.types.is_integer(kinds[n].field(label).type) and row["value"] is not None
                own_row = rows[n].setdefault(tuple(front.values()), nothing(groups[n]) | front)
                own_row[label] = int(row["value"]) if whole else row["value"]
        return [list(each.values()) for each in rows]

    def _answered(self, queries: Sequence[sw.Query], events: pa.Table, ts: str, key: str | None) -> pa.Schema:
        """What an embedded evaluate would give, by the types of its columns."""
        return sw.evaluate(queries, events.slice(0, 0), ts=ts, key=key).schema

    def _rows(self, frames: dict[str, Any], folder: Path) -> dict[str, list[dict[str, Any]]]:
        """What comes out of each, one after the other: Spark gives up on Python workers that are slow to start."""
        found = {}
        for name, frame in frames.items():
            sink, _ = run(frame, folder / f"checkpoint of {name}")
            found[name] = [dict(zip(frame.columns, row, strict=True)) for row in sink.rows]
        return found

    @contextmanager
    def _folder(self) -> Iterator[Path]:
        """For the files of a stream. Its shards are in one partition: workers are few, each has kernels to load."""
        partitions = self.spark.conf.get("spark.sql.shuffle.partitions")
        self.spark.conf.set("spark.sql.shuffle.partitions", "1")
        try:
            with tempfile.TemporaryDirectory() as folder:
                yield Path(folder)
        finally:
            self.spark.conf.set("spark.sql.shuffle.partitions", partitions)

    def _source(self, folder: Path, table: pa.Table) -> Any:
        return source(self.spark, folder, self.spark.createDataFrame(table.slice(0, 0)).schema)


def in_triggers(tables: list[pa.Table], ts: str) -> list[pa.Table]:
    """Two files in order of time, ties together: nothing is late. Spark adds a trigger for the last watermark."""
    events = pa.concat_tables(tables).sort_by([(ts, "ascending")])
    times = np.asarray(events.column(ts))
    cut = int(np.searchsorted(times, times[times.size // 2]))
    return [part for part in (events.slice(0, cut), events.slice(cut)) if part.num_rows]


def moment(like: pa.Table, time: int, ts: str, key: str | None) -> pa.Table:
    """An event of another key, for the watermark to go by."""
    return pa.Table.from_pylist([{ts: time} | ({} if key is None else {key: OTHER})], like.schema)


def _last(events: pa.Table, ts: str) -> int:
    """A time after all events."""
    return int(np.asarray(events.column(ts)).max()) + 10


def nothing(queries: Sequence[sw.Query]) -> dict[str, Any]:
    """Streams do not speak of empty windows."""
    return {q.label: 0 if q.aggregate.kind == "count" and q.having is None else None for q in queries}
