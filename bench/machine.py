"""Where numbers were measured."""

import importlib.metadata
import os
import platform
from pathlib import Path
from typing import Any

import numpy as np

PACKAGES = ("swag", "numpy", "numba", "pyarrow", "polars", "duckdb", "bottleneck", "pyspark")


def describe() -> dict[str, Any]:
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "load": [round(x, 2) for x in os.getloadavg()],
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in PACKAGES},
    }


def line(machine: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items() if version)
    cores = f"{machine['cores']} cores ({machine['cpu']})"
    return f"{cores}, load {machine['load'][0]} at the start; Python {machine['python']}, {versions}"


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next(
        (entry.split(":", 1)[1].strip() for entry in lines if entry.startswith("model name")), platform.machine()
    )


def _version(name: str) -> str | None:
    if name == "swag":  # from the sources next to us, installed or not
        import swag

        return swag.__version__
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def touch_memory(gigabytes: int = 6) -> None:
    """Use memory once before measuring: what a virtual machine never used yet is many times slower the first time."""
    np.ones(gigabytes << 27).sum()
