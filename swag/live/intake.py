"""From a table to checked rows: nothing is applied until everything about a batch was found to be right."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from swag.errors import BadType
from swag.live.dictionary import Dictionary
from swag.live.space import Mask
from swag.live.store import Store
from swag.query.families import check_columns
from swag.query.query import Query
from swag.tables.columns import Clock, Field, as_table, clock_of, column, decoded_type, field, instants, valid_rows
from swag.tables.keys import KeyTable, is_string
from swag.tables.predicate import columns_of, holds

UNTOUCHED = ("count", "first", "last")  # values are counted or handed back, whatever their type


def needed(queries: Iterable[Query], ts: str, key: str | None) -> dict[str, str]:
    """The columns that must be there, each with who asks for it."""
    columns = {ts: "ts is"}
    if key is not None:
        columns.setdefault(key, "key is")
    for query in queries:
        for name in query.aggregate.columns:
            columns.setdefault(name, f'query "{query.title}" reads')
        for name in columns_of(query.where) if query.where else ():
            columns.setdefault(name, f'the where of query "{query.title}" reads')
    return columns


def read(events: Any, queries: Iterable[Query], ts: str, key: str | None) -> pa.Table:
    """The needed columns of a batch, by name."""
    table = as_table(events)
    wanted = needed(queries, ts, key)
    return pa.table({name: column(table, name, asked_by) for name, asked_by in wanted.items()})


def with_missing(table: pa.Table, queries: Iterable[Query], ts: str, key: str | None) -> pa.Table:
    """Events that waited since before a query came: what it reads of them is null."""
    for name in needed(queries, ts, key):
        if name not in table.column_names:
            table = table.append_column(name, pa.nulls(table.num_rows))
    return table


def timestamps(table: pa.Table, ts: str, clock: Clock) -> np.ndarray:
    """The times of a batch, in the unit of ts. clock: what time has been so far."""
    array = table.column(ts)
    came = clock_of(array, ts)
    if clock.type != came.type and len(array):
        raise BadType(f'ts column "{ts}" is {came.type}, but has been {clock.type} so far.', f"cast it to {clock.type}")
    return instants(array, ts)


def key_ids(table: pa.Table, key: str | None, store: Store) -> np.ndarray:
    if key is None:
        return np.zeros(table.num_rows, np.int64)
    array = table.column(key)
    if store.keys is None:
        store.keys = KeyTable(array.type)
    return store.keys.encode(array, key)


def computed_columns(queries: Iterable[Query]) -> set[str]:
    """The columns whose values are not only counted, or handed back."""
    return {name for q in queries if q.aggregate.kind not in UNTOUCHED for name in q.aggregate.columns}


def check_range(table: pa.Table, computed: set[str]) -> None:
    """Refuse values beyond int64 in columns that are computed with."""
    for column_field in table.schema:
        if column_field.name in computed and decoded_type(column_field.type) == pa.uint64():
            field(table, column_field.name, "a query reads")


def fields(table: pa.Table, queries: Iterable[Query], known: Dictionary) -> dict[str, Field]:
    """The columns that aggregates read, as kernels want them. known: what the columns have been so far."""
    found: dict[str, Field] = {}
    computed = computed_columns(queries)
    for query in queries:
        for name in query.aggregate.columns:
            asked_by = f'query "{query.title}" reads'
            if query.aggregate.kind == "count":
                if name not in found:
                    kind = decoded_type(table.schema.field(name).type)
                    found[name] = Field(np.zeros(0), valid_rows(table, name, asked_by), kind)
            elif name not in found or found[name].values.size != table.num_rows:
                if name not in computed and known.needed(table.schema.field(name).type):
                    if name not in known.types:  # what is known of it comes from batches that were refused
                        known.tables.pop(name, None)
                    new = known.field(table, name, asked_by)
                else:
                    new = field(table, name, asked_by, as_they_are=name not in computed)
                found[name] = _same_type(name, new, known)
    for query in queries:
        check_columns(query.aggregate, {name: found[name].type for name in query.aggregate.columns})
    return found


def _same_type(name: str, new: Field, seen: Dictionary) -> Field:
    known = seen.types.get(name)
    all_null = new.valid is not None and not new.valid.any()
    if known is None or known == new.type or (is_string(known) and is_string(new.type)):
        return new
    if all_null:  # a column without values has no type of its own
        carrier = np.float64 if pa.types.is_floating(known) else np.int64
        return Field(np.zeros(new.values.size, carrier), new.valid, known)
    raise BadType(f'column "{name}" is {new.type}, but has been {known} so far.', f"cast it to {known}")


def chosen_rows(masks: Iterable[Mask], table: pa.Table, found: dict[str, Field]) -> dict[Mask, np.ndarray | None]:
    """For every mask, which rows count (None: all of them)."""
    conditions: dict[str, np.ndarray] = {}
    chosen: dict[Mask, np.ndarray | None] = {}
    for mask in masks:
        where, required, _ = mask
        keep: np.ndarray | None = None
        if where is not None:
            if where not in conditions:
                conditions[where] = holds(where, table)
            keep = conditions[where]
        for name in required:
            valid = found[name].valid
            if valid is not None:
                keep = valid if keep is None else keep & valid
        chosen[mask] = keep
    return chosen
