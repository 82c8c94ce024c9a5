"""Conditions over several aggregates of a frame's events: a product of monoids, and an expression over their answers.

      max(a) - min(a) > 3        parts       max(a), min(a)     each with how many values it is of
                                 tree        (">", ("-", 0, 1), 3)
                                 partial     n, max, n, min     all in one tuple: what a key remembers of its frame

needs   parts with operators of kernels/frames/operators.py, or of users
costs   a lift and a combine per part, the expression once per event; compiled once per shape, constants are data.
        Columns are addresses (kernels/compile/raw.py): as arrays, of which every function counts the references, two
        parts took 70 to 200 ns per event, and take 10 now
from    Grossniklaus et al. 2016, section 3.2, whose aggregate frames compare one aggregate with one number

Null is unknown, as in SQL: it breaks no condition and makes none true. NaN satisfies nothing. Integers are exact, and
one that leaves int64 is found out (WRAPPED).
"""

import hashlib
import pkgutil
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from kernels.compile.made import made
from kernels.compile.raw import value_at
from kernels.frames import growing
from kernels.frames.growing import combine, known, lift, measure, wrapped

KNOWN, NULL, WRAPPED = 0, 1, 2  # what is to be said of a value; the larger one wins
ONE = np.int64(1)


class GrownPart(NamedTuple):
    """An aggregate: its operator (None: rows are counted), the dtypes of a partial, whether its answers are whole, and
    whether it counts: of no values that is 0."""

    op: Any
    dtypes: Any
    whole: bool
    counts: bool = False


class ConditionShape(NamedTuple):
    """What is compiled: types of operators and their partials, and the tree of the condition.

    tree: ("part", i) | ("constant", i) | ("+", whole, tree, tree), … | ("inside", tree, i) for constants[i] <= value <=
    constants[i + 1] | ("outside", tree, i) | ("<", tree, tree), … | ("and", tree, tree) | ("or", tree, tree).
    value: the part of the tree that is reported of a frame, if any.
    """

    parts: tuple[Any, ...]
    tree: Any
    value: Any


_shapes: dict[ConditionShape, type] = {}
_lock = threading.Lock()  # scans of several parts of the keys ask at the same time


def condition(parts: list[GrownPart], tree: Any, value: Any, constants: tuple[Any, ...], before: bool) -> Any:
    """The operator of a condition. before: what is unknown holds, as it does not yet break anything."""
    shape = ConditionShape(tuple((type(part.op), *part[1:]) for part in parts), tree, value)
    with _lock:
        if shape not in _shapes:
            _shapes[shape] = _operator(parts, shape)
    counted = tuple(0 if part.op is None else part.op for part in parts)
    return _shapes[shape](counted, constants, before)


def _operator(parts: list[GrownPart], shape: ConditionShape) -> type:
    """A type of operators. Its name says its shape, and it is found under that name: so what is compiled for it can be
    kept on disk, unless functions of a user's are among its parts."""
    told = repr(shape).encode() + (pkgutil.get_data("kernels", "frames/conditions.py") or b"")  # what makes its code
    name = f"Condition_{hashlib.sha256(told).hexdigest()[:16]}"
    operator = NamedTuple(name, [("parts", Any), ("constants", Any), ("before", bool)])  # type: ignore[misc]
    operator.__module__, globals()[name] = __name__, operator
    operator.local = any(getattr(type(part.op), "local", False) for part in parts)  # type: ignore[attr-defined]
    growing.register(operator, _compiled(parts, shape))
    return operator


def state(parts: list[GrownPart]) -> tuple[np.ndarray, ...]:
    """Room for the partials of keys; of none yet."""
    return tuple(np.empty(0, dtype) for part in parts for dtype in (np.int64, *_listed(part)))


def _listed(part: GrownPart) -> tuple[Any, ...]:
    if part.op is None:
        return ()
    return part.dtypes if isinstance(part.dtypes, tuple) else (part.dtypes,)


def _compiled(parts: list[GrownPart], shape: ConditionShape) -> growing.PartFunctions:
    """What an operator of this shape does."""
    places, at = [], 0
    for part in parts:
        places.append((at, at + 1 + len(_listed(part))))
        at = places[-1][1]
    leaves = [_leaf(i, part, *place) for i, (part, place) in enumerate(zip(parts, places, strict=True))]
    lifts = _row([_lifted(i, part) for i, part in enumerate(parts)], "lift")
    combines = [_combined(i, part, *place) for i, (part, place) in enumerate(zip(parts, places, strict=True))]
    holds = _node(shape.tree, leaves, "holds")
    reported = holds if shape.value is None else _node(shape.value, leaves, "value")
    return growing.PartFunctions(lifts, _row(combines, "combine"), *_asked(holds, reported))


def _asked(holds: Any, reported: Any) -> tuple[Any, Any, Any]:
    """Does the condition hold, has a number left int64, what is reported and is it known?"""

    def measured(op, a):
        found, state = holds(op, a)
        return np.int64(op.before) if state == NULL else found

    def has_wrapped(op, a):
        return holds(op, a)[1] == WRAPPED

    def answered(op, a):
        found, state = reported(op, a)
        return found, ONE if state == KNOWN else np.int64(0)

    return made(measured, "measured"), made(has_wrapped, "has_wrapped"), made(answered, "answered")


def _row(functions: list[Any], name: str) -> Any:
    """One function of several that give a tuple each, for the same arguments: their tuples, one behind the other."""
    first, *others = functions
    if not others:
        return first
    rest = _row(others, name)
    return made(lambda op, a, b: first(op, a, b) + rest(op, a, b), f"{name}_{len(functions)}")


# -- Parts -------------------------------------------------------------------------------------------------------------


def _lifted(i: int, part: GrownPart) -> Any:
    """The partial of an event: 1 and that of its values, or 0 and nothing where one of them is null."""
    if part.op is None:

        def counted(op, columns, e):
            valid = columns[i][1]
            return (np.int64(valid.size == 0 or value_at(valid, e)),)

        return made(counted, f"lift_part_{i}")
    nothing = tuple(np.dtype(each).type(0) for each in (np.int64, *_listed(part)))
    several = isinstance(part.dtypes, tuple)

    def of_one(op, columns, e):
        arrays, valid = columns[i]
        if valid.size == 0 or value_at(valid, e):
            return (ONE, lift(op.parts[i], _at(arrays, e), 0))
        return nothing

    def of_several(op, columns, e):
        arrays, valid = columns[i]
        if valid.size == 0 or value_at(valid, e):
            return (ONE,) + lift(op.parts[i], _at(arrays, e), 0)  # Numba knows how long tuples are that way
        return nothing

    return made(of_several if several else of_one, f"lift_part_{i}")


def _at(arrays, e):
    """The values of event e, as columns of one event."""
    return tuple((array[e],) for array in arrays)


@overload(_at)
def _at_overload(arrays, e):
    if len(arrays) == 1:
        return lambda arrays, e: ((value_at(arrays[0], e),),)
    if len(arrays) == 2:
        return lambda arrays, e: ((value_at(arrays[0], e),), (value_at(arrays[1], e),))
    return lambda arrays, e: ((value_at(arrays[0], e),),) + _at(arrays[1:], e)


def _combined(i: int, part: GrownPart, lo: int, hi: int) -> Any:
    """The partials of a frame and of the next event, at places lo … hi of all."""
    first = lo + 1
    if part.op is None:
        return made(lambda op, a, b: (a[lo] + b[lo],), f"combine_part_{i}")

    def of_one(op, a, b):
        if a[lo] == 0 or b[lo] == 0:
            return b[lo:hi] if a[lo] == 0 else a[lo:hi]
        return (a[lo] + b[lo], combine(op.parts[i], a[first], b[first]))

    def of_several(op, a, b):
        if a[lo] == 0 or b[lo] == 0:
            return b[lo:hi] if a[lo] == 0 else a[lo:hi]
        return (a[lo] + b[lo],) + combine(op.parts[i], a[first:hi], b[first:hi])

    return made(of_several if isinstance(part.dtypes, tuple) else of_one, f"combine_part_{i}")


def _leaf(i: int, part: GrownPart, lo: int, hi: int) -> Any:
    """The answer of a part, and what is to be said of it."""
    first, number = lo + 1, np.int64 if part.whole else np.float64
    of_nothing = KNOWN if part.counts else NULL
    if part.op is None:
        return made(lambda op, a: (a[lo], KNOWN), f"part_{i}")

    def of_one(op, a):
        n, own = a[lo], a[first]
        if n == 0 or not known(op.parts[i], n, own):
            return number(0), of_nothing
        return number(measure(op.parts[i], n, own)), KNOWN

    def of_several(op, a):
        n, own = a[lo], a[first:hi]
        if n == 0 or not known(op.parts[i], n, own):
            return number(0), of_nothing
        return number(measure(op.parts[i], n, own)), WRAPPED if wrapped(op.parts[i], own) else KNOWN

    return made(of_several if isinstance(part.dtypes, tuple) else of_one, f"part_{i}")


# -- The tree ----------------------------------------------------------------------------------------------------------


def _node(tree: Any, leaves: list[Any], name: str) -> Any:
    """A function of the operator and the partials, for the value of a tree and what is to be said of it.

    name: of the place in the tree.
    """
    kind = tree[0]
    if kind == "part":
        return leaves[tree[1]]
    if kind == "constant":
        at = tree[1]
        return made(lambda op, a: (op.constants[at], KNOWN), name)
    if kind in ("inside", "outside"):
        return made(_bounded(_node(tree[1], leaves, name + "0"), tree[2], kind == "inside"), name)
    if kind in _ARITHMETIC:
        operands = (_node(each, leaves, f"{name}{i}") for i, each in enumerate(tree[2:]))
        return made(_ARITHMETIC[kind](tree[1], *operands), name)
    left, right = (_node(each, leaves, f"{name}{i}") for i, each in enumerate(tree[1:]))
    return made(_joined(left, right, kind == "and") if kind in ("and", "or") else _compared(kind, left, right), name)


def _bounded(node: Any, at: int, inside: bool) -> Any:
    """Is a value between two constants, or is it not? NaN is neither."""
    behind = at + 1

    def bounded(op, a):
        value, state = node(op, a)
        within = (op.constants[at] <= value) & (value <= op.constants[behind])
        return np.int64(within if inside else (not within) & (value == value)), state

    return bounded


def _compared(kind: str, left: Any, right: Any) -> Any:
    """Two values by <, <=, =, or <>; those that are larger are compared from behind. NaN satisfies none."""

    def less(op, a):
        (x, s), (y, t) = left(op, a), right(op, a)
        return np.int64(x < y), max(s, t)

    def most(op, a):
        (x, s), (y, t) = left(op, a), right(op, a)
        return np.int64(x <= y), max(s, t)

    def same(op, a):
        (x, s), (y, t) = left(op, a), right(op, a)
        return np.int64(x == y), max(s, t)

    def other(op, a):
        (x, s), (y, t) = left(op, a), right(op, a)
        return np.int64((x < y) | (x > y)), max(s, t)

    return {"<": less, "<=": most, "=": same, "<>": other}[kind]


def _joined(left: Any, right: Any, both: bool) -> Any:
    """AND, OR of three values: one side that decides it is enough."""
    decides = np.int64(not both)

    def joined(op, a):
        (x, s), (y, t) = left(op, a), right(op, a)
        state = max(s, t)
        if state < WRAPPED and ((s == KNOWN and x == decides) or (t == KNOWN and y == decides)):
            return decides, KNOWN
        return ONE - decides, state

    return joined


# -- Arithmetic: in floats, or in integers that are watched ------------------------------------------------------------


def _sum(whole: bool, left: Any, right: Any) -> Any:
    def exactly(op, a):
        (x, s), (y, t) = left(op, a), right(op, a)
        z = x + y
        return z, WRAPPED if ((x ^ z) & (y ^ z)) < 0 else max(s, t)

    def nearly(op, a):
        (x, s), (y, t) = left(op, a), right(op, a)
        return np.float64(x) + np.float64(y), max(s, t)

    return exactly if whole else nearly


def _difference(whole: bool, left: Any, right: Any) -> Any:
    def exactly(op, a):
        (x, s), (y, t) = left(op, a), right(op, a)
        z = x - y
        return z, WRAPPED if ((x ^ y) & (x ^ z)) < 0 else max(s, t)

    def nearly(op, a):
        (x, s), (y, t) = left(op, a), right(op, a)
        return np.float64(x) - np.float64(y), max(s, t)

    return exactly if whole else nearly


def _product(whole: bool, left: Any, right: Any) -> Any:
    def exactly(op, a):
        (x, s), (y, t) = left(op, a), right(op, a)
        z = x * y
        about = np.float64(x) * np.float64(y)
        return z, WRAPPED if abs(np.float64(z) - about) > 2.0**62 else max(s, t)  # it wraps by 2^64

    def nearly(op, a):
        (x, s), (y, t) = left(op, a), right(op, a)
        return np.float64(x) * np.float64(y), max(s, t)

    return exactly if whole else nearly


def _quotient(whole: bool, left: Any, right: Any) -> Any:
    def nearly(op, a):
        (x, s), (y, t) = left(op, a), right(op, a)
        return np.float64(x) / np.float64(y), max(s, t)

    return nearly


def _negated(whole: bool, node: Any) -> Any:
    def exactly(op, a):
        x, s = node(op, a)
        return -x, WRAPPED if (x == -x) & (x != 0) else s

    def nearly(op, a):
        x, s = node(op, a)
        return -np.float64(x), s

    return exactly if whole else nearly


def _absolute(whole: bool, node: Any) -> Any:
    def exactly(op, a):
        x, s = node(op, a)
        return abs(x), WRAPPED if abs(x) < 0 else s

    def nearly(op, a):
        x, s = node(op, a)
        return abs(np.float64(x)), s

    return exactly if whole else nearly


_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "+": _sum, "-": _difference, "*": _product, "/": _quotient, "neg": _negated, "abs": _absolute,
}  # fmt: skip
