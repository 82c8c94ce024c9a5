"""The operators that structures are crossed with: an aggregate, values to try it on, and its truth in plain Python."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import swag as sw
from swag.query.aggregates import Aggregate
from swag.query.families import lower, parts_of
from swag.query.kind import Part
from tests import oracle
from tests.kernels.harness import Values

PRIME = 2**31 - 1
Row = tuple[Any, ...]
Truth = Callable[[Sequence[Row]], tuple[Any, float]]  # what a window of rows gives, and the error allowed
ODD_FLOATS = [np.nan, np.inf, -np.inf, 1e18, -1e18, 1e300, -1e300, 0.0, -0.0, 1e-300, 0.1, 1e9 + 0.25]
ODD_INTEGERS = [2**63 - 1, -(2**63), 2**62, 0, -1, 10**18]


def floats(rng: np.random.Generator, n: int, odd: float) -> np.ndarray:
    """Ordinary prices and changes; sometimes what spoils a running sum."""
    ordinary = np.where(rng.random(n) < 0.5, 1e3 + rng.normal(size=n), rng.normal(size=n))
    return np.where(rng.random(n) < odd, rng.choice(ODD_FLOATS, n), ordinary)


def integers(rng: np.random.Generator, n: int, odd: float) -> np.ndarray:
    return np.where(rng.random(n) < odd, rng.choice(ODD_INTEGERS, n), rng.integers(-1000, 1000, n))


def mild_integers(rng: np.random.Generator, n: int, odd: float) -> np.ndarray:
    """Whose squares have a variance."""
    return integers(rng, n, 0.0)


@dataclass(frozen=True)
class Operator:
    name: str
    aggregate: Aggregate
    values: Values
    truth: Truth
    further: bool = False  # of the kinds that are as any monoid to a structure: compiled for some structures only

    @property
    def part(self) -> Part:
        return parts_of(self.aggregate)[0]

    @property
    def columns(self) -> int:
        return len(self.aggregate.columns)

    def answers(self, n: np.ndarray, state: Any) -> list[Any]:
        """Partials to answers, as lookups do it."""
        values, valid = lower(self.aggregate, n, [state])
        valid = n > 0 if valid is None else valid
        return [v if ok else None for v, ok in zip(values.tolist(), valid.tolist(), strict=True)]

    def mismatch(self, rows: Sequence[Row], actual: Any) -> str | None:
        expected, allowed = self.truth(rows)
        if oracle.same(expected, actual, allowed):
            return None
        return f"{self.name} of {rows} is {expected!r} within {allowed:g}, not {actual!r}"

    def __str__(self) -> str:
        return self.name


def extremum(better: Callable[..., Any]) -> Truth:
    def truth(rows: Sequence[Row]) -> tuple[Any, float]:
        values = [row[0] for row in rows]
        return (math.nan if any(v != v for v in values) else better(values, default=None)), 0.0

    return truth


def float_sum(rows: Sequence[Row]) -> tuple[Any, float]:
    """Right to 1e-12 of the absolute values that are in the window."""
    values = [row[0] for row in rows]
    if not all(map(math.isfinite, values)):
        return sum(v for v in values if not math.isfinite(v)), 0.0
    return (math.fsum(values), 1e-12 * math.fsum(map(abs, values)) + 1e-307) if rows else (None, 0.0)


def covariance(ddof: int) -> Truth:
    """In two passes. Allowed: 1e-6 of the deviations, 1e-12 of the largest ones, and the values' own last digits."""

    def truth(rows: Sequence[Row]) -> tuple[Any, float]:
        if len(rows) <= ddof:
            return None, 0.0
        xs, ys = [float(row[0]) for row in rows], [float(row[-1]) for row in rows]
        largest = [max(map(abs, values)) for values in (xs, ys)]
        if not all(map(math.isfinite, xs + ys)):
            return math.nan, 0.0
        if max(largest) > 1e140:
            return 0.0, math.inf
        means = [math.fsum(values) / len(values) for values in (xs, ys)]
        dx, dy = ([v - mean for v in values] for values, mean in zip((xs, ys), means, strict=True))
        sizes = [math.hypot(*d) for d in (dx, dy)]
        allowed = 1e-6 * math.prod(sizes) / (len(rows) - ddof) + 1e-12 * max(map(abs, dx)) * max(map(abs, dy))
        digits = math.prod(4 * math.ulp(v) for v in largest)
        return math.fsum(a * b for a, b in zip(dx, dy, strict=True)) / (len(rows) - ddof), allowed + digits

    return truth


def wrapping_sum(rows: Sequence[Row]) -> tuple[Any, float]:
    return ((sum(row[0] for row in rows) + 2**63) % 2**64 - 2**63, 0) if rows else (None, 0)


# -- user-defined: functions that are compiled, and run as they are by the oracle ----------------------------------


def itself(x):  # type: ignore[no-untyped-def]
    return x


def newest(a, b):  # type: ignore[no-untyped-def]
    return b


def line(x):  # type: ignore[no-untyped-def]
    """x as a step z -> a z + b of a walk around the integers mod p; a is never 0."""
    return int(x) % 1000 + 1, int(x) % 997


def then(f, g):  # type: ignore[no-untyped-def]
    """First f, then g: the order matters."""
    return f[0] * g[0] % 2147483647, (f[1] * g[0] + g[1]) % 2147483647


def without(f, g):  # type: ignore[no-untyped-def]
    """What is left of f when it began with g: h with then(g, h) = f."""
    inverse, square, e = 1, g[0], 2147483645
    while e > 0:
        if e & 1:
            inverse = inverse * square % 2147483647
        square = square * square % 2147483647
        e >>= 1
    a = f[0] * inverse % 2147483647
    return a, (f[1] - g[1] * a) % 2147483647


def arrival(f):  # type: ignore[no-untyped-def]
    """Where the walk from 12345 ends."""
    return float((f[0] * 12345 + f[1]) % 2147483647)


def user_truth(lift: Any, combine: Any, finish: Any) -> Truth:
    """A fold of the window, row by row, from the first one on (needs no identity)."""

    def truth(rows: Sequence[Row]) -> tuple[Any, float]:
        if not rows:
            return None, 0
        acc = lift(rows[0][0])
        for row in rows[1:]:
            acc = combine(acc, lift(row[0]))
        return float(finish(acc)), 0

    return truth


def by_oracle(kind: str, *columns: str) -> Truth:
    def truth(rows: Sequence[Row]) -> tuple[Any, float]:
        window = [dict(zip(columns, row, strict=True)) for row in rows]
        agg = oracle.agg(kind, *columns)
        return oracle.aggregate(agg, window), oracle.tolerance(agg, window)

    return truth


LAST = sw.aggregate("x", itself, newest, itself, identity=0.0)
WALK = sw.aggregate("x", line, then, arrival, identity=(1, 0), invert=without)

OPERATORS = [
    Operator("sum of integers", sw.sum("x"), integers, wrapping_sum),
    Operator("sum of floats", sw.sum("x"), floats, float_sum),
    Operator("max of floats", sw.max("x"), floats, extremum(max)),
    Operator("min of integers", sw.min("x"), integers, extremum(min)),
    Operator("moments of floats", sw.var("x", ddof=0), floats, covariance(0)),
    Operator("moments of integers", sw.var("x"), mild_integers, covariance(1)),
    Operator("comoments", sw.cov("x", "y"), floats, covariance(1)),
    Operator("skew", sw.skew("x"), floats, by_oracle("skew", "x"), further=True),
    Operator("shape", sw.kurtosis("x"), floats, by_oracle("kurtosis", "x"), further=True),
    Operator("product", sw.product("x"), floats, by_oracle("product", "x"), further=True),
    Operator("row of the largest", sw.arg_max("x", "y"), floats, by_oracle("arg_max", "x", "y"), further=True),
    Operator("row of the least", sw.arg_min("x", "y"), integers, by_oracle("arg_min", "x", "y"), further=True),
    Operator("last, user-defined", LAST, floats, user_truth(itself, newest, itself)),
    Operator("walk, user-defined", WALK, mild_integers, user_truth(line, then, arrival)),
]
NAMED = {op.name: op for op in OPERATORS}
