"""Columns as addresses: for values that are read behind many small functions, each of which would count references.

A kernel whose caller holds the arrays opens them once (`opened`) and hands the addresses on. Counting took five times
as long as everything else in the conditions of frames (kernels/frames/conditions.py).
"""

from typing import Any, NamedTuple

import numba
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic, overload


class RawColumn(NamedTuple):
    """Where the values of an array begin, how many there are, and one such value, for its type."""

    address: Any
    size: Any
    like: Any


def opened(columns):
    """Arrays, in tuples or not, as addresses; of a layout that has gaps, as they are."""
    return columns


@overload(opened)
def _opened_overload(columns):
    """An array by the type of its values, a tuple part by part."""
    if isinstance(columns, types.Array):
        samples = {types.float64: 0.0, types.int64: 0, types.boolean: False}
        if columns.layout != "C" or columns.ndim != 1 or columns.dtype not in samples:
            return lambda columns: columns
        like = samples[columns.dtype]
        return lambda columns: RawColumn(columns.ctypes.data, columns.size, like)
    if not isinstance(columns, types.BaseTuple) or len(columns) == 0:
        return lambda columns: columns
    if len(columns) == 1:
        return lambda columns: (opened(columns[0]),)
    return lambda columns: (opened(columns[0]),) + opened(columns[1:])


def value_at(column, e):
    """The value of event e."""
    return column[e]


@overload(value_at)
def _value_overload(column, e):
    if isinstance(column, types.Array):
        return lambda column, e: column[e]
    return lambda column, e: fetched(column.address, e, column.like)


def _fetched(typingctx: Any, address: Any, e: Any, like: Any) -> Any:
    """The value of the type of `like` at place e behind an address."""
    kind = types.unliteral(like)

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        model = context.data_model_manager[kind]
        start = builder.inttoptr(arguments[0], ir.PointerType(model.get_data_type()))
        return model.from_data(builder, builder.load(builder.gep(start, [arguments[1]])))

    return kind(address, e, like), codegen


fetched: Any = None if numba.config.DISABLE_JIT else intrinsic(_fetched)
