"""Answers of queries that are grouped in several ways, in one table: it has the key columns of all.

Where a query does not group by a column, it is null.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from swag.query.groupings import By
from swag.spark.places import all_columns, named, numbered, placed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def all_keys(groupings: Sequence[By] | Mapping[By, object]) -> list[str]:
    """The key columns of all groupings, each once."""
    return list(dict.fromkeys(name for by in groupings for name in by))


def together(answers: "Mapping[By, DataFrame]", front: list[str], value: str, like: "DataFrame") -> "DataFrame":
    """Tables by their key columns: first some columns that are called so (front), then the key, then a value. like: has
    the key columns in the types that they are of."""
    from pyspark.sql import functions as F

    keys, parts = all_keys(answers), []
    for by, found in answers.items():
        first, (*own, last) = all_columns(found)[: len(front)], all_columns(found)[len(front) :]
        here = dict(zip(by, own, strict=True))
        columns = [here.get(name, F.lit(None)).cast(like.schema[name].dataType) for name in keys]
        parts.append(placed(found).select(*numbered("a", [*first, *columns, last])))
    return named(reduce(type(parts[0]).unionAll, parts), [*front, *keys, value])
