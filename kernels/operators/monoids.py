"""Aggregates as monoids: lift a row, combine two partials in stream order, optionally take one off again.

An operator is a (type-only) named tuple, so that Numba compiles each structure once per operator and can keep the code
on disk. A partial is a scalar, or a tuple of scalars; partials live in an array, or in a tuple of arrays (`load`,
`store`). Nulls never get here: rows that do not count are not in the columns (see swag/live/space.py).

    operator      partial            combine                            taken off again
    Sum           s                  s + s                              integers only
    Max, Min      m                  the larger; NaN wins               -
    Moments       n, s, mean, m2     Chan's update                      -
    CoMoments     n, mean x, mean y, the same, for two columns          -
                  xx, yy, xy
    Shape         n, mean, m2 … m4   Pébay's update                     -      kernels/operators/shape.py
    Product       m, e: m * 2^e      m * m, e + e                       -      kernels/operators/products.py
    ArgMax, ArgMin  x, extreme       that of the better; NaN wins       -      kernels/operators/extreme_rows.py
    Decayed       s, lost, k         the earlier times 2^-(k - k)       -      kernels/operators/decayed.py
    user-defined  what identity is   theirs                             if they say how
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba.core import types
from numba.extending import overload

from kernels.compile.jit import kernel
from kernels.operators.decayed import Decayed, combine_decayed, lift_decayed
from kernels.operators.extreme_rows import ArgMax, ArgMin, later_max, later_min, lift_row
from kernels.operators.products import Product, combine_product, lift_product
from kernels.operators.shape import Shape, combine_shape, lift_shape

SECOND = object()  # in STATE: the dtype of the second column


class Sum(NamedTuple):
    tag: int = 0


class Max(NamedTuple):
    tag: int = 0


class Min(NamedTuple):
    tag: int = 0


class Moments(NamedTuple):
    tag: int = 0


class CoMoments(NamedTuple):
    tag: int = 0


@kernel
def lift_value(x):
    return x


@kernel
def lift_moments(x):
    return 1.0, x, np.float64(x), 0.0


@kernel
def lift_comoments(x, y):
    return 1.0, np.float64(x), np.float64(y), 0.0, 0.0, 0.0


@kernel
def add(a, b):
    return a + b


@kernel
def _difference(a, b):
    return a - b


@kernel
def _max(a, b):
    return a if a > b or a != a else b


@kernel
def _min(a, b):
    return a if a < b or a != a else b


@kernel
def combine_moments(a, b):
    """Chan, Golub & LeVeque: never squares a large mean, so 1e9 + noise keeps its digits, and a constant stays one."""
    n = a[0] + b[0]
    share = b[0] / n
    d = b[2] - a[2]
    return n, a[1] + b[1], a[2] + d * share, a[3] + b[3] + d * d * (a[0] * share)


@kernel
def combine_comoments(a, b):
    """Chan's update for two columns: n, the means, and the sums of squares and of products of deviations."""
    n = a[0] + b[0]
    share = b[0] / n
    dx, dy = b[1] - a[1], b[2] - a[2]
    wx, wy = dx * (a[0] * share), dy * (a[0] * share)
    return (
        n,
        a[1] + dx * share,
        a[2] + dy * share,
        a[3] + b[3] + dx * wx,
        a[4] + b[4] + dy * wy,
        a[5] + b[5] + dy * wx,
    )


@kernel
def take_in_comoments(a, x, y):
    """The same, of one more row."""
    na, mean_x, mean_y, xx, yy, xy = a
    n = na + 1.0
    share = 1.0 / n
    dx, dy = x - mean_x, y - mean_y
    wx, wy = dx * (na * share), dy * (na * share)
    return n, mean_x + dx * share, mean_y + dy * share, xx + dx * wx, yy + dy * wy, xy + dy * wx


_LIFT: dict[type, Callable[..., Any]] = {
    Sum: lift_value,
    Max: lift_value,
    Min: lift_value,
    Moments: lift_moments,
    CoMoments: lift_comoments,
    Shape: lift_shape,
    Product: lift_product,
    ArgMax: lift_row,
    ArgMin: lift_row,
    Decayed: lift_decayed,
}
_COMBINE: dict[type, Callable[..., Any]] = {
    Sum: add,
    Max: _max,
    Min: _min,
    Moments: combine_moments,
    CoMoments: combine_comoments,
    Shape: combine_shape,
    Product: combine_product,
    ArgMax: later_max,
    ArgMin: later_min,
    Decayed: combine_decayed,
}
_TAKE_IN: dict[type, Callable[..., Any]] = {CoMoments: take_in_comoments}  # one row, where the order does not matter
_INVERT: dict[type, Callable[..., Any]] = {Sum: _difference}
_LOWER: dict[type, Callable[..., Any]] = {}

STATE: dict[type, Any] = {  # dtype of a partial, or a tuple of them; None: that of the (first) column
    Sum: None,
    Max: None,
    Min: None,
    Moments: (np.float64, None, np.float64, np.float64),
    CoMoments: (np.float64,) * 6,
    Shape: (np.float64,) * 5,
    Product: (np.float64, np.int64),
    ArgMax: (None, SECOND),
    ArgMin: (None, SECOND),
    Decayed: (np.float64, np.float64, np.int64),
}


def register(operator: type, lift: Any, combine: Any, dtypes: Any, take_in: Any = None) -> None:
    """An operator of another kernel file: what is compiled for it is kept on disk, as for those here.

    take_in: combine, of a partial with one row, where that is less work and rows may come in any order.
    """
    _LIFT[operator], _COMBINE[operator], STATE[operator] = lift, combine, dtypes
    if take_in is not None:
        _TAKE_IN[operator] = take_in


def define(name: str, lift: Any, combine: Any, lower: Any, invert: Any, dtypes: Any) -> Any:
    """A new operator made of jitted functions; lives in this process only."""
    operator = NamedTuple(name, [("tag", int)])  # type: ignore[misc]
    operator.local = True  # type: ignore[attr-defined]
    register(operator, lift, combine, dtypes)
    _LOWER[operator] = lower
    if invert is not None:
        _INVERT[operator] = invert
    return operator(0)


def invertible(op: Any) -> bool:
    return type(op) in _INVERT


def lift(op, columns, i):
    """The partial of row i: `columns` is an array, or a tuple of arrays for operators over several."""
    f = _LIFT[type(op)]
    return f(*(c[i] for c in columns)) if isinstance(columns, tuple) else f(columns[i])


def combine(op, a, b):
    """The partial of a's rows followed by b's."""
    return _COMBINE[type(op)](a, b)


def append(op, a, columns, i):
    """The partial of a's rows followed by row i."""
    return combine(op, a, lift(op, columns, i)) if type(op) not in _TAKE_IN else _taken_in(op, a, columns, i)


def prepend(op, a, columns, i):
    """The partial of row i followed by a's rows."""
    return combine(op, lift(op, columns, i), a) if type(op) not in _TAKE_IN else _taken_in(op, a, columns, i)


def _taken_in(op, a, columns, i):
    return _TAKE_IN[type(op)](a, *(c[i] for c in (columns if isinstance(columns, tuple) else (columns,))))


def invert(op, a, b):
    """The partial of a without b, its beginning."""
    return _INVERT[type(op)](a, b)


def lower(op, a):
    """The answer a partial stands for (user-defined operators; ours are lowered by whole columns)."""
    return _LOWER[type(op)](a)


def load(state, i):
    """Partial i of a state."""
    return tuple(s[i] for s in state) if isinstance(state, tuple) else state[i]


def store(state, i, partial):
    """Set partial i of a state; what nobody will read of it is None in place of an array."""
    if isinstance(state, tuple):
        for s, p in zip(state, partial, strict=True):
            if s is not None:
                s[i] = p
    else:
        state[i] = partial


@overload(lift)
def _lift_overload(op, columns, i):
    f = _LIFT[op.instance_class]
    if isinstance(columns, types.BaseTuple):
        if len(columns) == 2:
            return lambda op, columns, i: f(columns[0][i], columns[1][i])
        return lambda op, columns, i: f(columns[0][i])
    return lambda op, columns, i: f(columns[i])


@overload(combine)
def _combine_overload(op, a, b):
    f = _COMBINE[op.instance_class]
    return lambda op, a, b: f(a, b)


def _take_in_overload(op, columns):
    """One row as `take_in` of an operator takes it, or None: it has none."""
    f = _TAKE_IN.get(op.instance_class)
    if f is None:
        return None
    if isinstance(columns, types.BaseTuple):
        return lambda op, a, columns, i: f(a, columns[0][i], columns[1][i])
    return lambda op, a, columns, i: f(a, columns[i])


@overload(append)
def _append_overload(op, a, columns, i):
    return _take_in_overload(op, columns) or (lambda op, a, columns, i: combine(op, a, lift(op, columns, i)))


@overload(prepend)
def _prepend_overload(op, a, columns, i):
    return _take_in_overload(op, columns) or (lambda op, a, columns, i: combine(op, lift(op, columns, i), a))


@overload(invert)
def _invert_overload(op, a, b):
    f = _INVERT[op.instance_class]
    return lambda op, a, b: f(a, b)


@overload(lower)
def _lower_overload(op, a):
    f = _LOWER[op.instance_class]
    return lambda op, a: f(a)


@overload(load)
def _load_overload(state, i):
    if not isinstance(state, types.BaseTuple):
        return lambda state, i: state[i]
    if len(state) == 1:
        return lambda state, i: (state[0][i],)
    return lambda state, i: (state[0][i],) + load(state[1:], i)


@overload(store)
def _store_overload(state, i, partial):
    """Writes a partial to place i of its array, or the scalars of a tuple to place i of one array each."""
    if not isinstance(state, types.BaseTuple):

        def scalar(state, i, partial):
            state[i] = partial

        return scalar

    if len(state) == 0:
        return lambda state, i, partial: None
    if isinstance(state[0], types.NoneType):
        return lambda state, i, partial: store(state[1:], i, partial[1:])
    if len(state) == 1:

        def last(state, i, partial):
            state[0][i] = partial[0]

        return last

    def first(state, i, partial):
        state[0][i] = partial[0]
        store(state[1:], i, partial[1:])

    return first


def state_dtypes(op: Any, of_columns: Any) -> Any:
    """The dtype of a partial, or a tuple of them. of_columns: the dtype of the column, or of each of them."""
    first, *others = of_columns if isinstance(of_columns, tuple) else (of_columns,)
    dtypes = STATE[type(op)]
    if isinstance(dtypes, tuple):
        return tuple(first if each is None else others[0] if each is SECOND else each for each in dtypes)
    return dtypes or first


def empty_state(op: Any, of_columns: Any, size: int, read: tuple[int, ...] | None = None) -> Any:
    """Room for `size` partials: an array, or a tuple of arrays. read: the places in it that somebody will read."""
    dtypes = state_dtypes(op, of_columns)
    if not isinstance(dtypes, tuple):
        return np.empty(size, dtypes)
    return tuple(np.empty(size, each) if read is None or i in read else None for i, each in enumerate(dtypes))


@kernel
def lift_each(op, columns, size, at):
    """Lift rows 0 .. size - 1, for what that may raise; `at` then says of which row."""
    for i in range(size):
        at[0] = i
        lift(op, columns, i)


@kernel
def lower_each(op, n, state, out):
    """The answers of partials of n rows each; those of no rows are left alone."""
    for i in range(n.size):
        if n[i] > 0:
            out[i] = lower(op, load(state, i))
