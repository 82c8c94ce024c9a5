"""Between swag and frames: what swag asks of a query over frames, and of the package that finds them.

`frames` stands on swag. Where swag has to reach it all the same (FRAME statements, the command line, Spark), it does so
by the functions here, and knows no more of it than they declare.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
import pyarrow as pa

from swag.durable.state import State
from swag.errors import SwagError
from swag.tables.columns import Clock
from swag.tables.keys import KeyTable
from swag.tables.waiting import TimedRows

if TYPE_CHECKING:
    from swag.query.query import Query


class ContinuousFrames(ABC):
    """A query over frames at work on the events of one grouping (frames/continuous/running.py), as an engine drives it.

    Events come in order within each key, their keys numbered by the engine. It owns what it keeps of them.
    """

    @abstractmethod
    def check(self, table: pa.Table, clock: Clock) -> None:
        """Raise what is wrong with the columns of a batch; nothing is changed."""

    @abstractmethod
    def take(
        self, rows: TimedRows, keys: KeyTable | None, clock: Clock, by_key: Any = None
    ) -> tuple[pa.Table | None, SwagError | None]:
        """Events that were checked: the rows of the frames that they decide, if any; and what is wrong with others.
        by_key: these in order of key, if somebody has put them so (swag/live/arena.py)."""

    @abstractmethod
    def decide(self, closed: int) -> tuple[pa.Table | None, SwagError | None]:
        """Every event up to `closed` has come: rows of frames that had to wait for that, as `take` gives them."""

    @property
    @abstractmethod
    def other(self) -> str | None:
        """The stream that frames are filled from, if that is another one."""

    @abstractmethod
    def check_other(self, table: pa.Table, clock: Clock, keys: KeyTable | None, ordered: bool) -> Any:
        """Events of that stream, as `take_other` is given them; raises what is wrong with them, and nothing is changed.
        keys: those of the engine, if any have come. ordered: events of a key have to be in order."""

    @abstractmethod
    def take_other(self, came: Any, clock: Clock) -> None:
        """Events of that stream, which `check_other` gave."""

    @abstractmethod
    def close_other(self, closed: int) -> None:
        """All events of that stream up to `closed` have come."""

    @abstractmethod
    def let_go(self) -> None:
        """Forget at once what no frame can reach any more."""

    @abstractmethod
    def nothing(self) -> pa.Table:
        """No rows, with the columns that they have."""

    @abstractmethod
    def changes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Of frames that opened or closed since it was last told: frame_id, the number of the key, start or end, and
        whether it is open now. One that did both in between is not among them."""

    @abstractmethod
    def tell(self) -> None:
        """What `changes` gave was told."""

    @abstractmethod
    def needs(self, count: int) -> np.ndarray:
        """Which of the first so many keys it has still to do with."""

    @abstractmethod
    def renumber(self, kept: np.ndarray) -> None:
        """Key kept[i] is key i from now on, and there are no others."""

    @abstractmethod
    def explain(self) -> list[str]:
        """What is kept of frames, and why, in lines."""

    @property
    @abstractmethod
    def kept(self) -> int:
        """Events that are kept."""

    @property
    @abstractmethod
    def bytes(self) -> int:
        """What is kept, about."""

    @abstractmethod
    def state(self) -> State: ...

    @abstractmethod
    def restore(self, state: State) -> None: ...


class OverFrames(ABC):
    """A query over frames (frames/query.py): one row per frame, wherever it is evaluated.

    In an engine it is neither answered on lookup, nor at ticks.
    """

    spec: Any
    by: tuple[str, ...] | None
    stream: str | None

    every = source = None
    is_plain, at_ticks, is_relation = False, True, False

    @property
    @abstractmethod
    def label(self) -> str:
        """Its name."""

    @property
    def other(self) -> str | None:
        """The stream that frames are filled from, if that is another one."""
        return None

    @property
    @abstractmethod
    def readers(self) -> "list[Query]":
        """What is read of events, as simple queries that read the same."""

    @abstractmethod
    def named(self) -> "OverFrames":
        """The same, under its label as its name."""

    @abstractmethod
    def check_by(self, by: tuple[str, ...]) -> None:
        """Refuse key columns that are named as others of its rows are."""

    @abstractmethod
    def running(self, ts: str, by: tuple[str, ...]) -> ContinuousFrames:
        """At work on events that come."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """An entry that `from_json` of its class reads."""

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The columns that are read, other than ts and the key."""

    @abstractmethod
    def evaluate(self, events: Any, ts: str = "ts", key: Any = None, streams: Mapping[str, Any] = {}) -> pa.Table:
        """Over stored events. streams: others, by name, that frames are filled from."""


class FramesPackage(Protocol):
    """What swag needs of the package, in frames/for_swag.py."""

    Threshold: type[Any]
    Aggregate: type[Any]
    Delta: type[Any]
    Boundary: type[Any]
    Pattern: type[Any]
    MatchQuery: Callable[..., OverFrames]
    MATCH_COLUMNS: tuple[str, ...]
    Session: type[Any]
    State: type[Any]
    Between: type[Any]
    FrameQuery: Any
    query_from_json: Callable[[dict[str, Any]], OverFrames | None]
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

    def evaluate(
        self, query: Any, events: Any, ts: str, keys: list[str], layout: Any, streams: Mapping[str, Any]
    ) -> Any:
        """A query over frames, over a DataFrame, as a DataFrame. streams: others, by name."""


def frames_on_spark() -> FramesOnSpark:
    """As `frames_package`."""
    return cast(FramesOnSpark, import_module("frames.spark.batch.queries"))
