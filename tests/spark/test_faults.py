"""Streams that are disturbed: afterwards they go on, and all that came out is what an undisturbed run gives."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

import swag as sw
from swag.spark.streams import shard
from tests.spark.faulty import QUERIES, answers, events, into_files
from tests.spark.streams import Sink, run, write
from tests.spark.vandal import Vandal
from tests.spark_session import ROOT

BATCHES = 4
SOON = 240  # seconds after which a test gives up


@pytest.fixture(scope="module")
def undisturbed(spark, tmp_path_factory) -> dict[int, list[tuple]]:
    """What comes out, by batch."""
    folder = tmp_path_factory.mktemp("undisturbed")
    write(folder / "in", [events(i) for i in range(BATCHES)])
    sink, progress = run(answers(spark, folder), folder / "checkpoint")
    assert sum(each.observedMetrics["swag"]["late"] for each in progress) > 0
    return sink.batches


def rows(batches: dict[int, list[tuple]]) -> Counter:
    return Counter(row for batch in batches.values() for row in batch)


def in_a_trigger(folder: Path, batch: int) -> bool:
    """Planned, and not yet committed."""
    planned, committed = (folder / "checkpoint" / name / str(batch) for name in ("offsets", "commits"))
    return planned.exists() and not committed.exists()


def wait_for(condition: Any) -> None:
    until = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < until, "it did not come to that"
        time.sleep(0.005)


def children(parent: int) -> dict[int, str]:
    """The processes that one has started, by the command of each."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, rest = stat.read_text().split(" (", 1)
            if int(rest.rsplit(")", 1)[1].split()[1]) == parent:
                found[int(pid)] = (stat.parent / "cmdline").read_text().replace("\0", " ")
        except OSError:  # it has ended
            continue
    return found


def python_workers() -> list[int]:
    """Of this process's Spark: the daemon's children."""
    (jvm,) = [pid for pid, command in children(os.getpid()).items() if "java" in command]
    daemons = [pid for pid, command in children(jvm).items() if "tests.spark_daemon" in command]
    return [pid for daemon in daemons for pid in children(daemon)]


def test_the_driver_is_killed_in_the_middle_of_a_trigger(spark, tmp_path, undisturbed):
    write(tmp_path / "in", [events(i) for i in range(BATCHES)])
    driver = subprocess.Popen(
        [sys.executable, "-m", "tests.spark.faulty", str(tmp_path)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        start_new_session=True,  # Java is killed with it
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(lambda: in_a_trigger(tmp_path, 1) or driver.poll() is not None)
    finally:
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
    assert in_a_trigger(tmp_path, 1)
    query = into_files(answers(spark, tmp_path), tmp_path)
    query.processAllAvailable()
    query.stop()
    found = Counter(tuple(row) for row in spark.read.parquet(str(tmp_path / "out")).collect())
    assert found == rows(undisturbed)


def test_python_workers_are_killed_in_the_middle_of_a_trigger(spark, tmp_path, undisturbed):
    write(tmp_path / "in", [events(i) for i in range(BATCHES)])
    sink = Sink()
    options = {"checkpointLocation": str(tmp_path / "checkpoint")}
    query = answers(spark, tmp_path).writeStream.foreachBatch(sink).options(**options).start()
    wait_for(lambda: in_a_trigger(tmp_path, 1))
    for worker in python_workers():
        os.kill(worker, signal.SIGKILL)
    try:
        query.processAllAvailable()  # fails, unless Spark has an attempt left: it may not notice idle ones
    except StreamingQueryException:
        run(answers(spark, tmp_path), tmp_path / "checkpoint", sink)
    finally:
        query.stop()
    assert rows(sink.batches) == rows(undisturbed)


def test_a_damaged_segment_is_refused_by_name_and_a_copy_of_the_checkpoint_goes_on(
    spark, tmp_path, undisturbed, monkeypatch
):
    write(tmp_path / "in", [events(0)])
    sink, _ = run(answers(spark, tmp_path), tmp_path / "checkpoint")
    shutil.copytree(tmp_path / "checkpoint", tmp_path / "copy")
    write(tmp_path / "in", [events(i) for i in range(1, 3)], first=1)
    with monkeypatch.context() as patch:
        patch.setattr(shard, "Shards", Vandal)
        damaging = answers(spark, tmp_path)
    run(damaging, tmp_path / "checkpoint")
    write(tmp_path / "in", [events(3)], first=3)
    with pytest.raises(StreamingQueryException, match=r"segment \d+ of shard \d+ is damaged: its checksum"):
        run(answers(spark, tmp_path), tmp_path / "checkpoint")
    run(answers(spark, tmp_path), tmp_path / "copy", sink)
    assert rows(sink.batches) == rows(undisturbed)


def test_a_checkpoint_of_other_queries_is_refused_and_one_of_fewer_goes_on(spark, tmp_path, undisturbed):
    write(tmp_path / "in", [events(0)])
    sink, _ = run(answers(spark, tmp_path), tmp_path / "checkpoint")
    write(tmp_path / "in", [events(i) for i in range(1, BATCHES)], first=1)
    changed = [sw.Query(sw.sum("x"), sw.Range(61), name="total"), *QUERIES[1:]]
    with pytest.raises(StreamingQueryException, match="is of other queries: it knows differently 'total'"):
        run(answers(spark, tmp_path, changed), tmp_path / "checkpoint")
    with pytest.raises(StreamingQueryException, match="it has, and this stream lacks, 'total'"):
        run(answers(spark, tmp_path, QUERIES[1:]), tmp_path / "checkpoint")
    with pytest.raises(StreamingQueryException, match=r"written with shards=3, this stream has 2\. Hint: shards=3"):
        run(answers(spark, tmp_path, shards=2), tmp_path / "checkpoint")
    more = [*QUERIES, sw.Query(sw.count(), sw.Range(60), name="count")]
    run(answers(spark, tmp_path, more), tmp_path / "checkpoint", sink)
    old = {batch: [row for row in each if row[0] != "count"] for batch, each in sink.batches.items()}
    assert rows(old) == rows(undisturbed)
    assert sum(row[0] == "count" for row in sink.rows) > 10
