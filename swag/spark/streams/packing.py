"""Rows on their way to shards: packed before the shuffle into one Arrow piece per shard and task.

Spark hands rows to Python's state operators one at a time; pieces are few, and keep every type and null as it is.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from swag.durable.state import table_to_array
from swag.errors import BadEvents
from swag.spark import process
from swag.spark.streams.watermark import TIME, EventTime, instants_of

PACKED = pa.schema(
    [
        ("shard", pa.int32()),
        ("kind", pa.string()),
        ("place", pa.int64()),
        ("time", TIME),
        ("piece", pa.binary()),
    ]
)
PACKED_SPARK = "shard int, kind string, place long, time timestamp, piece binary"
COUNTS = "__swag"  # on the way back: the column of a shard's counts, a long beside the answers, which is null there
PACKED_AT_ONCE = 1 << 20  # rows packed at once, at most


@dataclass(frozen=True)
class Pack:
    """What mapInArrow runs. tells_time: the watermark follows these rows (events do that, requests do not).

    names: of the columns that come, which Spark knows by their places. shard: where all rows go, if they go to one;
    else one more column says.
    """

    kind: str
    ts: str
    key: str | None
    time: EventTime
    tells_time: bool = True
    names: tuple[str, ...] = ()
    shard: int | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        process.begin()
        context: Any = TaskContext.get()
        place = (context.partitionId() if context is not None else 0) << 32  # rows keep the order of their source
        waiting: list[pa.RecordBatch] = []
        for batch in batches:
            waiting.append(batch)
            if sum(each.num_rows for each in waiting) >= PACKED_AT_ONCE:
                yield self._piece(waiting, place)
                waiting, place = [], place + 1
        if sum(each.num_rows for each in waiting):
            yield self._piece(waiting, place)

    def _piece(self, batches: list[pa.RecordBatch], place: int) -> pa.RecordBatch:
        table, own = pa.Table.from_batches(batches), len(self.names)
        shards = None if table.num_columns == own else np.asarray(table.column(own))
        return self.packed(table.select(range(own)).rename_columns(self.names), shards, place)

    def packed(self, table: pa.Table, shards: np.ndarray | None, place: int) -> pa.RecordBatch:
        """shards: where each row goes; None: all to one."""
        for name, what in ((self.ts, "timestamp"), (self.key, "key")):
            if name is not None and table.column(name).null_count:
                raise BadEvents(
                    f'a row has no {what}: "{name}" is null.', f'filter before: df.dropna(subset=["{name}"])'
                )
        index = table.column_names.index(self.ts)
        table = _in_utc(table.set_column(index, self.ts, self.time.normal(table.column(self.ts))))
        parts = self._parts(table, shards)
        count = len(parts)
        times = [self._time(part) for part in parts.values()]
        columns = [
            pa.array(list(parts), pa.int32()),
            pa.array([self.kind] * count),
            pa.array([place] * count, pa.int64()),
            pa.array(times, pa.int64()).cast(TIME),
            pa.array([table_to_array(part.combine_chunks()).tobytes() for part in parts.values()], pa.binary()),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=PACKED)

    def _parts(self, table: pa.Table, shards: np.ndarray | None) -> dict[int, pa.Table]:
        """The rows of each shard, in the order they came in."""
        if shards is None:
            assert self.shard is not None
            return {self.shard: table}
        order = np.argsort(shards, kind="stable")
        table, shards = table.take(pa.array(order)), shards[order]
        starts = np.flatnonzero(np.diff(shards, prepend=shards[0] - 1))
        ends = np.append(starts[1:], shards.size)
        return {int(shards[a]): table.slice(a, b - a) for a, b in zip(starts, ends, strict=True)}

    def _time(self, part: pa.Table) -> int | None:
        return self.time.spark_time(int(instants_of(part.column(self.ts)).max())) if self.tells_time else None


def _in_utc(table: pa.Table) -> pa.Table:
    """Timestamps with the same zone whatever the session's is: state outlives sessions."""
    return table.cast(in_utc(table.schema))


def in_utc(schema: pa.Schema) -> pa.Schema:
    zoned = [pa.types.is_timestamp(each.type) and each.type.tz is not None for each in schema]
    return pa.schema([pa.field(f.name, TIME if z else f.type) for f, z in zip(schema, zoned, strict=True)])


def partition_of(number: int, partitions: int) -> int:
    """Where Spark's shuffle sends an int: its Murmur3 hash, seed 42."""
    mask = 0xFFFFFFFF

    def rotated(x: int, by: int) -> int:
        return ((x << by) | (x >> (32 - by))) & mask

    k = rotated(number * 0xCC9E2D51 & mask, 15) * 0x1B873593 & mask
    h = (rotated(42 ^ k, 13) * 5 + 0xE6546B64) & mask
    h ^= 4
    h = (h ^ (h >> 16)) * 0x85EBCA6B & mask
    h = (h ^ (h >> 13)) * 0xC2B2AE35 & mask
    h ^= h >> 16
    return (h - (1 << 32) if h >= 1 << 31 else h) % partitions


def shard_numbers(shards: int, partitions: int) -> list[int]:
    """Names for shards under which Spark deals them out evenly: as many to every partition, give or take one."""
    room = [shards // partitions + (p < shards % partitions) for p in range(partitions)]
    numbers: list[int] = []
    candidate = 0
    while len(numbers) < shards:
        partition = partition_of(candidate, partitions)
        if room[partition]:
            room[partition] -= 1
            numbers.append(candidate)
        candidate += 1
    return numbers
