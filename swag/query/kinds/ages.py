"""age: how long ago the last event of a window was."""

from typing import Any

import numpy as np

from swag.query.aggregates import Aggregate
from swag.query.kind import TIME, Function, Kind, register

SECONDS = 86400  # of a day: dates are days, of which there is no duration in Arrow


def age() -> Aggregate:
    """The time since the last event in the window: a duration in the unit of ts, a whole number where ts is one.

    >>> import swag as sw
    >>> events = {"ts": [10, 20], "side": ["buy", "sell"]}
    >>> query = sw.Query(sw.age(), sw.Range(60), name="since", where="side = 'buy'")
    >>> sw.evaluate(query, events, at={"ts": [10, 25, 99]})["since"].to_pylist()
    [0, 15, None]
    """
    return Aggregate("age")


def lower(aggregate: Aggregate, n: np.ndarray, partials: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    latest, now = partials
    return (now.instants - latest) * (SECONDS if now.unit == "d" else 1), n > 0


register(
    Kind(
        "age",
        lower,
        columns=(0, 0),
        answers="durations",
        at_ends=True,
        raw=(TIME,),
        timed=True,
        statements={"AGE": Function(age, "AGE()", columns=0)},
    )
)
