"""first_n, last_n: the values at one end of a window, as a list. There is nothing to keep but the column."""

from typing import Any

import numpy as np

from swag.query.aggregates import Aggregate, of
from swag.query.kind import Function, Kind, register


def first_n(column: str, n: int) -> Aggregate:
    """The n oldest values in the window that are not null, oldest first: a list, shorter where there are fewer.

    >>> import swag as sw
    >>> events = {"ts": [1, 2, 3, 4], "x": [1, None, 3, 4]}
    >>> sw.evaluate(sw.Query(sw.first_n("x", 2), sw.Rows(3), name="a"), events)["a"].to_pylist()
    [[1], [1], [1, 3], [3, 4]]
    """
    return of("first_n", column, n=n)


def last_n(column: str, n: int) -> Aggregate:
    """The n newest values in the window that are not null, oldest first: a list, shorter where there are fewer.

    >>> import swag as sw
    >>> events = {"ts": [1, 2, 3, 4], "x": ["a", "b", None, "d"]}
    >>> sw.evaluate(sw.Query(sw.last_n("x", 2), sw.Rows(4), name="a"), events)["a"].to_pylist()
    [['a'], ['a', 'b'], ['a', 'b'], ['b', 'd']]
    """
    return of("last_n", column, n=n)


def lower(aggregate: Aggregate, n: np.ndarray, partials: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    raise NotImplementedError("lists are made of positions: see `span`")


def span(aggregate: Aggregate, lo: np.ndarray, hi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of windows at positions [lo, hi): where the values of their lists begin, and how many there are."""
    counts = np.minimum(hi - lo, aggregate.n or 1)
    return (lo if aggregate.kind == "first_n" else hi - counts), counts


for _build in (first_n, last_n):
    _name = _build.__name__.upper()
    register(
        Kind(
            _build.__name__,
            lower,
            reads="anything",
            answers="lists",
            options=("n",),
            at_ends=True,
            statements={_name: Function(_build, f"{_name}(x, 5)", least=1, most=1, constant="how many")},
        )
    )
