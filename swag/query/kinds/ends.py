"""first, last: the value at one end of a window. There is nothing to keep but the column."""

from typing import Any

import numpy as np

from swag.query.aggregates import Aggregate, of
from swag.query.kind import Kind, of_one, register


def first(column: str) -> Aggregate:
    """The oldest value in the window that is not null; of any type.

    >>> import swag as sw
    >>> events = {"ts": [1, 2, 3, 4], "x": ["a", "b", "c", "d"]}
    >>> sw.evaluate(sw.Query(sw.first("x"), sw.Rows(3), name="a"), events)["a"].to_pylist()
    ['a', 'a', 'a', 'b']
    """
    return of("first", column)


def last(column: str) -> Aggregate:
    """The newest value in the window that is not null; of any type.

    >>> import swag as sw
    >>> events = {"ts": [1, 2, 3], "x": ["a", None, "c"]}
    >>> sw.evaluate(sw.Query(sw.last("x"), sw.Rows(3), name="a"), events)["a"].to_pylist()
    ['a', 'a', 'c']
    """
    return of("last", column)


def lower(aggregate: Aggregate, n: np.ndarray, partials: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    """partials: the values at that end."""
    return partials[0], n > 0


for _build, _names in ((first, ("FIRST", "FIRST_VALUE")), (last, ("LAST", "LAST_VALUE"))):
    register(
        Kind(
            _build.__name__,
            lower,
            reads="anything",
            answers="as the column",
            at_ends=True,
            statements=of_one(_build, *_names),
        )
    )
