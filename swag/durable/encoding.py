"""A state as bytes, and back: JSON and plain arrays. Versioned, checksummed, no pickle.

    magic | version | length of the header | header (JSON) | arrays, 8-byte aligned | SHA-256 of all before

The header holds that of the state, and says what each array is. Snapshots and what Spark's shards keep are written so;
they begin with another word each, and what can not be read is another error.
"""

import hashlib
import json
import math
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from swag.durable.state import State
from swag.errors import SwagError

_HEAD = struct.Struct("<8sIQ")
_DTYPES = {
    "int64": np.int64,
    "float64": np.float64,
    "complex128": np.complex128,
    "uint64": np.uint64,
    "int32": np.int32,
    "uint8": np.uint8,
    "bool": np.bool_,
}
_WRONG = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, AssertionError, MemoryError)


@dataclass(frozen=True)
class Encoding:
    """How states of one sort are written. magic: how they begin; called: what they are; older: versions read as well.

    error: what is raised, with a hint: to hand in another (expected), to read it elsewhere (made_by), or that it is
    lost, and what to do about it (lost).
    """

    magic: bytes
    version: int
    called: str
    error: type[SwagError]
    expected: str
    made_by: str
    lost: str
    older: tuple[int, ...] = ()

    def written(self, state: State) -> Iterator[bytes]:
        """A state as bytes, piece by piece."""
        header, named = state
        arrays = [np.ascontiguousarray(array) for array in named.values()]
        each = [{"name": n, "dtype": a.dtype.name, "shape": list(a.shape)} for n, a in zip(named, arrays, strict=True)]
        text = json.dumps({"state": header, "arrays": each}).encode()
        text += b" " * (-(len(text) + _HEAD.size) % 8)
        digest = hashlib.sha256()
        for piece in (_HEAD.pack(self.magic, self.version, len(text)), text, *map(_padded, arrays)):
            digest.update(piece)
            yield piece
        yield digest.digest()

    def read(self, content: bytes, what: str) -> State:
        """The state that was written as these bytes, by this version. what: who is damaged, if they are."""
        _, header, arrays = self.parsed(content, what)
        with self.taking(what):
            return state_of(header, arrays)

    def parsed(self, content: bytes, what: str) -> tuple[int, dict[str, Any], list[np.ndarray]]:
        """The version, the header, and the arrays in order."""
        if len(content) < _HEAD.size + 32 or content[:8] != self.magic:
            raise self.error(
                f"{what} is not {self.called}: it does not begin with {self.magic.decode()}.", self.expected
            )
        _, version, size = _HEAD.unpack_from(content)
        if version not in (*self.older, self.version):
            known = f"version{'s' * bool(self.older)} {' and '.join(map(str, (*self.older, self.version)))}"
            raise self.error(f"{what} is of version {version}; this swag reads {known}.", self.made_by)
        body = memoryview(content)[:-32]
        if hashlib.sha256(body).digest() != content[-32:]:
            raise self.error(f"{what} is damaged: its checksum does not match its content.", self.lost)
        try:
            header = json.loads(bytes(body[_HEAD.size : _HEAD.size + size]))
            return version, header, list(_arrays(header["arrays"], body, _HEAD.size + size))
        except _WRONG as why:
            raise self.error(f"{what} is damaged: its header can not be understood ({why}).") from None

    @contextmanager
    def taking(self, what: str) -> Iterator[None]:
        """Whatever goes wrong while somebody takes a state is an error that says whose it was."""
        try:
            yield
        except SwagError:
            raise
        except _WRONG as why:
            raise self.error(
                f"{what} is damaged: its parts do not go together ({type(why).__name__}: {why}).", self.lost
            ) from why


def state_of(header: dict[str, Any], arrays: list[np.ndarray]) -> State:
    """What was parsed, as it was before it was written."""
    return header["state"], dict(zip((entry["name"] for entry in header["arrays"]), arrays, strict=True))


def _padded(array: np.ndarray) -> bytes:
    data = array.tobytes()
    return data + b"\0" * (-len(data) % 8)


def _arrays(entries: list[dict[str, Any]], body: memoryview, at: int) -> Iterator[np.ndarray]:
    for entry in entries:
        dtype, shape = np.dtype(_DTYPES[entry["dtype"]]), tuple(entry["shape"])
        count = math.prod(shape)
        if min(shape, default=0) < 0:  # NumPy would take it for as many as there are
            raise ValueError(f"an array of shape {shape}")
        yield np.frombuffer(body, dtype, count, at).reshape(shape).copy()
        at += count * dtype.itemsize + -(count * dtype.itemsize) % 8
