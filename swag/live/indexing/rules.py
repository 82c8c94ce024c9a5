"""All filters of a grouping at once: which keys pass which of hundreds of rules, in a few calls for all of them.

    rules --> families: the same aggregate of the same rows, any windows and thresholds
                an index names candidates for each window of a family, by its most lenient rule, one kernel call
                one lookup of (window, key) pairs, one call per structure; then all thresholds are compared
          --> others: what no index knows, answered over all keys together, block by block

Nothing is done per rule in Python but what was prepared when the rules were first asked together.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kernels.key_filters.thresholds import Answered, Thresholds, passing
from kernels.rings.pairs import PairWindows, taken
from swag.live.answering.composites import guard_of
from swag.live.grouping import Grouping
from swag.live.indexing.bounds import bounds_of, carrier, has_bounds, plain_values
from swag.live.indexing.index_walks import Walks
from swag.query.query import Query
from swag.query.windows import reach

ANSWERS_AT_ONCE = 1 << 20  # so many are looked up at a time where every key is looked at


class Piece(NamedTuple):
    """Rows of answers, in order of rule and key: of which rule (its place among those asked), which key, the value.

    speaks_of: the rules that these would be the rows of, though there may be none of them.
    """

    speaks_of: np.ndarray
    rule: np.ndarray
    ids: np.ndarray
    values: pa.Array


class Family:
    """Rules over one aggregate of the same rows, which an index and a structure answer together.

    A question is what an index and a structure are asked: a window, and the most lenient threshold of the rules that
    have it. It owns what was prepared: the questions, the thresholds of all, and how the index of now is asked.
    """

    def __init__(self, places: list[int], queries: list[Query], unit: str | None, kind: pa.DataType) -> None:
        self.places, self.query = np.array(places), queries[0]
        low, high = bounds_of([query.condition for query in queries], carrier(kind))  # type: ignore[misc]
        lenient: dict[Any, int] = {}
        sides = [(reach(query.window, unit), query.having[0] in (">", ">=")) for query in queries]
        for i, side in enumerate(sides):
            best = lenient.setdefault(side, i)
            if (low[i] < low[best]) if side[1] else (high[i] > high[best]):
                lenient[side] = i
        number = {side: n for n, side in enumerate(lenient)}
        self.thresholds = Thresholds(np.array([number[side] for side in sides]), low, high)
        self.asked = [queries[i] for i in lenient.values()]
        self.windows = windows_of(self.asked, unit)
        self._walks: Walks | None = None

    def candidates(self, grouping: Grouping, at: int) -> tuple[np.ndarray, np.ndarray] | None:
        """(question, key) pairs, in order. None: there is no index for now."""
        index = grouping.filters.index(self.query, at)
        if index is None:
            return None
        if self._walks is None or not self._walks.are_of(index):
            self._walks = Walks(index, [grouping.filters.asked(query) for query in self.asked], self.windows)
        return self._walks.candidates(at)

    def passing(self, question: np.ndarray, values: pa.Array, present: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(rule, pair), in order: which of the answers pass which rules, by their places in the family."""
        plain, valid = plain_values(values, self.thresholds.low.dtype)
        starts = np.searchsorted(question, np.arange(len(self.asked) + 1))
        there = present if valid is None else present & valid
        return passing(Answered(starts, plain, np.ascontiguousarray(there)), self.thresholds)


class Rules:
    """Filters that are asked together. It owns what was prepared for the last ones asked; the rest it reads.

    Asked of it: who passes, at one time. answer: that of the core, for what no index knows.
    """

    def __init__(self, grouping: Grouping, answer: Callable[..., Any]) -> None:
        self.grouping, self._answer = grouping, answer
        self._asked: list[Query] = []
        self._routes: Any = None
        self._families: list[Family] = []
        self._others: list[int] = []

    def passing(self, queries: list[Query], at: int) -> list[Piece]:
        """Who passes, and the answers. Every rule is spoken of by one piece at least."""
        self.grouping.plan.settle()
        self._prepare(queries)
        pieces, others = [], list(self._others)
        for family in self._families:
            found = family.candidates(self.grouping, at)
            if found is None:
                others += family.places.tolist()
            else:
                pieces.append(self._checked(family, *found, at))
        return pieces + list(self._guarded(sorted(others), at))

    # -- preparing ----------------------------------------------------------------------------------------------------

    def _prepare(self, queries: list[Query]) -> None:
        """Rules into families that an index serves, and others; once for as long as rules and plan are the same."""
        routes = self.grouping.plan.routes
        if routes is self._routes and queries == self._asked:
            return
        self._asked, self._routes, self._others = list(queries), routes, []
        families: dict[Any, list[int]] = {}
        for place, query in enumerate(queries):
            if query.is_simple and self._has_index(query):
                route = routes[query.label]
                families.setdefault((query.aggregate, route.mask, route.presence), []).append(place)
            else:
                self._others.append(place)
        clock = self.grouping.store.clock
        assert clock is not None
        self._families = []
        for places in families.values():
            some = [queries[place] for place in places]
            self._families.append(Family(places, some, clock.unit, routes[some[0].label].type))

    def _has_index(self, query: Query) -> bool:
        never = self.grouping.filters.why_never(query)
        return not never and has_bounds(query.condition, self.grouping.plan.routes[query.label].type)

    # -- answering ----------------------------------------------------------------------------------------------------

    def _checked(self, family: Family, question: np.ndarray, ids: np.ndarray, at: int) -> Piece:
        """One lookup for the candidates of all rules of a family."""
        windows = taken(family.windows, question)
        values, present = self.grouping.lookups.of_pairs(family.query, ids, windows, np.array([at]))
        rule, pair = family.passing(question, values, present)
        passed = np.zeros(ids.size, bool)
        passed[pair] = True
        self.grouping.filters.checked(family.query, ids.size, int(np.count_nonzero(passed)))
        return Piece(family.places, family.places[rule], ids[pair], values.take(pa.array(pair)))

    def _guarded(self, places: list[int], at: int) -> Iterator[Piece]:
        """Rules whose candidates an index of a part of them names, each over its own; the others over all keys."""
        whole = []
        for place in places:
            query = self._asked[place]
            guard = None if query.is_simple else guard_of(query)
            found = None if guard is None else self.grouping.filters.candidates(guard, at)
            if found is None:
                whole.append(place)
            else:
                yield from self._answered([place], found, at)
        every = np.arange(self.grouping.store.key_count)
        step = max(1, ANSWERS_AT_ONCE // max(1, len(whole)))
        for begin in range(0, max(1, every.size), step) if whole else ():
            yield from self._answered(whole, every[begin : begin + step], at)

    def _answered(self, places: list[int], ids: np.ndarray, at: int) -> Iterator[Piece]:
        columns, present = self._answer([self._asked[place] for place in places], ids, at)
        for i, place in enumerate(places):
            passed = np.flatnonzero(present[:, i])
            rule = np.full(passed.size, place)
            yield Piece(np.array([place]), rule, ids[passed], columns[i].take(pa.array(passed)))


def windows_of(queries: list[Query], unit: str | None) -> PairWindows:
    reaches = [reach(query.window, unit) for query in queries]
    most = np.iinfo(np.int64).max
    return PairWindows(
        np.array([each.by_time for each in reaches], bool),
        np.array([min(each.far, most) for each in reaches], np.int64),
        np.array([min(each.near, most) for each in reaches], np.int64),
    )
