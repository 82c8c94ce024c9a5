"""A statement with OVER ( … ) as queries of an engine: each column that it selects is one, answered on lookup.

PARTITION BY is `by`, WHERE chooses events, QUALIFY is `having`, and windows end with what has come so far: CURRENT ROW.
There is no current row on lookup, so that nothing may be said of its own columns but those that keys are.

    FIRST_VALUE(x) OVER w          null where FIRST(x IS NULL), else FIRST(x), which skips nulls
    LAG(x, 2, 0) OVER w            FIRST(x) of the one row so far back, or 0 where there are not so many
    NTH_VALUE(x, 2) OVER w         of w rows: LAG(x, w - 2), or of so many rows less as there are fewer

SQL has a row for every event, so each key with one has an answer, also where no window that is asked for holds it, such
as that of LAG at the first event of a key. COUNT(*) over a window that does hold it is then asked for as well.
"""

from dataclasses import replace
from typing import Any, NamedTuple

from sqlglot import exp

from swag.errors import BadQuery, BadSQL
from swag.query import kinds
from swag.query.expression import SQL, Expression, leaves
from swag.query.query import Events, Query
from swag.query.windows import Range, Rows, Unbounded, Window, lies_ahead
from swag.sql.over.calls import Calls
from swag.sql.over.functions import POSITIONS
from swag.sql.over.reading import OVER, OverSelect, StarItem
from swag.sql.over.terms import OverTerms
from swag.sql.places import start_of, wrong
from swag.tables.expressions.expression import compiled
from swag.tables.times.durations import distance

Node = Any
LATEST = "leave it out; LAST_VALUE({0}) OVER (… ORDER BY ts) is the latest"
STORED = "sw.evaluate, over stored events"
MOST_PLACES = 64  # where the row of NTH_VALUE may lie, as long as there are fewer rows than the frame has
_AT_AN_END = ("FIRST_VALUE", "LAST_VALUE", "FIRST", "LAST")


def queries_to_register(text: str, select: OverSelect, ts: str) -> list[Query]:
    """A query for each window function that is selected. What is about rows, as ORDER BY and LIMIT, is refused."""
    if select.order:
        message = "ORDER BY is about rows, of which an engine keeps none."
        raise wrong(text, select.order[0][3], message, f"leave it out; or {STORED}")
    if select.limit is not None or select.offset:
        raise wrong(
            text, select.limit_start, "LIMIT, as OFFSET, is about rows, of which an engine keeps none.", "leave it out"
        )
    terms = EngineTerms(text, select, ts)
    where = None if select.where is None else terms.of_row(select.where, select.where_start, "WHERE")
    source = None if where is None else Events(where)
    asked = [each for each in select.items if not isinstance(each[0], exp.Column)]
    assert isinstance(select.source, str)
    items = [_item(terms, *each) for each in asked]
    having = None if select.qualify is None else _qualify(terms, select, items)
    found = [_query(terms.text, each, having, source, select.source) for each in items]
    keys = {name for query in found for name in query.by}
    for tree, name, start in select.items:
        if isinstance(tree, exp.Column) and tree.name not in keys:
            raise _own_column(text, start, str(name))
    if not found:
        raise wrong(text, select.start, "the statement selects no window function.", f"SUM(x) {OVER} AS total")
    return found


class Selected(NamedTuple):
    """A column that is selected. term: over windows of their own, which are all of the partition `by`."""

    term: Any
    name: str
    by: tuple[str, ...]
    start: int


def _item(terms: "EngineTerms", tree: Any, name: str | None, start: int) -> Selected:
    """What one selected item asks for; a name that AS gives it may be used by those after it."""
    if isinstance(tree, StarItem):
        raise _own_column(terms.text, start, "*")
    terms.by = None
    term = terms.read(tree, start)
    if terms.by is None:
        raise wrong(terms.text, start, f"{tree.sql('duckdb')} has no window function.", f"SUM(x) {OVER}")
    assert name is not None
    terms.named[name], terms.partitions[name] = term, terms.by
    return Selected(term, name, terms.by, start)


def _query(text: str, item: Selected, having: Any, source: Events | None, stream: str) -> Query:
    """The query of an engine that answers one selected item, grouped by its PARTITION BY."""
    try:
        term = _at_every_event(item.term, having)
        return Query(term, None, item.name, None, having, source=source, by=item.by, stream=stream)
    except BadSQL:
        raise
    except BadQuery as why:
        raise wrong(text, item.start, why.message, f"SUM(x) {OVER}") from None


def _at_every_event(term: Any, having: Any) -> Any:
    """The same, with an answer also for keys whose events lie in none of the windows that are asked for."""
    there = _latest([leaf.window for each in (term, having) for leaf in leaves(each)])
    if there is None:
        return term
    return Expression(SQL, ("CASE WHEN _1 > 0 THEN _2 END", kinds.count().over(there), term))


def _latest(windows: list[Window | None]) -> Window | None:
    """A window that holds the latest event of a key for as long as one of these may; None: one of these does."""
    endless = [each for each in windows if isinstance(each, Rows | Unbounded)]
    by_time = [each for each in windows if isinstance(each, Range)]
    if any(each.until == 0 for each in endless):
        return None
    if endless:
        return Rows(1) if any(isinstance(each, Rows) for each in endless) else Unbounded(peers=True)
    longest = max(by_time, key=lambda each: (distance(each.t, "t"), each.until == 0), default=None)
    return None if longest is None or longest.until == 0 else replace(longest, until=0)


def _qualify(terms: "EngineTerms", select: OverSelect, items: list[Selected]) -> Any:
    """QUALIFY: a condition that says of which keys there are answers."""
    terms.by = None
    having, start = terms.read(select.qualify, select.qualify_start, truth=True), select.qualify_start
    if terms.by is None or not isinstance(having, Expression) or not having.is_condition:
        raise wrong(terms.text, start, "QUALIFY takes a condition on window functions.", f"QUALIFY COUNT(*) {OVER} > 9")
    for each in items:
        if terms.by != each.by:
            message = f'QUALIFY is over other partitions than "{each.name}".'
            raise wrong(terms.text, start, message, "one PARTITION BY for all; or a statement for each")
    return having


def _own_column(text: str, start: int, name: str) -> Exception:
    message = f'"{name}" is of the current row, and there is none on lookup: an engine answers for keys.'
    return wrong(text, start, message, LATEST.format(name) if name != "*" else "window functions, each AS a name")


class EngineTerms(OverTerms):
    """Reads what is selected as aggregates, each with its window. `by`: the partition of the item that is read now."""

    def __init__(self, text: str, select: OverSelect, ts: str) -> None:
        super().__init__(text, select.aliases)
        self.calls, self.ts = Calls(text, self, select.windows), ts
        self.by: tuple[str, ...] | None = None
        self.partitions: dict[str, tuple[str, ...]] = {}  # of what AS has named

    def _over(self, node: Node) -> Any:
        """A window function as an aggregate over its window; its PARTITION BY must be that of the whole item."""
        spec = node.args.get("window")
        if spec is None:
            raise self.not_over(node)
        spec = self.calls.resolved(spec)
        self._check_time(node, spec.order)
        self._within(node, tuple(self._key(*each) for each in spec.partition or []))
        call = node.this
        name = call.name.upper() if isinstance(call, exp.Anonymous) else ""
        where = node.args.get("where")
        if where is not None and name in POSITIONS:
            raise self.wrong(node, f"FILTER goes with aggregates, not with {name}.", "CASE inside, or WHERE")
        if name == "ROW_NUMBER":
            return kinds.count().over(Unbounded())
        if name == "LAG":
            return self._lag(call)
        window = self._frame(call, spec.window)
        if name in POSITIONS:
            return self._position(name, call, window)
        term = self.calls.aggregate(call, start_of(call, self.start))
        if where is not None:
            term = term.filter(self.predicate(where, self.start, node.args["text"]))
        return term.over(window)

    def _within(self, node: Node, by: tuple[str, ...]) -> None:
        """The partition of a window function, which is that of all of the item."""
        if self.by is not None and by != self.by:
            raise self.wrong(node, "windows of several partitions stand in one expression.", "a column for each")
        self.by = by

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

    def _frame(self, call: Node, window: Window | None) -> Window:
        """The frame of a window function, which can not hold what is still to come."""
        if not isinstance(window, Rows | Range | Unbounded) or lies_ahead(window):
            raise self.wrong(call, "in an engine a frame ends with CURRENT ROW.", f"… AND CURRENT ROW; or {STORED}")
        return window

    def _position(self, name: str, call: Node, window: Window) -> Any:
        """FIRST_VALUE, LAST_VALUE, NTH_VALUE. Other places are among rows that an engine does not keep."""
        if name not in (*_AT_AN_END, "NTH_VALUE"):
            raise self.wrong(call, f"{name} is not answered on lookup.", STORED)
        given, skipping = self.calls.arguments(name, call)
        value = self.value(given[0], name, POSITIONS[name])
        if name == "NTH_VALUE":
            return self._nth(call, value, self.calls.whole(call, given[1], name), window)
        end = kinds.last if name.startswith("LAST") else kinds.first
        return (end(value) if skipping else _with_nulls(end, value)).over(window)

    def _nth(self, call: Node, value: str, n: int, window: Window) -> Any:
        """The row n, counted from the start of the frame: so far back as there are rows after it."""
        if n == 1:
            return _with_nulls(kinds.first, value).over(window)
        if n < 1 or not isinstance(window, Rows) or window.until != 0 or window.n - n > MOST_PLACES:
            hint = f"a frame of at most {n + MOST_PLACES} rows: ROWS BETWEEN 9 PRECEDING AND CURRENT ROW; or {STORED}"
            raise self.wrong(call, f"{call.sql('duckdb')} is not answered on lookup.", hint)
        if n > window.n:
            return Expression(SQL, ("CASE WHEN _1 < 0 THEN _2 END", kinds.count(), kinds.last(value))).over(window)
        rows = range(n, window.n + 1)
        cases = "".join(f" WHEN {count} THEN _{place}" for place, count in enumerate(rows, 2))
        values = [_back(value, count - n) for count in rows]
        return Expression(SQL, (f"CASE _1{cases} END", kinds.count().over(window), *values))

    def _lag(self, call: Node) -> Any:
        """The value of the one row so far back, or a default where there are not so many."""
        value, back, default = self.calls.lag(call)
        if default is None:
            return _back(value, back)
        text = self.of_row(default, self.start, "LAG")
        for each in sorted(compiled(text).columns):
            raise _own_column(self.text, start_of(default, self.start), each)
        rows = kinds.count().over(Rows(back + 1))
        return Expression(SQL, (f"CASE WHEN _1 <= {back} THEN {text} ELSE _2 END", rows, _back(value, back)))

    def _named(self, node: Node) -> Any:
        if not node.table and node.name in self.named:
            self._within(node, self.partitions[node.name])
            return self.named[node.name]
        raise _own_column(self.text, start_of(node, self.start), node.name)


def _back(value: str, rows: int) -> Any:
    """The value of one row, so many before the last one."""
    return kinds.first(value).over(Rows(rows + 1, until=rows))


def _with_nulls(end: Any, value: str) -> Expression:
    """The value of the row at one end, also where it is null."""
    return Expression(SQL, ("CASE WHEN _1 THEN NULL ELSE _2 END", end(f"({value}) IS NULL"), end(value)))
