"""One aggregate of every kind there is, of what its kind says it can be of: for whoever has to meet them all."""

from collections.abc import Container, Mapping, Sequence
from typing import Any

from swag.query import kinds  # noqa: F401  (all there are)
from swag.query.aggregates import Aggregate
from swag.query.kind import KINDS, Kind, Reads
from swag.tables.times.durations import Duration

OF_USERS = "user"  # the option of those that are made of a user's own functions
OPTIONS: dict[str, Any] = {"ddof": 1, "phi": 0.5, "method": "floor", "n": 2}


def one_of_each(
    columns: Mapping[Reads, Sequence[str]], half_life: Duration = 3, but: Container[str] = ()
) -> list[Aggregate]:
    """Of every kind `but` these, one for each column that its first can be; if it is of two, the other is the next.

    columns: for what kinds read, columns that are such.
    """
    found = []
    for kind in KINDS.values():
        if kind.name in but or OF_USERS in kind.options:
            continue
        given: dict[str, Any] = {**OPTIONS, "half_life": half_life}
        options = {name: value for name, value in given.items() if name in kind.options}
        found += [Aggregate(kind.name, names, **options) for names in _choices(kind, columns)]
    return found


def _choices(kind: Kind, columns: Mapping[Reads, Sequence[str]]) -> list[tuple[str, ...]]:
    """The columns that it is computed of, in several ways."""
    found: list[tuple[str, ...]] = []
    for count in range(kind.columns[0], kind.columns[1] + 1):
        each = kind.reads if isinstance(kind.reads, tuple) else (kind.reads,) * count
        for first in range(len(columns[each[0]]) if count else 1):
            found.append(tuple(columns[read][(first + i) % len(columns[read])] for i, read in enumerate(each)))
    return found
