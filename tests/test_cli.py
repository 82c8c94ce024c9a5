"""The command line: help, versions, one line and exit code 2 for a user's mistake, and the demo, small."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

import frames as fr
import swag as sw
from frames.specs.kinds import KINDS as FRAMES
from swag.cli import demo_job as demo
from swag.cli import main, warm_jobs
from swag.query.kind import KINDS
from swag.query.windows import WINDOWS


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--version") == (0, f"swag {sw.__version__}\n", "")


@pytest.mark.parametrize("arguments", [(), ("--help",), ("-h",)])
def test_help_lists_the_commands(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]) -> None:
    code, out, err = run(capsys, *arguments)
    assert (code, err) == (0, "")
    assert "demo" in out
    assert "bench" in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("dmeo",), 'there is no command "dmeo"; there are: bench, demo, explain, frames, run, warm. Hint: swag demo'),
        (("xyzzy",), "Hint: swag --help"),
        (("demo", "--evnts", "9"), "--events"),
        (("demo", "--events", "many"), "'many' is not a valid integer"),
        (("demo", "--events", "3"), "1000"),
        (("demo", "extra"), "extra"),
    ],
)
def test_a_mistake_is_one_line_and_code_2(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], says: str
) -> None:
    code, out, err = run(capsys, *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("swag: ")
    assert says in err


def test_warm_says_what_it_did(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swag.cli.warming.everything", partial(int, 5))  # a job without kernels
    code, out, err = run(capsys, "warm")
    assert (code, err) == (0, "")
    assert out.splitlines()[-1] == "Nothing was left to compile."


REHEARSE = """
import warnings
from kernels.compile import rehearsal
noted = rehearsal.current = rehearsal.Rehearsal()
from swag.cli import warm_jobs
warnings.simplefilter("ignore")
warm_jobs.everything()
print(*sorted({kernel.py_func.__module__ for kernel, _ in noted.calls}))
"""


def test_what_warm_rehearses_runs_through_and_reaches_all_kinds_of_kernels() -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(sw.__file__).parents[1]), "NUMBA_DISABLE_JIT": "0"}
    ran = subprocess.run([sys.executable, "-c", REHEARSE], env=environment, capture_output=True, text=True)
    assert ran.stderr == ""
    rooms = {name.split(".")[1] for name in ran.stdout.split()}
    assert rooms >= {"frames", "key_filters", "keys", "rings", "stored", "ticks", "windows"}


def test_every_kind_is_among_the_jobs_of_warm() -> None:
    """Aggregates, windows and frames: what is new is compiled beforehand, too."""
    asked = warm_jobs.queries()
    assert {query.aggregate.kind for query in asked} == KINDS.keys() - {"aggregate"}  # of users' own functions
    assert {type(query.window) for query in asked} == set(WINDOWS)
    assert {type(spec) for spec in warm_jobs.specs()} == {*FRAMES} - {fr.Custom}, "swag/cli/warm_jobs.py lists one"


def test_an_engine_takes_nearly_all_that_is_rehearsed() -> None:
    asked = warm_jobs.queries()
    taken = set(warm_jobs.kept(asked, None))
    assert {type(query.window) for query in asked if query not in taken} == {sw.Unbounded}


def test_bench_without_a_checkout_says_so(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    code, out, err = run(capsys, "bench", "micro", "--help")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "make bench" in err


def test_bench_hands_its_arguments_on(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    class Bench:
        @staticmethod
        def main(arguments: list[str]) -> int:
            print(arguments)
            return 3

    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    monkeypatch.setattr("importlib.import_module", lambda name: Bench)
    with pytest.raises(SystemExit, match="3"):
        main(["bench", "micro", "--json", "x"])
    assert capsys.readouterr().out == "['micro', '--json', 'x']\n"


def test_the_demo_shows_answers_plan_and_savings(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "demo", "--events", "4000", "--symbols", "20", "--seed", "1")
    assert (code, err) == (0, "")
    assert "400 queries over one stream" in out
    assert "Same answers" in out
    assert "one by one" in out
    assert all(len(line) <= 80 for line in out.splitlines())


def test_trades_are_made_by_the_seed_alone() -> None:
    assert demo.trades(1000, 50, 3).equals(demo.trades(1000, 50, 3))
    assert not demo.trades(1000, 50, 3).equals(demo.trades(1000, 50, 4))


def test_the_sample_has_two_queries_of_each_aggregate() -> None:
    kinds = [query.label.split("_")[0] for query in demo.sample()]
    assert sorted(kinds) == sorted(list(demo.AGGREGATES) * 2)
