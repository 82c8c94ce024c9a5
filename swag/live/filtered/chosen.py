"""Which rows of a batch count where: filters by an index over their constants (swag/tables/dispatch.py), then nulls."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from swag.live.filtered.substreams import Substreams
from swag.live.space import Mask
from swag.tables.columns import Field
from swag.tables.dispatch import NOTHING, Dispatch, Matches
from swag.tables.predicate import holds

FEW_TO_TRY = 2  # predicates; of more, all are found by their constants in the time it takes to try these
TYPES = 4  # of columns, for which indexes are kept


class Satisfied(NamedTuple):
    """Which rows of a batch satisfy which predicates: as pairs, or of each predicate all its rows."""

    predicates: Sequence[str]
    found: Matches | list[np.ndarray]


NO_PREDICATES = Satisfied((), [])


class ChosenRows:
    """The rows of one batch that count, for any mask of a grouping.

    It owns which row satisfies which predicate, and remembers what was asked. Asked of it: the rows of a mask, as
    booleans (None: all of them), and those of all filters of a space at once.
    """

    def __init__(self, rows: int, fields: dict[str, Field], told: Satisfied) -> None:
        self.rows, self.fields, self.told = rows, fields, told
        self.predicates, self._found = told
        self._known: dict[Mask, np.ndarray | None] = {}

    @cached_property
    def matches(self) -> Matches:
        """Every row with every predicate that it satisfies."""
        if isinstance(self._found, Matches):
            return self._found
        rows = [np.flatnonzero(each) for each in self._found]
        which = np.repeat(np.arange(len(rows)), [each.size for each in rows])
        return Matches(np.concatenate([NOTHING, *rows]), which)

    def some(self, places: np.ndarray) -> Satisfied:
        """Of the rows at these places, in that order."""
        if not isinstance(self._found, Matches):
            return Satisfied(self.predicates, [each[places] for each in self._found])
        place = np.full(self.rows, -1)
        place[places] = np.arange(places.size)
        rows = place[self._found.rows]
        order = np.argsort(rows, kind="stable")[np.count_nonzero(rows < 0) :]
        return Satisfied(self.predicates, Matches(rows[order], self._found.which[order]))

    def __getitem__(self, mask: Mask) -> np.ndarray | None:
        if mask not in self._known:
            self._known[mask] = self._of(mask)
        return self._known[mask]

    def _of(self, mask: Mask) -> np.ndarray | None:
        keep = self._valid(mask.required)
        if mask.where is None:
            return keep
        counts = self._satisfying(self.predicates.index(mask.where))
        return counts if keep is None else counts & keep

    def _satisfying(self, which: int) -> np.ndarray:
        if not isinstance(self._found, Matches):
            return self._found[which]
        counts = np.zeros(self.rows, bool)
        counts[self._found.rows[self._found.which == which]] = True
        return counts

    def _valid(self, required: frozenset[str]) -> np.ndarray | None:
        keep: np.ndarray | None = None
        for name in required:
            valid = self.fields[name].valid
            if valid is not None:
                keep = valid if keep is None else keep & valid
        return keep

    def of_filters(self, space: Substreams) -> Matches:
        """The rows that count in a space, each with the number of its filter there."""
        rows, which = self.matches
        filters = space.numbers(self.predicates)[which] if which.size else which
        valid = self[Mask(required=space.mask.required)]
        if valid is None and (filters >= 0).all():
            return Matches(rows, filters)
        keep = (filters >= 0) if valid is None else (filters >= 0) & valid[rows]
        return Matches(rows[keep], filters[keep])


class Chooser:
    """The predicates of a grouping, as they are found out: a few are tried one by one, as that is quicker; else by an
    index over their constants. It owns that, and makes another where predicates or types have changed."""

    def __init__(self) -> None:
        self.dispatch: Dispatch | None = None
        self._made: list[Dispatch] = []  # for a column that now and then has nulls alone, and no type

    def told(
        self, predicates: Sequence[str], table: pa.Table, shared: Callable[[str], np.ndarray] | None = None
    ) -> Satisfied:
        """Which rows of a batch satisfy which; raises where a predicate can not be computed. shared: where one holds,
        for whoever reads this batch."""
        if len(predicates) <= FEW_TO_TRY:
            self.dispatch, self._made = None, []
            return Satisfied(
                predicates, [holds(each, table) if shared is None else shared(each) for each in predicates]
            )
        return Satisfied(predicates, self._found(predicates, table))

    def _found(self, predicates: Sequence[str], table: pa.Table) -> Matches:
        if self.dispatch is None or not self.dispatch.fits(predicates, table):
            fitting = [each for each in self._made if each.fits(predicates, table)]
            self.dispatch = fitting[0] if fitting else Dispatch(predicates, table)
            same = [each for each in self._made if each.predicates == predicates and each is not self.dispatch]
            self._made = [self.dispatch, *same][:TYPES]
        return self.dispatch.matches(table)

    def counts(self, predicates: Sequence[str]) -> tuple[int, int, int]:
        """How many are found by their constants alone, with a rest that is tried, and only tried."""
        return (0, 0, len(predicates)) if self.dispatch is None else self.dispatch.counts

    @property
    def bytes(self) -> int:
        return sum(each.bytes for each in self._made)
