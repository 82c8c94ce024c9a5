"""Aggregates of users' own functions."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from kernels.operators import monoids
from swag.errors import BadQuery
from swag.query.aggregates import Aggregate, of
from swag.query.kind import Kind, UserDefined, register
from swag.query.user_calls import calling
from swag.query.user_defined import compiled


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
    return replace(of("aggregate", column, user=user), name=f"{label}({column})")


def lower_user(aggregate: Aggregate, n: np.ndarray, partials: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    assert aggregate.user is not None
    out, state = np.empty(n.shape), partials[0]
    flat = tuple(s.reshape(-1) for s in state) if isinstance(state, tuple) else state.reshape(-1)
    with np.errstate(all="ignore"), calling(aggregate, f"{aggregate}: lower"):
        monoids.lower_each(compiled(aggregate.user), n.reshape(-1), flat, out.reshape(-1))
    return out, n > 0


register(Kind("aggregate", lower_user, "user", options=("user",), scaled=True))
