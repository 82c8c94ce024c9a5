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
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import wraps
from typing import Any

from kernels.compile import notice

Rehearse = Callable[[], Any]
MOST = 3
FEW = 0.6  # seconds of compiling after which help is asked for, where some kernels of a module are there already
_offered: ContextVar[Callable[[], Rehearse | None] | None] = ContextVar("offered", default=None)
_helpers: "list[subprocess.Popen[bytes]]" = []


def rehearsed(rehearsal_of: Callable[..., Rehearse | None]) -> Callable[[Callable[..., Any]], Any]:
    """A function that offers a rehearsal of itself, which `rehearsal_of` makes of its arguments. None: there is none."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def offering(*args: Any, **options: Any) -> Any:
            if _offered.get() is not None:  # a part of a job that has offered one
                return function(*args, **options)
            token = _offered.set(lambda: rehearsal_of(*args, **options))
            try:
                return function(*args, **options)
            finally:
                _offered.reset(token)

        return offering

    return decorate


def missed(folder: str) -> None:
    """A kernel is not in this folder of the cache: get help, if it was offered and there is much to do."""
    offer = _offered.get()
    if offer is None or _running() or not (_is_empty(folder) or notice.listener.spent > FEW):
        return
    _offered.set(lambda: None)
    count = helper_count()
    if count:
        with suppress(Exception):  # what can not be pickled or started is compiled here, as it would be without help
            rehearse = offer()
            if rehearse is not None:
                _helpers[:] = start(rehearse, count)


def helper_count() -> int:
    """How many processes may compile beside this one."""
    chosen = os.environ.get("SWAG_COMPILERS", "")
    if chosen.isdigit():
        return int(chosen)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores - 1, MOST) if not notice.is_spark_worker() else 0


def start(rehearse: Rehearse, count: int) -> "list[subprocess.Popen[bytes]]":
    """Processes that compile what a rehearsal needs, each beginning elsewhere; what they did is said on their stdout."""
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
