"""Events and requests of a DataFrame as queries read them: found to be right before any job, and under our names."""

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from swag.errors import BadQuery, BadType, UnknownColumn, nearest
from swag.evaluate import evaluate as embedded
from swag.query.query import Query
from swag.query.windows import Range
from swag.spark import schema
from swag.spark.batch.layout import Columns
from swag.spark.places import all_columns, col, numbered, placed

# Aggregates that tell equal timestamps apart.
IN_ORDER = {"first", "last", "first_n", "last_n", "arg_max", "arg_min", "mode", "aggregate"}


def checked_inputs(asked: list[Query], events: DataFrame, at: DataFrame | None, ts: str, keys: list[str]) -> pa.Schema:
    """All mistakes are found before any job, on empty tables, by the code that answers. Returns the answers' types."""
    if at is not None:
        schema.check_frame(at, "requests")
    for name in keys:
        schema.check_key(schema.field(events, name, "key is"))
        if at is not None:
            _same_key(events, at, name)
        elif any(query.label == name for query in asked):
            raise BadQuery(
                f'query "{name}" has the name of a column that comes before the answers.',
                'name it apart: sw.Query(…, name="…")',
            )
    requests = None if at is None else schema.empty_table(at)
    types = embedded(asked, schema.empty_table(events), at=requests, ts=ts).schema
    return pa.schema([types.field(i) for i in range(len(types) - len(asked), len(types))])


def _same_key(events: DataFrame, at: DataFrame, name: str) -> None:
    """Refuse requests that lack a key column of the events, or have it in another type."""
    if name not in at.columns:
        raise UnknownColumn(
            f'requests need a column "{name}", but have: {", ".join(at.columns)}.', nearest(name, at.columns)
        )
    theirs, ours = at.schema[name].dataType, events.schema[name].dataType
    if theirs.simpleString() != ours.simpleString():
        raise BadType(
            f'key column "{name}" of the requests is {theirs.simpleString()}, that of the events '
            f"{ours.simpleString()}.",
            f'requests.withColumn("{name}", F.col("{name}").cast("{ours.simpleString()}"))',
        )


def inputs(
    simple: list[Query], events: DataFrame, at: DataFrame | None, ts: str, keys: list[str], read: list[str],
    ordered: bool,
) -> tuple[DataFrame, DataFrame | None, Columns]:  # fmt: skip
    """Events and requests under the names of the layout."""
    key, by = schema.key_columns(events, keys)
    if ordered and keys:
        key, known_by = schema.one_key(events, keys)
        by = (known_by,)
    ties = at is None or any(not isinstance(q.window, Range) or q.aggregate.kind in IN_ORDER for q in simple)
    seq = [F.monotonically_increasing_id().alias("seq")] if ties else []
    columns = numbered("e", [col(events, name) for name in read])
    taken = placed(events).select(*key, schema.instant(events, ts).alias("t"), *seq, *columns)
    others = tuple(f"e{i}" for i in range(len(read)))
    if at is None:
        return taken, None, Columns(tuple(f"k{i}" for i in range(len(keys))), by, ties, False, others)
    own = tuple(f"r{i}" for i in range(len(at.columns)))
    key, _ = schema.key_columns(at, keys)
    asking = placed(at).select(*key, schema.instant(at, ts).alias("t"), *numbered("r", all_columns(at)))
    return taken, asking, Columns(tuple(f"k{i}" for i in range(len(keys))), by, ties, True, others + own)
