"""User-defined aggregates: plain functions become an operator that every structure can hold."""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.core import types
from numba.core.errors import NumbaError

from kernels import monoids
from swag.aggregates import UserDefined
from swag.errors import BadQuery

_compiled: dict[int, Any] = {}


def compiled(user: UserDefined) -> Any:
    """The operator of a user-defined aggregate, compiled once per process."""
    if user.number not in _compiled:
        cast = _caster(user.identity)
        lift, combine = _then(_jitted(user.lift), cast), _then2(_jitted(user.combine), cast)
        invert = None if user.invert is None else _then2(_jitted(user.invert), cast)
        lower = _jitted(user.lower)
        _try_out(user, lift, combine, lower)
        shape = tuple(map(_dtype, user.identity)) if isinstance(user.identity, tuple) else _dtype(user.identity)
        _compiled[user.number] = monoids.define(f"UserDefined{user.number}", lift, combine, lower, invert, shape)
    return _compiled[user.number]


def is_exact(user: UserDefined) -> bool:
    """Partials of integers only: what was added can be taken off again without a trace."""
    parts = user.identity if isinstance(user.identity, tuple) else (user.identity,)
    return all(_dtype(part) is np.int64 for part in parts)


def _try_out(user: UserDefined, lift: Any, combine: Any, lower: Any) -> None:
    if not hasattr(lift, "compile"):  # without JIT there is nothing to try
        return
    try:
        lift.compile((types.float64,))
        partial = lift.overloads[lift.signatures[0]].signature.return_type
        combine.compile((partial, partial))
        lower.compile((partial,))
    except NumbaError as why:
        reason = str(why).strip().splitlines()[0]
        raise BadQuery(
            f"the functions of a user-defined aggregate do not compile: {reason}",
            "only numbers, tuples of numbers, math and NumPy: lift(x), combine(a, b), lower(a)",
        ) from None


def _jitted(function: Callable[..., Any]) -> Any:
    return function if hasattr(function, "py_func") else numba.njit(function)


def _dtype(number: Any) -> type:
    return np.int64 if isinstance(number, int | np.integer) and not isinstance(number, bool) else np.float64


def _caster(identity: Any) -> Any:
    """A jitted function that gives a partial the types of `identity`, so that lift=lambda x: 1 may mean 1.0."""
    if not isinstance(identity, tuple):
        return (
            numba.njit(lambda a: np.int64(a)) if _dtype(identity) is np.int64 else numba.njit(lambda a: np.float64(a))
        )
    first = _caster(identity[0])
    if len(identity) == 1:
        return numba.njit(lambda a: (first(a[0]),))
    rest = _caster(identity[1:])
    return numba.njit(lambda a: (first(a[0]),) + rest(a[1:]))


def _then(function: Any, cast: Any) -> Any:
    return numba.njit(lambda x: cast(function(x)))


def _then2(function: Any, cast: Any) -> Any:
    return numba.njit(lambda a, b: cast(function(a, b)))
