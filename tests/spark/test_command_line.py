"""`swag run --engine spark` writes the same answers as the embedded engine."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from swag.cli import main
from swag.files.files import Files

SQL = """SELECT symbol, SUM(volume) AS vol, COUNT(*) AS n FROM trades [RANGE 40] WHERE volume > 20 GROUP BY symbol;
         SELECT symbol, MAX(volume) AS high FROM trades [ROWS 5] GROUP BY symbol"""


def test_spark_answers_as_the_embedded_engine_does(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(5)
    events = pa.table(
        {"ts": np.arange(300), "symbol": rng.choice(list("abc"), 300), "volume": rng.integers(1, 100, 300)}
    )
    pa.parquet.write_table(events, "t.parquet")
    Path("q.sql").write_text(SQL)
    for engine in ("embedded", "spark"):
        assert main(["run", "q.sql", "--events", "t.parquet", "--out", f"{engine}.parquet", "--engine", engine]) == 0
    answers = [Files([Path(f"{engine}.parquet")]).read().sort_by("ts") for engine in ("embedded", "spark")]
    assert answers[0].to_pylist() == answers[1].to_pylist()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "embedded.parquet",
        "q.sql",
        "spark.parquet",
        "t.parquet",
    ]


def test_frames_are_written_as_the_embedded_engine_does(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(6)
    events = pa.table({"ts": np.arange(200), "symbol": rng.choice(list("ab"), 200), "x": rng.integers(0, 9, 200)})
    pa.parquet.write_table(events, "t.parquet")
    for least in (1, 1000):
        Path("q.sql").write_text(f"""SELECT symbol, AVG(x) AS m, COUNT(*) FILTER (WHERE x > 6) AS high FROM t
            [FRAME WHERE x > 2 FOR 2 TUPLES] GROUP BY symbol HAVING SUM(x) > {least}""")
        for engine in ("embedded", "spark"):
            run = ["run", "q.sql", "--events", "t.parquet", "--out", f"{engine}.parquet", "--engine", engine]
            assert main(run) == 0
        found, expected = (Files([Path(f"{engine}.parquet")]).read() for engine in ("spark", "embedded"))
        assert found.column_names == expected.column_names and (expected.num_rows > 5) == (least == 1)
        found, expected = (table.drop_columns(["frame_id"]).sort_by("start") for table in (found, expected))
        assert found.to_pylist() == expected.to_pylist()
    pa.parquet.write_table(events, "m.parquet")
    filled = "SELECT symbol, SUM(x) AS s FROM t [FRAME WHERE x > 6] FILL FROM m AFTER 3 GROUP BY symbol"
    for engine in ("embedded", "spark"):
        run = ["run", "-e", filled, "--events", "t.parquet", "--stream", "m=m.parquet", "--engine", engine]
        assert main([*run, "--out", f"{engine}.parquet"]) == 0
    tables = [Files([Path(f"{engine}.parquet")]).read().drop_columns(["frame_id"]) for engine in ("embedded", "spark")]
    assert tables[0].sort_by("start").to_pylist() == tables[1].sort_by("start").to_pylist()
    Path("q.sql").write_text("SELECT MAX(x) FROM t [FRAME DELTA x 3]; SELECT MAX(x) AS high FROM t [ROWS 2]")
    assert main(["run", "q.sql", "--events", "t.parquet", "--out", "a.parquet", "--engine", "spark"]) == 2
    assert "one row per frame. Hint: run it by itself" in capfd.readouterr().err


def test_what_a_worker_refuses_is_one_line(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    events = pa.table({"ts": pa.array([1, None, 3]), "symbol": ["a", "b", "a"], "volume": [1, 2, 3]})
    pa.parquet.write_table(events, "t.parquet")
    Path("q.sql").write_text("SELECT symbol, SUM(volume) AS vol FROM trades [RANGE 40] GROUP BY symbol")
    assert main(["run", "q.sql", "--events", "t.parquet", "--out", "a.parquet", "--engine", "spark"]) == 2
    said = capfd.readouterr().err.splitlines()[-1]
    assert said.startswith('swag: a row has no timestamp: "ts" is null. Hint: drop such rows')
    assert sorted(path.name for path in tmp_path.iterdir()) == ["q.sql", "t.parquet"]


def test_a_statement_with_over_is_answered_as_the_embedded_engine_does(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(7)
    events = pa.table({"ts": np.arange(90), "k": rng.choice(list("abc"), 90), "x": rng.integers(0, 9, 90)})
    pa.parquet.write_table(events, "t.parquet")
    window = "PARTITION BY k ORDER BY ts ROWS 4 PRECEDING"
    text = f"SELECT ts, k, SUM(x) OVER ({window}) AS s FROM t QUALIFY s > 9 ORDER BY ts DESC"
    run = ["run", "--events", "t.parquet", "--engine", "spark", "--out", "spark.parquet", "-e"]
    assert main(["run", "--events", "t.parquet", "--out", "embedded.parquet", "-e", text]) == 0
    assert main([*run, text]) == 0
    found, expected = (Files([Path(f"{engine}.parquet")]).read() for engine in ("spark", "embedded"))
    assert found.to_pylist() == expected.to_pylist() and expected.num_rows > 20
    for wrong, says in [
        (text.replace("SELECT ts", "SELECT COUNT(*) OVER () AS n, ts"), "windows of several partitions"),
        (text.replace("PARTITION BY k", "PARTITION BY x > 3"), "is an expression"),
        (text + "; SELECT MAX(x) AS m FROM t [ROWS 2]", "has rows of its own"),
    ]:
        assert main([*run, wrong]) == 2
        assert says in capfd.readouterr().err
