"""Starts the workers, prints what they report, outlives their crashes, writes failures down; a table at the end."""

from __future__ import annotations

import itertools
import json
import multiprocessing
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from tests.fuzz.failure import Failure, crash_of
from tests.fuzz.worker import Orders, Report, work

CRASHES = 3  # of a target, after which it is left out
SPAWN = multiprocessing.get_context("spawn")


@dataclass
class Worker:
    orders: Orders
    process: Any = None
    parent: Any = None
    heard: float = 0.0

    def start(self) -> None:
        """Anew, with another seed and without targets that were left out since."""
        self.orders.at_hand.unlink(missing_ok=True)
        self.parent, child = SPAWN.Pipe(duplex=False)
        self.process = SPAWN.Process(target=work, args=(self.orders, child), daemon=True)
        self.process.start()
        child.close()
        self.heard = time.monotonic()

    @property
    def is_stuck(self) -> bool:
        """Python that takes too long is interrupted by the worker; this is for code that is not Python."""
        return time.monotonic() - self.heard > 2 * self.orders.longest + 30

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.parent.close()


@dataclass
class Overseer:
    """`orders`: one for each worker. Everything that is said goes through `say`.

    Failures are in `folder` as scripts as soon as they are found; those of earlier runs are left as they are.
    """

    orders: Sequence[Orders]
    say: Any
    folder: Path
    found: dict[tuple[str, str], Failure] = field(default_factory=dict)
    totals: dict[str, Counter[str]] = field(default_factory=dict)

    def run(self) -> None:
        workers = [Worker(each) for each in self.orders if each.names]
        for name in dict.fromkeys(name for each in self.orders for name in each.names):
            self.totals[name] = Counter()
        try:
            for each in workers:
                each.start()
            while workers:
                self._listen(workers)
                workers = [each for each in workers if self._goes_on(each)]
        finally:
            for each in workers:
                each.stop()

    def _listen(self, workers: list[Worker]) -> None:
        for connection in wait([each.parent for each in workers], timeout=1):
            worker = next(each for each in workers if each.parent is connection)
            for report in received(worker.parent):
                worker.heard = time.monotonic()
                if report is not None:
                    self._note(report)

    def _note(self, report: Report) -> None:
        total = self.totals[report.target]
        total.update(examples=report.examples, steps=report.steps, seconds=report.seconds)
        for failure in report.found:
            self.take(failure)
        self.say(
            f"{report.target:<10} {total['examples']:>9,} examples {total['steps']:>11,} steps "
            f"{total['seconds']:>6.0f} s {total['failures']:>4} failures"
        )

    def take(self, failure: Failure) -> None:
        """The same failure is one, however many workers find it."""
        known = self.found.get((failure.target, failure.place))
        if known is None:
            self.totals[failure.target]["failures"] += 1
            self.say(f"{failure.target:<10} FAILURE: {failure.place}")
        smallest = min((known or failure, failure), key=lambda each: each.size)
        self.found[failure.target, failure.place] = smallest
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / smallest.file_name).write_text(smallest.script)

    def _goes_on(self, worker: Worker) -> bool:
        """False once a worker has come to its end; one that came to a bad end is started again."""
        if worker.is_stuck:
            return self._again(worker, "a case that does not end")
        if worker.process.is_alive():
            return True
        for report in received(worker.parent):
            if report is not None:
                self._note(report)
        code = worker.process.exitcode
        if code == 0:
            worker.stop()
            return False
        return self._again(worker, f"{signal.Signals(-code).name}" if code < 0 else f"exit code {code}")

    def _again(self, worker: Worker, what: str) -> bool:
        """The case at hand was the last one of this process."""
        worker.stop()
        case = last_case(worker.orders.at_hand) or nothing(worker.orders.names[0])
        self.take(crash_of(case["target"], what, case["replay"]))
        crashes = self.totals[case["target"]]
        crashes["crashes"] += 1
        names = worker.orders.names
        if crashes["crashes"] >= CRASHES:
            names = tuple(name for name in names if name != case["target"])
            self.say(f"{case['target']:<10} is left out from here on")
        worker.orders = replace(worker.orders, names=names, seed=worker.orders.seed + 1)
        if names and time.time() < worker.orders.until:
            worker.start()
            return True
        return False

    # -- at the end ---------------------------------------------------------------------------------------------------

    def table(self) -> str:
        rows = [("target", "examples", "steps", "seconds", "failures")]
        for name, total in self.totals.items():
            rows.append((name, *(f"{total[what]:,.0f}" for what in ("examples", "steps", "seconds", "failures"))))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(
                cell.ljust(width) if i == 0 else cell.rjust(width) for i, (cell, width) in enumerate(zip(row, widths))
            )
            for row in rows
        )


def received(connection: Connection) -> Iterator[Report | None]:
    """What has come already."""
    try:
        while connection.poll():
            yield connection.recv()
    except (EOFError, OSError):
        return


def last_case(path: Path) -> dict[str, str] | None:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


def nothing(target: str) -> dict[str, str]:
    """A worker that came to its end before its first case: most likely a target that can not be imported."""
    return {"target": target, "replay": f"from tests.fuzz.targets import TARGETS\n\nTARGETS[{target!r}]()"}


def orders_for(
    names: Sequence[str], jobs: int, seconds: float, seed: int, turns: int = sys.maxsize, **options: Any
) -> list[Orders]:
    """Targets are dealt out to the workers; where there are fewer of them, several workers share one."""
    dealt = [names[i::jobs] or [names[i % len(names)]] for i in range(jobs)]
    turn = max(1.0, min(20.0, seconds * jobs / len(names) / 3))
    until = time.time() + seconds
    return [
        Orders(names=tuple(each), seed=seed + 1000 * i, until=until, turn=turn, turns=turns, number=i, **options)
        for i, each in zip(itertools.count(), dealt)
    ]
