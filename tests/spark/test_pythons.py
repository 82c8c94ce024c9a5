"""Which Python runs in Spark's workers, and what is said if swag is not there."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import py4j
import pyspark
import pytest
from pyspark import cloudpickle

from swag.spark.batch.tasks import answers
from swag.spark.portable import own_python, told

RUN = "import pickle, sys; list(pickle.load(open(sys.argv[1], 'rb'))([]))"


def test_a_worker_without_swag_says_which_python_it_is_and_what_to_set(tmp_path):
    """A Python that finds pyspark, as a worker does, and nothing else."""
    for package in (pyspark, py4j):
        (tmp_path / package.__name__).symlink_to(Path(package.__file__).parent)
    (tmp_path / "function").write_bytes(cloudpickle.dumps(told(answers)))
    ran = subprocess.run(
        [sys.executable, "-S", "-c", RUN, str(tmp_path / "function")],
        env={"PYTHONPATH": str(tmp_path)}, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    said = ran.stderr.splitlines()[-1]
    assert said.startswith(f"ModuleNotFoundError: {sys.executable} (3.")
    assert "the Python of this worker, has no module named 'swag'. Hint: set PYSPARK_PYTHON" in said
    assert f"(the driver's is {sys.executable})" in said and "--py-files swag.zip" in said


def frame(master: str, *chosen: str) -> SimpleNamespace:
    """As much of a DataFrame as is looked at."""
    conf = SimpleNamespace(contains=lambda name: name in chosen)
    context = SimpleNamespace(master=master, pythonExec="python3", getConf=lambda: conf)
    return SimpleNamespace(sparkSession=SimpleNamespace(_sc=context))


@pytest.mark.parametrize(
    ("master", "conf", "environment", "python"),
    [
        ("local[2]", (), {}, sys.executable),
        ("local-cluster[1,1,1024]", (), {}, sys.executable),
        ("spark://host:7077", (), {}, "python3"),
        ("local[2]", ("spark.pyspark.python",), {}, "python3"),
        ("local[2]", (), {"PYSPARK_PYTHON": "/usr/bin/python3"}, "python3"),
    ],
)
def test_local_workers_run_the_drivers_python_unless_another_was_chosen(monkeypatch, master, conf, environment, python):
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    rows = frame(master, *conf)
    with own_python(rows):
        assert rows.sparkSession._sc.pythonExec == python
    assert rows.sparkSession._sc.pythonExec == "python3"  # for functions of others


def test_under_spark_connect_nothing_is_chosen():
    with own_python(SimpleNamespace(sparkSession=SimpleNamespace())):
        pass
