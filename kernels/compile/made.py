"""Functions that are put together while the program runs: compiled as kernels are, as parts of those that call them."""

from collections.abc import Callable
from typing import Any

import numba

from kernels.compile import rehearsal
from kernels.compile.jit import FLAGS
from kernels.compile.shared_code import share


def made(function: Callable[..., Any], name: str) -> Any:
    """Compiled on first use. It may refer to others of its kind.

    name: the same, for arguments of the same types, in any process that makes the same function, and in no other case.
    Code of kernels is kept on disk with that of their parts, and these are told apart by their names; those of
    closures count from the start of the process.
    """
    function.__name__ = function.__qualname__ = name
    part = numba.njit(forceinline=True, **FLAGS)(function)
    return part if numba.config.DISABLE_JIT else rehearsal.attend(share(part))
