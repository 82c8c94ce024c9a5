"""Keys of several columns and several groupings on the command line: the answers of sw.evaluate, chunk by chunk."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import frames as fr
import swag as sw
from swag.cli import main

MIXED = """SELECT card, SUM(x) AS s FROM s [ROWS 5] GROUP BY card;
           SELECT card, land, COUNT(*) AS n, MAX(x) AS m FROM s [RANGE 9] GROUP BY card, land;
           SELECT COUNT(*) AS c FROM s [RANGE 4]; SELECT land, MIN(x) AS low FROM s [ROWS 12] GROUP BY land"""
TICKS = "SELECT card, land, SUM(x) AS s FROM s [RANGE 9, FREQUENCY 5 ANCHOR TICK] GROUP BY card, land"
chunks = pytest.mark.parametrize("chunk", ["7", "1000"])


@pytest.fixture
def events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pa.Table:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    table = pa.table({
        "ts": np.sort(rng.integers(0, 60, 80)), "card": [f"c{i}" for i in rng.integers(0, 4, 80)],
        "land": rng.integers(0, 3, 80), "x": rng.integers(-9, 9, 80),
    })  # fmt: skip
    pq.write_table(table, "events.parquet")
    return table


def ran(*arguments: str) -> pa.Table:
    assert main([*arguments, "--events", "events.parquet", "--out", "answers.parquet"]) == 0
    return pq.read_table("answers.parquet")


def statement(text: str) -> str:
    Path("queries.sql").write_text(text)
    return "queries.sql"


@chunks
@pytest.mark.parametrize("key", [[], ["card"], ["land", "card"]])
def test_statements_of_several_groupings(events: pa.Table, chunk: str, key: list[str], capfd: Any) -> None:
    found = ran("run", statement(MIXED), *(f"--key={name}" for name in key), "--chunk", chunk)
    assert found.equals(sw.evaluate(MIXED, events, key=key))
    assert capfd.readouterr().err == ""  # the file was not loaded as a whole


@chunks
def test_requests_in_several_groupings(events: pa.Table, chunk: str) -> None:
    requests = pa.table({"land": [0, 1, 2, 0], "ts": [30, 5, 90, 59], "card": ["c0", "c1", "c2", "c9"]})
    pq.write_table(requests, "at.parquet")
    found = ran("run", statement(MIXED), "--at", "at.parquet", "--chunk", chunk)
    assert found.equals(sw.evaluate(MIXED, events, at=requests))


@chunks
def test_ticks_of_a_key_of_several_columns(events: pa.Table, chunk: str) -> None:
    found = ran("run", statement(TICKS), "--chunk", chunk)
    assert found.column_names == ["tick", "ts", "card", "land", "s"]
    assert found.equals(sw.evaluate(TICKS, events))


@chunks
def test_frames_of_a_key_of_several_columns(events: pa.Table, chunk: str) -> None:
    found = ran("frames", "WHERE x > 0", "--key", "card", "--key", "land", "--chunk", chunk)
    expected = fr.detect(fr.Threshold("x", ">", 0), events, key=("card", "land"))
    assert found.sort_by("frame_id").equals(expected)
    said = "SELECT card, land, SUM(x) AS s FROM s [FRAME WHERE x > 0] GROUP BY card, land"
    for found in (ran("frames", said, "--chunk", chunk), ran("run", statement(said), "--chunk", chunk)):
        assert found.sort_by("frame_id").equals(sw.evaluate(said, events))


def test_a_picture_is_of_the_key_with_most_frames(events: pa.Table, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    ran("frames", "WHERE x > 0", "--key", "card", "--key", "land", "--plot", "frames.png")
    assert (tmp_path / "frames.png").stat().st_size > 1000


def test_explain_shows_what_each_grouping_shares(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "queries.sql"
    path.write_text(MIXED)
    assert main(["explain", str(path)]) == 0
    out = capsys.readouterr().out
    assert [line for line in out.splitlines() if line.startswith("by ")] == [
        "by nothing (the whole stream)", "by card", "by card, land", "by land",
    ]  # fmt: skip
    path.write_text(TICKS)
    assert main(["explain", str(path)]) == 0
    assert "\nby " not in capsys.readouterr().out
