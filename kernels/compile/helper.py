"""`python -m kernels.compile.helper NUMBER COUNT`: a process that compiles what a job needs that another has begun.

The job comes pickled on stdin. Several helpers begin at different places of the list of kernels, and leave out what is
there already, or claimed by another. On stdout: how many kernels are missing, then the name of each that was compiled.
"""

import os
import pickle
import sys
import threading
import warnings
from contextlib import suppress
from typing import Any

from kernels.compile import claims, rehearsal


class WithoutPandas:
    """Arrow loads pandas wherever it is installed, which takes 0.3 s; here nothing needs it."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name == "pandas":
            raise ImportError(name)


def main() -> None:
    """Rehearses the job that comes on stdin, then compiles in turn the kernels that the cache is missing."""
    number, count = int(sys.argv[1]), int(sys.argv[2])
    sys.meta_path.insert(0, WithoutPandas())
    noted = rehearsal.current = rehearsal.Rehearsal()  # before any kernel is imported
    job = sys.stdin.buffer.read(int.from_bytes(sys.stdin.buffer.read(8), "little"))
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(Exception), warnings.catch_warnings():  # what was noted until then is compiled all the same
        warnings.simplefilter("ignore")  # integers wrap and NaN spreads in kernels: silently, once they are compiled
        pickle.loads(job)()  # from the process that started this one (kernels/compile/ahead.py), and from nobody else
    missing = [call for call in noted.calls if _is_missing(*call)]
    say(str(len(missing)))
    for kernel, types in in_turn(missing, number, count):
        if claims.is_free(_path(kernel, types)):
            kernel.compile(types)
            say(f"{kernel.py_func.__module__}.{kernel.py_func.__name__}")


def in_turn(calls: list[Any], number: int, count: int) -> list[Any]:
    """From the end backwards; the second of two helpers begins in the middle, and so on."""
    start = len(calls) * number // count
    backwards = calls[::-1]
    return backwards[start:] + backwards[:start]


def _is_missing(kernel: Any, types: tuple[Any, ...]) -> bool:
    from kernels.compile.shared_code import is_local

    if is_local(types) or not hasattr(kernel._cache, "path"):  # not to be kept
        return False
    return not os.path.exists(_path(kernel, types))


def _path(kernel: Any, types: tuple[Any, ...]) -> str:
    path: str = kernel._cache.path(types, kernel.targetctx.codegen())
    return path


def say(text: str) -> None:
    try:
        print(text, flush=True)
    except OSError:  # nobody listens
        os._exit(0)


def _end_with_parent() -> None:
    """The other end of stdin is open for as long as the process that started this one is there."""
    sys.stdin.buffer.read(1)
    os._exit(0)


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # all is in files: to take apart what LLVM has built takes a second, for which somebody waits
