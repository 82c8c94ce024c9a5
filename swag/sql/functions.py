"""The functions of statements: what each takes, and how it is written."""

from functools import lru_cache

from swag.errors import BadQuery
from swag.query import kinds  # noqa: F401  (all there are)
from swag.query.kind import KINDS, Function
from swag.tables.expressions.expression import compiled

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
    **dict.fromkeys(("QUANTILE_CONT", "APPROX_PERCENTILE"), "QUANTILE(x, 0.99, 'linear')"),
    **{name: f"{name}() {_OVER}" for name in ("ROW_NUMBER", "RANK", "DENSE_RANK", "PERCENT_RANK", "CUME_DIST")},
    **{name: f"{name}(x) {_OVER}" for name in ("LAG", "LEAD")},
    **{"NTILE": f"NTILE(4) {_OVER}", "NTH_VALUE": f"NTH_VALUE(x, 2) {_OVER}"},
    **dict.fromkeys(("STRING_AGG", "LISTAGG", "ARRAY_AGG", "LIST", "GROUP_CONCAT"), "LAST_N(x, 100)"),
    **dict.fromkeys(("ANY_VALUE",), "LAST(x)"),
    **dict.fromkeys(("SUM_IF", "SUMIF"), _FILTERED),
    **dict.fromkeys(("AVERAGE",), "AVG(x)"),
    **dict.fromkeys(("TOTAL",), "SUM(x)"),
    **dict.fromkeys(("MAD", "ENTROPY", "KURTOSIS_POP"), _OWN),
    **dict.fromkeys(("REGR_SXX", "REGR_SYY", "REGR_SXY"), "VAR_POP(x) * COUNT(x), or COVAR_POP(y, x) * COUNT(x)"),
    **dict.fromkeys(("REGR_AVGX", "REGR_AVGY"), "AVG(x)"),
    **dict.fromkeys(("VWAP", "WAVG", "WEIGHTED_AVG"), "WMEAN(price, volume)"),
    **dict.fromkeys(("EVERY",), "BOOL_AND(x)"),
    **dict.fromkeys(("SOME",), "BOOL_OR(x)"),
}  # what other SQL has, and what comes nearest to it here
_CALLS = ("()", "(x)", "(x, y)", "(x, 'a')", "('day', x)", "('day', x, y)", "(x, 'a', 'b')", "(x > 1, x, y)")


@lru_cache(maxsize=1 << 10)
def is_scalar(name: str) -> bool:
    """Is it a function of single values, which expressions over events know?"""
    return any(_is_known(name + arguments) for arguments in _CALLS)


def _is_known(call: str) -> bool:
    try:
        compiled(call)
    except BadQuery:
        return False
    return True
