"""Kernels compiled once, on the driver, for all workers: what they do is done here, with a few rows of equal types."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from kernels.compile.folder import cache_folder
from swag.errors import BadQuery
from swag.query.groupings import by_grouping
from swag.query.query import Query
from swag.spark import schema
from swag.spark.asked import over_windows
from swag.spark.batch.evaluate import planned
from swag.spark.batch.layout import Layout
from swag.spark.batch.tasks import answers
from swag.spark.places import col, named, placed

WARMED_ROWS, WARMED_BLOCK = 64, 16  # several blocks, so that there is something to carry over


def warm(
    queries: Iterable[Query] | Query | str, events: DataFrame, ts: str = "ts", key: str | list[str] | None = None
) -> Path:
    """Compile what these queries need over events of these types; returns the folder that holds the machine code.

    Workers on this machine find it there. For others, put it where they see it, and set $SWAG_CACHE_DIR for them.

    >>> import swag as sw, swag.spark
    >>> trades = spark.createDataFrame([(1, "a", 2.0), (2, "a", 3.0)], "ts long, k string, x double")  # doctest: +SKIP
    >>> query = sw.Query(sw.sum("x"), sw.Rows(2), name="s")
    >>> swag.spark.warm(query, trades, key="k")  # doctest: +SKIP
    PosixPath('/home/me/.cache/swag')
    """
    schema.check_frame(events, "events")
    groups = by_grouping(over_windows(queries), tuple(schema.key_names(key)))
    asked = [query for some in groups.values() for query in some]
    if any(query.every is not None or query.source is not None for query in asked):
        raise BadQuery("queries with `every` or `source` are compiled when they run.", "warm the others")
    schema.field(events, ts, "ts is")
    for at in (None, named(placed(events).select(col(events, ts)), [ts])):
        layout = Layout(sample=0, block_rows=WARMED_BLOCK)
        rows, task, _ = planned(asked, events, at, ts, [], layout)  # no kernel sees a key
        for nulls in (False, True):
            table = pa.table({each.name: _some(each, nulls) for each in schema.arrow_schema(rows)})
            for _answer in answers(task, table.to_batches(max_chunksize=WARMED_BLOCK)):
                pass
    return cache_folder()


def _some(column: pa.Field, nulls: bool) -> pa.Array:
    """A few values for a column of laid-out rows: times in order, every other row asks."""
    numbers, kind = np.arange(WARMED_ROWS), column.type
    if column.name == "asks":
        return pa.array(numbers % 2 == 1)
    values = pa.array(numbers, mask=numbers == 3 if nulls and column.name.startswith("e") else None)
    for way in (pa.int64(), pa.int32(), pa.string()):  # to dates by way of int32, to text by way of text
        try:
            return values.cast(way).cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            pass
    return pa.nulls(WARMED_ROWS, kind)
