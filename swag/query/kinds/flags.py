"""any, all, count_if: from how many are true, of a column of true and false."""

from typing import Any

import numpy as np

from swag.query.aggregates import Aggregate, of
from swag.query.kind import Kind, of_one, register


def any(column: str) -> Aggregate:
    """Is any value true? Null where none is known. SQL: BOOL_OR.

    >>> import swag as sw
    >>> events = {"ts": [1, 2, 3], "late": [False, True, False]}
    >>> sw.evaluate(sw.Query(sw.any("late"), sw.Rows(2), name="a"), events)["a"].to_pylist()
    [False, True, True]
    """
    return of("any", column)


def all(column: str) -> Aggregate:
    """Are all values true, of those that are known? Null where none is. SQL: BOOL_AND.

    >>> import swag as sw
    >>> events = {"ts": [1, 2, 3], "late": [True, None, False]}
    >>> sw.evaluate(sw.Query(sw.all("late"), sw.Rows(2), name="a"), events)["a"].to_pylist()
    [True, True, False]
    """
    return of("all", column)


def count_if(column: str) -> Aggregate:
    """How many values are true.

    >>> import swag as sw
    >>> events = {"ts": [1, 2, 3], "late": [True, None, True]}
    >>> sw.evaluate(sw.Query(sw.count_if("late"), sw.Rows(2), name="a"), events)["a"].to_pylist()
    [1, 1, 1]
    """
    return of("count_if", column)


def lower(aggregate: Aggregate, n: np.ndarray, partials: list[Any]) -> tuple[np.ndarray, np.ndarray | None]:
    """partials: how many are true. Answers are whole numbers, which booleans are made of."""
    true = np.where(n > 0, partials[0], 0)
    if aggregate.kind == "count_if":
        return true, None
    return (true > 0 if aggregate.kind == "any" else true == n).astype(np.int64), n > 0


ANY, ALL = of_one(any, "BOOL_OR"), of_one(all, "BOOL_AND")
register(Kind("any", lower, "sum", reads="booleans", answers="booleans", statements=ANY))
register(Kind("all", lower, "sum", reads="booleans", answers="booleans", statements=ALL))
COUNT_IF = of_one(count_if, "COUNT_IF", "COUNTIF")
register(Kind("count_if", lower, "sum", reads="booleans", answers="counts", counts=True, statements=COUNT_IF))
