"""What every kind of frame says of itself: the class that specs are made from, and the checks of their arguments.

A kind is a spec (here), a scan that finds its frames (frames/scans) and a definition (frames/theory). Whatever
else there is to know of it is asked of its spec: nothing outside tells kinds apart.
"""

import sys
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, Unpack

import numpy as np
import pyarrow as pa

from frames.specs.lengths import Extent, Lengths, check_lengths
from swag.arguments import is_number, is_option, is_whole
from swag.errors import BadQuery
from swag.query.aggregates import Aggregate as Aggregated
from swag.tables.times.durations import Duration

Op = Literal["<", "<=", ">", ">=", "=="]
Number = int | float
NUMBERS = int | float | np.integer | np.floating
BEFORE, WITH = ("<", "<="), (">", ">=")  # close before the event that breaks it, or with the event that makes it true


@dataclass(frozen=True, kw_only=True)
class Spec:
    """A kind of frame as a frozen value, a dataclass of its own. What is here holds for a kind that says nothing else.

    kind: what it is called in JSON, and how it is known there. union_closed: whether the union of candidates that
    overlap is one, whatever their lengths (frames/theory); then frames are maximal runs, or pieces of them.
    scans_ends: does its scan find where frames end with extent="open"? Else see frames/finding/open_ends.py.

    Every kind takes what is below: min_rows, min_duration drop shorter frames, max_rows, max_duration split longer ones
    (the event that would exceed opens the next; minimums apply after splitting), extent="open" has `end` be the ts of
    the next event of the key (frames/specs/lengths.py).
    """

    kind: ClassVar[str]
    union_closed: ClassVar[bool] = False
    scans_ends: ClassVar[bool] = True

    min_rows: int = 1
    max_rows: int | None = None
    min_duration: Duration = 0
    max_duration: Duration | None = None
    extent: Extent = "closed"

    def __post_init__(self) -> None:
        check_lengths(self)

    if TYPE_CHECKING:

        @property
        def columns(self) -> tuple[str, ...]:
            """The columns of events that it reads."""

    @property
    def texts(self) -> dict[str, tuple[str, ...]]:
        """Those of them that may be SQL over columns, and how they were written."""
        return {name: (name,) for name in self.columns if not name.isidentifier()}

    @property
    def cuts(self) -> bool:
        """Can a stream that was cut in time be searched piece by piece (frames/spark/batch/joining.py)?

        Where a run is split depends on where it began, which only the pieces before may know.
        """
        return self.union_closed and self.max_rows is None and self.max_duration is None and self.extent == "closed"

    @property
    def in_runs(self) -> bool:
        """Is all that is undecided of a key its last run, of which a frame becomes, and the gap in front of it?

        Then what is said of frames can grow with them (frames/continuous/summaries.py).
        """
        return True

    @property
    def closes_before(self) -> bool:
        """Does a frame end before the event that would break it, rather than with the one that it needs?"""
        return False

    @property
    def reported(self) -> tuple[str, ...]:
        """The names of what is said of a frame beside its interval and rows."""
        return ()

    def reported_types(self) -> dict[str, pa.DataType]:
        """Their types, before there is any event: null where only events can tell."""
        return dict.fromkeys(self.reported, pa.null())

    def to_json(self) -> dict[str, Any]:
        """An entry that `from_json` reads; one of its names is that of the kind."""
        raise NotImplementedError

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> "Spec | None":
        """None: it was cut by functions that this process does not have."""
        raise NotImplementedError

    def clause(self) -> str:
        """What stands behind the word FRAME in SQL (swag/sql/framing.py reads it)."""
        raise BadQuery(f"{type(self).__name__} has no FRAME clause in SQL.", "fr.detect, fr.Detector")

    def segments(self) -> "Spec":
        """Of a kind that cuts: a spec whose frames hold every event once, runs of any length."""
        return self.with_lengths(min_rows=1, min_duration=0)

    def with_lengths(self, **lengths: Unpack[Lengths]) -> Self:
        """The same, with other lengths."""
        changed = copy(self)
        for name, value in lengths.items():
            object.__setattr__(changed, name, value)
        check_lengths(changed)
        return changed

    def levels(self, column: str, low: float, high: float) -> tuple[str, list[float]]:
        """Where the values of a column, from low to high, come in or go out: what a picture calls that, and draws."""
        return "", []

    def with_aggregates(self, change: Callable[[Aggregated], Aggregated]) -> "Spec":
        """The same, with the aggregates that it cuts by changed."""
        return self


def check_name(name: Any, kind: str, hint: str) -> None:
    if not isinstance(name, str) or not name:
        raise BadQuery(f"{kind} is given {name!r}, not the name of a column.", hint)


def check_predicate(text: Any, kind: str, hint: str) -> None:
    if not isinstance(text, str) or not text.strip():
        raise BadQuery(f"{kind} is given {text!r}, not a predicate in SQL.", hint)


def check_op(op: Any, allowed: tuple[str, ...], kind: str) -> None:
    if not is_option(op, allowed):
        raise BadQuery(f"{kind} compares by {', '.join(allowed)}, not by {op!r}.", f'op="{allowed[0]}"')


def is_comparable(value: Any) -> bool:
    """A number that is not NaN, nor an integer larger than any float."""
    if not is_number(value):
        return False
    return abs(int(value)) <= sys.float_info.max if is_whole(value) else value == value


def check_number(value: Any, name: str, kind: str) -> None:
    if not is_comparable(value):
        raise BadQuery(f"{kind} compares with a number: {name} is {value!r}.", f"{name}=0.3")


def written(column: str) -> str:
    """A column in front of its number in a FRAME clause: SQL over columns in parentheses."""
    from swag.query.as_sql import column as as_text
    from swag.query.as_sql import name

    text = as_text(column)
    return text if text == name(column) else f"({text})"


def near_levels(values: list[Number], low: float, high: float) -> list[float]:
    """Those that a picture of values from low to high has room for: others would squeeze the signal to a line."""

    def is_near(value: Number) -> bool:
        reach = (high - low) or abs(value - low)
        return bool(low - reach <= value <= high + reach)

    return [float(value) for value in dict.fromkeys(values) if is_near(value)]


def compared_levels(predicates: list[str], column: str, low: float, high: float) -> tuple[str, list[float]]:
    """The numbers that predicates compare a column with, where each comparison has to hold: see `Spec.levels`."""
    from swag.tables.predicate import compile_predicate

    found = [each for text in predicates for each in compile_predicate(text).conjuncts.comparisons]
    found = [each for each in found if each.column == column and all(map(is_number, each.constants))]
    values = [value for each in found for value in each.constants]
    return ", ".join(dict.fromkeys(each.text for each in found)), near_levels(values, low, high)
