"""skew, kurtosis: from the first four moments of a column."""

from typing import Any

import numpy as np

from kernels.operators import shape
from swag.query.aggregates import Aggregate, of
from swag.query.kind import Kind, of_one, register


def skew(column: str) -> Aggregate:
    """The skewness of a sample (as DuckDB's SKEWNESS): null of fewer than 3 values, and of a constant.

    >>> import swag as sw
    >>> events = {"ts": [1, 2, 3, 4], "x": [1.0, 2.0, 3.0, 10.0]}
    >>> sw.evaluate(sw.Query(sw.skew("x"), sw.Rows(4), name="a"), events)["a"].to_pylist()[1:3]
    [None, 0.0]
    """
    return of("skew", column)


def kurtosis(column: str) -> Aggregate:
    """The excess kurtosis of a sample (as DuckDB's KURTOSIS): null of fewer than 4 values, and of a constant.

    >>> import swag as sw
    >>> events = {"ts": [1, 2, 3, 4], "x": [1.0, -1.0, 1.0, -1.0]}
    >>> round(sw.evaluate(sw.Query(sw.kurtosis("x"), sw.Rows(4), name="a"), events)["a"][3].as_py(), 9)
    -6.0
    """
    return of("kurtosis", column)


def lower(aggregate: Aggregate, n: np.ndarray, partials: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    _, _, m2, m3, m4 = partials[0]
    out, skewed = np.empty(n.shape), aggregate.kind == "skew"
    arrays = (np.ascontiguousarray(each).reshape(-1) for each in (n, m2, m3 if skewed else m4))
    with np.errstate(all="ignore"):
        (shape.skewness if skewed else shape.excess_kurtosis)(*arrays, out.reshape(-1))
    return out, (n >= (3 if skewed else 4)) & (m2 != 0)


register(Kind("skew", lower, "shape", degrees=(0,), statements=of_one(skew, "SKEWNESS", "SKEW")))
register(Kind("kurtosis", lower, "shape", degrees=(0,), statements=of_one(kurtosis, "KURTOSIS")))
