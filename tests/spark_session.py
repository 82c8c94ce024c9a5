"""One Spark for all tests: local, two cores, small shuffles. A session that takes five seconds to start is shared."""

import contextlib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
NO_JAVA = "Spark needs Java 17 or newer: apt-get install openjdk-17-jre-headless, or set JAVA_HOME to where it is."


def has_java() -> bool:
    home = os.environ.get("JAVA_HOME")
    return (Path(home) / "bin" / "java").exists() if home else shutil.which("java") is not None


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if not has_java():
        pytest.fail(NO_JAVA, pytrace=False)
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])  # of Python workers
    folder = tmp_path_factory.mktemp("spark")
    builder = SparkSession.builder.master("local[2]").appName("swag tests")
    for name, value in settings(folder).items():
        builder = builder.config(name, value)
    with contextlib.chdir(folder):  # where Java finds paths such as "trades", for as long as it lives
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@cache
def shares_session(path: Path) -> bool:
    """Does a file of tests ask for it, as an argument or by name?"""
    return re.search(r"def \w+\([^)]*\bspark\b|getfixturevalue\(.spark", path.read_text(encoding="utf-8")) is not None


def settings(folder: Path) -> dict[str, str]:
    return {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # jobs end before more would pay
        "spark.sql.codegen.wholeStage": "false",  # so would Java that is written and compiled for a few rows
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.python.daemon.module": "tests.spark_daemon",
        "spark.local.dir": tempfile.mkdtemp(dir=folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.shuffle.partitions": "3",
        "spark.default.parallelism": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",  # a worker that crashes says where
        "spark.python.worker.faulthandler.enabled": "true",
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        "spark.showConsoleProgress": "false",
    }
