"""The window functions there are, beside the aggregates that statements know anyway, and how each is written."""

from swag.sql.functions import AGGREGATES

POSITIONS = {
    "ROW_NUMBER": "ROW_NUMBER()", "RANK": "RANK()", "DENSE_RANK": "DENSE_RANK()", "PERCENT_RANK": "PERCENT_RANK()",
    "CUME_DIST": "CUME_DIST()", "NTILE": "NTILE(4)", "LAG": "LAG(x), LAG(x, 2) or LAG(x, 2, 0)",
    "LEAD": "LEAD(x), LEAD(x, 2) or LEAD(x, 2, 0)", "FIRST_VALUE": "FIRST_VALUE(x)", "LAST_VALUE": "LAST_VALUE(x)",
    "FIRST": "FIRST(x)", "LAST": "LAST(x)", "NTH_VALUE": "NTH_VALUE(x, 2)",
}  # fmt: skip
FURTHER = {"ANY_VALUE": "ANY_VALUE(x)", "QUANTILE_CONT": "QUANTILE_CONT(x, 0.99)"}  # that statements without OVER lack


def is_window_function(name: str) -> bool:
    return name in AGGREGATES or name in POSITIONS or name in FURTHER
