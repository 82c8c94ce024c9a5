"""One decorator owns every Numba flag, and one cache that can not go stale.

Numba's own file cache watches only the file a function is defined in. Our kernels call each other across files, so a
changed `combine` would leave yesterday's machine code of `lookup` in use. The cache here has one folder per module
of kernels and fingerprint of it and all those it imports, however indirectly: a change or an upgrade starts afresh.

It is also made to be shared: many processes may fill it at once, and it may be handed out read-only.
"""

import hashlib
import os
import pkgutil
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, _CacheLocator
from numba.core.types import NamedTuple, NamedUniTuple

# Kernels are called from Python and by each other, never by a C address: a wrapper for that is not worth its compiling.
FLAGS = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}

_IMPORT = re.compile(r"^from (kernels[.\w]*) import (\([^)]*\)|.+)$", re.MULTILINE)
_SELF = "kernels.compile.jit"


def _text(module: str) -> bytes | None:
    """The source of a module of kernels, in a folder or in a zip: Spark ships packages as such. None: there is none."""
    try:
        return pkgutil.get_data("kernels", module.removeprefix("kernels.").replace(".", "/") + ".py")
    except OSError:
        return None


def _imports(text: str) -> Iterator[str]:
    """Modules that a source may import: `from kernels.a import b` is of kernels.a, or of kernels.a.b."""
    for package, names in _IMPORT.findall(text):
        yield package
        for name in names.partition("#")[0].strip("()\n ").split(","):
            if name.strip():
                yield f"{package}.{name.split()[0]}"  # x as y: x


@lru_cache
def _sources(module: str) -> frozenset[str]:
    """A module of kernels and those it imports, directly or not."""
    found, todo = {_SELF}, [module]
    while todo:
        name = todo.pop()
        if name not in found and name.startswith("kernels.") and (text := _text(name)) is not None:
            found.add(name)
            todo += _imports(text.decode())
    return frozenset(found)


@lru_cache
def _fingerprint(module: str) -> str:
    digest = hashlib.sha256(numba.__version__.encode())
    for name in sorted(_sources(module)):
        digest.update(_text(name) or b"")
    return digest.hexdigest()[:16]


def cache_folder() -> Path:
    """Where compiled kernels are kept: $SWAG_CACHE_DIR, else swag's folder in the user's cache."""
    chosen = os.environ.get("SWAG_CACHE_DIR")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "swag"


class _Locator(_CacheLocator):  # type: ignore[misc]
    def __init__(self, py_func: Callable[..., Any], py_file: str) -> None:
        module = py_func.__module__
        self._stamp = _fingerprint(module)
        self._folder = cache_folder() / f"{module.removeprefix('kernels.')}-{self._stamp}"
        self._lineno = py_func.__code__.co_firstlineno

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return self._stamp

    def get_disambiguator(self) -> str:
        return str(self._lineno)

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> "_Locator | None":
        locator = cls(py_func, py_file)
        try:
            locator.ensure_cache_path()
        except OSError:  # not to be written: good for reading if it is there, else every process compiles for itself
            return locator if locator._folder.is_dir() else None
        return locator


class _CacheImpl(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = [_Locator]


class _Files(IndexDataCacheFile):  # type: ignore[misc]
    """A file per signature, named by it, put in place in one step; what it is of is written inside.

    Numba keeps an index that names numbered files. Two processes that save at the same time choose the same number,
    and the later index can name the other's code: a crash (numba issue 4807).
    """

    def save(self, key: Any, data: Any) -> None:
        self._save_data(self._file(key), (key, data))

    def load(self, key: Any) -> Any:
        try:
            known, data = self._load_data(self._file(key))
        except FileNotFoundError:
            return None
        return data if known == key else None

    def _file(self, key: Any) -> str:
        digest = hashlib.sha256(repr(key).encode()).hexdigest()[:16]
        return f"{self._index_name.removesuffix('.nbi')}.{digest}.nbc"


class _Cache(FunctionCache):  # type: ignore[misc]
    """Keeps what can be found again: not the code of operators that a user defined in this process."""

    _impl_class = _CacheImpl

    def __init__(self, py_func: Callable[..., Any]) -> None:
        super().__init__(py_func)
        locator = self._impl.locator
        self._cache_file = _Files(locator.get_cache_path(), self._impl.filename_base, locator.get_source_stamp())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        return None if _is_local(sig) else super().load_overload(sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        if not _is_local(sig):
            try:
                super().save_overload(sig, data)
            except OSError:  # read-only, or full
                pass


def _is_local(sig: Any) -> bool:
    arguments = getattr(sig, "args", sig)
    return any(
        isinstance(arg, NamedTuple | NamedUniTuple) and getattr(arg.instance_class, "local", False) for arg in arguments
    )


def kernel(function: Callable[..., Any]) -> Any:
    """Compile `function` on first use, release the GIL inside it, keep the code on disk."""
    dispatcher = numba.njit(**FLAGS)(function)
    if not numba.config.DISABLE_JIT:
        try:
            dispatcher._cache = _Cache(function)
        except RuntimeError:  # no folder to write to
            pass
    return dispatcher
