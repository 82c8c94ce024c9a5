"""Streams with a key of several columns: one column of text on the way through the shards, and its columns again after.

Engines know keys of one column. The text is JSON of an array of texts, so that no two keys share one, and each column
reads back as what it was.
"""

from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from swag.errors import BadQuery, BadType, nearest
from swag.spark.places import all_columns, col, free, named, numbered, placed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

READS_BACK = {"tinyint", "smallint", "int", "bigint", "string", "boolean", "date"}  # cast to text, and back


def name_of(keys: list[str], taken: list[str]) -> str:
    """What the column of text is called: by all of its columns, and as none that is there."""
    return free(", ".join(keys), taken)


def joined(frame: "DataFrame", keys: list[str], what: str, name: str) -> "DataFrame":
    """With one more column of this name, null where one of the keys is."""
    from pyspark.sql import functions as F

    for each in keys:
        if each not in frame.columns:
            have = ", ".join(frame.columns)
            raise BadQuery(f'key is "{each}", but the {what} have: {have}.', nearest(each, frame.columns))
        kind = frame.schema[each].dataType.simpleString()
        if kind not in READS_BACK:
            raise BadType(
                f'"{each}" is {kind}; of several key columns, streams take {", ".join(sorted(READS_BACK))}.',
                f'F.col("{each}").cast("string")',
            )
    own = [col(frame, each) for each in keys]
    there = reduce(and_, (column.isNotNull() for column in own))
    text = F.when(there, F.to_json(F.array(*(column.cast("string") for column in own))))
    return named(placed(frame).select("*", text.alias("known_by")), [*frame.columns, name])


def apart(answers: "DataFrame", keys: list[str], like: "DataFrame", name: str) -> "DataFrame":
    """The columns of the key in place of the one that stood for them."""
    from pyspark.sql import functions as F

    texts = F.from_json(col(answers, name), "array<string>")
    own = [texts[i].cast(like.schema[each].dataType) for i, each in enumerate(keys)]
    at = answers.columns.index(name)
    columns, names = all_columns(answers), answers.columns
    columns[at : at + 1], names[at : at + 1] = own, keys
    return named(placed(answers).select(*numbered("a", columns)), names)


def without(frame: "DataFrame", name: str) -> "DataFrame":
    """All columns but this one."""
    at = frame.columns.index(name)
    names = [*frame.columns[:at], *frame.columns[at + 1 :]]
    return named(placed(frame).drop(f"c{at}"), names)
