"""The fuzzing itself: every target runs; a failure is found once, made small, written down, and stops nobody else."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import Phase
from hypothesis.database import InMemoryExampleDatabase

from tests.fuzz.__main__ import parser
from tests.fuzz.failure import ROOT
from tests.fuzz.hunt import Hunt
from tests.fuzz.overseer import Overseer, orders_for
from tests.fuzz.reducing import reduced
from tests.fuzz.targets import TARGETS
from tests.fuzz.toys import TARGETS as TOYS

FEW = {"own": 1, "suite": 3}  # of the user's own functions, each takes seconds to compile


@pytest.mark.parametrize("name", TARGETS)
def test_every_target_runs(name: str) -> None:
    hunt = Hunt(TARGETS[name]())
    hunt.round(0, derandomize=True, max_examples=FEW.get(name, 8), phases=[Phase.generate])
    assert not hunt.found, next(iter(hunt.found.values())).script
    assert hunt.examples > 0


def found_of(name: str) -> Hunt:
    hunt = Hunt(TOYS[name]())
    for number in range(3):
        hunt.round(number)
    return hunt


def test_failures_are_told_apart_and_made_small() -> None:
    hunt = found_of("faulty")
    assert [place.split(" at ")[0] for place in sorted(hunt.found)] == ["ValueError", "large"]
    assert "faulty([11])" in hunt.found["large"].script
    [other] = [failure for place, failure in hunt.found.items() if place != "large"]
    assert "faulty([0, 0, 0])" in other.script


def test_a_failure_that_is_known_is_passed_over() -> None:
    hunt = found_of("faulty")
    before = dict(hunt.found)
    hunt.round(99)
    assert hunt.found == before


def test_where_nothing_is_wrong_nothing_is_found() -> None:
    hunt = found_of("fine")
    assert not hunt.found
    assert hunt.examples > 100 and hunt.steps > 100


def test_a_script_fails_while_the_fault_is_there(tmp_path: Path) -> None:
    for place, failure in found_of("faulty").found.items():
        path = tmp_path / failure.file_name
        path.write_text(failure.script)
        ran = subprocess.run([sys.executable, path], cwd=ROOT, capture_output=True, text=True)
        assert ran.returncode == 1
        assert failure.message.split(": ")[1] in ran.stderr, place


def run(tmp_path: Path, names: list[str], jobs: int) -> Overseer:
    """One turn each, however long it takes."""
    orders = orders_for(names, jobs, 600, seed=1, turns=1, module="tests.fuzz.toys", folder=tmp_path, longest=1)
    orders = [replace(each, turn=0.0) for each in orders]
    overseer = Overseer(orders, lambda text: None, tmp_path / "failures")
    overseer.run()
    return overseer


def test_a_target_that_fails_crashes_or_does_not_end_stops_no_other(tmp_path: Path) -> None:
    overseer = run(tmp_path, list(TOYS), jobs=2)
    places = {place for _, place in overseer.found}
    assert {"SIGKILL in crashing", "large"} <= places
    assert any(place.startswith("Hung") for place in places)
    assert overseer.totals["fine"]["examples"] > 0
    assert overseer.totals["fine"]["failures"] == 0
    lines = overseer.table().split("\n")
    assert [line.split()[0] for line in lines] == ["target", *overseer.totals]
    scripts = {path.name for path in overseer.folder.iterdir()}
    assert "crashing_sigkill_in_crashing.py" in scripts
    assert "crashing([" in (tmp_path / "failures" / "crashing_sigkill_in_crashing.py").read_text()


def test_what_failed_is_tried_first_in_the_next_run() -> None:
    database, before = InMemoryExampleDatabase(), Hunt(TOYS["faulty"]())
    before.database = database
    before.round(1)
    again = Hunt(TOYS["faulty"](), database)
    again.round(2, replaying=True, max_examples=1, phases=[Phase.reuse])
    assert set(again.found) == set(before.found)


def test_more_workers_than_targets_share_them(tmp_path: Path) -> None:
    orders = orders_for(["fine", "faulty"], 3, 10, 5, module="", folder=tmp_path, longest=1)
    assert [each.names for each in orders] == [("fine",), ("faulty",), ("fine",)]
    assert len({each.seed for each in orders}) == 3


def test_a_case_is_reduced_wherever_something_can_be_left_out() -> None:
    case = {"steps": [("a", [1, 2, 3]), ("b", []), ("a", [7])], "queries": [1, 2]}
    less = reduced(case, lambda each: any(7 in rest for _, rest in each["steps"]), seconds=5)
    assert less == {"steps": [("a", [7])], "queries": []}


def test_a_target_that_there_is_not_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert parser().parse_args(["--only", "engine,sql"]).only == ["engine", "sql"]
    with pytest.raises(SystemExit):
        parser().parse_args(["--only", "engin"])
    assert "there is no target 'engin'; there are engine, " in capsys.readouterr().err
