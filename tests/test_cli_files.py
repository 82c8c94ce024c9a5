"""`swag run`, `swag frames`, `swag explain`: files in, files out, in chunks of any size."""

from __future__ import annotations

import gc
import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

import frames as fr
import swag as sw
from swag.cli import main
from swag.files.files import Files

SQL = """
    SELECT symbol, SUM(volume) AS vol, (MAX(price) - MIN(price)) / LAST(price) AS spread
    FROM trades [RANGE 40 SECONDS] GROUP BY symbol HAVING COUNT(*) > 1;
    SELECT symbol, AVG(price) AS mean FROM trades [ROWS 9 UNTIL 2] WHERE side = 'ask' GROUP BY symbol;
    SELECT symbol, COUNT(*) AS n FROM trades [RANGE 30 SECONDS UNTIL 10 SECONDS CLOSED BOTH] GROUP BY symbol
"""
N = 700


def trades(n: int = N) -> pa.Table:
    rng = np.random.default_rng(5)
    return pa.table(
        {
            "ts": np.sort(rng.integers(0, n, n)).astype("datetime64[s]"),
            "symbol": rng.choice(list("abc"), n, p=[0.6, 0.35, 0.05]),
            "price": np.round(rng.normal(100, 5, n), 2),
            "volume": rng.integers(1, 100, n),
            "side": rng.choice(["ask", "bid"], n),
        }
    )


def write(table: pa.Table, path: Path) -> Path:
    if path.suffix == ".csv":
        pa.csv.write_csv(table, path)
    elif path.suffix == ".parquet":
        pa.parquet.write_table(table, path, row_group_size=90)
    else:
        pa.feather.write_feather(table, str(path), chunksize=70)
    return path


@pytest.mark.parametrize("clause", ["ROWS 4", "RANGE 20 SECONDS, FREQUENCY 7 TUPLES", "ROWS 3, FREQUENCY 30 SECONDS"])
@pytest.mark.parametrize("key", ["", "symbol"])
def test_the_events_for_which_a_condition_holds_are_answered_in_chunks(
    folder: Path, capfd: Any, clause: str, key: str
) -> None:
    by = f"GROUP BY {key}" if key and "FREQUENCY 7" not in clause else ""
    sql = f"SELECT SUM(volume) AS v FROM (SELECT * FROM trades WHERE side = 'ask' AND price > 99) [{clause}] {by}"
    (folder / "q.sql").write_text(sql)
    write(trades(), folder / "trades.parquet")
    assert main(["run", "q.sql", "--events", "trades.parquet", "--out", "a.parquet", "--chunk", "33"]) == 0
    assert same(read(folder / "a.parquet"), sw.evaluate(sql, trades(), key=key if by else None))
    assert capfd.readouterr() == ("", "")


def read(path: Path) -> pa.Table:
    return Files([path]).read()


def same(actual: pa.Table, expected: pa.Table) -> bool:
    """Equal, floats to within rounding (windows are summed from another start)."""
    assert actual.column_names == expected.column_names
    for name in expected.column_names:
        a, b = actual[name].to_pylist(), expected[name].to_pylist()
        assert all(x == y or (isinstance(x, float) and x == pytest.approx(y)) for x, y in zip(a, b, strict=True)), name
    return True


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.sql").write_text(SQL)
    return tmp_path


@pytest.mark.parametrize(("ending", "out"), [("parquet", "a.csv"), ("csv", "a.arrow"), ("feather", "a.parquet")])
@pytest.mark.parametrize("chunk", [33, 10_000])
def test_a_file_is_answered_in_chunks_of_any_size(folder: Path, capfd: Any, ending: str, out: str, chunk: int) -> None:
    events = write(trades(), folder / f"trades.{ending}")
    assert main(["run", "q.sql", "--events", events.name, "--key", "symbol", "--out", out, "--chunk", str(chunk)]) == 0
    assert same(read(folder / out), sw.evaluate(SQL, trades(), key="symbol"))
    assert capfd.readouterr() == ("", "")
    assert sorted(path.name for path in folder.iterdir()) == sorted([out, "q.sql", events.name])


def test_windows_that_lie_ahead_never_end_or_follow_the_calendar_are_those_of_the_whole_file(folder: Path) -> None:
    for clause in (
        "ROWS BETWEEN 4 PRECEDING AND 3 FOLLOWING", "RANGE BETWEEN 20 SECONDS PRECEDING AND 9 SECONDS FOLLOWING",
        "RANGE 9 SECONDS PEERS", "UNBOUNDED", "SINCE 1 HOUR AT TIME ZONE 'Asia/Kathmandu'",
    ):  # fmt: skip
        text = f"SELECT symbol, SUM(volume) AS v FROM trades [{clause}] GROUP BY symbol"
        (folder / "q.sql").write_text(text)
        events = write(trades(), folder / "trades.parquet")
        assert (
            main(["run", "q.sql", "--events", events.name, "--key", "symbol", "--out", "a.arrow", "--chunk", "33"]) == 0
        )
        assert same(read(folder / "a.arrow"), sw.evaluate(text, trades(), key="symbol")), clause


@pytest.mark.parametrize(
    "text",
    [
        SQL,
        "SELECT symbol, SUM(volume) AS v FROM t [RANGE 20 SECONDS, FREQUENCY 11 TUPLES] GROUP BY symbol",
        "SELECT symbol, AVG(price) AS a FROM t [FRAME UNTIL SUM(volume) >= 300] WHERE side = 'ask' GROUP BY symbol",
    ],
    ids=["windows", "ticks", "frames"],
)
def test_a_chunk_is_let_go_without_the_garbage_collector(folder: Path, text: str) -> None:
    """Asked to collect after every chunk, it took longer than all else."""
    write(trades(), folder / "t.parquet")
    (folder / "q.sql").write_text(text)

    def left_behind(chunk: int) -> int:
        assert main(["run", "q.sql", "--events", "t.parquet", "--out", "a.parquet", "--chunk", str(chunk)]) == 0
        return gc.collect()

    for chunk in (N, 70):
        left_behind(chunk)  # what is made once
    gc.freeze()  # modules, and whatever else is there by now, need not be looked through again and again
    gc.disable()
    try:
        assert left_behind(70) == left_behind(N)
    finally:
        gc.enable()
        gc.unfreeze()


@pytest.mark.parametrize("chunk", [45, 10_000])
def test_requests_are_answered_as_of_their_time(folder: Path, chunk: int) -> None:
    rng = np.random.default_rng(6)
    requests = pa.table({"id": np.arange(90), "ts": rng.integers(-5, N + 50, 90).astype("datetime64[s]"),
                         "symbol": rng.choice(list("abcz"), 90)})  # fmt: skip
    write(trades(), folder / "t.parquet")
    write(requests, folder / "r.csv")
    arguments = ["--events", "t.parquet", "--at", "r.csv", "--out", "a.parquet", "--chunk", str(chunk)]
    assert main(["run", "q.sql", *arguments]) == 0  # the key is what the statements group by
    assert same(read(folder / "a.parquet"), sw.evaluate(SQL, trades(), at=read(folder / "r.csv"), key="symbol"))


def test_events_in_disorder_are_loaded_and_that_is_said(folder: Path, capfd: Any) -> None:
    mixed = trades().take(np.random.default_rng(1).permutation(N))
    write(mixed, folder / "t.parquet")
    assert main(["run", "q.sql", "--events", "t.parquet", "--out", "a.parquet", "--chunk", "100"]) == 0
    assert same(read(folder / "a.parquet"), sw.evaluate(SQL, mixed, key="symbol"))
    assert capfd.readouterr().err == 'swag: all of "t.parquet" is loaded: it is not sorted by "ts".\n'


RATIO = "SUM(volume) FILTER (WHERE side = 'ask') / SUM(volume)"


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT symbol, {RATIO} AS r FROM t [RANGE 40s, EVERY 30 SECONDS] GROUP BY symbol HAVING COUNT(*) > 2",
        "SELECT symbol, MAX(price) AS m FROM t [ROWS 4, FREQUENCY 25 SECONDS ANCHOR TUPLE] GROUP BY symbol",
        "SELECT symbol, COUNT(*) AS n FROM t [ROWS 4 UNTIL 2, EVERY 7 SECONDS] WHERE side = 'ask' GROUP BY symbol",
        "SELECT symbol, COUNT(*) AS n FROM t [RANGE 9s, FREQUENCY 9s PARTITIONED BY symbol] GROUP BY symbol",
        "SELECT symbol, SUM(volume) AS v FROM t [RANGE 20 SECONDS, FREQUENCY 11 TUPLES] GROUP BY symbol",
        "SELECT AVG(price) AS m, COUNT(*) AS n FROM t [ROWS 30 UNTIL 5, FREQUENCY 13 TUPLES]",
        "SELECT symbol, AVG(price) AS m FROM t [ROWS 3, FREQUENCY 13 TUPLES] GROUP BY symbol",
        "SELECT symbol, AVG(price) AS m FROM t [ROWS 3, FREQUENCY 13 TUPLES PARTITIONED BY symbol] GROUP BY symbol",
    ],
)  # fmt: skip
@pytest.mark.parametrize("chunk", [37, 300])
def test_ticks_in_chunks_are_those_of_the_whole(folder: Path, text: str, chunk: int) -> None:
    (folder / "tick.sql").write_text(text)
    events = pa.concat_tables([trades(200), gap(trades(150), 900), gap(trades(60), 1100)])
    write(events, folder / "t.parquet")
    assert main(["run", "tick.sql", "--events", "t.parquet", "--out", "a.parquet", "--chunk", str(chunk)]) == 0
    expected = sw.evaluate(text, events, key="symbol" if "GROUP BY" in text else None)
    assert expected.num_rows > 10
    assert same(read(folder / "a.parquet"), expected)


def gap(table: pa.Table, seconds: int) -> pa.Table:
    """The same events, later."""
    later = np.asarray(table["ts"]) + np.timedelta64(seconds, "s")
    return table.set_column(0, "ts", pa.array(later))


def test_ticks_and_nested_statements(folder: Path) -> None:
    inner = "SELECT COUNT(*) AS n FROM t [RANGE 1 MINUTE, FREQUENCY 1 MINUTE] WHERE side = 'ask'"
    text = f"SELECT MAX(n) AS most FROM ({inner}) [ROWS 3, FREQUENCY 2 TUPLES]"
    (folder / "tick.sql").write_text(text)
    write(trades(), folder / "t.parquet")
    assert main(["run", "tick.sql", "--events", "t.parquet", "--out", "a.parquet"]) == 0
    assert same(read(folder / "a.parquet"), sw.evaluate(text, trades()))


@pytest.mark.parametrize("command", [["frames"], ["run", "-e"]])
def test_frames_are_filled_from_a_stream_of_its_own_file(folder: Path, command: list[str]) -> None:
    text = """SELECT symbol, SUM(m.volume) AS v, COUNT(*) AS n FROM t [FRAME WHERE price > 100]
              FILL FROM m BEFORE 2 SECONDS WHERE side = 'ask' GROUP BY symbol"""
    write(trades(), folder / "t.parquet")
    write(gap(trades(), 3).slice(0, 90), folder / "m1.csv")
    write(gap(trades(), 3).slice(90), folder / "m2.csv")
    streams = ["--stream", "m=m1.csv", "--stream", "m=m2.csv"]
    assert main([*command, text, "--events", "t.parquet", *streams, "--out", "a.parquet"]) == 0
    expected = sw.evaluate(text, trades(), key="symbol", m=gap(trades(), 3))
    assert expected.num_rows > 5 and any(expected["n"].to_pylist())
    assert same(read(folder / "a.parquet"), expected)


@pytest.mark.parametrize("command", [["frames"], ["run", "-e"]])
def test_frames_are_filled_from_their_own_stream_which_is_not_given_twice(folder: Path, command: list[str]) -> None:
    text = """SELECT symbol, SUM(volume) AS v, COUNT(*) AS n FROM t [FRAME WHERE price > 100]
              FILL FROM t BEFORE 2 SECONDS GROUP BY symbol"""
    write(trades(), folder / "t.parquet")
    assert main([*command, text, "--events", "t.parquet", "--out", "a.parquet"]) == 0
    expected = sw.evaluate(text, trades(), key="symbol")
    assert expected.num_rows > 5 and expected["n"].to_pylist() != expected["rows"].to_pylist()
    assert same(read(folder / "a.parquet"), expected)


def test_a_picture_shows_what_is_named_else_the_numbers_that_there_are(folder: Path) -> None:
    from swag.cli.plotting import drawn
    from swag.files.files import Files

    write(trades(), folder / "t.parquet")
    write(trades().select(["ts", "symbol", "price"]), folder / "one.parquet")
    source, one = Files([Path("t.parquet")]), Files([Path("one.parquet")])
    assert drawn(None, source, ["ts", "symbol", "side", "volume", "price"], ["ts", "symbol"]) == "volume"
    assert drawn("side", source, ["ts", "price"], ["ts"]) == "side"
    assert drawn(None, one, ["ts", "symbol"], ["ts", "symbol"]) == "price"
    assert main(["frames", "SESSION 5 SECONDS", "--events", "t.parquet", "--plot", "a.png", "--y", "price"]) == 0
    assert main(["frames", "UNTIL COUNT(*) >= 50", "--events", "one.parquet", "--plot", "b.png"]) == 0
    assert (
        main(["frames", "SELECT AVG(price) FROM t [FRAME STATE side]", "--events", "t.parquet", "--plot", "c.png"]) == 0
    )
    assert all((folder / name).stat().st_size > 1000 for name in ("a.png", "b.png", "c.png"))


def test_frames_by_statement_and_by_clause(folder: Path, capfd: Any) -> None:
    write(trades(), folder / "t.feather")
    clause = "[FRAME UNTIL SUM(volume) >= 500]"
    text = f"SELECT symbol, AVG(price), COUNT(*) AS n FROM t {clause} WHERE side = 'ask' GROUP BY symbol"
    assert main(["frames", text, "--events", "t.feather", "--out", "a.parquet", "--plot", "a.png"]) == 0
    assert same(read(folder / "a.parquet"), sw.evaluate(text, trades(), key="symbol"))
    assert (folder / "a.png").stat().st_size > 1000
    (folder / "f.sql").write_text(text)
    assert main(["run", "f.sql", "--events", "t.feather", "--out", "b.parquet"]) == 0
    assert same(read(folder / "b.parquet"), read(folder / "a.parquet"))
    assert main(["frames", "[FRAME GRID price 10]", "--events", "t.feather", "--out", "c.parquet"]) == 0
    assert same(read(folder / "c.parquet"), fr.detect(fr.Boundary("price", 10), trades()))
    capfd.readouterr()
    assert main(["frames", "where price > 110 for 2 tuples", "--events", "t.feather"]) == 0
    assert capfd.readouterr().out.splitlines()[0] == '"frame_id","start","end","rows"'


@pytest.mark.parametrize("chunk", [29, 200])
@pytest.mark.parametrize(
    ("clause", "rest"),
    [
        ("UNTIL SUM(volume) >= 300", "WHERE side = 'ask' GROUP BY symbol"),
        ("WHERE price > 99 FOR 2 TUPLES PARTITION", "GROUP BY symbol HAVING COUNT(*) > 2"),
        ("DELTA price 6 MEASURE RANGE", ""),
        ("GRID price 5", "GROUP BY symbol"),
    ],
)
def test_frames_in_chunks_are_those_of_the_whole(folder: Path, clause: str, rest: str, chunk: int) -> None:
    events, key = write(trades(), folder / "t.parquet"), "symbol" if "GROUP" in rest else None
    text = f"SELECT AVG(price) AS m, COUNT(*) FILTER (WHERE volume > 50) AS n FROM t [FRAME {clause}] {rest}"
    assert main(["frames", text, "--events", events.name, "--out", "a.parquet", "--chunk", str(chunk)]) == 0
    expected = sw.evaluate(text, trades(), key=key)
    assert same(_unnumbered(read(folder / "a.parquet")), _unnumbered(expected))
    options = ["--events", events.name, "--out", "b.parquet", "--chunk", str(chunk), *(["--key", key] if key else [])]
    assert main(["frames", clause, *options]) == 0
    [query] = sw.sql(text)
    assert same(_unnumbered(read(folder / "b.parquet")), _unnumbered(fr.detect(query.spec, trades(), key=key)))


@pytest.mark.parametrize("chunk", [23, 200])
@pytest.mark.parametrize("rest", ["", "GROUP BY symbol"])
@pytest.mark.parametrize(
    "clause", ["UNTIL SUM(volume) >= 300", "WHILE SUM(volume) < 200", "WHERE price > 99 FOR 2 TUPLES"]
)
def test_frames_in_chunks_hold_their_own_events(folder: Path, clause: str, rest: str, chunk: int) -> None:
    tied = trades().set_column(0, "ts", pa.array(np.arange(N) // 9)).append_column("id", pa.array(np.arange(N)))
    events, key = write(tied, folder / "t.parquet"), "symbol" if rest else None
    (folder / "f.sql").write_text(
        f"SELECT MIN(id) AS first, COUNT(*) AS n, SUM(volume) AS v FROM t [FRAME {clause}] {rest}"
    )
    assert main(["run", "f.sql", "--events", events.name, "--out", "a.parquet", "--chunk", str(chunk)]) == 0
    found, expected = read(folder / "a.parquet"), sw.evaluate((folder / "f.sql").read_text(), tied, key=key)
    assert found["n"].to_pylist() == found["rows"].to_pylist()
    assert same(*(table.drop_columns(["frame_id"]).sort_by("first") for table in (found, expected)))


def _unnumbered(frames: pa.Table) -> pa.Table:
    """Frames are numbered as they become certain, which differs between keys; here they are sorted."""
    assert len(set(frames["frame_id"].to_pylist())) == frames.num_rows
    keys = [name for name in ("symbol", "start", "end") if name in frames.column_names]
    return frames.drop_columns(["frame_id"]).sort_by([(name, "ascending") for name in keys])


def test_explain_says_what_is_shared(folder: Path, capfd: Any) -> None:
    assert main(["explain", "q.sql"]) == 0
    out = capfd.readouterr().out
    assert "computed from max(price)[RANGE 40s], min(price)[RANGE 40s], last(price)[RANGE 40s]" in out
    assert "sum(price) over events where side = 'ask': R-INT" in out
    assert "CI-COUNT names the keys that may pass for count()[RANGE 40s] HAVING > 1" in out


def test_a_pipe_takes_all_answers_and_a_terminal_shows_the_first(
    folder: Path, capfd: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(trades(50), folder / "t.parquet")
    assert main([*RUN, "--chunk", "15"]) == 0
    assert capfd.readouterr().out.count("\n") == 51
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert main([*RUN, "--chunk", "15"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert (len(lines), lines[-1][:18]) == (22, "… 50 rows in all. ")


def test_no_events_no_rows(folder: Path) -> None:
    write(trades().slice(0, 0), folder / "t.parquet")
    assert main(["run", "q.sql", "--events", "t.parquet", "--out", "a.parquet"]) == 0
    assert read(folder / "a.parquet").schema.names == ["symbol", "ts", "vol", "spread", "mean", "n"]
    assert read(folder / "a.parquet").num_rows == 0


RUN = ["run", "q.sql", "--events", "t.parquet"]


def test_a_run_that_fails_leaves_the_older_answers(folder: Path) -> None:
    table = trades(50)
    bad = table.set_column(3, "volume", pa.array([2**62] * 50))
    write(table, folder / "t.parquet")
    assert main([*RUN, "--out", "a.parquet"]) == 0
    before = (folder / "a.parquet").read_bytes()
    write(bad, folder / "t.parquet")
    assert main([*RUN, "--out", "a.parquet", "--chunk", "20"]) == 2
    assert (folder / "a.parquet").read_bytes() == before
    assert sorted(path.name for path in folder.iterdir()) == ["a.parquet", "q.sql", "t.parquet"]


def test_without_pyspark_that_is_said(folder: Path, capfd: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyspark", None)
    monkeypatch.setitem(__import__("sys").modules, "pyspark.sql", None)
    write(trades(50), folder / "t.parquet")
    assert main([*RUN, "--engine", "spark", "--out", "a.parquet"]) == 2
    assert 'needs PySpark. Hint: pip install "swag-windows[spark]"' in capfd.readouterr().err


def test_a_statement_of_the_command_line_over_several_files(folder: Path, capfd: Any) -> None:
    whole = trades()
    for number, start in enumerate(range(0, whole.num_rows, 100)):
        write(whole.slice(start, 100), folder / f"day-{number}.csv")
        (folder / f"day-{number}.csv.gz").write_bytes(gzip.compress((folder / f"day-{number}.csv").read_bytes()))
    sql = "SELECT symbol, SUM(volume) AS v FROM t [RANGE 20 SECONDS] GROUP BY symbol"
    given = [[f"day-{number}.csv" for number in range(7)], ["day-?.csv"], ["day-*.csv.gz"]]
    for files in given:
        events = [argument for file in files for argument in ("--events", file)]
        assert main(["run", "-e", sql, *events, "--chunk", "70", "--out", "a.parquet"]) == 0
        assert same(read(folder / "a.parquet"), sw.evaluate(sql, folder / "day-?.csv", key="symbol"))
    assert main(["explain", "-e", f"{sql};", "-e", "SELECT COUNT(*) FROM t [ROWS 3]"]) == 0
    assert "count" in capfd.readouterr().out.lower()
