"""The functions of statements: what each takes, and how it is written."""

from collections.abc import Callable
from dataclasses import dataclass

from swag.query import aggregates as ag


@dataclass(frozen=True)
class Function:
    """An aggregate by SQL's name: so many columns, then at least and at most so many constants."""

    build: Callable[..., ag.Aggregate]
    example: str
    columns: int = 1
    least: int = 0
    most: int = 0

    @property
    def takes(self) -> str:
        columns = "a column" if self.columns == 1 else f"{self.columns} columns"
        columns += " or *" if self.build is ag.count else ""
        constants = "" if not self.most else " and a fraction" if self.least else ", perhaps with its ddof,"
        return columns + constants


def _of_one(build: Callable[..., ag.Aggregate], *names: str, most: int = 0) -> dict[str, Function]:
    return {name: Function(build, f"{name}(x)" + f", or {name}(x, 0)" * most, most=most) for name in names}


def _of_two(build: Callable[..., ag.Aggregate], *names: str, most: int = 0) -> dict[str, Function]:
    return {name: Function(build, f"{name}(x, y)" + f", or {name}(x, y, 0)" * most, 2, most=most) for name in names}


AGGREGATES: dict[str, Function] = {
    "COUNT": Function(ag.count, "COUNT(*), or COUNT(x)"),
    **_of_one(ag.sum, "SUM"),
    **_of_one(ag.mean, "AVG", "MEAN"),
    **_of_one(ag.min, "MIN"),
    **_of_one(ag.max, "MAX"),
    **_of_one(ag.first, "FIRST", "FIRST_VALUE"),
    **_of_one(ag.last, "LAST", "LAST_VALUE"),
    **_of_one(ag.median, "MEDIAN"),
    **_of_one(ag.var, "VAR", most=1),
    **_of_one(ag.var, "VARIANCE", "VAR_SAMP"),
    **_of_one(lambda x: ag.var(x, 0), "VAR_POP"),
    **_of_one(ag.std, "STD", most=1),
    **_of_one(ag.std, "STDDEV", "STDDEV_SAMP"),
    **_of_one(lambda x: ag.std(x, 0), "STDDEV_POP"),
    "WMEAN": Function(ag.wmean, "WMEAN(x, weight)", columns=2),
    **_of_two(ag.corr, "CORR"),
    **_of_two(ag.cov, "COV", most=1),
    **_of_two(ag.cov, "COVAR", "COVAR_SAMP"),
    **_of_two(lambda x, y: ag.cov(x, y, 0), "COVAR_POP"),
    "QUANTILE": Function(ag.quantile, "QUANTILE(x, 0.99), or QUANTILE(x, 0.99, 'linear')", least=1, most=2),
}

PERCENTILE = "PERCENTILE_CONT(0.99) WITHIN GROUP (ORDER BY x)"
EXAMPLES: dict[str, str] = {
    **{name: function.example for name, function in AGGREGATES.items()},
    "PERCENTILE_CONT": PERCENTILE,
    "ABS": "ABS(LAST(x))",
    "COALESCE": "COALESCE(SUM(x), 0)",
}  # of every function, with the column named x

THERE_ARE = "COUNT, SUM, AVG, MIN, MAX, FIRST, LAST, MEDIAN, QUANTILE, VAR, STD, WMEAN, COV, CORR, ABS, COALESCE"
_FILTERED = "SUM(x) FILTER (WHERE …)"
_OWN = f"sw.aggregate(…) in Python, or one of {THERE_ARE}"
NOT_OURS: dict[str, str] = {
    **dict.fromkeys(
        ("COUNT_DISTINCT", "APPROX_COUNT_DISTINCT", "APPROX_DISTINCT"),
        "COUNT(x), which counts every value, equal ones too",
    ),
    **dict.fromkeys(("PERCENTILE_DISC", "APPROX_QUANTILE", "PERCENTILE", "QUANTILE_DISC"), "QUANTILE(x, 0.99)"),
    **dict.fromkeys(("QUANTILE_CONT", "APPROX_PERCENTILE"), PERCENTILE),
    **dict.fromkeys(("ARG_MAX", "MAX_BY", "GREATEST"), "MAX(x)"),
    **dict.fromkeys(("ARG_MIN", "MIN_BY", "LEAST"), "MIN(x)"),
    **dict.fromkeys(("ROW_NUMBER", "RANK", "DENSE_RANK", "NTILE"), "COUNT(*) OVER [ROWS 1000]"),
    **dict.fromkeys(("LAG", "LEAD"), "FIRST(x) OVER [ROWS 2] is the value before the last"),
    **dict.fromkeys(
        ("ROUND", "FLOOR", "CEIL", "SQRT", "LN", "LOG", "EXP", "SIGN", "CAST", "TRY_CAST"),
        "compute it of the answers; of single events, as a column of theirs",
    ),
    **dict.fromkeys(
        ("UPPER", "LOWER", "LENGTH", "CONCAT", "SUBSTRING", "TRIM", "EXTRACT", "DATE_TRUNC", "DATE_PART", "NOW"),
        "compute it as a column of the events first",
    ),
    **dict.fromkeys(("STRING_AGG", "ARRAY_AGG", "LIST", "GROUP_CONCAT", "ANY_VALUE"), "LAST(x)"),
    **dict.fromkeys(("IF", "IIF", "NULLIF", "DECODE"), f"{_FILTERED}, or COALESCE(SUM(x), 0)"),
    **dict.fromkeys(("IFNULL", "NVL"), "COALESCE(SUM(x), 0)"),
    **dict.fromkeys(("COUNT_IF", "COUNTIF"), "COUNT(*) FILTER (WHERE …)"),
    **dict.fromkeys(("SUM_IF", "SUMIF"), _FILTERED),
    **dict.fromkeys(("AVERAGE",), "AVG(x)"),
    **dict.fromkeys(("TOTAL",), "SUM(x)"),
    **dict.fromkeys(("POWER", "POW", "SQUARE"), "LAST(x) * LAST(x)"),
    **dict.fromkeys(("MODE", "SKEWNESS", "SKEW", "KURTOSIS", "MAD", "ENTROPY", "PRODUCT"), _OWN),
    **dict.fromkeys(("REGR_SLOPE", "REGR_INTERCEPT", "REGR_R2"), "CORR(x, y), or COV(x, y)"),
    **dict.fromkeys(("VWAP", "WAVG", "WEIGHTED_AVG"), "WMEAN(price, volume)"),
    **dict.fromkeys(("BOOL_AND", "BOOL_OR", "EVERY"), "COUNT(*) FILTER (WHERE …)"),
}  # what other SQL has, and what comes nearest to it here
