"""One decorator owns every Numba flag, and one cache that can not go stale.

Numba's own file cache watches only the file a function is defined in. Our kernels call each other across files, so a
changed `combine` would leave yesterday's machine code of `lookup` in use. The cache here has one folder per module
of kernels and fingerprint of it and all those it imports, however indirectly: a change or an upgrade starts afresh.

It is also made to be shared: many processes may fill it at once, and it may be handed out read-only.
"""

import hashlib
import pkgutil
import re
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from typing import Any

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, NullCache, _CacheLocator

from kernels.compile import ahead, claims, rehearsal
from kernels.compile.folder import cache_folder
from kernels.compile.shared_code import is_local, share

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

    def path(self, key: Any) -> str:
        return self._data_path(self._file(key))

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
        """Compiled code from the cache. Where it is missing, help is asked for; who compiles it already is awaited."""
        if is_local(sig):
            return None
        found = super().load_overload(sig, target_context)
        if found is None:
            ahead.missed(self._cache_path)
            if not claims.take(self.path(sig, target_context.codegen())):
                found = super().load_overload(sig, target_context)
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keeps compiled code for other processes, if the folder can be written; its claim is given up."""
        if is_local(sig):
            return
        try:
            super().save_overload(sig, data)
        except OSError:  # read-only, or full
            pass
        finally:
            claims.release(self.path(sig, data.codegen))

    def path(self, sig: Any, codegen: Any) -> str:
        """The file that holds the code of this signature, once it is compiled."""
        return self._cache_file.path(self._index_key(sig, codegen))


class _OnDemand:
    """The cache of a kernel, made when the kernel is first called: an import is to read and write no files."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    @cached_property
    def _cache(self) -> Any:
        try:
            return _Cache(self._function)
        except RuntimeError:  # no folder to write to
            return NullCache()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)


def kernel(function: Callable[..., Any]) -> Any:
    """Compile `function` on first use, release the GIL inside it, keep the code on disk."""
    dispatcher = numba.njit(**FLAGS)(function)
    if not numba.config.DISABLE_JIT:
        dispatcher._cache = _OnDemand(function)
        rehearsal.attend(share(dispatcher))
    return dispatcher
