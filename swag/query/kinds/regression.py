"""slope, intercept, r2: the line that fits best, from the co-moments of two columns."""

from typing import Any

import numpy as np

from kernels.operators import regression
from swag.query.aggregates import Aggregate, of
from swag.query.kind import Kind, into_new, of_two, register


def slope(y: str, x: str) -> Aggregate:
    """The slope of the line through (x, y) with the least squares; NaN where x is a constant. SQL: REGR_SLOPE(y, x).

    >>> import swag as sw
    >>> events = {"ts": [1, 2, 3], "x": [0.0, 1.0, 2.0], "y": [1.0, 3.0, 5.0]}
    >>> sw.evaluate(sw.Query(sw.slope("y", "x"), sw.Rows(3), name="a"), events)["a"].to_pylist()
    [nan, 2.0, 2.0]
    """
    return of("slope", y, x)


def intercept(y: str, x: str) -> Aggregate:
    """Where that line is at x = 0; null where x is a constant. SQL: REGR_INTERCEPT(y, x).

    >>> import swag as sw
    >>> events = {"ts": [1, 2, 3], "x": [0.0, 1.0, 2.0], "y": [1.0, 3.0, 5.0]}
    >>> sw.evaluate(sw.Query(sw.intercept("y", "x"), sw.Rows(3), name="a"), events)["a"].to_pylist()
    [None, 1.0, 1.0]
    """
    return of("intercept", y, x)


def r2(y: str, x: str) -> Aggregate:
    """How much of the variance of y that line explains, 0 to 1; null where x is a constant, 1 where y alone is.

    >>> import swag as sw
    >>> events = {"ts": [1, 2, 3], "x": [0.0, 1.0, 2.0], "y": [1.0, 3.0, 5.0]}
    >>> sw.evaluate(sw.Query(sw.r2("y", "x"), sw.Rows(3), name="a"), events)["a"].to_pylist()
    [None, 1.0, 1.0]
    """
    return of("r2", y, x)


MOMENTS = (3, 4, 5)  # the places of yy, xx, xy in a partial


def into(aggregate: Aggregate, n: np.ndarray, partials: list[Any], out: np.ndarray) -> np.ndarray:
    """The columns are y and x: so are the partials, as those of the co-moments of the two."""
    arrays = (np.ascontiguousarray(partials[0][i]).reshape(-1) for i in MOMENTS)
    regression.slopes(*arrays, out.reshape(-1))
    return n > 0


def lower(aggregate: Aggregate, n: np.ndarray, partials: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    """intercept and r2, of the same partials."""
    _, mean_y, mean_x, yy, xx, xy = partials[0]
    with np.errstate(all="ignore"):
        finite = np.isfinite(mean_x) & np.isfinite(mean_y)
        constant = (xx == 0) & finite
        if aggregate.kind == "r2":
            value = np.where(yy == 0, 1.0, np.minimum((xy / xx) * (xy / yy), 1.0))
        else:
            value = mean_y - xy / xx * mean_x
    return np.where(finite & np.isfinite(xx) & np.isfinite(yy), value, np.nan), (n > 0) & ~constant


SLOPE, INTERCEPT, R2 = of_two(slope, "REGR_SLOPE"), of_two(intercept, "REGR_INTERCEPT"), of_two(r2, "REGR_R2")
register(
    Kind("slope", into_new(into), "comoments", columns=(2, 2), degrees=(1, -1), statements=SLOPE, into=into, of=MOMENTS)
)
register(Kind("intercept", lower, "comoments", columns=(2, 2), degrees=(1, 0), statements=INTERCEPT))
register(Kind("r2", lower, "comoments", columns=(2, 2), degrees=(0, 0), statements=R2))
