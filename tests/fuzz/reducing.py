"""Makes a failing case smaller by leaving things out: quicker than Hypothesis, which knows choices, not lists."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any

Fails = Callable[[Any], bool]


def reduced(case: Any, fails: Fails, seconds: float) -> Any:
    """`case`, or as much less of it as still fails."""
    until = time.monotonic() + seconds
    return _less(case, lambda less: time.monotonic() < until and fails(less))


def _less(value: Any, fails: Fails) -> Any:
    """Parts of a list are left out, the large parts first; then parts of what is in it; then what has a default."""
    if isinstance(value, list):
        value = _shorter(value, fails)
    if isinstance(value, list | tuple):
        for at, each in enumerate(value):
            around = value
            less = _less(each, lambda less, at=at, around=around: fails(_with(around, at, less)))
            value = _with(value, at, less)
    elif isinstance(value, dict):
        for name, each in value.items():
            less = _less(each, lambda less, name=name, around=value: fails({**around, name: less}))
            value = {**value, name: less}
    elif dataclasses.is_dataclass(value):
        value = _plainer(value, fails)
    return value


def _shorter(values: list[Any], fails: Fails) -> list[Any]:
    size = len(values)
    while size:
        at = 0
        while at < len(values):
            less = values[:at] + values[at + size :]
            if fails(less):
                values = less
            else:
                at += size
        size //= 2
    return values


def _with(values: Any, at: int, each: Any) -> Any:
    return type(values)((*values[:at], each, *values[at + 1 :]))


def _plainer(value: Any, fails: Fails) -> Any:
    for field in dataclasses.fields(value):
        each, usual = getattr(value, field.name), field.default
        if (
            usual is not dataclasses.MISSING
            and each != usual
            and fails(dataclasses.replace(value, **{field.name: usual}))
        ):
            value = dataclasses.replace(value, **{field.name: usual})
            continue
        around, name = value, field.name
        less = _less(each, lambda less, around=around, name=name: fails(dataclasses.replace(around, **{name: less})))
        value = dataclasses.replace(value, **{name: less})
    return value
