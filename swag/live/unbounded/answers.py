"""From what is kept of rows, key by key, to the answers of aggregates."""

from typing import Any

import numpy as np

from swag.errors import SumOverflow
from swag.live.unbounded.accumulators import Accumulator, Folded, IntegerTotal
from swag.query.aggregates import Aggregate
from swag.query.families import lower
from swag.query.kind import KINDS, Now
from swag.query.kinds.lists import span
from swag.query.user_calls import failed
from swag.tables.decimals import unwrapped
from swag.tables.lists import ranges


def lowered(
    title: str, aggregate: Aggregate, n: np.ndarray, made: list[Accumulator], now: Now | None = None,
    widens: bool = False,
) -> tuple[np.ndarray, np.ndarray | None]:  # fmt: skip
    """The answers of an aggregate, of n rows each, and which are not null (None: all). title: who asks, as messages
    have it; now: and when; widens: sums have two words each, where one is not enough. Raises where a user's function
    did, or where a sum is too large."""
    if widens and aggregate.kind == "sum" and isinstance(made[0], IntegerTotal) and made[0].wrapped.any():
        return unwrapped(made[0].partial(), made[0].about, n, aggregate.columns[0]), n > 0
    partials = [_partial(title, aggregate, each) for each in made]
    return lower(aggregate, n, [*partials, now] if KINDS[aggregate.kind].timed else partials)


def in_lists(aggregate: Aggregate, n: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The values of lists, one behind the other, and how many each has. ends: row i of each is at place i % n."""
    first, counts = span(aggregate, np.zeros_like(n), n)
    return ends[np.repeat(np.arange(n.size), counts), ranges(first, counts) % (aggregate.n or 1)], counts


def _partial(title: str, aggregate: Aggregate, of: Accumulator) -> Any:
    if isinstance(of, Folded) and of.failed is not None:
        raise failed(f'query "{title}": lift or combine', of.failed) from of.failed
    if isinstance(of, IntegerTotal) and of.wrapped.any():
        if aggregate.kind == "sum":
            raise SumOverflow(
                f'query "{title}" sums to about {of.about[of.wrapped][0]:.3g}, which does not fit int64.',
                "cast the column to float64",
            )
        return np.where(of.wrapped, of.about, of.partial())
    return of.partial()
