"""Which events are a frame's own, on Spark: frames say how they were found, and are found again where they are filled.

The note (frames/owning/origin.py) is in the metadata of the column frame_id. It stays where frames are filtered, joined
or written to Parquet. In memory a fingerprint of the events tells whether they are those that were searched. Here that
would be a job of its own before anything is asked, and of a DataFrame that is read again the rows may come in another
plan; so a frame that is found again, by its number and key, from start to end with as many rows, owns its events.
"""

import json

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from frames import detection
from frames.owning.origin import Origin
from frames.owning.owning import BY_TIME
from frames.specs import Spec
from frames.specs.lengths import Extent, check_extent
from frames.tables import NOTE, is_half_open
from swag.errors import BadEvents, BadQuery, SwagError
from swag.spark import schema
from swag.spark.places import all_columns, col, named, placed

LOST = "frames.spark.detect writes it into the metadata of frame_id"
SAME = "the rows that were searched, in the same order"


def noted(frames: DataFrame, spec: Spec, ts: str, keys: list[str]) -> DataFrame:
    """Frames that were found so, with the note."""
    note = json.dumps(vars(Origin.of_search(spec, ts, tuple(keys))))
    number, *rest = all_columns(frames)
    number = number.alias("c0", metadata={NOTE.decode(): note})
    return named(placed(frames).select(number, *rest), frames.columns)


def empty_frames(frames: DataFrame) -> pa.Table:
    """No frames, with their note where a table in memory has it."""
    table = schema.empty_table(frames)
    table = table.drop_columns(["final"]) if "final" in table.column_names else table
    note = frames.schema["frame_id"].metadata.get(NOTE.decode()) if "frame_id" in frames.columns else None
    return table.replace_schema_metadata({NOTE: note} if isinstance(note, str) else None)


def extent_of(frames: DataFrame, extent: Extent | None) -> Extent:
    """As the user says; else as the frames do."""
    if extent is not None:
        check_extent(extent)
        return extent
    return "open" if is_half_open(empty_frames(frames)) else "closed"


def spec_of(
    frames: DataFrame, events: DataFrame, ts: str, keys: list[str], own: bool | None, moved: bool
) -> Spec | None:
    """By what the frames may be found again in these events. None: they are filled by time.

    moved: margins move their edges, so that they are filled by time whatever these events are.
    """
    if own is not None and not isinstance(own, bool):
        raise BadQuery(f"own={own!r} is none of None, True, False.", BY_TIME)
    if own and moved:
        raise BadQuery("own=True fills frames with their own events, but before or after move their edges.", BY_TIME)
    if own is False or moved:
        return None
    origin, spec, hint = Origin.of(empty_frames(frames)), None, SAME
    if origin is None or "final" in frames.columns:
        why, hint = "do not say how they were found", LOST
    elif (origin.ts, origin.by) != (ts, tuple(keys)):
        why = f"were found by ts={origin.ts!r} and key={origin.key!r}"
    elif _times(frames, "start") != _times(events, ts):
        why = "have other times than these events"
    else:
        spec = origin.found_by()
        why = "were found by functions that are not here" if spec is None else _why_not_in(events, spec, ts)
        own = own or spec is None  # these may be the events that they were found in
    if why and own:
        raise BadEvents(f"which events are a frame's own can not be told: the frames {why}.", f"{hint}; {BY_TIME}")
    return None if why else spec


def _times(frame: DataFrame, name: str) -> DataType:
    return schema.field(frame, name, "frames have").dataType


def _why_not_in(events: DataFrame, spec: Spec, ts: str) -> str:
    """Why frames can not have been found in these events; nothing if they may have been."""
    try:
        detection.detect(spec, schema.empty_table(events), ts=ts)
    except SwagError as why:  # a column is not there, or of another type: it is another stream
        return f"can not have been found in these events ({why})"
    return ""


def with_own(frames: DataFrame, found: DataFrame, keys: list[str], own: bool | None) -> DataFrame:
    """Frames with two columns more: the skip and the rows of those that were found again, else null.

    found: frames with a last column of skips. own=True: all must be found again.
    """
    parts = ["frame_id", *keys, *(name for name in ("start", "end", "rows") if name in frames.columns)]
    theirs = [col(found, name).alias(f"p{i}") for i, name in enumerate(parts)]
    again = placed(found).select(*theirs, all_columns(found)[-1].alias("skip"), col(found, "rows").alias("found_rows"))
    same = F.lit(True)
    for i, name in enumerate(parts):
        same = same & col(frames, name).eqNullSafe(F.col(f"p{i}"))
    skip, rows = F.col("skip"), F.col("found_rows")
    joined = placed(frames).join(again, same, "left").select(*all_columns(frames), _known(skip, own), rows)
    return named(joined, [*frames.columns, "skip", "rows"])


def _known(skip: Column, own: bool | None) -> Column:
    if not own:
        return skip
    why = BadEvents(
        "own=True, but a frame is not found again in these events.", f"{SAME}, and frames unchanged; {BY_TIME}"
    )
    return F.coalesce(skip, F.raise_error(F.lit(str(why))).cast("long")).alias("skip")
