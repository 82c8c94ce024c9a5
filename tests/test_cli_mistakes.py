"""Bad arguments: exit code 2 and one clear line, never a traceback, and nothing is left behind."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from swag.cli import main

FILES: dict[str, str | bytes] = {
    "empty.csv": "", "empty.parquet": "", "empty.arrow": "", "empty.sql": "",
    "junk.csv": b"\x00\xff\x1b[31m,\n\x07,,", "junk.parquet": b"PAR1 and so on", "junk.arrow": b"ARROW1 and so on",
    "header.csv": "ts,k,x\n", "ragged.csv": "ts,k,x\n1,a,2\n2,b\n3,c,4,5\n", "quote.csv": 'ts,k,x\n1,"a,2\n2,b,3\n',
    "semicolons.csv": "ts;k;x\n1;a;2\n", "twice.csv": "ts,k,x,x\n1,a,2,3\n", "latin.csv": b"ts,k,x\n1,\xe4,2\n",
    "utf16.csv": "ts,k,x\n1,a,2\n".encode("utf-16"), "no-ts.csv": "ts,k,x\n1,a,2\n,b,3\n",
    "words.csv": "ts,k,x\n1,a,b\n", "wide.csv": "ts,k,x,y\n1,a,2,3\n",
    "late-ts.csv": "ts,k,x\nyesterday,a,2\n", "other.csv": "when,who\n1,a\n",
    "t.csv.gz": b"\x1f\x8b", "t.xlsx": b"PK", "notes.txt": "ts",
    "q.sql": "SELECT k, SUM(x) AS s FROM t [ROWS 5] GROUP BY k", "typo.sql": "SELCT", "bytes.sql": b"\xff\xfe\x00",
    "column.sql": "SELECT SUM(volume) FROM t [ROWS 3]", "text.sql": "SELECT SUM(k) FROM t [ROWS 3]",
    "same.sql": "SELECT SUM(x) AS s, MAX(x) AS s FROM t [ROWS 3]",
    "minutes.sql": "SELECT SUM(x) FROM t [RANGE 5 MINUTES]",
    "apart.sql": "SELECT COUNT(*) FROM t [ROWS 3]; SELECT COUNT(*) FROM t [ROWS 3, FREQUENCY 2 TUPLES]",
    "frame.sql": "SELECT COUNT(*) FROM t [FRAME DELTA x 3]", "where.sql": "SELECT SUM(x) FROM t [ROWS 3] WHERE k > 5",
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path, before = tmp_path_factory.mktemp("mistakes"), Path.cwd()
    os.chdir(path)
    table = pa.table({"ts": range(50), "k": ["a", "b"] * 25, "x": [0.5 * i for i in range(50)]})
    pa.csv.write_csv(table, "t.csv")
    pa.parquet.write_table(table, "t.parquet")
    pa.feather.write_feather(table, "t.arrow")
    pa.parquet.write_table(table.set_column(2, "x", pa.array([[1]] * 50)), "lists.parquet")
    pa.parquet.write_table(table.set_column(0, "ts", table["x"]), "floats.parquet")
    for name, content in FILES.items():
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    for kind in ("csv", "parquet", "sql"):
        os.mkdir(f"folder.{kind}")
    os.mkfifo("pipe.csv")
    Path("cut.parquet").write_bytes(Path("t.parquet").read_bytes()[:300])
    Path("cut.arrow").write_bytes(Path("t.arrow").read_bytes()[:300])
    yield path
    os.chdir(before)


RUN, FRAMES = ["run", "q.sql", "--events"], ["frames", "DELTA x 3", "--events"]
GOOD = [*RUN, "t.csv"]
FILLED = "SELECT SUM(x) FROM t [FRAME DELTA x 3] FILL FROM m"
MISTAKES: list[tuple[list[str], str]] = [
    ([*RUN, "nothing.csv"], '"nothing.csv" can not be read: No such file'),
    ([*RUN, "nowhere/t.csv"], "can not be read: No such file"),
    ([*RUN, "t.csv/t.csv"], "can not be read: Not a directory"),
    ([*RUN, "empty.csv"], '"empty.csv" is empty'),
    ([*RUN, "empty.parquet"], '"empty.parquet" is empty'),
    ([*RUN, "header.csv"], '"header.csv" has no rows, and so no types'),
    ([*RUN, "junk.csv"], '"junk.csv" is not a CSV file: '),
    ([*RUN, "junk.parquet"], '"junk.parquet" is not a Parquet file'),
    ([*RUN, "junk.arrow"], '"junk.arrow" is not an Arrow file'),
    ([*RUN, "cut.parquet"], '"cut.parquet" is not a Parquet file'),
    ([*RUN, "cut.arrow"], '"cut.arrow" is not an Arrow file'),
    ([*RUN, "ragged.csv"], "Expected 3 columns, got 2: 2,b"),
    ([*RUN, "quote.csv"], '"quote.csv" is not a CSV file'),
    ([*RUN, "semicolons.csv"], 'has one column, "ts;k;x". Hint: a comma between columns'),
    ([*RUN, "twice.csv"], 'reads "x", which the events have 2 times'),
    ([*RUN, "latin.csv"], 'column "k" is not text in UTF-8'),
    ([*RUN, "utf16.csv"], '"utf16.csv" is not a CSV file'),
    ([*RUN, "no-ts.csv"], 'row 1 has no timestamp: "ts" is null'),
    ([*RUN, "no-ts.csv", "--chunk", "1"], 'after 1 rows, row 0 has no timestamp: "ts" is null'),
    ([*RUN, "words.csv"], 'computes with "x", a column of type string'),
    ([*RUN, "late-ts.csv"], 'ts column "ts" is string'),
    ([*RUN, "floats.parquet"], 'ts column "ts" is double'),
    ([*RUN, "lists.parquet"], 'computes with "x", a column of type list'),
    ([*RUN, "other.csv"], 'ts is "ts", but the events have: when, who'),
    ([*RUN, "folder.csv"], '"folder.csv" can not be read: it is a folder'),
    ([*RUN, "pipe.csv"], '"pipe.csv" can not be read: it is a pipe. Hint: a file'),
    ([*RUN, "-"], "- (a pipe) is not supported, as files are read twice"),
    ([*RUN, "/dev/stdin"], '"/dev/stdin" ends in none of .parquet'),
    ([*RUN, "t.csv.gz"], '"t.csv.gz" can not be read: Truncated compressed stream'),
    ([*RUN, "t.xlsx"], '"t.xlsx" ends in none of .parquet'),
    ([*RUN, ""], "'' is not the name of a file"),
    ([*RUN, "\0.csv"], "is not the name of a file"),
    ([*GOOD, "--at", "nothing.csv"], '"nothing.csv" can not be read'),
    ([*GOOD, "--at", "other.csv"], 'requests are at "ts"'),
    ([*GOOD, "--at", "twice.csv"], 'has more than one column "x"'),
    ([*GOOD, "--at", "notes.txt"], "ends in none of"),
    ([*GOOD, "--at", "lists.parquet"], "a CSV file can not hold these answers: Unsupported Type"),
    ([*GOOD, "--out", "notes.txt"], '"notes.txt" ends in none of'),
    ([*GOOD, "--out", "answers"], '"answers" ends in none of'),
    ([*GOOD, "--out", "nowhere/a.csv"], '"nowhere/a.csv" can not be written: there is no folder "'),
    ([*GOOD, "--out", "t.csv/a.csv"], "can not be written: Not a directory"),
    ([*GOOD, "--out", "folder.csv"], '"folder.csv" can not be written: it is a folder'),
    ([*GOOD, "--out", "n" * 300 + ".csv"], "can not be written: File name too long"),
    ([*GOOD, "--ts", "when"], 'ts is "when", but the events have: ts, k, x'),
    ([*GOOD, "--ts", "k"], 'ts column "k" is string'),
    ([*GOOD, "--key", "who"], 'key is "who", but the events have: ts, k, x'),
    ([*GOOD, "--key", "k", "--key", "k"], "--key=('k', 'k') names a column twice"),
    ([*GOOD, "--key", ""], "is no name of a column"),
    ([*GOOD, "--engine", "flink"], "'flink' is not one of 'embedded', 'spark'"),
    ([*GOOD, "--engine", "spark"], "--engine spark writes a file. Hint: --out answers.parquet"),
    ([*GOOD, "--engine", "spark", "--out", "a.csv", "--at", "nothing.csv"], '"nothing.csv" can not be read'),
    ([*GOOD, "--chunk", "0"], "0 is not in the range x>=1"),
    ([*GOOD, "--chunk", "many"], "'many' is not a valid integer"),
    ([*GOOD, "more"], "unexpected extra argument (more)"),
    ([*GOOD, "--evnts", "t.csv"], "No such option '--evnts'"),
    (["run"], "Missing option '--events'. Hint: --events trades.parquet"),
    (["run", "--events", "t.csv"], 'there is no statement. Hint: swag run queries.sql …, or swag run -e "SELECT …"'),
    ([*GOOD, "-e", "SELECT COUNT(*) FROM t [ROWS 2]"], "statements in a file and on the command line"),
    (["run", "-e", "SELCT", "--events", "t.csv"], 'line 1, column 1: expected SELECT, found "SELCT"'),
    ([*RUN, "gone*.csv"], 'no file matches "gone*.csv"'),
    (["run", "q.sql"], "Missing option '--events'"),
    (["run", "nothing.sql", "--events", "t.csv"], '"nothing.sql" can not be read: No such file'),
    (["run", "SELECT COUNT(*) FROM t [ROWS 2]", "--events", "t.csv"], 'Hint: -e "SELECT …", for a statement'),
    (["run", "-e", 'SELECT COUNT(*) FROM t [ROWS 2] WHERE k = "a 1"', "--events", "t.csv"], "'a 1' in single quotes"),
    (["run", "folder.sql", "--events", "t.csv"], '"folder.sql" can not be read: Is a directory'),
    (["run", "bytes.sql", "--events", "t.csv"], '"bytes.sql" is not text in UTF-8'),
    (["run", "empty.sql", "--events", "t.csv"], "empty.sql: line 1, column 1: there is no statement"),
    (["run", "typo.sql", "--events", "t.csv"], 'typo.sql: line 1, column 1: expected SELECT, found "SELCT"'),
    (["run", "column.sql", "--events", "t.csv"], '"volume", but the events have: ts, k, x'),
    (["run", "text.sql", "--events", "t.csv"], 'computes with "k", a column of type string'),
    (["run", "same.sql", "--events", "t.csv"], 'two queries are named "s"'),
    (["run", "minutes.sql", "--events", "t.csv"], '"5m" is a duration, but ts is an integer column'),
    (["run", "where.sql", "--events", "t.csv"], "where='k > 5' can not be computed: k is string"),
    (["run", "apart.sql", "--events", "t.csv", "--chunk", "9"], "for each `every`"),
    (["run", "frame.sql", "--events", "t.csv", "--at", "t.csv"], "run it by itself, without --at"),
    (["explain"], "there is no statement"),
    (["explain", "nothing.sql"], '"nothing.sql" can not be read'),
    (["explain", "typo.sql"], "typo.sql: line 1, column 1"),
    (["explain", "q.sql", "more"], "unexpected extra argument"),
    (["frames"], "Missing argument 'SPEC'. Hint: swag frames --help"),
    (["frames", "DELTA x 3"], "Missing option '--events'"),
    (["frames", "", "--events", "t.csv"], "line 1, column 1: expected a FRAME clause, found nothing"),
    (["frames", "DELTA x", "--events", "t.csv"], "line 1, column 8: expected a number, found the end"),
    (["frames", "DELTA x 3; DELTA x 4", "--events", "t.csv"], "column 12: expected one FRAME clause, found a second"),
    (["frames", "SELECT COUNT(*) FROM t [ROWS 3]", "--events", "t.csv"], "one statement with a FRAME clause"),
    (["frames", "DELTA y 3", "--events", "t.csv"], 'Delta reads "y", but the events have: ts, k, x'),
    (["frames", "DELTA k 3", "--events", "t.csv"], 'reads "k", a column of type string'),
    ([*FRAMES, "nothing.csv"], '"nothing.csv" can not be read'),
    ([*FRAMES, "header.csv"], "has no rows"),
    ([*FRAMES, "t.csv", "--key", "who"], 'key is "who", but the events have'),
    ([*FRAMES, "t.csv", "--plot", "frames"], '"frames" ends in none of .png'),
    ([*FRAMES, "t.csv", "--plot", "frames.txt"], '"frames.txt" ends in none of .png'),
    ([*FRAMES, "t.csv", "--plot", "nowhere/frames.png", "--out", "a.csv"], '"nowhere/frames.png" can not be drawn'),
    (["frames", "SESSION 3", "--events", "wide.csv", "--plot", "f.png"], 'none, and "wide.csv" has x, y. Hint: --y x'),
    (["frames", "STATE k", "--events", "words.csv", "--plot", "f.png"], "has none, either. Hint: --y a column"),
    ([*FRAMES, "t.csv", "--plot", "f.png", "--y", "z"], '--y is "z", but the events have'),
    ([*FRAMES, "t.csv", "--y", "x"], '--y "x" is what a picture shows, and there is none. Hint: --plot'),
    ([*FRAMES, "t.csv", "--stream", "m=t.csv"], "no frames are filled from --stream m. Hint"),
    (["run", "-e", FILLED, "--events", "t.csv"], 'filled from "m", which is not there. Hint: --stream m=PATH'),
    (["frames", FILLED, "--events", "t.csv"], 'filled from "m", which is not there. Hint: --stream m=PATH'),
    (["frames", FILLED, "--events", "t.csv", "--stream", "m"], "'m' is no name and a file. Hint: --stream messages="),
    (["frames", FILLED, "--events", "t.csv", "--stream", "m=nothing.csv"], '"nothing.csv" can not be read'),
    (["frames", FILLED, "--events", "t.csv", "--stream", "m=words.csv"], 'with "x", a column of type string'),
    (["run", "-e", FILLED, "--events", "t.csv", "--stream", "m=t.parquet", "--out", "t.parquet"], "file of --stream m"),
    (["demo", "--events", "3"], "3 is not in the range x>=1000"),
    (["demo", "--seed", "-1"], "-1 is not in the range x>=0"),
    (["bench"], "say what to measure. Hint: swag bench micro --quick"),
    (["rnu"], 'there is no command "rnu"; there are: bench, demo, explain, frames, run, warm. Hint: swag run'),
    (["--nonsense"], "No such option"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "says"), MISTAKES)
def test_a_mistake_is_one_line_and_leaves_nothing_behind(
    folder: Path, capfd: Any, arguments: list[str], says: str
) -> None:
    before = sorted(os.listdir())
    assert main(arguments) == 2
    out, err = capfd.readouterr()
    assert (out, err.count("\n"), err[:6]) == ("", 1, "swag: ")
    assert says in err
    assert err[:-1].isprintable()
    assert sorted(os.listdir()) == before


NAMES = [*FILES, "t.csv", "t.parquet", "t.arrow", "cut.arrow", "folder.csv", "pipe.csv", "nothing.csv", "", "-", "."]
WORDS = [*NAMES, "x", "k", "ts", "5", "DELTA x 3", "SELECT COUNT(*) FROM t [FRAME GRID x 2]", "embedded"]
OPTIONS = [
    "--events",
    "--out",
    "--at",
    "--ts",
    "--key",
    "--chunk",
    "--plot",
    "--y",
    "--stream",
    "--nonsense",
    "--engine",
]


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    """Of any command that reads files, with files, columns and numbers where others should be."""
    command = draw(st.sampled_from([["run", "q.sql"], ["frames", "DELTA x 3"], ["explain"], ["run"], ["frames"]]))
    options = draw(st.dictionaries(st.sampled_from(OPTIONS), st.sampled_from(WORDS), max_size=4))
    events = ["--events", draw(st.sampled_from(NAMES))] if "--events" not in options else []
    spoken = [part for option in options.items() for part in option]
    return [*command, *events, *spoken, *draw(st.lists(st.sampled_from(WORDS), max_size=1))]


@settings(max_examples=settings().max_examples * 3, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(arguments=command_lines())
def test_any_arguments_give_answers_or_one_line(folder: Path, capfd: Any, arguments: list[str]) -> None:
    before = {path: path.stat().st_size for path in folder.iterdir()}
    code = main(arguments)
    out, err = capfd.readouterr()
    assert code in (0, 2)
    if code == 2:
        assert (out, err.count("\n"), err[:6]) == ("", 1, "swag: ")
    for path in folder.iterdir():
        if path not in before:
            assert code == 0 and path.name in arguments
            path.unlink()
        elif path.name not in arguments:
            assert path.stat().st_size == before[path]
