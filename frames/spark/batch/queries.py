"""A query over frames on Spark: frames are found, then each is answered for, in one pass over events for all values.

Predicates, expressions and `having` are the query's own code (frames/query.py), run in the workers: Spark's SQL would
mean something else by NaN, by overflow and by division. So what `where` leaves out is shuffled nevertheless.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from frames.match_query import MatchQuery
from frames.spark.batch.stored_frames import FrameStream, answered_per_frame, detected, spans_of
from swag.errors import BadQuery
from swag.spark import schema
from swag.spark.batch.layout import Layout
from swag.spark.places import all_columns, named, placed
from swag.spark.portable import portable_term
from swag.tables.expressions.derived import of_events

if TYPE_CHECKING:
    from frames.query import FrameQuery


def evaluate(
    query: "FrameQuery | MatchQuery", events: DataFrame, ts: str, keys: list[str], layout: Layout
) -> DataFrame:
    """One row per frame: frame_id, the key's columns, start, end, rows, one column per value."""
    stream = FrameStream.of(events, ts, keys, layout)
    if isinstance(query, MatchQuery):
        return _matched(query, stream, ts)
    if query.spec.extent == "open":
        raise BadQuery(
            'a statement over frames with extent="open" is not answered on Spark.',
            'frames.spark.detect, then frames.spark.summarize(…, extent="open")',
        )
    query = portable(query)
    query.check_key(keys)
    types = query.evaluate(schema.empty_table(events), ts).schema  # all mistakes are found here, before any job
    stream = stream.cut()
    found = detected(stream, query.spec, skips=True)
    front, columns = ["frame_id", *keys, "start", "end", "rows"], all_columns(found)  # the front, …, the skip
    found = named(placed(found).select(*columns[: len(front)], columns[-1]), [*front, found.columns[-1]])
    out = StructType([*found.schema.fields[:-1], *schema.spark_fields(types)[-len(query.values) :]])
    read = of_events(dict.fromkeys(query.aggregated, "it reads"), query.texts, events.columns)
    task = replace(stream.task(list(read), out), query=query)
    return answered_per_frame(stream, spans_of(found, keys), task, out)


def _matched(query: MatchQuery, stream: FrameStream, ts: str) -> DataFrame:
    """The matches of a pattern, as the statement selects them."""
    query.check_time(ts)
    found = named(detected(stream, query.spec), list(query.names(tuple(stream.keys)).values()))
    return found.select(*query.select) if query.select else found


def portable(query: "FrameQuery") -> "FrameQuery":
    """What means the same in any process."""
    values = tuple((name, portable_term(value)) for name, value in query.values)
    having = None if query.having is None else portable_term(query.having)
    return replace(query, values=values, having=having)
