"""What happens when a function of a user-defined aggregate raises: an error that says where, with theirs as its cause.

lift       is run over a batch before anything is changed: the batch is refused
combine    while a structure is brought up to date: the rows are folded at every lookup from then on (planner.Group)
           of the rows in a window: the lookup is refused, as long as its window holds them
lower      the lookup is refused
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from kernels.compile.user_functions import NOT_WHOLE
from kernels.operators import monoids
from swag.errors import BadFunction, SwagError
from swag.query.aggregates import Aggregate
from swag.query.user_defined import compiled

_HINT = "functions that give a number for what a window may hold, or `where` to leave values out"


@contextmanager
def calling(aggregate: Aggregate | None, who: str) -> Iterator[None]:
    """What the functions of a user-defined aggregate raise here is a BadFunction. None: it is one of ours."""
    try:
        yield
    except SwagError:
        raise
    except Exception as why:
        if aggregate is None or aggregate.user is None:
            raise
        raise failed(who, why) from why


def failed(who: str, why: Exception) -> BadFunction:
    return BadFunction(f"{who} raised {_said(why)}.", _hint(why))


def _hint(why: Exception) -> str:
    return f"identity=0.0 where fractions are meant; else {_HINT}" if str(why) == NOT_WHOLE else _HINT


def _said(why: Exception) -> str:
    return f"{type(why).__name__}: {why}".rstrip(": .")


def check_lift(aggregate: Aggregate, who: str, values: np.ndarray, rows: np.ndarray | None, known: bool = True) -> None:
    """Refuse values that `lift` raises of. rows: where each is in the input (None: as they are here), if known."""
    assert aggregate.user is not None
    at = np.zeros(1, np.int64)
    try:
        monoids.lift_each(compiled(aggregate.user), values, values.size, at)
    except Exception as why:
        i = int(at[0])
        row = f"of row {i if rows is None else int(rows[i])}, " * known
        where = f'where "{aggregate.columns[0]}" is {values[i].item()}'
        raise BadFunction(f"{who}: {row}{where}, lift raised {_said(why)}.", _hint(why)) from why


def raised_by(
    aggregate: Aggregate, who: str, values: np.ndarray, rows: np.ndarray, known: bool, why: Exception
) -> BadFunction:
    """The error for what `lift` or `combine` raised of these rows; it names the row, if it was `lift`."""
    try:
        check_lift(aggregate, who, values, rows, known)
    except BadFunction as named:
        return named
    return failed(f"{who}: combine", why)
