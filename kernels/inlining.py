"""Parts of kernels: compiled into each kernel that uses them, on arrays whose references are not counted.

For structures of several arrays whose single steps are short. Handing the arrays of kernels/wheel.py from function to
function was measured at six times the work itself, and counting their references inside the helpers at four times.
"""

from collections.abc import Callable
from typing import Any

import numba
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from kernels.jit import FLAGS


def helper(function: Callable[..., Any]) -> Any:
    """A part of kernels, compiled into each of them."""
    return numba.njit(inline="always", **FLAGS)(function)


def _bare(typingctx: Any, array: Any) -> Any:
    """The same array without a reference count: for the helpers of a kernel whose caller holds the array."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        own = make_array(signature.args[0])(context, builder, arguments[0])
        own.meminfo = cgutils.get_null_value(own.meminfo.type)
        own.parent = cgutils.get_null_value(own.parent.type)
        return own._getvalue()

    return array(array), codegen


bare = (lambda array: array) if numba.config.DISABLE_JIT else intrinsic(_bare)
