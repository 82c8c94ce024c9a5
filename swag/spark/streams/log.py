"""What a shard keeps in the state store: a header, and a log of segments, each a state as swag/durable has it.

    pieces, by number:
    header     SWAGHEAD    where segments are, and what the body hands over beside them; written with every trigger
    purpose    SWAGWHAT    whose state this is, written when that changes
    segments   SWAGSEGM    rows; one more with every trigger that brought some

The segments are the state; engines and detectors are made of them, and cached. A segment is written once. It goes when
nothing can reach its rows any more, or when it is merged with its neighbours: never because of what arrives.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from swag.durable.encoding import Encoding
from swag.durable.state import State, nested, part, table_from_array, table_to_array
from swag.errors import SwagError

HEADER_AT, PURPOSE_AT = -1, -2  # their numbers; segments are numbered from 0
HISTORY = 16  # versions that a cached engine may be behind, and still be brought up to date by the segments since
FAN_IN = 8  # neighbours of one size that are merged
LARGE_SEGMENT = 1 << 20  # bytes; larger ones are left alone: to read them back through Spark takes longer than it saves
PLAIN = ("purpose", "token", "upto", "following", "floor", "timer")  # of a header


class BadState(SwagError, ValueError):
    """State that can not be read: damaged, of another version, or written for something else."""


LOST = "restore the checkpoint folder from a copy, or begin a new one and replay the source"


def _encoding(magic: bytes, called: str) -> Encoding:
    return Encoding(magic, 2, called, BadState, LOST, "the swag that wrote the checkpoint", LOST)


HEADER = _encoding(b"SWAGHEAD", "the header of a shard")
PURPOSE = _encoding(b"SWAGWHAT", "the purpose of a shard")
SEGMENT = _encoding(b"SWAGSEGM", "a segment of rows")


class PieceStore(Protocol):
    """A MapState of Spark: number -> bytes."""

    def getValue(self, key: tuple[int]) -> tuple[Any, ...] | None: ...
    def updateValue(self, key: tuple[int], value: tuple[bytes]) -> None: ...
    def removeKey(self, key: tuple[int]) -> None: ...


@dataclass(frozen=True)
class Pieces:
    """States by number, in a store. whose: what to call it where one can not be read."""

    store: PieceStore
    whose: str

    def get(self, number: int) -> State | None:
        found = self.store.getValue((number,))
        return None if found is None else self._encoding(number).read(found[0], self.name(number))

    def read(self, number: int) -> State:
        """One that has to be there."""
        state = self.get(number)
        if state is None:
            raise BadState(f"{self.name(number)} is missing from the state store.", LOST)
        return state

    def write(self, number: int, state: State) -> int:
        """How many bytes it takes."""
        data = b"".join(self._encoding(number).written(state))
        self.store.updateValue((number,), (data,))
        return len(data)

    def remove(self, number: int) -> None:
        self.store.removeKey((number,))

    def name(self, number: int) -> str:
        known = {HEADER_AT: "the header", PURPOSE_AT: "the purpose"}
        return f"{known.get(number, f'segment {number}')} of {self.whose}"

    def _encoding(self, number: int) -> Encoding:
        return {HEADER_AT: HEADER, PURPOSE_AT: PURPOSE}.get(number, SEGMENT)


@dataclass
class Segment:
    """A segment in the header: its number, what kind of rows, how many, the latest ts among them, bytes."""

    number: int
    kind: str
    rows: int
    last: int
    size: int

    @property
    def level(self) -> int:
        """Segments of one level are within a factor of FAN_IN in size."""
        return max(0, self.size // 4096).bit_length() // 3


class Version(NamedTuple):
    """An earlier version of the state. following: the number of the segment that came next; passed: the watermark of
    the step that led on from it, which none of the rows that came since is before. None: it was not written down."""

    token: str
    following: int
    passed: int | None = None


@dataclass
class Header:
    """What is not a function of the segments, and where they are."""

    purpose: str  # a digest of whose state this is: queries, key, shards
    token: str = ""  # a random name of this version of the state
    upto: int | None = None  # everything with ts <= upto has been applied
    following: int = 0  # the number of the next segment
    floor: int = 0  # segments below this may have been merged or dropped
    timer: int | None = None
    entries: list[Segment] = field(default_factory=list)
    history: list[Version] = field(default_factory=list)
    body: State = field(default_factory=lambda: ({}, {}))  # of the engine or detector, beside the segments

    def state(self) -> State:
        plain = {name: getattr(self, name) for name in PLAIN}
        entries = [list(vars(entry).values()) for entry in self.entries]
        return nested(plain | {"entries": entries, "history": self.history}, {"body": self.body})

    def restore(self, state: State) -> None:
        self.purpose, self.token, self.upto, self.following, self.floor, self.timer = (state[0][name] for name in PLAIN)
        self.entries = [Segment(*entry) for entry in state[0]["entries"]]
        self.history = [Version(*version) for version in state[0]["history"]]
        self.body = part(state, "body")

    @classmethod
    def of(cls, pieces: Pieces) -> "Header | None":
        """The one that was written last; None: there is none yet."""
        state = pieces.get(HEADER_AT)
        if state is None:
            return None
        header = cls("")
        with HEADER.taking(pieces.name(HEADER_AT)):
            header.restore(state)
        return header

    @property
    def bytes(self) -> int:
        return sum(entry.size for entry in self.entries)


Shrink = Callable[[pa.Table], pa.Table]


class Log:
    """The segments of a shard, by the header that lists them."""

    def __init__(self, header: Header, pieces: Pieces) -> None:
        self.header, self.pieces = header, pieces
        self.behind = header.following  # before this trigger

    def append(self, kind: str, table: pa.Table, instants: np.ndarray) -> None:
        """One more segment; instants: the time up to which each of its rows is needed, for `drop_until`."""
        if table.num_rows == 0:
            return
        number = self.header.following
        self.header.following += 1
        size = self._write(number, table)
        self.header.entries.append(Segment(number, kind, table.num_rows, int(instants.max()), size))

    def read(self, entries: Iterable[Segment]) -> dict[str, list[pa.Table]]:
        """Tables by kind, in the order in which they were written."""
        found: dict[str, list[pa.Table]] = {}
        for entry in entries:
            found.setdefault(entry.kind, []).append(self._read(entry.number))
        return found

    def since(self, number: int) -> list[Segment]:
        return [entry for entry in self.header.entries if entry.number >= number]

    def drop_until(self, kind: str, instant: int, gone: Shrink | None = None) -> None:
        """Forget the segments of a kind that hold nothing later than `instant`; gone: is shown what goes."""
        for entry in [each for each in self.header.entries if each.kind == kind and each.last <= instant]:
            if gone is not None:
                gone(self._read(entry.number))
            self._remove(entry)

    def merge(
        self, kind: str, shrink: Shrink | None = None, large: int = LARGE_SEGMENT, oldest: Shrink | None = None
    ) -> int:
        """Put neighbours of one size together, FAN_IN of them, if there are so many; returns how many rows were read.

        shrink: what is needed of a table; oldest: of one that nothing older is there of, if that is less. large:
        segments of so many bytes are left alone, as is what a cached engine may still have to catch up with.
        """
        old = [e for e in self.header.entries if e.kind == kind and e.number < self.header.following - HISTORY]
        for i in range(len(old) - FAN_IN, -1, -1):
            run = old[i : i + FAN_IN]
            if len({entry.level for entry in run}) == 1 and run[0].size < large:
                read = sum(entry.rows for entry in run)
                self.rewrite(run, shrink if oldest is None or i > 0 else oldest)
                return read
        return 0

    def rewrite(self, run: list[Segment], shrink: Shrink | None = None) -> None:
        """One segment in the place of several neighbours."""
        table = pa.concat_tables([self._read(entry.number) for entry in run], promote_options="permissive")
        table = table if shrink is None else shrink(table)
        for entry in run[1:] if table.num_rows else run:
            self._remove(entry)
        self.header.floor = max(self.header.floor, run[-1].number + 1)
        if table.num_rows:
            first = run[0]
            first.rows, first.last = table.num_rows, max(entry.last for entry in run)
            first.size = self._write(first.number, table)

    def _write(self, number: int, table: pa.Table) -> int:
        return self.pieces.write(number, ({}, {"rows": table_to_array(table.combine_chunks())}))

    def _read(self, number: int) -> pa.Table:
        state = self.pieces.read(number)
        with SEGMENT.taking(self.pieces.name(number)):
            return table_from_array(state[1]["rows"])

    def _remove(self, entry: Segment) -> None:
        self.pieces.remove(entry.number)
        self.header.entries.remove(entry)
        self.header.floor = max(self.header.floor, entry.number + 1)
