"""Holes in frozen values: where two of them differ that were made alike from different constants, and how to fill them.

base      Query(sum(x), Range("5m"), where="y > 300 AND z = 5")        5 and 300 are constants 0 and 1
template  Query(sum(x), Range("¤0m"), where="y > ¤1 AND z = ¤0")
"""

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Any

Path = tuple[Any, ...]
Holes = dict[
    Path, list[tuple[int, int]]
]  # in the value at a path: the number of a token of it, -1 for the whole; whose
Fill = Callable[[list[str], list[Any]], Any]  # constants as they are written, and as values
WHOLE, NEGATED = -1, -2
_TOKENS = re.compile(r"'[^']*'|[^\W\d]\w*|\d+(?:\.\d+)?|[\s\S]")


@dataclass(frozen=True)
class Change:
    """A constant, and another that was put in its place: as text has them, and as values."""

    number: int
    written: tuple[str, str]
    values: tuple[Any, Any]


@cache
def _names(kind: Any) -> tuple[str, ...]:
    """What a class is called with to make a value again; nothing of those whose call takes other than their fields."""
    names = tuple(field.name for field in fields(kind) if field.init) if is_dataclass(kind) else ()
    return names if names and set(names) <= set(inspect.signature(kind).parameters) else ()


def differences(one: Any, other: Any, path: Path = ()) -> Iterator[tuple[Path, Any, Any]]:
    """Where two values differ, as far down as they are alike."""
    if type(one) is type(other):
        if names := _names(one.__class__):
            for name in names:
                yield from differences(getattr(one, name), getattr(other, name), (*path, name))
            return
        if isinstance(one, tuple | list) and len(one) == len(other):
            for i, pair in enumerate(zip(one, other, strict=True)):
                yield from differences(*pair, (*path, i))
            return
        if one == other:
            return
    yield path, one, other


def holes(one: Any, other: Any, change: Change) -> Holes | None:
    """Where a change of a constant is to be seen; None: nowhere, or otherwise than as the constant itself."""
    found = {path: _holes_of(before, after, change) for path, before, after in differences(one, other)}
    return found if found and all(found.values()) else None


def _holes_of(one: Any, other: Any, change: Change) -> list[tuple[int, int]]:
    before, after = change.values
    if type(one) is type(other) is type(before):
        if (one, other) == (before, after):
            return [(WHOLE, change.number)]
        if not isinstance(before, str) and (one, other) == (-before, -after):
            return [(NEGATED, change.number)]
    if not isinstance(one, str) or not isinstance(other, str):
        return []
    tokens, others = _TOKENS.findall(one), _TOKENS.findall(other)
    changed = [i for i, pair in enumerate(zip(tokens, others, strict=False)) if pair[0] != pair[1]]
    alike = len(tokens) == len(others) and all((tokens[i], others[i]) == change.written for i in changed)
    return [(i, change.number) for i in changed] if alike else []


def filling(base: Any, found: Holes, path: Path = ()) -> Fill | None:
    """What makes the value again, with other constants in its holes; None: there is no hole in it."""
    if path in found:
        return _filled_leaf(base, found[path])
    if names := _names(base.__class__):
        fills = {name: filling(getattr(base, name), found, (*path, name)) for name in names}
        return _filled_object(base, fills) if any(fills.values()) else None
    if isinstance(base, tuple | list):
        parts = [filling(each, found, (*path, i)) for i, each in enumerate(base)]
        return _filled_sequence(base, parts) if any(parts) else None
    return None


def _filled_object(base: Any, fills: dict[str, Fill | None]) -> Fill:
    kind, usual = type(base), {name: getattr(base, name) for name in fills}
    some = [(name, fill) for name, fill in fills.items() if fill is not None]
    return lambda written, values: kind(**(usual | {name: fill(written, values) for name, fill in some}))


def _filled_sequence(base: Any, fills: list[Fill | None]) -> Fill:
    kind, pairs = type(base), list(zip(base, fills, strict=True))
    return lambda written, values: kind([each if fill is None else fill(written, values) for each, fill in pairs])


def _filled_leaf(base: Any, found: list[tuple[int, int]]) -> Fill:
    [(where, number), *_] = found
    if where == WHOLE:
        return lambda written, values: values[number]
    if where == NEGATED:
        return lambda written, values: -values[number]
    tokens, places = _TOKENS.findall(base), dict(found)

    def text(written: list[str], values: list[Any]) -> str:
        return "".join([written[places[i]] if i in places else token for i, token in enumerate(tokens)])

    return text
