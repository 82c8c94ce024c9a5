"""count: how many rows a window holds. Positions alone say it."""

from typing import Any

import numpy as np

from kernels.windows.wide import ROWS
from swag.errors import BadQuery
from swag.query.aggregates import Aggregate, of
from swag.query.kind import Function, Kind, register


def count(column: str | None = None) -> Aggregate:
    """How many rows; of a column: how many that are not null.

    >>> import swag as sw
    >>> events = {"ts": [1, 2, 3], "x": [5, None, 7]}
    >>> queries = [sw.Query(what, sw.Rows(3)) for what in (sw.count(), sw.count("x"))]
    >>> sw.evaluate(queries, events).to_pylist()[-1]
    {'ts': 3, 'count()[ROWS 3]': 3, 'count(x)[ROWS 3]': 2}
    """
    if isinstance(column, str) and column == "*":
        raise BadQuery('count is given "*", not the name of a column.', "sw.count() counts rows")
    return Aggregate("count") if column is None else of("count", column)


def lower(aggregate: Aggregate, n: np.ndarray, partials: list[Any]) -> tuple[np.ndarray, None]:
    return n, None


register(
    Kind(
        "count",
        lower,
        columns=(0, 1),
        reads="anything",
        answers="counts",
        counts=True,
        lowers=ROWS,
        statements={"COUNT": Function(count, "COUNT(*), or COUNT(x)", star=True)},
    )
)
