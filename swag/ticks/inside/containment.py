"""Containment at its simplest: a query whose ticks are some of a registered one's reads those, and computes nothing.

    every 10 rows    T1   T2   T3   T4   T5   T6      the registered one
    every 20 rows         T1        T2        T3      the same aggregate, window, filter and grouping: every second one

So continuous queries are answered from continuous views. Slots of time are contained in shorter ones where both are
anchored at the tick: the tuple that stands for a longer slot is known only when that is over.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from swag.query.every import Every
from swag.query.query import Query
from swag.tables.times.durations import is_duration, nanoseconds
from swag.ticks.schedule import TickAnswers
from swag.ticks.ticker import Ticker


@dataclass(frozen=True)
class Contained:
    """`query` answers at every `factor`-th tick of `view`, a query of the ticker with `every`."""

    query: Query
    view: str
    every: Every
    factor: int

    def of(self, answers: TickAnswers, place: int) -> tuple[TickAnswers, np.ndarray]:
        """Its ticks among those of the view, which is at this place; and where it speaks."""
        own = answers.only(np.flatnonzero(answers.speaks[place] & (answers.number % self.factor == 0)))
        return replace(own, number=own.number // self.factor), np.ones(own.number.size, bool)


def contained(query: Query, tickers: Iterable[Ticker]) -> Contained | None:
    """The view that a query can be read from, if there is one. What is of a user's functions is not compared."""
    if query.every is None or query.source is not None:
        return None
    asked = _meaning(query)
    for ticker in tickers:
        factor = multiple(query.every, ticker.every)
        for name, view in ticker.queries.items() if factor > 1 else ():
            if _meaning(view) == asked:
                return Contained(query, name, ticker.every, factor)
    return None


def multiple(every: Every, other: Every) -> int:
    """How many ticks of the other one go into one of this; 0 if its ticks are not all among those."""
    what = ("per_key", "by", "own", "anchor", "by_time")
    if any(getattr(every, each) != getattr(other, each) for each in what):
        return 0
    if every.by_time and (every.anchor != "tick" or is_duration(every.time) != is_duration(other.time)):
        return 0
    long, short = (nanoseconds(e.time) if is_duration(e.time) else e.time or e.rows for e in (every, other))
    return 0 if int(long) % int(short) else int(long) // int(short)  # type: ignore[arg-type,call-overload]


def _meaning(query: Query) -> Query:
    return replace(query, name=None, every=None, index=True, by=None)
