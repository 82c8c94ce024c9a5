"""Batches that were checked, as they are applied: times, key ids, columns, and which rows count where."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa

from swag.live.arena import Batch
from swag.live.filtered.chosen import NO_PREDICATES, ChosenRows, Satisfied
from swag.tables.columns import Field


@dataclass(eq=False)
class CheckedRows:
    """A checked batch: timestamps, key ids, the columns queries read, and which rows satisfy which predicates."""

    ts: np.ndarray
    ids: np.ndarray
    fields: dict[str, Field]
    told: Satisfied = NO_PREDICATES

    @cached_property
    def chosen(self) -> ChosenRows:
        """Which rows count where; nobody asks where all do."""
        return ChosenRows(self.ts.size, self.fields, self.told)

    def some(self, rows: np.ndarray) -> "CheckedRows":
        """Those at these places."""
        fields = {name: each.some(rows) for name, each in self.fields.items()}
        return CheckedRows(self.ts[rows], self.ids[rows], fields, self.chosen.some(rows))


@dataclass(eq=False)
class Incoming(CheckedRows):
    """A batch on its way in, what was read of it, and the latest of its times."""

    table: pa.Table | None = field(kw_only=True)  # None: nobody else takes it
    latest: int = field(kw_only=True)
    known: int = field(kw_only=True)  # keys that there were before it
    by_key: Batch | None = None  # once it was found to be in order
