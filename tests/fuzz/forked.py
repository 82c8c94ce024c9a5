"""A function in a process of its own, for what may damage the memory of the one it runs in."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable

from tests.fuzz.target import Hung, wrong


def in_a_fork(function: Callable[[], str], about: str, seconds: float = 60.0) -> str:
    """What it returns. A process that is ended by a signal is a wrong answer; so is one that does not end."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _answer(function, writing)
    os.close(writing)
    try:
        text = _read(reading, time.monotonic() + seconds)
    except TimeoutError:
        os.kill(child, signal.SIGKILL)
        raise Hung(f"{about} took more than {seconds:.0f} seconds") from None
    finally:
        os.close(reading)
        _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        raise wrong(f"{about}: {name}", f"the process was ended by {name}")
    return text


def _answer(function: Callable[[], str], writing: int) -> None:
    """Says nothing on the terminal, and never returns to what the parent was about to do."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        os.write(writing, function().encode()[:60_000])
    finally:
        os._exit(0)


def _read(reading: int, until: float) -> str:
    content = b""
    while True:
        ready, _, _ = select.select([reading], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            raise TimeoutError
        more = os.read(reading, 65536)
        if not more:
            return content.decode(errors="replace")
        content += more
