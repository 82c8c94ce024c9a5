"""The kinds of aggregates, a file for each that are computed from the same: what users call, and how it is answered."""

from swag.query.kinds.ages import age
from swag.query.kinds.comoments import corr, cov
from swag.query.kinds.counts import count
from swag.query.kinds.decayed import decayed_count, decayed_mean, decayed_sum
from swag.query.kinds.distinct import count_distinct, mode
from swag.query.kinds.ends import first, last
from swag.query.kinds.extreme_rows import arg_max, arg_min
from swag.query.kinds.extremes import max, min
from swag.query.kinds.flags import all, any, count_if
from swag.query.kinds.lists import first_n, last_n
from swag.query.kinds.moments import std, var
from swag.query.kinds.products import product
from swag.query.kinds.quantiles import median, quantile
from swag.query.kinds.regression import intercept, r2, slope
from swag.query.kinds.shape import kurtosis, skew
from swag.query.kinds.sums import mean, sum, wmean
from swag.query.kinds.user_defined import aggregate

__all__ = [
    "age",
    "aggregate",
    "all",
    "any",
    "arg_max",
    "arg_min",
    "corr",
    "count",
    "count_distinct",
    "count_if",
    "cov",
    "decayed_count",
    "decayed_mean",
    "decayed_sum",
    "first",
    "first_n",
    "intercept",
    "kurtosis",
    "last",
    "last_n",
    "max",
    "mean",
    "median",
    "min",
    "mode",
    "product",
    "quantile",
    "r2",
    "skew",
    "slope",
    "std",
    "sum",
    "var",
    "wmean",
]
