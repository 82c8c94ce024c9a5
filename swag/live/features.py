"""All features of some keys in one call: what is the same for every call is worked out once for the queries.

queries --> windows, each once | blocks: queries that differ in their windows alone | the rest
ids     --> edges of all windows, one kernel | partials, one kernel per structure | blocks, into one array
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swag.live.composites import answer_before_events
from swag.live.core import Core
from swag.live.lookups import Request, asked_parts
from swag.live.plan import Route
from swag.live.space import Mask
from swag.live.window_edges import lengths_of
from swag.query.aggregates import Aggregate
from swag.query.kind import Part
from swag.query.query import Query
from swag.query.windows import Reach, reach


@dataclass(frozen=True, eq=False)
class Block:
    """Queries that differ in their windows alone. some: which of all windows (None: all of them, in order); columns:
    where their answers go; parts: of what they are computed, each as (who serves it, family, which of its windows)."""

    route: Route
    aggregate: Aggregate
    some: np.ndarray | None
    columns: np.ndarray
    parts: list[tuple[tuple[Mask, Part], str, Any]]


class FeaturePlan:
    """Queries of one core, as they are answered for some keys. It owns what follows from the queries alone, and is made
    anew when those of the core have changed (`fits`).

    Asked of it: answers as words in an array, and those that are no words as columns.
    """

    def __init__(self, core: Core, queries: list[Query]) -> None:
        self.core, self.queries = core, queries
        core.plan.settle()
        self._version, self._clock = core.plan.version, core.time.clock
        self.kinds: list[pa.DataType] = [pa.null()] * len(queries)
        self.others: list[int] = []  # places of queries that are answered one by one
        places: dict[Any, list[int]] = {}
        windows: dict[Reach, int] = {}
        self._counts: list[int] = []
        self._windows: list[Reach] = []
        if core.time.clock is None:
            return
        unit = core.time.clock.unit
        for i, query in enumerate(queries):
            route = core.plan.routes.get(query.label)
            if route is None or not self._is_direct(query, route):
                self.others.append(i)
                continue
            of = query.aggregate
            self.kinds[i] = route.type
            windows.setdefault(reach(query.window, unit), len(windows))
            places.setdefault((route.mask, of.kind, of.columns, of.ddof, of.user), []).append(i)
        self._windows = list(windows)
        self._lengths = lengths_of(self._windows)
        titles = {reach(query.window, unit): query.title for query in queries if query.is_simple}
        self._titles = [titles[window] for window in self._windows]
        which = {i: windows[reach(query.window, unit)] for i, query in enumerate(queries) if i not in self.others}
        routes = [(core.plan.routes[queries[i].label], w) for i, w in which.items()]
        self._asked = asked_parts(routes)
        self._asked_windows = {(mask, each.part): each.windows for each in self._asked for mask in each.masks}
        self._blocks = [self._block(some, [which[i] for i in some]) for some in places.values()]
        self._counts = [i for i in which if queries[i].aggregate.kind == "count"]

    def fits(self) -> bool:
        return self._version == self.core.plan.version and self._clock is self.core.time.clock

    def _is_direct(self, query: Query, route: Route) -> bool:
        """Is it one aggregate over one window, whose answer is a number in a word?"""
        if not query.is_simple or query.having is not None or route.parts is None:
            return False
        words = self.core.dictionary.tables
        return query.aggregate.kind != "quantile" and not any(name in words for name in query.aggregate.columns)

    def _block(self, places: list[int], which: list[int]) -> Block:
        first = self.queries[places[0]]
        route = self.core.plan.routes[first.label]
        parts = []
        for part, by in zip(route.parts or (), route.served_by, strict=True):
            asked = self._asked_windows[route.mask, by]
            own = slice(None) if asked == which else np.array([asked.index(w) for w in which])
            parts.append(((route.mask, by), part.family, own))
        some = None if which == list(range(len(self._windows))) else np.array(which)
        return Block(route, first.aggregate, some, np.array(places), parts)

    def answer(self, ids: np.ndarray, instants: np.ndarray | int) -> tuple[np.ndarray, np.ndarray, dict[int, Any]]:
        """Words and which are not null, a row of them for each query; and the columns of the others, by their places.

        ids: -1 for keys that are not known, whose answers are null, and 0 where something is counted. instants: one for
        all, or one for each.
        """
        values, valid = np.zeros((len(self.queries), ids.size), np.int64), np.zeros((len(self.queries), ids.size), bool)
        others: dict[int, Any] = {}
        known = np.flatnonzero(ids >= 0)
        each = instants if isinstance(instants, int) else instants[known]
        if known.size and self._windows:
            everywhere = known.size == ids.size
            self._fill(ids if everywhere else ids[known], each, None if everywhere else known, values, valid)
        valid[self._counts] = True
        if self.others:
            others = self._answer_others(ids, known, each)
        return values, valid, others

    def _fill(self, ids: np.ndarray, instants: Any, rows: Any, values: np.ndarray, valid: np.ndarray) -> None:
        request = Request(
            self.core.grouping.lookups, ids, self.core.edges(ids, self._windows, self._lengths, instants, self._titles)
        )
        states = request.states(self._asked)
        for block in self._blocks:
            found, there = self._lowered(request, block, states)
            words = found if found.dtype == np.int64 else np.ascontiguousarray(found, np.float64).view(np.int64)
            at = block.columns if rows is None else (block.columns[:, None], rows)
            values[at] = words.T
            valid[at] = True if there is None else there.T

    def _lowered(self, request: Request, block: Block, states: dict[Any, Any]) -> tuple[np.ndarray, Any]:
        """The answers of a block, a row per key."""
        lo, hi = request.edges(block.route.mask)
        if block.some is not None:
            lo, hi = lo[:, block.some], hi[:, block.some]
        if block.aggregate.kind in ("first", "last"):
            own: list[Any] = [request.ends(block.route.mask, block.aggregate, lo, hi)]
        else:
            own = [_part(states[of], family, which) for of, family, which in block.parts]
        return block.route.kind.lower(block.aggregate, hi - lo, own)

    def _answer_others(self, ids: np.ndarray, known: np.ndarray, instants: Any) -> dict[int, Any]:
        """One column per query: text, quantiles, expressions, and what has a `having`."""
        queries = [self.queries[i] for i in self.others]
        if isinstance(instants, int):
            columns, present = self.core.answer(queries, ids[known], instants)
        else:
            columns, present = self.core.answer_each(queries, ids[known], instants)
        place = np.full(ids.size, -1)
        place[known] = np.arange(known.size)
        taken = pa.array(place, mask=place < 0)
        found = {}
        for i, query, column, passes in zip(self.others, queries, columns, present.T, strict=True):
            if query.having is not None:
                column = pc.if_else(pa.array(passes), column, pa.scalar(None, column.type))
            empty = answer_before_events(query)
            column = column.take(taken)
            found[i] = (
                column if empty is None else pc.if_else(pa.array(place < 0), pa.scalar(empty, column.type), column)
            )
        return found


def _part(state: Any, family: str, which: Any) -> Any:
    """Of what a structure holds, as a row per key: a part of some windows. Moments serve who asks for the sum."""
    if isinstance(state, tuple):
        return state[1][:, which] if family == "sum" else tuple(each[:, which] for each in state)
    return state[:, which]
