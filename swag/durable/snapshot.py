"""Snapshots: a state as one file, written as swag/durable/encoding.py has it.

Structures are saved as they are rather than rebuilt, so answers after loading are those of before, bit for bit
(landmark groups are functions of the rows kept, and made again when asked for). Files of version 2 are read too:
swag/durable/format_2.py makes such a state of them.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from swag.durable import format_2
from swag.durable.atomic_file import reason, replacing, why_not_regular
from swag.durable.encoding import Encoding, state_of
from swag.durable.state import State
from swag.errors import BadSnapshot, BadType

SNAPSHOT = Encoding(
    b"SWAGSNAP", 3, "a snapshot of swag", BadSnapshot, expected="a file that Engine.save wrote",
    made_by="the swag that wrote it", lost="an older copy, or replay the events", older=(format_2.VERSION,),
)  # fmt: skip


def write(path: str | Path, state: State) -> None:
    """One file; what was there before is replaced in one step, or stays."""
    path = _path(path)
    try:
        with replacing(path) as draft:
            for piece in SNAPSHOT.written(state):
                draft.file.write(piece)
    except (OSError, ValueError) as why:
        raise BadSnapshot(
            f'"{path}" can not be written: {reason(why)}.',
            "a file in a folder with room, that can be written to",
        ) from None


@contextmanager
def reading(path: str | Path) -> Iterator[State]:
    """The state in a file. Whatever goes wrong while somebody takes it is an error that names the file."""
    path = _path(path)
    version, header, arrays = SNAPSHOT.parsed(_content(path), f'"{path}"')
    with SNAPSHOT.taking(f'"{path}"'):
        if version == format_2.VERSION:
            yield format_2.upgraded(header, arrays, lambda part: SNAPSHOT.parsed(part, "a part of it")[1:])
        else:
            yield state_of(header, arrays)


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
