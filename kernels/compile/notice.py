"""Whoever waits is told: what is being compiled, and that it happens once. On a terminal or in a notebook only."""

import sys
import time
from typing import Any

from numba.core import event

from kernels.compile import claims
from kernels.compile.folder import cache_folder, can_be_kept
from kernels.compile.shared_code import is_local

MOMENT = 1.0  # seconds of compiling that nobody minds

quiet = False  # set by those who show progress themselves


def is_spark_worker() -> bool:
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    return main is not None and main.name.partition(".")[0] == "pyspark"


def is_watched() -> bool:
    """Does somebody read stderr? Not in a pipe, nor in a worker of Spark's, which may have the driver's terminal."""
    seen = "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())
    return seen and not is_spark_worker()


class Listener(event.Listener):  # type: ignore[misc]
    """Follows Numba's own account of what it compiles; owns how long that has taken, and whether it was said."""

    def __init__(self) -> None:
        self.depth, self.started, self.spent, self.told = 0, 0.0, 0.0, False

    def on_start(self, event: Any) -> None:
        if self.depth == 0:
            self.started = time.monotonic()
            if not self.told and not quiet and self.spent > MOMENT:
                self._tell(event.data["dispatcher"].py_func.__module__, event.data["args"])
        self.depth += 1

    def on_end(self, event: Any) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.spent += time.monotonic() - self.started
        if event.is_failed:
            claims.release_all()

    def _tell(self, module: str, arguments: Any) -> None:
        self.told = True
        if is_watched() and module.startswith("kernels."):
            if is_local(arguments):
                lasts = "for functions of your own: a few seconds, in each process that uses them"
            elif can_be_kept():
                lasts = f"for this machine: once, a few seconds; kept in {cache_folder()}"
            else:
                lasts = f"for this process: a few seconds; they can not be kept in {cache_folder()} ($SWAG_CACHE_DIR)"
            what = module.removeprefix("kernels.")
            print(f"swag: compiling kernels ({what}, …) {lasts}", file=sys.stderr, flush=True)


listener = Listener()
event.register("numba:compile", listener)
