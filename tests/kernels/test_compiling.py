"""Kernels are compiled by one process at a time, ahead of who will need them; whoever waits is told, once."""

import io
import os
import pickle
import subprocess
import sys
import types
from functools import partial
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

from kernels.compile import ahead, claims, helper, notice
from kernels.compile.jit import kernel
from kernels.operators import monoids

ROOT = Path(__file__).parent.parent.parent
ENGINE = """
import swag as sw
engine = sw.Engine(key="k")
engine.register([sw.Query(sw.sum("x"), sw.Range(5), name="s"), sw.Query(sw.max("x"), sw.Rows(3), name="m")])
engine.append({"ts": [1, 2, 3, 4], "k": [1, 2, 1, 2], "x": [1.0, 2.0, 3.0, 4.0]})
print(engine.lookup_all().to_pylist())
"""


def run(code: str, cache: Path, **options: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SWAG_CACHE_DIR": str(cache), "NUMBA_DISABLE_JIT": "0"}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment | options, cwd=cache, capture_output=True, text=True
    )


def files(cache: Path) -> set[str]:
    return {str(path.relative_to(cache)) for path in cache.rglob("*") if path.is_file()}


# -- side by side -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, set[str]]:
    """What a process without help answers, and the files that it fills an empty cache with."""
    cache = tmp_path_factory.mktemp("alone")
    done = run(ENGINE, cache, SWAG_COMPILERS="0")
    assert done.stderr == ""
    return done.stdout, files(cache)


def test_helpers_compile_what_the_job_needs_and_nothing_else(tmp_path: Path, alone: tuple[str, set[str]]) -> None:
    """With help or without it: the same answers, the same files, and no lock is left."""
    together = run(ENGINE, tmp_path, SWAG_COMPILERS="2")
    assert together.stderr == ""
    found = {name for name in files(tmp_path) if not name.endswith(".lock")}
    assert (together.stdout, found) == alone


def test_a_rehearsal_names_every_kernel_that_the_job_compiles(tmp_path: Path, alone: tuple[str, set[str]]) -> None:
    """A process that helps by itself, with nobody before it, fills the whole cache."""
    job = (
        "from kernels.compile import ahead\nhelpers = ahead.start({}, 1)\nahead.wait(helpers, lambda total, name: None)"
    )
    code = f"from functools import partial\nexec_ = partial(exec, {ENGINE!r}, {{}})\n{job.format('exec_')}"
    done = run(code, tmp_path)
    assert done.stderr == ""
    assert files(tmp_path) == alone[1]


def test_helpers_begin_at_different_places_and_leave_nothing_out() -> None:
    calls = list("abcdef")
    assert "".join(helper.in_turn(calls, 0, 2)) == "fedcba"
    assert "".join(helper.in_turn(calls, 1, 2)) == "cbafed"


@pytest.mark.parametrize(("chosen", "count"), [("0", 0), ("5", 5)])
def test_how_many_helpers_there_are_can_be_chosen(chosen: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWAG_COMPILERS", chosen)
    assert ahead.helper_count() == count


def test_a_worker_of_spark_starts_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SWAG_COMPILERS", raising=False)
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", types.SimpleNamespace(name="pyspark.daemon"))
    assert ahead.helper_count() == 0
    assert not notice.is_watched()


def test_help_is_asked_for_once_and_only_where_it_was_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Any] = []
    monkeypatch.setenv("SWAG_COMPILERS", "1")
    monkeypatch.setattr(ahead, "start", lambda job, count: started.append(job()) or [])
    monkeypatch.setattr(notice.listener, "spent", 0.0)

    @ahead.rehearsed(lambda what: partial(str, what))
    def job(what: int) -> None:
        ahead.missed("/no/such/folder")
        ahead.missed("/no/such/folder")
        inner(what)

    @ahead.rehearsed(lambda what: partial(str, -what))
    def inner(what: int) -> None:
        ahead.missed("/no/such/folder")

    ahead.missed("/no/such/folder")
    assert started == []
    job(5)
    assert started == ["5"]


def test_what_can_not_be_pickled_is_compiled_without_help(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWAG_COMPILERS", "1")
    monkeypatch.setattr(notice.listener, "spent", 0.0)

    @ahead.rehearsed(lambda what: lambda: what)
    def job(what: int) -> int:
        ahead.missed("/no/such/folder")
        return what

    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(lambda: None)
    assert job(5) == 5


# -- claims -----------------------------------------------------------------------------------------------------------


HOLD = """
import sys
from kernels.operators import monoids
from kernels.compile import claims
assert claims.take(sys.argv[1])
print("held", flush=True)
sys.stdin.readline()
if sys.argv[2] == "make":
    open(sys.argv[1], "w").close()
    claims.release(sys.argv[1])
"""


def holder(path: Path, then: str) -> "subprocess.Popen[str]":
    """Another process that has claimed a file."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path), then],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


@pytest.mark.parametrize(("then", "mine"), [("make", False), ("die", True)])
def test_a_claim_is_waited_for_until_its_holder_is_done_or_gone(then: str, mine: bool, tmp_path: Path) -> None:
    path = tmp_path / "code.nbc"
    process = holder(path, then)
    assert not claims.is_free(str(path))
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
    assert claims.take(str(path)) is mine
    claims.release(str(path))
    process.communicate()
    assert not (tmp_path / "code.nbc.lock").exists()


def test_what_takes_too_long_is_compiled_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "LONGEST_WAIT", 0.0)
    process = holder(tmp_path / "code.nbc", "die")
    assert claims.take(str(tmp_path / "code.nbc"))
    process.communicate("\n")


def test_without_locks_everybody_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "fcntl", None)
    assert claims.take(str(tmp_path / "code.nbc"))
    assert claims.is_free(str(tmp_path / "code.nbc"))
    assert list(tmp_path.iterdir()) == []


# -- whoever waits is told --------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def told(
    stderr: io.StringIO, monkeypatch: pytest.MonkeyPatch, spent: float, quiet: bool = False, arguments: tuple = ()
) -> str:
    """What is written when a kernel is compiled for some arguments, after so many seconds of compiling."""
    listener = notice.Listener()
    listener.spent = spent
    event = types.SimpleNamespace(
        data={
            "dispatcher": types.SimpleNamespace(py_func=types.SimpleNamespace(__module__="kernels.rings.timeline")),
            "args": arguments,
        },
        is_failed=False,
    )
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stderr", stderr)
        patched.setattr(notice, "quiet", quiet)
        for _ in range(3):
            listener.on_start(event)
            listener.on_end(event)
    return stderr.getvalue()


def test_compiling_is_told_once_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    said = told(Terminal(), monkeypatch, spent=2.0)
    assert said.startswith("swag: compiling kernels (rings.timeline, …) for this machine: once")
    assert said.count("\n") == 1


def test_what_is_compiled_again_in_every_process_is_not_said_to_be_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    own = monoids.define("Own", monoids.lift_value, monoids.add, monoids.lift_value, None, np.int64)
    said = told(Terminal(), monkeypatch, spent=2.0, arguments=(numba.typeof(own),))
    assert "functions of your own" in said and "in each process" in said and "once" not in said
    monkeypatch.setenv("SWAG_CACHE_DIR", str(tmp_path / "none"))
    said = told(Terminal(), monkeypatch, spent=2.0)
    assert "can not be kept" in said and "once" not in said


def test_nothing_is_said_in_a_pipe_or_of_a_moment_or_beside_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(io.StringIO(), monkeypatch, spent=2.0) == ""
    assert told(Terminal(), monkeypatch, spent=0.1) == ""
    assert told(Terminal(), monkeypatch, spent=2.0, quiet=True) == ""


# -- once -------------------------------------------------------------------------------------------------------------


@kernel
def picked(values, i):
    return values[i]


@kernel
def add_first(columns, more, out):
    for i in range(out.size):
        out[i] = columns[0][i] + more[i] + picked(columns[1], 0) + picked(more, i)


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that are found in the cache bring the code of their parts, which are then not compiled at all."""
    monkeypatch.setenv("SWAG_CACHE_DIR", str(tmp_path))


def unwritable(values: list[float]) -> np.ndarray:
    array = np.array(values)
    array.flags.writeable = False
    return array


def test_a_kernel_is_compiled_once_for_arrays_that_may_be_written_or_only_read_and_for_numbers_in_the_source(
    empty_cache: None,
) -> None:
    for a, b, c in [
        (np.array, np.array, np.array),
        (np.array, unwritable, np.array),
        (unwritable, unwritable, unwritable),
    ]:
        out = np.zeros(2)
        for _ in range(2):  # found by Python's call, the second time
            add_first((a([1.0, 2.0]), b([10.0, 20.0])), c([100.0, 200.0]), out)
        assert out.tolist() == [1 + 100 + 10 + 100, 2 + 200 + 10 + 200]
    assert (len(add_first.overloads), len(picked.overloads)) == (1, 1)


def test_functions_that_are_not_ours_still_can_not_write_what_may_only_be_read(empty_cache: None) -> None:
    picked(unwritable([1.0]), 0)

    @njit
    def write(values):
        values[0] = 2.0

    with pytest.raises(TypingError, match="readonly"):
        write(unwritable([1.0]))


def test_code_is_found_at_once_even_where_threads_asked_for_it_at_the_same_time(
    empty_cache: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Known twice, it was searched for at every call, in Python: 0.3 ms each."""
    for _ in range(2):  # as two threads do that both find nothing
        picked._compile_for_args(unwritable([1.0]), 0)
    monkeypatch.setattr(picked, "_compile_for_args", lambda *args: pytest.fail("searched for"))
    assert picked(unwritable([1.0]), 0) == 1.0
