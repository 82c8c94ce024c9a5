"""A long evaluation says how far it is: on a terminal, after a while, unless it is told not to."""

import io
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import swag as sw
from swag import progress

EVENTS = {"ts": np.arange(1 << 16), "x": np.arange(2.0**16)}  # of fewer, nobody would be told
QUERY = sw.Query(sw.sum("x"), sw.Range(5), name="s")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Scripted:
    """In place of an event: whether it is over, each time that somebody waits for it."""

    def __init__(self, *over: bool) -> None:
        self.over = list(over)

    def wait(self, timeout: float) -> bool:
        return self.over.pop(0)


def test_a_line_comes_after_a_while_and_is_wiped_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    progress._tell(progress.Progress(), Scripted(False, False, True))  # type: ignore[arg-type]
    line = "swag: evaluating, 0 s"
    assert sys.stderr.getvalue() == f"\r{line}\r{line}\r{' ' * len(line)}\r"  # type: ignore[attr-defined]


class Handle:
    """In place of IPython's: what a cell shows, and how often it was shown anew."""

    shown: list[str] = []

    def display(self, data: dict[str, str], raw: bool) -> None:
        self.shown.append(data["text/plain"])

    def update(self, data: dict[str, str], raw: bool) -> None:
        self.shown[-1] = data["text/plain"]


class GoneHandle(Handle):
    def update(self, data: dict[str, str], raw: bool) -> None:
        raise RuntimeError("the kernel is shut down")


@pytest.mark.parametrize(
    ("handle", "left"), [(Handle, "swag: evaluated in 0 s"), (GoneHandle, "swag: evaluating, 0 s")]
)
def test_in_a_notebook_one_output_changes(handle: type[Handle], left: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setattr(handle, "shown", [])
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(DisplayHandle=handle))
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    progress._tell(progress.Progress(), Scripted(False, False, False, True))  # type: ignore[arg-type]
    assert handle.shown == [left]
    assert sys.stderr.getvalue() == ""  # type: ignore[attr-defined]


@pytest.mark.parametrize("shell", [None, SimpleNamespace()])
def test_a_prompt_on_a_terminal_is_no_notebook(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert not progress.in_notebook()


def test_a_short_one_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    progress._tell(progress.Progress(), Scripted(True))  # type: ignore[arg-type]
    assert sys.stderr.getvalue() == ""  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("stderr", "wanted", "times"),
    [
        (Terminal(), None, 1),
        (Terminal(), False, 0),
        (io.StringIO(), None, 0),
        (io.StringIO(), True, 1),
    ],
)
def test_where_it_is_told(
    stderr: io.StringIO, wanted: bool | None, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[progress.Progress] = []
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setattr(progress, "_tell", lambda steps, over: told.append(steps))
    answers = sw.evaluate(QUERY, EVENTS, progress=wanted)
    assert answers["s"].to_pylist()[:3] == [0.0, 1.0, 3.0]
    assert len(told) == times
    assert all(steps.done == steps.total > 0 for steps in told)


def test_what_runs_inside_another_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    monkeypatch.setattr(progress, "_tell", lambda steps, over: told.append(steps))
    with progress.shown(True), progress.shown(True):
        pass
    assert len(told) == 1


def test_the_share_that_is_done() -> None:
    counted = progress.Progress()
    assert counted.line(3.2) == "swag: evaluating, 3 s"
    counted.total, counted.done = 4, 1
    assert counted.line(3.2) == "swag: evaluating, 25 %, 3 s"
