"""How DEFINE and MEASURES are parsed: as DuckDB's SQL, but for aggregates that do not grow with a match.

Those stay calls by their names, with all of their arguments. sqlglot has classes for many, writes some otherwise than
they were, and drops what it does not know of them: the 'linear' of QUANTILE(x, 0.99, 'linear').
"""

from typing import Any

from sqlglot.dialects.duckdb import DuckDB
from sqlglot.parsers.duckdb import DuckDBParser

from swag.sql.functions import AGGREGATES, NOT_OURS

GROWING = ("COUNT", "SUM", "AVG", "MIN", "MAX", "FIRST", "LAST")
_CALLS = {*AGGREGATES, *NOT_OURS, "PERCENTILE_CONT"}.difference(GROWING)


def _without_calls(known: dict[str, Any]) -> dict[str, Any]:
    return {name: read for name, read in known.items() if name not in _CALLS}


class MatchParser(DuckDBParser):
    """Knows those aggregates alone that grow."""

    FUNCTIONS = _without_calls(DuckDBParser.FUNCTIONS)
    FUNCTION_PARSERS = _without_calls(DuckDBParser.FUNCTION_PARSERS)


class MatchDialect(DuckDB):
    """Registered with sqlglot as "matchdialect"."""

    Parser = MatchParser
