"""Frames of one stream without a key: cut in time, on two cores, against one task, which is what Layout(sample=0) does.

Both in one session on local[2], in turns; frames are compared before anything is timed.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import frames as fr
import swag as sw
from bench.report import Finding, Report
from bench.spark_batch import FULL, QUICK, write
from bench.spark_session import seconds, session

ROUNDS = 3
SPEC = fr.Boundary("price", 1.0)
AGGREGATES = [sw.count(), sw.mean("price"), sw.max("price")]


def run(quick: bool) -> Report:
    size = QUICK if quick else FULL
    with tempfile.TemporaryDirectory(prefix="swag-bench-") as folder:
        write(Path(folder), size)
        spark = session(2)
        report = Report(f"Spark: boundary frames of one stream of {size.events:,} events without a key, on two cores")
        report.findings += measured(spark, Path(folder), size.events)
        spark.stop()
    report.notes.append(
        f"Cut in time, against one task for the stream; the best of {ROUNDS} each, in turns. The look at a sample, "
        "from which cuts are planned, is part of their time. One task is two processes already, the JVM and Python."
    )
    return report


def measured(spark: Any, folder: Path, rows: int) -> list[Finding]:
    import frames.spark
    from swag.spark import Layout

    ways = Layout(sample=0), Layout(task_rows=rows // 20)
    ordered = spark.read.parquet(str(folder / "events"))
    ordered.orderBy("price").write.parquet(str(folder / "unordered"))
    unordered = spark.read.parquet(str(folder / "unordered"))
    one, many = (frames.spark.detect(SPEC, unordered, layout=way).toArrow().sort_by("frame_id") for way in ways)
    assert one.equals(many) and one.num_rows > 1
    found = spark.createDataFrame(one).cache()
    jobs: dict[str, Callable[[Any], Any]] = {
        "detect, events in no order": lambda way: frames.spark.detect(SPEC, unordered, layout=way),
        "detect, events in order of time": lambda way: frames.spark.detect(SPEC, ordered, layout=way),
        "summarize, events in no order": lambda way: frames.spark.summarize(found, unordered, AGGREGATES, layout=way),
    }
    return [compared(name, job, ways) for name, job in jobs.items()]


def compared(what: str, job: Callable[[Any], Any], ways: tuple[Any, Any]) -> Finding:
    rounds = [[seconds(lambda way=way: job(way), what) for way in ways] for _ in range(ROUNDS)]  # type: ignore[misc]
    one, cut = (min(each) for each in zip(*rounds, strict=True))
    return Finding(what, f"one task {one:.1f} s, cut {cut:.1f} s", one / cut, "x")
