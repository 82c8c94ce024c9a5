"""User-defined aggregates: plain functions become an operator that every structure can hold.

lift(x)         x is an int64 where the column holds integers or bools, a float64 where it holds floats
combine(a, b)   partials have the types of `identity`: int64 or float64, one or a tuple of them
lower(a)        gives a number; answers are float64
"""

import threading
from typing import Any

import numpy as np

from kernels.compile.user_functions import checked
from kernels.operators import monoids
from swag.query.kind import UserDefined

_compiled: dict[int, Any] = {}
_lock = threading.Lock()  # chunks of stored events ask at the same time


def compiled(user: UserDefined) -> Any:
    """The operator of a user-defined aggregate, made once per process."""
    with _lock:
        if user.number not in _compiled:
            _compiled[user.number] = _operator(user)
        return _compiled[user.number]


def _operator(user: UserDefined) -> Any:
    partial = tuple(map(dtype_of, user.identity)) if isinstance(user.identity, tuple) else dtype_of(user.identity)
    lift, combine = checked(user.lift, partial, 1), checked(user.combine, partial, 2)
    invert = None if user.invert is None else checked(user.invert, partial, 2)
    lower = checked(user.lower, np.float64, 1)
    return monoids.define(f"UserDefined{user.number}", lift, combine, lower, invert, partial)


def is_exact(user: UserDefined) -> bool:
    """Partials of integers only: what was added can be taken off again without a trace."""
    parts = user.identity if isinstance(user.identity, tuple) else (user.identity,)
    return all(dtype_of(part) is np.int64 for part in parts)


def dtype_of(number: Any) -> type:
    return np.int64 if isinstance(number, int | np.integer) and not isinstance(number, bool) else np.float64
