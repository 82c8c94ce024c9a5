"""Queries over expressions in the engine: what they are computed from is kept once, for as long as anyone needs it."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from swag.live.plan import Plan
from swag.query.lowering import lower, nothing, simple_ones
from swag.query.query import Query
from swag.tables.columns import one_chunk


class Shared:
    """The simple queries in the plan, counted by who needs them: that count is all it owns."""

    def __init__(self) -> None:
        self.needed: Counter[str] = Counter()

    def add(self, queries: Iterable[Query]) -> list[Query]:
        """Those that the plan has to take up."""
        new = []
        for each in simple_ones(queries):
            if self.needed[each.label] == 0:
                new.append(each)
            self.needed[each.label] += 1
        return new

    def remove(self, query: Query) -> list[Query]:
        """Those that nobody needs any more."""
        gone = []
        for each in simple_ones([query]):
            self.needed[each.label] -= 1
            if self.needed[each.label] == 0:
                del self.needed[each.label]
                gone.append(each)
        return gone

    def complete_since(self, queries: list[Query], plan: Plan) -> dict[str, Any]:
        """A query is complete when all that it is computed from is."""
        parts = {query.label: simple_ones([query]) for query in queries}
        since = plan.late.complete_since({each.label: each for some in parts.values() for each in some}.values())
        found = {}
        for label, simple in parts.items():
            times = [since[each.label] for each in simple if since[each.label] is not None]
            found[label] = max(times, default=None)
        return found


def answering(queries: list[Query]) -> list[Query]:
    """The simple queries to look up for these, each once."""
    if all(query.is_simple for query in queries):
        return queries
    parts = [[query] if query.is_simple else lower(query).answered for query in queries]
    return list(dict.fromkeys(each for some in parts for each in some))


def combine(
    queries: list[Query], simple: list[Query], columns: list[pa.Array], present: np.ndarray
) -> tuple[list[pa.Array], np.ndarray]:
    """From the answers of simple queries to those of all; `present`: a key is in the answer, and passes `having`."""
    if simple is not queries:
        answers, there = dict(zip(simple, columns, strict=True)), dict(zip(simple, present.T, strict=True))
        columns, present = [], np.empty((present.shape[0], len(queries)), bool)
    for i, query in enumerate(queries):
        if query.is_simple:
            if simple is not queries:
                columns.append(answers[query])
                present[:, i] = there[query]
            if query.condition is not None:
                present[:, i] &= query.condition.holds(columns[i])
            continue
        lowered = lower(query)
        present[:, i] = np.any([there[each] for each in lowered.presence], axis=0)
        passing = lowered.passing(answers, present[:, i])
        if passing is not None:
            present[:, i] &= passing
        columns.append(one_chunk(lowered.value(answers, present[:, i])))
    return columns, present


def guard_of(query: Query) -> Query | None:
    """The query whose index names the keys that may pass `having`."""
    if query.having is None:
        return None
    return query if query.is_simple else lower(query).guard


def answer_before_events(query: Query) -> Any:
    """The answer before the first event."""
    if query.having is not None:
        return None
    return nothing(query)[0].as_py() if query.is_simple else lower(query).answer_before_events()
