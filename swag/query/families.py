"""How an aggregate is answered: which shared structures it reads (its parts), and how their partials become the answer.

    count                   positions alone
    first, last             the value at one end
    sum, mean               "sum"        s
    wmean                   "sum" twice  Σ x·w and Σ w
    var, std                "moments"    n, s, mean, m2          (serves sum and mean of the column too)
    cov, corr               "comoments"  n, mean x, mean y, xx, yy, xy
    min, max                "min", "max" m
    quantile                "quantile"   two neighbours in sorted order, and how far from one to the other
    user-defined            "user"       what they say

Rows that do not count (a null in a column of the aggregate, a `where` that does not hold) are not in the positions.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kernels.operators import monoids
from swag.errors import BadType
from swag.query.aggregates import Aggregate, UserDefined
from swag.query.try_out import try_out
from swag.query.user_calls import calling
from swag.query.user_defined import compiled
from swag.tables.columns import decoded_type, is_discrete, is_number


@dataclass(frozen=True)
class Part:
    """A structure's identity within a set of rows: queries with equal parts share it."""

    family: str
    columns: tuple[str, ...]
    user: UserDefined | None = None

    def __str__(self) -> str:
        return f"{self.family}({', '.join(name.removesuffix(AS_FLOAT) for name in self.columns)})"


PRODUCT = " * "  # a derived column: "price * volume"
AS_FLOAT = " * 1"
TINIEST = float(np.finfo(np.float64).tiny)  # smaller numbers have fewer digits

_FAMILY = {"sum": "sum", "mean": "sum", "var": "moments", "std": "moments", "min": "min", "max": "max"}
_FAMILY |= {"cov": "comoments", "corr": "comoments", "quantile": "quantile", "aggregate": "user"}
_ORDERED = {"min", "max", "quantile"}
_ARITHMETIC = {"sum", "mean", "var", "std", "wmean", "cov", "corr", "aggregate"}


def parts_of(aggregate: Aggregate) -> tuple[Part, ...]:
    if aggregate.kind in ("count", "first", "last"):
        return ()
    if aggregate.kind == "wmean":
        x, w = aggregate.columns
        return Part("sum", (f"{x}{PRODUCT}{w}",)), Part("sum", (f"{w}{AS_FLOAT}",))
    return (Part(_FAMILY[aggregate.kind], aggregate.columns, aggregate.user),)


def operator(part: Part) -> Any:
    """The monoid of a part that has one."""
    if part.user is not None:
        return compiled(part.user)
    return {
        "sum": monoids.Sum,
        "moments": monoids.Moments,
        "comoments": monoids.CoMoments,
        "min": monoids.Min,
        "max": monoids.Max,
    }[part.family]()


def check_columns(aggregate: Aggregate, kinds: dict[str, pa.DataType]) -> None:
    """Refuse an aggregate over columns it can not be computed of."""
    if aggregate.kind in ("count", "first", "last"):  # of any type
        return
    for name in aggregate.columns:
        kind = decoded_type(kinds[name])
        if aggregate.kind in _ARITHMETIC and not is_number(kind):
            raise BadType(
                f'{aggregate} computes with "{name}", a column of type {kind}.', "cast it to float64 or int64"
            )
        if aggregate.kind in _ORDERED and not (is_number(kind) or is_discrete(kind)):
            raise BadType(
                f'{aggregate} reads "{name}", a column of type {kind}, of which it knows no order.',
                "numbers, times and booleans can be compared; sw.first, sw.last and sw.count take any type",
            )
        if aggregate.user is not None:
            try_out(aggregate, kind)


def result_type(aggregate: Aggregate, kinds: dict[str, pa.DataType]) -> pa.DataType:
    """min, max, first, last and quantiles that are elements keep the column's type."""
    if aggregate.kind == "count":
        return pa.int64()
    kind = kinds[aggregate.columns[0]]
    if aggregate.kind in ("min", "max", "first", "last") or aggregate.method == "floor":
        return kind
    if aggregate.kind == "sum" and is_discrete(kind):
        return pa.int64()
    return pa.float64()


def ranks(aggregate: Aggregate, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Quantile: the rank (from 0) of the element in a window of n rows, and how far to go to the next one."""
    phi = aggregate.phi or 0.0
    if aggregate.method == "floor":
        rank = np.maximum(np.floor(phi * n).astype(np.int64), 1) - 1
        return rank, np.zeros(n.shape)
    virtual = np.maximum(n - 1, 0) * phi
    rank = np.floor(virtual).astype(np.int64)
    return rank, virtual - rank


def lower(aggregate: Aggregate, n: np.ndarray, partials: list[Any]) -> tuple[np.ndarray, np.ndarray | None]:
    """Answers of windows that hold n rows each, and which of them are not null (None: all).

    partials: for each part of the aggregate, its array or tuple of arrays. Empty windows hold anything in them.
    """
    kind, some = aggregate.kind, n > 0
    with np.errstate(all="ignore"):
        if kind == "count":
            return n, None
        if kind in ("sum", "mean"):
            state = partials[0]
            s = state[1] if isinstance(state, tuple) else state
            return (s if kind == "sum" else s / n), some
        if kind in ("var", "std"):
            _, _, mean, m2 = partials[0]
            v = m2 / (n - (aggregate.ddof or 0))
            v = np.where(np.isfinite(mean), v, np.nan)
            return (np.sqrt(v) if kind == "std" else v), n > (aggregate.ddof or 0)
        if kind == "wmean":
            weighted, weights = partials
            return np.where(weights == 0, np.nan, weighted / weights), some
        if kind in ("cov", "corr"):
            return _lower_pair(aggregate, n, partials[0])
        if kind == "quantile":
            low, high, fraction = partials[0]
            return (low if aggregate.method == "floor" else interpolate(low, high, fraction)), some
        if kind == "aggregate":
            return _lower_user(aggregate, n, partials[0]), some
    return partials[0], some


def _lower_pair(aggregate: Aggregate, n: np.ndarray, state: Any) -> tuple[np.ndarray, np.ndarray]:
    _, mean_x, mean_y, xx, yy, xy = state
    finite = np.isfinite(mean_x) & np.isfinite(mean_y)
    if aggregate.kind == "cov":
        return np.where(finite, xy / (n - (aggregate.ddof or 0)), np.nan), n > (aggregate.ddof or 0)
    r = np.clip(xy / (np.sqrt(xx) * np.sqrt(yy)), -1.0, 1.0)
    return np.where(finite & _in_range(xx) & _in_range(yy), r, np.nan), n > 0


def _in_range(squares: np.ndarray) -> np.ndarray:
    """Sums of squares that neither vanish nor overflow. What is left of others says nothing: values beyond 1e154, whose
    squares are infinite, would correlate with nothing."""
    in_range: np.ndarray = (squares >= TINIEST) & (squares < np.inf)
    return in_range


def _lower_user(aggregate: Aggregate, n: np.ndarray, state: Any) -> np.ndarray:
    assert aggregate.user is not None
    out = np.empty(n.shape)
    flat = tuple(s.reshape(-1) for s in state) if isinstance(state, tuple) else state.reshape(-1)
    with calling(aggregate, f"{aggregate}: lower"):
        monoids.lower_each(compiled(aggregate.user), n.reshape(-1), flat, out.reshape(-1))
    return out


def interpolate(low: np.ndarray, high: np.ndarray, fraction: np.ndarray) -> np.ndarray:
    """NumPy's linear quantile: exact at both ends, whatever their size; infinite between where one of them is."""
    with np.errstate(all="ignore"):
        step = high.astype(np.float64) - low
        value = np.where(fraction < 0.5, low + step * fraction, high - step * (1 - fraction))
        value = np.where(np.isfinite(step), value, low * (1 - fraction) + high * fraction)
    return np.where((fraction == 0) | (low == high), low.astype(np.float64), value)
