"""The functions of statements: what each takes, and how it is written."""

from swag.query import kinds  # noqa: F401  (all there are)
from swag.query.kind import KINDS, Function

AGGREGATES: dict[str, Function] = {name: of for kind in KINDS.values() for name, of in kind.statements.items()}

PERCENTILE = "PERCENTILE_CONT(0.99) WITHIN GROUP (ORDER BY x)"
EXAMPLES: dict[str, str] = {
    **{name: function.example for name, function in AGGREGATES.items()},
    "PERCENTILE_CONT": PERCENTILE,
    "ABS": "ABS(LAST(x))",
    "COALESCE": "COALESCE(SUM(x), 0)",
}  # of every function, with the column named x

_FIRST_NAMES = {function.build: name for name, function in reversed(AGGREGATES.items())}  # of several for the same
THERE_ARE = ", ".join([*sorted(_FIRST_NAMES.values()), "ABS", "COALESCE"])
_FILTERED = "SUM(x) FILTER (WHERE …)"
_OWN = f"sw.aggregate(…) in Python, or one of {THERE_ARE}"
_OVER = "OVER (PARTITION BY k ORDER BY ts), for a row per event"
NOT_OURS: dict[str, str] = {
    **dict.fromkeys(("PERCENTILE_DISC", "APPROX_QUANTILE", "PERCENTILE", "QUANTILE_DISC"), "QUANTILE(x, 0.99)"),
    **dict.fromkeys(("QUANTILE_CONT", "APPROX_PERCENTILE"), PERCENTILE),
    **dict.fromkeys(("GREATEST",), "MAX(x)"),
    **dict.fromkeys(("LEAST",), "MIN(x)"),
    **{name: f"{name}() {_OVER}" for name in ("ROW_NUMBER", "RANK", "DENSE_RANK", "PERCENT_RANK", "CUME_DIST")},
    **{name: f"{name}(x) {_OVER}" for name in ("LAG", "LEAD")},
    **{"NTILE": f"NTILE(4) {_OVER}", "NTH_VALUE": f"NTH_VALUE(x, 2) {_OVER}"},
    **dict.fromkeys(
        ("ROUND", "FLOOR", "CEIL", "SQRT", "LN", "LOG", "EXP", "SIGN", "CAST", "TRY_CAST"),
        "compute it of the answers; of single events it is, inside: SUM(ABS(x))",
    ),
    **dict.fromkeys(
        ("UPPER", "LOWER", "LENGTH", "CONCAT", "SUBSTRING", "TRIM", "EXTRACT", "DATE_TRUNC", "DATE_PART", "NOW"),
        "it is about single events: inside of an aggregate, LAST(UPPER(x)), or in WHERE",
    ),
    **dict.fromkeys(("STRING_AGG", "ARRAY_AGG", "LIST", "GROUP_CONCAT"), "LAST_N(x, 100)"),
    **dict.fromkeys(("ANY_VALUE",), "LAST(x)"),
    **dict.fromkeys(("IF", "IIF", "NULLIF", "DECODE"), f"{_FILTERED}, or COALESCE(SUM(x), 0)"),
    **dict.fromkeys(("IFNULL", "NVL"), "COALESCE(SUM(x), 0)"),
    **dict.fromkeys(("SUM_IF", "SUMIF"), _FILTERED),
    **dict.fromkeys(("AVERAGE",), "AVG(x)"),
    **dict.fromkeys(("TOTAL",), "SUM(x)"),
    **dict.fromkeys(("POWER", "POW", "SQUARE"), "LAST(x) * LAST(x)"),
    **dict.fromkeys(("MAD", "ENTROPY", "KURTOSIS_POP"), _OWN),
    **dict.fromkeys(("REGR_SXX", "REGR_SYY", "REGR_SXY"), "VAR_POP(x) * COUNT(x), or COVAR_POP(y, x) * COUNT(x)"),
    **dict.fromkeys(("REGR_AVGX", "REGR_AVGY"), "AVG(x)"),
    **dict.fromkeys(("VWAP", "WAVG", "WEIGHTED_AVG"), "WMEAN(price, volume)"),
    **dict.fromkeys(("EVERY",), "BOOL_AND(x)"),
    **dict.fromkeys(("SOME",), "BOOL_OR(x)"),
}  # what other SQL has, and what comes nearest to it here
