"""Which rows of a batch count where: filters by an index over their constants (swag/tables/dispatch.py), then nulls."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from swag.live.space import Mask
from swag.live.substreams import Substreams
from swag.tables.columns import Field
from swag.tables.dispatch import NOTHING, Dispatch, Matches


class Chosen:
    """The rows of one batch that count, for any mask of a grouping.

    It owns which row satisfies which predicate, and remembers what was asked. Asked of it: the rows of a mask, as
    booleans (None: all of them), and those of all filters of a space at once.
    """

    def __init__(self, rows: int, fields: dict[str, Field], predicates: Sequence[str], matches: Matches) -> None:
        self.rows, self.fields, self.predicates, self.matches = rows, fields, predicates, matches
        self._known: dict[Mask, np.ndarray | None] = {}

    def __getitem__(self, mask: Mask) -> np.ndarray | None:
        if mask not in self._known:
            self._known[mask] = self._of(mask)
        return self._known[mask]

    def _of(self, mask: Mask) -> np.ndarray | None:
        keep = self._valid(mask.required)
        if mask.where is None:
            return keep
        rows, which = self.matches
        counts = np.zeros(self.rows, bool)
        counts[rows[which == self.predicates.index(mask.where)]] = True
        return counts if keep is None else counts & keep

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
    """The index over the predicates of a grouping. It owns that, and makes another where they or types have changed."""

    def __init__(self) -> None:
        self.dispatch: Dispatch | None = None

    def chosen(self, predicates: Sequence[str], table: pa.Table, fields: dict[str, Field]) -> Chosen:
        """Which rows of a batch count where; raises where a predicate can not be computed."""
        if not predicates:
            self.dispatch = None
            return Chosen(table.num_rows, fields, predicates, Matches(NOTHING, NOTHING))
        if self.dispatch is None or not self.dispatch.fits(predicates, table):
            self.dispatch = Dispatch(predicates, table)
        return Chosen(table.num_rows, fields, predicates, self.dispatch.matches(table))

    @property
    def bytes(self) -> int:
        return 0 if self.dispatch is None else self.dispatch.bytes
