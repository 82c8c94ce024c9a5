"""The expressions of a statement with OVER ( … ): inside of window functions as anywhere, around them over the rows."""

from typing import Any

from sqlglot import exp

from swag.sql.nodes import Over
from swag.sql.over.functions import is_window_function
from swag.sql.terms import Terms

Node = Any


class OverTerms(Terms):
    """Reads them, as any other terms; what has no OVER is refused by name."""

    def value(self, node: Node, what: str, hint: str) -> str:
        """What a window function is of. A number is one, too: SUM(1)."""
        if isinstance(node, exp.Literal) and not node.is_string:
            return str(node.sql("duckdb"))
        return super().value(node, what, hint)

    def of_row(self, node: Node, start: int, where: str = "") -> str:
        """SQL over the columns of an event, without window functions."""
        self.start = start
        for each in node.walk():  # before it is written, as window functions can not be
            self._check_about_events(each, where)
        return self._of_events(node, node.sql(dialect="duckdb", comments=False), "it", where)

    def _check_about_events(self, node: Node, where: str) -> None:
        """Refuse window functions where SQL is about single events, such as WHERE, and those without OVER anywhere."""
        called = isinstance(node, exp.Anonymous) and is_window_function(node.name.upper())
        if called and where in ("SELECT", "QUALIFY", "ORDER BY"):
            raise self.not_over(node)
        if called or isinstance(node, Over):
            what = f"{where} is about single events, and computed before any window"
            raise self.wrong(node, f"a window function stands in {where}: {what}.", "QUALIFY, for a condition on it")
        super()._check_about_events(node, where)

    def not_over(self, node: Node) -> Exception:
        call = node.this if isinstance(node, Over) else node
        name = call.name.upper()
        shown = call.sql("duckdb")
        return self.wrong(
            node, f"{name} has no OVER, and there is no GROUP BY.", f"{shown} OVER (PARTITION BY k ORDER BY ts)"
        )
