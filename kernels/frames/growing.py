"""What frames ask of the operator that they grow by: lift, combine, measure. One operator may stand for several.

partial    of an operator (operators.py, operators/monoids.py), or of all parts of a condition (conditions.py)
measure    the aggregate; of a condition 1 where it holds and 0 where it does not
answer     what is reported of the frame
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from numba.core import types
from numba.extending import overload

from kernels.compile import raw
from kernels.frames.operators import KNOWN, MEASURE, WRAPPING
from kernels.operators import monoids

FEW_ARRAYS = 6  # arrays of a state that are read one by one


class PartFunctions(NamedTuple):
    """What an operator of several parts (kernels/frames/conditions.py) does in its own way; each takes it first."""

    lift: Callable[..., Any]
    combine: Callable[..., Any]
    measure: Callable[..., Any]
    wrapped: Callable[..., Any]
    answer: Callable[..., Any]


_PARTS: dict[type, PartFunctions] = {}


def register(operator: type, parts: PartFunctions) -> None:
    """An operator of several parts."""
    _PARTS[operator] = parts


def opened(op, columns):
    """Columns as an operator wants them: those of several parts, handed from function to function, as addresses."""
    return columns


@overload(opened)
def _opened_overload(op, columns):
    if op.instance_class in _PARTS:
        return lambda op, columns: raw.opened(columns)
    return lambda op, columns: columns


def load(state, i):
    """Partial i of a state, as monoids.load: of many arrays by halves, as deep recursion is refused by the compiler."""
    return monoids.load(state, i)


@overload(load)
def _load_overload(state, i):
    if not isinstance(state, types.BaseTuple) or len(state) <= FEW_ARRAYS:
        return lambda state, i: monoids.load(state, i)
    half = len(state) // 2
    return lambda state, i: load(state[:half], i) + load(state[half:], i)


def store(state, i, partial):
    """Set partial i of a state."""
    monoids.store(state, i, partial)


@overload(store)
def _store_overload(state, i, partial):
    """As monoids.store, by halves."""
    if not isinstance(state, types.BaseTuple) or len(state) <= FEW_ARRAYS:
        return lambda state, i, partial: monoids.store(state, i, partial)
    half = len(state) // 2

    def both(state, i, partial):
        store(state[:half], i, partial[:half])
        store(state[half:], i, partial[half:])

    return both


def lift(op, columns, e):
    """The partial of event e."""
    f = _PARTS.get(type(op))
    return monoids.lift(op, columns, e) if f is None else f.lift(op, columns, e)


@overload(lift)
def _lift_overload(op, columns, e):
    if op.instance_class not in _PARTS:
        return lambda op, columns, e: monoids.lift(op, columns, e)
    f = _PARTS[op.instance_class].lift
    return lambda op, columns, e: f(op, columns, e)


def combine(op, a, b):
    """The partial of a frame and of the event behind it."""
    f = _PARTS.get(type(op))
    return monoids.combine(op, a, b) if f is None else f.combine(op, a, b)


@overload(combine)
def _combine_overload(op, a, b):
    if op.instance_class not in _PARTS:
        return lambda op, a, b: monoids.combine(op, a, b)
    f = _PARTS[op.instance_class].combine
    return lambda op, a, b: f(op, a, b)


def measure(op, n, a):
    """The aggregate that the partial of n values stands for; of several parts, whether their condition holds."""
    if type(op) in _PARTS:
        return _PARTS[type(op)].measure(op, a)
    f = MEASURE.get(type(op))
    return monoids.lower(op, a) if f is None else f(op, n, a)


@overload(measure)
def _measure_overload(op, n, a):
    """By the kind of operator: of several parts, one of ours, or a user's."""
    if op.instance_class in _PARTS:
        of_parts = _PARTS[op.instance_class].measure
        return lambda op, n, a: of_parts(op, a)
    f = MEASURE.get(op.instance_class)
    if f is None:
        return lambda op, n, a: monoids.lower(op, a)
    return lambda op, n, a: f(op, n, a)


def known(op, n, a):
    """Has the partial of n > 0 values an answer at all?"""
    f = KNOWN.get(type(op))
    return f is None or f(op, n, a)


@overload(known)
def _known_overload(op, n, a):
    f = KNOWN.get(op.instance_class)
    if f is None:
        return lambda op, n, a: True
    return lambda op, n, a: f(op, n, a)


def wrapped(op, a):
    """Has an integer left int64?"""
    if type(op) in _PARTS:
        return _PARTS[type(op)].wrapped(op, a)
    return isinstance(op, WRAPPING) and a[1] != 0


@overload(wrapped)
def _wrapped_overload(op, a):
    if op.instance_class in _PARTS:
        f = _PARTS[op.instance_class].wrapped
        return lambda op, a: f(op, a)
    if op.instance_class in WRAPPING:
        return lambda op, a: a[1] != 0
    return lambda op, a: False


def answer(op, n, a):
    """What is reported of a frame of n values: its aggregate, and of how many values that is; 0: there is none."""
    if type(op) in _PARTS:
        return _PARTS[type(op)].answer(op, a)
    return measure(op, n, a), n


@overload(answer)
def _answer_overload(op, n, a):
    if op.instance_class in _PARTS:
        f = _PARTS[op.instance_class].answer
        return lambda op, n, a: f(op, a)
    return lambda op, n, a: (measure(op, n, a), n)
