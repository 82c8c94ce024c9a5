"""A kind of aggregate: all that the rest of swag asks about one. The kinds there are: swag/query/kinds/."""

import itertools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np

PRODUCT = " * "  # a product of two columns: "price * volume"
AS_FLOAT = " * 1"
SCALED = " as it is"  # a derived column: decimals as floats, where they are whole numbers of their smallest unit
HASHED = (
    " #"  # a derived column: the values as words of 64 bits, equal for equal ones, whatever the dictionary calls them
)
ABOVE = " above"  # behind the family of a part: of the rows whose last column is above a bound
MORE, LESS = " #>", " #<"  # derived columns: what rows are sorted by, to find those where a column is more, or less
TIME = ""  # in place of a column's name: the time of the event. No column that anybody can ask for is called so
Reads = Literal["anything", "what has an order", "numbers and times", "numbers", "booleans"]
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
        if self.family.endswith(ABOVE):
            of, key = Part(self.family.removesuffix(ABOVE), self.columns[:-1]), self.columns[-1]
            return f"{of} where {key[: -len(MORE)]} {key[-1]} c"
        names = [sql_of(name.removesuffix(AS_FLOAT).removesuffix(SCALED)) for name in self.columns]
        return f"{self.family}({', '.join(names)})"


@dataclass(frozen=True)
class Function:
    """An aggregate by SQL's name: so many columns, then at least and at most so many constants (`constant`: what the
    one that it must have is)."""

    build: Callable[..., Any]
    example: str
    columns: int = 1
    least: int = 0
    most: int = 0
    star: bool = False
    constant: str = "a fraction"

    @property
    def takes(self) -> str:
        columns = {0: "nothing", 1: "a column"}.get(self.columns, f"{self.columns} columns") + " or *" * self.star
        if not self.least:
            return columns + ", perhaps with its ddof," * bool(self.most)
        return f"{columns} and {self.constant}" if self.columns else self.constant


def of_one(build: Callable[..., Any], *names: str, most: int = 0) -> dict[str, Function]:
    """Names in statements for a function of one column, perhaps with its ddof."""
    return {name: Function(build, f"{name}(x)" + f", or {name}(x, 0)" * most, most=most) for name in names}


def of_two(build: Callable[..., Any], *names: str, most: int = 0) -> dict[str, Function]:
    """Names in statements for a function of two columns, perhaps with its ddof."""
    return {name: Function(build, f"{name}(x, y)" + f", or {name}(x, y, 0)" * most, 2, most=most) for name in names}


class Now(NamedTuple):
    """When windows are asked for: a time for all, or one for each; and the unit of ts (None: ts is an integer). phases:
    turns and weights of these times, where they are known (swag/tables/decay.py)."""

    instants: Any
    unit: str | None
    phases: tuple[np.ndarray, np.ndarray] | None = None


# From the aggregate, the rows of each window and the partials of each part to answers, and which of them are not null
# (None: all). Empty windows hold anything in their partials. Kinds that are `timed` find a Now behind their partials.
Lower = Callable[[Any, np.ndarray, list[Any]], tuple[np.ndarray, np.ndarray | None]]
LowerInto = Callable[[Any, np.ndarray, list[Any], np.ndarray], np.ndarray | None]  # floats, into the room that is given


@dataclass(frozen=True)
class Kind:
    """What there is to know about one kind of aggregate.

    family: of the partials that it is computed from ("": positions alone say it); `parts` where they are several, and
    then `evaluate` needs an aggregator for it (`BY_KIND` in swag/stored/evaluation.py). lower: how they become answers.
    columns: how many it is of, at least and at most. reads: what it can be computed of, or that for each column; of
    "anything" values are not computed with, but counted or handed back. answers: of which type; sums of whole numbers
    are such. options: those of an Aggregate that it must have. statements: its names in SQL.

    at_ends: there are no partials: the rows at one end of the window are the answer. raw: what of them is kept, if not
    its columns. timed: answers depend on the time for which they are asked. counts: of no rows the answer is 0.
    tells_apart: values need not have an order, but two of them must be known to be equal or not. degrees: if all values
    of a column grow tenfold, answers that are floats grow by this power of ten, for each column; as decimals are whole
    numbers of their smallest units. scaled: this is not known, and decimals are read as floats. Of kinds that are
    neither there are no decimals, unless they compare or count them. lowers: where a kernel does the same as `lower`,
    which way of kernels/windows/wide.py that is. into: the same as `lower`, into room for the answers, half a
    nanosecond less for each; and `of`, the places in its partials that it reads.
    """

    name: str
    lower: Lower
    family: str = ""
    parts: Callable[[Any], tuple[Part, ...]] | None = None
    columns: tuple[int, int] = (1, 1)
    reads: Reads | tuple[Reads, ...] = "numbers"
    answers: Literal["floats", "counts", "sums", "booleans", "as the column", "lists", "durations"] = "floats"
    options: tuple[str, ...] = ()
    statements: Mapping[str, Function] = field(default_factory=dict)
    at_ends: bool = False
    raw: tuple[str, ...] = ()
    timed: bool = False
    counts: bool = False
    tells_apart: bool = False
    degrees: tuple[int, ...] | None = None
    scaled: bool = False
    lowers: int | None = None
    into: LowerInto | None = None
    of: tuple[int, ...] | None = None


def into_new(into: LowerInto) -> Lower:
    """`lower` of a kind that has `into`."""

    def lower(aggregate: Any, n: np.ndarray, partials: list[Any]) -> tuple[np.ndarray, np.ndarray | None]:
        out = np.empty(n.shape)
        return out, into(aggregate, n, partials, out)

    return lower


KINDS: dict[str, Kind] = {}


def register(kind: Kind) -> Kind:
    """From now on there are aggregates of this kind."""
    KINDS[kind.name] = kind
    return kind
