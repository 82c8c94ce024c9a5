"""Snapshots: a state as one file of plain arrays and JSON. Versioned, checksummed, no pickle.

    SWAGSNAP | version | length of the header | header (JSON) | arrays, 8-byte aligned | SHA-256 of all before

The header holds that of the state, and says what each array is. Structures are saved as they are rather than rebuilt,
so answers after loading are those of before, bit for bit (landmark groups are functions of the rows kept, and made
again when asked for). Files of version 2 are read too: swag/durable/format_2.py makes such a state of them.
"""

import hashlib
import json
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from swag.durable import format_2
from swag.durable.atomic_file import reason, replacing, why_not_regular
from swag.durable.state import State
from swag.errors import BadSnapshot, BadType, SwagError

MAGIC, VERSION = b"SWAGSNAP", 3
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


def write(path: str | Path, state: State) -> None:
    """One file; what was there before is replaced in one step, or stays."""
    path, (header, named) = _path(path), state
    arrays = [np.ascontiguousarray(array) for array in named.values()]
    listed = [{"name": n, "dtype": a.dtype.name, "shape": list(a.shape)} for n, a in zip(named, arrays, strict=True)]
    text = json.dumps({"state": header, "arrays": listed}).encode()
    text += b" " * (-(len(text) + _HEAD.size) % 8)
    digest = hashlib.sha256()
    try:
        with replacing(path) as draft:
            for piece in (_HEAD.pack(MAGIC, VERSION, len(text)), text, *map(_padded, arrays)):
                draft.file.write(piece)
                digest.update(piece)
            draft.file.write(digest.digest())
    except (OSError, ValueError) as why:
        raise BadSnapshot(
            f'"{path}" can not be written: {reason(why)}.',
            "a file in a folder with room, that can be written to",
        ) from None


def _padded(array: np.ndarray) -> bytes:
    data = array.tobytes()
    return data + b"\0" * (-len(data) % 8)


@contextmanager
def reading(path: str | Path) -> Iterator[State]:
    """The state in a file. Whatever goes wrong while somebody takes it is an error that names the file."""
    path = _path(path)
    version, header, arrays = parsed(_content(path), f'"{path}"')
    try:
        yield _state(header, arrays) if version == VERSION else format_2.upgraded(header, arrays, _inner)
    except SwagError:
        raise
    except _WRONG as why:
        raise BadSnapshot(
            f'"{path}" is damaged: its parts do not go together ({type(why).__name__}: {why}).',
            "an older copy, or replay the events",
        ) from why


def _state(header: dict[str, Any], arrays: list[np.ndarray]) -> State:
    names = [entry["name"] for entry in header["arrays"]]
    return header["state"], dict(zip(names, arrays, strict=True))


def _inner(content: bytes) -> tuple[dict[str, Any], list[np.ndarray]]:
    """A snapshot within one of version 2."""
    return parsed(content, "a part of it")[1:]


def parsed(content: bytes, what: str) -> tuple[int, dict[str, Any], list[np.ndarray]]:
    """The version of a snapshot, its header, and its arrays in order."""
    if len(content) < _HEAD.size + 32 or content[:8] != MAGIC:
        raise BadSnapshot(
            f"{what} is not a snapshot of swag: it does not begin with {MAGIC.decode()}.",
            "a file that Engine.save wrote",
        )
    _, version, size = _HEAD.unpack_from(content)
    if version not in (VERSION, format_2.VERSION):
        raise BadSnapshot(
            f"{what} is a snapshot of version {version}; this swag reads versions {format_2.VERSION} and {VERSION}.",
            "the swag that wrote it",
        )
    body = memoryview(content)[:-32]
    if hashlib.sha256(body).digest() != content[-32:]:
        raise BadSnapshot(
            f"{what} is damaged: its checksum does not match its content.", "an older copy, or replay the events"
        )
    try:
        header = json.loads(bytes(body[_HEAD.size : _HEAD.size + size]))
        return version, header, list(_arrays(header["arrays"], body, _HEAD.size + size))
    except (KeyError, ValueError, TypeError) as why:
        raise BadSnapshot(f"{what} is damaged: its header can not be understood ({why}).") from None


def _arrays(entries: list[dict[str, Any]], body: memoryview, at: int) -> Iterator[np.ndarray]:
    for entry in entries:
        dtype, shape = np.dtype(_DTYPES[entry["dtype"]]), tuple(entry["shape"])
        count = int(np.prod(shape))
        yield np.frombuffer(body, dtype, count, at).reshape(shape).copy()
        at += count * dtype.itemsize + -(count * dtype.itemsize) % 8


def _content(path: Path) -> bytes:
    """A pipe would be waited for and a device never end, so nothing but a file is read."""
    try:
        found = why_not_regular(path)
        if not found:
            return path.read_bytes()
    except (OSError, ValueError) as why:
        found = reason(why)
    raise BadSnapshot(f'"{path}" can not be read: {found}.', "a file that Engine.save wrote")


def _path(given: str | Path) -> Path:
    if not isinstance(given, str | os.PathLike) or not isinstance(os.fspath(given), str):
        raise BadType(f"the path of a snapshot is {given!r}, not text.", 'engine.save("engine.swag")')
    return Path(given)
