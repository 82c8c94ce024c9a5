"""What a newcomer waits for: the import, the first answer with nothing compiled yet, and the same in a new process."""

import os
import resource
import shutil
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
}


class Took(NamedTuple):
    wall: float
    cpu: float
    printed: str


def run(quick: bool) -> Report:
    """On a copy of the packages, as an installation is: any edit of a kernel meanwhile would empty the JIT cache."""
    report = Report("first use, each in a fresh process")
    rounds = 1 if quick else 5
    with tempfile.TemporaryDirectory() as folder:
        installed = Path(folder)
        for package in PACKAGES:
            shutil.copytree(ROOT / package, installed / package, ignore=shutil.ignore_patterns("__pycache__"))
        _python(IMPORT, installed, installed / "cache")  # writes the .pyc files, as an installer does
        imports = [_python(IMPORT, installed, installed / "cache").printed.split() for _ in range(rounds)]
        wall, cpu = min((float(wall), float(cpu)) for wall, cpu in imports)
        report.findings.append(Finding("import swag", f"in the process (CPU {cpu:.2f} s)", wall, "s", 1, at_most=True))
        for name, code in () if quick else FIRST.items():
            cache = installed / f"cache-{name}"
            cold = _python(EVENTS + code, installed, cache)
            warm = min((_python(EVENTS + code, installed, cache) for _ in range(rounds)), key=lambda took: took.wall)
            report.findings.append(_finding(name, "empty", cold, 20))
            report.findings.append(_finding(name, "filled", warm, 3))
    report.notes.append(
        "Wall time of the whole process, with its CPU time: where wall is far above CPU, the process was waiting "
        "for a core. The empty cache is measured once, the rest is the best of five."
        if not quick
        else "Quick: the import only; compiling everything takes too long."
    )
    return report


def _finding(name: str, cache: str, took: Took, reach: float) -> Finding:
    return Finding(
        f"first answer, {name}",
        f"{cache} JIT cache, whole process (CPU {took.cpu:.2f} s)",
        took.wall,
        "s",
        reach,
        at_most=True,
    )


def _python(code: str, installed: Path, cache: Path) -> Took:
    environment = dict(os.environ, PYTHONPATH=str(installed), SWAG_CACHE_DIR=str(cache))
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=installed, capture_output=True, text=True, check=False
    )
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(f"a first use failed:\n{done.stderr}")
    return Took(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout)
