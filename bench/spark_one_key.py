"""One key with all events, on one core and on two: cut in time, it is answered by all cores.

Windows reach up to an hour, or up to a day: over all events that there are, and then so does the halo of every cut.

python -m bench.spark_one_key FOLDER CORES LONGEST        seconds, for a session of its own
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from bench.data import widths
from bench.report import Finding, Report
from bench.spark_batch import FULL, QUICK, queries, write
from bench.spark_session import ROOT, say, seconds, session

WINDOWS = 10
LONGEST = {"1 h": 3_600, "1 day": 86_400}  # in seconds


def run(quick: bool) -> Report:
    size = QUICK if quick else FULL
    with tempfile.TemporaryDirectory(prefix="swag-bench-") as folder:
        events = write(Path(folder), size) / "events"
        took = {name: [alone(events, cores, name) for cores in (1, 2)] for name in LONGEST}
    report = Report(f"Spark: one key with {size.events:,} events, {WINDOWS} windows from 1 min on; sum, mean, max")
    for name, (one, two) in took.items():
        said = f"local[1] {one:.1f} s, local[2] {two:.1f} s"
        report.findings.append(Finding(f"two cores against one, windows up to {name}", said, one / two, "x", reach=1.7))
    report.notes.append("The best of 2 each. local[1] is one task at a time: the JVM and Python already overlap in it.")
    return report


def alone(events: Path, cores: int, longest: str) -> float:
    command = [sys.executable, "-m", "bench.spark_one_key", str(events), str(cores), longest]
    answer = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    took = float(answer.stdout.strip().splitlines()[-1])
    say(f"local[{cores}], up to {longest}: {took:.1f} s")
    return took


def main(events: str, cores: int, longest: str) -> None:
    from pyspark.sql import functions as F

    import swag.spark

    spark = session(cores)
    frame = spark.read.parquet(events).withColumn("symbol", F.lit("all"))
    asked = queries(widths(WINDOWS, 60, LONGEST[longest]))
    first = frame.where("ts < TIMESTAMP'2023-11-15 00:00:00'")
    seconds(lambda: swag.spark.evaluate(asked, first, key="symbol"), "warm")  # classes, kernels, workers
    print(min(seconds(lambda: swag.spark.evaluate(asked, frame, key="symbol"), "all") for _ in range(2)))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
