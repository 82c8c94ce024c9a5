"""What a target is: cases drawn at random, a check that raises where an answer is wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from hypothesis.strategies import SearchStrategy

calls: list[str] = []  # what the case at hand has asked of the library so far, in Python, for people to read


@dataclass(frozen=True)
class Target:
    """`given`: how to draw the arguments of `check`. `steps`: how much a case holds, for the table at the end.

    A plain target has one argument, `case`, whose `repr` is Python: a failing one is written down as a call of `check`.
    Cases of others are written down as the choices that Hypothesis made.
    """

    name: str
    given: Mapping[str, SearchStrategy[Any]]
    check: Callable[..., None]
    steps: Callable[..., int] = lambda **drawn: 1
    plain: bool = True
    examples: int = 100  # of a round; fewer where one of them takes long


def plain(
    name: str, cases: SearchStrategy[Any], check: Callable[[Any], None], steps: Callable[[Any], int], **options: Any
) -> Target:
    return Target(name, {"case": cases}, check, lambda case: steps(case), **options)


class Wrong(AssertionError):
    """The library answered, and not what it should have."""

    topic = ""


def wrong(topic: str, message: str) -> Wrong:
    """`topic`: failures of one topic are taken for one failure. Hypothesis tells them apart by their class."""
    return _class(topic)(message)


@cache
def _class(topic: str) -> type[Wrong]:
    return type("Wrong", (Wrong,), {"topic": topic})


class Hung(Exception):
    """A case took longer than any should."""
