"""A job run to learn which kernels it needs, for what types, before any of them is compiled.

Kernels are plain Python underneath. While a rehearsal is on, those that are called run as such, over a few rows, and
what they were called with is noted. So no list of kernels and signatures has to be kept by hand.
"""

from collections.abc import Callable
from typing import Any

from numba.core.extending import _Intrinsic

from kernels.compile.shared_code import writable

Call = tuple[Any, tuple[Any, ...]]  # a kernel, and the types that it is called with


class Rehearsal:
    """Owns what was called, in order, and how deep inside kernels the calls are that come now."""

    def __init__(self) -> None:
        self.calls: dict[Call, None] = {}
        self.depth = 0
        # What only compiled code can call stands for its first argument (an array without a reference count).
        _Intrinsic.__call__ = lambda intrinsic, first, *rest: first

    def attend(self, dispatcher: Any) -> None:
        """Of this one, too, calls from Python are noted and run as plain Python."""

        def plainly(*args: Any) -> Any:
            self.depth += 1
            try:
                return dispatcher.py_func(*args)
            finally:
                self.depth -= 1

        def note(*args: Any) -> Callable[..., Any]:
            if self.depth == 0:
                self.calls[dispatcher, tuple(writable(dispatcher.typeof_pyval(each)) for each in args)] = None
            return plainly

        dispatcher._compile_for_args = note


current: Rehearsal | None = None


def attend(dispatcher: Any) -> Any:
    """The same dispatcher; while there is a rehearsal, a part of it."""
    if current is not None:
        current.attend(dispatcher)
    return dispatcher
