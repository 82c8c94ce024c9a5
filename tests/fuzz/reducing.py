"""Makes a failing case smaller by leaving things out: quicker than Hypothesis, which knows choices, not lists."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from typing import Any


def reduced(case: Any, fails: Callable[[Any], bool], seconds: float) -> Any:
    """`case`, or as much less of it as still fails."""
    until = time.monotonic() + seconds
    variants = smaller(case)
    while time.monotonic() < until:
        variant = next(variants, None)
        if variant is None:
            break
        if fails(variant):
            case, variants = variant, smaller(variant)
    return case


def smaller(value: Any) -> Iterator[Any]:
    """The same with something left out: parts of a list, the large parts first; what is in it; what has a default."""
    if isinstance(value, list):
        size = len(value)
        while size:
            yield from (value[:at] + value[at + size :] for at in range(0, len(value), size))
            size //= 2
    if isinstance(value, list | tuple):
        for at, each in enumerate(value):
            yield from (type(value)((*value[:at], less, *value[at + 1 :])) for less in smaller(each))
    if isinstance(value, dict):
        for name, each in value.items():
            yield from ({**value, name: less} for less in smaller(each))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from _plainer(value)


def _plainer(value: Any) -> Iterator[Any]:
    for field in dataclasses.fields(value):
        each = getattr(value, field.name)
        if field.default is not dataclasses.MISSING and each != field.default:
            yield dataclasses.replace(value, **{field.name: field.default})
        yield from (dataclasses.replace(value, **{field.name: less}) for less in smaller(each))
