"""What: aggregates as frozen values. `sw.sum("volume")` says what is wanted; families.py says how it is answered."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from swag.arguments import LARGEST, check_name, is_number, is_option, is_whole
from swag.errors import BadQuery
from swag.query.expression import Operators


@dataclass(frozen=True)
class UserDefined:
    """The functions of a user-defined aggregate, compiled when they are first needed."""

    lift: Callable[..., Any]
    combine: Callable[..., Any]
    lower: Callable[..., Any]
    identity: Any
    invert: Callable[..., Any] | None
    number: int = field(default_factory=itertools.count().__next__)


@dataclass(frozen=True)
class Aggregate(Operators):
    """An aggregate of no, one or two columns. Equal aggregates are one aggregate, whoever asks.

    `.over(window)` and `.filter(predicate)` give it its own; arithmetic and comparisons make expressions of several.
    """

    kind: str
    columns: tuple[str, ...] = ()
    ddof: int | None = None
    phi: float | None = None
    method: str | None = None
    user: UserDefined | None = None
    name: str | None = field(default=None, compare=False)

    def alias(self, name: str) -> "Aggregate":
        """The same aggregate under another name."""
        check_name(name, "alias", 'sw.sum("volume").alias("traded")')
        return replace(self, name=name)

    def __str__(self) -> str:
        if self.name is not None:
            return self.name
        options = list(self.columns)
        if self.kind == "quantile":
            options += [f"{self.phi:g}"] + ([f"method={self.method}"] if self.method != "floor" else [])
        if self.ddof not in (None, 1):
            options.append(f"ddof={self.ddof}")
        return f"{self.kind}({', '.join(options)})"


def _of(kind: str, *columns: Any, **options: Any) -> Aggregate:
    for column in columns:
        if not isinstance(column, str) or not column:
            raise BadQuery(f"{kind} is given {column!r}, not the name of a column.", f'sw.{kind}("price")')
    return Aggregate(kind, tuple(columns), **options)


def count(column: str | None = None) -> Aggregate:
    """How many rows; of a column: how many that are not null."""
    return Aggregate("count") if column is None else _of("count", column)


def sum(column: str) -> Aggregate:
    """Exact for integers; for floats within 1e-12 of the sum of absolute values."""
    return _of("sum", column)


def mean(column: str) -> Aggregate:
    return _of("mean", column)


def min(column: str) -> Aggregate:
    return _of("min", column)


def max(column: str) -> Aggregate:
    return _of("max", column)


def first(column: str) -> Aggregate:
    """The oldest value in the window that is not null."""
    return _of("first", column)


def last(column: str) -> Aggregate:
    """The newest value in the window that is not null."""
    return _of("last", column)


def var(column: str, ddof: int = 1) -> Aggregate:
    return _of("var", column, ddof=_ddof(ddof))


def std(column: str, ddof: int = 1) -> Aggregate:
    return _of("std", column, ddof=_ddof(ddof))


def wmean(column: str, weight: str) -> Aggregate:
    """The mean of a column weighted by another: VWAP is wmean("price", "volume")."""
    return _of("wmean", column, weight)


def cov(x: str, y: str, ddof: int = 1) -> Aggregate:
    return _of("cov", x, y, ddof=_ddof(ddof))


def corr(x: str, y: str) -> Aggregate:
    return _of("corr", x, y)


def quantile(column: str, phi: float, method: str = "floor") -> Aggregate:
    """The element at position max(1, floor(phi N)) of the sorted window; method="linear" is NumPy's default."""
    if not is_option(method, ("floor", "linear")):
        raise BadQuery(f'method={method!r} is neither "floor" nor "linear".', 'sw.quantile("x", 0.5, method="linear")')
    if not is_number(phi) or not 0 <= phi <= 1 or (phi == 0 and method == "floor"):
        fractions = "(0, 1]" if method == "floor" else "[0, 1]"
        raise BadQuery(f"quantile takes a fraction in {fractions}, not {phi!r}.", 'sw.quantile("x", 0.99)')
    return _of("quantile", column, phi=float(phi), method=method)


def median(column: str) -> Aggregate:
    return replace(_of("quantile", column, phi=0.5, method="linear"), name=f"median({column})")


def aggregate(
    column: str,
    lift: Callable[..., Any],
    combine: Callable[..., Any],
    lower: Callable[..., Any],
    identity: Any,
    invert: Callable[..., Any] | None = None,
) -> Aggregate:
    """A user-defined aggregate: lower(combine(lift(x1), combine(lift(x2), …))) of a window, in stream order.

    lift takes a value to a partial (a number, or a tuple of numbers shaped like `identity`), combine puts two partials
    together (associative; need not commute), lower gives the answer. invert(a, b), where there is one, takes b off the
    beginning of a. Plain functions are compiled with Numba; functions that are jitted already are taken as they are.

    x is an int where the column holds integers, else a float; whole numbers in `identity` are int64, others float64.
    What a function raises is a BadFunction: of the batch if it was lift, else of the lookup.
    """
    for what, function in (("lift", lift), ("combine", combine), ("lower", lower), ("invert", invert)):
        if not callable(function) and not (what == "invert" and function is None):
            raise BadQuery(f"{what}={function!r} is not a function.", "sw.aggregate(column, lift=lambda x: x, …)")
    parts = identity if isinstance(identity, tuple) else (identity,)
    if not parts or not all(isinstance(part, int | float | np.integer) for part in parts):
        raise BadQuery(
            f"identity={identity!r} is neither a number nor a tuple of numbers.", "identity=0.0, or (0, 0.0)"
        )
    if not all(isinstance(part, float) or -(2**63) <= part < 2**63 for part in parts):
        raise BadQuery(f"identity={identity!r} does not fit int64.", "identity=0.0 computes with floats")
    user = UserDefined(lift, combine, lower, identity, invert)
    name = getattr(lower, "__name__", "aggregate")
    label = "aggregate" if name == "<lambda>" else name
    return replace(_of("aggregate", column, user=user), name=f"{label}({column})")


def _ddof(ddof: Any) -> int:
    if not is_whole(ddof) or not 0 <= ddof <= LARGEST:
        raise BadQuery(f"ddof={ddof!r} is not a whole number >= 0.", "ddof=1 (sample) or ddof=0 (population)")
    return int(ddof)
