"""Every property of the test suite, with new examples each time: whatever is added to the suite is fuzzed, too."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, get_state_machine_test

from tests.fuzz.failure import ROOT
from tests.fuzz.target import Target, calls

LEFT_OUT = (
    "tests/spark/",
    "tests/conformance/",
    "tests/test_fuzz",
    "tests/test_bench",
    "tests/test_docs",
    "tests/kernels/test_costs",
)


@cache
def properties() -> dict[str, tuple[Any, dict[str, Any]]]:
    """By name: a function, and how to draw its arguments. Machines are functions of what they draw."""
    found = {}
    for path in sorted(ROOT.glob("tests/**/test_*.py")):
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith(LEFT_OUT):
            module = import_module(name.removesuffix(".py").replace("/", "."))
            found |= {f"{module.__name__}.{each}": how for each, how in _properties_of(module)}
    return found


def _properties_of(module: Any) -> Iterator[tuple[str, tuple[Any, dict[str, Any]]]]:
    for name, value in vars(module).items():
        if getattr(value, "__module__", None) != module.__name__:
            continue
        if inspect.isclass(value) and issubclass(value, RuleBasedStateMachine):
            yield name, (get_state_machine_test(value).hypothesis.inner_test, {"data": None})
        elif name.startswith("test_") and hasattr(value, "hypothesis"):
            arguments = _parameters(value) | dict(value.hypothesis._given_kwargs)
            needed = inspect.signature(value.hypothesis.inner_test).parameters
            if set(needed) <= set(arguments):  # others need a fixture
                yield name, (value.hypothesis.inner_test, arguments)


def _parameters(test: Any) -> dict[str, Any]:
    """Of pytest.mark.parametrize: one of them at a time."""
    drawn = {}
    for mark in getattr(test, "pytestmark", []):
        if mark.name == "parametrize" and "," not in mark.args[0] and isinstance(mark.args[0], str):
            drawn[mark.args[0]] = st.sampled_from([getattr(each, "values", [each])[0] for each in mark.args[1]])
    return drawn


def check(data: Any) -> None:
    name = data.draw(st.sampled_from(sorted(properties())))
    test, arguments = properties()[name]
    calls.append(f"# {name}")
    drawn = {each: data if how is None else data.draw(how) for each, how in arguments.items()}
    calls.extend(f"# {each} = {value!r}"[:5000] for each, value in drawn.items() if value is not data)
    test(**drawn)


def target() -> Target:
    properties()  # tests are imported before one of them runs: Hypothesis refuses a test inside a test
    return Target("suite", {"data": st.data()}, check, plain=False)
