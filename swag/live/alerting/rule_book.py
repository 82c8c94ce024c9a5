"""The rules of a grouping that alerts are about: their numbers, and in which families they are looked at."""

from collections.abc import Callable, Iterable
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kernels.key_filters import watching
from swag.live.alerting.judging import ComposedRules, SimpleRules, kind_of
from swag.live.grouping import Grouping
from swag.live.indexing.bounds import has_bounds
from swag.query.kind import KINDS
from swag.query.query import Query
from swag.tables.answers import one_of_each

NONE = np.zeros(0, np.int64)
Judge = SimpleRules | ComposedRules


class AskedRules(NamedTuple):
    """About rules that are asked for together."""

    place: np.ndarray  # by the number of a rule: its place among them, or -1
    kinds: dict[str, pa.DataType]  # of their answers, each with one rule that answers so


class RuleBook:
    """It owns the numbers of rules, by which bits and queue know them, and follows the plan with their families.

    kinds: what events that leave can do to each (kernels/key_filters/watching.py); a rule of another kind than before
    is to be looked at as if it were new. They are as of the last `follow`.
    """

    def __init__(self, grouping: Grouping, answer: Callable[..., Any], answer_each: Callable[..., Any]) -> None:
        """answer, answer_each: those of the core."""
        self._grouping, self._answer, self._each = grouping, answer, answer_each
        self.rules: dict[int, Query] = {}
        self._taken = 0  # all numbers below are
        self.numbers: dict[str, int] = {}
        self.born: dict[int, int] = {}  # when they were registered
        self.judges: list[Judge] = []
        self.judge_of = NONE  # by number: the place of its judge
        self.born_at = NONE  # by number: `born`
        self.kinds: dict[int, int] = {}
        self._routes: Any = None  # of the plan, when it was last followed
        self._over_sums: dict[Any, list[int]] = {}
        self._growing: set[int] = set()
        self._asked: tuple[list[str], AskedRules] | None = None

    def add(self, queries: Iterable[Query], now: int) -> None:
        free = (number for number in count(self._taken) if number not in self.rules)
        for query in queries:
            number = next(free)
            self._taken = number + 1
            self.rules[number], self.numbers[query.label], self.born[number] = query, number, now
            self._routes = None

    def remove(self, name: str) -> int | None:
        """The number that it had; None: it is no rule."""
        number = self.numbers.pop(name, None)
        if number is not None:
            del self.rules[number], self.born[number]
            self._taken, self._routes = min(self._taken, number), None
        return number

    def asked(self, names: list[str]) -> AskedRules:
        """About these; as long as rules are the same, worked out once."""
        if self._asked is None or self._asked[0] != names:
            place = np.full(max(self.rules, default=0) + 1, -1)
            place[[self.numbers[name] for name in names]] = np.arange(len(names))
            self._asked = names, AskedRules(place, one_of_each(self._types(names)))
        return self._asked[1]

    # -- families -----------------------------------------------------------------------------------------------------

    def follow(self) -> None:
        """Rules in families, as the plan has them now."""
        self._grouping.plan.settle()
        routes = self._grouping.plan.routes
        if self._routes is not routes:
            self._over_sums = self._sums()
        filters, now = self._grouping.filters, self._grouping.store.now
        growing = {
            number
            for numbers in self._over_sums.values()
            if filters.index(self.rules[numbers[0]], now) is not None
            for number in numbers
        }
        if self._routes is not routes or self._growing != growing:
            self._routes, self._growing = routes, growing
            self.judges = self.judges_of(list(self.rules))
            self.judge_of, self.born_at = np.zeros((2, max(self.rules, default=-1) + 1), np.int64)
            self.born_at[list(self.born)] = list(self.born.values())
            for place, judge in enumerate(self.judges):
                self.judge_of[judge.numbers] = place
            self.kinds, self._asked = self._kinds(), None

    def _sums(self) -> dict[Any, list[int]]:
        """The rules over sums that an index may serve, by it. As long as there is one, no value is negative."""
        filters = self._grouping.filters
        found: dict[Any, list[int]] = {}
        for number, query in self.rules.items():
            if query.is_simple and query.aggregate.kind == "sum" and not filters.why_never(query):
                found.setdefault(filters.key(query), []).append(number)
        return found

    def judges_of(self, numbers: list[int]) -> list[Judge]:
        """Rules by their numbers, in families to be judged: simple ones by aggregate and rows, the others together."""
        routes = self._routes
        families: dict[Any, list[int]] = {}
        composed = []
        for number in numbers:
            query = self.rules[number]
            if self._is_simple(query, routes):
                route = routes[query.label]
                families.setdefault((query.aggregate, route.mask, route.presence), []).append(number)
            else:
                composed.append(number)
        judges: list[Judge] = []
        for some in families.values():
            queries = [self.rules[number] for number in some]
            judges.append(SimpleRules(some, queries, self._grouping, [number in self._growing for number in some]))
        if composed:
            queries = [self.rules[number] for number in composed]
            judges.append(ComposedRules(composed, queries, self._grouping, self._answer, self._each))
        return judges

    def _is_simple(self, query: Query, routes: Any) -> bool:
        timed = query.is_simple and KINDS[query.aggregate.kind].timed
        return query.is_simple and not timed and has_bounds(query.condition, routes[query.label].type)

    def _types(self, names: list[str]) -> dict[str, pa.DataType]:
        """Of the answers of some rules."""
        queries = [self.rules[self.numbers[name]] for name in names]
        composed = [query for query in queries if not self._is_simple(query, self._routes)]
        columns = self._answer(composed, NONE, self._grouping.store.now)[0]
        found = {query.label: column.type for query, column in zip(composed, columns, strict=True)}
        return {name: found[name] if name in found else self._routes[name].type for name in names}

    def _kinds(self) -> dict[int, int]:
        clock = self._grouping.store.clock
        assert clock is not None
        return {
            number: kind_of(query, clock.unit, number in self._growing)
            if self._is_simple(query, self._routes) else watching.GENERAL
            for number, query in self.rules.items()
        }  # fmt: skip

    # -- state --------------------------------------------------------------------------------------------------------

    def state(self, kinds: dict[int, int]) -> dict[str, Any]:
        """By name the number, since when, and of which kind it was when last looked at: whoever registered them knows
        the rest."""
        return {name: [n, int(self.born[n]), kinds.get(n)] for name, n in self.numbers.items()}

    def restore(self, saved: dict[str, Any]) -> dict[int, int]:
        """The rules have been added. Returns the kinds that they were of."""
        queries = {name: self.rules[number] for name, number in self.numbers.items()}
        if saved.keys() != queries.keys():
            raise ValueError(f"rules {list(saved)} were saved, of queries {list(queries)}")
        self.numbers = {name: number for name, (number, _, _) in saved.items()}
        self.rules = {number: queries[name] for name, number in self.numbers.items()}
        self.born = {number: born for number, born, _ in saved.values()}
        self._routes = None
        return {number: kind for number, _, kind in saved.values() if kind is not None}
