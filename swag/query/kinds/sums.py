"""sum, mean, and the mean weighted by another column: from running sums."""

from typing import Any

import numpy as np

from kernels.windows.wide import PARTIAL, PER_ROW
from swag.query.aggregates import Aggregate, of
from swag.query.kind import AS_FLOAT, PRODUCT, Function, Kind, Part, of_one, register
from swag.tables import decimals


def sum(column: str) -> Aggregate:
    """The sum: exact for integers; for floats within 1e-12 of the sum of absolute values.

    >>> import swag as sw
    >>> events = {"ts": [1, 2, 3], "x": [4.0, 2.0, 9.0]}
    >>> sw.evaluate(sw.Query(sw.sum("x"), sw.Rows(3), name="a"), events)["a"].to_pylist()
    [4.0, 6.0, 15.0]
    """
    return of("sum", column)


def mean(column: str) -> Aggregate:
    """The mean of the values that are not null.

    >>> import swag as sw
    >>> events = {"ts": [1, 2, 3], "x": [4.0, 2.0, 9.0]}
    >>> sw.evaluate(sw.Query(sw.mean("x"), sw.Rows(3), name="a"), events)["a"].to_pylist()
    [4.0, 3.0, 5.0]
    """
    return of("mean", column)


def wmean(column: str, weight: str) -> Aggregate:
    """The mean of a column weighted by another: VWAP is wmean("price", "volume").

    >>> import swag as sw
    >>> events = {"ts": [1, 2], "x": [10.0, 20.0], "w": [3, 1]}
    >>> sw.evaluate(sw.Query(sw.wmean("x", "w"), sw.Rows(3), name="a"), events)["a"].to_pylist()
    [10.0, 12.5]
    """
    return of("wmean", column, weight)


def lower(aggregate: Aggregate, n: np.ndarray, partials: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    if len(partials) > 1:
        return of_limbs(aggregate, n, partials), n > 0
    if aggregate.kind == "sum":
        return partials[0], n > 0
    with np.errstate(all="ignore"):
        return partials[0] / n, n > 0


def of_limbs(aggregate: Aggregate, n: np.ndarray, limbs: list[np.ndarray]) -> np.ndarray:
    """The answers of decimals of many digits: sums as their words, means as floats."""
    if aggregate.kind == "mean":
        with np.errstate(all="ignore"):
            return decimals.approximate(limbs) / n
    words, fit = decimals.joined(limbs)
    if not (fit | (n == 0)).all():
        raise decimals.too_large(aggregate.columns[0])
    return words


def products_and_weights(aggregate: Aggregate) -> tuple[Part, ...]:
    x, w = aggregate.columns
    return Part("sum", (f"{x}{PRODUCT}{w}",)), Part("sum", (f"{w}{AS_FLOAT}",))


def lower_weighted(aggregate: Aggregate, n: np.ndarray, partials: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    weighted, weights = partials
    with np.errstate(all="ignore"):
        return np.where(weights == 0, np.nan, weighted / weights), n > 0


register(Kind("sum", lower, "sum", answers="sums", degrees=(1,), statements=of_one(sum, "SUM"), lowers=PARTIAL))
register(Kind("mean", lower, "sum", degrees=(1,), statements=of_one(mean, "AVG", "MEAN"), lowers=PER_ROW))
register(
    Kind(
        "wmean",
        lower_weighted,
        parts=products_and_weights,
        columns=(2, 2),
        degrees=(1, 0),
        statements={"WMEAN": Function(wmean, "WMEAN(x, weight)", columns=2)},
    )
)
