"""What: aggregates as frozen values. `sw.sum("volume")` says what is wanted; families.py says how it is answered."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from swag.arguments import LARGEST, check_name, is_number, is_option, is_whole
from swag.errors import BadQuery, nearest
from swag.query.as_call import shown
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


ARITY = {  # how many columns each kind is of, at least and at most
    **dict.fromkeys(("sum", "mean", "min", "max", "first", "last", "var", "std", "quantile", "aggregate"), (1, 1)),
    **dict.fromkeys(("wmean", "cov", "corr"), (2, 2)),
    "count": (0, 1),
}


@dataclass(frozen=True)
class Aggregate(Operators):
    """An aggregate of no, one or two columns. Equal aggregates are one aggregate, whoever asks.

    `.over(window)` and `.filter(predicate)` give it its own; arithmetic and comparisons make expressions of several.
    They are made by functions: sw.sum, sw.mean, …

    >>> import swag as sw
    >>> sw.sum("volume")
    sw.sum("volume")
    >>> sw.sum("volume") == sw.Aggregate("sum", ("volume",))
    True
    >>> str(sw.mean("price").alias("average"))
    'average'
    """

    kind: str
    columns: tuple[str, ...] = ()
    ddof: int | None = None
    phi: float | None = None
    method: str | None = None
    user: UserDefined | None = None
    name: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        least, most = ARITY.get(self.kind, (0, -1)) if isinstance(self.kind, str) else (0, -1)
        if most < 0:
            close = nearest(self.kind, list(ARITY)) if isinstance(self.kind, str) else ""
            raise BadQuery(f"{self.kind!r} is no aggregate.", close or f"one of {', '.join(ARITY)}")
        names = isinstance(self.columns, tuple) and all(isinstance(each, str) and each for each in self.columns)
        if not names or not least <= len(self.columns) <= most:
            raise BadQuery(f"{self.kind} is not an aggregate of the columns {self.columns!r}.", f"sw.{self.kind}(…)")
        self._check_options()

    def _check_options(self) -> None:
        """An option is there exactly where the kind has it, and is what the functions below would have made of it."""
        options = {"ddof": ("var", "std", "cov"), "phi": ("quantile",), "method": ("quantile",), "user": ("aggregate",)}
        for option, kinds in options.items():
            if (getattr(self, option) is not None) != (self.kind in kinds):
                wrong = "needs" if self.kind in kinds else "has no"
                raise BadQuery(f"{self.kind} {wrong} {option}.", f"sw.{self.kind}(…)")
        if self.ddof is not None:
            _ddof(self.ddof)
        if self.method is not None:
            _check_quantile(self.phi, self.method)
        if self.user is not None and not isinstance(self.user, UserDefined):
            raise BadQuery(f"user={self.user!r} are no functions.", "sw.aggregate(…)")
        if self.name is not None:
            check_name(self.name, "name", 'sw.sum("volume").alias("traded")')

    def alias(self, name: str) -> "Aggregate":
        """The same aggregate under another name."""
        check_name(name, "alias", 'sw.sum("volume").alias("traded")')
        return replace(self, name=name)

    def __repr__(self) -> str:
        if self.kind == "quantile" and self.name == f"median({self.columns[0]})":
            return f"sw.median({shown(self.columns[0])})"
        given = [shown(name) for name in self.columns]
        if self.kind == "quantile":
            given += [shown(self.phi)] + [f"method={shown(self.method)}"] * (self.method != "floor")
        given += [f"ddof={self.ddof}"] * (self.ddof not in (None, 1))
        given += ["…"] * (self.user is not None)
        alias = "" if self.name is None or self.user is not None else f".alias({shown(self.name)})"
        return f"sw.{self.kind}({', '.join(given)}){alias}"

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
    """How many rows; of a column: how many that are not null.

    >>> import swag as sw
    >>> events = {"ts": [1, 2, 3], "x": [5, None, 7]}
    >>> queries = [sw.Query(what, sw.Rows(3)) for what in (sw.count(), sw.count("x"))]
    >>> sw.evaluate(queries, events).to_pylist()[-1]
    {'ts': 3, 'count()[ROWS 3]': 3, 'count(x)[ROWS 3]': 2}
    """
    return Aggregate("count") if column is None else _of("count", column)


def sum(column: str) -> Aggregate:
    """The sum: exact for integers; for floats within 1e-12 of the sum of absolute values.

    >>> import swag as sw
    >>> events = {"ts": [1, 2, 3], "x": [4.0, 2.0, 9.0]}
    >>> sw.evaluate(sw.Query(sw.sum("x"), sw.Rows(3), name="a"), events)["a"].to_pylist()
    [4.0, 6.0, 15.0]
    """
    return _of("sum", column)


def mean(column: str) -> Aggregate:
    """The mean of the values that are not null.

    >>> import swag as sw
    >>> events = {"ts": [1, 2, 3], "x": [4.0, 2.0, 9.0]}
    >>> sw.evaluate(sw.Query(sw.mean("x"), sw.Rows(3), name="a"), events)["a"].to_pylist()
    [4.0, 3.0, 5.0]
    """
    return _of("mean", column)


def min(column: str) -> Aggregate:
    """The least value; NaN if there is one in the window.

    >>> import swag as sw
    >>> events = {"ts": [1, 2, 3], "x": [4.0, 2.0, 9.0]}
    >>> sw.evaluate(sw.Query(sw.min("x"), sw.Rows(3), name="a"), events)["a"].to_pylist()
    [4.0, 2.0, 2.0]
    """
    return _of("min", column)


def max(column: str) -> Aggregate:
    """The greatest value; NaN if there is one in the window.

    >>> import swag as sw
    >>> events = {"ts": [1, 2, 3], "x": [4.0, 2.0, 9.0]}
    >>> sw.evaluate(sw.Query(sw.max("x"), sw.Rows(3), name="a"), events)["a"].to_pylist()
    [4.0, 4.0, 9.0]
    """
    return _of("max", column)


def first(column: str) -> Aggregate:
    """The oldest value in the window that is not null; of any type.

    >>> import swag as sw
    >>> events = {"ts": [1, 2, 3, 4], "x": ["a", "b", "c", "d"]}
    >>> sw.evaluate(sw.Query(sw.first("x"), sw.Rows(3), name="a"), events)["a"].to_pylist()
    ['a', 'a', 'a', 'b']
    """
    return _of("first", column)


def last(column: str) -> Aggregate:
    """The newest value in the window that is not null; of any type.

    >>> import swag as sw
    >>> events = {"ts": [1, 2, 3], "x": ["a", None, "c"]}
    >>> sw.evaluate(sw.Query(sw.last("x"), sw.Rows(3), name="a"), events)["a"].to_pylist()
    ['a', 'a', 'c']
    """
    return _of("last", column)


def var(column: str, ddof: int = 1) -> Aggregate:
    """The variance: of a sample (ddof=1), or of all there is (ddof=0).

    >>> import swag as sw
    >>> events = {"ts": [1, 2, 3], "x": [1.0, 2.0, 3.0]}
    >>> sw.evaluate(sw.Query(sw.var("x"), sw.Rows(3), name="a"), events)["a"].to_pylist()
    [None, 0.5, 1.0]
    """
    return _of("var", column, ddof=_ddof(ddof))


def std(column: str, ddof: int = 1) -> Aggregate:
    """The standard deviation: of a sample (ddof=1), or of all there is (ddof=0).

    >>> import swag as sw
    >>> events = {"ts": [1, 2], "x": [1.0, 3.0]}
    >>> sw.evaluate(sw.Query(sw.std("x", ddof=0), sw.Rows(3), name="a"), events)["a"].to_pylist()
    [0.0, 1.0]
    """
    return _of("std", column, ddof=_ddof(ddof))


def wmean(column: str, weight: str) -> Aggregate:
    """The mean of a column weighted by another: VWAP is wmean("price", "volume").

    >>> import swag as sw
    >>> events = {"ts": [1, 2], "x": [10.0, 20.0], "w": [3, 1]}
    >>> sw.evaluate(sw.Query(sw.wmean("x", "w"), sw.Rows(3), name="a"), events)["a"].to_pylist()
    [10.0, 12.5]
    """
    return _of("wmean", column, weight)


def cov(x: str, y: str, ddof: int = 1) -> Aggregate:
    """The covariance of two columns, over the rows where neither is null.

    >>> import swag as sw
    >>> events = {"ts": [1, 2], "x": [1.0, 2.0], "y": [3.0, 7.0]}
    >>> sw.evaluate(sw.Query(sw.cov("x", "y"), sw.Rows(3), name="a"), events)["a"].to_pylist()
    [None, 2.0]
    """
    return _of("cov", x, y, ddof=_ddof(ddof))


def corr(x: str, y: str) -> Aggregate:
    """The correlation of two columns (Pearson's), over the rows where neither is null.

    >>> import swag as sw
    >>> events = {"ts": [1, 2], "x": [1.0, 2.0], "y": [1.0, 3.0]}
    >>> sw.evaluate(sw.Query(sw.corr("x", "y"), sw.Rows(3), name="a"), events)["a"][1].as_py() > 0.999
    True
    """
    return _of("corr", x, y)


def quantile(column: str, phi: float, method: str = "floor") -> Aggregate:
    """The element at position max(1, floor(phi N)) of the sorted window; method="linear" is NumPy's default.

    >>> import swag as sw
    >>> events = {"ts": [1, 2, 3], "x": [5.0, 1.0, 3.0]}
    >>> sw.evaluate(sw.Query(sw.quantile("x", 0.9), sw.Rows(3), name="a"), events)["a"].to_pylist()
    [5.0, 1.0, 3.0]
    """
    _check_quantile(phi, method)
    return _of("quantile", column, phi=float(phi), method=method)


def median(column: str) -> Aggregate:
    """The middle of the sorted window, or the mean of the two in the middle.

    >>> import swag as sw
    >>> events = {"ts": [1, 2, 3], "x": [5.0, 1.0, 3.0]}
    >>> sw.evaluate(sw.Query(sw.median("x"), sw.Rows(3), name="a"), events)["a"].to_pylist()
    [5.0, 3.0, 3.0]
    """
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

    >>> import swag as sw
    >>> squares = sw.aggregate("x", lift=lambda x: x * x, combine=lambda a, b: a + b, lower=lambda a: a, identity=0.0)
    >>> query = sw.Query(squares, sw.Rows(2), name="squares")
    >>> sw.evaluate(query, {"ts": [1, 2, 3], "x": [1.0, 2.0, 3.0]})["squares"].to_pylist()
    [1.0, 5.0, 13.0]
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


def _check_quantile(phi: Any, method: Any) -> None:
    if not is_option(method, ("floor", "linear")):
        raise BadQuery(f'method={method!r} is neither "floor" nor "linear".', 'sw.quantile("x", 0.5, method="linear")')
    if not is_number(phi) or not 0 <= phi <= 1 or (phi == 0 and method == "floor"):
        fractions = "(0, 1]" if method == "floor" else "[0, 1]"
        raise BadQuery(f"quantile takes a fraction in {fractions}, not {phi!r}.", 'sw.quantile("x", 0.99)')


def _ddof(ddof: Any) -> int:
    if not is_whole(ddof) or not 0 <= ddof <= LARGEST:
        raise BadQuery(f"ddof={ddof!r} is not a whole number >= 0.", "ddof=1 (sample) or ddof=0 (population)")
    return int(ddof)
