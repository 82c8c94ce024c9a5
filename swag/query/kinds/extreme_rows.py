"""arg_max, arg_min: the value of one column in the row where another is largest, or smallest."""

from typing import Any

import numpy as np

from swag.query.aggregates import Aggregate, of
from swag.query.kind import Kind, of_two, register


def arg_max(column: str, by: str) -> Aggregate:
    """The value, of any type, in the first row where `by` is largest, of rows where neither is null. A NaN is.

    >>> import swag as sw
    >>> events = {"ts": [1, 2, 3], "side": ["buy", "sell", "buy"], "volume": [5, 9, 7]}
    >>> sw.evaluate(sw.Query(sw.arg_max("side", "volume"), sw.Rows(3), name="a"), events)["a"].to_pylist()
    ['buy', 'sell', 'sell']
    """
    return of("arg_max", column, by)


def arg_min(column: str, by: str) -> Aggregate:
    """The value, of any type, in the first row where `by` is smallest, of rows where neither is null. A NaN is.

    >>> import swag as sw
    >>> events = {"ts": [1, 2, 3], "side": ["buy", "sell", "buy"], "volume": [5, 9, 7]}
    >>> sw.evaluate(sw.Query(sw.arg_min("side", "volume"), sw.Rows(2), name="a"), events)["a"].to_pylist()
    ['buy', 'buy', 'buy']
    """
    return of("arg_min", column, by)


def lower(aggregate: Aggregate, n: np.ndarray, partials: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    return partials[0][0], n > 0


for _build, _names in ((arg_max, ("ARG_MAX", "MAX_BY", "ARGMAX")), (arg_min, ("ARG_MIN", "MIN_BY", "ARGMIN"))):
    register(
        Kind(
            _build.__name__,
            lower,
            family=_build.__name__,
            columns=(2, 2),
            reads=("anything", "what has an order"),
            answers="as the column",
            statements=of_two(_build, *_names),
        )
    )
