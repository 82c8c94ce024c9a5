"""Parts of kernels: compiled into each kernel that uses them, on arrays whose references are not counted.

For structures of several arrays whose single steps are short. Handing the arrays of an ordered index from function to
function was measured at six times the work itself, and counting their references inside the helpers at four times.
"""

import operator
from collections.abc import Callable
from typing import Any

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from kernels.compile import rehearsal
from kernels.compile.jit import FLAGS
from kernels.compile.made import made

AHEAD = 8  # steps of a loop, from `fetch` to use: 4 to 16 are alike. What is found behind that: twice as many


def helper(function: Callable[..., Any]) -> Any:
    """A part of one kernel: its text becomes part of the kernel's, before types are looked for."""
    part = numba.njit(inline="always", **FLAGS)(function)
    return part if numba.config.DISABLE_JIT else rehearsal.attend(part)


def part(function: Callable[..., Any]) -> Any:
    """A part of several kernels: compiled by itself, once, and put into each of them by the optimiser.

    The kernels of CI-COUNT and CI-SUM are compiled in half the time that took where helpers were parts of helpers.
    """
    return made(function, function.__qualname__)


def _bare(typingctx: Any, array: Any) -> Any:
    """The same array without a reference count: for the helpers of a kernel whose caller holds the array."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        own = make_array(signature.args[0])(context, builder, arguments[0])
        own.meminfo = cgutils.get_null_value(own.meminfo.type)
        own.parent = cgutils.get_null_value(own.parent.type)
        return own._getvalue()

    return array(array), codegen


def _fetch(typingctx: Any, array: Any, row: Any) -> Any:
    """Ask the memory for a row of an array that will be needed in a moment; any row number does.

    It pays where the row is found behind another place that has to be read first. Loops that know their places by
    themselves are run ahead by the processor as far as they should be.
    """

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """LLVM's prefetch of the address where the row begins: a hint, which never fails."""
        own = make_array(signature.args[0])(context, builder, arguments[0])
        stride = cgutils.unpack_tuple(builder, own.strides)[0]
        start = builder.bitcast(own.data, ir.IntType(8).as_pointer())
        place = builder.gep(start, [builder.mul(stride, arguments[1])])
        i32 = ir.IntType(32)
        shape = ir.FunctionType(ir.VoidType(), [place.type, i32, i32, i32])
        prefetch = cgutils.get_or_insert_function(builder.module, shape, "llvm.prefetch.p0i8")
        builder.call(prefetch, [place, i32(1), i32(3), i32(1)])  # to be written, as near as can be, data
        return context.get_dummy_value()

    return types.void(array, types.int64), codegen


if numba.config.DISABLE_JIT:
    bare, fetch = (lambda array: array), operator.is_  # something that takes two arguments, and no time
else:
    bare, fetch = intrinsic(_bare), intrinsic(_fetch)
