"""On a real, if small, cluster: a standalone master, a worker with two executors, `spark-submit`; on loopback.

The packages are shipped as a zip, which a wheel is as well, or inside a packed environment. Executors start in folders
of their own and know nothing of this repository: what they run came with the job, and the machine code from one folder
that the driver has filled.
"""

import json
import os
import socket
import subprocess
import sys
import tarfile
import time
import venv
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.spark_session import NO_JAVA, ROOT, has_java

JOB = """
import json
import os
import sys
import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
import swag as sw
import swag.spark

spark = SparkSession.builder.getOrCreate()
ts = np.arange(3000)
df = spark.createDataFrame(pa.table({"ts": ts, "key": ts % 7})).repartition(4)
queries = [sw.Query(sw.count(), sw.Range(100), "n"), sw.Query(sw.first("ts"), sw.Rows(2), "before")]
folder = swag.spark.warm(queries, df, key="key")
before = {path.name for path in folder.rglob("*.nbc")}
found = swag.spark.evaluate(queries, df, key="key", layout=swag.spark.Layout(tasks=4, sample=0)).toArrow().sort_by("ts")


def where(batches):
    for _ in batches:
        pass
    code = __import__("swag").__file__
    yield pa.RecordBatch.from_pydict({"code": [code], "prefix": [sys.prefix], "folder": [os.getcwd()]})


rows = df.mapInArrow(where, "code string, prefix string, folder string").collect()
right = np.minimum(ts, 99) // 7 + 1, np.where(ts < 7, ts, ts - 7)
print(json.dumps({
    "answers are right": [found[q.label].to_pylist() for q in queries] == [each.tolist() for each in right],
    "executors": sorted({(row.folder, row.prefix, row.code) for row in rows}),
    "compiled by workers": sorted({path.name for path in folder.rglob("*.nbc")} - before),
    "driver": sys.prefix,
}))
"""
QUICK = "-XX:TieredStopAtLevel=1"  # for Java that runs a minute at most
NEEDED = ("numpy", "numba", "pyarrow", "pandas", "sqlglot", "pyspark")


class Cluster:
    def __init__(self, folder: Path) -> None:
        import pyspark

        self.folder, self.home = folder, Path(pyspark.__file__).parent
        self.environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {
            "SPARK_HOME": str(self.home), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable,
            "SWAG_CACHE_DIR": str(folder / "cache"), "SPARK_WORKER_DIR": str(folder / "work"),
            "SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": QUICK,
        }  # fmt: skip
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.master = f"spark://127.0.0.1:{free.getsockname()[1]}"
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        host = ["--host", "127.0.0.1", "--webui-port", "0"]
        self._daemon("org.apache.spark.deploy.master.Master", *host, "--port", self.master.rsplit(":", 1)[1])
        self._daemon("org.apache.spark.deploy.worker.Worker", *host, "--cores", "2", "--memory", "2g", self.master)

    def _daemon(self, *arguments: str) -> None:
        with (self.folder / "daemons.log").open("ab") as log:
            command = [str(self.home / "bin" / "spark-class"), *arguments]
            self.started.append(
                subprocess.Popen(command, env=self.environment, cwd=self.folder, stdout=log, stderr=log)
            )

    def submit(self, *arguments: str, **environment: str) -> dict[str, Any]:
        """Run the job, and what it says."""
        (self.folder / "job.py").write_text(JOB)
        cache = f"spark.executorEnv.SWAG_CACHE_DIR={self.folder / 'cache'}"
        settings = ["spark.driver.host=127.0.0.1", "spark.ui.enabled=false", "spark.executor.memory=600m", cache]
        settings += ["spark.executor.cores=1"]
        settings += [f"spark.{who}.extraJavaOptions={QUICK}" for who in ("driver", "executor")]
        options = [part for each in settings for part in ("--conf", each)]
        command = [str(self.home / "bin" / "spark-submit"), "--master", self.master, *options, *arguments, "job.py"]
        done = subprocess.run(
            command, env=self.environment | environment, cwd=self.folder, capture_output=True, text=True, timeout=180
        )
        assert done.returncode == 0, done.stderr[-3000:]
        said: dict[str, Any] = json.loads(done.stdout)
        assert said["answers are right"] and said["compiled by workers"] == [] and len(said["executors"]) == 2
        return said

    def wait_for_worker(self) -> None:
        for _ in range(300):
            log = self.folder / "daemons.log"
            if log.exists() and log.read_text().count("Successfully registered with master") == 1:
                return
            time.sleep(0.2)
        pytest.fail(f"no cluster after a minute:\n{log.read_text()[-2000:]}")

    def stop(self) -> None:
        for process in reversed(self.started):
            process.terminate()
        for process in self.started:
            process.wait(30)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    if not has_java():
        pytest.fail(NO_JAVA, pytrace=False)
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    made.start()
    try:
        made.wait_for_worker()
        yield made
    finally:
        made.stop()


def sources() -> Iterator[tuple[Path, Path]]:
    """The code, and where it is in a package."""
    for package in ("swag", "frames", "kernels"):
        for source in sorted((ROOT / package).rglob("*.py")):
            yield source, source.relative_to(ROOT)


def zipped(path: Path) -> Path:
    """What `python -m zipfile -c swag.zip swag frames kernels` makes."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for source, name in sources():
            archive.write(source, name)
    return path


def packed(folder: Path) -> None:
    """What venv-pack makes: environment.tar.gz. What swag needs is not copied, but found where the tests have it."""
    environment = folder / "environment"
    venv.create(environment, symlinks=True)
    packages = next(environment.glob("lib/python*/site-packages"))
    for source, name in sources():
        (packages / name).parent.mkdir(parents=True, exist_ok=True)
        (packages / name).write_bytes(source.read_bytes())
    found = [find_spec(name) for name in NEEDED]
    (packages / "needed.pth").write_text("\n".join({str(Path(each.origin).parents[1]) for each in found}))
    with tarfile.open(folder / "environment.tar.gz", "w:gz", compresslevel=1) as archive:
        archive.add(environment, ".")


def test_a_job_brings_the_packages_in_a_zip(cluster: Cluster) -> None:
    said = cluster.submit("--py-files", str(zipped(cluster.folder / "swag.zip")))
    for _, prefix, code in said["executors"]:
        assert prefix == sys.prefix and "swag.zip/swag" in code


def test_a_job_brings_an_environment(cluster: Cluster) -> None:
    packed(cluster.folder)
    said = cluster.submit("--archives", "environment.tar.gz#environment", PYSPARK_PYTHON="./environment/bin/python")
    assert said["driver"] == str(cluster.folder / "environment")  # the one that was packed
    for folder, prefix, code in said["executors"]:
        assert (cluster.folder / "work") in Path(folder).parents
        assert prefix == f"{folder}/environment" and code.startswith(f"{prefix}/lib")  # those that were unpacked
