"""cov, corr: from the co-moments of two columns."""

from typing import Any

import numpy as np

from swag.query.aggregates import Aggregate, checked_ddof, of
from swag.query.kind import Kind, of_two, register

TINIEST = float(np.finfo(np.float64).tiny)  # smaller numbers have fewer digits


def cov(x: str, y: str, ddof: int = 1) -> Aggregate:
    """The covariance of two columns, over the rows where neither is null.

    >>> import swag as sw
    >>> events = {"ts": [1, 2], "x": [1.0, 2.0], "y": [3.0, 7.0]}
    >>> sw.evaluate(sw.Query(sw.cov("x", "y"), sw.Rows(3), name="a"), events)["a"].to_pylist()
    [None, 2.0]
    """
    return of("cov", x, y, ddof=checked_ddof(ddof))


def corr(x: str, y: str) -> Aggregate:
    """The correlation of two columns (Pearson's), over the rows where neither is null.

    >>> import swag as sw
    >>> events = {"ts": [1, 2], "x": [1.0, 2.0], "y": [1.0, 3.0]}
    >>> sw.evaluate(sw.Query(sw.corr("x", "y"), sw.Rows(3), name="a"), events)["a"][1].as_py() > 0.999
    True
    """
    return of("corr", x, y)


def lower(aggregate: Aggregate, n: np.ndarray, partials: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    _, mean_x, mean_y, xx, yy, xy = partials[0]
    finite, ddof = np.isfinite(mean_x) & np.isfinite(mean_y), aggregate.ddof or 0
    with np.errstate(all="ignore"):
        if aggregate.kind == "cov":
            return np.where(finite, xy / (n - ddof), np.nan), n > ddof
        r = np.clip(xy / (np.sqrt(xx) * np.sqrt(yy)), -1.0, 1.0)
    return np.where(finite & _in_range(xx) & _in_range(yy), r, np.nan), n > 0


def _in_range(squares: np.ndarray) -> np.ndarray:
    """Sums of squares that neither vanish nor overflow. What is left of others says nothing: values beyond 1e154, whose
    squares are infinite, would correlate with nothing."""
    in_range: np.ndarray = (squares >= TINIEST) & (squares < np.inf)
    return in_range


COV = of_two(cov, "COV", most=1) | of_two(cov, "COVAR", "COVAR_SAMP") | of_two(lambda x, y: cov(x, y, 0), "COVAR_POP")
register(Kind("cov", lower, "comoments", columns=(2, 2), options=("ddof",), degrees=(1, 1), statements=COV))
register(Kind("corr", lower, "comoments", columns=(2, 2), degrees=(0, 0), statements=of_two(corr, "CORR")))
