"""The kinds of aggregates, a file for each that are computed from the same: what users call, and how it is answered."""

from swag.query.kinds.comoments import corr, cov
from swag.query.kinds.counts import count
from swag.query.kinds.ends import first, last
from swag.query.kinds.extremes import max, min
from swag.query.kinds.moments import std, var
from swag.query.kinds.quantiles import median, quantile
from swag.query.kinds.sums import mean, sum, wmean
from swag.query.kinds.user_defined import aggregate

__all__ = [
    "aggregate",
    "corr",
    "count",
    "cov",
    "first",
    "last",
    "max",
    "mean",
    "median",
    "min",
    "quantile",
    "std",
    "sum",
    "var",
    "wmean",
]
