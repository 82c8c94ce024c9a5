"""A statement with OVER ( … ) as queries of an engine: each column that it selects is one, answered on lookup.

PARTITION BY is `by`, WHERE chooses events, and windows end with what has come so far: CURRENT ROW. There is no current
row on lookup, so that nothing may be said of its own columns but those that keys are.
"""

from typing import Any

from sqlglot import exp

from swag.query import kinds
from swag.query.query import Events, Query
from swag.query.windows import Range, Rows, Unbounded, Window
from swag.sql.over.calls import Calls
from swag.sql.over.functions import POSITIONS
from swag.sql.over.reading import OVER, OverSelect, StarItem
from swag.sql.over.terms import OverTerms
from swag.sql.places import start_of, wrong

Node = Any
LATEST = "leave it out; LAST_VALUE({0} IGNORE NULLS) OVER (… ORDER BY ts) is the latest"
STORED = "sw.evaluate, over stored events"


def queries_to_register(text: str, select: OverSelect, ts: str) -> list[Query]:
    """A query for each window function that is selected. What is about rows, as QUALIFY and LIMIT, is refused."""
    for what, given, start in (("QUALIFY", select.qualify, select.qualify_start), ("ORDER BY", select.order, 0)):
        if given:
            at = select.order[0][3] if what == "ORDER BY" else start
            raise wrong(text, at, f"{what} is about rows, of which an engine keeps none.", f"leave it out; or {STORED}")
    if select.limit is not None or select.offset:
        raise wrong(text, select.start, "LIMIT is about rows, of which an engine keeps none.", "leave it out")
    terms = EngineTerms(text, select, ts)
    where = None if select.where is None else terms.of_row(select.where, select.where_start, "WHERE")
    source = None if where is None else Events(where)
    asked = [each for each in select.items if not isinstance(each[0], exp.Column)]
    assert isinstance(select.source, str)
    found = [_query(terms, each, source, select.source) for each in asked]
    keys = {name for query in found for name in query.by}
    for tree, name, start in select.items:
        if isinstance(tree, exp.Column) and tree.name not in keys:
            raise _own_column(text, start, str(name))
    if not found:
        raise wrong(text, select.start, "the statement selects no window function.", f"SUM(x) {OVER} AS total")
    return found


def _query(terms: "EngineTerms", item: tuple[Any, str | None, int], source: Events | None, stream: str) -> Query:
    """The query of an engine that answers one selected item, grouped by its PARTITION BY."""
    tree, name, start = item
    if isinstance(tree, StarItem):
        raise _own_column(terms.text, start, "*")
    terms.by = None
    term = terms.read(tree, start)
    if terms.by is None:
        raise wrong(terms.text, start, f"{tree.sql('duckdb')} has no window function.", f"SUM(x) {OVER}")
    return Query(term, None, name, source=source, by=terms.by, stream=stream)


def _own_column(text: str, start: int, name: str) -> Exception:
    message = f'"{name}" is of the current row, and there is none on lookup: an engine answers for keys.'
    return wrong(text, start, message, LATEST.format(name) if name != "*" else "window functions, each AS a name")


class EngineTerms(OverTerms):
    """Reads what is selected as aggregates, each with its window. `by`: the partition of the item that is read now."""

    def __init__(self, text: str, select: OverSelect, ts: str) -> None:
        super().__init__(text, select.aliases)
        self.calls, self.ts = Calls(text, self, select.windows), ts
        self.by: tuple[str, ...] | None = None

    def _over(self, node: Node) -> Any:
        """A window function as an aggregate over its window; its PARTITION BY must be that of the whole item."""
        spec = node.args.get("window")
        if spec is None:
            raise self.not_over(node)
        spec = self.calls.resolved(spec)
        self._check_time(node, spec.order)
        by = tuple(self._key(*each) for each in spec.partition or [])
        if self.by is not None and by != self.by:
            raise self.wrong(node, "windows of several partitions stand in one expression.", "a column for each")
        self.by = by
        term, window = self._windowed(node.this, spec.window)
        if node.args.get("where") is not None:
            term = term.filter(self.predicate(node.args["where"], self.start, node.args["text"]))
        return term.over(window)

    def _key(self, tree: Node, start: int) -> str:
        if not isinstance(tree, exp.Column):
            message = "PARTITION BY an expression is not supported in an engine."
            raise wrong(self.text, start, message, "PARTITION BY k; an expression as a column of the events first")
        return self.column(tree, "PARTITION BY", "PARTITION BY k")

    def _check_time(self, node: Node, order: Any) -> None:
        if order is None:
            raise self.wrong(node, "a window without ORDER BY holds what is still to come.", f"ORDER BY {self.ts}")
        name = self.column(order[0], "ORDER BY", f"ORDER BY {self.ts}")
        if name != self.ts:
            message = f'the window is in order of "{name}", but ts is "{self.ts}".'
            raise wrong(self.text, order[1], message, f"ORDER BY {self.ts}")

    def _windowed(self, call: Node, window: Window | None) -> tuple[Any, Window]:
        """What a call aggregates, and over which window. What can not be answered on lookup is refused."""
        name = call.name.upper() if isinstance(call, exp.Anonymous) else ""
        if name == "ROW_NUMBER":
            return kinds.count(), Unbounded()
        if name == "LAG" and len(call.expressions) < 3:
            value, back = self.calls.lag(call)
            return kinds.first(value), Rows(back + 1, until=back)
        skipping = bool(getattr(call, "expressions", None)) and isinstance(call.expressions[0], exp.IgnoreNulls)
        if name in POSITIONS and not skipping:
            hint = f"{name}(x IGNORE NULLS)" if name in ("FIRST_VALUE", "LAST_VALUE") else STORED
            raise self.wrong(call, f"{name} is not answered on lookup.", hint)
        if not isinstance(window, Rows | Range | Unbounded) or window.until != 0:
            raise self.wrong(call, "in an engine a frame ends with CURRENT ROW.", f"… AND CURRENT ROW; or {STORED}")
        if skipping:
            value = self.value(call.expressions[0].this, name, f"{name}(x IGNORE NULLS)")
            return (kinds.last if name.startswith("LAST") else kinds.first)(value), window
        return self.calls.aggregate(call, start_of(call, self.start)), window

    def _named(self, node: Node) -> Any:
        raise _own_column(self.text, start_of(node, self.start), node.name)
