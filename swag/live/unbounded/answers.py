"""From what is kept of rows, key by key, to the answers of aggregates."""

from typing import Any

import numpy as np

from swag.errors import SumOverflow
from swag.live.unbounded.accumulators import Accumulator, Folded, IntegerTotal
from swag.query.aggregates import Aggregate
from swag.query.families import lower
from swag.query.user_calls import failed


def lowered(
    title: str, aggregate: Aggregate, n: np.ndarray, made: list[Accumulator]
) -> tuple[np.ndarray, np.ndarray | None]:
    """The answers of an aggregate, of n rows each, and which are not null (None: all). title: who asks, as messages
    have it. Raises where a user's function did, or where a sum is too large."""
    return lower(aggregate, n, [_partial(title, aggregate, each) for each in made])


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
