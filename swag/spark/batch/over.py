"""`swag.spark.sql`: statements over DataFrames by name; those with OVER ( … ) as an existing job has them.

The rows of a partition go to one task, which takes all of its rows as a stored table: it answers all partitions that it
has together. So windows of one statement are of one partition, by columns; without one, all rows go to one task.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from swag.errors import BadQuery, nearest
from swag.over import answering
from swag.over.aliases import spelt_out
from swag.progress import Progress
from swag.query.over_statement import OverStatement, SortKey
from swag.spark import process, schema
from swag.spark.batch.evaluate import evaluated
from swag.spark.batch.tasks import of_type
from swag.spark.places import all_columns, col, named, numbered, placed
from swag.spark.portable import in_workers
from swag.sql import sql as read
from swag.sql.places import placed as said_with_place
from swag.tables.expressions.expression import compiled


def sql(text: str, *, ts: str = "ts", **frames: DataFrame) -> DataFrame:
    """The answers of a statement, of a DataFrame that it names: swag.spark.sql("SELECT … FROM trades", trades=df).

    With OVER ( … ): as sw.evaluate has it, its columns as a DataFrame; the column of time is that of ORDER BY. Other
    statements: as swag.spark.evaluate; FILL FROM names a second DataFrame. The order of rows is none, unless the
    statement sorts them.

    >>> import swag as sw, swag.spark
    >>> trades = spark.createDataFrame([(1, "a", 2.0), (2, "a", 3.0)], "ts long, k string, x double")  # doctest: +SKIP
    >>> text = "SELECT ts, SUM(x) OVER (PARTITION BY k ORDER BY ts ROWS 1 PRECEDING) AS s FROM trades"
    >>> swag.spark.sql(text, trades=trades).orderBy("ts").collect()  # doctest: +SKIP
    [Row(ts=1, s=2.0), Row(ts=2, s=5.0)]
    """
    asked = read(text)
    events = _frame({query.stream for query in asked}, frames)
    with said_with_place(text):
        if not isinstance(asked[0], OverStatement):
            others = {name: frames[name] for query in asked if (name := getattr(query, "fill_from", None)) in frames}
            return evaluated(asked, events, ts=ts, streams=others)
        if len(asked) > 1:
            raise BadQuery("a statement with OVER ( … ) gives rows of its own.", "a call for each statement")
        return evaluate_over(asked[0], events, ts)


def _frame(streams: set[Any], frames: dict[str, DataFrame]) -> DataFrame:
    """The DataFrame that statements read, by its name after FROM; one that was not given, or several, are refused."""
    if len(streams) > 1:
        raise BadQuery(f"the statements read {len(streams)} streams.", "a call for each")
    [stream] = streams
    if stream not in frames:
        given = f"given are: {', '.join(frames) or 'none'}"
        near = nearest(str(stream), list(frames)) or f'swag.spark.sql("SELECT …", {stream}=df)'
        raise BadQuery(f'the statement reads "{stream}"; {given}.', near)
    schema.check_frame(frames[stream], "events")
    return frames[stream]


@dataclass(frozen=True)
class OverTask:
    """What a worker is told: the statement, what the columns of the events are called, and what the answers are."""

    statement: OverStatement
    ts: str
    events: pa.Schema
    out: pa.Schema


def evaluate_over(statement: OverStatement, events: DataFrame, ts: str) -> DataFrame:
    """A statement with OVER: rows go to tasks by partition, in order of arrival; answers are sorted behind them. ts:
    the column of time, unless windows say by which they are ordered."""
    statement = spelt_out(statement, events.columns)
    keys = _partition(statement, events)
    ts = next((call.order for call in statement.calls if call.order is not None), ts)
    alone = replace(statement, order=(), limit=None, offset=0)
    types = answering.evaluate_over(statement, schema.empty_table(events), ts, Progress()).schema
    out = StructType(schema.spark_fields(types))
    task = OverTask(alone, ts, schema.arrow_schema(events), schema.arrow_of(out, events))
    columns, by = schema.key_columns(events, keys)
    arrival = F.monotonically_increasing_id().alias("seq")
    rows = placed(events).select(*numbered("e", all_columns(events)), *columns, arrival)
    rows = (rows.repartition(*by) if by else rows.repartition(1)).sortWithinPartitions("seq")
    rows = rows.select(*(f"e{i}" for i in range(len(events.columns))))
    return _sorted(statement, in_workers(rows, partial(answers, task), out))


def _partition(statement: OverStatement, events: DataFrame) -> list[str]:
    """The columns of PARTITION BY, one list for all windows; expressions, or several partitions, are refused."""
    partitions = list(statement.by_partition())
    if len(partitions) > 1:
        shown = "; ".join(", ".join(each) or "none" for each in partitions)
        raise BadQuery(f"the statement has windows of several partitions: {shown}.", "a statement for each")
    found = []
    for text in partitions[0] if partitions else ():
        expression = compiled(text)
        if not expression.is_column:
            raise BadQuery(f"PARTITION BY {text} is an expression.", "a column of the DataFrame: df.withColumn(…)")
        [name] = expression.columns
        schema.check_key(schema.field(events, name, "PARTITION BY reads"))
        found.append(name)
    return found


def _sorted(statement: OverStatement, answers: DataFrame) -> DataFrame:
    names = answers.columns
    if statement.order:
        apart = placed(answers)
        answers = named(apart.orderBy(*(_sort_column(key, answers) for key in statement.order)), names)
    if statement.offset:
        answers = answers.offset(statement.offset)
    return answers if statement.limit is None else answers.limit(statement.limit)


def _sort_column(key: SortKey, answers: DataFrame) -> Column:
    name = answers.columns[key.text - 1] if isinstance(key.text, int) else next(iter(compiled(key.text).columns), "")
    if isinstance(key.text, str) and not (compiled(key.text).is_column and name in answers.columns):
        raise BadQuery(f"ORDER BY {key.text} is not a column of the result.", "ORDER BY one of them; or sort after it")
    column = col(answers, name)
    if key.descending:
        return column.desc_nulls_first() if key.nulls_first else column.desc_nulls_last()
    return column.asc_nulls_first() if key.nulls_first else column.asc_nulls_last()


def answers(task: OverTask, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a worker: all rows of a task at once."""
    process.begin()
    kept = list(batches)
    if not sum(batch.num_rows for batch in kept):
        return
    table = pa.Table.from_batches(kept).rename_columns(task.events.names)
    found = answering.evaluate_over(task.statement, table, task.ts, Progress())
    columns = [of_type(column, want.type) for column, want in zip(found.columns, task.out, strict=True)]
    yield from pa.Table.from_arrays(columns, schema=task.out).to_batches(max_chunksize=1 << 16)
