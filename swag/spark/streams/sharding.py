"""Rows of streams through shards: packed, dealt out by key, and answers with counts on the way back."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from swag.errors import BadQuery
from swag.spark.places import all_columns, col, named, numbered, placed
from swag.spark.portable import in_workers, own_python
from swag.spark.streams.packing import COUNTS, PACKED_SPARK, Pack

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

    from swag.spark.streams.shard import Job


def sharded(packed: "list[DataFrame]", job: "Job") -> "DataFrame":
    """Packed rows through the shards: rows of answers, and of counts, which have those in the first column.

    packed: of one stream, or of several with a watermark each; the shards are told the earliest.
    """
    from pyspark.sql import DataFrame
    from pyspark.sql.pandas.types import from_arrow_schema
    from pyspark.sql.types import LongType, StructField, StructType

    from swag.spark.streams.shard import Shards

    fields = [StructField(f"c{i}", each.dataType) for i, each in enumerate(from_arrow_schema(job.output))]
    schema = StructType([StructField(COUNTS, LongType()), *fields])
    delay = f"{job.delay} milliseconds"
    each = [rows.withWatermark("time", delay).select("shard", "kind", "place", "piece") for rows in packed]
    timed = reduce(DataFrame.unionAll, each)
    if job.purpose["shards"] == partitions_of(timed) == 1:
        timed = timed.coalesce(1)  # one stage, no shuffle: where all ends up in one task, that packs the rows, too
    with own_workers(timed), own_python(timed):
        found = timed.groupBy("shard").transformWithStateInPandas(Shards(job), schema, "Append", "EventTime")
    return named(found, [COUNTS, *job.output.names])


def observed(found: "DataFrame", metrics: str) -> "DataFrame":
    """The answers alone. The counts of shards, which come in the first column, are observed metrics of this name."""
    from pyspark.sql import functions as F

    from swag.spark.streams.shard import METRICS, WHICH

    if not isinstance(metrics, str) or not metrics:
        raise BadQuery(f"metrics={metrics!r} is no name that counts could be reported by.", 'metrics="trades"')
    rows, (counts, *answers) = placed(found), all_columns(found)
    # Every answer passes these sums, too. From one text, to be split and parsed, they took some 20 ms more per 190,000.
    number, which = counts.bitwiseAND((1 << WHICH) - 1), F.shiftright(counts, WHICH)
    sums = [F.sum(F.when(which == F.lit(i), number)).alias(name) for i, name in enumerate(METRICS)]
    counted = rows.observe(metrics, *sums).where(counts.isNull())
    return named(counted.select(*answers), found.columns[1:])


@contextmanager
def own_workers(frame: "DataFrame") -> Iterator[None]:
    """Functions that Spark wraps in here run in Python workers of their own.

    Spark hands tasks the worker that has been idle for longest, so where others use them too, a shard would meet
    another worker with every trigger, and engines that are behind. It keeps workers apart by their environment.
    """
    context = getattr(frame.sparkSession, "_sc", None)  # none under Spark Connect
    if context is None:
        yield
        return
    context.environment["SWAG_SPARK_SHARDS"] = "1"
    try:
        yield
    finally:
        del context.environment["SWAG_SPARK_SHARDS"]


def pack(rows: "DataFrame", packer: Pack, numbers: list[int], key_type: "DataType | None" = None) -> "DataFrame":
    """Rows in pieces for the shards of these numbers. key_type: what the key is to be: equal ones must be of one type
    to meet in one shard."""
    from pyspark.sql import functions as F

    columns = {name: col(rows, name) for name in packer.names}
    if key_type is not None and packer.key is not None:
        columns[packer.key] = columns[packer.key].cast(key_type)
    taken = placed(rows).select(*numbered("c", list(columns.values())))
    if packer.key is None or len(numbers) == 1:
        taken = taken.coalesce(1) if partitions_of(rows) == 1 else taken  # see `sharded`; before, so places count on
        return in_workers(taken, replace(packer, shard=numbers[0]), PACKED_SPARK)
    which = F.pmod(F.xxhash64(f"c{packer.names.index(packer.key)}"), F.lit(len(numbers))).cast("int")
    shard = F.element_at(F.array(*map(F.lit, numbers)), which + F.lit(1))
    return in_workers(taken.withColumn("shard", shard.cast("int")), packer, PACKED_SPARK)


def partitions_of(frame: "DataFrame") -> int:
    return int(str(frame.sparkSession.conf.get("spark.sql.shuffle.partitions")))


def shard_count(frame: "DataFrame", shards: int | None) -> int:
    count = partitions_of(frame) if shards is None else shards
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise BadQuery(f"shards={shards!r} is not a whole number >= 1.", "shards=64")
    return count
