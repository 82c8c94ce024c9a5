"""Another distribution's `kernels` or `frames` in the way is told at import, with what was found and what to do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def imported(first: Path) -> "subprocess.CompletedProcess[str]":
    """`import swag`, where a folder comes before ours on the path."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(first), str(ROOT)])}
    return subprocess.run(
        [sys.executable, "-c", "import swag; print(swag.__version__)"],
        env=environment, cwd=first, capture_output=True, text=True,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["kernels", "frames"])
@pytest.mark.parametrize("shape", ["package", "file"])
def test_another_package_of_the_name_is_told(name: str, shape: str, tmp_path: Path) -> None:
    found = tmp_path / name / "__init__.py" if shape == "package" else tmp_path / f"{name}.py"
    found.parent.mkdir(exist_ok=True)
    found.write_text('"""Kernels from a hub, how swag they are."""\nraise RuntimeError("must not be imported")\n')
    ran = imported(tmp_path)
    last = ran.stderr.strip().splitlines()[-1]
    assert ran.returncode == 1
    assert last.startswith(f'ImportError: swag comes with a package "{name}", but in its place Python finds {found}.')
    assert "pip install swag-windows" in last


def test_an_empty_folder_of_the_name_is_not_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "kernels").mkdir()
    assert imported(tmp_path).returncode == 0
