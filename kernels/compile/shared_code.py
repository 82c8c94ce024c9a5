"""One machine code where Numba would make several that do the same.

An array that may only be read, as Arrow's memory is, is of another type than one that may be written: a kernel over
three columns would be compiled for any mix of them. And one that another kernel calls with a number as it stands in the
source, `push(heap, 0)`, would be compiled once more for that number. A seventh of all that the tests compile was such.

Kernels write into what they were given to write into, and into nothing else: run as plain Python, NumPy sees to that.
"""

from typing import Any

from numba.core.compiler_lock import global_compiler_lock
from numba.core.types import Array, BaseNamedTuple, BaseTuple, NamedTuple, NamedUniTuple, unliteral


def share(dispatcher: Any) -> Any:
    """The same dispatcher, which compiles once for arguments that differ in nothing its machine code could do."""
    from_python, from_kernels = dispatcher._compile_for_args, dispatcher.get_call_template
    known: set[tuple[Any, ...]] = set()

    def compile_for_args(*args: Any) -> Any:
        given = tuple(map(dispatcher.typeof_pyval, args))
        common = tuple(map(writable, given))
        if common == given:
            return from_python(*args)
        with global_compiler_lock:  # threads come here at once; what is inserted twice is searched for at every call
            code = dispatcher.compile(common)
            if given not in known:
                known.add(given)
                dispatcher._insert([kind._code for kind in given], code, False)  # found at once from now on
        return code

    def get_call_template(args: Any, kws: Any) -> Any:
        return from_kernels(tuple(map(unliteral, args)), kws)

    dispatcher._compile_for_args, dispatcher.get_call_template = compile_for_args, get_call_template
    return dispatcher


def writable(kind: Any) -> Any:
    """The type of an argument, its arrays, in tuples or not, as if they might be written."""
    if isinstance(kind, Array):
        return kind if kind.mutable else kind.copy(readonly=False)
    if not isinstance(kind, BaseTuple) or all(writable(part) == part for part in kind.types):
        return kind
    named = kind.instance_class if isinstance(kind, BaseNamedTuple) else None
    return BaseTuple.from_types(tuple(map(writable, kind.types)), named)


def is_local(sig: Any) -> bool:
    """Is there an operator among the arguments that only this process knows?"""
    arguments = getattr(sig, "args", sig)
    return any(
        isinstance(arg, NamedTuple | NamedUniTuple) and getattr(arg.instance_class, "local", False) for arg in arguments
    )
