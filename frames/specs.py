"""What a frame is: four kinds of data-driven windows as frozen values. Nothing is read until they meet events.

Threshold("drop_pct", ">", 0.3, min_duration="2m")   maximal runs for which a predicate holds
Boundary({"x": 4.25, "y": 4.2})                      maximal runs inside one cell of a grid
Delta("fl", 0.05)                                    runs over which a value moves less than x
Aggregate(sw.sum("volume"), ">=", 25)                runs cut by an aggregate of their events
"""

import itertools
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from swag.arguments import LARGEST, is_number, is_option, is_whole
from swag.errors import BadQuery
from swag.query.aggregates import Aggregate as Aggregated
from swag.query.as_call import as_call
from swag.query.windows import Duration, length

Op = Literal["<", "<=", ">", ">=", "=="]
Number = int | float
NUMBERS = int | float | np.integer | np.floating
BEFORE, WITH = ("<", "<="), (">", ">=")  # close before the event that breaks it, or with the event that makes it true


@dataclass(frozen=True)
class Threshold:
    """Maximal runs of events whose `column` satisfies `op c`, of at least min_rows events and min_duration.

    partition=True also reports what lies between them, as frames of kind "gap". Null and NaN satisfy nothing.

    >>> import frames as fr
    >>> events = {"ts": [1, 2, 3, 4, 5], "load": [0.1, 0.5, 0.6, 0.2, 0.9]}
    >>> fr.detect(fr.Threshold("load", ">", 0.3, min_rows=2), events).to_pylist()
    [{'frame_id': 0, 'start': 2, 'end': 3, 'rows': 2}]
    """

    column: str
    op: Op
    c: Number
    min_rows: int = 1
    min_duration: Duration = 0
    partition: bool = False

    def __post_init__(self) -> None:
        _check_name(self.column, "Threshold", 'fr.Threshold("drop_pct", ">", 0.3)')
        _check_op(self.op, (*BEFORE, *WITH, "=="), "Threshold")
        _check_number(self.c, "c", "Threshold")
        if not is_whole(self.min_rows) or not 1 <= self.min_rows <= LARGEST:
            raise BadQuery(f"min_rows={self.min_rows!r} is not a whole number >= 1.", "min_rows=20")
        _check_duration(self.min_duration, "min_duration")
        if not isinstance(self.partition, bool):
            raise BadQuery(f"partition={self.partition!r} is neither True nor False.", "partition=True")

    __repr__ = as_call

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)


@dataclass(frozen=True)
class Boundary:
    """Maximal runs of events inside one cell: ((n-1)x, nx] for a width x, or between breaks (b_i, b_i+1].

    One column with `breaks` or a width, or a mapping of columns to widths or lists of breaks. Partitions the stream.

    >>> import frames as fr
    >>> events = {"ts": [1, 2, 3, 4], "speed": [10, 15, 30, 50]}
    >>> fr.detect(fr.Boundary("speed", breaks=[20, 40]), events)["rows"].to_pylist()
    [2, 1, 1]
    """

    cells: Mapping[str, Any]
    columns: tuple[str, ...] = field(repr=False)

    def __init__(
        self, column: str | Mapping[str, Any], width: Number | None = None, *, breaks: Sequence[Number] | None = None
    ) -> None:
        hint = 'fr.Boundary("speed", breaks=[20, 40, 60]), fr.Boundary("x", 4.25) or fr.Boundary({"x": 4.25, "y": 4.2})'
        if isinstance(column, Mapping):
            if width is not None or breaks is not None or not column:
                raise BadQuery("Boundary over a mapping takes the width or the breaks of each column from it.", hint)
            cells = dict(column)
        else:
            if (width is None) == (breaks is None):
                raise BadQuery("Boundary takes either a width or breaks.", hint)
            _check_name(column, "Boundary", hint)
            if isinstance(breaks, NUMBERS) or getattr(breaks, "ndim", 1) != 1:
                raise BadQuery(f"breaks={breaks!r} is not a list of numbers.", hint)
            cells = {column: width if breaks is None else breaks}
        for name, cut in cells.items():
            _check_name(name, "Boundary", hint)
            cells[name] = _checked_cut(name, cut)
        object.__setattr__(self, "cells", cells)
        object.__setattr__(self, "columns", tuple(cells))

    __repr__ = as_call

    def __hash__(self) -> int:
        return hash(tuple(self.cells.items()))


@dataclass(frozen=True)
class Delta:
    """A new frame starts at the event that would make the spread reach x (`<`), or exceed it (`<=`).

    measure="first": the spread is |v - v of the frame's first event|; "range": max - min within the frame. With `>` and
    `>=` a frame closes with the event that makes the spread pass x. Several columns: whichever is reached first.

    >>> import frames as fr
    >>> events = {"ts": [1, 2, 3, 4], "level": [0.0, 0.3, 0.9, 1.0]}
    >>> fr.detect(fr.Delta("level", 0.5), events)["rows"].to_pylist()
    [2, 2]
    """

    limits: Mapping[str, Number]
    measure: Literal["first", "range"] = "first"
    op: Op = "<"
    columns: tuple[str, ...] = field(default=(), compare=False, repr=False)

    def __init__(
        self, column: str | Mapping[str, Number], x: Number | None = None, *, measure: Any = "first", op: Any = "<"
    ) -> None:
        hint = 'fr.Delta("fl", 0.05) or fr.Delta({"rho": 0.1, "dye": 0.2})'
        if isinstance(column, Mapping) != (x is None) or (isinstance(column, Mapping) and not column):
            raise BadQuery("Delta takes a column and x, or a mapping of columns to their x.", hint)
        if not isinstance(column, Mapping):
            _check_name(column, "Delta", hint)
        limits: dict[str, Any] = dict(column) if isinstance(column, Mapping) else {column: x}
        if not is_option(measure, ("first", "range")):
            raise BadQuery(
                f'measure={measure!r} is neither "first" nor "range".', 'fr.Delta("fl", 0.05, measure="range")'
            )
        _check_op(op, (*BEFORE, *WITH), "Delta")
        for name, limit in limits.items():
            _check_name(name, "Delta", hint)
            _check_number(limit, "x", "Delta")
            if limit < 0 or (limit == 0 and op in ("<", ">=")):
                raise BadQuery(
                    f'Delta("{name}", {limit!r}, op="{op}"): no spread is below 0, and each one reaches it.', hint
                )
        object.__setattr__(self, "limits", limits)
        object.__setattr__(self, "measure", measure)
        object.__setattr__(self, "op", op)
        object.__setattr__(self, "columns", tuple(limits))

    __repr__ = as_call

    def __hash__(self) -> int:
        return hash((tuple(self.limits.items()), self.measure, self.op))


@dataclass(frozen=True)
class Aggregate:
    """Cut by an aggregate: `<`, `<=` close before the event that would break it, `>`, `>=` with the one it needs.

    >>> import frames as fr, swag as sw
    >>> events = {"ts": [1, 2, 3, 4], "volume": [10, 20, 5, 30]}
    >>> fr.detect(fr.Aggregate(sw.sum("volume"), ">=", 25), events)["rows"].to_pylist()
    [2, 2]
    """

    aggregate: Aggregated
    op: Op
    c: Number

    def __post_init__(self) -> None:
        if not isinstance(self.aggregate, Aggregated):
            raise BadQuery(
                f"Aggregate takes an aggregate of swag, not {self.aggregate!r}.",
                'fr.Aggregate(sw.sum("volume"), ">=", 25)',
            )
        _check_op(self.op, (*BEFORE, *WITH), "Aggregate")
        _check_number(self.c, "c", "Aggregate")

    __repr__ = as_call

    @property
    def columns(self) -> tuple[str, ...]:
        return self.aggregate.columns


Spec = Threshold | Boundary | Delta | Aggregate


def check_spec(spec: Any) -> None:
    if not isinstance(spec, Threshold | Boundary | Delta | Aggregate):
        raise BadQuery(
            f"{spec!r} says nothing about frames.",
            'fr.Threshold("x", ">", 1), fr.Boundary(…), fr.Delta(…) or fr.Aggregate(…)',
        )


def _check_name(name: Any, kind: str, hint: str) -> None:
    if not isinstance(name, str) or not name:
        raise BadQuery(f"{kind} is given {name!r}, not the name of a column.", hint)


def _check_op(op: Any, allowed: tuple[str, ...], kind: str) -> None:
    if not is_option(op, allowed):
        raise BadQuery(f"{kind} compares by {', '.join(allowed)}, not by {op!r}.", f'op="{allowed[0]}"')


def _is_comparable(value: Any) -> bool:
    """A number that is not NaN, nor an integer larger than any float."""
    if not is_number(value):
        return False
    return abs(int(value)) <= sys.float_info.max if is_whole(value) else value == value


def _check_number(value: Any, name: str, kind: str) -> None:
    if not _is_comparable(value):
        raise BadQuery(f"{kind} compares with a number: {name} is {value!r}.", f"{name}=0.3")


def _check_duration(duration: Any, name: str) -> None:
    if length(duration, name) > LARGEST:
        raise BadQuery(f"{name}={duration!r} does not fit int64.", f'{name}="2m"')


def _checked_cut(name: str, cut: Any) -> Any:
    """A width > 0, or breaks as a tuple of ascending numbers."""
    if is_number(cut):
        if not _is_comparable(cut) or not 0 < cut < np.inf:
            raise BadQuery(
                f'the cells of "{name}" are {cut!r} wide; a width is a number > 0.', f'fr.Boundary("{name}", 4.25)'
            )
        return cut
    hint = f'fr.Boundary("{name}", breaks=[20, 40, 60])'
    listed = isinstance(cut, Sequence | np.ndarray) and not isinstance(cut, str) and getattr(cut, "ndim", 1) == 1
    if not listed or len(cut) == 0:
        raise BadQuery(f'the cells of "{name}" are given by {cut!r}, neither a width nor breaks.', hint)
    breaks = tuple(cut.tolist() if isinstance(cut, np.ndarray) else cut)
    for b in breaks:
        if not _is_comparable(b):
            raise BadQuery(f'the breaks of "{name}" are numbers; one is {b!r}.', hint)
    if any(not a < b for a, b in itertools.pairwise(breaks)):
        raise BadQuery(f'the breaks of "{name}" do not ascend: {list(breaks)}.', hint)
    return breaks
