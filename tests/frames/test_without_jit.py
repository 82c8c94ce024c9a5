"""Frames of every spec there is, by kernels that are the plain Python they are written in: nothing has to be compiled.

It also finds what compiled code hides, as kernels/test_without_jit.py does.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
FILES = ["detect", "detector", "state"]


def test_frames_are_the_same_when_kernels_are_not_compiled() -> None:
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "HYPOTHESIS_PROFILE": "quick"}
    environment.pop("PYTEST_ADDOPTS", None)
    files = [str(HERE / f"test_{name}.py") for name in FILES]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", "-k", "not several_cores", *files],
        cwd=HERE.parent.parent, env=environment, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-1000:]
    passed = re.search(r"(\d+) passed", run.stdout)
    assert passed and int(passed[1]) > 300, run.stdout[-500:]
