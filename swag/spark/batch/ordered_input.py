"""Events that are said to lie by key, and in order of ts, already: Layout(ordered=True). Believed, and checked.

      partition 0      a a a | c c            a worker sees its own partition: a key that comes again after another,
      partition 1      b b | d d d            a ts that is less than the one before it
      partition 2      a a                    … and not this: the driver looks for a key in two partitions

Between the driver's look and the job, Spark may put rows into other partitions, or rows may change. So the driver's
look gives a mark of every partition that it saw, and a worker whose partition has none of these marks stops the job.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, VariantType

from swag.errors import OutOfOrder
from swag.spark.key_runs import refuse_nulls, run_starts
from swag.tables.columns import Clock, one_chunk
from swag.tables.keys import KeyTable

MARK = "mark"  # a column of 33 bits for every row: their sum is that of its partition, and fits for 2^30 rows
HINT = "events.repartition(N, key).sortWithinPartitions(key, ts), or leave Layout(ordered=True) out"


@dataclass(frozen=True)
class Promise:
    """What was said of the events, and what was seen of them. names: the user's, of k0, k1 …; by: the one column that
    tells keys apart, if there is a key; marks: of the partitions: (rows, sum)."""

    names: dict[str, str]
    by: str | None
    ts: str
    clock: Clock
    marks: frozenset[tuple[int, int]] = frozenset()

    def looked_at(self, rows: DataFrame) -> tuple[DataFrame, "Promise"]:
        """Rows with their marks, and those of all partitions. A key in two partitions is refused."""
        print_ = F.xxhash64(*(each.name for each in rows.schema if _can_be_hashed(each.dataType)))
        marked = rows.withColumn(MARK, F.shiftrightunsigned(print_, 31))
        by_key = marked.withColumn("at", F.spark_partition_id()).groupBy(*([self.by] if self.by else []))
        size = [F.count(F.lit(1)).alias("rows"), F.sum(MARK).alias("sum")]
        own = [F.first(name).alias(name) for name in self.names if name != self.by]
        of_keys = by_key.agg(F.min("at").alias("at"), F.max("at").alias("other"), *size, *own)
        spread = F.when(F.col("at") < F.col("other"), F.struct("other", *self.names))
        size = [F.sum("rows").alias("rows"), F.sum("sum").alias("sum")]
        found = of_keys.groupBy("at").agg(*size, F.first(spread, ignorenulls=True).alias("spread"))
        seen = found.toArrow().to_pylist()
        for each in (each for each in seen if each["spread"] is not None):
            key = self._key({name: each["spread"][ours] for ours, name in self.names.items()})
            raise OutOfOrder(f"{key} is in partition {each['at']} and in {each['spread']['other']}.", HINT)
        return marked, replace(self, marks=frozenset((each["rows"], each["sum"]) for each in seen if each["rows"]))

    def _key(self, values: dict[str, object]) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in values.items())
        return f"the key {shown}" if values else "the stream"

    def key_of(self, rows: pa.Table, at: int) -> str:
        return self._key({name: rows.column(ours)[at].as_py() for ours, name in self.names.items()})


def _can_be_hashed(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return all(_can_be_hashed(each.dataType) for each in kind)
    return not isinstance(kind, MapType | VariantType) and not (
        isinstance(kind, ArrayType) and not _can_be_hashed(kind.elementType)
    )


@dataclass(eq=False)
class Order:
    """In a worker: the rows of a partition, as they come."""

    promise: Promise
    rows: int = 0
    _sum: int = 0
    _keys: KeyTable | None = None
    _last: list[pa.Table] = field(default_factory=list)

    def check(self, new: pa.Table) -> None:
        """Do rows go on where those before have ended?"""
        refuse_nulls(new, self.promise.names, self.promise.ts)
        rows = pa.concat_tables([*self._last, new])
        first = rows.num_rows - new.num_rows  # 0, or 1: the last row of those before
        by = [] if self.promise.by is None else [one_chunk(rows.column(self.promise.by))]
        starts = run_starts(by, rows.num_rows)
        self._refuse_return(rows, starts[starts >= first], first)
        self._refuse_past(rows, starts, first)
        self.rows += new.num_rows
        self._sum += int(np.asarray(one_chunk(new.column(MARK))).sum())
        self._last = [new.slice(new.num_rows - 1)] if new.num_rows else self._last

    def _refuse_return(self, rows: pa.Table, starts: np.ndarray, first: int) -> None:
        """A key begins once."""
        if self.promise.by is None:
            return
        begun = one_chunk(rows.column(self.promise.by)).take(pa.array(starts))
        self._keys = KeyTable(begun.type) if self._keys is None else self._keys
        known, ids = self._keys.count, self._keys.encode(begun, self.promise.by)
        again = np.flatnonzero(ids != known + np.arange(ids.size))  # new keys are numbered as they appear
        if again.size:
            at = int(starts[again[0]])
            key = self.promise.key_of(rows, at)
            raise OutOfOrder(f"{self._row(at - first)}: {key} comes again after another key.", HINT)

    def _refuse_past(self, rows: pa.Table, starts: np.ndarray, first: int) -> None:
        """Within a key, time does not go back."""
        t = np.asarray(one_chunk(rows.column("t")))
        back = t[1:] < t[:-1]
        back[starts[starts > 0] - 1] = False
        if back.any():
            at = int(np.argmax(back)) + 1
            show, ts = self.promise.clock.show, self.promise.ts
            times = f'"{ts}": {show(int(t[at]))} after {show(int(t[at - 1]))}'
            key = self.promise.key_of(rows, at)
            raise OutOfOrder(f"{self._row(at - first)}, of {key}: rows are not sorted by {times}.", HINT)

    def _row(self, at: int) -> str:
        return f"row {self.rows + at} of {_partition()}"

    def finish(self) -> None:
        """The partition is over: was it seen by the driver?"""
        if self.rows and (self.rows, self._sum) not in self.promise.marks:
            raise OutOfOrder(
                f"{_partition()} is none of those that were looked at when the job was planned: the events have "
                "changed since then, or Spark has put them into other partitions.",
                f"a fixed number of them, {HINT}",
            )


def _partition() -> str:
    context = TaskContext.get()
    return "a partition" if context is None else f"partition {context.partitionId()}"


def in_order(promise: Promise, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same batches, once each was found to be in order."""
    order = Order(promise)
    for batch in batches:
        order.check(pa.Table.from_batches([batch]))
        yield batch
    order.finish()
