"""One key with all events, on one core and on two: cut in time, it is answered by all cores.

Windows reach up to an hour, or up to a day: over all events that there are, and then so does the halo of every cut.
`local[1]` is one task at a time, not one core: Spark, its collector and its Python workers overlap. So the cores that
were kept busy (CPU time of all processes / wall time) are told, and the same with all of them pinned to one CPU.

Each setting has a session of its own, all of them are there at once, and they take turns: the machine's moods meet all
of them. A session answers some events many times, and all of them once, before it is measured: Java
compiles for some twenty seconds of CPU time, on whatever core is free, and until then nothing else can be seen.

python -m bench.spark_one_key FOLDER SETTING        a session: reads lines that say how long the longest window is,
                                                    and answers each with seconds and cores kept busy
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from bench.data import widths
from bench.report import Finding, Report, Table
from bench.spark_batch import FULL, QUICK, queries, write
from bench.spark_session import ROOT, say, seconds, session

WINDOWS, WARM, ROUNDS = 10, 30, 5
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
        with ExitStack() as sessions:
            asked = {setting: sessions.enter_context(asking(events, setting)) for setting in SETTINGS}
            took = {name: in_turns(asked, name) for name in LONGEST}
    report = Report(f"Spark: one key with {size.events:,} events, {WINDOWS} windows from 1 min on; sum, mean, max")
    rows = []
    for name, found in took.items():
        (pinned, _), (one, busy), (two, busy_two), (checked, _) = found.values()
        upto = f"windows up to {name}"
        said = f"local[1] {one:.1f} s, local[2] {two:.1f} s"
        report.findings.append(Finding(f"two tasks at a time against one, {upto}", said, one / two, "x", reach=1.7))
        said = f"{PINNED} {pinned:.1f} s, local[2] {two:.1f} s"
        report.findings.append(Finding(f"two cores against one, {upto}", said, pinned / two, "x"))
        said = f"local[2] with the check {checked:.1f} s, without {two:.1f} s"
        report.findings.append(Finding(f"Spark's check of bytes, {upto}", said, checked / two, "x"))
        rows += [[name, "local[1]", one, busy, 2 / busy], [name, "local[2]", two, busy_two, "-"]]
    header = ["windows up to", "setting", "wall, s", "cores kept busy", "2 cores / those, x"]
    report.tables.append(Table("CPU time of Spark and its workers / wall time", header, rows))
    report.notes.append(
        f"Each in a session of its own, in turns: medians of {ROUNDS}, after {WARM} jobs over a twentieth of the "
        "events and one over all, which are not counted. "
        "Spark's check of the bytes of Arrow batches is off but where it says otherwise, as advised above."
    )
    return report


def in_turns(asked: dict[str, Callable[[str], tuple[float, float]]], longest: str) -> dict[str, tuple[float, float]]:
    """Seconds and cores kept busy by setting: medians. The first round does not count; every other goes backwards."""
    found: dict[str, list[tuple[float, float]]] = {setting: [] for setting in asked}
    for i in range(ROUNDS + 1):
        for setting in list(asked)[:: 1 if i % 2 else -1]:
            took = asked[setting](longest)
            say(f"{setting}, up to {longest}: {took[0]:.1f} s, {took[1]:.2f} cores")
            found[setting] += [took] if i else []
    return {setting: (median(t for t, _ in each), median(busy for _, busy in each)) for setting, each in found.items()}


@contextmanager
def asking(events: Path, setting: str) -> Iterator[Callable[[str], tuple[float, float]]]:
    """A session to be asked, warm."""
    command = [sys.executable, "-m", "bench.spark_one_key", str(events), setting]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None

        def ask(longest: str) -> tuple[float, float]:
            print(longest, file=process.stdin, flush=True)
            took, busy = map(float, process.stdout.readline().split())
            return took, busy

        assert process.stdout.readline() == "ready\n"
        yield ask
        process.stdin.close()


def main(events: str, setting: str) -> None:
    from pyspark.sql import functions as F

    cores, chosen = SETTINGS[setting]
    if setting == PINNED:  # before the JVM is there: what it starts inherits this
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    spark = session(cores, **chosen)
    frame = spark.read.parquet(events).withColumn("symbol", F.lit("all"))
    for job in range(WARM):
        answer("1 h", frame.where(F.minute("ts") < 3), f"{setting}, warm, {job}")
    print("ready", flush=True)
    for line in sys.stdin:
        began, before = time.perf_counter(), cpu_seconds()
        answer(line.strip(), frame, setting)
        wall = time.perf_counter() - began
        print(wall, (cpu_seconds() - before) / wall, flush=True)
    spark.stop()


def answer(longest: str, events: Any, what: str) -> None:
    import swag.spark

    asked = queries(widths(WINDOWS, 60, LONGEST[longest]))
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
    main(*sys.argv[1:3])
