"""A user's columns by their places: c0, c1 …

Spark looks names up: a dot is a path to it, a backtick a quote, and K is k. So no name of a user's is ever given to it
to be looked up; names come back where the answers leave (`named`).
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F


def placed(frame: DataFrame) -> DataFrame:
    """The same rows, each column named by its place."""
    return frame.toDF(*(f"c{i}" for i in range(len(frame.columns))))


def col(frame: DataFrame, name: str) -> Column:
    """A column of placed(frame), by the name that it has in frame."""
    return F.col(f"c{frame.columns.index(name)}")


def all_columns(frame: DataFrame) -> list[Column]:
    """The columns of placed(frame)."""
    return [F.col(f"c{i}") for i in range(len(frame.columns))]


def numbered(letter: str, columns: Sequence[Column]) -> list[Column]:
    """Columns as e0, e1 …"""
    return [column.alias(f"{letter}{i}") for i, column in enumerate(columns)]


def named(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """The same rows under names of a user's."""
    return frame.toDF(*names)


def free(name: str, taken: Sequence[str]) -> str:
    """A name like this one that none of the others has."""
    while name in taken:
        name += " "
    return name
