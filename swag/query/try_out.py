"""Are the functions of a user-defined aggregate fit? Each is tried with the types that it will be given."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np
import pyarrow as pa
from numba import typeof
from numba.core import types

from kernels.compile.user_functions import returned, shape_of
from swag.errors import BadQuery
from swag.query.aggregates import Aggregate
from swag.query.user_defined import dtype_of
from swag.tables.columns import is_discrete

WITHOUT_JIT = bool(numba.config.DISABLE_JIT)  # type: ignore[attr-defined]
SAMPLES = {types.int64: np.int64(1), types.float64: np.float64(1)}
_RULE = "lift(x), combine(a, b), lower(a) of numbers, tuples of numbers, math, NumPy and what is under @numba.njit"


def try_out(aggregate: Aggregate, kind: pa.DataType | None = None) -> None:
    """Raise if the functions can not serve a column of this type (None: not known yet; of any)."""
    if aggregate.user is None:
        return
    if kind is not None and not pa.types.is_null(kind):
        _try_of(aggregate, types.int64 if is_discrete(kind) else types.float64)
        return
    try:
        _try_of(aggregate, types.float64)
    except BadQuery as why:  # bits, say, are of integers alone
        try:
            _try_of(aggregate, types.int64)
        except BadQuery:
            raise why from None


@cache
def _try_of(aggregate: Aggregate, column: Any) -> None:
    """Try lift, combine, lower and invert of a user-defined aggregate on a column of this type of Numba's."""
    user = aggregate.user
    assert user is not None
    partial = _type_of(user.identity)
    wanted = shape_of(user.identity)
    _fits(aggregate, "lift", user.lift, (column,), wanted)
    _fits(aggregate, "combine", user.combine, (partial, partial), wanted)
    _fits(aggregate, "lower", user.lower, (partial,), 0)
    if user.invert is not None:
        _fits(aggregate, "invert", user.invert, (partial, partial), wanted)


def _type_of(identity: Any) -> Any:
    if isinstance(identity, tuple):
        return types.BaseTuple.from_types([_type_of(part) for part in identity])
    return types.int64 if dtype_of(identity) is np.int64 else types.float64


def _fits(aggregate: Aggregate, name: str, function: Callable[..., Any], given: tuple[Any, ...], wanted: Any) -> None:
    """wanted: as `shape_of` says it."""
    try:
        found = _called(function, given) if WITHOUT_JIT else returned(function, given)
    except Exception as why:
        shown = ", ".join(map(str, given))
        raise BadQuery(f"{name} of {aggregate} does not compile for ({shown}): {essence(why)}", _RULE) from None
    if found is not None and shape_of(found) != wanted:
        like = "an answer" if name == "lower" else f"identity={aggregate.user and aggregate.user.identity}"
        raise BadQuery(
            f"{name} of {aggregate} gives {_shown(found)}, but {like} is {_described(wanted)}.",
            "lower=lambda a: a[0]" if name == "lower" else "the same shape in identity, lift and combine",
        )


def _called(function: Callable[..., Any], given: tuple[Any, ...]) -> Any:
    """Where nothing is compiled: the type of what it gives for a sample; None if it gives nothing for that."""
    try:
        return typeof(function(*map(_sample, given)))
    except Exception:
        return None


def _sample(kind: Any) -> Any:
    return tuple(_sample(each) for each in kind) if isinstance(kind, types.BaseTuple) else SAMPLES[kind]  # type: ignore[attr-defined]


def _described(shape: int | None) -> str:
    return "a number" if not shape else f"a tuple of {shape} number{'s' * (shape > 1)}"


def _shown(found: Any) -> str:
    if shape_of(found) is not None:
        return _described(shape_of(found))
    if isinstance(found, types.Optional):
        return "None in some cases"
    return {types.none: "None"}.get(found) or f"{found}"


def essence(why: Exception) -> str:
    """The line of Numba's many that says what is wrong."""
    lines = [line.strip() for line in str(why).splitlines()]
    said = [line for line in lines if line and not line.startswith(("Failed in ", "- Resolution failure", "During:"))]
    if not said:
        return type(why).__name__
    if said[0].endswith("found for signature:"):  # which follows
        return f"there is no {next((line[4:] for line in said if line.startswith('>>> ')), said[0])}"
    return said[0]
