"""min, max."""

from typing import Any

import numpy as np

from kernels.windows.wide import PARTIAL
from swag.query.aggregates import Aggregate, of
from swag.query.kind import Kind, of_one, register


def min(column: str) -> Aggregate:
    """The least value; NaN if there is one in the window.

    >>> import swag as sw
    >>> events = {"ts": [1, 2, 3], "x": [4.0, 2.0, 9.0]}
    >>> sw.evaluate(sw.Query(sw.min("x"), sw.Rows(3), name="a"), events)["a"].to_pylist()
    [4.0, 2.0, 2.0]
    """
    return of("min", column)


def max(column: str) -> Aggregate:
    """The greatest value; NaN if there is one in the window.

    >>> import swag as sw
    >>> events = {"ts": [1, 2, 3], "x": [4.0, 2.0, 9.0]}
    >>> sw.evaluate(sw.Query(sw.max("x"), sw.Rows(3), name="a"), events)["a"].to_pylist()
    [4.0, 4.0, 9.0]
    """
    return of("max", column)


def lower(aggregate: Aggregate, n: np.ndarray, partials: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    return partials[0], n > 0


for _build in (min, max):
    register(
        Kind(
            _build.__name__,
            lower,
            family=_build.__name__,
            reads="what has an order",
            answers="as the column",
            statements=of_one(_build, _build.__name__.upper()),
            lowers=PARTIAL,
        )
    )
