"""What is known from other SQL, or misspelt, and what to write instead."""

import difflib
from collections.abc import Iterable

from sqlglot import exp

STATEMENT = "SELECT SUM(volume) FROM trades [RANGE 5 MINUTES]"
WINDOWS = "[RANGE 5 MINUTES], [ROWS 1000], [UNBOUNDED], [SINCE 1 DAY], [FREQUENCY 1 MINUTE] or [FRAME …]"
_AGGREGATE = "[FRAME UNTIL SUM(volume) >= 25], or [FRAME WHILE MAX(x) - MIN(x) < 3 AND COUNT(*) < 100]"
FRAMES = {
    "WHERE": "[FRAME WHERE drop_pct > 0.3 AND load > 2 FOR 2 MINUTES AND 20 TUPLES]",
    "UNTIL": _AGGREGATE,
    "WHILE": _AGGREGATE,
    "DELTA": "[FRAME DELTA x 0.05], or [FRAME DELTA x 0.1, y 0.2 MEASURE RANGE]",
    "GRID": "[FRAME GRID x 4.25, y 4.2], or [FRAME GRID x (20, 40, 60)]",
    "SESSION": "[FRAME SESSION 30 MINUTES]",
    "STATE": "[FRAME STATE status]",
    "FROM": "[FRAME FROM x > 5 TO x < 2]",
}
FILL_FROM = "FROM reports [FRAME WHERE x > 0.3] FILL FROM messages AS m BEFORE 2 MINUTES AFTER 1 MINUTE"
LENGTHS = "FOR 2 MINUTES AND 20 TUPLES, or FOR AT LEAST 3 ROWS AT MOST 1 HOUR"
ANY_FRAME = "[FRAME WHERE x > 0.3 FOR 2 MINUTES], [FRAME UNTIL SUM(v) >= 25], [FRAME DELTA x 0.05] or [FRAME GRID x 4]"
WORDS = ("ROWS", "RANGE", "UNBOUNDED", "SINCE", "FREQUENCY", "EVERY", "FRAME")  # that begin what stands in brackets
CLAUSES = ("FROM", "WHERE", "GROUP BY", "HAVING")  # in this order
VALUE = "a column, a number, or text in '…'"
NO_CLOCK = "a time: TIMESTAMP '2024-03-01 09:30:00'"
_SLICE = "take a slice of the table of answers"
_APART = "several statements, separated by ;"
_JOIN = "join the streams first, and read the result as one"

# Words that begin a clause elsewhere: what it is called, and what to write.
UNSUPPORTED: dict[str, tuple[str, str]] = {
    "ORDER": ("ORDER BY", "sort the table of answers"),
    "SORT": ("SORT BY", "sort the table of answers"),
    "LIMIT": ("LIMIT", _SLICE),
    "OFFSET": ("OFFSET", _SLICE),
    "FETCH": ("FETCH", _SLICE),
    "TOP": ("TOP", _SLICE),
    "UNION": ("UNION", _APART),
    "EXCEPT": ("EXCEPT", _APART),
    "INTERSECT": ("INTERSECT", _APART),
    "WINDOW": ("WINDOW", "SUM(x) OVER [RANGE 5 MINUTES]"),
    "QUALIFY": ("QUALIFY", "HAVING"),
    "WITH": ("WITH", "FROM (SELECT …) [RANGE 1 HOUR]"),
    "INTO": ("INTO", "the answers are returned; swag run --out writes them"),
    "FOR": ("FOR UPDATE", "leave it out"),
    "PIVOT": ("PIVOT", "one aggregate for each column: SUM(x) FILTER (WHERE …)"),
    "UNPIVOT": ("UNPIVOT", "turn columns to rows before, and read the result"),
    "TABLESAMPLE": ("TABLESAMPLE", "FROM (SELECT * FROM trades WHERE …) [ROWS 1000]"),
    "MATCH_RECOGNIZE": (
        "MATCH_RECOGNIZE here",
        "FROM ticks MATCH_RECOGNIZE ( … ), right behind the name of the stream",
    ),
    **dict.fromkeys(
        ("JOIN", "LEFT", "RIGHT", "FULL", "INNER", "OUTER", "CROSS", "NATURAL", "ASOF", "LATERAL", "SEMI", "ANTI"),
        ("JOIN", _JOIN),
    ),
}

# Statements that are no SELECT.
OTHERS: dict[str, str] = {
    **dict.fromkeys(("INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE"), "engine.append(events); a statement only asks"),
    **dict.fromkeys(("CREATE", "ALTER", "DROP"), "engine.register, engine.unregister; a statement only asks"),
    **dict.fromkeys(("EXPLAIN", "DESCRIBE", "SHOW"), "engine.explain(), or swag explain queries.sql"),
    "FROM": STATEMENT,
    "(": "the statement without parentheses around it",
}

OPERATORS = {"=>": ">=", "=<": "<=", "&&": "AND", "!": "NOT", "->": ">", "~=": "<>", "^=": "<>", ":=": "="}

# Expressions that are read, but mean nothing here.
NODES: dict[type, tuple[str, str]] = {
    exp.SimilarTo: ("SIMILAR TO", "LIKE, in WHERE"),
    exp.RegexpLike: ("~", "REGEXP_MATCHES(s, '^a.*b$')"),
    exp.Placeholder: ("a parameter", "the value itself"),
    exp.Parameter: ("a parameter", "the value itself"),
    exp.SessionParameter: ("a parameter", "the value itself"),
    exp.Exists: ("EXISTS", "FROM (SELECT …) [RANGE 1 HOUR]"),
    exp.IgnoreNulls: ("IGNORE NULLS", "leave it out: nulls are always skipped"),
    exp.RespectNulls: ("RESPECT NULLS", "leave it out: nulls are always skipped"),
    exp.Order: ("ORDER BY in a call", "leave it out: events are in order of ts"),
    exp.Lambda: ("a lambda", "aggregates and columns"),
    exp.ArrayOverlaps: ("&&", "AND"),
    exp.Any: ("ANY", "IN (1, 2, 3)"),
    exp.All: ("ALL", "IN (1, 2, 3)"),
    **dict.fromkeys(
        (exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot, exp.BitwiseLeftShift, exp.BitwiseRightShift),
        ("an operator on bits", "AND, OR, NOT of conditions; of bits, a column of the events"),
    ),
}

_TEXT = "LEFT(s, 3), SUBSTRING(s, 2, 3), REPLACE(s, 'a', 'b'), TRIM(s), UPPER(s); else a column of the events"
_TIME = "EXTRACT(year FROM ts), DATE_TRUNC('day', ts)"

# Functions of other dialects over single values, and what they are called here.
ELSEWHERE: dict[str, str] = {
    **dict.fromkeys(("IFF",), "CASE WHEN x > 1 THEN 1 ELSE 0 END"),
    **dict.fromkeys(("DATEADD", "DATE_ADD", "TIMESTAMPADD"), "ts + INTERVAL '1' DAY"),
    **dict.fromkeys(("DATE_SUB", "DATESUB"), "ts - INTERVAL '1' DAY"),
    **dict.fromkeys(("DATEDIFF", "TIMESTAMPDIFF"), "DATE_DIFF('day', a, b)"),
    **dict.fromkeys(
        ("GETDATE", "NOW", "CURRENT_TIMESTAMP", "CURRENT_DATE", "SYSDATE", "GETUTCDATE", "TODAY"),
        NO_CLOCK,
    ),
    **dict.fromkeys(("ISNULL", "NVL2"), "COALESCE(x, 0), or x IS NULL"),
    **dict.fromkeys(("ZEROIFNULL",), "COALESCE(x, 0)"),
    **dict.fromkeys(("DIV0", "DIV0NULL"), "CASE WHEN y = 0 THEN 0 ELSE x / y END"),
    **dict.fromkeys(("SAFE_DIVIDE", "TRY_DIVIDE"), "x / NULLIF(y, 0)"),
    **dict.fromkeys(("STRPOS", "INSTR", "CHARINDEX", "LOCATE", "POSITION"), "CONTAINS(s, 'a')"),
    **dict.fromkeys(("EPOCH_MS", "EPOCH_US", "EPOCH_NS", "UNIX_TIMESTAMP", "TO_UNIXTIME"), "EPOCH(ts), in seconds"),
    **dict.fromkeys(("STRFTIME", "DATE_FORMAT", "DAYNAME", "MONTHNAME", "FORMAT_TIMESTAMP"), _TIME),
    **dict.fromkeys(
        ("TIME_BUCKET", "DATE_BIN", "TUMBLE", "HOP"),
        "DATE_TRUNC('minute', ts); windows of time are FROM t [RANGE 5 MINUTES, EVERY 5 MINUTES]",
    ),
    **dict.fromkeys(
        ("SPLIT_PART", "LPAD", "RPAD", "REPEAT", "CONCAT_WS", "INITCAP", "REGEXP_REPLACE", "REGEXP_EXTRACT", "FORMAT"),
        _TEXT,
    ),
    **dict.fromkeys(("MID",), "SUBSTRING(s, 2, 3)"), **dict.fromkeys(("RLIKE",), "REGEXP_MATCHES(s, '^a')"),
    **dict.fromkeys(("SQUARE",), "x * x"), **dict.fromkeys(("DEGREES",), "x * 180 / PI()"),
    **dict.fromkeys(("RADIANS",), "x * PI() / 180"), **dict.fromkeys(("XOR",), "a <> b, of conditions"),
    **dict.fromkeys(("TO_TIMESTAMP", "FROM_UNIXTIME"), "CAST(s AS TIMESTAMP), of text"),
    **dict.fromkeys(("MAKE_DATE", "DATE_FROM_PARTS"), "DATE '2024-03-01'"),
    "DECODE": "CASE x WHEN 1 THEN 'a' ELSE 'b' END",
    "TO_NUMBER": "CAST(x AS DOUBLE)", "TO_CHAR": "CAST(x AS TEXT)", "TO_DATE": "CAST(x AS DATE)",
    "RATIO_TO_REPORT": "x / SUM(x) OVER (PARTITION BY k)",
}  # fmt: skip

# Expressions over aggregates whose parts are wrong, and how they are written.
WRITTEN: dict[type, str] = {
    exp.Not: "NOT of a condition: NOT SUM(x) > 1",
    exp.And: "AND of conditions: SUM(x) > 1 AND COUNT(*) > 2",
    exp.Or: "OR of conditions: SUM(x) > 1 OR COUNT(*) > 2",
    exp.In: "SUM(x) IN (1, 2, 3)",
    exp.Is: "SUM(x) IS NULL, or IS NOT NULL",
    exp.Null: "SUM(x) IS NULL, or COALESCE(SUM(x), 0)",
    exp.Cast: "DATE '2024-03-01', TIMESTAMP '2024-03-01 09:30:00', DECIMAL '0.98'",
    exp.Interval: "INTERVAL '90' SECONDS",
    exp.Star: "COUNT(*)",
    exp.Between: "SUM(x) BETWEEN 1 AND 5",
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul, exp.Div), "aggregates and numbers: SUM(x) / COUNT(*) + 1"),
    **dict.fromkeys(
        (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.EQ, exp.NEQ), "one comparison at a time: SUM(x) > 1 AND SUM(x) < 5"
    ),
}


def meant(word: str, known: Iterable[str], least: float = 0.6) -> str:
    """The known word that a misspelt one is close to; nothing where none is."""
    close = difflib.get_close_matches(word.upper(), list(known), n=1, cutoff=least)
    return close[0] if close else ""
