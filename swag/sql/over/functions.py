"""The window functions there are, beside the aggregates that statements know anyway, and how each is written."""

from swag.sql.functions import AGGREGATES

POSITIONS = {
    "ROW_NUMBER": "ROW_NUMBER()", "RANK": "RANK()", "DENSE_RANK": "DENSE_RANK()", "PERCENT_RANK": "PERCENT_RANK()",
    "CUME_DIST": "CUME_DIST()", "NTILE": "NTILE(4)", "LAG": "LAG(x), LAG(x, 2) or LAG(x, 2, 0)",
    "LEAD": "LEAD(x), LEAD(x, 2) or LEAD(x, 2, 0)", "FIRST_VALUE": "FIRST_VALUE(x)", "LAST_VALUE": "LAST_VALUE(x)",
    "FIRST": "FIRST(x)", "LAST": "LAST(x)", "NTH_VALUE": "NTH_VALUE(x, 2)",
}  # fmt: skip
FURTHER = {"ANY_VALUE": "ANY_VALUE(x)", "QUANTILE_CONT": "QUANTILE_CONT(x, 0.99)"}  # that statements without OVER lack
ELSEWHERE = {  # functions of other dialects, and what they are called here
    **dict.fromkeys(("IFF", "IIF"), "CASE WHEN x > 1 THEN 1 ELSE 0 END"),
    **dict.fromkeys(("DATEADD", "DATE_ADD", "TIMESTAMPADD"), "ts + INTERVAL '1' DAY"),
    **dict.fromkeys(("DATEDIFF", "TIMESTAMPDIFF"), "DATE_DIFF('day', a, b)"),
    **dict.fromkeys(("GETDATE", "NOW", "CURRENT_TIMESTAMP", "SYSDATE"), "a time: TIMESTAMP '2024-03-01 09:30:00'"),
    **dict.fromkeys(("ISNULL", "NVL2"), "COALESCE(x, 0), or x IS NULL"),
    "DECODE": "CASE x WHEN 1 THEN 'a' ELSE 'b' END", "LEN": "LENGTH(x)", "CHARINDEX": "CONTAINS(s, 'a')",
    "TO_NUMBER": "CAST(x AS DOUBLE)", "TO_CHAR": "CAST(x AS TEXT)", "TO_DATE": "CAST(x AS DATE)",
    "RATIO_TO_REPORT": "x / SUM(x) OVER (PARTITION BY k)",
}  # fmt: skip


def is_window_function(name: str) -> bool:
    return name in AGGREGATES or name in POSITIONS or name in FURTHER
