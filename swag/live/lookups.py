"""Lookups: windows to positions once, structures once per group, then one column per query."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from kernels.rings.pairs import PairWindows
from kernels.rings.timeline import CAPACITY, OFFSET
from kernels.windows import running
from swag.errors import SumOverflow
from swag.live import window_edges
from swag.live.plan import Plan, Route
from swag.live.planner import Group
from swag.live.ranking.sorted_runs import SortedRuns
from swag.live.space import Mask
from swag.live.store import EVERY_EVENT, Store
from swag.query.aggregates import Aggregate
from swag.query.kind import Now, Part
from swag.query.kinds.lists import span
from swag.query.kinds.quantiles import interpolate, ranks_of
from swag.query.query import Query
from swag.query.windows import Reach, Unbounded, reach
from swag.tables.columns import to_arrow
from swag.tables.lists import lists, ranges

AskedParts = dict[tuple[Mask, Part], list[int]]  # the windows for which a part of some rows is asked
NOBODY = np.zeros((0, 0), bool)
MOST_EDGES = 1 << 20  # that are worked out at once
Edges = tuple[np.ndarray, np.ndarray]  # lo, hi: one row per key, one column per window


class Lookups:
    """Answers of simple queries, from the structures of a plan. It owns nothing; it reads the store and the plan.

    Asked of it: ids for keys, a column per query for ids at one instant (`at`) or each at its own (`each`).
    """

    def __init__(self, store: Store, plan: Plan) -> None:
        self.store, self.plan = store, plan

    def ids(self, key: Any, name: str | None) -> np.ndarray:
        """The ids of all keys, or of one (none if it was never seen)."""
        if key is None or self.store.keys is None or name is None:
            return np.arange(self.store.key_count)
        one = self.store.keys.one(key, name)
        if one is None:  # a value that no key can have
            return np.zeros(0, np.int64)
        found = self.store.keys.find(one, name)
        return found[found >= 0]

    def at(self, queries: list[Query], ids: np.ndarray, instant: int) -> tuple[list[pa.Array], np.ndarray, Any]:
        """A column per query, which keys have an event in each window, and the first (key, query) cut short."""
        rest = self._answered_from_rows(queries)
        if rest is not queries:
            columns, present, short = self.at(rest, ids, instant) if rest else ([], NOBODY, None)
            short = short if short is None else (short[0], queries.index(rest[short[1]]))
            return *self._with_totals(queries, (rest, columns, present), ids, np.full(ids.size, instant)), short
        windows, which = self._windows(queries)
        lo, hi, short = window_edges.edges(self.store, ids, windows, instant)
        columns, present = self._columns(queries, which, ids, (lo, hi), instant)
        if short is None and instant < self.store.time.now:
            gone = window_edges.reaches_forgotten(self.store, windows, instant)
            return columns, present, None if gone is None else (None, which.index(gone))
        return columns, present, None if short is None else (short[0], which.index(short[1]))

    def each(
        self, queries: list[Query], ids: np.ndarray, instants: np.ndarray, seen: np.ndarray | None = None
    ) -> tuple[list[pa.Array], np.ndarray, np.ndarray]:
        """A column per query, for every (key, instant) one answer; which of them have an event in the window, and
        which one that `where` may not count. seen: only the rows before these positions."""
        rest = self._answered_from_rows(queries)
        if rest is not queries:
            columns, present, _ = self.each(rest, ids, instants, seen) if rest else ([], NOBODY, NOBODY)
            asked = seen - 1 if self.plan.totals.by_position and seen is not None else instants
            columns, present = self._with_totals(queries, (rest, columns, present), ids, asked)
            held = present if seen is None else np.repeat(seen[:, None] > 0, len(queries), axis=1)
            return columns, present, held
        windows, which = self._windows(queries)
        lo, hi = window_edges.edges_each(self.store, ids, windows, instants, seen)
        columns, present = self._columns(queries, which, ids, (lo, hi), instants)
        return columns, present, (hi > lo)[:, which]

    def of_pairs(
        self, query: Query, ids: np.ndarray, windows: PairWindows, instants: np.ndarray
    ) -> tuple[pa.Array, np.ndarray]:
        """The answers of one query over other windows than its own, a key, a window and a time for each; and which have
        an event in the window. instants: of each, or one for all."""
        return self.over(query, ids, *window_edges.edges_of_pairs(self.store, ids, windows, instants), instants)

    def over(
        self, query: Query, ids: np.ndarray, lo: np.ndarray, hi: np.ndarray, instants: np.ndarray | None = None
    ) -> tuple[pa.Array, np.ndarray]:
        """The same over positions [lo, hi) of the main space. instants: where answers depend on when they are asked."""
        columns, present = self._columns([query], [0], ids, (lo[:, None], hi[:, None]), instants)
        return columns[0], present[:, 0]

    def _answered_from_rows(self, queries: list[Query]) -> list[Query]:
        """Those whose windows are not unbounded; the same list if none is."""
        if not self.plan.totals.totals:
            return queries
        rest = [query for query in queries if not isinstance(query.window, Unbounded)]
        return queries if len(rest) == len(queries) else rest

    def _with_totals(
        self, queries: list[Query], known: tuple[list[Query], list[pa.Array], np.ndarray], ids: np.ndarray,
        instants: np.ndarray,
    ) -> tuple[list[pa.Array], np.ndarray]:  # fmt: skip
        """The answers of all, where those that are not unbounded are known."""
        rest, columns, present = known
        unbounded = [query for query in queries if isinstance(query.window, Unbounded)]
        more, there = self.plan.totals.answer(unbounded, ids, instants)
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
        self.plan.settle()
        one = Request(self, ids, edges, instants)
        routes, ranked = [], False
        for query in queries:
            routes.append(self.plan.routes[query.label])
            ranked |= query.aggregate.kind == "quantile"
        one.locate(dict.fromkeys(route.presence for route in routes))
        columns, present = [], np.empty((ids.size, len(queries)), bool)
        partials = one.fetched(asked_parts(zip(routes, which, strict=True)))
        if ranked:
            partials |= one.quantiles([query.aggregate for query in queries], routes, which)
        for i, (query, route, w) in enumerate(zip(queries, routes, which, strict=True)):
            a, b = one.edges(route.presence)
            present[:, i] = b[:, w] > a[:, w]
            columns.append(one.column(query.aggregate, route, w, partials))
        return columns, present


class Request:
    """Some keys, and the edges of windows in every space they are needed in. It owns these edges.

    Asked of it: the edges in a space, and what structures hold of the windows. instants: when they are asked for, all
    at one time, or each at its own.
    """

    def __init__(self, lookups: Lookups, ids: np.ndarray, edges: Edges, instants: Any = None) -> None:
        self._instants = instants
        self.store, self.plan, self.ids, self._edges = lookups.store, lookups.plan, ids, {EVERY_EVENT: edges}
        self._rings = {EVERY_EVENT: ids}

    def edges(self, mask: Mask) -> Edges:
        if mask not in self._edges:
            lo, hi = self._edges[EVERY_EVENT]
            self._edges[mask] = self.store.spaces[mask.home].to_positions(self.rings(mask), lo, hi)
        return self._edges[mask]

    def rings(self, mask: Mask) -> np.ndarray:
        """In the space of a mask: where the rows of the keys lie."""
        if mask not in self._rings:
            self._rings[mask] = self.store.spaces[mask.home].located(mask, self.ids)
        return self._rings[mask]

    def locate(self, masks: Iterable[Mask]) -> None:
        """The rings and edges of many filters at once: two calls of kernels for all that lie in one space."""
        lo, hi = self._edges[EVERY_EVENT]
        some: dict[Mask, list[Mask]] = {}
        for mask in masks:
            if mask.where is not None and mask not in self._rings:
                some.setdefault(mask.home, []).append(mask)
        for home, own in some.items():
            if len(own) * lo.size > MOST_EDGES:
                continue  # one after the other, as they are asked for
            space, each = self.store.spaces[home], self.ids.size
            rings = space.located_each(own, self.ids)
            starts, ends = space.to_positions(rings, np.tile(lo, (len(own), 1)), np.tile(hi, (len(own), 1)))
            for i, mask in enumerate(own):
                rows = slice(i * each, (i + 1) * each)
                self._rings[mask], self._edges[mask] = rings[rows], (starts[rows], ends[rows])

    def states(self, asked: AskedParts) -> dict[tuple[Mask, Part], Any]:
        """Ask each group once, for all windows of its queries: arrays of a row per key and a column per window."""
        self.locate(dict.fromkeys(mask for mask, _ in asked))
        together: dict[Any, list[Mask]] = {}
        for (mask, part), windows in asked.items():
            together.setdefault((mask.home, part, tuple(windows)), []).append(mask)
        found: dict[tuple[Mask, Part], Any] = {}
        for (home, part, windows), masks in together.items():
            found |= self._states_of(self.plan.groups[home, part], masks, list(windows))
        return {of: found[of] for of in asked}

    def _states_of(self, group: Group, masks: list[Mask], windows: list[int]) -> dict[tuple[Mask, Part], Any]:
        """Of filters that ask for the same windows: one lookup for all of them."""
        edges = [self._chosen(mask, windows) for mask in masks]
        if len(masks) == 1:
            lo, hi, rings = *edges[0], self.rings(masks[0])
        else:
            lo, hi = (np.concatenate(each) for each in zip(*edges, strict=True))
            rings = np.concatenate([self.rings(mask) for mask in masks])
        state, size, part = group.lookup(rings, lo, hi), edges[0][0].size, group.part
        found: dict[tuple[Mask, Part], Any] = {}
        for i, (mask, own) in enumerate(zip(masks, edges, strict=True)):
            some = _taken(state, slice(i * size, (i + 1) * size)) if len(masks) > 1 else state
            if part.columns[0] in self.plan.largest:
                some = self._without_overflow(part, mask, *own, some)
            shape = own[0].shape
            found[mask, part] = (
                tuple(each.reshape(shape) for each in some) if isinstance(some, tuple) else some.reshape(shape)
            )
        return found

    def _chosen(self, mask: Mask, windows: list[int]) -> Edges:
        """The edges of some windows, as kernels take them."""
        lo, hi = self.edges(mask)
        if len(windows) < lo.shape[1] or windows != list(range(len(windows))):
            lo, hi = lo[:, windows], hi[:, windows]
        return np.ascontiguousarray(lo), np.ascontiguousarray(hi)

    def fetched(self, asked: AskedParts) -> dict[Any, Any]:
        """The same, by (mask, part, window)."""
        found = {}
        for (mask, part), state in self.states(asked).items():
            for i, w in enumerate(asked[mask, part]):
                own = tuple(each[:, i] for each in state) if isinstance(state, tuple) else state[:, i]
                found[mask, part, w] = own
                if part.family == "moments":  # which serve who asks for the sum
                    found[mask, Part("sum", part.columns), w] = own[1]
        return found

    def column(self, aggregate: Aggregate, route: Route, w: int, partials: dict[Any, Any]) -> pa.Array:
        mask, kind = route.mask, route.type
        if route.parts is None:  # registered later, and nothing has come since
            nothing = pa.nulls(self.ids.size, kind)
            return nothing.fill_null(0) if route.kind.counts else nothing
        lo, hi = self.edges(mask)
        lo, hi = lo[:, w], hi[:, w]
        if route.kind.answers == "lists":
            return self._lists(route, aggregate, lo, hi)
        own: list[Any]
        if route.kind.at_ends:
            own = [self.ends(route, aggregate, lo, hi)]
        elif aggregate.kind == "quantile":
            return to_arrow(partials[mask, aggregate, w], hi > lo, kind)
        else:
            own = [partials[mask, part, w] for part in route.parts]
        if route.kind.timed:
            own.append(self._now)
        values, valid = route.kind.lower(aggregate, hi - lo, own)
        if route.kind.answers != "as the column":
            return to_arrow(values, valid, kind)
        return self._elements(aggregate.columns[0], values, valid, kind)

    def _elements(self, name: str, values: np.ndarray, valid: np.ndarray | None, kind: pa.DataType) -> pa.Array:
        """Values of a column; of text there are numbers, which the dictionary knows."""
        words = self.store.dictionary
        if name not in words.tables:
            return to_arrow(values, valid, kind)
        return words.values(name, values, np.ones(values.size, bool) if valid is None else valid)

    @property
    def _now(self) -> Now:
        assert self._instants is not None and self.store.clock is not None
        return Now(self._instants, self.store.clock.unit)

    def _lists(self, route: Route, aggregate: Aggregate, lo: np.ndarray, hi: np.ndarray) -> pa.Array:
        """The values at one end of each window, as lists."""
        first, counts = span(aggregate, lo, np.maximum(lo, hi))
        space = self.store.spaces[route.mask.home]
        rings = np.repeat(space.arena.rings[self.rings(route.mask)], counts, axis=0)
        slots = rings[:, OFFSET] + (ranges(first, counts) & (rings[:, CAPACITY] - 1))
        name = aggregate.columns[0]
        return lists(self._elements(name, space.raw[name].data[slots], None, route.type.value_type), counts)

    def ends(self, route: Route, aggregate: Aggregate, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
        """first and last need no structure: they are the values at the two ends of the window."""
        space = self.store.spaces[route.mask.home]
        rings = space.arena.rings[self.rings(route.mask)]
        at = lo if aggregate.kind == "first" else hi - 1
        offset, capacity = (rings[:, i].reshape(-1, *[1] * (lo.ndim - 1)) for i in (OFFSET, CAPACITY))
        slots = np.where(hi > lo, offset + (at & (capacity - 1)), 0)
        data = space.raw[(route.kind.raw or aggregate.columns)[0]].data
        return data[slots] if data.size else np.zeros(slots.shape, data.dtype)

    def quantiles(self, aggregates: list[Aggregate], routes: list[Route], which: list[int]) -> dict[Any, Any]:
        """The answers of those that are quantiles, by (mask, aggregate, window).

        All of a column at once, key by key: the runs of a key are in the cache for its second window, which is found
        in a third of the time then, where there are many keys.
        """
        asked: dict[tuple[Mask, Part, bool], dict[tuple[Aggregate, int], None]] = {}
        for aggregate, route, w in zip(aggregates, routes, which, strict=True):
            if aggregate.kind == "quantile" and route.parts is not None:
                asked.setdefault((route.mask, route.parts[0], aggregate.method == "linear"), {})[aggregate, w] = None
        found: dict[Any, Any] = {}
        for (mask, part, linear), some in asked.items():
            answers = self._quantiles(mask, part, linear, list(some))
            found |= {(mask, *of): answers[:, i] for i, of in enumerate(some)}
        return found

    def _quantiles(self, mask: Mask, part: Part, linear: bool, some: list[tuple[Aggregate, int]]) -> np.ndarray:
        """One column for each."""
        structure = self.plan.groups[mask.home, part].structure
        assert isinstance(structure, SortedRuns)
        lo, hi = self._chosen(mask, [w for _, w in some])
        rank, fraction = ranks_of(np.array([of.phi for of, _ in some]), some[0][0].method, hi - lo)
        low, high = structure.select(self.rings(mask), lo, hi, rank, linear)
        return interpolate(low, high, fraction) if linear else low

    def _without_overflow(self, part: Part, mask: Mask, lo: np.ndarray, hi: np.ndarray, state: Any) -> Any:
        """Integers wrap, and come back; unless the window's own sum is too large: of that, only the mean is known."""
        if part.family not in ("sum", "moments"):
            return state
        most = int((hi - lo).max(initial=0))
        if most * self.plan.largest[part.columns[0]] < 2**63:
            return state
        space = self.store.spaces[mask.home]
        about = np.empty(lo.size)
        values, own = space.raw[part.columns[0]].data, self.rings(mask)
        running.add_up_each(values, space.arena.rings, own, (lo, hi), about)
        exact = state[1] if isinstance(state, tuple) else state
        wrapped = (np.abs(about - exact) > 2.0**62) & (hi > lo).reshape(-1)
        if not wrapped.any():
            return state
        if self.plan.sums_asked(mask, part):
            value = about[wrapped][0]
            raise SumOverflow(
                f'a window of "{part.columns[0]}" sums to about {value:.3g}, which does not fit int64.',
                "cast the column to float64",
            )
        floats = np.where(wrapped, about, exact)
        return (state[0], floats, *state[2:]) if isinstance(state, tuple) else floats


def _taken(state: Any, some: slice) -> Any:
    return tuple(each[some] for each in state) if isinstance(state, tuple) else state[some]


def asked_parts(routes: Iterable[tuple[Route, int]]) -> AskedParts:
    """The groups to ask, each for its windows: worked out once for a set of queries."""
    asked: dict[tuple[Mask, Part], dict[int, None]] = {}
    for route, window in routes:
        for part in route.served_by:
            if part.family != "quantile":
                asked.setdefault((route.mask, part), {})[window] = None
    return {of: list(windows) for of, windows in asked.items()}
