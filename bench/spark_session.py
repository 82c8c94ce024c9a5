"""A session of Spark for the benchmarks, and how long a job takes in it."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent


def session(cores: int, **settings: str) -> Any:
    """settings: more of Spark's, by their names."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    chosen = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "4g",
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.session.timeZone": "UTC",
    } | settings
    builder = SparkSession.builder.master(f"local[{cores}]").appName("swag bench")
    for name, value in chosen.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def seconds(job: Callable[[], Any], what: str = "") -> float:
    """To plan a job, with what is looked at beforehand, and to run it; its answers go nowhere."""
    start = time.perf_counter()
    job().write.format("noop").mode("overwrite").save()
    took = time.perf_counter() - start
    say(f"{took:7.1f} s  {what}")
    return took


def say(line: str) -> None:
    """A full run takes minutes: something moves."""
    print(line, file=sys.stderr, flush=True)
