"""`swag.spark.filter_substreams`: which keys pass at given times. Keys are spread, and every task has an engine."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from swag.engine import Engine
from swag.errors import BadQuery, BadType
from swag.evaluate import evaluate
from swag.query.groupings import By, by_grouping
from swag.query.lowering import components
from swag.query.query import Query
from swag.spark import process, schema
from swag.spark.answer_types import one_type_at_a_time, value_type
from swag.spark.asked import columns_read, over_windows
from swag.spark.batch.tasks import of_type
from swag.spark.key_rows import KeyRows
from swag.spark.key_runs import refuse_nulls
from swag.spark.places import col, free, numbered, placed
from swag.spark.portable import in_workers, portable
from swag.spark.together import all_keys, together
from swag.tables.answers import own_name
from swag.tables.columns import Clock, one_chunk

CALL = "swag.spark.filter_substreams"


def filter_substreams(
    queries: Iterable[Query] | Query | str,
    events: DataFrame,
    at: Any,
    ts: str = "ts",
    key: str | list[str] | None = None,
) -> DataFrame:
    """The keys that satisfy each query's `having` at each time: query, at, the key's columns, value (where a key is
    called so, "value_").

    at: times, as a list, an array, a single one, or a DataFrame with a column `ts` (which is collected). A key with no
    event in the window is not in the answer. What one task holds is what an engine keeps of its share of the keys.
    Queries may be grouped in several ways, each by its own `by`: then the key columns of all are there, null where a
    query does not group by one, and rows are shuffled for each grouping.

    >>> import swag as sw, swag.spark
    >>> trades = spark.createDataFrame([(1, "a", 2.0), (2, "a", 3.0)], "ts long, k string, x double")  # doctest: +SKIP
    >>> query = sw.Query(sw.sum("x"), sw.Range(9), name="high", having=(">", 4))
    >>> swag.spark.filter_substreams(query, trades, at=[1, 2], key="k").collect()  # doctest: +SKIP
    [Row(query='high', at=2, k='a', value=5.0)]
    """
    schema.check_frame(events, "events")
    keys = schema.key_names(key)
    asked = over_windows(queries, tuple(keys))
    groups = by_grouping(asked, tuple(keys))
    value = _checked(asked, groups, events, ts, keys)
    clock = Clock(schema.arrow_schema(events).field(ts).type)
    times = _times(at, ts, clock)
    found = {by: _grouped(own, events, times, ts, list(by), clock, value) for by, own in groups.items()}
    if len(groups) == 1:
        return found[next(iter(groups))]
    query, at_, own = (own_name(name, *all_keys(groups)) for name in ("query", "at", "value"))
    return together(found, [query, at_], own, events)


def _grouped(
    asked: list[Query], events: DataFrame, times: np.ndarray, ts: str, keys: list[str], clock: Clock,
    value: pa.DataType,
) -> DataFrame:  # fmt: skip
    """The keys of one grouping that pass."""
    read = columns_read([each for query in asked for each in components(query)], events.columns)
    columns, known_by = schema.one_key(events, keys)
    when, arrival = schema.instant(events, ts).alias("t"), F.monotonically_increasing_id().alias("seq")
    rows = placed(events).select(*columns, when, arrival, *numbered("e", [col(events, name) for name in read]))
    rows = rows.repartition(known_by).sortWithinPartitions("t", "seq").drop("seq")
    query, at_, own = (own_name(name, *keys) for name in ("query", "at", "value"))
    out = StructType([
        StructField(query, StringType()), StructField(at_, events.schema[ts].dataType),
        *(StructField(name, events.schema[name].dataType) for name in keys),
        *schema.spark_fields(pa.schema([(own, value)])),
    ])  # fmt: skip
    task = FilterTask(portable(asked), keys, known_by, ts, read, clock, times, schema.arrow_of(out, events))
    return in_workers(rows, partial(passing, task), out)


def _checked(
    asked: list[Query], groups: dict[By, list[Query]], events: DataFrame, ts: str, keys: list[str]
) -> pa.DataType:
    """The type of all answers."""
    for query in asked:
        if query.having is None:
            raise BadQuery(f'query "{query.label}" lets every key pass.', 'sw.Query(…, having=(">", 100))')
        if query.every is not None:
            raise BadQuery(f'query "{query.label}" says itself when it answers; `at` asks for other times.')
    if () in groups:
        raise BadQuery("substreams are those of a key, and there is none.", 'key="symbol"')
    for name in all_keys(groups):
        schema.check_key(schema.field(events, name, "key is"))
    types = evaluate(asked, schema.empty_table(events), ts=ts, key=keys).schema
    return value_type({query.label: types.field(query.label).type for query in asked}, CALL)


def _times(at: Any, ts: str, clock: Clock) -> np.ndarray:
    if isinstance(at, DataFrame):
        found = placed(at).select(schema.instant(at, ts).alias("t")).distinct().toArrow().column("t").drop_null()
        return np.sort(np.asarray(found))
    each = list(at) if isinstance(at, Iterable) and not isinstance(at, str) else [at]
    if any(time is None for time in each):
        raise BadType(f"at={at!r}: None is no time.", "at=[…], the times at which keys are wanted")
    return np.unique(np.array([clock.instant(time) for time in each], np.int64))


@dataclass(frozen=True)
class FilterTask:
    """What a worker is told: which queries, by which columns, at which times."""

    queries: tuple[Query, ...]
    keys: list[str]
    known_by: str
    ts: str
    read: list[str]
    clock: Clock
    times: np.ndarray
    out: pa.Schema

    @property
    def when(self) -> str:
        """What ts is called in an engine, beside the columns that queries read."""
        return free(" t", self.read)

    @property
    def who(self) -> str:
        """The same, of the key as a number."""
        return free(" k", self.read)


def passing(task: FilterTask, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The events of some keys, in order of time: appended to an engine, which is asked when a time has come."""
    process.begin()
    engine, keys, asked = Engine(ts=task.when, key=task.who), KeyRows(_numbered("k", task.keys), task.known_by), 0
    engine.register(task.queries)
    for batch in batches:
        table = pa.Table.from_batches([batch])
        refuse_nulls(table, dict(zip(keys.names, task.keys, strict=True)), task.ts)
        t, events = np.asarray(one_chunk(table.column("t"))), _events(task, table, keys)
        done = 0
        while asked < task.times.size and t.size and task.times[asked] < t[-1]:
            upto = int(np.searchsorted(t, task.times[asked], side="right"))
            engine.append(events.slice(done, upto - done))
            yield from _answers(task, engine, keys, int(task.times[asked]))
            done, asked = upto, asked + 1
        engine.append(events.slice(done))
    for time in task.times[asked:]:
        yield from _answers(task, engine, keys, int(time))


def _numbered(letter: str, names: list[str]) -> list[str]:
    return [f"{letter}{i}" for i in range(len(names))]


def _events(task: FilterTask, table: pa.Table, keys: KeyRows) -> pa.Table:
    columns = [table.column(name) for name in _numbered("e", task.read)]
    when = of_type(table.column("t"), task.clock.type)
    return pa.Table.from_arrays([*columns, when, pa.array(keys.ids(table))], names=[*task.read, task.when, task.who])


def _answers(task: FilterTask, engine: Engine, keys: KeyRows, time: int) -> Iterator[pa.RecordBatch]:
    """In a worker: the keys that pass each filter at one of the times, asked of the task's engine, as answers."""
    if not engine.stats()["events"]:
        return
    engine.advance(task.clock.value(time))
    try:
        found = engine.filters()
        values = of_type(found.column("value"), task.out.types[-1])
    except (BadType, pa.ArrowInvalid) as why:  # a whole number that is another one as a float
        kinds = {query.label: engine.lookup(query.label).schema.types[-1] for query in task.queries}
        message = why.message if isinstance(why, BadType) else f"{why}."
        raise BadType(message, one_type_at_a_time(kinds, CALL)) from None
    if found.num_rows:
        at = of_type(pa.array(np.full(found.num_rows, time)), task.clock.type)
        who = keys.columns(np.asarray(found.column(task.who)))
        columns = [found.column("query"), at, *who, values]
        columns = [of_type(column, want.type) for column, want in zip(columns, task.out, strict=True)]
        yield from pa.Table.from_arrays(columns, schema=task.out).to_batches()
