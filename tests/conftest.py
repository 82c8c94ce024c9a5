"""How the tests run: Hypothesis by profile, kernels compiled or (NUMBA_DISABLE_JIT=1) as plain Python.

    HYPOTHESIS_PROFILE=ci         the default: reproducible, the same examples every time
    HYPOTHESIS_PROFILE=thorough   twenty times as many, new ones every time
    HYPOTHESIS_PROFILE=jit-off    a few, for kernels that are not compiled
    HYPOTHESIS_PROFILE=quick      very few, for `make check`

Another number of examples than the profile's is a share of it (tests/examples.py): all grow and shrink together.
What fifty examples do not find, `make fuzz` looks for.
"""

import gc
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

ROOT = str(Path(__file__).parent.parent)
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)

os.environ.setdefault("SWAG_COMPILERS", "0")  # all cores are busy with tests

from tests.spark_session import (  # noqa: E402
    shares_session,
    spark,  # noqa: F401  (a fixture: Spark starts where it is asked for)
)

SLOW_START = [HealthCheck.too_slow, HealthCheck.data_too_large]  # a first example compiles kernels
settings.register_profile("ci", max_examples=50, deadline=None, derandomize=True, suppress_health_check=SLOW_START)
settings.register_profile("thorough", max_examples=1000, deadline=None, suppress_health_check=SLOW_START)
settings.register_profile("jit-off", settings.get_profile("ci"), max_examples=20)
settings.register_profile("quick", settings.get_profile("ci"), max_examples=10)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

WRAPPING = ("overflow encountered", "invalid value encountered", "divide by zero encountered")


def pytest_configure(config: pytest.Config) -> None:
    """Integers wrap and NaN spreads in kernels: meant, and silent when they are compiled."""
    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        for message in WRAPPING:
            config.addinivalue_line("filterwarnings", f"ignore:{message}:RuntimeWarning")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One more than there are cores: those on Spark wait half of their time, for a JVM or for a trigger."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those on Spark first: few that take long. Left for the end, as their number has it, one core waits for them."""
    items.sort(key=lambda item: (not shares_session(item.path), "spark" not in item.path.parts))


def pytest_collection_finish() -> None:
    """What was imported and collected stays: the garbage collector need not look at it again, nor come as often.

    Compiling makes objects by the million, nearly all of which are kept.
    A tenth of its time went into looking for others.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 50, 100)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With --dist loadfile, a process takes a file; those that share the session of Spark are as one.

    A session in each process would be a Java in each, that takes 20 seconds of a core before it is quick.
    """
    from xdist.scheduler import LoadFileScheduling

    class ByFileOrSession(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file: str = super()._split_scope(nodeid)
            return "the session of Spark" if shares_session(config.rootpath / file) else file

    return ByFileOrSession(config, log) if config.getvalue("dist") == "loadfile" else None
