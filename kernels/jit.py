"""One decorator owns every Numba flag, and one cache that can not go stale.

Numba's own file cache watches only the file a function is defined in. Our kernels call each other across files, so a
changed `combine` would leave yesterday's machine code of `lookup` in use. The cache here lives in one folder per
fingerprint of *all* kernel sources: any change, any upgrade, and it starts afresh.
"""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.core.types import NamedTuple, NamedUniTuple

FLAGS = {"nogil": True, "error_model": "numpy"}


def _fingerprint() -> str:
    digest = hashlib.sha256(numba.__version__.encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def cache_folder() -> Path:
    """Where compiled kernels are kept: $SWAG_CACHE_DIR, else swag's folder in the user's cache."""
    chosen = os.environ.get("SWAG_CACHE_DIR")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "swag"


class _Locator(_CacheLocator):  # type: ignore[misc]
    def __init__(self, py_func: Callable[..., Any], py_file: str) -> None:
        self._folder = cache_folder() / _FINGERPRINT
        self._lineno = py_func.__code__.co_firstlineno

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return _FINGERPRINT

    def get_disambiguator(self) -> str:
        return str(self._lineno)

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> "_Locator | None":
        locator = cls(py_func, py_file)
        try:
            locator.ensure_cache_path()
        except OSError:  # a read-only home: compile in every process rather than fail
            return None
        return locator


class _CacheImpl(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = [_Locator]


class _Cache(FunctionCache):  # type: ignore[misc]
    """Keeps what can be found again: not the code of operators that a user defined in this process."""

    _impl_class = _CacheImpl

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        return None if _is_local(sig) else super().load_overload(sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        if not _is_local(sig):
            super().save_overload(sig, data)


def _is_local(sig: Any) -> bool:
    arguments = getattr(sig, "args", sig)
    return any(
        isinstance(arg, NamedTuple | NamedUniTuple) and getattr(arg.instance_class, "local", False) for arg in arguments
    )


_FINGERPRINT = _fingerprint()


def kernel(function: Callable[..., Any]) -> Any:
    """Compile `function` on first use, release the GIL inside it, keep the code on disk."""
    dispatcher = numba.njit(**FLAGS)(function)
    if not numba.config.DISABLE_JIT:
        try:
            dispatcher._cache = _Cache(function)
        except RuntimeError:  # no folder to write to
            pass
    return dispatcher
