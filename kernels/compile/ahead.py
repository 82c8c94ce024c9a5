"""Kernels compiled side by side: where a job finds nothing compiled, other processes work ahead of it.

Who begins a job offers a rehearsal of it: a function that can be pickled, over a few rows of the same types. If a
kernel is then missing from the cache, processes are started that rehearse the job (kernels/compile/helper.py) and
compile what it will need, from its end, while this one compiles from its beginning. Where everything is compiled
already, an offer is never looked at.

$SWAG_COMPILERS: how many processes may be started, 0 for none. If it is not set: one for each other core, at most 3.
"""

import atexit
import os
import pickle
import queue
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from numba import config

from kernels.compile import notice

Rehearse = Callable[[], Any]
MOST_HELPERS = 3
WORTH_HELP = 0.6  # seconds of compiling after which a job asks for help, where the cache is not empty
P = ParamSpec("P")
R = TypeVar("R")


@dataclass
class Offer:
    """A rehearsal to be made if need be. spent: the seconds that compiling had taken when the job began."""

    rehearsal: Callable[[], Rehearse]
    spent: float
    taken: bool = False


_offered: ContextVar[Offer | None] = ContextVar("offered", default=None)
_helpers: "list[subprocess.Popen[bytes]]" = []


def rehearsed(rehearsal_of: Callable[..., Rehearse]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A function that offers a rehearsal of itself, which `rehearsal_of` makes of its arguments."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        """The function, whose calls offer a rehearsal, but for those within a job that has offered one already."""
        if config.DISABLE_JIT:  # nothing is compiled
            return function

        @wraps(function)
        def offering(*args: P.args, **options: P.kwargs) -> R:
            if _offered.get() is not None:  # a part of a job that has offered one
                return function(*args, **options)
            token = _offered.set(Offer(lambda: rehearsal_of(*args, **options), notice.listener.spent))
            try:
                return function(*args, **options)
            finally:
                _offered.reset(token)

        return offering

    return decorate


def missed(folder: str) -> None:
    """A kernel is not in this folder of the cache: get help, if it was offered and there is much to do."""
    offer = _offered.get()
    if offer is None or offer.taken or _running():
        return
    spent = notice.listener.spent
    if spent - offer.spent > WORTH_HELP or (spent == 0 and _is_empty(folder)):
        offer.taken = True
        count = helper_count()
        if count:
            with suppress(Exception):  # what can not be pickled or started is compiled here, as without help
                _helpers[:] = start(offer.rehearsal(), count)


def helper_count() -> int:
    """How many processes may compile beside this one."""
    chosen = os.environ.get("SWAG_COMPILERS", "")
    if chosen.isdigit():
        return int(chosen)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores - 1, MOST_HELPERS) if not notice.is_spark_worker() else 0


def start(rehearse: Rehearse, count: int) -> "list[subprocess.Popen[bytes]]":
    """Processes that compile what a rehearsal needs, each beginning elsewhere; `wait` hears what they did."""
    if not sys.executable or not os.path.basename(sys.executable).lower().startswith(("python", "pypy")):
        return []
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    environment = {**os.environ, "PYTHONPATH": path, "SWAG_COMPILERS": "0", "NUMBA_NUM_THREADS": "1"}
    job, helpers = pickle.dumps(rehearse), []
    for number in range(count):
        helper = subprocess.Popen(
            [sys.executable, "-P", "-m", "kernels.compile.helper", str(number), str(count)],
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        assert helper.stdin is not None
        helper.stdin.write(len(job).to_bytes(8, "little") + job)
        helper.stdin.flush()  # and is left open: a helper ends when this process does
        helpers.append(helper)
    return helpers


def wait(helpers: "list[subprocess.Popen[bytes]]", compiled: Callable[[int, str], None]) -> None:
    """Until they are done. compiled: is told how many kernels there are to compile, and the name of each that was."""
    told: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def listen(helper: "subprocess.Popen[bytes]") -> None:
        assert helper.stdout is not None
        for line in helper.stdout:
            told.put(line.decode().strip())
        told.put(None)

    for helper in helpers:
        threading.Thread(target=listen, args=(helper,), daemon=True).start()
    total, ended = 0, 0
    while ended < len(helpers):
        line = told.get()
        if line is None:
            ended += 1
        elif line.isdigit():
            total = max(total, int(line))
        compiled(total, "" if line is None or line.isdigit() else line)


def _is_empty(folder: str) -> bool:
    try:
        return not any(name.endswith(".nbc") for name in os.listdir(folder))
    except OSError:
        return True


def _running() -> bool:
    return any(helper.poll() is None for helper in _helpers)


@atexit.register
def stop(helpers: "list[subprocess.Popen[bytes]]" = _helpers) -> None:
    """End them; a kernel that is half compiled is left to the next."""
    for helper in helpers:
        if helper.poll() is None:
            helper.kill()
        helper.wait()
        for stream in (helper.stdin, helper.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
