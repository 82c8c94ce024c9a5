"""The rows that are kept, as columns again: a query that comes while events flow starts from those that have its own.

    it comes               sum(price * volume) where side = 'buy'
    columns that are kept  price, volume, side: each in some space, all of them by the rows of the main one
    read                   as a batch that comes: what is SQL over columns is computed, its `where` tried
    put                    its rows into the space that it is answered from, from which structures are made

What can not be computed of some row that is kept starts with the next event, as what reads other columns does.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kernels.operators.numbers import EARLIEST
from kernels.rings.timeline import HEAD, scatter, take_ranks
from swag.errors import SwagError
from swag.live import intake
from swag.live.arena import Batch, NewRows
from swag.live.filtered.substreams import Substreams
from swag.live.filtered.thresholds import key_field
from swag.live.space import EACH, Mask, Space, values_of
from swag.live.store import EVERY_EVENT, Store
from swag.query.kind import LESS, MORE, TIME
from swag.query.query import Query
from swag.query.reading import Reading
from swag.tables.columns import Field, fixed, to_arrow
from swag.tables.decimals import column_of, joined, limb_names
from swag.tables.expressions.derived import derived
from swag.tables.key_columns import apart, key_name
from swag.tables.predicate import columns_of, holds

Renumber = Callable[[dict[Mask, np.ndarray]], None]


class EventNames(NamedTuple):
    """What columns of events are called: ts, those of the key, and all that the last batch had, where that is known."""

    ts: str = ""
    by: tuple[str, ...] = ()
    events: frozenset[str] = frozenset()

    def seen(self, events: frozenset[str]) -> "EventNames":
        return EventNames(self.ts, self.by, events)


class ReadRows(NamedTuple):
    """Rows that are kept, as a query reads them: by their places among all, which of them satisfy its `where`, and the
    columns of its aggregate."""

    places: np.ndarray
    satisfying: np.ndarray
    fields: dict[str, Field]

    def counted(self, mask: Mask) -> np.ndarray:
        """Those that count for a mask of the query."""
        counts = self.satisfying
        for name in mask.required:
            valid = self.fields[name].valid
            counts = counts if valid is None else counts & valid
        return counts


class KeptTable(NamedTuple):
    """Rows that are kept, as columns of events, for another grouping: their times, whose they are by number here, and
    the time up to which some may be missing."""

    table: pa.Table
    ts: np.ndarray
    ids: np.ndarray
    missing: int

    def some(self, rows: np.ndarray) -> "KeptTable":
        return KeptTable(self.table.take(pa.array(rows)), self.ts[rows], self.ids[rows], self.missing)

    def in_certain_order(self, others: np.ndarray) -> "KeptTable":
        """The rows, in order of time, of which it is certain in what order they came to others: those of several keys
        here with one time and one key there are not, nor do rows before them count then."""
        order = np.argsort(others, kind="stable")
        ts, ids, others = self.ts[order], self.ids[order], others[order]
        unknown = (ts[1:] == ts[:-1]) & (others[1:] == others[:-1]) & (ids[1:] != ids[:-1])
        missing = max(self.missing, int(ts[1:][unknown].max(initial=EARLIEST)))
        certain = self.some(np.flatnonzero(self.ts > missing)) if unknown.any() else self
        return KeptTable(certain.table, certain.ts, certain.ids, missing)


class KeptRows:
    """All rows that a store keeps, key by key, and their columns as far as spaces hold those.

    It owns where they lie, which stays so until the next batch. Asked of it: the columns of a `table`; what a query
    `read`s of them; to `put` rows into the space of a mask. began: the events from which on spaces hold rows.
    """

    def __init__(self, store: Store, names: EventNames, began: Iterable[int]) -> None:
        self.store, self.names, self.began = store, names, sorted(began)

    @cached_property
    def _rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Keys, positions and slots in the main space."""
        return self.store.main.kept_rows(EVERY_EVENT, np.arange(self.store.key_count))

    @cached_property
    def _first(self) -> np.ndarray:
        """Of every key: the place of the row that was its first, or would be if all had been kept."""
        count, arena = self.store.key_count, self.store.main.arena
        counts = arena.kept(count)
        return np.asarray(np.cumsum(counts) - counts - arena.rings[:count, HEAD])

    @property
    def count(self) -> int:
        return int(self._rows[0].size)

    @property
    def ts(self) -> np.ndarray:
        return np.asarray(self.store.ts.data[self._rows[2]])

    @property
    def ids(self) -> np.ndarray:
        return self._rows[0]

    def of(self, mask: Mask) -> tuple[np.ndarray, np.ndarray]:
        """The places of the rows of a mask, and their slots in its space."""
        space = self.store.find(mask)
        assert space is not None
        ids, positions, slots = space.kept_rows(mask, np.arange(self.store.key_count))
        return self._first[ids] + positions, slots

    # -- columns ------------------------------------------------------------------------------------------------------

    def table(self, columns: Iterable[str], where: str | None, since: int) -> pa.Table | None:
        """These columns of the rows from an event on, or of those of them that satisfy a filter; null where they are
        not known. None: one of them is not kept, or nobody knows which rows these are."""
        if self.presence(where, since) is None:
            return None
        sources = {name: self._source(name, where, since) for name in columns}
        if any(source is None and not self._is_own(name) for name, source in sources.items()):
            return None
        found = [self._own(name) if source is None else self._values(name, source) for name, source in sources.items()]
        return pa.table(found, names=list(sources)) if found else pa.table({TIME: self.ts})

    def rows_with(self, columns: Iterable[str], missing: Callable[[int], int]) -> KeptTable | None:
        """The rows from the first event on of which these columns are kept; None: of none they are. missing: up to
        which time rows may be, from an event on."""
        wanted = list(columns)
        for since in self.began:
            table, mask = self.table(wanted, None, since), self.presence(None, since)
            if table is not None and mask is not None:
                places = self.of(mask)[0]
                return KeptTable(table.take(pa.array(places)), self.ts[places], self.ids[places], missing(since))
        return None

    def presence(self, where: str | None, since: int) -> Mask | None:
        """The mask of the rows from an event on, or of those of them that satisfy a filter, if some space has them."""
        masks = [Mask(where, since=since), Mask(where, since=since, alone=True)]
        return next((mask for mask in masks if self.store.find(mask) is not None), None)

    def _source(self, name: str, where: str | None, since: int) -> Mask | None:
        """Rows of whose space this column is kept, not null, wherever it is not."""
        for mask in self._sources(name, where, since):
            space = self.store.find(mask)
            if space is not None and not {name, limb_names(name)[0]}.isdisjoint(space.raw):
                return mask
        return None

    def _sources(self, name: str, where: str | None, since: int) -> Iterator[Mask]:
        filters = [None] if where is None else [None, where]
        for began in self.began:
            for each in filters if began <= since else ():
                for required in (frozenset[str](), frozenset([name])):
                    yield Mask(each, required, began)
                    if each is not None:
                        yield Mask(each, required, began, alone=True)

    def _values(self, name: str, source: Mask) -> pa.Array:
        places, slots = self.of(source)
        raw = self.store.spaces[source.home].raw
        if name not in raw:  # decimals that are only added up
            words, known = np.zeros((self.count, 2), np.int64), np.zeros(self.count, bool)
            words[places] = joined([raw[each].data[slots] for each in limb_names(name)])[0]
            known[places] = True
            return column_of(words, known, self.store.types[name])
        data = raw[name].data
        values, known = np.zeros(self.count, data.dtype), np.zeros(self.count, bool)
        values[places], known[places] = data[slots], True
        if name in self.store.dictionary.tables:
            return self.store.dictionary.values(name, values, known)
        key = name.endswith((MORE, LESS))
        return to_arrow(values, known, pa.from_numpy_dtype(values.dtype) if key else self.store.types[name])

    def _is_own(self, name: str) -> bool:
        return name == self.names.ts or (name in self.names.by and self.store.keys is not None)

    def _own(self, name: str) -> pa.Array | pa.ChunkedArray:
        """Time, or a column of the key: known of every row."""
        if name == self.names.ts:
            assert self.store.clock is not None
            return to_arrow(self.ts, None, self.store.clock.type)
        assert self.store.keys is not None
        keys = pa.table({key_name(self.names.by): self.store.keys.column(self.ids)})
        return apart(keys, self.names.by).column(self.names.by.index(name))

    # -- a query ------------------------------------------------------------------------------------------------------

    def read(self, query: Query, since: int, key: str = "") -> ReadRows | None:
        """The rows from an event on as a query reads them; None: they lack a column, or it can not be computed. key: by
        which the rows of its `where` are told apart, if they lie among all."""
        known = query.where if query.where and not key and self.presence(query.where, since) else None
        columns = {} if known or query.where is None else dict.fromkeys(sorted(columns_of(query.where)))
        if key and self._source(key, None, since) is not None:
            columns = {key: None}
        for name in query.aggregate.columns:
            columns |= dict.fromkeys(self._behind(name, query, known, since))
        table, mask = self.table(columns, known, since), self.presence(known, since)
        if table is None or mask is None:
            return None
        places = np.sort(self.of(mask)[0])
        try:
            return self._read(query, table.take(pa.array(places)), places, known, key)
        except SwagError:
            return None

    def _behind(self, name: str, query: Query, where: str | None, since: int) -> list[str]:
        """What has to be there for a column: itself, or the columns that it is SQL over. A text that is exactly the
        name of a column means that one."""
        texts = query.aggregate.texts[query.aggregate.columns.index(name)]
        expression = derived(name)
        if expression is None or texts in self.names.events or self._source(name, where, since) is not None:
            return [name]
        return sorted(expression.columns)

    def _read(self, query: Query, table: pa.Table, places: np.ndarray, known: str | None, key: str) -> ReadRows:
        reading, clock = Reading([query]), self.store.clock
        assert clock is not None
        fields = intake.fields(reading.extended(table), reading, self.store.dictionary)
        if reading.timed:
            fields[TIME] = Field(self.ts[places], None, clock.type)
        every = np.ones(places.size, bool)
        if key:
            fields[key] = key_field(table, key)
        satisfying = every if query.where is None or known or key else holds(query.where, table)
        return ReadRows(places, satisfying, fields)

    # -- spaces -------------------------------------------------------------------------------------------------------

    def fits(self, mask: Mask, names: set[str]) -> bool:
        """Can rows of a mask, with these raw columns, lie in its space? Those of all filters there have the same."""
        space = self.store.spaces.get(mask.home)
        if not isinstance(space, Substreams) or space.filters.keys() <= {mask.where}:
            return True
        return names <= space.raw.keys() if mask.where in space.filters else names == space.raw.keys()

    def put(self, mask: Mask, names: set[str], read: ReadRows, renumber: Renumber) -> NewRows | None:
        """The space of a mask has these rows and raw columns from now on. Returns the rows that are new in it, if any
        are. renumber: told where the rings of other filters lie then."""
        known = self.store.find(mask) is not None
        space, counted = self.store.space(mask), read.counted(mask)
        values = {name: values_of(name, read.fields) for name in names - (space.raw.keys() if known else set())}
        for name, each in values.items():
            space.add_raw(name, each.dtype.type)
        if known:
            self._fill_columns(mask, space, values, read.places)
            return None
        if isinstance(space, Substreams):
            moved = space.keep_filters(space.filters.keys())
            renumber({} if moved is None else {mask.home: moved})
            return self._fill_filter(mask, space, values, read, counted)
        return self._fill_ranks(space, values, read, counted)

    def _fill_columns(self, mask: Mask, space: Space, values: dict[str, np.ndarray], among: np.ndarray) -> None:
        """Columns of rows that are there."""
        places, slots = self.of(mask)
        at = np.searchsorted(among, places)
        for name, each in values.items():
            space.raw[name].data[slots] = each[at]

    def _fill_filter(
        self, mask: Mask, space: Substreams, values: dict[str, np.ndarray], read: ReadRows, counted: np.ndarray
    ) -> NewRows:
        """One more filter."""
        ids, positions, _ = (each[read.places] for each in self._rows)
        rows = np.flatnonzero(counted)
        batch = space.take(rows, np.full(rows.size, space.filters[mask.where or EACH]), ids)
        slots = space.write(batch, positions)
        for name, each in values.items():
            scatter(fixed(each), batch.order, slots, space.raw[name].data)
        return NewRows(batch.keys, batch.counts, rows.size)

    def _fill_ranks(self, space: Space, values: dict[str, np.ndarray], read: ReadRows, counted: np.ndarray) -> NewRows:
        """A space that is new: every row of the main one gets its rank there."""
        chosen = np.zeros(self.count, np.bool_)
        chosen[read.places] = counted
        keys = np.flatnonzero(self.store.main.arena.kept(self.store.key_count))
        starts = np.append(np.searchsorted(self.ids, keys), self.count)
        batch = Batch(np.arange(self.count), keys, starts)
        assert space.rank is not None
        take_ranks(chosen, tuple(batch), space.arena.rings, self._rows[2], space.rank.data)
        own = batch.only(chosen)
        space.arena.make_room(own.keys, own.counts, space.expire_with_parent)
        slots, at = space.arena.take_slots(own), np.searchsorted(read.places, own.order)
        for name, each in values.items():
            space.raw[name].data[slots] = each[at]
        return NewRows(own.keys, own.counts, own.order.size)
