"""From a tree of sqlglot to aggregates and expressions over them. What has no meaning here is refused by name."""

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from swag import aggregates as ag
from swag.errors import BadQuery, BadSQL, nearest
from swag.expression import Expression, Operators
from swag.sql.dialect import Over
from swag.sql.literals import constant, is_constant
from swag.sql.places import start_of, wrong

Node = Any
EXPECTED = "aggregates, numbers, text, + - * /, comparisons, AND, OR, NOT, BETWEEN, IN, IS NULL, ABS, COALESCE"

_BINARY: dict[type, str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/",
    exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<=", exp.EQ: "=", exp.NEQ: "<>",
}  # fmt: skip
_FOLD: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
}  # fmt: skip

# SQL's names: the aggregate, and how many columns it takes. Those that take a number after them say what it is.
_COLUMNS: dict[str, tuple[Callable[..., ag.Aggregate], int]] = {
    "COUNT": (ag.count, 1), "SUM": (ag.sum, 1), "AVG": (ag.mean, 1), "MEAN": (ag.mean, 1), "MIN": (ag.min, 1),
    "MAX": (ag.max, 1), "FIRST": (ag.first, 1), "FIRST_VALUE": (ag.first, 1), "LAST": (ag.last, 1),
    "LAST_VALUE": (ag.last, 1), "MEDIAN": (ag.median, 1), "WMEAN": (ag.wmean, 2), "CORR": (ag.corr, 2),
    "VAR": (ag.var, 1), "VARIANCE": (ag.var, 1), "VAR_SAMP": (ag.var, 1), "VAR_POP": (lambda x: ag.var(x, 0), 1),
    "STD": (ag.std, 1), "STDDEV": (ag.std, 1), "STDDEV_SAMP": (ag.std, 1), "STDDEV_POP": (lambda x: ag.std(x, 0), 1),
    "COV": (ag.cov, 2), "COVAR": (ag.cov, 2), "COVAR_SAMP": (ag.cov, 2), "COVAR_POP": (lambda x, y: ag.cov(x, y, 0), 2),
    "QUANTILE": (ag.quantile, 1),
}  # fmt: skip
_OPTIONS = {"VAR": 1, "STD": 1, "COV": 1, "QUANTILE": 2}  # how many constants may follow: ddof; φ and the method
_NOT_OURS = {
    "PERCENTILE_DISC": "QUANTILE(x, 0.99), the element at position floor(0.99 N)",
    "APPROX_COUNT_DISTINCT": "COUNT(x)",
    "STRING_AGG": "LAST(x)",
    "ARG_MAX": "MAX(x)",
    "ARG_MIN": "MIN(x)",
    "ROW_NUMBER": "COUNT(*)",
    "LAG": "FIRST(x) OVER [ROWS 2]",
    "ROUND": "round the answers",
    "POWER": "x * x",
    "SQRT": "compute it of the answers",
    "VWAP": "WMEAN(price, volume)",
}
FUNCTIONS = sorted([*_COLUMNS, "PERCENTILE_CONT", "ABS", "COALESCE"])


class Terms:
    """Reads the expressions of one statement. aliases: of the stream. named: terms that AS has named before."""

    def __init__(self, text: str, aliases: set[str], named: Mapping[str, Any] | None = None) -> None:
        self.text, self.aliases, self.named = text, aliases, named or {}
        self.start = 0  # where the expression began: for parts that do not know where they are

    def read(self, node: Node, start: int) -> Any:
        self.start = start
        try:
            return self._term(node)
        except RecursionError:
            raise wrong(self.text, start, "the expression is nested too deep.") from None

    def column(self, node: Node, what: str) -> str:
        """The name of a column, alone or after that of the stream."""
        if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
            hint = "compute it as a column of the events first" if isinstance(node, exp.Expression) else ""
            raise self.wrong(node, f"{what} takes columns by name, not {_shown(node)}.", hint)
        if node.args.get("db") or (node.table and node.table not in self.aliases):
            raise self.wrong(
                node, f'"{node.table}" is not the stream of this statement.', nearest(node.table, [*self.aliases])
            )
        return str(node.name)

    def wrong(self, node: Node, message: str, hint: str = "") -> BadSQL:
        return wrong(self.text, start_of(node, self.start), message, hint)

    # -- terms --------------------------------------------------------------------------------------------------------

    def _term(self, node: Node) -> Any:
        try:
            return self._known(node)
        except BadSQL:
            raise
        except BadQuery as why:
            raise self.wrong(node, why.message) from None

    def _known(self, node: Node) -> Any:
        if isinstance(node, exp.Paren):
            return self._term(node.this)
        if is_constant(node):
            return constant(node)
        if type(node) in _BINARY:
            return self._binary(_BINARY[type(node)], node)
        if isinstance(node, exp.And | exp.Or):
            return Expression(node.key, tuple(self._term(each) for each in node.flatten()))
        if isinstance(node, exp.Not):
            return Expression("not", (self._term(node.this),))
        if isinstance(node, exp.Neg):
            inner = self._term(node.this)
            return -inner
        if isinstance(node, exp.Between) and not node.args.get("symmetric"):
            return Expression("between", tuple(self._term(node.args[part]) for part in ("this", "low", "high")))
        if isinstance(node, exp.In) and node.expressions:
            return Expression("in", (self._term(node.this), *(self._term(each) for each in node.expressions)))
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
            return Expression("is null", (self._term(node.this),))
        if isinstance(node, Over):
            return self._over(node)
        if isinstance(node, exp.Anonymous | exp.WithinGroup):
            return self._call(node)
        if isinstance(node, exp.Column):
            return self._named(node)
        raise self.wrong(node, f"{_shown(node)} is not supported.", EXPECTED)

    def _named(self, node: Node) -> Any:
        if not node.table and node.name in self.named:
            return self.named[node.name]
        raise self.wrong(node, f'the column "{node.name}" stands outside any aggregate.', f'LAST("{node.name}")')

    def _binary(self, op: str, node: Node) -> Any:
        left, right = self._term(node.this), self._term(node.expression)
        if isinstance(left, Operators) or isinstance(right, Operators):
            return Expression(op, (left, right))
        if op not in _FOLD or isinstance(left, str) or isinstance(right, str):
            raise self.wrong(node, f"{_shown(node)} is of constants alone.", "compare an aggregate")
        if op == "/" and right == 0:
            raise self.wrong(node, f"{_shown(node)} divides by zero.")
        folded = _FOLD[op](left, right)
        if isinstance(folded, float) and math.isnan(folded):
            raise self.wrong(node, f"{_shown(node)} is not a number.")
        return folded

    def _over(self, node: Node) -> Any:
        term = self._term(node.this)
        if not isinstance(term, ag.Aggregate):
            raise self.wrong(node, "OVER and FILTER belong to an aggregate.", "SUM(volume) OVER [RANGE 5 MINUTES]")
        if node.args.get("where") is not None:
            term = term.filter(self.predicate(node.args["where"], self.start, node.args["text"]))
        return term if node.args.get("window") is None else term.over(node.args["window"])

    def predicate(self, node: Node, start: int, text: str) -> str:
        """A condition on the event, as text."""
        from swag.predicate import canonical

        self.start = start
        for each in node.walk():
            if isinstance(each, exp.Column):
                self.column(each, "a condition on the event")
            if isinstance(each, Over) or (isinstance(each, exp.Anonymous) and each.name.upper() in _COLUMNS):
                raise self.wrong(each, f"{_shown(each)} is an aggregate; WHERE is about single events.", "HAVING")
            if isinstance(each, exp.Anonymous) and each.name.upper() != "ABS":
                hint = "ABS is the only one; compute others as a column of the events first"
                raise self.wrong(each, f"there is no function {each.name.upper()} in WHERE.", hint)
        try:
            return canonical(text)
        except BadQuery as why:
            raise self.wrong(node, str(why)) from None
        except RecursionError:
            raise self.wrong(node, "the condition is nested too deep.") from None

    # -- calls --------------------------------------------------------------------------------------------------------

    def _call(self, node: Node) -> Any:
        call, ordered = (node.this, node.expression) if isinstance(node, exp.WithinGroup) else (node, None)
        if not isinstance(call, exp.Anonymous):
            raise self.wrong(node, f"{_shown(node)} is not supported.", EXPECTED)
        name, given = call.name.upper(), call.expressions
        if ordered is not None or name == "PERCENTILE_CONT":
            return self._percentile(call, name, ordered)
        if name in ("ABS", "COALESCE"):
            terms = tuple(self._term(each) for each in given)
            return abs(terms[0]) if name == "ABS" and len(terms) == 1 else Expression(name.lower(), terms)
        if name not in _COLUMNS:
            known = _NOT_OURS.get(name) or nearest(name, FUNCTIONS).strip('"') or ", ".join(FUNCTIONS)
            raise self.wrong(node, f"there is no function {name}.", known)
        if name == "COUNT" and (not given or isinstance(given[0], exp.Star) or _is_number(given[0])) and len(given) < 2:
            return ag.count()
        build, columns = _COLUMNS[name]
        if any(isinstance(each, exp.Distinct) for each in given):
            raise self.wrong(node, f"{name}(DISTINCT …) is not supported.", f"{name}(x)")
        if not columns <= len(given) <= columns + _OPTIONS.get(name, 0):
            raise self.wrong(node, f"{name} takes {columns} column{'s' * (columns > 1)}, not {len(given)} arguments.")
        names = [self.column(each, name) for each in given[:columns]]
        return build(*names, *(self._constant(each, name) for each in given[columns:]))

    def _percentile(self, call: Node, name: str, ordered: Node) -> Any:
        hint = "PERCENTILE_CONT(0.99) WITHIN GROUP (ORDER BY latency)"
        if name != "PERCENTILE_CONT":
            raise self.wrong(call, f"{name} does not go WITHIN GROUP.", _NOT_OURS.get(name, hint))
        order = ordered.expressions[0] if ordered is not None and len(ordered.expressions) == 1 else None
        if order is None or len(call.expressions) != 1 or order.args.get("desc"):
            raise self.wrong(call, "PERCENTILE_CONT takes a fraction, and one column in ascending order.", hint)
        return ag.quantile(self.column(order.this, name), self._constant(call.expressions[0], name), method="linear")

    def _constant(self, node: Node, name: str) -> Any:
        value = self._term(node)
        if isinstance(value, Operators):
            raise self.wrong(node, f"{name} takes a constant there, not {_shown(node)}.")
        return value


def _is_number(node: Node) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string


def _shown(node: Node) -> str:
    text = _sql(node) if isinstance(node, exp.Expression) else str(node)
    text = text or type(node).__name__
    return text if len(text) <= 60 else f"{text[:57]}…"


def _sql(node: Node) -> str:
    from sqlglot import ErrorLevel

    if isinstance(node, Over):
        return f"{_sql(node.this)} OVER …"
    try:
        return str(node.sql(dialect="duckdb", comments=False, unsupported_level=ErrorLevel.IGNORE))
    except (ValueError, AttributeError, TypeError):  # a part that sqlglot has no words for
        return type(node).__name__
