"""Lookups: windows to positions once, structures once per group, then one column per query."""

from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kernels.operators.numbers import EARLIEST
from kernels.rings import in_step
from kernels.rings.pairs import PairWindows
from kernels.rings.timeline import CAPACITY, OFFSET, TAIL
from kernels.windows.wide import PARTIAL
from swag.live import window_edges
from swag.live.answering.quantiles import neighbours, quantiles
from swag.live.plan import Plan
from swag.live.planner import Group
from swag.live.space import Mask
from swag.live.store import EVERY_EVENT, Store
from swag.live.structures.routes import Route
from swag.live.window_edges import Edges
from swag.query.aggregates import Aggregate
from swag.query.kind import Now, Part
from swag.query.kinds.lists import span
from swag.query.query import Query
from swag.query.windows import Reach, Unbounded, reach
from swag.tables.columns import to_arrow
from swag.tables.decimals import column_of, unwrapped
from swag.tables.lists import lists, ranges

FEW_WINDOWS = 4  # for each of so many all keys are searched in step; with 60, key by key was 5 to 20 % faster
WRAPPED = "wrapped sum"  # in place of a family: what sums of decimals are modulo 2^64
MOST_EDGES = 1 << 20  # that are worked out at once
NOBODY = np.zeros((0, 0), bool)


class AskedGroup(NamedTuple):
    """A group, and what is asked of it: some windows, of the rows of some masks that lie in its space. narrowed: these
    are not all windows in their order."""

    group: Group
    masks: list[Mask]
    windows: list[int]
    narrowed: bool


class Lookups:
    """Answers of simple queries, from the structures of a plan. It owns nothing; it reads the store and the plan.

    Asked of it: ids for keys, a column per query for ids at one instant (`at`) or each at its own (`each`).
    """

    def __init__(self, store: Store, plan: Plan) -> None:
        self.store, self.plan = store, plan

    def ids(self, key: Any, name: str | None) -> np.ndarray:
        """The ids of all keys, or of one (none if it was never seen)."""
        keys = self.store.keys
        if keys is None:
            return np.arange(self.store.key_count)
        if key is None or name is None:
            return np.arange(keys.count)
        one = keys.one(key, name)
        if one is None:  # a value that no key can have
            return np.zeros(0, np.int64)
        found = keys.find(one, name)
        return found[found >= 0]

    def at(self, queries: list[Query], ids: np.ndarray, instant: int) -> tuple[list[pa.Array], np.ndarray, Any]:
        """A column per query, which keys have an event in each window, and the first (key, query) cut short."""
        rest = self._answered_from_rows(queries) if self.plan.totals.totals else queries
        if rest is not queries:
            columns, present, short = self.at(rest, ids, instant) if rest else ([], NOBODY, None)
            short = short if short is None else (short[0], queries.index(rest[short[1]]))
            return *self._with_totals(queries, (rest, columns, present), ids, np.full(ids.size, instant)), short
        windows, which = self._windows(queries)
        lo, hi, short = self._edges(ids, windows, instant)
        columns, present = self._columns(queries, which, ids, (lo, hi), instant)
        if short is None and instant < self.store.time.now:
            gone = window_edges.reaches_forgotten(self.store, windows, instant)
            return columns, present, None if gone is None else (None, which.index(gone))
        return columns, present, None if short is None else (short[0], which.index(short[1]))

    def _edges(
        self, ids: np.ndarray, windows: list[Reach], at: int
    ) -> tuple[np.ndarray, np.ndarray, tuple[int, int] | None]:
        """As `window_edges.edges`; the usual request, a few windows that end now, searches all keys in step."""
        if any(window.since is not None for window in windows):
            windows = window_edges.as_of(self.store, windows, at)
        usual = at >= self.store.time.now and all(window.by_time and window.near == 0 for window in windows)
        if not usual or len(windows) > FEW_WINDOWS:
            return window_edges.edges(self.store, ids, window_edges.lengths_of(windows), at)
        rings, ts = self.store.main.arena.rings, self.store.ts.data
        lo = np.empty((len(windows), ids.size), np.int64)
        for window, starts in zip(windows, lo, strict=True):
            in_step.starts_after(rings, ts, ids, max(EARLIEST, at - window.far), starts)
        return np.ascontiguousarray(lo.T), np.repeat(rings[ids, TAIL][:, None], len(windows), axis=1), None

    def each(
        self, queries: list[Query], ids: np.ndarray, instants: np.ndarray, seen: np.ndarray | None = None
    ) -> tuple[list[pa.Array], np.ndarray, np.ndarray]:
        """A column per query, for every (key, instant) one answer; which of them have an event in the window, and
        which one that `where` may not count. seen: only the rows before these positions."""
        rest = self._answered_from_rows(queries) if self.plan.totals.totals else queries
        if rest is not queries:
            columns, present, some = self.each(rest, ids, instants, seen) if rest else ([], NOBODY, NOBODY)
            columns, present = self._with_totals(queries, (rest, columns, present), ids, instants, seen)
            ever = present[:, 0] if seen is None else seen > 0
            held = [some[:, rest.index(query)] if query in rest else ever for query in queries]
            return columns, present, np.column_stack(held)
        windows, which = self._windows(queries)
        lo, hi = window_edges.edges_each(self.store, ids, windows, instants, seen)
        columns, present = self._columns(queries, which, ids, (lo, hi), instants)
        return columns, present, (hi > lo)[:, which]

    def of_pairs(
        self, query: Query, ids: np.ndarray, windows: PairWindows, instants: np.ndarray
    ) -> tuple[pa.Array, np.ndarray]:
        """The answers of one query over other windows than its own, a key, a window and a time for each; and which have
        an event in the window. instants: of each, or one for all."""
        lo, hi = window_edges.edges_of_pairs(self.store, ids, windows, instants)
        columns, present = self._columns([query], [0], ids, (lo[:, None], hi[:, None]), instants)
        return columns[0], present[:, 0]

    def numbers(self, query: Query, ids: np.ndarray, edges: Edges) -> tuple[np.ndarray, np.ndarray]:
        """The answers of one query over any windows, as plain numbers: a row per key, a column per window; and which of
        them there are (there is an event, and the answer is not null). Of kinds whose answers do not depend on when
        they are asked for."""
        if not self.plan.settled:
            self.plan.settle()
        one, route = Request(self, ids, edges), self.plan.routes[query.label]
        if route.mask.where is not None:
            one.locate(filters_of([route]))
        lo, hi = one.edges(route.presence)
        if route.parts is None:  # registered later, and nothing has come since
            return np.zeros(lo.shape), (hi > lo) & route.kind.counts
        served = [] if route.kind.name == "quantile" else [self.plan.groups[route.home, by] for by in route.served_by]
        states = one.states([AskedGroup(group, [route.mask], [], False) for group in served])
        partials = [part_of(state, part.family) for state, part in zip(states, route.parts, strict=False)]
        values, valid = one.lowered(query.aggregate, route, *one.edges(route.mask), partials)
        return values, hi > lo if valid is None else (hi > lo) & valid

    def _answered_from_rows(self, queries: list[Query]) -> list[Query]:
        """Those whose windows are not unbounded; the same list if none is."""
        rest = [query for query in queries if not isinstance(query.window, Unbounded)]
        return queries if len(rest) == len(queries) else rest

    def _with_totals(
        self, queries: list[Query], known: tuple[list[Query], list[pa.Array], np.ndarray], ids: np.ndarray,
        instants: np.ndarray, seen: np.ndarray | None = None,
    ) -> tuple[list[pa.Array], np.ndarray]:  # fmt: skip
        """The answers of all, where those that are not unbounded are known."""
        rest, columns, present = known
        unbounded = [query for query in queries if isinstance(query.window, Unbounded)]
        more, there = self.plan.totals.answer(unbounded, ids, instants, seen)
        found = dict(zip((*rest, *unbounded), (*columns, *more), strict=True))
        presence = dict(zip((*rest, *unbounded), (*present.T, *there.T), strict=True))
        return [found[query] for query in queries], np.column_stack([presence[query] for query in queries])

    def _windows(self, queries: list[Query]) -> tuple[list[Reach], list[int]]:
        """Their windows, each once, and which of them is whose."""
        clock = self.store.time.clock
        assert clock is not None
        windows: dict[Reach, int] = {}
        which = []
        for query in queries:
            which.append(windows.setdefault(reach(query.window, clock.unit), len(windows)))
        return list(windows), which

    def _columns(
        self, queries: list[Query], which: list[int], ids: np.ndarray, edges: Edges, instants: Any
    ) -> tuple[list[pa.Array], np.ndarray]:
        """A column per query from the edges of windows, and which keys have an event. which: the window of each."""
        if not self.plan.settled:
            self.plan.settle()
        one = Request(self, ids, edges, instants)
        routes = [self.plan.routes[query.label] for query in queries]
        one.locate(filters_of(routes))
        columns, present = [], np.empty((ids.size, len(queries)), bool)
        partials = one.fetched(asked_parts(self.plan, routes, which))
        if any(query.aggregate.kind == "quantile" for query in queries):
            partials |= quantiles(one, [query.aggregate for query in queries], routes, which)
        for i, (query, route, w) in enumerate(zip(queries, routes, which, strict=True)):
            a, b = one.edges(route.presence)
            present[:, i] = b[:, w] > a[:, w]
            columns.append(one.column(query.aggregate, route, w, partials))
        return columns, present


class Request:
    """Some keys, and the edges of windows in every space they are needed in. It owns these edges.

    Asked of it: the edges in a space, what structures hold of the windows, and answers. instants: when these are asked
    for, all at one time, or each at its own.
    """

    def __init__(self, lookups: Lookups, ids: np.ndarray, edges: Edges, instants: Any = None) -> None:
        self._instants = instants
        self.store, self.plan, self.ids, self._edges = lookups.store, lookups.plan, ids, {EVERY_EVENT: edges}
        self._rings = {EVERY_EVENT: ids}
        self._wrapped: dict[tuple[Mask, Part], np.ndarray] = {}  # sums of decimals that one word does not hold

    def edges(self, mask: Mask) -> Edges:
        if mask not in self._edges and mask.compared:
            self._count_above(mask)
        elif mask not in self._edges:
            lo, hi = self._edges[EVERY_EVENT]
            self._edges[mask] = self.store.spaces[mask.home].to_positions(self.rings(mask), lo, hi)
        return self._edges[mask]

    def rings(self, mask: Mask) -> np.ndarray:
        """In the space of a mask: where the rows of the keys lie."""
        if mask not in self._rings:
            self._rings[mask] = self.store.spaces[mask.home].located(mask, self.ids)
        return self._rings[mask]

    def locate(self, filters: dict[Mask, list[Mask]]) -> None:
        """The rings and edges of many filters at once: two calls of kernels for all that lie in one space."""
        lo, hi = self._edges[EVERY_EVENT]
        for home, own in filters.items():
            if len(own) * lo.size > MOST_EDGES:
                continue  # one after the other, as they are asked for
            space, each = self.store.spaces[home], self.ids.size
            rings = space.located_each(own, self.ids)
            wide = (lo, hi) if len(own) == 1 else (np.tile(lo, (len(own), 1)), np.tile(hi, (len(own), 1)))
            starts, ends = space.to_positions(rings, *wide)
            for i, mask in enumerate(own):
                rows = slice(i * each, (i + 1) * each)
                self._rings[mask], self._edges[mask] = rings[rows], (starts[rows], ends[rows])

    def states(self, asked: list[AskedGroup]) -> list[Any]:
        """Ask each group once, for all windows of its queries: of each of its masks, group after group, arrays of a row
        per key and a column per window.

        A group that has been asked often enough is looked at again: another structure may serve it better.
        """
        found: list[Any] = []
        due = False
        for each in asked:
            found += self._states_of(each)
            due |= each.group.due()
        if due:
            self.plan.reconsider()
        return found

    def _states_of(self, asked: AskedGroup) -> list[Any]:
        """Of filters that ask for the same windows: one lookup for all of them."""
        group, masks, windows, narrowed = asked
        if masks[0].compared:
            return self._above(asked)
        edges = [self.chosen(mask, windows) if narrowed else self.edges(mask) for mask in masks]
        if len(masks) == 1:
            (lo, hi), rings = edges[0], self.rings(masks[0])
            states = [group.lookup(rings, lo, hi)]
        else:
            lo, hi = (np.concatenate(each) for each in zip(*edges, strict=True))
            rings = np.concatenate([self.rings(mask) for mask in masks])
            state, size = group.lookup(rings, lo, hi), edges[0][0].size
            states = [_taken(state, slice(i * size, (i + 1) * size)) for i in range(len(masks))]
        largest = self.plan.largest.get(group.part.columns[0])
        if largest is not None:
            for i, mask in enumerate(masks):
                came, widens = states[i], self._widens(group.part)
                sums_asked = partial(self.plan.sums_asked, mask, group.part) if not widens else _nobody_asks
                states[i] = group.without_overflow(self.rings(mask), edges[i], came, largest, sums_asked)
                if widens and states[i] is not came:
                    self._wrapped[mask, group.part] = part_of(came, "sum").reshape(edges[i][0].shape)
        shape = edges[0][0].shape
        return [tuple(p.reshape(shape) for p in each) if isinstance(each, tuple) else each.reshape(shape)
                for each in states]  # fmt: skip

    def _widens(self, part: Part) -> bool:
        """Do its sums go on where int64 ends?"""
        return bool(pa.types.is_decimal(self.store.types.get(part.columns[0], pa.null())))

    def _above(self, asked: AskedGroup) -> list[Any]:
        """The same of thresholds that share the rows of a space, where those of one have no positions of their own: its
        edges say no more than how many rows are above its bound."""
        group, masks, windows, narrowed = asked
        lo, hi = self.chosen(masks[0].home, windows) if narrowed else self.edges(masks[0].home)
        bounds, largest = [self.plan.thresholds.bound(mask) for mask in masks], self.plan.largest
        counts, states = group.above(
            self.rings(masks[0].home), (lo, hi), bounds, largest.get(group.part.columns[0], 0),
            lambda i: self.plan.sums_asked(masks[i], group.part),
        )  # fmt: skip
        first = np.zeros_like(self._edges[EVERY_EVENT][0])
        known = np.zeros((len(masks), *first.shape), np.int64)
        known[:, :, windows] = counts
        for mask, own in zip(masks, known, strict=True):
            if mask in self._edges:  # of other windows
                self._edges[mask][1][:, windows] = own[:, windows]
            else:
                self._edges[mask] = first, own
        return states

    def _count_above(self, mask: Mask) -> None:
        """How many rows of a threshold each window has, from any structure that knows."""
        lo, groups = self._edges[EVERY_EVENT][0], self.plan.groups.items()
        self._edges[mask] = np.zeros_like(lo), np.zeros_like(lo)
        for (home, part), group in groups:
            if home == mask.home and part.columns[-1] == mask.compared:
                self._above(AskedGroup(group, [mask], list(range(lo.shape[1])), False))
                return

    def chosen(self, mask: Mask, windows: list[int]) -> Edges:
        """The edges of some windows, as kernels take them."""
        lo, hi = self.edges(mask)
        return np.ascontiguousarray(lo[:, windows]), np.ascontiguousarray(hi[:, windows])

    def fetched(self, asked: list[AskedGroup]) -> dict[Any, Any]:
        """The same, by (mask, part, window)."""
        found = {}
        for (mask, part, windows), state in zip(in_turn(asked), self.states(asked), strict=True):
            for i, w in enumerate(windows):
                own = tuple(each[:, i] for each in state) if isinstance(state, tuple) else state[:, i]
                found[mask, part, w] = own
                if part.family == "moments":  # which serve who asks for the sum
                    found[mask, Part("sum", part.columns), w] = own[1]
                if (mask, part) in self._wrapped:
                    found[mask, Part(WRAPPED, part.columns), w] = self._wrapped[mask, part][:, i]
        return found

    def column(self, aggregate: Aggregate, route: Route, w: int, partials: dict[Any, Any]) -> pa.Array:
        """The answers of an aggregate over window `w`, a row per key, from the partials that structures gave."""
        kind = route.kind
        if route.parts is None:  # registered later, and nothing has come since
            nothing = pa.nulls(self.ids.size, route.type)
            return nothing.fill_null(0) if kind.counts else nothing
        lo, hi = self.edges(route.mask)
        lo, hi = lo[:, w], hi[:, w]
        if kind.answers == "lists":
            return self._lists(route, aggregate, lo, hi)
        if kind.name == "quantile":
            found = partials[route.mask, aggregate, w]
            if aggregate.method == "floor" and aggregate.columns[0] in self.store.dictionary.tables:
                return self._words(aggregate.columns[0], found, hi > lo)
            return to_arrow(found if route.unit == 1 else found / route.unit, hi > lo, route.type)
        own = [partials[route.mask, part, w] for part in route.parts]
        wrapped = partials.get((route.mask, Part(WRAPPED, aggregate.columns), w)) if kind.name == "sum" else None
        if wrapped is not None:
            return column_of(unwrapped(wrapped, own[0], hi - lo, aggregate.columns[0]), hi > lo, route.type)
        values, valid = self.lowered(aggregate, route, lo, hi, own)
        if kind.answers == "as the column" and aggregate.columns[0] in self.store.dictionary.tables:
            return self._words(aggregate.columns[0], values, valid)
        return to_arrow(values, valid, route.type)

    def lowered(
        self, aggregate: Aggregate, route: Route, lo: np.ndarray, hi: np.ndarray, partials: list[Any]
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Answers over some windows, by their edges in the space of the route, and which are not null (None: all).
        partials: what structures hold of them, where those do."""
        if route.kind.at_ends:
            partials = [self._ends(route, aggregate, lo, hi)]
        elif route.kind.name == "quantile":
            partials = [neighbours(self, route, aggregate, (lo, hi))]
        if route.kind.timed:
            assert self._instants is not None and self.store.clock is not None
            partials = [*partials, Now(self._instants, self.store.clock.unit)]
        if route.kind.lowers == PARTIAL and len(partials) == 1:  # the answer is what structures hold
            return partials[0] if route.unit == 1 else partials[0] / route.unit, hi > lo
        values, valid = route.kind.lower(aggregate, hi - lo, partials)
        return values if route.unit == 1 else values / route.unit, valid

    def _words(self, name: str, values: np.ndarray, valid: np.ndarray | None) -> pa.Array:
        """Text, by the numbers that the dictionary knows it by."""
        return self.store.dictionary.values(name, values, np.ones(values.size, bool) if valid is None else valid)

    def _lists(self, route: Route, aggregate: Aggregate, lo: np.ndarray, hi: np.ndarray) -> pa.Array:
        """The values at one end of each window, as lists."""
        first, counts = span(aggregate, lo, np.maximum(lo, hi))
        space, name = self.store.spaces[route.home], aggregate.columns[0]
        rings = np.repeat(space.arena.rings[self.rings(route.mask)], counts, axis=0)
        values = space.raw[name].data[rings[:, OFFSET] + (ranges(first, counts) & (rings[:, CAPACITY] - 1))]
        is_text = name in self.store.dictionary.tables
        elements = self._words(name, values, None) if is_text else to_arrow(values, None, route.type.value_type)
        return lists(elements, counts)

    def _ends(self, route: Route, aggregate: Aggregate, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
        """first and last need no structure: they are the values at the two ends of the window."""
        space = self.store.spaces[route.home]
        rings = space.arena.rings[self.rings(route.mask)]
        at = lo if aggregate.kind == "first" else hi - 1
        offset, capacity = (rings[:, i].reshape(-1, *[1] * (lo.ndim - 1)) for i in (OFFSET, CAPACITY))
        slots = np.where(hi > lo, offset + (at & (capacity - 1)), 0)
        data = space.raw[(route.kind.raw or aggregate.columns)[0]].data
        return data[slots] if data.size else np.zeros(slots.shape, data.dtype)


def _nobody_asks() -> bool:
    return False


def _taken(state: Any, some: slice) -> Any:
    return tuple(each[some] for each in state) if isinstance(state, tuple) else state[some]


def part_of(state: Any, family: str) -> Any:
    """Of what a structure holds: a part. Moments serve who asks for the sum."""
    return state[1] if isinstance(state, tuple) and family == "sum" else state


def in_turn(asked: list[AskedGroup]) -> list[tuple[Mask, Part, list[int]]]:
    """Of what `Request.states` gives one after the other: whose it is, and for which windows."""
    return [(mask, each.group.part, each.windows) for each in asked for mask in each.masks]


def filters_of(routes: Iterable[Route]) -> dict[Mask, list[Mask]]:
    """The masks of queries with a `where`, by the space that their rows lie in."""
    found: dict[Mask, dict[Mask, None]] = {}
    for route in routes:
        if route.mask.where is not None and not route.mask.compared:
            found.setdefault(route.home, {})[route.mask] = None
            found.setdefault(route.presence.home, {})[route.presence] = None
    return {home: list(masks) for home, masks in found.items()}


def asked_parts(plan: Plan, routes: list[Route], which: list[int]) -> list[AskedGroup]:
    """The groups to ask, each for its windows: worked out once for a set of queries. which: the window of each."""
    windows: dict[tuple[Mask, Part, Mask], dict[int, None]] = {}
    for route, window in zip(routes, which, strict=True):
        for part in route.served_by:
            if part.family != "quantile":
                windows.setdefault((route.home, part, route.mask), {})[window] = None
        if route.counted_by is not None and (route.presence.home, route.counted_by) in plan.groups:
            windows.setdefault((route.presence.home, route.counted_by, route.presence), {})[window] = None
    together: dict[tuple[Mask, Part, tuple[int, ...]], list[Mask]] = {}
    for (home, part, mask), own in windows.items():
        together.setdefault((home, part, tuple(own)), []).append(mask)
    every = tuple(range(max(which, default=-1) + 1))
    return [AskedGroup(plan.groups[home, part], masks, list(own), own != every)
            for (home, part, own), masks in together.items()]  # fmt: skip
