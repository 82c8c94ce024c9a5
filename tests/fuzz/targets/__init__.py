"""The targets, by name. One is made when it is asked for: some take seconds to import."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from tests.fuzz.target import Target

NAMES = ("engine", "evaluate", "ticks", "filters", "frames", "patterns", "sql", "snapshot", "own", "misuse", "suite")


def _maker(name: str) -> Callable[[], Target]:
    return lambda: import_module(f"tests.fuzz.targets.{name}").target()


TARGETS: dict[str, Callable[[], Target]] = {name: _maker(name) for name in NAMES}
