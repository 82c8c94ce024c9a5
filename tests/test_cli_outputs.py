"""What the command line writes to: never a file that it reads, nothing but regular files, closed pipes, full disks."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from swag.cli import main

EVENTS = "ts,k,x\n" + "".join(f"{i},a,{i % 7}\n" for i in range(3000))
SWAG = [sys.executable, "-c", "import sys; from swag.cli import main; sys.exit(main())"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "e.csv").write_text(EVENTS)
    (tmp_path / "q.sql").write_text("SELECT k, SUM(x) AS s FROM t [ROWS 5] GROUP BY k")
    (tmp_path / "q.csv").write_text("SELECT k, SUM(x) AS s FROM t [ROWS 5] GROUP BY k")
    (tmp_path / "r.csv").write_text("ts,k\n5,a\n")
    (tmp_path / "inside").mkdir()
    return tmp_path


def same_names(of: str) -> list[str]:
    """Other names of a file."""
    os.symlink(of, f"link-{of}")
    os.symlink(f"link-{of}", f"link-to-link-{of}")
    os.link(of, f"hard-{of}")
    return [of, f"./{of}", f"inside/../{of}", os.path.abspath(of), f"link-{of}", f"link-to-link-{of}", f"hard-{of}"]


@pytest.mark.parametrize(("option", "of"), [("--events", "e.csv"), ("--at", "r.csv"), ("QUERIES", "q.csv")])
def test_what_is_read_is_not_written_to(folder: Path, capfd: Any, option: str, of: str) -> None:
    content = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    queries = "q.csv" if option == "QUERIES" else "q.sql"
    for name in same_names(of):
        assert main(["run", queries, "--events", "e.csv", "--at", "r.csv", "--out", name]) == 2
        assert (
            capfd.readouterr().err
            == f'swag: --out "{Path(name)}" is the file of {option}. Hint: another name for --out\n'
        )
    assert all(path.read_bytes() == before for path, before in content.items())


def test_a_picture_is_not_drawn_over_events_or_frames(folder: Path, capfd: Any) -> None:
    frames = ["frames", "DELTA x 3", "--events", "e.csv"]
    for name in same_names("e.csv"):
        assert main([*frames, "--plot", name]) == 2
        assert main([*frames, "--out", name]) == 2
        assert "is the file of --events" in capfd.readouterr().err
    assert main([*frames, "--out", "new.csv", "--plot", "inside/../new.csv"]) == 2
    assert 'swag: --out "new.csv" is the file of --plot' in capfd.readouterr().err
    assert (folder / "e.csv").read_text() == EVENTS
    assert not (folder / "new.csv").exists()


def test_a_link_is_written_through(folder: Path) -> None:
    os.symlink("inside/answers.csv", "out.csv")
    os.symlink("inside/frames.svg", "plot.svg")
    for _ in range(2):
        assert main(["run", "q.sql", "--events", "e.csv", "--out", "out.csv"]) == 0
        assert main(["frames", "DELTA x 3", "--events", "e.csv", "--out", "out.csv", "--plot", "plot.svg"]) == 0
        assert (folder / "out.csv").is_symlink() and (folder / "plot.svg").is_symlink()
    assert sorted(os.listdir("inside")) == ["answers.csv", "frames.svg"]
    assert (folder / "inside" / "frames.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("name", "why"), [("folder", "it is a folder"), ("pipe", "it is a pipe"), ("device", "it is a device")]
)
def test_what_is_no_file_is_not_replaced(folder: Path, capfd: Any, name: str, why: str) -> None:
    os.mkdir("folder.csv")
    os.mkfifo("pipe.csv")
    os.symlink("/dev/full", "device.csv")
    os.symlink("folder.csv", "folder.png")
    os.symlink("pipe.csv", "pipe.png")
    os.symlink("/dev/full", "device.png")
    before = sorted(os.listdir())
    assert main(["run", "q.sql", "--events", "e.csv", "--out", f"{name}.csv"]) == 2
    assert capfd.readouterr().err == f'swag: "{name}.csv" can not be written: {why}.\n'
    assert main(["frames", "DELTA x 3", "--events", "e.csv", "--plot", f"{name}.png"]) == 2
    assert capfd.readouterr().err == f'swag: "{name}.png" can not be drawn: {why}.\n'
    assert sorted(os.listdir()) == before


@pytest.mark.parametrize("out", ["a.csv", "a.parquet", "a.arrow"])
def test_a_full_disk_is_one_line_and_leaves_the_older_answers(folder: Path, capfd: Any, out: str) -> None:
    assert main(["run", "q.sql", "--events", "e.csv", "--out", out]) == 0
    before, limits = (folder / out).read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, limits[1]))
    try:
        code = main(["run", "q.sql", "--events", "e.csv", "--out", out, "--chunk", "1000"])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (code, capfd.readouterr().err) == (2, f'swag: "{out}" can not be written: File too large.\n')
    assert (folder / out).read_bytes() == before
    assert not [name for name in os.listdir() if name.endswith(".part")]


def test_what_a_killed_run_left_is_removed_by_the_next(folder: Path) -> None:
    left, folder_left = folder / ".a.csv.swag-0badcafe.part", folder / ".a.csv.swag-0badcafe.parts"
    left.write_text("half")
    folder_left.mkdir()
    other = folder / ".b.csv.swag-0badcafe.part"
    other.write_text("of another file")
    assert main(["run", "q.sql", "--events", "e.csv", "--out", "a.csv"]) == 0
    assert (left.exists(), folder_left.exists(), other.exists()) == (False, False, True)


RUN = ["run", "q.sql", "--events", "e.csv"]


def swag(arguments: list[str], shell: str) -> tuple[int, str]:
    """The exit code and what is said, of a command whose output goes elsewhere."""
    line = f'"$@" {shell}'
    done = subprocess.run(["bash", "-c", line, "bash", *SWAG, *arguments], capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


@pytest.mark.parametrize("arguments", [RUN, ["explain", "q.sql"], ["--help"]], ids=" ".join)
def test_an_output_that_can_not_be_written_is_one_line(folder: Path, arguments: list[str]) -> None:
    assert swag(arguments, ">/dev/full") == (2, "swag: standard output can not be written: No space left on device.\n")


def test_an_output_that_is_closed_is_one_line(folder: Path) -> None:
    assert swag(RUN, ">&-") == (2, "swag: standard output can not be written: Bad file descriptor.\n")


def test_nobody_reading_is_quiet(folder: Path) -> None:
    (folder / "e.csv").write_text("ts,k,x\n" + "".join(f"{i},a,{i % 7}\n" for i in range(100_000)))
    assert swag(RUN, "| head -1; exit ${PIPESTATUS[0]}") == (1, "")


def test_without_any_standard_stream_a_file_is_still_written(folder: Path) -> None:
    assert swag([*RUN, "--out", "a.csv"], "<&- >&- 2>&-") == (0, "")
    assert (folder / "a.csv").read_text().count("\n") == 3001
    assert swag(["nonsense"], "2>/dev/full") == (2, "")
