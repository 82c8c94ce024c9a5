"""count_distinct, mode: which values a window holds, of any type. NaN is one value, and so are -0.0 and 0.0."""

from typing import Any

import numpy as np

from swag.errors import BadQuery
from swag.query.aggregates import Aggregate, of
from swag.query.kind import Kind, of_one, register


def count_distinct(column: str, approx: bool = False) -> Aggregate:
    """How many different values, of those that are not null. SQL: COUNT(DISTINCT x).

    approx: it may be off by about 1.6 %. So it is where an engine keeps no rows to count (`sw.Unbounded`), which takes
    at most 4 kB for a key; any other window is counted exactly, with what is kept for those that ask for that. SQL:
    APPROX_COUNT_DISTINCT(x).

    >>> import swag as sw
    >>> events = {"ts": [1, 2, 3, 4], "user": ["ann", "bob", "ann", None]}
    >>> sw.evaluate(sw.Query(sw.count_distinct("user"), sw.Rows(3), name="a"), events)["a"].to_pylist()
    [1, 2, 2, 2]
    """
    if not isinstance(approx, bool):
        raise BadQuery(f"approx={approx!r} is neither True nor False.", 'sw.count_distinct("x", approx=True)')
    return of("approx_count_distinct" if approx else "count_distinct", column)


def approx_count_distinct(column: str) -> Aggregate:
    return count_distinct(column, approx=True)


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


for _build, _names in (
    (count_distinct, ("COUNT_DISTINCT",)),
    (approx_count_distinct, ("APPROX_COUNT_DISTINCT", "APPROX_DISTINCT")),
):
    register(
        Kind(
            _build.__name__,
            lower_count,
            "distinct",
            reads="anything",
            answers="counts",
            counts=True,
            tells_apart=True,
            statements=of_one(_build, *_names),
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
