"""One target under Hypothesis: rounds of new examples. A failure that is known is passed over, a new one is shrunk."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, Phase, Verbosity, given, reproduce_failure, seed, settings
from hypothesis.database import ExampleDatabase
from hypothesis.errors import HypothesisException, StopTest

from tests.fuzz.failure import Failure, failure_of, replay_of
from tests.fuzz.reducing import reduced
from tests.fuzz.target import Hung, Target, calls

SHRINKING, AT_MOST = 8.0, 60.0  # seconds that a hunt may take longer with every failure that it finds, and in all
REDUCING = 15.0  # seconds for leaving things out of a failing case
PASSED_ON = (StopTest, HypothesisException, KeyboardInterrupt)  # how Hypothesis itself ends an example


class TimeIsUp(BaseException):
    """Ends a round at once: no one but `Hunt` catches it. What took too long is not made smaller, which would, too."""


@dataclass
class Hunt:
    """What has been found of a target so far, in however many rounds.

    `before` is told of every case before it is tried. `longest`: the seconds that a case may take, 0 for ever.
    """

    target: Target
    database: ExampleDatabase | None = None
    longest: int = 0
    before: Callable[[Target, dict[str, Any]], None] = lambda target, drawn: None
    examples: int = 0
    steps: int = 0
    found: dict[str, Failure] = field(default_factory=dict)  # by place: the smallest of each
    _new: dict[str, dict[str, Any]] = field(default_factory=dict)  # of this round, by place: what was drawn
    _end: float = float("inf")
    _latest: float = float("inf")

    def hunt(self, seconds: float, number: int) -> None:
        """Rounds, each from a seed of its own, until the time is up; no time at all is one round, however long."""
        if not seconds:
            self.round(number, replaying=self.examples == 0)
            return
        self._end = time.monotonic() + seconds
        self._latest = self._end + AT_MOST
        while time.monotonic() < self._end:
            self.round(number, replaying=self.examples == 0)
            number += 1

    def round(self, number: int, replaying: bool = False, **changed: Any) -> None:
        """`replaying`: what failed in an earlier run is tried first. `changed`: settings that differ."""
        self._new.clear()
        phases = (Phase.reuse,) * replaying + (Phase.generate, Phase.target, Phase.shrink)
        options = {
            "max_examples": self.target.examples, "database": self.database, "phases": phases, "deadline": None,
            "derandomize": False, "verbosity": Verbosity.quiet, "suppress_health_check": list(HealthCheck),
        }  # fmt: skip
        test = given(**self.target.given)(self._trial())
        test = test if changed.get("derandomize") else seed(number)(test)  # before settings: it takes the database away
        self._run(settings(**options | changed)(test))
        for place, drawn in self._new.items() if self.target.plain else ():
            if not self.found[place].is_slow:
                self._reduce(place, drawn["case"])

    def _run(self, test: Callable[[], None]) -> None:
        try:
            test()
        except (KeyboardInterrupt, SystemExit):
            raise
        except TimeIsUp:
            return
        except BaseException:  # what it says is in `found` already, or it was cut short
            if not self._new and time.monotonic() < self._end:
                raise

    def _trial(self) -> Callable[..., None]:
        def trial(**drawn: Any) -> None:
            if time.monotonic() > self._end:
                raise TimeIsUp
            self.examples += 1
            self.steps += self.target.steps(**drawn)
            self.before(self.target, drawn)
            self._try(drawn)

        trial._hypothesis_internal_add_digest = self.target.name.encode()  # type: ignore[attr-defined]
        return trial

    def _try(self, drawn: dict[str, Any]) -> None:
        """Raises only what was not found before this round, so that Hypothesis looks for others."""
        calls.clear()
        try:
            with at_most(self.longest):
                self.target.check(**drawn)
        except PASSED_ON:
            raise
        except BaseException as why:
            failure = failure_of(self.target, why, replay_of(self.target, drawn), calls)
            if failure.place not in self.found:
                self._end = min(self._end + SHRINKING, self._latest)
                self._new[failure.place] = drawn
            if failure.place in self._new:
                self._keep(failure, drawn)
                raise TimeIsUp if failure.is_slow else why  # noqa: B904

    def _keep(self, failure: Failure, drawn: dict[str, Any]) -> None:
        known = self.found.get(failure.place)
        if known is None or failure.size < known.size:
            self.found[failure.place], self._new[failure.place] = failure, drawn

    def _reduce(self, place: str, case: Any) -> None:
        """Hypothesis may have run out of time, and knows little of lists."""

        def fails(less: Any) -> bool:
            calls.clear()
            try:
                with at_most(self.longest):
                    self.target.check(less)
            except Exception as why:
                failure = failure_of(self.target, why, replay_of(self.target, {"case": less}), calls)
                if failure.place == place:
                    self.found[place] = failure
                return failure.place == place
            return False

        reduced(case, fails, REDUCING)


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Raises Hung in what takes longer, where it runs Python."""
    if not seconds:
        yield
        return

    def ring(*_: Any) -> None:
        raise Hung(f"a case took more than {seconds} seconds")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def replay(name: str, version: str, choices: bytes) -> None:
    """The case of a target that is made of these choices."""
    from tests.fuzz.targets import TARGETS

    target = TARGETS[name]()

    def trial(**drawn: Any) -> None:
        target.check(**drawn)

    test = settings(database=None, deadline=None)(given(**target.given)(trial))
    reproduce_failure(version, choices)(test)()
