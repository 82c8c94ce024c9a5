"""Compiled kernels can not count: test_costs.py is for test_without_jit.py alone.

Without compiling, constants can be changed: stretches of a few rows, so that small streams have many of them.
"""

import pytest

from kernels.baselines import naive
from kernels.windows import landmark
from tests.kernels.harness import JIT

collect_ignore = ["test_costs.py"] if JIT else []

if not JIT:

    @pytest.fixture(autouse=True, scope="session")
    def short_stretches() -> None:
        landmark.STRETCH_BITS, naive.STRETCH = 2, 4
