"""A kind of aggregate: all that the rest of swag asks about one. The kinds there are: swag/query/kinds/."""

import itertools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

import numpy as np

PRODUCT = " * "  # a product of two columns: "price * volume"
AS_FLOAT = " * 1"
_PIECES = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|[()]")


@lru_cache(maxsize=1 << 16)
def factors(name: str) -> tuple[str, str] | None:
    """The two columns that a name says the product of; None: it is that of a column, maybe of SQL in parentheses."""
    _, product, second = name[_end_of_sql(name) :].partition(PRODUCT)
    return (name[: len(name) - len(product + second)], second) if product else None


def sql_of(name: str) -> str:
    """A column as it is written: SQL without the parentheses around it."""
    return name[1:-1] if _end_of_sql(name) == len(name) else name


def _end_of_sql(name: str) -> int:
    """Where the parentheses close that a name begins with."""
    depth = 0
    for piece in _PIECES.finditer(name) if name.startswith("(") else ():
        depth += {"(": 1, ")": -1}.get(piece[0], 0)
        if depth == 0:
            return piece.end()
    return 0


@dataclass(frozen=True)
class UserDefined:
    """The functions of a user-defined aggregate, compiled when they are first needed."""

    lift: Callable[..., Any]
    combine: Callable[..., Any]
    lower: Callable[..., Any]
    identity: Any
    invert: Callable[..., Any] | None
    number: int = field(default_factory=itertools.count().__next__)


@dataclass(frozen=True)
class Part:
    """A structure's identity within a set of rows: queries with equal parts share it."""

    family: str
    columns: tuple[str, ...]
    user: UserDefined | None = None

    def __str__(self) -> str:
        return f"{self.family}({', '.join(sql_of(name.removesuffix(AS_FLOAT)) for name in self.columns)})"


@dataclass(frozen=True)
class Function:
    """An aggregate by SQL's name: so many columns, then at least and at most so many constants."""

    build: Callable[..., Any]
    example: str
    columns: int = 1
    least: int = 0
    most: int = 0
    star: bool = False

    @property
    def takes(self) -> str:
        columns = "a column" if self.columns == 1 else f"{self.columns} columns"
        columns += " or *" * self.star
        constants = "" if not self.most else " and a fraction" if self.least else ", perhaps with its ddof,"
        return columns + constants


def of_one(build: Callable[..., Any], *names: str, most: int = 0) -> dict[str, Function]:
    """Names in statements for a function of one column, perhaps with its ddof."""
    return {name: Function(build, f"{name}(x)" + f", or {name}(x, 0)" * most, most=most) for name in names}


def of_two(build: Callable[..., Any], *names: str, most: int = 0) -> dict[str, Function]:
    """Names in statements for a function of two columns, perhaps with its ddof."""
    return {name: Function(build, f"{name}(x, y)" + f", or {name}(x, y, 0)" * most, 2, most=most) for name in names}


# From the aggregate, the rows of each window and the partials of each part to answers, and which of them are not null
# (None: all). Empty windows hold anything in their partials.
Lower = Callable[[Any, np.ndarray, list[Any]], tuple[np.ndarray, np.ndarray | None]]


@dataclass(frozen=True)
class Kind:
    """What there is to know about one kind of aggregate.

    family: of the partials that it is computed from ("": positions alone say it); `parts` where they are several, and
    then `evaluate` needs an aggregator for it (`BY_KIND` in swag/stored/evaluation.py). lower: how they become answers.
    columns: how many it is of, at least and at most. reads: what it can be computed of. answers: of which type; sums of
    whole numbers are such. options: those of an Aggregate that it must have. statements: its names in SQL.
    """

    name: str
    lower: Lower
    family: str = ""
    parts: Callable[[tuple[str, ...]], tuple[Part, ...]] | None = None
    columns: tuple[int, int] = (1, 1)
    reads: Literal["anything", "what has an order", "numbers"] = "numbers"
    answers: Literal["floats", "counts", "sums", "as the column"] = "floats"
    options: tuple[str, ...] = ()
    statements: Mapping[str, Function] = field(default_factory=dict)


KINDS: dict[str, Kind] = {}


def register(kind: Kind) -> Kind:
    """From now on there are aggregates of this kind."""
    KINDS[kind.name] = kind
    return kind
