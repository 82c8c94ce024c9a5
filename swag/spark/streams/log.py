"""What a shard keeps in the state store: a header, and a log of segments. Versioned, checksummed, no pickle.

    pieces, by number:
    header     SWAGHEAD | version | checksum | JSON              small, written with every trigger
    purpose    SWAGWHAT | version | checksum | JSON              whose state this is, written when that changes
    segments   SWAGSEGM | version | checksum | Arrow IPC stream  one more with every trigger that brought rows

The segments are the state; engines and detectors are made of them, and cached. A segment is written once. It goes when
nothing can reach its rows any more, or when it is merged with its neighbours: never because of what arrives.
"""

import hashlib
import json
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from swag.errors import SwagError

VERSION = 1
HEADER, PURPOSE, SEGMENT = b"SWAGHEAD", b"SWAGWHAT", b"SWAGSEGM"
HEADER_AT, PURPOSE_AT = -1, -2  # their numbers; segments are numbered from 0
_ENVELOPE = struct.Struct("<8sI16s36x")  # 64 bytes: what follows stays aligned
HISTORY = 16  # versions that a cached engine may be behind, and still be brought up to date by the segments since
FAN_IN = 8  # neighbours of one size that are merged
LARGE = 1 << 20  # segments of so many bytes are left alone: reading them back through Spark takes longer than it saves


class BadState(SwagError, ValueError):
    """State that can not be read: damaged, of another version, or written for something else."""


def sealed(magic: bytes, content: bytes) -> bytes:
    return _ENVELOPE.pack(magic, VERSION, hashlib.blake2b(content, digest_size=16).digest()) + content


def opened(magic: bytes, data: bytes | None, what: str) -> memoryview:
    """The content of a sealed piece; raises if it is not what was written."""
    hint = "restore the checkpoint folder from a copy, or begin a new one and replay the source"
    if data is None:
        raise BadState(f"{what} is missing from the state store.", hint)
    if len(data) < _ENVELOPE.size or bytes(data[:8]) != magic:
        raise BadState(f"{what} is damaged: it does not begin with {magic.decode()}.", hint)
    _, version, checksum = _ENVELOPE.unpack_from(data)
    if version != VERSION:
        raise BadState(
            f"{what} is of version {version}; this swag reads version {VERSION}.", "the swag that wrote the checkpoint"
        )
    content = memoryview(data)[_ENVELOPE.size :]
    if hashlib.blake2b(content, digest_size=16).digest() != checksum:
        raise BadState(f"{what} is damaged: its checksum does not match its content.", hint)
    return content


def to_ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue().to_pybytes()


def from_ipc(data: bytes | memoryview) -> pa.Table:
    return pa.ipc.open_stream(pa.py_buffer(data)).read_all()


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
    history: list[tuple[str, int]] = field(default_factory=list)  # earlier tokens, each with its `following`
    rest: dict[str, Any] = field(default_factory=dict)  # of the engine or detector

    def to_bytes(self) -> bytes:
        plain = vars(self) | {"entries": [list(vars(entry).values()) for entry in self.entries]}
        return sealed(HEADER, json.dumps(plain).encode())

    @classmethod
    def from_bytes(cls, data: bytes, what: str) -> "Header":
        content = opened(HEADER, data, what)
        try:
            plain = json.loads(bytes(content))
            plain["entries"] = [Segment(*entry) for entry in plain["entries"]]
            plain["history"] = [(token, following) for token, following in plain["history"]]
            return cls(**plain)
        except (ValueError, KeyError, TypeError) as why:
            raise BadState(f"{what} can not be understood: {why}.") from None

    @property
    def bytes(self) -> int:
        return sum(entry.size for entry in self.entries)


class PieceStore(Protocol):
    """A MapState of Spark: number -> bytes."""

    def getValue(self, key: tuple[int]) -> tuple[Any, ...] | None: ...
    def updateValue(self, key: tuple[int], value: tuple[bytes]) -> None: ...
    def removeKey(self, key: tuple[int]) -> None: ...


Shrink = Callable[[pa.Table], pa.Table]


class Log:
    """The segments of a shard, by the header that lists them."""

    def __init__(self, header: Header, pieces: PieceStore, what: str) -> None:
        self.header, self.pieces, self.what = header, pieces, what
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

    def merge(self, kind: str, shrink: Shrink | None = None, large: int = LARGE, oldest: Shrink | None = None) -> int:
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
        data = sealed(SEGMENT, to_ipc(table.combine_chunks()))
        self.pieces.updateValue((number,), (data,))
        return len(data)

    def _read(self, number: int) -> pa.Table:
        what = f"segment {number} of {self.what}"
        found = self.pieces.getValue((number,))
        try:
            return from_ipc(opened(SEGMENT, None if found is None else found[0], what))
        except pa.ArrowInvalid as why:
            raise BadState(f"{what} is no Arrow stream: {why}.") from None

    def _remove(self, entry: Segment) -> None:
        self.pieces.removeKey((entry.number,))
        self.header.entries.remove(entry)
        self.header.floor = max(self.header.floor, entry.number + 1)
