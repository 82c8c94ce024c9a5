"""var, std: from the moments of a column, which then serve its sum and mean too."""

from typing import Any

import numpy as np

from swag.query.aggregates import Aggregate, checked_ddof, of
from swag.query.kind import Kind, of_one, register


def var(column: str, ddof: int = 1) -> Aggregate:
    """The variance: of a sample (ddof=1), or of all there is (ddof=0).

    >>> import swag as sw
    >>> events = {"ts": [1, 2, 3], "x": [1.0, 2.0, 3.0]}
    >>> sw.evaluate(sw.Query(sw.var("x"), sw.Rows(3), name="a"), events)["a"].to_pylist()
    [None, 0.5, 1.0]
    """
    return of("var", column, ddof=checked_ddof(ddof))


def std(column: str, ddof: int = 1) -> Aggregate:
    """The standard deviation: of a sample (ddof=1), or of all there is (ddof=0).

    >>> import swag as sw
    >>> events = {"ts": [1, 2], "x": [1.0, 3.0]}
    >>> sw.evaluate(sw.Query(sw.std("x", ddof=0), sw.Rows(3), name="a"), events)["a"].to_pylist()
    [0.0, 1.0]
    """
    return of("std", column, ddof=checked_ddof(ddof))


def lower(aggregate: Aggregate, n: np.ndarray, partials: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    _, _, mean, m2 = partials[0]
    ddof = aggregate.ddof or 0
    with np.errstate(all="ignore"):
        v = np.where(np.isfinite(mean), m2 / (n - ddof), np.nan)
        return (np.sqrt(v) if aggregate.kind == "std" else v), n > ddof


VAR = of_one(var, "VAR", most=1) | of_one(var, "VARIANCE", "VAR_SAMP") | of_one(lambda x: var(x, 0), "VAR_POP")
STD = of_one(std, "STD", most=1) | of_one(std, "STDDEV", "STDDEV_SAMP") | of_one(lambda x: std(x, 0), "STDDEV_POP")
register(Kind("var", lower, "moments", options=("ddof",), degrees=(2,), statements=VAR))
register(Kind("std", lower, "moments", options=("ddof",), degrees=(1,), statements=STD))
