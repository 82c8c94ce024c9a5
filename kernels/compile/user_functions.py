"""Functions of a user's, compiled so that what they give can be trusted.

cast     what a function gives has the types of `like`; a whole number that is none is refused
twice    integers wrap silently in compiled code, so a function of integers is computed in floats as well, and refused
         where the two are further apart than rounding can be. About 1 ns per call; functions that floats can not do
         (bits, indices) are taken as they are.
"""

from functools import cache
from types import FunctionType

import numba
import numpy as np
from numba.core import types
from numba.extending import overload

NOT_WHOLE = "a number that is not whole, or does not fit int64, where `identity` is whole"
WRAPPED = "an integer does not fit int64; `identity` of floats, or lift=lambda x: float(x), computes with floats"


@cache
def jitted(function):
    """What compiled functions can call; those that Numba knows (max, np.log) or has compiled are taken as they are."""
    return numba.njit(function) if isinstance(function, FunctionType) else function


def returned(function, given):
    """The type that a function gives for arguments of these types; raises what Numba does if it does not compile."""
    call = jitted(function)
    if not getattr(call, "_can_compile", False):  # it has signatures of its own, or nothing that could be compiled here
        call = numba.njit((lambda a: function(a)) if len(given) == 1 else (lambda a, b: function(a, b)))
    call.compile(given)
    return call.overloads[given].signature.return_type


def shape_of(kind):
    """Of a type, or of a value: 0, a number; n, a tuple of n numbers; None, anything else."""
    several = isinstance(kind, types.BaseTuple | tuple)
    inside = list(kind) if several else [kind]
    numbers = types.Integer | types.Float | types.Boolean | int | float | np.number | np.bool_
    if not inside or not all(isinstance(each, numbers) and not isinstance(each, complex) for each in inside):
        return None
    return len(inside) if several else 0


def checked(function, dtypes, arguments):
    """A function of one or two arguments. dtypes: of the partial that it gives, one or a tuple of them."""
    call, cast, apart = jitted(function), _caster(dtypes), _far_apart(len(dtypes) if isinstance(dtypes, tuple) else 0)
    if numba.config.DISABLE_JIT:
        return (lambda a: cast(call(a))) if arguments == 1 else (lambda a, b: cast(call(a, b)))
    return numba.njit(_of_one(call, cast, apart) if arguments == 1 else _of_two(call, cast, apart))


def _of_one(call, cast, apart):
    """A user's function of one argument, its result cast; computed in floats as well where integers may wrap."""

    def stub(a): ...

    @overload(stub)
    def choose(a):
        """By the type of the argument: once, or twice to find out integers that wrap."""

        def once(a):
            return cast(call(a))

        def twice(a):
            found = call(a)
            if apart(found, call(as_floats(a))):
                raise OverflowError(WRAPPED)
            return cast(found)

        return twice if _may_wrap(call, (a,)) else once

    return lambda a: stub(a)


def _of_two(call, cast, apart):
    """A user's function of two arguments, its result cast; computed in floats as well where integers may wrap."""

    def stub(a, b): ...

    @overload(stub)
    def choose(a, b):
        """By the types of the two arguments: once, or twice to find out integers that wrap."""

        def once(a, b):
            return cast(call(a, b))

        def twice(a, b):
            found = call(a, b)
            if apart(found, call(as_floats(a), as_floats(b))):
                raise OverflowError(WRAPPED)
            return cast(found)

        return twice if _may_wrap(call, (a, b)) else once

    return lambda a, b: stub(a, b)


def _may_wrap(function, given):
    """Is there an integer among the arguments, and can the function do with floats?"""
    floats = tuple(map(_float_type, given))
    if floats == given:
        return False
    try:
        return shape_of(returned(function, floats)) == shape_of(returned(function, given))
    except Exception:
        return False


def _float_type(kind):
    if isinstance(kind, types.BaseTuple):
        return types.BaseTuple.from_types([_float_type(each) for each in kind])
    return types.float64


def as_floats(partial):
    """A number, or a tuple of numbers, as floats."""
    return tuple(map(float, partial)) if isinstance(partial, tuple) else float(partial)


@overload(as_floats)
def _as_floats_overload(partial):
    if not isinstance(partial, types.BaseTuple):
        return lambda partial: np.float64(partial)
    if len(partial) == 1:
        return lambda partial: (np.float64(partial[0]),)
    return lambda partial: (np.float64(partial[0]),) + as_floats(partial[1:])


@numba.njit
def is_apart(found, about):
    """An integer that has wrapped is off by a multiple of 2^64, rounding by a tiny part of the number."""
    off, size = abs(np.float64(found) - about), abs(np.float64(about))
    return off > 2.0**62 and (off > size / 4 or np.isinf(size))


def _far_apart(parts):
    """Whether any number of a partial of so many parts (0: a number) is apart from that of another."""
    if parts == 0:
        return is_apart
    if parts == 1:
        return numba.njit(lambda a, b: is_apart(a[0], b[0]))
    rest = _far_apart(parts - 1)
    return numba.njit(lambda a, b: is_apart(a[0], b[0]) or rest(a[1:], b[1:]))


def whole(a):
    """A whole number as int64. Raises where it is none: a fraction would be cut off without a word."""
    if not -(2.0**63) <= a < 2.0**63 or a != np.floor(a):
        raise ValueError(NOT_WHOLE)
    return np.int64(a)


@overload(whole)
def _whole_overload(a):
    if isinstance(a, types.Float) or a == types.uint64:
        return whole
    return lambda a: np.int64(a)


def _caster(dtypes):
    """Gives a partial these types, so that lift=lambda x: 1 may mean 1.0."""
    if not isinstance(dtypes, tuple):
        return numba.njit(lambda a: whole(a)) if dtypes is np.int64 else numba.njit(lambda a: np.float64(a))
    first = _caster(dtypes[0])
    if len(dtypes) == 1:
        return numba.njit(lambda a: (first(a[0]),))
    rest = _caster(dtypes[1:])
    return numba.njit(lambda a: (first(a[0]),) + rest(a[1:]))
