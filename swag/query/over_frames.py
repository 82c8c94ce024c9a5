"""Between swag and frames: what swag asks of a query over frames, and of the package that finds them.

`frames` stands on swag. Where swag has to reach it all the same (FRAME statements, the command line, Spark), it does so
by the functions here, and knows no more of it than they declare.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, Protocol, cast

import pyarrow as pa


class OverFrames(ABC):
    """A query over frames (frames/query.py): one row per frame, wherever it is evaluated."""

    spec: Any
    by: tuple[str, ...] | None
    stream: str | None

    @property
    @abstractmethod
    def label(self) -> str:
        """Its name."""

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The columns that are read, other than ts and the key."""

    @abstractmethod
    def evaluate(self, events: Any, ts: str = "ts", key: Any = None) -> pa.Table:
        """Over stored events."""


class FramesPackage(Protocol):
    """What swag needs of the package, in frames/for_swag.py."""

    Threshold: type[Any]
    Aggregate: type[Any]
    Delta: type[Any]
    Boundary: type[Any]
    Session: type[Any]
    State: type[Any]
    Between: type[Any]
    FrameQuery: Callable[..., OverFrames]
    Detector: Callable[..., Any]
    detect: Callable[..., pa.Table]
    fill: Callable[..., pa.Table]
    summarize: Callable[..., pa.Table]
    plot: Callable[..., Any]

    def frames_by_chunk(
        self, spec: Any, query: Any, chunks: Iterator[pa.Table], ts: str, key: Any, check: Callable[..., int]
    ) -> Iterator[pa.Table]:
        """Frames of a file of events in bounded memory. check: raises if a chunk is not in order; its last time."""


def frames_package() -> FramesPackage:
    """It is imported when it is first needed."""
    return cast(FramesPackage, import_module("frames.for_swag"))


class FramesOnSpark(Protocol):
    """What swag.spark needs of frames.spark."""

    def evaluate(self, query: Any, events: Any, ts: str, keys: list[str], layout: Any) -> Any:
        """A query over frames, over a DataFrame, as a DataFrame."""


def frames_on_spark() -> FramesOnSpark:
    """As `frames_package`."""
    return cast(FramesOnSpark, import_module("frames.spark.batch.queries"))
