"""A file that appears under its name once all of it is there. If anything goes wrong, what was there before stays.

    answers.parquet                          what others see: the older content, then, in one step, the new
    .answers.parquet.swag-3f0c9a51.part      what is being written, locked by the process that writes it

A process that is killed leaves its .part file behind, and loses its lock. So the next one that writes to the same name
knows which of them nobody writes any more, and removes them.

A symbolic link is written through: it stays, and what it points at is replaced. Only a regular file is replaced; a
folder, a device or a pipe under that name is refused.
"""

import errno
import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows has no such locks, and leftovers stay there
    fcntl = None  # type: ignore[assignment]

LONGEST_NAME = 200  # bytes of a name that still leave room for what is put around it
ENDING = ".part"
_KINDS = {
    stat.S_IFDIR: "a folder", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}  # fmt: skip


@dataclass(frozen=True)
class Draft:
    """What is being written. file: open and locked. folder: a place for more of it, made by whoever needs one."""

    file: BinaryIO
    path: Path

    @property
    def folder(self) -> Path:
        return self.path.with_suffix(".parts")


@contextmanager
def replacing(path: Path) -> Iterator[Draft]:
    """A draft that takes the place of `path` at the end of the block; an OSError says why it can not."""
    target = target_of(path)
    _remove_leftovers(target)
    draft = _begin(target)
    try:
        yield draft
        draft.file.flush()
        os.fsync(draft.file.fileno())
        os.replace(draft.path, target)
    finally:
        _remove(draft.path)
        with suppress(OSError):  # what could not be flushed was said, or is not wanted
            draft.file.close()


def why_not_regular(path: Path) -> str:
    """What a path is, if neither a file nor nothing: a folder, a device, a pipe; empty otherwise."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return ""
    return "" if stat.S_ISREG(mode) else f"it is {_KINDS.get(stat.S_IFMT(mode), 'no file')}"


def target_of(path: Path) -> Path:
    """The file that is replaced when `path` is written to."""
    target = Path(os.path.realpath(path))
    found = why_not_regular(target)
    if found:
        raise OSError(errno.EINVAL, found)
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, f'there is no folder "{target.parent}"')
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "it is write-protected")
    return target


def reason(why: OSError | ValueError) -> str:
    """Why a path can not be read or written, in a few words. ValueError: a path that can be no name of a file."""
    said = (why.strerror if isinstance(why, OSError) else None) or (str(why).strip().splitlines() or ["unknown"])[0]
    return said.rstrip(".")


# -- drafts -----------------------------------------------------------------------------------------------------------


def _prefix(target: Path) -> str:
    name = target.name
    if len(os.fsencode(name)) > LONGEST_NAME:
        name = hashlib.sha256(os.fsencode(name)).hexdigest()
    return f".{name}.swag-"


def _begin(target: Path) -> Draft:
    """A new .part file beside the target, locked by this process, with the mode of the file that it will replace."""
    while True:
        path = target.with_name(f"{_prefix(target)}{secrets.token_hex(4)}{ENDING}")
        file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666), "w+b")
        _lock(file.fileno(), wait=True)
        if path.exists():  # else it was taken for a leftover before it was locked
            break
        file.close()
    with suppress(FileNotFoundError):  # a new file has the mode that the process gives to new files
        os.chmod(path, stat.S_IMODE(os.stat(target).st_mode))
    return Draft(file, path)


def _lock(handle: int, wait: bool = False) -> bool:
    """Whether the file is now ours: nobody who lives writes it."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:  # somebody has it, or this file system has no locks
        return False
    return True


def _remove_leftovers(target: Path) -> None:
    """Remove the .part files beside the target that nobody writes any more: killed processes have lost their locks."""
    prefix, found = _prefix(target), []
    with suppress(OSError), os.scandir(target.parent) as entries:
        found = [entry.path for entry in entries if entry.name.startswith(prefix) and entry.name.endswith(ENDING)]
    for path in found:
        with suppress(OSError):  # what can not be opened or removed is not ours to remove
            handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
            try:
                if _lock(handle):
                    _remove(Path(path))
            finally:
                os.close(handle)


def _remove(path: Path) -> None:
    """A draft, and the folder beside it first, so that what is left of it can still be found."""
    shutil.rmtree(path.with_suffix(".parts"), ignore_errors=True)
    with suppress(OSError):
        os.unlink(path)
