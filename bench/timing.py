"""Times that can be compared on a noisy machine: contenders take turns, and the best of each one's rounds counts."""

import time
from collections.abc import Callable
from typing import Any

Clock = Callable[[], float]


def interleaved(
    contenders: dict[str, Callable[[], Any]], rounds: int, clock: Clock = time.perf_counter
) -> dict[str, float]:
    """The best time of each, in seconds. Answers are dropped at once: a gigabyte of them must not slow the next one.

    Every other round goes backwards: who always came after the same one would always find the caches that it leaves.
    """
    best = dict.fromkeys(contenders, float("inf"))
    for number in range(rounds):
        for name, call in list(contenders.items())[:: -1 if number % 2 else 1]:
            best[name] = min(best[name], elapsed(call, clock))
    return best


def elapsed(call: Callable[[], Any], clock: Clock = time.perf_counter) -> float:
    start = clock()
    answer = call()
    seconds = clock() - start
    del answer
    return seconds


def best_of(call: Callable[[], Any], rounds: int, clock: Clock = time.perf_counter) -> float:
    return min(elapsed(call, clock) for _ in range(rounds))


def cpu_clock() -> float:
    """CPU seconds of this process, all threads: what one core does, whoever else is on it."""
    return time.process_time()
