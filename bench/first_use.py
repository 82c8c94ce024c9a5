"""What a newcomer waits for: the import, the first answer with nothing compiled yet, and the same in a new process.

Kernels are compiled side by side where there are cores for that: wall time is what somebody waits, CPU time what all
processes took. On a machine that does other things, compare CPU times.
"""

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from bench.report import Finding, Report

ROOT = Path(__file__).parent.parent
PACKAGES = ("swag", "kernels", "frames")
IMPORT = """
import time
wall, cpu = time.perf_counter(), time.process_time()
import swag
print(time.perf_counter() - wall, time.process_time() - cpu)
"""
EVENTS = """
import numpy as np, swag as sw
n = 10_000
rng = np.random.default_rng(0)
events = {"ts": np.arange(n).astype("datetime64[s]"), "symbol": rng.integers(0, 100, n), "price": rng.normal(100, 1, n)}
kinds = [sw.count(), sw.sum("price"), sw.mean("price"), sw.max("price")]
queries = [sw.Query(kind, sw.Range(width), name=f"{kind.kind}_{width}") for kind in kinds for width in ("5m", "1h")]
"""
FIRST = {
    "engine": """
engine = sw.Engine(ts="ts", key="symbol")
engine.register(queries)
engine.append(events)
assert engine.lookup_all().num_rows == 100
""",
    "evaluate": """
assert sw.evaluate(queries, events, ts="ts", key="symbol").num_rows == n
""",
    "frames": """
import frames as fr
found = fr.detect(fr.Threshold("price", ">", 100.0), events, key="symbol")
assert fr.summarize(found, events, [sw.mean("price"), sw.max("price")], key="symbol").num_rows > 100
""",
}
DEMO = """
from rich.console import Console
from swag.cli import demo_job as demo
from swag.cli.warming import compile_for
compile_for(demo.rehearsal, Console(quiet=True))
demo.rehearse(demo.queries(), demo.trades(2000, 2000, 7))
"""
REACH = {"engine": (6, 3), "evaluate": (6, 3), "frames": (6, 3)}  # seconds: nothing compiled, everything compiled


class Took(NamedTuple):
    wall: float
    cpu: float
    printed: str


def run(quick: bool) -> Report:
    """On a copy of the packages, as an installation is: any edit of a kernel meanwhile would empty the JIT cache."""
    report = Report("first use, each in a fresh process")
    rounds = 1 if quick else 7
    with tempfile.TemporaryDirectory() as folder:
        installed = Path(folder)
        for package in PACKAGES:
            shutil.copytree(ROOT / package, installed / package, ignore=shutil.ignore_patterns("__pycache__"))
        _python(IMPORT, installed, installed / "cache")  # writes the .pyc files, as an installer does
        imports = [_python(IMPORT, installed, installed / "cache").printed.split() for _ in range(rounds)]
        wall, cpu = (statistics.median(map(float, times)) for times in zip(*imports, strict=True))
        where = f"in the process (CPU {cpu:.2f} s)"
        report.findings.append(Finding("import swag", where, wall, "s", 0.6, at_most=True))
        for name, code in () if quick else FIRST.items():
            cache = installed / f"cache-{name}"
            cold = _python(EVENTS + code, installed, cache)
            warm = min((_python(EVENTS + code, installed, cache) for _ in range(rounds)), key=lambda took: took.wall)
            for state, took, reach in zip(("empty", "filled"), (cold, warm), REACH[name], strict=True):
                report.findings.append(_finding(f"first answer, {name}", state, took, reach))
        if not quick:
            report.findings.append(
                _finding("the demo's kernels", "empty", _python(DEMO, installed, installed / "d"), 12)
            )
    report.notes.append(
        "Wall time of the whole process, with its CPU time: where wall is far above CPU, the process was waiting "
        "for a core, or for processes that compile beside it, whose CPU time is counted. The empty cache is measured "
        "once; the import is the median of seven, the rest the best of seven."
        if not quick
        else "Quick: the import only; compiling everything takes too long."
    )
    return report


def _finding(name: str, cache: str, took: Took, reach: float) -> Finding:
    return Finding(
        name,
        f"{cache} JIT cache, whole process (CPU {took.cpu:.2f} s)",
        took.wall,
        "s",
        reach,
        at_most=True,
    )


def _python(code: str, installed: Path, cache: Path) -> Took:
    environment = dict(os.environ, PYTHONPATH=str(installed), SWAG_CACHE_DIR=str(cache))
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=installed, capture_output=True, text=True, check=False
    )
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(f"a first use failed:\n{done.stderr}")
    return Took(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout)
