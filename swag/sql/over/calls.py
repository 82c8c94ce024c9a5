"""Window functions as columns of answers: each is an aggregate over a window, or computed from some that are.

SUM(x) OVER w            sum(x)
FIRST_VALUE(x) OVER w    x of the first row: nulls are kept, so it is the number of the row that is aggregated
LAG(x, 2, 0) OVER w      x of the only row of ROWS BETWEEN 2 PRECEDING AND 2 PRECEDING, or 0 where there is none
RANK() OVER w            1 + count(), of the rows whose ts is smaller
"""

from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from swag.errors import BadQuery
from swag.query import kinds
from swag.query.aggregates import Aggregate
from swag.query.over_statement import ROW, TIME, WHOLE, Call
from swag.query.query import HIDDEN
from swag.query.windows import Rows, Unbounded, Window
from swag.sql.nodes import Over
from swag.sql.over.functions import FURTHER, POSITIONS
from swag.sql.over.terms import OverTerms
from swag.sql.over.windows import WindowSpec
from swag.sql.places import start_of, wrong

Node = Any
BEFORE = Unbounded(until=1)  # rows of a smaller ts
NO_ROW = "FALSE"
NOTHING = Call("", Aggregate("count"), WHOLE)


@dataclass
class Calls:
    """The window functions of a statement. It owns the columns of answers that they are made from, each once."""

    text: str
    terms: OverTerms
    windows: dict[str, WindowSpec]
    found: dict[Call, Call] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    _now: Call = NOTHING  # what all columns of the function that is being read have
    _label: str = ""

    def item(self, node: Node, start: int, where: str = "SELECT") -> str:
        """SQL over the columns of events and of answers: each window function has become the column of its own."""
        self.terms.start = start
        holder = exp.Paren(this=node)
        for each in list(holder.find_all(Over)):
            inner = each.this.find(Over)
            if inner is not None:
                hint = "a statement for the inner one, and this one over its table"
                raise self.wrong(inner, "a window function stands inside of another.", hint)
            if each.args.get("window") is None:
                raise self.terms.not_over(each)
            each.replace(self.expression(each))
        return self.terms.of_row(holder.this, start, where)

    def expression(self, node: Over) -> Node:
        """What stands in the place of a window function: a column of answers, or something computed from some."""
        call, start = node.this, start_of(node, self.terms.start)
        name = call.name.upper() if isinstance(call, exp.Anonymous) else ""
        spec = self.resolved(node.args["window"])
        self._label = " ".join(self.text[start : node.meta.get("end", start) + 1].split())
        where = node.args.get("where")
        if where is not None and name in POSITIONS:
            raise self.wrong(node, f"FILTER goes with aggregates, not with {name}.", "CASE inside, or WHERE")
        if where is not None:
            where = self.terms.predicate(where, start, node.args["text"])
        partition = tuple(self.terms.of_row(tree, at, "PARTITION BY") for tree, at in spec.partition or [])
        order = None if spec.order is None else self.terms.column(spec.order[0], "ORDER BY", "ORDER BY ts")
        ordered = start if spec.order is None else spec.order[1]
        self._now = Call("", Aggregate("count"), WHOLE, where, partition, order, (), start, ordered)
        window = spec.window
        if name in POSITIONS:
            return self._position(name, call, window)
        return self._column(self.aggregate(call, start), window)

    def wrong(self, node: Node, message: str, hint: str) -> Exception:
        return self.terms.wrong(node, message, hint)

    # -- windows by name ----------------------------------------------------------------------------------------------

    def resolved(self, spec: WindowSpec, within: tuple[str, ...] = ()) -> WindowSpec:
        """The window with what it inherits from the one it names. within: names that led here, against circles."""
        if spec.base is None:
            return spec
        if spec.base not in self.windows or spec.base in within:
            known = ", ".join(self.windows) or "none"
            raise wrong(
                self.text, spec.base_start, f'there is no window "{spec.base}" here; named are: {known}.',
                f"WINDOW {spec.base} AS (PARTITION BY k ORDER BY ts)",
            )  # fmt: skip
        base = self.resolved(self.windows[spec.base], (*within, spec.base))
        for what in ("partition", "order", "frame"):
            both = getattr(spec, what) is not None and getattr(base, what) is not None
            if both or (what == "partition" and spec.partition is not None):
                clause = {"partition": "PARTITION BY", "order": "ORDER BY", "frame": "frame"}[what]
                raise wrong(
                    self.text, spec.start, f'the {clause} of window "{spec.base}" can not be replaced.',
                    f"leave it out, or a window without {spec.base}",
                )  # fmt: skip
        return spec.inherits(base)

    # -- columns of answers -------------------------------------------------------------------------------------------

    def _column(self, aggregate: Aggregate, window: Window | None, *takes: str) -> Node:
        """The column of an aggregate over a window of the function that is being read. None: it is empty."""
        call = replace(self._now, aggregate=aggregate, window=window or WHOLE, takes=takes)
        if window is None:
            call = replace(call, where=NO_ROW)
        if call not in self.found:
            self.found[call] = replace(call, name=self._free(f"{HIDDEN}{self._label}"))
            self.names.add(self.found[call].name)
        return exp.column(exp.to_identifier(self.found[call].name, quoted=True))

    def _free(self, name: str) -> str:
        number = 2
        free = name
        while free in self.names:
            free, number = f"{name} ({number})", number + 1
        return free

    def aggregate(self, call: Node, start: int) -> Aggregate:
        """The aggregate that a call before OVER is; ANY_VALUE and QUANTILE_CONT are known here only."""
        name = call.name.upper() if isinstance(call, exp.Anonymous) else ""
        if name == "QUANTILE":
            raise self.wrong(call, "QUANTILE is not the same everywhere.", "QUANTILE_CONT(x, 0.99), or MEDIAN(x)")
        if name in FURTHER:
            arguments = call.expressions
            if len(arguments) != 1 + (name == "QUANTILE_CONT"):
                raise self.wrong(call, f"{name} takes other arguments.", FURTHER[name])
            value = self.terms.value(arguments[0], name, FURTHER[name])
            if name == "ANY_VALUE":
                return kinds.first(value)
            return self._quantile(call, value, arguments[1])
        found = self.terms.read(call, start)
        if not isinstance(found, Aggregate):
            raise self.wrong(call, "OVER belongs to a window function.", "SUM(x) OVER (ORDER BY ts)")
        return found

    def _quantile(self, call: Node, value: str, phi: Node) -> Aggregate:
        number = isinstance(phi, exp.Literal) and not phi.is_string
        try:
            return kinds.quantile(value, float(phi.this) if number else phi.sql("duckdb"), method="linear")
        except BadQuery as why:
            raise self.wrong(call, why.message, FURTHER["QUANTILE_CONT"]) from None

    # -- positions ----------------------------------------------------------------------------------------------------

    def _position(self, name: str, call: Node, window: Window | None) -> Node:
        """A function of the place of rows, such as FIRST_VALUE, LAG and RANK, as SQL over columns of answers."""
        given, skipping = self.arguments(name, call)
        if name in ("ROW_NUMBER", "RANK", "DENSE_RANK", "PERCENT_RANK", "CUME_DIST", "NTILE"):
            return self._number(name, given)
        value = self.terms.of_row(given[0], self.terms.start, name)
        if name in ("LAG", "LEAD"):
            return self._offset(name, call, value, given)
        last = name in ("LAST_VALUE", "LAST")
        if skipping:
            of = self.terms.value(given[0], name, POSITIONS[name])
            return self._column(kinds.last(of) if last else kinds.first(of), window)
        if name == "NTH_VALUE":
            return self._nth(value, self.whole(call, given[1], name), window)
        return self._column(kinds.last(ROW) if last else kinds.first(ROW), window, value)

    def arguments(self, name: str, call: Node) -> tuple[list[Node], bool]:
        """Those of the call, and whether nulls are skipped."""
        given = list(call.expressions)
        least, most = {"NTILE": (1, 1), "LAG": (1, 3), "LEAD": (1, 3), "NTH_VALUE": (2, 2)}.get(
            name, (0, 0) if POSITIONS[name].endswith("()") else (1, 1)
        )
        if not least <= len(given) <= most:
            raise self.wrong(call, f"{name} takes other arguments: found {len(given) or 'none'}.", POSITIONS[name])
        skipping = any(isinstance(each, exp.IgnoreNulls) for each in given)
        if skipping and name in ("LAG", "LEAD", "NTH_VALUE"):
            raise self.wrong(call, f"IGNORE NULLS is not supported with {name}.", "FIRST_VALUE(x IGNORE NULLS)")
        if given and isinstance(given[0], exp.IgnoreNulls | exp.RespectNulls):
            given[0] = given[0].this
        return given, skipping

    def whole(self, call: Node, node: Node, name: str) -> int:
        negative = isinstance(node, exp.Neg)
        literal = node.this if negative else node
        if not isinstance(literal, exp.Literal) or not str(literal.this).isdigit() or len(literal.this) > 9:
            raise self.wrong(call, f"{name} takes a whole number there, the same for all events.", POSITIONS[name])
        found = -int(literal.this) if negative else int(literal.this)
        if name == "NTILE" and found < 1:
            raise self.wrong(call, "NTILE makes one bucket at least.", POSITIONS[name])
        return found

    def _number(self, name: str, given: list[Node]) -> Node:
        """ROW_NUMBER, RANK, NTILE and the like, computed from counts of rows before the current one, and of all."""
        count = kinds.count()
        row, size = self._column(count, Unbounded()), "" if name != "NTILE" else self.whole(given[0], given[0], name)
        if name == "ROW_NUMBER":
            return row
        if name == "DENSE_RANK":
            return self._column(kinds.count_distinct(TIME), Unbounded(peers=True))
        if name == "RANK":
            return _parsed("(1 + {0})", self._column(count, BEFORE))
        whole = self._column(count, WHOLE)
        if name == "CUME_DIST":
            return _parsed("({0} / {1})", self._column(count, Unbounded(peers=True)), whole)
        if name == "PERCENT_RANK":
            share = "(CASE WHEN {1} = 1 THEN 0.0 ELSE {0} / ({1} - 1) END)"
            return _parsed(share, self._column(count, BEFORE), whole)
        larger = f"({{1}} % {size}) * ({{1}} // {size} + 1)"  # rows in buckets that have one more than the others
        return _parsed(
            f"(CASE WHEN {{0}} <= {larger} THEN ({{0}} - 1) // ({{1}} // {size} + 1) + 1 "
            f"ELSE {{1}} % {size} + ({{0}} - 1 - {larger}) // GREATEST({{1}} // {size}, 1) + 1 END)",
            row, whole,
        )  # fmt: skip

    def lag(self, call: Node) -> tuple[str, int, Node | None]:
        """What LAG is of, as an aggregate takes it, how many rows back, and what it is where there are not so many."""
        given, _ = self.arguments("LAG", call)
        back = self.whole(call, given[1], "LAG") if len(given) > 1 else 1
        if back < 0:
            raise self.wrong(call, "LAG by a negative number lies ahead.", "LAG(x, 1)")
        return self.terms.value(given[0], "LAG", POSITIONS["LAG"]), back, given[2] if len(given) > 2 else None

    def _offset(self, name: str, call: Node, value: str, given: list[Node]) -> Node:
        """LAG and LEAD: the value of the one row so far back or ahead, or the default where there is none."""
        back = self.whole(call, given[1], name) if len(given) > 1 else 1
        back = back if name == "LAG" else -back
        there = Rows(back + 1, until=back)
        found = self._column(kinds.first(ROW), there, value)
        if len(given) < 3:
            return found
        default = self.terms.of_row(given[2], self.terms.start, name)
        return _parsed(
            f"(CASE WHEN {{0}} = 0 THEN {default} ELSE {{1}} END)", self._column(kinds.count(), there), found
        )

    def _nth(self, value: str, n: int, window: Window | None) -> Node:
        """The row n - 1 after the first, where the window holds so many."""
        ahead = self._column(kinds.first(ROW), Rows(2 - n, until=1 - n))
        found = self._column(kinds.first(ROW), window, ahead.sql("duckdb"), value)
        return _parsed(f"(CASE WHEN {{0}} >= {n} THEN {{1}} END)", self._column(kinds.count(), window), found)


def _parsed(template: str, *columns: Node) -> Node:
    import sqlglot

    return sqlglot.parse_one(template.format(*(each.sql("duckdb") for each in columns)), dialect="duckdb")
