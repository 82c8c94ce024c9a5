"""Properties over many shapes of user-defined and combined functions, each of which would compile for seconds.

Where kernels are compiled there are no such tests, and one test of the same file runs them in a process where none is.
"""

import os
import subprocess
import sys
from collections.abc import Callable

import numba


def only_uncompiled(test: Callable[..., None]) -> Callable[..., None] | None:
    return test if numba.config.DISABLE_JIT else None


def run_uncompiled(file: str) -> None:
    """The tests of a file that are marked so."""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "HYPOTHESIS_PROFILE": "quick"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts=", file, "-k", "property"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout and " skipped" not in done.stdout
