"""One key with all events, on one core and on two: cut in time, it is answered by all cores.

Windows reach up to an hour, or up to a day: over all events that there are, and then so does the halo of every cut.
`local[1]` is one task at a time, not one core: Spark, its collector and its Python workers overlap. So the cores that
were kept busy (CPU time of all processes / wall time) are told, and the same with all of them pinned to one CPU.

A session answers some events many times, and all of them once, before it is measured: Java compiles for some twenty
seconds of CPU time, on whatever core is free, and until then nothing else can be seen.

python -m bench.spark_one_key FOLDER SETTING LONGEST        seconds and cores kept busy, in a session of its own
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import swag as sw
from bench.data import widths
from bench.report import Finding, Report, Table
from bench.spark_batch import FULL, QUICK, queries, write
from bench.spark_session import ROOT, say, seconds, session

WINDOWS, WARM, MEASURED = 10, 30, 4
QUICKLY = {"spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1)}  # as docs/spark.md advises
LONGEST = {"1 h": 3_600, "1 day": 86_400}  # in seconds
PINNED = "local[1] on one CPU"
SETTINGS = {
    PINNED: (1, QUICKLY),
    "local[1]": (1, QUICKLY),
    "local[2]": (2, QUICKLY),
    "local[2], bytes checked": (2, {}),
}


def run(quick: bool) -> Report:
    size = QUICK if quick else FULL
    with tempfile.TemporaryDirectory(prefix="swag-bench-") as folder:
        events = write(Path(folder), size) / "events"
        took = {name: {setting: alone(events, setting, name) for setting in SETTINGS} for name in LONGEST}
    report = Report(f"Spark: one key with {size.events:,} events, {WINDOWS} windows from 1 min on; sum, mean, max")
    rows = []
    for name, found in took.items():
        (pinned, _), (one, busy), (two, busy_two), (checked, _) = found.values()
        upto = f"windows up to {name}"
        said = f"local[1] {one:.1f} s, local[2] {two:.1f} s"
        report.findings.append(Finding(f"two cores against one, {upto}", said, one / two, "x", reach=1.7))
        said = f"{PINNED} {pinned:.1f} s, local[2] {two:.1f} s"
        report.findings.append(Finding(f"two CPUs against one, {upto}", said, pinned / two, "x"))
        said = f"local[2] with the check {checked:.1f} s, without {two:.1f} s"
        report.findings.append(Finding(f"Spark's check of bytes, {upto}", said, checked / two, "x"))
        rows += [[name, "local[1]", one, busy, 2 / busy], [name, "local[2]", two, busy_two, "-"]]
    header = ["windows up to", "setting", "wall, s", "cores kept busy", "2 cores / those, x"]
    report.tables.append(Table("CPU time of Spark and its workers / wall time", header, rows))
    report.notes.append(
        f"Each in a session of its own: the best of {MEASURED}, after {WARM} over a twentieth of the events and one "
        "over all, which are not counted. "
        "Spark's check of the bytes of Arrow batches is off but where it says otherwise, as advised above."
    )
    return report


def alone(events: Path, setting: str, longest: str) -> tuple[float, float]:
    command = [sys.executable, "-m", "bench.spark_one_key", str(events), setting, longest]
    answer = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    took, busy = map(float, answer.stdout.strip().splitlines()[-1].split())
    say(f"{setting}, up to {longest}: {took:.1f} s, {busy:.2f} cores")
    return took, busy


def main(events: str, setting: str, longest: str) -> None:
    from pyspark.sql import functions as F

    cores, chosen = SETTINGS[setting]
    if setting == PINNED:  # before the JVM is there: what it starts inherits this
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    spark = session(cores, **chosen)
    frame = spark.read.parquet(events).withColumn("symbol", F.lit("all"))
    asked = queries(widths(WINDOWS, 60, LONGEST[longest]))
    found = []
    some = frame.where(F.minute("ts") < 3)
    for job in range(WARM + 1):
        answer(asked, some if job < WARM else frame, f"warm, {job}")
    for _ in range(MEASURED):
        began, before = time.perf_counter(), cpu_seconds()
        answer(asked, frame, f"{setting}, up to {longest}")
        wall = time.perf_counter() - began
        found.append((wall, (cpu_seconds() - before) / wall))
    print(*min(found))
    spark.stop()


def answer(asked: list[sw.Query], events: Any, what: str) -> None:
    import swag.spark

    seconds(lambda: swag.spark.evaluate(asked, events, key="symbol"), what)


def cpu_seconds() -> float:
    """Of this process and all that it started, directly or not, those that have ended included."""
    parents, times = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it ended just now
            continue
        parents[int(path.parent.name)] = int(fields[1])
        times[int(path.parent.name)] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    mine = {os.getpid()}
    while more := {process for process, parent in parents.items() if parent in mine} - mine:
        mine |= more
    return sum(times[process] for process in mine if process in times)


if __name__ == "__main__":
    main(*sys.argv[1:4])
