"""Point-in-time features on Spark: four aggregates over 20 windows, at a million requests, against the same in SQL."""

from typing import Any

from bench.data import widths
from bench.report import Finding, Report
from bench.spark_batch import DAY, FULL, QUICK, SEGMENT_TREE, Bench, made, over, seconds

FEATURES = ("count", "sum", "mean", "max")


def run(quick: bool) -> Report:
    with made(QUICK if quick else FULL) as bench:
        return measured(bench)


def measured(bench: Bench) -> Report:
    size, lengths = bench.size, widths(bench.size.features, 60, DAY)
    columns = len(lengths) * len(FEATURES)
    took = seconds(lambda: bench.ours(bench.events, lengths, bench.requests, FEATURES), "swag")
    theirs = bench.of_all_keys(lambda n: in_sql(bench, n, lengths), "Spark SQL")
    report = Report(f"Spark: {columns} features for {size.requests:,} requests, {size.events:,} events")
    said = f"swag {took:.1f} s, Spark SQL {theirs:,.0f} s"
    report.findings.append(Finding("point-in-time features", said, theirs / took, "x", reach=10))
    report.notes.append(
        "Spark SQL: events and requests in one UNION ALL, window functions over it with segment trees, requests kept; "
        f"from {size.few} and {size.part} keys."
    )
    return report


def in_sql(bench: Bench, keys: int, lengths: list[int]) -> Any:
    from pyspark.sql import functions as F

    bench.spark.conf.set(SEGMENT_TREE, "true")
    events = bench.some("events", keys).withColumn("asks", F.lit(False))
    asked = bench.some("requests", keys).withColumn("asks", F.lit(True))
    rows = events.unionByName(asked, allowMissingColumns=True)
    return rows.select("symbol", "ts", "asks", *over(lengths, FEATURES)).where("asks").drop("asks")
