"""count_distinct, mode: which values a window holds, of any type. NaN is one value, and so are -0.0 and 0.0."""

from typing import Any

import numpy as np

from swag.query.aggregates import Aggregate, of
from swag.query.kind import Kind, of_one, register


def count_distinct(column: str) -> Aggregate:
    """How many different values, of those that are not null. SQL: COUNT(DISTINCT x).

    >>> import swag as sw
    >>> events = {"ts": [1, 2, 3, 4], "user": ["ann", "bob", "ann", None]}
    >>> sw.evaluate(sw.Query(sw.count_distinct("user"), sw.Rows(3), name="a"), events)["a"].to_pylist()
    [1, 2, 2, 2]
    """
    return of("count_distinct", column)


def mode(column: str) -> Aggregate:
    """The most frequent value; of several such, the one that comes first in the window.

    >>> import swag as sw
    >>> events = {"ts": [1, 2, 3, 4], "user": ["ann", "bob", "bob", "ann"]}
    >>> sw.evaluate(sw.Query(sw.mode("user"), sw.Rows(4), name="a"), events)["a"].to_pylist()
    ['ann', 'ann', 'bob', 'ann']
    """
    return of("mode", column)


def lower_count(aggregate: Aggregate, n: np.ndarray, partials: list[Any]) -> tuple[np.ndarray, None]:
    return np.where(n > 0, partials[0], 0), None


def lower_mode(aggregate: Aggregate, n: np.ndarray, partials: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    return partials[0], n > 0


register(
    Kind(
        "count_distinct",
        lower_count,
        "distinct",
        reads="anything",
        answers="counts",
        counts=True,
        tells_apart=True,
        statements=of_one(count_distinct, "COUNT_DISTINCT"),
    )
)
register(
    Kind(
        "mode",
        lower_mode,
        "mode",
        reads="anything",
        answers="as the column",
        tells_apart=True,
        statements=of_one(mode, "MODE"),
    )
)
