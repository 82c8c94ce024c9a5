"""The kernel tests once more, with the kernels as the plain Python they are written in (stumpy's other half).

Finds what compiled code hides: an index out of bounds, an integer that wraps unnoticed. And it counts (test_costs.py).
"""

import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
FILES = [
    "structures",
    "psoup",
    "sorted_runs",
    "threshold_runs",
    "previous",
    "timeline",
    "late",
    "hashing",
    "running",
    "costs",
]


def test_kernels_do_the_same_when_they_are_not_compiled() -> None:
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "HYPOTHESIS_PROFILE": "jit-off"}
    environment.pop("PYTEST_ADDOPTS", None)
    files = [str(HERE / f"test_{name}.py") for name in FILES]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", *files],
        cwd=HERE.parent.parent, env=environment, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-1000:]
    passed = re.search(r"(\d+) passed", run.stdout)
    assert passed and int(passed[1]) > 150, run.stdout[-500:]
