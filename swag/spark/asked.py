"""What queries ask for: windows, no frames, and of which columns."""

from collections.abc import Collection, Iterable
from typing import Any

from swag.errors import BadQuery
from swag.evaluate import asked_queries as checked
from swag.query.groupings import settled, stages
from swag.query.over_frames import OverFrames
from swag.query.over_statement import OverStatement
from swag.query.query import Events, Query
from swag.query.reading import Reading


def over_windows(queries: Any, default: tuple[str, ...] = ()) -> list[Query]:
    """Queries as a list, of which none is over frames. default: the key of those that say none."""
    asked = checked(queries)
    for query in asked:
        if isinstance(query, OverFrames):
            raise BadQuery(f'"{query.label}" is a query over frames.', "swag.spark.evaluate, frames.spark.stream(…)")
        if isinstance(query, OverStatement):
            raise BadQuery(f'"{query.label}" is a statement with OVER ( … ).', 'swag.spark.sql("SELECT …", events=df)')
        refuse_embedded_only(query, default)
    return asked


def refuse_embedded_only(query: Any, default: tuple[str, ...] = ()) -> None:
    """Rows are dealt to tasks by their keys there: what counts or groups them otherwise is for one process."""
    for stage in stages(settled(query, default)):
        found = ""
        if isinstance(stage, Events):
            found = "a stream of the tuples that a frequency picks" if stage.every is not None else ""
            found = found or ("SELECT * by itself" if isinstance(query, Events) else "")
        elif stage.is_relation:
            found = "a query without a window, over the relation at each tick"
        elif stage.by is not None:
            found = "answers that are grouped otherwise than by those who read them"
        elif stage.every is not None and stage.every.by is not None:
            found = "PARTITIONED BY other columns than the key's"
        if found:
            raise BadQuery(f'query "{query.label}": {found} is not answered on Spark.', "sw.evaluate, or sw.Engine")


def columns_read(simple: Iterable[Query], have: Collection[str] = ()) -> list[str]:
    """The columns that simple queries read, each once. have: the names of those that events have."""
    return list(Reading(simple).of_events(have))
