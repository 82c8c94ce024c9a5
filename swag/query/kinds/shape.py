"""skew, kurtosis: from the first three, or four, moments of a column."""

from typing import Any

import numpy as np

from kernels.operators import shape
from swag.query.aggregates import Aggregate, of
from swag.query.kind import Kind, into_new, of_one, register


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


def into(aggregate: Aggregate, n: np.ndarray, partials: list[Any], out: np.ndarray) -> np.ndarray | None:
    m2, highest = partials[0][2], partials[0][-1]
    skewed = aggregate.kind == "skew"
    arrays = (np.ascontiguousarray(each).reshape(-1) for each in (n, m2, highest))
    with np.errstate(all="ignore"):
        nulls = (shape.skewness if skewed else shape.excess_kurtosis)(*arrays, out.reshape(-1))
    return (n >= (3 if skewed else 4)) & (m2 != 0) if nulls else None


SKEW, KURTOSIS = of_one(skew, "SKEWNESS", "SKEW"), of_one(kurtosis, "KURTOSIS")
register(Kind("skew", into_new(into), "skew", degrees=(0,), statements=SKEW, into=into, of=(2, 3)))
register(Kind("kurtosis", into_new(into), "shape", degrees=(0,), statements=KURTOSIS, into=into, of=(2, 4)))
