"""What is public is listed, and nothing else; each name says what it is, with an example that runs."""

import doctest
import inspect
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import frames as fr
import frames.spark
import swag as sw
import swag.spark

ROOT = Path(__file__).parent.parent
FLAGS = doctest.ELLIPSIS
PACKAGES = (sw, fr, fr.metrics, fr.theory)
TYPES = ("Event", "Frame")  # of fr.theory: what a dict and a pair of positions are called in annotations
PUBLIC = [(package, name) for package in PACKAGES for name in package.__all__ if name not in TYPES]


def examples(what: Any, name: str) -> list[doctest.DocTest]:
    """The examples in its own docstring."""
    return [doctest.DocTestParser().get_doctest(inspect.getdoc(what) or "", {}, name, None, None)]


@pytest.mark.parametrize("package", [*PACKAGES, swag.spark, frames.spark])
def test_dir_lists_what_is_public_and_nothing_else(package: ModuleType) -> None:
    shown = [name for name in dir(package) if not name.startswith("__")]
    assert sorted(shown) == sorted(package.__all__)
    if package in PACKAGES:  # the others import PySpark to get them
        assert all(hasattr(package, name) for name in shown)


@pytest.mark.parametrize(("package", "name"), PUBLIC, ids=[f"{p.__name__}.{n}" for p, n in PUBLIC])
def test_every_name_has_an_example_that_runs(package: ModuleType, name: str) -> None:
    (test,) = examples(getattr(package, name), f"{package.__name__}.{name}")
    assert test.examples
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    said: list[str] = []
    runner.run(test, out=said.append)
    assert runner.failures == 0, "".join(said)


@pytest.mark.parametrize("package", [swag.spark, frames.spark])
def test_every_name_of_spark_has_an_example_that_can_be_read(package: ModuleType) -> None:
    """They are not run: a session takes seconds to start. tests/spark runs what they call."""
    for name in package.__all__:
        (test,) = examples(getattr(package, name), name)
        assert test.examples, f"{package.__name__}.{name}"
        for each in test.examples:
            compile(each.source, name, "single")


@pytest.mark.parametrize("package", [sw, fr])
def test_the_packages_have_an_example(package: ModuleType) -> None:
    (test,) = examples(package, package.__name__)
    assert test.examples
    assert doctest.DocTestRunner(optionflags=FLAGS).run(test).failed == 0


@pytest.mark.parametrize("kind", [sw.Engine, fr.Detector, fr.Filler])
def test_every_public_method_says_what_it_does(kind: type) -> None:
    methods = {name: each for name, each in vars(kind).items() if not name.startswith("_")}
    assert [name for name, each in methods.items() if not inspect.getdoc(each)] == []


@pytest.mark.parametrize("package", ["swag", "frames"])
def test_types_are_for_others_too(package: str) -> None:
    assert (ROOT / package / "py.typed").exists()


def test_the_distribution_has_a_name_of_its_own() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["name"] == "swag-windows"
    assert "swag-windows[spark]" in project["optional-dependencies"]["test"]
    assert project["scripts"] == {"swag": "swag.cli:main"}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (sw.sum("volume"), 'sw.sum("volume")'),
        (sw.median("x"), 'sw.median("x")'),
        (sw.quantile("x", 0.9, method="linear"), 'sw.quantile("x", 0.9, method="linear")'),
        (sw.std("x", ddof=0).alias("s"), 'sw.std("x", ddof=0).alias("s")'),
        (sw.Rows(5), "sw.Rows(5)"),
        (sw.Range("2m", until="1m"), 'sw.Range("2m", until="1m")'),
        (sw.Every("1m", anchor="tuple"), 'sw.Every("1m", anchor="tuple")'),
        (sw.Every(10, per_key=True), "sw.Every(10, per_key=True)"),
        (sw.Every(time=60), "sw.Every(time=60)"),
        (sw.Events("x > 1"), 'sw.Events("x > 1")'),
        (sw.sum("x").filter("y > 1").over(sw.Rows(2)), 'sw.sum("x").filter("y > 1").over(sw.Rows(2))'),
        (
            sw.Query(sw.sum("x"), sw.Rows(2), name="s", where="y > 1", having=(">", 3), index=False),
            'sw.Query(sw.sum("x"), sw.Rows(2), name="s", where="y > 1", having=(">", 3), index=False)',
        ),
        (sw.col("ts"), 'sw.col("ts")'),
        (
            sw.Query(sw.max("x") - sw.min("x"), sw.Rows(2), having=(sw.sum("x") > 1) & ~sw.count().between(1, 5)),
            'sw.Query(sw.max("x") - sw.min("x"), sw.Rows(2), having=(sw.sum("x") > 1) & ~sw.count().between(1, 5))',
        ),
        (
            sw.Expression("between", (5, sw.min("x"), sw.max("x"))),
            'sw.Expression("between", (5, sw.min("x"), sw.max("x")))',
        ),
        (
            sw.sql("SELECT SUM(x) OVER (ORDER BY ts) AS a FROM t")[0],
            'sw.sql("SELECT SUM(x) OVER (ORDER BY ts) AS a FROM t")[0]',
        ),
        (fr.Threshold("x", ">", 0.3, min_rows=2), 'fr.Threshold("x", ">", 0.3, min_rows=2)'),
        (fr.Boundary("x", 4.25, max_rows=9), 'fr.Boundary({"x": 4.25}, max_rows=9)'),
        (fr.Threshold("x > 1 AND y > 2", partition=True), 'fr.Threshold("x > 1 AND y > 2", partition=True)'),
        (fr.Session("30m", max_duration="1d"), 'fr.Session("30m", max_duration="1d")'),
        (fr.State("status", extent="open"), 'fr.State("status", extent="open")'),
        (fr.Between("x > 5", "x < 2", same=True), 'fr.Between("x > 5", "x < 2", same=True)'),
        (fr.Delta("x", 1, measure="range"), 'fr.Delta({"x": 1}, measure="range")'),
        (fr.Aggregate(sw.sum("v"), ">=", 25), 'fr.Aggregate(sw.sum("v"), ">=", 25)'),
    ],
)
def test_a_value_shows_itself_as_the_call_that_makes_it(value: Any, text: str) -> None:
    assert repr(value) == text
    assert eval(text, {"sw": sw, "fr": fr}) == value


def test_of_several_statements_each_shows_which_it_is() -> None:
    over = "SELECT {}(x) OVER (ORDER BY ts) AS a FROM t"
    queries = sw.sql(f"{over.format('SUM')}; {over.format('AVG')}")
    assert [eval(repr(query), {"sw": sw}) for query in queries] == queries
    assert queries[0] != queries[1]


def test_an_engine_shows_itself_in_one_line() -> None:
    engine = sw.Engine(key="k")
    assert repr(engine) == '<sw.Engine ts="ts", key="k": 0 queries, 0 events, 0 keys>'
    engine.register(sw.Query(sw.count(), sw.Rows(2)))
    engine.append({"ts": [1, 2], "k": ["a", "a"]})
    assert repr(engine) == '<sw.Engine ts="ts", key="k": 1 query, 2 events, 1 key>'


def test_a_detector_and_a_filler_show_themselves_in_one_line() -> None:
    spec = fr.Threshold("x", ">", 1, min_rows=2)
    detector = fr.Detector(spec, key="k")
    start = f'<fr.Detector {spec!r}, ts="ts", key="k": '
    assert repr(detector) == start + "0 events buffered, 0 frames open>"
    detector.push({"ts": [1, 2, 1, 9], "k": ["a", "a", "b", "a"], "x": [5, 5, 5, 5]})
    assert repr(detector) == start + "4 events buffered, 0 frames open>"
    detector.punctuate(3)
    assert repr(detector) == start + "1 event buffered, 1 frame open>"  # that of b may stay too short
    detector.finish()
    assert repr(detector) == start + "0 events buffered, 0 frames open, finished>"
    filler = fr.Filler(key=("k", "j"))
    filler.push_events({"ts": [1, 2], "k": ["a", "a"], "j": [1, 1]})
    assert repr(filler) == '<fr.Filler ts="ts", key=("k", "j"): 2 events buffered, 0 frames waiting>'


def test_an_explanation_is_shown_as_lines() -> None:
    said = sw.Engine().explain()
    assert isinstance(said, str)
    assert repr(said) == str(said)
    assert "\n" in repr(said)


def test_the_hint_for_spark_names_the_distribution() -> None:
    from swag.errors import NEEDS_SPARK

    assert NEEDS_SPARK == 'needs PySpark. Hint: pip install "swag-windows[spark]"'


def test_what_few_need_is_not_imported_by_all() -> None:
    """Each of them takes a tenth of a second or more. Arrow imports pandas when it first makes an array of a list."""
    dear = ("pandas", "sqlglot", "polars", "duckdb", "matplotlib", "pyspark", "pyarrow.dataset", "pyarrow.parquet")
    code = f"import swag, frames, sys; print(*(name for name in {dear} if name in sys.modules))"
    said = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert said.stdout.split() == []


@pytest.mark.parametrize(
    ("package", "name", "hint"),
    [
        (sw, "avg", " Hint: sw.mean"), (sw, "stddev", " Hint: sw.std"), (sw, "max_by", " Hint: sw.arg_max"),
        (sw, "Row", " Hint: sw.Rows"), (sw, "read_csv", ""), (fr, "threshold", " Hint: fr.Threshold"), (fr, "x", ""),
    ],
)  # fmt: skip
def test_a_name_that_is_not_there_is_said_with_the_one_that_is(package: ModuleType, name: str, hint: str) -> None:
    assert not hasattr(package, name)
    with pytest.raises(AttributeError) as found:
        getattr(package, name)
    assert str(found.value) == f'{package.__name__} has no "{name}".{hint}'
