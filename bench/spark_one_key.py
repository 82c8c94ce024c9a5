"""One key with all events, on one core and on two: cut in time, it is answered by all cores.

Windows reach an hour back, of a day of events. Where one reaches over all of them, so does the halo of every cut.

python -m bench.spark_one_key FOLDER CORES        seconds, for a session of its own
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from bench.data import widths
from bench.report import Finding, Report
from bench.spark_batch import FULL, QUICK, queries, write
from bench.spark_session import ROOT, say, seconds, session

WINDOWS, HOUR = 10, 3_600


def run(quick: bool) -> Report:
    size = QUICK if quick else FULL
    with tempfile.TemporaryDirectory(prefix="swag-bench-") as folder:
        events = write(Path(folder), size) / "events"
        one, two = (alone(events, cores) for cores in (1, 2))
    report = Report(f"Spark: one key with {size.events:,} events, {WINDOWS} windows of 1 min - 1 h; sum, mean, max")
    said = f"local[1] {one:.1f} s, local[2] {two:.1f} s"
    report.findings.append(Finding("two cores against one", said, one / two, "x", reach=1.7))
    report.notes.append("The best of 3 each. local[1] is one task at a time: the JVM and Python already overlap in it.")
    return report


def alone(events: Path, cores: int) -> float:
    command = [sys.executable, "-m", "bench.spark_one_key", str(events), str(cores)]
    answer = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    took = float(answer.stdout.strip().splitlines()[-1])
    say(f"local[{cores}]: {took:.1f} s")
    return took


def main(events: str, cores: int) -> None:
    from pyspark.sql import functions as F

    import swag.spark

    spark = session(cores)
    frame = spark.read.parquet(events).withColumn("symbol", F.lit("all"))
    asked = queries(widths(WINDOWS, 60, HOUR))
    first = frame.where("ts < TIMESTAMP'2023-11-15 00:00:00'")
    seconds(lambda: swag.spark.evaluate(asked, first, key="symbol"), "warm")  # classes, kernels, workers
    print(min(seconds(lambda: swag.spark.evaluate(asked, frame, key="symbol"), "all") for _ in range(3)))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
