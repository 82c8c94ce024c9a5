"""decayed_sum, decayed_mean, decayed_count: events count for half as much with every half-life that has passed."""

from typing import Any

import numpy as np

from kernels.operators import decayed as operator
from swag.query.aggregates import Aggregate, of
from swag.query.kind import Function, Kind, Part, register
from swag.tables import decay
from swag.tables.times.durations import Duration, in_units


def decayed_sum(column: str, half_life: Duration) -> Aggregate:
    """The sum, each value times 2^(-(now - ts) / half_life).

    >>> import swag as sw
    >>> events = {"ts": [0, 10, 20], "x": [8.0, 1.0, 1.0]}
    >>> sw.evaluate(sw.Query(sw.decayed_sum("x", half_life=10), sw.Rows(3), name="a"), events)["a"].to_pylist()
    [8.0, 5.0, 3.5]
    """
    return of("decayed_sum", column, half_life=half_life)


def decayed_mean(column: str, half_life: Duration) -> Aggregate:
    """The mean of the values that are not null, each with a weight of 2^(-(now - ts) / half_life).

    >>> import swag as sw
    >>> events = {"ts": [0, 10], "x": [8.0, 2.0]}
    >>> sw.evaluate(sw.Query(sw.decayed_mean("x", half_life=10), sw.Rows(3), name="a"), events)["a"].to_pylist()
    [8.0, 4.0]
    """
    return of("decayed_mean", column, half_life=half_life)


def decayed_count(half_life: Duration) -> Aggregate:
    """How many events, each counted as 2^(-(now - ts) / half_life).

    >>> import swag as sw
    >>> query = sw.Query(sw.decayed_count(half_life=10), sw.Rows(3), name="a")
    >>> sw.evaluate(query, {"ts": [0, 10, 20]})["a"].to_pylist()
    [1.0, 1.5, 1.75]
    """
    return of("decayed_count", half_life=half_life)


def parts(aggregate: Aggregate) -> tuple[Part, ...]:
    """The values, if it is of any, and the weights, if it counts, as columns that decay: see swag/tables/decay.py."""
    names = [decay.weighted(name, aggregate.half_life) for name in aggregate.columns]
    names += [] if aggregate.kind == "decayed_sum" else [decay.weights(aggregate.half_life)]
    return tuple(Part("decayed", (name, decay.turns(aggregate.half_life))) for name in names)


def lower(aggregate: Aggregate, n: np.ndarray, partials: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Decayed sums as of now, or one divided by the other if it is a mean; and where the window has any event."""
    *sums, now = partials
    with np.errstate(all="ignore"):
        if aggregate.kind == "decayed_mean":  # both as of the same time, whichever it is
            above, below = (np.where(np.isfinite(s), s + lost, s) for s, lost, _ in sums)
            return above / below, n > 0
        then, weight = now.phases or decay.phases(now.instants, in_units(aggregate.half_life or 0, now.unit))
        out = np.empty(n.shape)
        each = (np.ascontiguousarray(np.broadcast_to(known, n.shape)) for known in (then, weight))
        operator.as_of(tuple(np.ascontiguousarray(part) for part in sums[0]), *each, out)
    return out, n > 0


AN_HOUR = "INTERVAL '1' HOUR"
for _build, _columns in ((decayed_sum, 1), (decayed_mean, 1), (decayed_count, 0)):
    _name, _given = _build.__name__.upper(), ["x"] * _columns + [AN_HOUR]
    register(
        Kind(
            _build.__name__,
            lower,
            parts=parts,
            columns=(_columns, _columns),
            options=("half_life",),
            timed=True,
            degrees=(1,) * _columns,
            statements={
                _name: Function(
                    _build, f"{_name}({', '.join(_given)})", _columns, least=1, most=1, constant="a half-life"
                )
            },
        )
    )
