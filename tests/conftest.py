"""How the tests run: Hypothesis by profile, kernels compiled or (NUMBA_DISABLE_JIT=1) as plain Python.

    HYPOTHESIS_PROFILE=ci         the default: reproducible, the same examples every time
    HYPOTHESIS_PROFILE=thorough   ten times as many, new ones every time
    HYPOTHESIS_PROFILE=jit-off    a few, for kernels that are not compiled
    HYPOTHESIS_PROFILE=quick      very few, for `make check`

Another number of examples than the profile's is a share of it, so that all of them grow and shrink together.
"""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = str(Path(__file__).parent.parent)
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)

os.environ.setdefault("SWAG_COMPILERS", "0")  # all cores are busy with tests

from tests.spark_session import spark  # noqa: E402, F401  (a fixture: Spark starts where it is asked for)

SLOW_START = [HealthCheck.too_slow, HealthCheck.data_too_large]  # a first example compiles kernels
settings.register_profile("ci", max_examples=100, deadline=None, derandomize=True, suppress_health_check=SLOW_START)
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


@pytest.hookimpl(tryfirst=True)  # before xdist reads the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A process takes a file, or all that share the session of Spark: its Java is as slow as it is new.

    These go first, and after them those that start a Spark of their own: few that take long. Left for the end, as
    their number has it, one core waits for them.
    """
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            shares = "spark" in getattr(item, "fixturenames", ())
            item.add_marker(pytest.mark.xdist_group("spark" if shares else item.nodeid.partition("::")[0]))
    items.sort(key=lambda item: (not shares_spark(item), "spark" not in item.path.parts))


def shares_spark(item: pytest.Item) -> bool:
    mark = item.get_closest_marker("xdist_group")
    return mark is not None and mark.args == ("spark",)
