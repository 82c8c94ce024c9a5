"""A process that takes its targets in turns, and reports: its parent outlives it whatever a case does to it."""

from __future__ import annotations

import json
import random
import resource
import time
import traceback
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from hypothesis.database import DirectoryBasedExampleDatabase

from tests.fuzz.failure import Failure, failure_of, replay_of
from tests.fuzz.hunt import Hunt
from tests.fuzz.target import Target

MEMORY = 8 * 2**30  # bytes of address space: a case that asks for more gets a MemoryError, which is a failure


@dataclass(frozen=True)
class Orders:
    """What a worker is told. `module`: where TARGETS is. `folder`: for examples and for the case at hand."""

    module: str
    names: tuple[str, ...]
    seed: int
    until: float  # by time.time(), which all processes share
    turn: float  # seconds for a target at a time
    turns: int  # of every target, at most
    longest: int  # seconds for a case
    folder: Path
    number: int

    @property
    def at_hand(self) -> Path:
        return self.folder / f"case-at-hand-{self.number}.json"


@dataclass(frozen=True)
class Report:
    """What became of a target since the last report."""

    target: str
    examples: int
    steps: int
    seconds: float
    found: tuple[Failure, ...]


def work(orders: Orders, parent: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.RLIM_INFINITY))
    targets = import_module(orders.module).TARGETS
    database = DirectoryBasedExampleDatabase(orders.folder / "examples")
    note = Note(orders.at_hand, parent)
    hunts = {name: Hunt(targets[name](), database, orders.longest, note) for name in orders.names}
    seeds = random.Random(orders.seed)
    for _ in range(orders.turns):
        for hunt in hunts.values():
            left = orders.until - time.time()
            if left <= 0:
                return
            parent.send(one_turn(hunt, min(left, orders.turn), seeds.getrandbits(48)))


def one_turn(hunt: Hunt, seconds: float, seed: int) -> Report:
    examples, steps, known, start = hunt.examples, hunt.steps, set(hunt.found), time.monotonic()
    try:
        hunt.hunt(seconds, seed)
    except Exception as why:  # of the target itself, or of Hypothesis: others go on
        failure = failure_of(hunt.target, why, f"raise SystemExit({traceback.format_exc()!r})", [])
        hunt.found.setdefault(failure.place, failure)
    found = tuple(failure for place, failure in hunt.found.items() if place not in known)
    spent = time.monotonic() - start
    return Report(hunt.target.name, hunt.examples - examples, hunt.steps - steps, spent, found)


class Note:
    """Writes down the case at hand, for the parent to find if it is the last one, and shows signs of life."""

    def __init__(self, path: Path, parent: Connection) -> None:
        self.file, self.parent, self.last = path.open("w"), parent, 0.0

    def __call__(self, target: Target, drawn: dict[str, Any]) -> None:
        self.file.seek(0)
        self.file.write(json.dumps({"target": target.name, "replay": replay_of(target, drawn)}))
        self.file.truncate()
        self.file.flush()
        if time.monotonic() > self.last + 1:
            self.last = time.monotonic()
            self.parent.send(None)
