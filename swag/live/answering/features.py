"""All features of some keys in one call: what is the same for every call is worked out once for the queries.

queries --> windows, each once | blocks: queries that differ in their windows alone | the rest
ids     --> edges of all windows, one kernel | partials, one kernel per structure | blocks, into one array
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kernels.windows import wide
from swag.live.answering.composites import answer_before_events
from swag.live.answering.lookups import Request, asked_parts, filters_of, in_turn, part_of
from swag.live.core import Core
from swag.live.structures.routes import Route
from swag.live.window_edges import lengths_of
from swag.query.aggregates import Aggregate
from swag.query.query import Query
from swag.query.windows import Reach, reach
from swag.tables.decimals import is_wide
from swag.tables.wide_rows import Page

NO_PARTIAL = np.zeros((0, 0), np.int64)  # of what positions alone say
ALL_ROWS = np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class Block:
    """Queries that differ in their windows alone. some: which of all windows; slots: the places of their answers;
    parts: of what they are computed, each as (its state, family, which of its windows); by_kernel: does one lower them?
    """

    route: Route
    aggregate: Aggregate
    some: np.ndarray
    slots: slice
    parts: list[tuple[int, str, np.ndarray]]
    is_float: bool
    by_kernel: bool


class FeaturePlan:
    """Queries of one core, as they are answered for some keys. It owns what follows from the queries alone, and is made
    anew when those of the core have changed (`fits`).

    Asked of it: answers as words (`direct`: the places of their queries, slot by slot), and those that are no words
    (`others`) as columns.
    """

    def __init__(self, core: Core, queries: list[Query]) -> None:
        self.core, self.queries = core, queries
        core.plan.settle()
        self._version, self._clock = core.plan.version, core.time.clock
        self.direct: list[int] = []
        self.others: list[int] = []
        self._blocks: list[Block] = []
        self._windows: list[Reach] = []
        if core.time.clock is None:
            return
        unit = core.time.clock.unit
        alike: dict[Any, list[int]] = {}
        for i, query in enumerate(queries):
            route = core.plan.routes.get(query.label)
            if route is None or not self._is_direct(query, route):
                self.others.append(i)
                continue
            of = query.aggregate
            alike.setdefault((route.mask, of.kind, of.columns, of.ddof, of.user), []).append(i)
        windows: dict[Reach, int] = {}
        direct = [i for places in alike.values() for i in places]
        which = {i: windows.setdefault(reach(queries[i].window, unit), len(windows)) for i in direct}
        titles = {w: queries[i].title for i, w in which.items()}
        self._windows, self._titles = list(windows), [titles[w] for w in range(len(windows))]
        of_calendar = any(window.since is not None for window in self._windows)
        self._lengths = None if of_calendar else lengths_of(self._windows)
        routes = [self.route(i) for i in which]
        self._asked, self._filters = asked_parts(core.plan, routes, list(which.values())), filters_of(routes)
        for places in alike.values():
            self._blocks.append(self._block(places, [which[i] for i in places]))
            self.direct += places

    def route(self, place: int) -> Route:
        return self.core.plan.routes[self.queries[place].label]

    def fits(self) -> bool:
        return self._version == self.core.plan.version and self._clock is self.core.time.clock

    def _is_direct(self, query: Query, route: Route) -> bool:
        """Is it one aggregate over one window, whose answer is a number in a word?"""
        if not query.is_simple or query.having is not None or route.parts is None:
            return False
        if route.kind.timed or route.kind.answers == "lists" or pa.types.is_decimal(route.type):
            return False
        words, types = self.core.dictionary.tables, self.core.dictionary.types
        plain = not any(name in words or is_wide(types.get(name, pa.null())) for name in query.aggregate.columns)
        return query.aggregate.kind != "quantile" and plain

    def _block(self, places: list[int], which: list[int]) -> Block:
        """A block of queries that differ in their windows alone, by their places; which: the window of each."""
        route, parts = self.route(places[0]), []
        states = {(mask, part): (i, asked) for i, (mask, part, asked) in enumerate(in_turn(self._asked))}
        for part, by in zip(route.parts or (), route.served_by, strict=False):
            state, asked = states[route.mask, by]
            parts.append((state, part.family, np.array([asked.index(w) for w in which])))
        slots = slice(len(self.direct), len(self.direct) + len(places))
        aggregate, is_float = self.queries[places[0]].aggregate, pa.types.is_floating(route.type)
        by_kernel = route.kind.lowers is not None and route.unit == 1
        return Block(route, aggregate, np.array(which), slots, parts, is_float, by_kernel)

    def answer(self, ids: np.ndarray, instants: np.ndarray | int, out: Page) -> dict[int, Any]:
        """out: a row for each slot. Returns the columns of the others.

        ids: -1 for keys that are not known, whose answers are null, and 0 where something is counted. instants: one for
        all, or one for each.
        """
        known = None
        if (ids[0] if ids.size == 1 else ids.min(initial=0)) < 0:
            known = np.flatnonzero(ids >= 0)
            self._fill_empty(*out)
            instants = instants if isinstance(instants, int) else instants[known]
        if self._windows and (known is None or known.size):
            self._fill(ids if known is None else ids[known], instants, known, out)
        if not self.others:
            return {}
        return self._answer_others(ids, np.arange(ids.size) if known is None else known, instants)

    def _fill_empty(self, values: np.ndarray, valid: np.ndarray) -> None:
        """What is known of a key that nothing is known of."""
        values[:], valid[:] = 0, False
        for block in self._blocks:
            valid[block.slots] = block.route.kind.counts

    def _fill(self, ids: np.ndarray, instants: Any, rows: np.ndarray | None, out: Page) -> None:
        """rows: those of these keys, None: all."""
        edges = self.core.edges(ids, self._windows, self._lengths, instants, self._titles)
        request = Request(self.core.grouping.lookups, ids, edges)
        request.locate(self._filters)
        states = request.states(self._asked)
        for block in self._blocks:
            own = [(part_of(states[state], family), which) for state, family, which in block.parts]
            page = Page(out.values.view(np.float64) if block.is_float else out.values, out.valid).of(block.slots)
            if block.by_kernel:
                partial, places = own[0] if own else (NO_PARTIAL, block.some)
                how, own_rows = block.route.kind.lowers, ALL_ROWS if rows is None else rows
                wide.lower(how, request.edges(block.route.mask), block.some, partial, places, own_rows, tuple(page))
            else:
                found, there = self._lowered(block, request, own)
                at: Any = slice(None) if rows is None else rows
                page.values[:, at] = found.T
                page.valid[:, at] = True if there is None else there.T

    def _lowered(self, block: Block, request: Request, partials: list[Any]) -> tuple[np.ndarray, np.ndarray | None]:
        """The answers of a block that NumPy makes of its partials, a row per key."""
        lo, hi = (edge[:, block.some] for edge in request.edges(block.route.mask))
        own = [tuple(each[:, which] for each in state) if isinstance(state, tuple) else state[:, which]
               for state, which in partials]  # fmt: skip
        return request.lowered(block.aggregate, block.route, lo, hi, own)

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
