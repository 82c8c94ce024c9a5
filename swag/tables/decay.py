"""Values that decay, as columns that do not depend on when they are asked for (kernels/operators/decayed.py).

    2^(ts / h) = 2 * 2^(phase - 1) * 2^turns        turns = floor(ts / h), phase = ts / h - turns
    values     x * 2^(phase - 1)                    a factor from 1/2 to 1: nothing overflows
    answers    as of any time: divided by what an event of that time would have been weighted with

Half-lives are whole numbers in the unit of ts, and are divided by as such: of a timestamp in nanoseconds since 1970, a
float has lost what an answer to 1e-12 needs.
"""

import re
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from swag.tables.times.durations import in_units

_NAMES = re.compile(r"(?:(?P<x>.*) \* )?2\^\(ts / (?P<weight>[\w.]+)\)|ts // (?P<turns>[\w.]+)", re.DOTALL)


class Decaying(NamedTuple):
    """A column that is computed from the time of events: their turns, or their weights, or another column times those.

    half_life: as users write it. column: None: there is none.
    """

    half_life: int | str
    turns: bool
    column: str | None


def weighted(column: str, half_life: Any) -> str:
    """The name of a column times its weights."""
    return f"{column} * {weights(half_life)}"


def weights(half_life: Any) -> str:
    return f"2^(ts / {half_life})"


def turns(half_life: Any) -> str:
    return f"ts // {half_life}"


@lru_cache(maxsize=4096)
def read(name: str) -> Decaying | None:
    """What a name made here stands for."""
    match = _NAMES.fullmatch(name)
    if match is None:
        return None
    half_life = match["weight"] or match["turns"]
    return Decaying(int(half_life) if half_life.isdigit() else half_life, match["turns"] is not None, match["x"])


def computed(of: Decaying, ts: np.ndarray, unit: str | None, values: np.ndarray | None) -> np.ndarray:
    """Such a column. values: those of the column that is weighted."""
    turned, weight = phases(ts, in_units(of.half_life, unit))
    if of.turns:
        return turned
    with np.errstate(all="ignore"):
        return weight if values is None else values.astype(np.float64, copy=False) * weight


def phases(ts: Any, half_life: int) -> tuple[np.ndarray, np.ndarray]:
    """Turns and weights of times, by a half-life in their unit."""
    turned, rest = np.divmod(np.asarray(ts, np.int64), np.int64(half_life))
    return turned, np.exp2(rest / half_life - 1.0)
