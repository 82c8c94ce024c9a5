"""The cache of compiled kernels is shared: by processes that fill it at once, and by those that may only read it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernels import jit

ROOT = Path(__file__).parent.parent.parent
MANY_SIGNATURES = """
import sys, numpy as np
from kernels import edges
kinds = [np.int64, np.float64, np.int32, np.float32]
for kind in kinds[int(sys.argv[1]):] + kinds[:int(sys.argv[1])]:
    out = np.zeros(3, kind)
    edges.scatter(np.arange(3).astype(kind), np.array([2, 1, 0]), out)
    assert out.tolist() == [2, 1, 0], (kind, out)
print(sum(edges.scatter.stats.cache_hits.values()))
"""


def start(folder: Path, turn: int) -> "subprocess.Popen[str]":
    environment = {**os.environ, "SWAG_CACHE_DIR": str(folder), "PYTHONPATH": str(ROOT), "NUMBA_DISABLE_JIT": "0"}
    command = [sys.executable, "-c", MANY_SIGNATURES, str(turn)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_code_is_made_anew_when_a_file_changes_that_is_imported_as_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """One file said `from kernels import x as y`: its code went stale when that changed."""
    sources = {"top": b"from kernels import middle as m, other\n", "middle": b"from kernels.low import f\n"}
    jit._sources.cache_clear()
    with monkeypatch.context() as patched:
        patched.setattr(jit, "_text", lambda stem: sources.get(stem, b""))
        assert jit._sources("top") == {"jit", "top", "middle", "other", "low"}
    jit._sources.cache_clear()
    assert {"ci_sum", "ci_count", "bands", "inlining", "jit"} <= jit._sources("ci_sum")


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
