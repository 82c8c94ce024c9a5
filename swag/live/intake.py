"""From a table to checked rows: nothing is applied until everything about a batch was found to be right."""

from collections.abc import Mapping
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa

from kernels.operators.numbers import EARLIEST
from swag.errors import BadType
from swag.live.store import Store
from swag.live.vocabulary.dictionary import Dictionary
from swag.query.reading import Reading
from swag.tables.columns import (
    AS_THEY_ARE,
    Clock,
    Field,
    as_table,
    clock_of,
    column,
    decoded,
    decoded_type,
    field,
    instants,
    one_chunk,
    valid_rows,
)  # fmt: skip
from swag.tables.decimals import MOST_DIGITS, exact
from swag.tables.decimals import is_wide as is_wide_decimal
from swag.tables.expressions.derived import of_events
from swag.tables.few_words import TYPES, few_words, table_of_words
from swag.tables.key_columns import checked, is_joined
from swag.tables.keys import INT64, KeyTable, is_string
from swag.tables.predicate import holds


class ReadOnce:
    """A batch that several groupings read: what they have in common is read once. It owns that.

    Asked of it: the times of the batch and the `latest` of them, the columns without any value (`empty`), the others as
    kernels want them, and where a predicate holds. words: all columns as arrays, where they came so.
    """

    words: Mapping[str, np.ndarray] | None = None

    def __init__(self, table: pa.Table, ts: str, clock: Clock) -> None:
        self.table = table
        self.ts = timestamps(table, ts, clock)
        self.latest = int(self.ts.max(initial=EARLIEST))
        self.empty = empty_columns(table)
        self.types = column_types(table)
        self._fields: dict[tuple[str, bool], Field] = {}
        self._holds: dict[str, np.ndarray] = {}

    def field(self, name: str, asked_by: str, as_they_are: bool) -> Field:
        if (name, as_they_are) not in self._fields:
            self._fields[name, as_they_are] = field(self.table, name, asked_by, as_they_are)
        return self._fields[name, as_they_are]

    def holds(self, where: str) -> np.ndarray:
        if where not in self._holds:
            self._holds[where] = holds(where, self.table)
        return self._holds[where]


class FewEvents(ReadOnce):
    """The same of a few rows of plain numbers, which came as such: Arrow has nothing to do with them."""

    words: dict[str, np.ndarray]

    def __init__(self, words: dict[str, np.ndarray], ts: str) -> None:
        self.words = words
        self.ts = words[ts]
        self.latest = int(self.ts[0] if self.ts.size == 1 else self.ts.max())
        self.empty = []
        self.types = {name: TYPES[each.dtype] for name, each in words.items()}
        self._holds = {}

    @cached_property
    def table(self) -> pa.Table:  # type: ignore[override]
        """For those who compute with Arrow."""
        return table_of_words(self.words)

    def field(self, name: str, asked_by: str, as_they_are: bool) -> Field:
        return Field(self.words[name], None, self.types[name])


def few_events(events: Any, reading: Reading, ts: str, clock: Clock) -> FewEvents | None:
    """A batch, if it is a few rows of plain numbers, and nothing about it is unusual."""
    words = few_words(events)
    if not words or reading.derived or clock.type != INT64 or not reading.columns.keys() <= words.keys():
        return None
    reading.there = list(words)
    return FewEvents(words, ts) if words[ts].dtype == np.int64 else None


def read(events: Any, reading: Reading, keep: bool) -> pa.Table:
    """The needed columns of a batch, by name. keep: see `as_table`."""
    table = as_table(events, keep)
    reading.there = table.column_names
    if reading.derived:
        table = reading.extended(table)
    try:
        return table.select(list(reading.columns))
    except KeyError:  # one is missing, or there twice: who asks for it is told
        return pa.table({name: column(table, name, asked_by) for name, asked_by in reading.columns.items()})


def check_there(columns: tuple[str, ...] | None, reading: Reading) -> None:
    """Refuse what reads a column that events do not have. None: nobody knows yet."""
    if columns is not None:
        nothing = pa.table([pa.nulls(0)] * len(columns), names=columns)
        for name, asked_by in of_events(reading.read, reading.derived, columns).items():
            column(nothing, name, asked_by)


def with_missing(table: pa.Table, reading: Reading, keys: bool = False) -> pa.Table:
    """Events that waited since before a query came: what it reads of them (keys: or groups them by) is null."""
    for name in reading.columns if keys else reading.read:
        if name not in table.column_names:
            table = table.append_column(name, pa.nulls(table.num_rows))
    return table


def empty_columns(table: pa.Table) -> list[str]:
    """Those without any value."""
    found = []
    for name, values in zip(table.column_names, table.columns, strict=True):
        if values.null_count == table.num_rows:
            found.append(name)
    return found


def column_types(table: pa.Table) -> dict[str, pa.DataType]:
    """By name: to ask a table for one takes longer than to look at what it is."""
    return dict(zip(table.column_names, table.schema.types, strict=True))


def without_foreign_nulls(table: pa.Table, known: Dictionary, empty: list[str]) -> pa.Table:
    """A column without values (`empty`) has no type of its own: where it came as one that the column has not, it is of
    none."""
    for name in empty:
        kind = known.types.get(name)
        if kind is not None and decoded_type(table.schema.field(name).type) != kind:
            table = table.set_column(table.column_names.index(name), name, pa.nulls(table.num_rows))
    return table


def timestamps(table: pa.Table, ts: str, clock: Clock) -> np.ndarray:
    """The times of a batch, in the unit of ts. clock: what time has been so far."""
    array = table.column(ts)
    if array.type != clock.type:
        came = clock_of(array, ts).type
        if len(array):
            raise BadType(f'ts column "{ts}" is {came}, but has been {clock.type} so far.', f"cast it to {clock.type}")
    return instants(array, ts)


def key_ids(
    table: pa.Table | None, key: str | None, columns: tuple[str, ...], store: Store, once: ReadOnce | None = None
) -> np.ndarray:
    """columns: of a key of several, which need not be there as one. once: see `fields`."""
    words = None if once is None else once.words
    if words is not None and store.keys is not None and key is not None and (len(columns) < 2 or key not in words):
        names = columns if len(columns) > 1 else (key,)
        return store.keys.encode_words([words[name] for name in names], names)
    if table is None:
        assert once is not None
        table = once.table
    if key is None:
        return np.zeros(table.num_rows, np.int64)
    if len(columns) > 1 and not is_joined(table, columns):
        own = [table.column(name) for name in columns]
        if store.keys is None:
            checked(table, columns)
            keys = KeyTable(pa.struct([(n, each.type) for n, each in zip(columns, own, strict=True)]))
            ids = keys.encode_columns(own)
            store.keys = keys
            return ids
        return store.keys.encode_columns(own)
    array = table.column(key)
    if store.keys is not None:
        return store.keys.encode(array, key)
    checked(table, columns)
    keys = KeyTable(array.type)
    ids = keys.encode(array, key)  # of nulls alone there are no keys, nor do they have a type
    store.keys = keys
    return ids


def is_wide(kind: pa.DataType) -> bool:
    """May values be beyond what they are computed with as?"""
    kind = decoded_type(kind)
    return bool(kind == pa.uint64() or (pa.types.is_decimal256(kind) and kind.precision > MOST_DIGITS))


def check_range(table: pa.Table, name: str) -> None:
    """Refuse values beyond that."""
    array = decoded(one_chunk(table.column(name)))
    if pa.types.is_decimal(array.type):
        exact(array, name)
    else:
        field(table, name, "a query reads")


def fields(
    table: pa.Table | None, reading: Reading, known: Dictionary, once: ReadOnce | None = None
) -> dict[str, Field]:
    """The columns that aggregates read, as kernels want them. known: what the columns have been so far. once: the same
    table, where others read it, too (None: that one)."""
    shared = once if once is not None and (table is None or once.table is table) else None
    types = column_types(table) if shared is None else shared.types
    read = partial(field, table) if shared is None else shared.field
    found: dict[str, Field] = {}
    kinds: dict[str, pa.DataType] = {}
    for use in reading.uses:
        name, asked_by, computed = use.name, use.asked_by, use.computed
        kind = types[name]
        if use.counted:
            found[name] = Field(np.zeros(0), _valid(table, shared, name, asked_by), decoded_type(kind))
        elif kind not in AS_THEY_ARE and known.are_words(kind, computed):
            if name not in known.types:  # what is known of it comes from batches that were refused
                known.tables.pop(name, None)
            elif not known.may_be_words(name, decoded_type(kind)):  # before its values are numbered
                raise _foreign(name, decoded_type(kind), known.types[name])
            rows = shared.table if shared is not None else table
            read_words = known.decimals if is_wide_decimal(decoded_type(kind)) else known.field
            found[name] = _same_type(name, read_words(rows, use), known)
        else:
            found[name] = _same_type(name, read(name, asked_by, not computed), known)
        kinds[name] = found[name].type
    if kinds != reading.right:
        reading.check(kinds)
    return found


def _valid(table: pa.Table | None, shared: ReadOnce | None, name: str, asked_by: str) -> np.ndarray | None:
    """Which rows of a column that is counted are not null (None: all)."""
    if shared is None:
        return valid_rows(table, name, asked_by)
    return None if shared.words is not None else valid_rows(shared.table, name, asked_by)


def check_types(table: pa.Table, reading: Reading, known: Dictionary) -> None:
    """Refuse columns that are not of the types they have had, whoever reads them, and when."""
    for use in reading.uses:
        name, kind = use.name, decoded_type(table.schema.field(use.name).type)
        if not use.counted and not pa.types.is_null(kind) and not is_as_known(kind, known.types.get(name)):
            raise _foreign(name, kind, known.types[name])


def is_as_known(kind: pa.DataType, known: pa.DataType | None) -> bool:
    """Are values of this type what the column has had? Text is text."""
    return known is None or known == kind or (is_string(known) and is_string(kind))


def _foreign(name: str, kind: pa.DataType, known: pa.DataType) -> BadType:
    return BadType(f'column "{name}" is {kind}, but has been {known} so far.', f"cast it to {known}")


def _same_type(name: str, new: Field, seen: Dictionary) -> Field:
    """A column of a batch, if it is of the type it has had; nulls alone take that type, anything else is refused."""
    known = seen.types.get(name)
    if known is None or is_as_known(new.type, known):
        return new
    all_null = new.valid is not None and not new.valid.any()
    if all_null:  # a column without values has no type of its own
        carrier = np.float64 if pa.types.is_floating(known) else np.int64
        return Field(np.zeros(new.values.size, carrier), new.valid, known)
    raise _foreign(name, new.type, known)
