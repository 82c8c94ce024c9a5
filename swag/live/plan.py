"""The plan of an engine: its queries in groups that share a structure, in step with what is registered and seen."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from kernels.operators.numbers import EARLIEST
from swag.durable import state as states
from swag.durable.state import Parts, State, nested, parts
from swag.live.arena import NewRows
from swag.live.filtered.chosen import ChosenRows
from swag.live.filtered.own_rows import give_rows
from swag.live.filtered.substreams import Substreams
from swag.live.filtered.thresholds import SharedThresholds
from swag.live.midway.kept_rows import EventNames, KeptRows, KeptTable
from swag.live.midway.late_queries import LateQueries
from swag.live.planner import Choice, Group, choose, pays_apart
from swag.live.space import EACH, Mask, values_of
from swag.live.store import EVERY_EVENT, Store
from swag.live.structures.above import Above
from swag.live.structures.baselines import MaterializeAll
from swag.live.structures.routes import Route, counting, is_typed, is_wrapped, parts_over, raw_over, route, serving
from swag.live.turns import require_alone
from swag.live.unbounded.totals import Totals
from swag.query.families import check_columns, compared_columns, parts_of
from swag.query.kind import Part
from swag.query.lowering import depth
from swag.query.query import Query
from swag.query.user_calls import check_lift
from swag.query.windows import Depth, Unbounded, reach
from swag.tables.columns import Field


class Plan:
    """The simple queries of a grouping, in groups that share a structure.

    It owns the groups and the totals of unbounded windows, and says which spaces and raw columns the store has to have.
    Asked of it: which rows count for a query (`mask`), from what it is answered (`routes`), and since when it is
    complete.
    """

    def __init__(self, store: Store, algorithm: str) -> None:
        self.store, self.algorithm = store, algorithm
        self.queries: dict[str, Query] = {}
        self.groups: dict[tuple[Mask, Part], Group] = {}
        self.totals = Totals(store)  # of unbounded windows
        self.nullable: frozenset[str] = frozenset()  # columns with a null so far
        self.largest: dict[str, int] = {}  # integer columns: the largest absolute value so far
        self.late = LateQueries(store)
        self.thresholds = SharedThresholds(algorithm)
        self.names = EventNames()  # of the columns of events
        self._columns: dict[str, int] = {}  # the columns read, and since which event
        self._readers: list[Query] | None = None
        self._predicates: tuple[str, ...] | None = None
        self.routes: dict[str, Route] = {}  # by query, once it is settled
        self.settled = True  # every query has its spaces and structures
        self.version = 0  # changes with the queries, and with what they are answered from

    # -- registration -------------------------------------------------------------------------------------------------

    def check(self, queries: list[Query]) -> None:
        """Raise now what could not be served later."""
        for query in queries:
            check_columns(query.aggregate, {n: self.store.types.get(n, pa.null()) for n in query.aggregate.columns})
            if isinstance(query.window, Unbounded):
                self.totals.check(query)
                continue
            for part in parts_of(query.aggregate):
                choose(part, np.dtype(np.float64), self.algorithm)

    def add(self, queries: list[Query], flowing: bool, unread: Callable[[Query], int]) -> None:
        """flowing: events have come before these queries. unread: up to which time some wait that lack its columns."""
        store, kept = self.store, KeptRows(self.store, self.names, self.late.beginnings)
        self.thresholds.add(queries)
        if flowing:
            self.thresholds.decide(store.types, queries)
        store.dictionary.order(name for query in queries for name in compared_columns(query.aggregate))
        for query in queries:
            if isinstance(query.window, Unbounded):
                self._add_unbounded(query, flowing)
            elif flowing:
                self._add_late(query, unread(query), kept)
            self.queries[query.label] = query
            for name in query.aggregate.columns:
                self._columns.setdefault(name, store.events)
        if store.clock is not None:
            store.retention = replace(store.retention, depth=store.retention.depth | self._depth(queries))
        self.changed()

    def _add_late(self, query: Query, unread: int, kept: KeptRows) -> None:
        """On a stream that flows: rows from before count if all that the query needs of them was kept, or can be
        computed of what was."""
        started = (s for s in kept.began if self._is_kept(query, s) or self._starts(query, s, kept))
        since = next(started, self.store.events)
        if query.label in self.thresholds.open and since < self.store.events:
            self.thresholds.set_apart(query.label, "rows of its own are kept already")
        self.late.add(query.label, since, self._missing(since), unread)

    def _missing(self, since: int) -> int:
        """Up to which time rows are not known to who starts with an event."""
        lost = max(self.store.forgotten, int(self.store.lost.max(initial=EARLIEST)))
        return max(lost, self.late.missing(since))

    def kept_table(self, columns: Iterable[str]) -> KeptTable | None:
        """The rows that are kept, with these columns of theirs; None: one of them is not."""
        return KeptRows(self.store, self.names, self.late.beginnings).rows_with(columns, self._missing)

    def _starts(self, query: Query, since: int, kept: KeptRows) -> bool:
        """Bring the rows that are kept from event `since` on to where it is answered from, if they have its columns."""
        read = kept.read(query, since, self.mask(query).compared)
        if read is None:
            return False
        self._note(read.fields)
        self._columns |= {name: min(self._columns.get(name, since), since) for name in query.aggregate.columns}
        if not all(kept.fits(mask, names) for mask, names in self._homes(query, since).items()):
            self.late.set_apart(query.label)
        for mask, names in self._homes(query, since).items():
            new = kept.put(mask, names, read, self.renumber)
            if new is not None:
                self.update({mask.home: new})
        return True

    def _homes(self, query: Query, since: int | None = None) -> dict[Mask, set[str]]:
        """The masks of a query and the raw columns in their spaces. since: as if it started with that event."""
        mask, presence = (each if since is None else each.beginning(since) for each in self._masks(query))
        there = {presence.compared} if presence.compared else set()
        return {presence: there} | {mask: raw_over(query, mask, self.store.types)}

    def _add_unbounded(self, query: Query, flowing: bool) -> None:
        missing = self.store.forgotten if self.totals.add(query) else self.store.now
        if flowing:
            self.late.add(query.label, 0, missing)

    def _is_kept(self, query: Query, since: int) -> bool:
        """Is there a space that holds, from event `since` on, what this query needs?"""
        homes = list(self._homes(query, since).items())  # of all rows the presence need not be looked for
        for mask, names in homes if query.where is not None else homes[-1:]:
            space = self.store.find(mask)
            if space is None or not names <= space.raw.keys():
                return False
        if query.aggregate.kind == "count":  # where no null was seen, every row counts; if anybody looked
            return all(self._columns.get(name, since + 1) <= since for name in query.aggregate.columns)
        assert space is not None
        return not is_wrapped(query, space, self.store.types)

    def remove(self, queries: list[Query]) -> None:
        """These are not asked any more: rows are kept for the other queries alone, and unused structures go."""
        for query in queries:
            del self.queries[query.label]
            if isinstance(query.window, Unbounded):
                self.totals.remove(query)
            self.late.remove(query.label)
            self.thresholds.remove(query.label)
        if self.store.clock is not None:
            self.retain()
        self.changed()
        self.settle()

    def changed(self) -> None:
        """What was worked out for the queries is worked out anew."""
        self._readers, self._predicates, self.routes, self.settled = None, None, {}, False
        self.version += 1

    def retain(self) -> None:
        """Rows are kept for as long as any of its windows can reach them."""
        self.store.retention = replace(self.store.retention, depth=self._depth(self.queries.values()))

    def _depth(self, queries: Iterable[Query]) -> Depth:
        return depth(self._windowed(queries), None if self.store.clock is None else self.store.clock.unit)

    def _windowed(self, queries: Iterable[Query]) -> list[Query]:
        """Those that are answered from rows."""
        return [query for query in queries if not isinstance(query.window, Unbounded)]

    # -- batches ------------------------------------------------------------------------------------------------------

    @property
    def predicates(self) -> tuple[str, ...]:
        """Of its queries, each once. The same tuple as long as they are the same."""
        if self._predicates is None:
            told = (query.where for query in self.readers if not self.thresholds.key(query))
            self._predicates = tuple(dict.fromkeys(where for where in told if where is not None))
        return self._predicates

    @property
    def readers(self) -> list[Query]:
        """One query for each way to read a batch: what a batch costs does not grow with the number of queries."""
        if self._readers is None:
            ways: dict[tuple[Any, ...], Query] = {}
            for query in self.queries.values():
                of, which = query.aggregate, self.thresholds.key(query) or query.where
                ways.setdefault((of.kind, of.method, of.columns, of.user, which, self.late.since(query.label)), query)
            self._readers = list(ways.values())
        return self._readers

    def check_lifted(self, lifted: list[Query], found: dict[str, Field], chosen: ChosenRows) -> None:
        """Refuse a batch that a user's `lift` raises of: it is run over the rows that count, nothing is changed."""
        for query in lifted:
            values = found[query.aggregate.columns[0]].scaled
            counts = chosen[self.mask(query, self.nullable_with(found))]
            rows = None if counts is None else np.flatnonzero(counts)
            check_lift(query.aggregate, f'query "{query.title}"', values if rows is None else values[rows], rows)

    def nullable_with(self, found: dict[str, Field]) -> frozenset[str]:
        """The columns with nulls, once this batch is in."""
        nullable = self.nullable
        for name, column in found.items():
            if column.valid is not None and name not in nullable:
                nullable |= {name}
        return nullable

    def mask(self, query: Query, nullable: frozenset[str] | None = None) -> Mask:
        """The rows that count for a query: where its predicate holds and its columns are not null."""
        required = frozenset(query.aggregate.columns) & (self.nullable if nullable is None else nullable)
        alone = query.where is not None and (query.aggregate.user is not None or self.late.is_apart(query.label))
        return Mask(query.where, required, self.late.since(query.label), alone, self.thresholds.key(query))

    def presence(self, query: Query) -> Mask:
        """The rows that make a key present in its answer: those of the window, null or not."""
        alone = query.where is not None and self.late.is_apart(query.label)
        return Mask(query.where, frozenset(), self.late.since(query.label), alone, self.thresholds.key(query))

    def _masks(self, query: Query) -> tuple[Mask, Mask]:
        return self.mask(query), self.presence(query)

    def _set_apart(self, queries: list[Query], why: str) -> None:
        """Thresholds that shared rows have some of their own from now on."""
        taken, moves = set(self.store.spaces), dict[Mask, tuple[Mask, Any]]()
        for query in queries:
            shared, bound = self._masks(query), self.thresholds.shared[query.label].number
            self.thresholds.set_apart(query.label, why)
            if not taken.isdisjoint(mask.apart.home for mask in shared):
                self.late.set_apart(query.label)
            moves |= {own: (mask, bound) for own, mask in zip(self._masks(query), shared, strict=True)}
        give_rows(self.store, moves, self.renumber)
        self.changed()

    def _reconsider_sharing(self, group: Group) -> None:
        """Rows of their own for the thresholds of a group, where that is cheaper and there are none of others."""
        queries = [self.queries[name] for name in group.queries if name in self.thresholds.shared]
        homes = {mask.apart.home for query in queries for mask in self._masks(query)}
        if pays_apart(group) and homes.isdisjoint(self.store.spaces):
            require_alone()
            self._set_apart(queries, group.reason)
        group.start_over(False)

    def prepare(self, found: dict[str, Field]) -> bool:
        """Spaces, columns and structures for what a batch brings; first nulls move a column to a space of its own.

        True if anything had to be changed.
        """
        if self.thresholds.keys and not self.thresholds.keys.keys() <= found.keys():
            self._set_apart(self.thresholds.misfits(found), "a batch could not be sorted among the others")
        changed = self._note(found) or not self.settled
        if changed:
            self._make_groups(found)
        return changed

    def _note(self, found: dict[str, Field]) -> bool:
        """The types of columns, how large they are, and which have nulls: are there more of these now?"""
        nullable, dictionary = self.nullable_with(found), self.store.dictionary
        if not found.keys() <= dictionary.types.keys():
            dictionary.note_types(found)
        for name, column in found.items():
            if column.values.dtype == np.int64 and column.values.size:
                span = max(int(column.values.max()), -int(column.values.min()))
                self.largest[name] = max(self.largest.get(name, 0), span)
        if nullable == self.nullable:
            return False
        self._narrow(nullable - self.nullable)
        return True

    def settle(self) -> None:
        """Spaces and structures for queries that have none yet, as far as their columns are known."""
        if not self.settled:
            require_alone()
            self._make_groups()

    def update(self, runs: Mapping[Mask, NewRows]) -> None:
        """runs: of spaces that got any rows."""
        for (home, part), group in self.groups.items():
            if home not in runs:
                continue
            if part.user is None:
                group.structure.follow(runs[home])
            else:
                group.bring(partial(group.structure.follow, runs[home]))

    def renumber(self, kept: dict[Mask, np.ndarray]) -> None:
        """Ring kept[space][i] of a space is ring i from now on."""
        for (home, _), group in self.groups.items():
            if home in kept:
                group.renumber(kept[home])

    def forget_substreams(self) -> None:
        """Filters and keys that have no rows in common any more take no memory, where they are half of all."""
        for space in self.store.families:
            kept = space.forget_empty()
            if kept is not None:
                self.renumber({space.mask: kept})

    def read_again(self, columns: set[str]) -> None:
        """The values of these are numbered anew: what holds such numbers is built again."""
        for group in self.groups.values():
            if not columns.isdisjoint(group.part.columns):
                group.use(Choice(type(group.structure), group.reason))

    def reconsider(self) -> None:
        """Another structure, where what is asked has changed enough to pay for rebuilding. Only that needs to be alone:
        large lookups are due every time, and would all be asked for twice."""
        for group in self.groups.values():
            if isinstance(group.structure, Above):
                if group.due():
                    self._reconsider_sharing(group)
            elif (self.algorithm == "auto" or group.stands_in) and group.due():
                seen = None if group.stands_in else group
                choice = choose(group.part, group.structure.dtype, self.algorithm, seen)
                switched = choice.structure is not type(group.structure)
                if switched:
                    group.use(choice)
                else:
                    group.reason = choice.reason
                group.start_over(switched)

    # -- groups -------------------------------------------------------------------------------------------------------

    def sums_asked(self, mask: Mask, part: Part) -> bool:
        """Does any query want the sum itself (a mean or variance does not overflow)?"""
        asking = (self.queries[name] for name in self.groups[mask.home, part].queries)
        return any(query.aggregate.kind == "sum" and self.mask(query) == mask for query in asking)

    def _make_groups(self, found: dict[str, Field] | None = None) -> None:
        """One structure per set of rows and part; those that nobody asks for any more go."""
        wanted: dict[tuple[Mask, Part], list[str]] = {}
        raw: dict[Mask, set[str]] = {}
        for query in self._windowed(self.queries.values()):
            mask, presence = self._masks(query)
            for each, columns in self._homes(query).items():
                raw.setdefault(each, set()).update(columns)
            for part in parts_over(query, mask, self.store.types):
                wanted.setdefault((mask.home, part), []).append(query.label)
            if presence.compared and presence != mask:
                wanted.setdefault((presence.home, counting(presence)), []).append(query.label)
        self._make_raw(raw, found)
        for home, part in list(wanted):
            by = serving(part, self.store.spaces[home], wanted.keys())
            if by != part:
                wanted[home, by] += wanted.pop((home, part))
        self._drop_unused(wanted, raw)
        self.settled = all(names <= self.store.spaces[mask.home].raw.keys() for mask, names in raw.items())
        for (home, part), names in wanted.items():
            space = self.store.spaces[home]
            if (home, part) not in self.groups:
                if not all(name in space.raw for name in part.columns):
                    continue  # its columns have not been seen yet
                dtype = space.raw[part.columns[0]].data.dtype
                self.groups[home, part] = Group.of(space, part, choose(part, dtype, self.algorithm))
            group = self.groups[home, part]
            group.queries = names
            if isinstance(group.structure, MaterializeAll) and home.where is None and self.store.clock is not None:
                unit, all_windows = self.store.clock.unit, group.structure
                reaches = [reach(self.queries[name].window, unit) for name in names]
                group.bring(lambda made=all_windows, asked=reaches: made.set_windows(asked, self.store))  # type: ignore[misc]
        queries, store, groups = self.queries.items(), self.store, self.groups
        self.routes = {label: route(query, self._masks(query), store, groups) for label, query in queries}
        self.version += 1

    def _make_raw(self, raw: dict[Mask, set[str]], found: dict[str, Field] | None) -> None:
        for mask, names in raw.items():
            space = self.store.space(mask)
            for name in names - set(space.raw):
                if found is not None and is_typed(name, found):
                    space.add_raw(name, values_of(name, found).dtype.type)

    def _drop_unused(self, wanted: dict[tuple[Mask, Part], list[str]], raw: dict[Mask, set[str]]) -> None:
        """Groups, raw columns, spaces and filters that no query needs any more go, and what was noted of columns."""
        for key in [key for key in self.groups if key not in wanted]:
            self.groups.pop(key).structure.drop()
        names: dict[Mask, set[str]] = {}
        filters: dict[Mask, set[str]] = {}
        for mask, some in raw.items():
            names.setdefault(mask.home, set()).update(some)
            filters.setdefault(mask.home, set()).add(mask.where or EACH)
        for home, space in list(self.store.spaces.items()):
            for name in space.raw.keys() - names.get(home, set()):
                space.arena.release([space.raw.pop(name)])
            if home not in names and home != EVERY_EVENT:
                self.store.drop(home)
            elif isinstance(space, Substreams):
                kept = space.keep_filters(filters[home])
                self.renumber({} if kept is None else {home: kept})
        read = {name for query in self.queries.values() for name in query.aggregate.columns}
        self._columns = {name: since for name, since in self._columns.items() if name in read}
        self.nullable &= read

    def _narrow(self, with_nulls: frozenset[str]) -> None:
        """The first nulls of some columns: queries over them move to spaces that hold their valid rows only."""
        for column in sorted(with_nulls):
            queries = self._windowed(self.queries.values())
            before = {query.label: self.mask(query) for query in queries}
            self.nullable |= {column}
            for query in queries:
                old, new = before[query.label], self.mask(query)
                if new != old and new.home not in self.store.spaces and old.home in self.store.spaces:
                    self.store.put(new.home, self.store.spaces[old.home].narrowed(column))
                    self.store.spaces[new.home].copy_raw(self.store.spaces[old.home])

    # -- about itself -------------------------------------------------------------------------------------------------

    @property
    def bytes(self) -> int:
        """What structures hold outside the spaces' arenas."""
        return sum(g.structure.bytes_apart for g in self.groups.values()) + self.totals.bytes

    @property
    def updates(self) -> int:
        return sum(group.structure.updates for group in self.groups.values())

    # -- state --------------------------------------------------------------------------------------------------------

    def state(self) -> State:
        """Of its queries there are only the names, in order: whoever registered them knows the rest."""
        header = {"order": list(self.queries), "nullable": sorted(self.nullable), "largest": self.largest}
        header |= {"columns": self._columns}
        groups, late, thresholds = (g.state() for g in self.groups.values()), self.late.state(), self.thresholds.state()
        inside: Parts = {"groups": list(groups), "totals": self.totals.state(), "late": late, "thresholds": thresholds}
        return nested(header, inside)

    def restore(self, state: State) -> None:
        """`queries` are those that were registered, the spaces of its store are restored."""
        header = state[0]
        self.queries = {label: self.queries[label] for label in header.get("order", self.queries)}
        self.nullable, self.largest = frozenset(header["nullable"]), header["largest"]
        self._columns = header["columns"]
        self.late.restore(states.part(state, "late") if "late" in header else state)  # once, a plan wrote it as its own
        self.thresholds.restore(states.part(state, "thresholds") if "thresholds" in header else ({}, {}))
        if header.get("totals") is not None:
            self.totals.restore(states.part(state, "totals"))
        for saved in parts(state, "groups"):
            entry = saved[0]
            user = self.queries[entry["queries"][0]].aggregate.user if entry["family"] == "user" else None
            home, of = Mask.from_json(entry["mask"]), Part(entry["family"], tuple(entry["columns"]), user)
            if home in self.store.spaces and home not in self.store.rearranged:  # else it is built anew
                self.groups[home, of] = Group.restored(saved, self.store.spaces[home], of)
        self.changed()  # what had no structure yet gets one as soon as its columns are known
