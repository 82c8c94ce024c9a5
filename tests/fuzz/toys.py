"""Targets for the tests of the fuzzing itself."""

from __future__ import annotations

import os
import signal

from hypothesis import strategies as st

from tests.fuzz.target import plain, wrong

NUMBERS = st.lists(st.integers(0, 100), max_size=20)


def fine(case: list[int]) -> None:
    pass


def faulty(case: list[int]) -> None:
    """Two faults; the first one hides the other where both are there."""
    if len(case) > 2:
        raise ValueError(f"{len(case)} are more than 2")
    if any(n > 10 for n in case):
        raise wrong("large", f"{max(case)} is more than 10")


def crashing(case: list[int]) -> None:
    if len(case) > 2:
        os.kill(os.getpid(), signal.SIGKILL)


def endless(case: list[int]) -> None:
    while len(case) > 2:
        pass


TARGETS = {
    check.__name__: lambda check=check: plain(check.__name__, NUMBERS, check, len)
    for check in (fine, faulty, crashing, endless)
}
