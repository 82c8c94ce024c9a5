"""What queries read of every event: worked out once for a set of queries, however many batches come."""

from collections.abc import Collection, Iterable
from functools import cached_property
from typing import NamedTuple

import pyarrow as pa

from swag.query.aggregates import Aggregate
from swag.query.families import check_columns, compared_columns, computed_columns, is_summed
from swag.query.kind import KINDS
from swag.query.query import Query
from swag.tables.expressions.derived import of_events, with_derived
from swag.tables.predicate import columns_of


class ColumnUse(NamedTuple):
    """A column that aggregates read. counted: nothing but which of its values are null. computed: values are computed
    with, else they are handed back as they came. Of decimals, which are kept in several ways, those that it takes:
    summed, as numbers; told, as values that are told apart or handed back; compared, as such that have an order."""

    name: str
    asked_by: str
    counted: bool
    computed: bool
    summed: bool
    told: bool
    compared: bool


class Reading:
    """Simple queries, as readers of events that have a ts, and maybe keys, in columns of these names.

    It owns what follows from the queries alone. Asked of it: the `columns` of a batch, each with who asks for it; the
    `uses` of those that aggregates read; the table with those of them that are SQL over columns (`extended`); a `check`
    of their types, which need not be repeated while they are `right`.
    """

    def __init__(self, queries: Iterable[Query], ts: str | None = None, *keys: str | None) -> None:
        self.queries, self.ts, self.keys = list(queries), ts, keys
        self.right: dict[str, pa.DataType] | None = None  # types that were found to be right
        self.there: Collection[str] | None = None  # the columns of the last batch, whoever reads them
        self.timed = any(KINDS[query.aggregate.kind].timed for query in self.queries)  # is time read as a column?

    @cached_property
    def columns(self) -> dict[str, str]:
        """The columns that must be there, each with who asks for it."""
        own = {} if self.ts is None else {self.ts: "ts is"}
        for key in self.keys:
            if key is not None:
                own.setdefault(key, "key is")
        return own | {name: asked_by for name, asked_by in self.read.items() if name not in own}

    @cached_property
    def read(self) -> dict[str, str]:
        """Those that queries read."""
        columns: dict[str, str] = {}
        for query in self.queries:
            for name in query.aggregate.columns:
                columns.setdefault(name, f'query "{query.title}" reads')
            for name in sorted(columns_of(query.where)) if query.where else ():
                columns.setdefault(name, f'the where of query "{query.title}" reads')
        return columns

    @cached_property
    def derived(self) -> dict[str, tuple[str, ...]]:
        """Those of them that may be SQL over columns, each with how it was written."""
        return aggregated_texts(query.aggregate for query in self.queries)

    def of_events(self, have: Collection[str] = ()) -> dict[str, str]:
        """The columns that events must have, each with who asks for it. have: the names of those that are there."""
        return of_events(self.columns, self.derived, have)

    def extended(self, table: pa.Table) -> pa.Table:
        """A table with the columns that are computed, too."""
        return with_derived(table, {name: self.read[name] for name in self.derived}, self.derived)

    @cached_property
    def computed(self) -> set[str]:
        """The columns whose values are not only counted, or handed back."""
        return {name for query in self.queries for name in computed_columns(query.aggregate)}

    @cached_property
    def uses(self) -> list[ColumnUse]:
        """The columns that aggregates read, and what for."""
        uses: dict[str, ColumnUse] = {}
        of = [query.aggregate for query in self.queries if query.aggregate.kind != "count"]
        summed = {name for each in of if is_summed(each) for name in each.columns}
        told = {name for each in of if not is_summed(each) for name in each.columns}
        compared = {name for each in of for name in compared_columns(each)}
        for query in self.queries:
            counted = query.aggregate.kind == "count"
            for name in query.aggregate.columns:
                if name not in uses or uses[name].counted > counted:
                    use = ColumnUse(name, f'query "{query.title}" reads', counted, name in self.computed,
                                    name in summed, name in told, name in compared)  # fmt: skip
                    uses[name] = use
        return list(uses.values())

    @cached_property
    def lifted(self) -> list[Query]:
        """Those with functions of a user's."""
        return [query for query in self.queries if query.aggregate.user is not None]

    def check(self, kinds: dict[str, pa.DataType]) -> None:
        """Raise if a query can not be computed of columns of these types."""
        for query in self.queries:
            check_columns(query.aggregate, kinds)
        self.right = kinds


def aggregated_texts(aggregates: Iterable[Aggregate]) -> dict[str, tuple[str, ...]]:
    """The columns of aggregates that may be SQL over columns, and how they were written."""
    found: dict[str, tuple[str, ...]] = {}
    for aggregate in aggregates:
        for name, text in zip(aggregate.columns, aggregate.texts, strict=True):
            if not name.isidentifier() and text not in found.get(name, ()):
                found[name] = (*found.get(name, ()), text)
    return found


def with_aggregated(table: pa.Table, aggregates: Iterable[Aggregate]) -> pa.Table:
    """A table, with the columns that aggregates compute by SQL."""
    asked_by = {name: f"{aggregate} reads" for aggregate in aggregates for name in aggregate.columns}
    texts = aggregated_texts(aggregates)
    return with_derived(table, {name: asked_by[name] for name in texts}, texts) if texts else table
