"""Checks of what users hand in, made before it is compared, hashed or computed with: it may be anything."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from swag.errors import BadQuery

SMALLEST, LARGEST = -(2**63), 2**63 - 1  # whole numbers that fit 64 bits


def is_whole(value: Any) -> bool:
    """A whole number. A bool is none, nor is a timedelta64, which NumPy counts among its integers."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)


def is_number(value: Any) -> bool:
    """A whole number or a float, NaN and infinities among them."""
    return is_whole(value) or isinstance(value, float | np.floating)


def is_option(value: Any, options: Iterable[str]) -> bool:
    return isinstance(value, str) and value in options


def check_name(value: Any, what: str, hint: str) -> None:
    if not isinstance(value, str) or not value:
        raise BadQuery(f"{what}={value!r} is no name.", hint)


def key_columns(key: Any, what: str, hint: str) -> tuple[str, ...]:
    """The names of the columns of a key: one, or several in order. None: there is none."""
    names = () if key is None else tuple(key) if isinstance(key, list | tuple) else (key,)
    for name in names:
        if not isinstance(name, str) or not name:
            raise BadQuery(f"{what}={key!r}: {name!r} is no name of a column.", hint)
    if len(set(names)) < len(names):
        raise BadQuery(f"{what}={key!r} names a column twice.", hint)
    return names


def check_flag(value: Any, what: str) -> None:
    if not isinstance(value, bool):
        raise BadQuery(f"{what}={value!r} is neither True nor False.", f"{what}=True")


def as_list(values: Any, what: str, hint: str) -> list[Any]:
    """Several of something, from anything that can be gone through; a text is one thing."""
    if isinstance(values, Iterable) and not isinstance(values, str | bytes):
        try:
            return list(values)
        except TypeError:  # an array of no dimensions says that it can be, but can not
            pass
    raise BadQuery(f"{what} are {values!r}, not a list of {what}.", hint)
