"""The cache of compiled kernels is shared: by processes that fill it at once, and by those that may only read it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kernels.compile import jit

ROOT = Path(__file__).parent.parent.parent
MANY_SIGNATURES = """
import sys, numpy as np
from kernels.stored import edges
kinds = [np.int64, np.float64, np.int32, np.float32]
for kind in kinds[int(sys.argv[1]):] + kinds[:int(sys.argv[1])]:
    out = np.zeros(3, kind)
    edges.renumber(np.arange(3).astype(kind), np.array([2, 1, 0]), out)
    assert out.tolist() == [2, 1, 0], (kind, out)
print(sum(edges.renumber.stats.cache_hits.values()))
"""


def start(folder: Path, turn: int) -> "subprocess.Popen[str]":
    environment = {**os.environ, "SWAG_CACHE_DIR": str(folder), "PYTHONPATH": str(ROOT), "NUMBA_DISABLE_JIT": "0"}
    command = [sys.executable, "-c", MANY_SIGNATURES, str(turn)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_code_is_made_anew_when_a_source_changes_however_far_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """In sub-packages, by any spelling of an import, through any number of them."""
    sources = {
        "kernels.a.top": b"from kernels.a import middle as m, other\n",
        "kernels.a.middle": b"from kernels.b.low import (\n    f,\n    g as h,\n)\n",
        "kernels.a.other": b"from kernels import flat  # a comment, kernels.a.unknown\n",
        "kernels.b.low": b"",
        "kernels.flat": b"",
    }
    everything = {"kernels.compile.jit", *sources}
    jit._sources.cache_clear()
    with monkeypatch.context() as patched:
        patched.setattr(jit, "_text", sources.get)
        assert jit._sources("kernels.a.top") == everything
    jit._sources.cache_clear()
    names = {f"kernels.key_filters.{name}" for name in ("ci_sum", "ci_count", "bands")}
    assert names | {"kernels.compile.inlining", "kernels.compile.jit"} <= jit._sources("kernels.key_filters.ci_sum")


SWEEP = """
import numpy as np
from kernels.operators.compensated import Compensated
from kernels.stored import moving_landmark
scratch, out = (np.zeros(4), np.zeros(4)), (np.zeros(1), np.zeros(1))
mark, lo, hi = np.zeros(3, np.int64), np.array([0]), np.array([3])
moving_landmark.sweep(Compensated(), np.array([1.0, 2.0, 4.0]), lo, hi, mark, scratch, out)
print(out[0][0], sum(moving_landmark.sweep.stats.cache_hits.values()))
"""


def swept(folder: Path) -> list[str]:
    """By the package in this folder, with a cache beside it: the sum, and whether compiled code was found."""
    environment = {**os.environ, "SWAG_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": str(folder)}
    environment["NUMBA_DISABLE_JIT"] = "0"
    ran = subprocess.run([sys.executable, "-c", SWEEP], env=environment, cwd=folder, capture_output=True, text=True)
    assert ran.stderr == ""
    return ran.stdout.split()


def test_a_changed_source_two_imports_away_is_compiled_anew(tmp_path: Path) -> None:
    """landmark.py imports compensated.py, and that numbers.py: yesterday's code must not be found by today's source."""
    shutil.copytree(ROOT / "kernels", tmp_path / "kernels", ignore=shutil.ignore_patterns("__pycache__"))
    assert [swept(tmp_path), swept(tmp_path)] == [["7.0", "0"], ["7.0", "1"]]
    path = tmp_path / "kernels" / "operators" / "numbers.py"
    source = path.read_text()
    assert source.count("s = a + b\n") == 1
    path.write_text(source.replace("s = a + b\n", "s = a + b + 1\n"))
    assert swept(tmp_path)[1] == "0"


def test_processes_that_fill_it_at_once_do_not_mix_up_signatures(tmp_path: Path) -> None:
    first = [start(tmp_path, turn) for turn in range(4)]
    assert [process.communicate()[1] for process in first] == [""] * 4
    assert start(tmp_path, 0).communicate() == ("4\n", "")


def test_a_folder_that_can_only_be_read_is_read(tmp_path: Path) -> None:
    start(tmp_path, 0).communicate()
    folders = [tmp_path, *tmp_path.iterdir()]
    for folder in folders:
        folder.chmod(0o555)
    try:
        assert start(tmp_path, 0).communicate() == ("4\n", "")
    finally:
        for folder in folders:
            folder.chmod(0o755)
