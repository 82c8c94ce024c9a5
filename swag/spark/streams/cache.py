"""Engines and detectors of shards, in the memory of a Python worker between triggers.

    trigger N     rows wait for the watermark | answers as of the watermark of N-1
    after it      the next watermark is known, as a rule: what it lets through is applied ahead, while Spark commits

So a trigger finds its engine up to date, and has only to look answers up. If the watermark turns out to be an earlier
one (another stream of the same query holds it back), the body has gone too far: it is made again from the log, and no
body of that job goes ahead any more, in this worker.
"""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from threading import Event
from time import monotonic
from typing import Protocol

import numpy as np
import pyarrow as pa

from swag.durable.state import State
from swag.spark.streams.log import Log

TAKEN_BEFORE = 8  # times that other bodies of a shard are taken before one that nobody came for goes
DELAY = 0.05  # seconds: Spark commits meanwhile, and then plans the next trigger for longer than that


@dataclass
class Step:
    """What a trigger gave: rows to emit, rows to log as (kind, table, until when each row is needed), and counts."""

    answers: list[pa.Table] = field(default_factory=list)
    further: Iterable[pa.Table] = ()  # answers that are looked up while Spark works on those before
    log: list[tuple[str, pa.Table, np.ndarray]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)


class Body(Protocol):
    """An engine or a detector: a function of the log, and of a few numbers beside it."""

    ahead: int | None  # what has been applied although no trigger's watermark was there yet

    def state(self) -> State:
        """What is not a function of the log, among it what the log is tended by."""

    def restore(self, state: State) -> None:
        """What the log is tended by, as it is written there: another body of this version may have tended it."""

    def replay(self, tables: dict[str, list[pa.Table]], state: State, upto: int | None) -> None:
        """Take what was logged since this body was last used (for a new one: all of it), and emit nothing."""

    def step(self, fresh: dict[str, pa.Table], upto: int | None) -> Step:
        """Take new rows, and that nothing with ts <= upto is still to come."""

    def go_ahead(self, upto: int) -> None:
        """Apply what the next step is going to, at least; it will be told of an upto that is no earlier."""

    def tend(self, log: Log) -> None:
        """Let go of segments that nothing can reach; merge small ones."""

    def wakes(self) -> int | None:
        """The next instant that must not pass unnoticed, even if nothing comes."""

    @property
    def latest(self) -> int | None:
        """The latest ts that was seen in the last step; None: it must not go ahead."""

    @property
    def bytes(self) -> int: ...


@dataclass(eq=False)
class Cached:
    """A body at a version of the state; of: its job and shard. busy: it goes ahead, or has done so; wanted: without
    delay. passed_over: how often another body of the shard was taken since."""

    of: tuple[str, int]
    token: str
    body: Body
    bytes: int
    busy: "Future[None] | None" = None
    wanted: Event = field(default_factory=Event)
    passed_over: int = 0

    def go_ahead(self, upto: int, begin: float) -> None:
        self.wanted.wait(max(0.0, begin - monotonic()))
        self.body.go_ahead(upto)
        self.bytes = self.body.bytes

    def is_sound(self) -> bool:
        """Once nobody works on it any more: has it been gone ahead with, and well?"""
        if self.busy is None or self.busy.cancel():
            return True
        self.wanted.set()  # it has begun
        return self.busy.exception() is None  # whatever it was: the log has it all, and the next step meets it again


class Cache:
    """Bodies, each with the version it is at; the least recently used go first.

    There may be several of one shard: where a trigger is computed twice, for two actions in one foreachBatch, or where
    a stream was started twice, each run finds the body that it left behind. One that nobody comes for goes.
    """

    def __init__(self) -> None:
        self._kept: list[Cached] = []  # the one that was kept last is the last
        self.surprised: set[str] = set()  # jobs whose watermark was not what was expected

    def take(self, job: str, shard: int, versions: Iterable[str], fits: Callable[[Cached], bool]) -> Cached | None:
        """The body at the first of these versions at which there is one that fits.

        What is taken is no longer here: an attempt that fails half way leaves nothing behind.
        """
        mine = [cached for cached in self._kept if cached.of == (job, shard)]
        order = {version: i for i, version in enumerate(versions)}
        found = None
        for cached in sorted((each for each in mine if each.token in order), key=lambda each: order[each.token]):
            self._kept.remove(cached)
            if cached.is_sound() and fits(cached):
                found = cached
                break
        for cached in mine:
            cached.passed_over += 1
        self._kept = [each for each in self._kept if each.of != (job, shard) or each.passed_over < TAKEN_BEFORE]
        return found

    def keep(self, job: str, shard: int, token: str, body: Body) -> None:
        self._kept.append(Cached((job, shard), token, body, body.bytes))
        while sum(each.bytes for each in self._kept) > cache_limit():
            self._kept.pop(0)

    def go_ahead(self, job: str, known: dict[int, int]) -> None:
        """Let shards apply what their next watermark lets through."""
        begin, latest = monotonic() + DELAY, {cached.of: cached for cached in self._kept}
        for shard, upto in known.items():
            cached = latest.get((job, shard))
            if cached is not None and job not in self.surprised:
                cached.busy = thread("ahead").submit(cached.go_ahead, upto, begin)


def cache_limit() -> int:
    """$SWAG_SPARK_CACHE_MB, else half of this machine's share of a core."""
    chosen = os.environ.get("SWAG_SPARK_CACHE_MB", "")
    if chosen.isdigit():
        return int(chosen) << 20
    return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2 // (os.cpu_count() or 1))


@lru_cache
def thread(name: str) -> ThreadPoolExecutor:
    """One thread more. Made when it is needed: Spark forks its workers, and threads are not forked."""
    return ThreadPoolExecutor(1, f"swag {name}")
