"""CSV files: the types of columns are those of all rows, wherever blocks end, and large files are still streamed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from swag.cli import main
from swag.files import csv_types
from swag.files.files import Files

VALUES: dict[str, list[str | bytes]] = {
    "nothing": ["", "NA", "null", "nan"],
    "whole numbers": ["1", "0", "-5", " 7", "9223372036854775807", "0x1F"],
    "zeros and ones": ["0", "1"],
    "true or false": ["true", "False"],
    "numbers": ["2.5", "1e300", "99999999999999999999", "inf"],
    "days": ["2020-01-02", "1500-01-01"],
    "times": ["12:00:00"],
    "seconds": ["2020-01-02 03:04:05", "1500-01-01T00:00:00"],
    "fractions of seconds": ["2020-01-02 03:04:05.123456"],
    "with a zone": ["2020-01-02T00:00:00Z", "2020-01-02 03:04:05+0100"],
    "fractions with a zone": ["2020-01-02 03:04:05.5Z"],
    "text": ["abc", 'a "quote"', "x,y", "two\nlines"],
    "bytes": [b"\xff\xfe"],
}
ROWS = 12


def column() -> st.SearchStrategy[list[str | bytes]]:
    """Values of one kind, then of another."""
    kind = st.sampled_from(sorted(VALUES))
    return st.tuples(kind, kind, st.integers(0, ROWS)).flatmap(
        lambda drawn: st.tuples(
            *(st.sampled_from(VALUES[drawn[0 if i < drawn[2] else 1]]) for i in range(ROWS))
        ).map(list)
    )  # fmt: skip


def as_csv(columns: list[list[str | bytes]]) -> bytes:
    names = ["id", *(f"c{i}" for i in range(len(columns)))]
    rows = [
        ",".join(names).encode(),
        *(b",".join([b"%d" % i, *map(_field, row)]) for i, row in enumerate(zip(*columns))),
    ]
    return b"\n".join(rows) + b"\n"


def _field(value: str | bytes) -> bytes:
    data = value if isinstance(value, bytes) else value.encode()
    return b'"' + data.replace(b'"', b'""') + b'"' if any(mark in data for mark in (b'"', b",", b"\n")) else data


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(columns=st.lists(column(), min_size=1, max_size=3), block=st.integers(110, 250))
def test_types_are_those_that_the_whole_file_has_at_once(
    tmp_path: Path, columns: list[list[str | bytes]], block: int
) -> None:
    path, names = tmp_path / "t.csv", [f"c{i}" for i in range(len(columns))]
    path.write_bytes(as_csv(columns))
    whole = pa.csv.read_csv(path, parse_options=csv_types.PARSING)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_types, "CSV_BLOCK", block)
        assert csv_types.types_of(path, names) == {name: whole.schema.field(name).type for name in names}
        if not any(map(pa.types.is_binary, whole.schema.types)):
            assert Files([path]).read().equals(whole)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(csv_types, "CSV_BLOCK", 1000)
    (tmp_path / "q.sql").write_text("SELECT SUM(x) AS s FROM t [ROWS 3]")
    return tmp_path


def events(path: Path, values: list[str], rest: str = "p") -> None:
    path.write_text("ts,x,s\n" + "".join(f"{i},{value},{rest}\n" for i, value in enumerate(values)))


@pytest.mark.parametrize(
    ("first", "last", "answer"),
    [("1", "2.5", 4.5), ("", "2.5", 2.5), ("", "2", 2), ("1.5", "2", 5.0), ("1", "", 2)],
    ids=["whole numbers first", "nothing first", "nothing, then a whole number", "numbers first", "nothing last"],
)
def test_what_the_first_block_lacks_is_seen(folder: Path, first: str, last: str, answer: float) -> None:
    events(folder / "m.csv", [first] * 999 + [last])
    assert main(["run", "q.sql", "--events", "m.csv", "--out", "o.parquet"]) == 0
    assert pa.parquet.read_table("o.parquet")["s"].to_pylist()[-1] == answer


def test_columns_that_nobody_reads_may_hold_anything(folder: Path) -> None:
    events(folder / "m.csv", ["1"] * 500)
    with (folder / "m.csv").open("ab") as file:
        file.write(b"500,1,\xff\n")
    assert main(["run", "q.sql", "--events", "m.csv", "--out", "o.parquet"]) == 0
    assert pa.parquet.read_table("o.parquet")["s"].to_pylist()[-1] == 3


def test_text_further_down_is_said_to_be_text(folder: Path, capfd: Any) -> None:
    events(folder / "m.csv", ["1"] * 999 + ["oops"])
    assert main(["run", "q.sql", "--events", "m.csv"]) == 2
    assert 'sum(x) computes with "x", a column of type string' in capfd.readouterr().err


def test_lines_in_quotes_may_lie_across_blocks(folder: Path) -> None:
    events(folder / "m.csv", ["1"] * 200, rest='"' + "a\n,b" * 60 + '"')
    assert main(["run", "q.sql", "--events", "m.csv", "--out", "o.parquet"]) == 0
    assert pa.parquet.read_table("o.parquet").num_rows == 200


def test_a_row_longer_than_a_block_is_said_to_be(folder: Path, capfd: Any) -> None:
    events(folder / "m.csv", ["1"] * 3, rest="p" * 3000)
    assert main(["run", "q.sql", "--events", "m.csv"]) == 2
    assert "a row is longer than 1,000 bytes" in capfd.readouterr().err


def test_requests_have_the_types_of_all_their_rows(folder: Path) -> None:
    events(folder / "m.csv", ["1"] * 10)
    (folder / "at.csv").write_text("ts,note\n" + "".join(f"{i % 10},{'' if i < 500 else 2.5}\n" for i in range(600)))
    assert main(["run", "q.sql", "--events", "m.csv", "--at", "at.csv", "--out", "o.parquet"]) == 0
    answers = pa.parquet.read_table("o.parquet")
    assert (answers["note"].to_pylist()[0], answers["note"].to_pylist()[-1]) == (None, 2.5)


def test_a_file_is_streamed_block_by_block(folder: Path) -> None:
    events(folder / "m.csv", ["1"] * 999 + ["2.5"])
    sizes = [table.num_rows for table in Files([folder / "m.csv"]).batches(["ts", "x"], 100)]
    assert sum(sizes) == 1000
    assert max(sizes) <= 100
