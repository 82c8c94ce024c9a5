"""quantile, median: from the two neighbours in sorted order that a rank falls between."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from swag.query.aggregates import Aggregate, check_quantile, of
from swag.query.kind import Function, Kind, of_one, register


def quantile(column: str, phi: float, method: str = "floor") -> Aggregate:
    """The element at position max(1, floor(phi N)) of the sorted window; method="linear" is NumPy's default.

    >>> import swag as sw
    >>> events = {"ts": [1, 2, 3], "x": [5.0, 1.0, 3.0]}
    >>> sw.evaluate(sw.Query(sw.quantile("x", 0.9), sw.Rows(3), name="a"), events)["a"].to_pylist()
    [5.0, 1.0, 3.0]
    """
    check_quantile(phi, method)
    return of("quantile", column, phi=float(phi), method=method)


def median(column: str) -> Aggregate:
    """The middle of the sorted window, or the mean of the two in the middle.

    >>> import swag as sw
    >>> events = {"ts": [1, 2, 3], "x": [5.0, 1.0, 3.0]}
    >>> sw.evaluate(sw.Query(sw.median("x"), sw.Rows(3), name="a"), events)["a"].to_pylist()
    [5.0, 3.0, 3.0]
    """
    return replace(of("quantile", column, phi=0.5, method="linear"), name=f"median({column})")


class Neighbours(NamedTuple):
    """The elements that a rank falls between, and how far from one to the other. whole: they are times, and so is what
    lies between two of them: whole units of the column, rounded down."""

    low: np.ndarray
    high: np.ndarray
    fraction: np.ndarray
    whole: bool = False

    @property
    def between(self) -> np.ndarray:
        return (interpolate_whole if self.whole else interpolate)(self.low, self.high, self.fraction)


def lower(aggregate: Aggregate, n: np.ndarray, partials: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    """partials: one, of the neighbours of each window's rank."""
    found = Neighbours(*partials[0])
    return (found.low if aggregate.method == "floor" else found.between), n > 0


def ranks(aggregate: Aggregate, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Quantile: the rank (from 0) of the element in a window of n rows, and how far to go to the next one."""
    return ranks_of(aggregate.phi or 0.0, aggregate.method, n)


def ranks_of(phi: Any, method: str | None, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same for one fraction, or for several at once."""
    if method == "floor":
        rank = np.maximum(np.floor(phi * n).astype(np.int64), 1) - 1
        return rank, np.zeros(n.shape)
    virtual = np.maximum(n - 1, 0) * phi
    rank = np.floor(virtual).astype(np.int64)
    return rank, virtual - rank


def interpolate(low: np.ndarray, high: np.ndarray, fraction: np.ndarray) -> np.ndarray:
    """NumPy's linear quantile: exact at both ends, whatever their size; infinite between where one of them is."""
    with np.errstate(all="ignore"):
        step = high.astype(np.float64) - low
        value = np.where(fraction < 0.5, low + step * fraction, high - step * (1 - fraction))
        value = np.where(np.isfinite(step), value, low * (1 - fraction) + high * fraction)
    return np.where((fraction == 0) | (low == high), low.astype(np.float64), value)


def interpolate_whole(low: np.ndarray, high: np.ndarray, fraction: np.ndarray) -> np.ndarray:
    """The same of int64, exactly: a float can not hold nanoseconds since 1970."""
    step = high - low
    return np.asarray(low + np.floor(step * fraction).astype(np.int64))


register(
    Kind(
        "quantile",
        lower,
        "quantile",
        reads="numbers and times",
        options=("phi", "method"),
        degrees=(1,),
        statements=of_one(median, "MEDIAN")
        | {"QUANTILE": Function(quantile, "QUANTILE(x, 0.99), or QUANTILE(x, 0.99, 'linear')", least=1, most=2)},
    )
)
