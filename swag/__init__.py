"""swag: hundreds of sliding-window queries over one stream, answered from one small structure of arrays."""

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
)
from swag.evaluate import evaluate
from swag.query.aggregates import (
    Aggregate,
    aggregate,
    corr,
    count,
    cov,
    first,
    last,
    max,
    mean,
    median,
    min,
    quantile,
    std,
    sum,
    var,
    wmean,
)
from swag.query.every import Every
from swag.query.expression import Expression
from swag.query.query import Events, Query
from swag.query.windows import Range, Rows
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
    "Engine",
    "Events",
    "Every",
    "Expression",
    "OutOfOrder",
    "Query",
    "Range",
    "Rows",
    "SumOverflow",
    "SwagError",
    "TooFarBack",
    "UnknownColumn",
    "UnknownQuery",
    "aggregate",
    "corr",
    "count",
    "cov",
    "evaluate",
    "first",
    "last",
    "max",
    "mean",
    "median",
    "min",
    "quantile",
    "sql",
    "std",
    "sum",
    "var",
    "wmean",
]
