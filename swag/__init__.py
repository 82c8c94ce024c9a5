"""swag: hundreds of sliding-window queries over one stream, answered from one small structure of arrays.

    >>> import swag as sw
    >>> engine = sw.Engine(ts="ts", key="symbol")
    >>> engine.register([sw.Query(sw.sum("volume"), sw.Range(m), name=f"volume_{m}") for m in (60, 300)])
    ['volume_60', 'volume_300']
    >>> engine.append({"ts": [10, 200], "symbol": ["ACME", "ACME"], "volume": [100, 250]})
    2
    >>> engine.lookup("volume_300", key="ACME")
    350

Aggregates (sw.sum, sw.mean, …) over windows (sw.Rows, sw.Range) are queries (sw.Query, sw.sql). They are answered all
at once over stored events (sw.evaluate), or continuously (sw.Engine). Errors raised on purpose are sw.SwagError.
"""

from typing import TYPE_CHECKING, NoReturn

from swag import siblings  # noqa: F401  (first: what follows needs our own packages)
from swag.engine import Engine
from swag.errors import (
    BadEvents,
    BadFunction,
    BadQuery,
    BadSnapshot,
    BadSQL,
    BadType,
    OutOfOrder,
    SumOverflow,
    SwagError,
    TooFarBack,
    UnknownColumn,
    UnknownQuery,
    nearest,
)
from swag.evaluate import evaluate
from swag.features import Col, col
from swag.query import kinds
from swag.query.aggregates import Aggregate
from swag.query.every import Every
from swag.query.expression import Expression
from swag.query.kinds import *  # noqa: F403
from swag.query.query import Events, Query
from swag.query.windows import Range, Rows, Since, Unbounded
from swag.sql import sql

__version__ = "0.1.0"

__all__ = [
    "Aggregate",
    "BadEvents",
    "BadFunction",
    "BadQuery",
    "BadSQL",
    "BadSnapshot",
    "BadType",
    "Col",
    "Engine",
    "Events",
    "Every",
    "Expression",
    "OutOfOrder",
    "Query",
    "Range",
    "Rows",
    "Since",
    "SumOverflow",
    "SwagError",
    "TooFarBack",
    "Unbounded",
    "UnknownColumn",
    "UnknownQuery",
    "col",
    "evaluate",
    "sql",
]
__all__ += kinds.__all__


if not TYPE_CHECKING:

    def __getattr__(name: str) -> NoReturn:
        """What there is not is often there under another name, as in SQL."""
        from swag.sql.functions import AGGREGATES

        known = AGGREGATES.get(name.upper())
        hint = f"sw.{known.build.__name__}" if known else f"sw.{nearest(name, __all__, 0.75)}".replace('"', "")
        raise AttributeError(f'swag has no "{name}".' + f" Hint: {hint}" * (hint != "sw."), name=name)


def __dir__() -> list[str]:
    """What is public, and nothing else."""
    return [*__all__, "__doc__", "__version__"]
