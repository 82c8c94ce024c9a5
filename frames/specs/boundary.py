"""Boundary({"x": 4.25, "y": 4.2}): maximal runs of events inside one cell of a grid."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Unpack

import numpy as np
import pyarrow as pa

from frames.specs.as_json import pairs
from frames.specs.lengths import Lengths, lengths_clause, lengths_from_json, lengths_to_json
from frames.specs.spec import NUMBERS, Number, Spec, check_name, is_comparable
from swag.arguments import is_number
from swag.errors import BadQuery
from swag.query.as_call import as_call


@dataclass(frozen=True)
class Boundary(Spec):
    """Maximal runs of events inside one cell: ((n-1)x, nx] for a width x, or between breaks (b_i, b_i+1].

    One column with `breaks` or a width, or a mapping of columns to widths or lists of breaks. Partitions the stream.

    >>> import frames as fr
    >>> events = {"ts": [1, 2, 3, 4], "speed": [10, 15, 30, 50]}
    >>> fr.detect(fr.Boundary("speed", breaks=[20, 40]), events)["rows"].to_pylist()
    [2, 1, 1]
    """

    kind: ClassVar[str] = "boundary"
    union_closed: ClassVar[bool] = True

    cells: Mapping[str, Any]
    columns: tuple[str, ...] = field(repr=False)

    __repr__ = as_call

    def __init__(
        self, column: str | Mapping[str, Any], width: Number | None = None, *, breaks: Sequence[Number] | None = None,
        **lengths: Unpack[Lengths],
    ) -> None:  # fmt: skip
        hint = 'fr.Boundary("speed", breaks=[20, 40, 60]), fr.Boundary("x", 4.25) or fr.Boundary({"x": 4.25, "y": 4.2})'
        if isinstance(column, Mapping):
            if width is not None or breaks is not None or not column:
                raise BadQuery("Boundary over a mapping takes the width or the breaks of each column from it.", hint)
            cells = dict(column)
        else:
            if (width is None) == (breaks is None):
                raise BadQuery("Boundary takes either a width or breaks.", hint)
            check_name(column, "Boundary", hint)
            if isinstance(breaks, NUMBERS) or getattr(breaks, "ndim", 1) != 1:
                raise BadQuery(f"breaks={breaks!r} is not a list of numbers.", hint)
            cells = {column: width if breaks is None else breaks}
        for name, cut in cells.items():
            check_name(name, "Boundary", hint)
            cells[name] = _checked_cut(name, cut)
        object.__setattr__(self, "cells", cells)
        object.__setattr__(self, "columns", tuple(cells))
        super().__init__(**lengths)

    def __hash__(self) -> int:
        return hash((tuple(self.cells.items()), super().__hash__()))

    @property
    def reported(self) -> tuple[str, ...]:
        return tuple(f"cell_{name}" for name in self.columns)

    def reported_types(self) -> dict[str, pa.DataType]:
        return dict.fromkeys(self.reported, pa.int64())

    def to_json(self) -> dict[str, Any]:
        return {"boundary": pairs(self.cells), **lengths_to_json(self)}

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> "Boundary":
        return cls(dict(entry["boundary"]), **lengths_from_json(entry))

    def clause(self) -> str:
        from swag.query.as_sql import name
        from swag.tables.constants import to_sql

        def written(cut: Any) -> str:
            return to_sql(cut) if isinstance(cut, int | float) else f"({', '.join(map(to_sql, cut))})"

        cells = ", ".join(f"{name(column)} {written(cut)}" for column, cut in self.cells.items())
        return f"GRID {cells}{lengths_clause(self)}"


def _checked_cut(name: str, cut: Any) -> Any:
    """A width > 0, or breaks as a tuple of ascending numbers."""
    if is_number(cut):
        if not is_comparable(cut) or not 0 < cut < np.inf:
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
        if not is_comparable(b):
            raise BadQuery(f'the breaks of "{name}" are numbers; one is {b!r}.', hint)
    if any(not a < b for a, b in itertools.pairwise(breaks)):
        raise BadQuery(f'the breaks of "{name}" do not ascend: {list(breaks)}.', hint)
    return breaks
