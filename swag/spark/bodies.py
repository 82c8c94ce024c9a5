"""Engines and detectors of shards, in the memory of a Python worker between triggers.

    trigger N     rows wait for the watermark | answers as of the watermark of N-1
    after it      the next watermark is known, as a rule: what it lets through is applied ahead, while Spark commits

So a trigger finds its engine up to date, and has only to look answers up. If the watermark turns out to be an earlier
one (another stream of the same query holds it back), the body has gone too far: it is made again from the log, and no
body of that job goes ahead any more, in this worker.
"""

import os
from collections import OrderedDict
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from threading import Event
from time import monotonic
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from swag.spark.state import Log

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

    def replay(self, tables: dict[str, list[pa.Table]], rest: dict[str, Any], upto: int | None) -> None:
        """Take what was logged since this body was last used (for a new one: all of it), and emit nothing."""

    def step(self, fresh: dict[str, pa.Table], upto: int | None) -> Step:
        """Take new rows, and that nothing with ts <= upto is still to come."""

    def go_ahead(self, upto: int) -> None:
        """Apply what the next step is going to, at least; it will be told of an upto that is no earlier."""

    def tend(self, log: Log) -> None:
        """Let go of segments that nothing can reach; merge small ones."""

    def rest(self) -> dict[str, Any]:
        """What is not a function of the log, as JSON."""

    def wakes(self) -> int | None:
        """The next instant that must not pass unnoticed, even if nothing comes."""

    @property
    def latest(self) -> int | None:
        """The latest ts that was seen in the last step; None: it must not go ahead."""

    @property
    def bytes(self) -> int: ...


@dataclass(eq=False)
class Cached:
    """A body at a version of the state; busy: it goes ahead, or has done so; wanted: without delay."""

    token: str
    body: Body
    bytes: int
    busy: "Future[None] | None" = None
    wanted: Event = field(default_factory=Event)

    def go_ahead(self, upto: int, begin: float) -> None:
        self.wanted.wait(max(0.0, begin - monotonic()))
        self.body.go_ahead(upto)
        self.bytes = self.body.bytes


class Cache:
    """Bodies by (job, shard), each with the version it is at; the least recently used go first."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, int], Cached] = OrderedDict()
        self.surprised: set[str] = set()  # jobs whose watermark was not what was expected

    def take(self, job: str, shard: int) -> Cached | None:
        """What is taken is no longer here: an attempt that fails half way leaves nothing behind."""
        found = self._kept.pop((job, shard), None)
        if found is not None and found.busy is not None and not found.busy.cancel():  # it has begun
            found.wanted.set()
            if found.busy.exception() is not None:
                return None  # whatever it was: the log has it all, and the next step meets it again
        return found

    def keep(self, job: str, shard: int, token: str, body: Body) -> None:
        self._kept[job, shard] = Cached(token, body, body.bytes)
        while len(self._kept) > 1 and sum(each.bytes for each in self._kept.values()) > cache_limit():
            self._kept.popitem(last=False)

    def go_ahead(self, job: str, known: dict[int, int]) -> None:
        """Let shards apply what their next watermark lets through."""
        begin = monotonic() + DELAY
        for shard, upto in known.items():
            cached = self._kept.get((job, shard))
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
