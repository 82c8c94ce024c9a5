"""The expressions of a statement with OVER ( … ): inside of window functions as anywhere, around them over the rows."""

from typing import Any

from sqlglot import exp

from swag.sql.nodes import Over
from swag.sql.over.calls import Calls, is_window_function
from swag.sql.terms import Terms

Node = Any


class OverTerms(Terms):
    """Reads them. It owns the window functions that it has come across (`calls`)."""

    calls: Calls

    def value(self, node: Node, what: str, hint: str) -> str:
        """What a window function is of. A number is one, too: SUM(1)."""
        if isinstance(node, exp.Literal) and not node.is_string:
            return str(node.sql("duckdb"))
        return super().value(node, what, hint)

    def of_row(self, node: Node, start: int, where: str = "") -> str:
        """SQL over the columns of an event, without window functions."""
        self.start = start
        return self._of_events(node, node.sql(dialect="duckdb", comments=False), "it", where)

    def item(self, node: Node, start: int, where: str = "SELECT") -> str:
        """SQL over the columns of events and of answers: each window function has become the column of its own."""
        self.start = start
        holder = exp.Paren(this=node)
        for each in list(holder.find_all(Over)):
            if each.find_ancestor(Over):
                raise self.wrong(each, "a window function stands inside of another.", "evaluate the inner one first")
            if each.args.get("window") is None:
                raise self._not_over(each)
            each.replace(self.calls.expression(each))
        return self.of_row(holder.this, start, where)

    def _check_about_events(self, node: Node, where: str) -> None:
        called = isinstance(node, exp.Anonymous) and is_window_function(node.name.upper())
        if called and where in ("SELECT", "QUALIFY", "ORDER BY"):
            raise self._not_over(node)
        if called or isinstance(node, Over):
            what = f"{where} is about single events, and computed before any window"
            raise self.wrong(node, f"a window function stands in {where}: {what}.", "QUALIFY, for a condition on it")
        super()._check_about_events(node, where)

    def _not_over(self, node: Node) -> Exception:
        call = node.this if isinstance(node, Over) else node
        name = call.name.upper()
        shown = call.sql("duckdb")
        return self.wrong(
            node, f"{name} has no OVER, and there is no GROUP BY.", f"{shown} OVER (PARTITION BY k ORDER BY ts)"
        )
