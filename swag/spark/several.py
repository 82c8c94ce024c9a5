"""Streams with a key of several columns: one column of text on the way through the shards, and its columns again after.

Engines know keys of one column. The text is JSON of an array of texts, so that no two keys share one, and each column
reads back as what it was.
"""

from typing import TYPE_CHECKING

from swag.errors import BadQuery, BadType, nearest
from swag.spark.schema import col

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

READS_BACK = {"tinyint", "smallint", "int", "bigint", "string", "boolean", "date"}  # cast to text, and back


def name_of(keys: list[str]) -> str:
    return ", ".join(keys)


def joined(frame: "DataFrame", keys: list[str], what: str) -> "DataFrame":
    """With one more column, null where one of the keys is."""
    from pyspark.sql import functions as F

    for name in keys:
        if name not in frame.columns:
            raise BadQuery(
                f'key is "{name}", but the {what} have: {", ".join(frame.columns)}.', nearest(name, frame.columns)
            )
        kind = frame.schema[name].dataType.simpleString()
        if kind not in READS_BACK:
            raise BadType(
                f'"{name}" is {kind}; of several key columns, streams take {", ".join(sorted(READS_BACK))}.',
                f'F.col("{name}").cast("string")',
            )
    there = F.lit(True)
    for name in keys:
        there = there & col(name).isNotNull()
    text = F.to_json(F.array(*(col(name).cast("string") for name in keys)))
    return frame.withColumn(name_of(keys), F.when(there, text))


def apart(answers: "DataFrame", keys: list[str], like: "DataFrame") -> "DataFrame":
    """The columns of the key in place of the one that stood for them."""
    from pyspark.sql import functions as F

    texts = F.from_json(col(name_of(keys)), "array<string>")
    own = [texts[i].cast(like.schema[name].dataType).alias(name) for i, name in enumerate(keys)]
    columns: list[Column] = []
    for name in answers.columns:
        columns += own if name == name_of(keys) else [col(name)]
    return answers.select(*columns)
