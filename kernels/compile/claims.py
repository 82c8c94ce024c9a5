"""Who compiles what: processes that fill one cache at once do not make the same code twice.

A process that is about to compile locks a file beside the one that it will write. The operating system lets go of the
lock when the process ends, however it ends. Claims save work and promise nothing: where they can not be had (a folder
that can only be read, a system without such locks) or take too long, everybody compiles for himself.
"""

import os
import time

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

LONGEST_WAIT = 20.0  # seconds that another's claim is waited for
WAIT_STEP = 0.004

_held: dict[str, int] = {}  # the open locks of this process


def take(path: str) -> bool:
    """True: this process is to make the file `path`. False: another has, while this one waited."""
    if path in _held:
        return True
    end = time.monotonic() + LONGEST_WAIT
    while True:
        try:
            handle = _locked(path)
        except OSError:
            return True
        if os.path.exists(path):
            _let_go(path, handle)
            return False
        if handle is not None:
            _held[path] = handle
            return True
        if time.monotonic() > end:
            return True
        time.sleep(WAIT_STEP)


def is_free(path: str) -> bool:
    """Has nobody made this file yet, nor begun to?"""
    if os.path.exists(path):
        return False
    try:
        handle = _locked(path)
    except OSError:
        return True
    _let_go(path, handle)
    return handle is not None


def release(path: str) -> None:
    """The file is there, or will not be."""
    _let_go(path, _held.pop(path, None))


def release_all() -> None:
    for path in list(_held):
        release(path)


def _lock(path: str) -> str:
    return f"{path}.lock"


def _locked(path: str) -> int | None:
    """The open lock of a file; None if another process has it. Raises where there can be none."""
    if fcntl is None:
        raise OSError("no locks")
    handle = os.open(_lock(path), os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    except OSError:  # a file system without locks
        os.close(handle)
        raise
    return handle


def _let_go(path: str, handle: int | None) -> None:
    if handle is not None:
        try:
            os.unlink(_lock(path))
        except OSError:
            pass
        os.close(handle)
