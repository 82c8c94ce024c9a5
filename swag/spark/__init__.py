"""swag on Spark: the same queries and answers, over DataFrames. Nothing of Spark is imported until it is used."""

from importlib import import_module
from typing import Any

from swag.errors import NEEDS_SPARK

_WHERE = {  # no module is named as what it holds: an import of it would take the name
    "evaluate": "swag.spark.batch.evaluate",
    "filter_substreams": "swag.spark.batch.filter_substreams",
    "sql": "swag.spark.batch.over",
    "stream": "swag.spark.streams.stream",
    "warm": "swag.spark.warming",
    "Layout": "swag.spark.batch.layout",
}
__all__ = ["Layout", "evaluate", "filter_substreams", "sql", "stream", "warm"]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(_WHERE[name]), name)
    except ModuleNotFoundError as why:
        if (why.name or "").split(".")[0] != "pyspark":
            raise
        raise ModuleNotFoundError(f"swag.spark {NEEDS_SPARK}", name="pyspark") from None


def __dir__() -> list[str]:
    """What is public, and nothing else."""
    return [*__all__, "__doc__"]
