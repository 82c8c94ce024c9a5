"""From a tree of sqlglot to aggregates and expressions over them. What has no meaning here is refused by name."""

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sqlglot import exp

from swag.errors import BadQuery, BadSQL, nearest
from swag.query import kinds
from swag.query.aggregates import Aggregate
from swag.query.expression import ARITHMETIC, COMPARISONS, SQL, Expression, Operators, Windowed
from swag.query.kind import KINDS
from swag.sql.functions import AGGREGATES, EXAMPLES, NOT_OURS, PERCENTILE, is_scalar
from swag.sql.hints import ELSEWHERE, NODES, WRITTEN
from swag.sql.literals import constant, is_constant
from swag.sql.nodes import Over
from swag.sql.places import start_of, wrong
from swag.sql.refusing import no_function
from swag.tables.constants import word
from swag.tables.expressions import places
from swag.tables.expressions.derived import quoted
from swag.tables.expressions.expression import NotSQL, TooDeep, compiled
from swag.tables.expressions.functions import takes_of

Node = Any
EXPECTED = "aggregates, numbers, text, and scalar SQL of these: + - * /, comparisons, AND, CASE, CAST, ROUND(x, 1), …"
SHALLOW = "fewer parentheses, or several statements"

_BINARY: dict[type, str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/",
    exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<=", exp.EQ: "=", exp.NEQ: "<>",
}  # fmt: skip
_FOLD: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
}  # fmt: skip


class OfConstants(BadSQL):
    """A part of an expression is of constants alone: beside aggregates it is SQL. Its cause is what is said else."""


class Terms:
    """Reads the expressions of one statement. aliases: of the stream. named: terms that AS has named before."""

    def __init__(self, text: str, aliases: set[str]) -> None:
        self.text, self.aliases = text, aliases
        self.named: dict[str, Any] = {}
        self.start = 0  # where the expression began: for parts that do not know where they are

    def read(self, node: Node, start: int, truth: bool = False) -> Any:
        """truth: it is to be true or false."""
        self.start = start
        try:
            return self._truth(node) if truth else self._term(node)
        except OfConstants as why:
            raise why.__cause__ or why from None
        except RecursionError:
            raise wrong(self.text, start, "the expression is nested too deep.", SHALLOW) from None

    def column(self, node: Node, what: str, hint: str) -> str:
        """The name of a column, alone or after that of the stream. hint: how `what` is written with one."""
        node = node.unnest() if isinstance(node, exp.Paren) else node
        if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
            raise self._no_column(node, what, hint)
        if node.args.get("db"):
            raise self.wrong(node, f"a schema is not supported: {_shown(node)}.", f'"{node.name}", the column alone')
        if node.table and node.table not in self.aliases:
            near = nearest(node.table, [*self.aliases]).strip('"')
            named = f"{near}.{node.name}" if near else f'{node.name}, without "{node.table}."'
            raise self.wrong(node, f'"{node.table}" is not the stream of this statement.', named)
        return str(node.name)

    def value(self, node: Node, what: str, hint: str) -> str:
        """What an aggregate is of: a column, or SQL over the columns of an event, as text."""
        inner = node.unnest() if isinstance(node, exp.Paren) else node
        if isinstance(inner, exp.Column) and isinstance(inner.this, exp.Identifier):
            return quoted(self.column(inner, what, hint))
        if isinstance(node, exp.Literal | exp.Star | exp.Column | Over) or _is_aggregate(inner):
            raise self._no_column(node, what, hint)
        found = self._of_events(node, _sql(node), f"{what}(…)", what)
        return f"({found})" if found.isidentifier() else found  # TRUE, NULL: as plain words columns may be called so

    def _no_column(self, node: Node, what: str, hint: str) -> BadSQL:
        """The error for something else than a column where `what` takes columns by name."""
        self._refuse_by_name(node)
        if isinstance(node, Over) or (isinstance(node, exp.Anonymous) and node.name.upper() in EXAMPLES):
            inner = "FROM (SELECT SUM(x) AS s FROM t [ROWS 10]) [ROWS 5]"
            return self.wrong(node, f"{what} takes columns by name, not another aggregate: {_shown(node)}.", inner)
        if isinstance(node, exp.Literal) and node.is_string:
            hint = f'"{node.this}" in double quotes is the column; {hint}'
        elif isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            return self.wrong(node, f"{_shown(node)} is not supported.", "aggregates, e.g. COUNT(*)")
        return self.wrong(node, f"{what} takes columns by name, not {_shown(node)}.", hint)

    def _refuse_by_name(self, node: Node) -> None:
        if type(node) in NODES:
            name, instead = NODES[type(node)]
            raise self.wrong(node, f"{name} is not supported.", instead)

    def wrong(self, node: Node, message: str, hint: str) -> BadSQL:
        return wrong(self.text, start_of(node, self.start), message, hint)

    # -- terms --------------------------------------------------------------------------------------------------------

    def _term(self, node: Node) -> Any:
        try:
            return self._known(node)
        except OfConstants:
            if not any(self._answers(node)):
                raise
            return self._scalar(node)
        except BadSQL:
            raise
        except BadQuery as why:
            raise self.wrong(node, why.message, WRITTEN.get(type(node), EXPECTED)) from None

    def _of_constants(self, node: Node, message: str, hint: str) -> OfConstants:
        said = self.wrong(node, message, hint)
        error = OfConstants(said.message, said.hint)
        error.__cause__ = said
        return error

    def _truth(self, node: Node) -> Any:
        """A term that is true or false. An aggregate that may be, such as BOOL_OR(b), is a condition by itself."""
        term = self._term(node)
        if isinstance(term, bool):
            raise self._of_constants(node, f"{_shown(node)} is of constants alone.", "a condition: SUM(x) > 1")
        if isinstance(term, Expression) and term.op == "coalesce":
            return self._scalar(node)  # which may be of conditions
        leaf = term.aggregate if isinstance(term, Windowed) else term
        may_be = isinstance(leaf, Aggregate) and KINDS[leaf.kind].answers in ("booleans", "as the column")
        return Expression(SQL, ("_1", term)) if may_be else term

    def _known(self, node: Node) -> Any:
        """The aggregate, expression or constant that a node of the tree stands for; other nodes are refused by name."""
        if isinstance(node, exp.Paren):
            return self._term(node.this)
        if is_constant(node):
            return constant(node)
        if type(node) in _BINARY:
            return self._binary(_BINARY[type(node)], node)
        if isinstance(node, exp.And | exp.Or):
            return Expression(node.key, tuple(self._truth(each) for each in node.flatten()))
        if isinstance(node, exp.Not):
            return Expression("not", (self._truth(node.this),))
        if isinstance(node, exp.Neg):
            return self._negated(node, self._term(node.this))
        if isinstance(node, exp.Between) and not node.args.get("symmetric"):
            return self._of("between", node, [self._term(node.args[part]) for part in ("this", "low", "high")])
        if isinstance(node, exp.In) and node.expressions:
            return self._of("in", node, [self._term(each) for each in (node.this, *node.expressions)])
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
            return self._of("is null", node, [self._term(node.this)])
        if isinstance(node, Over):
            return self._over(node)
        if isinstance(node, exp.Anonymous | exp.WithinGroup):
            return self._call(node)
        if isinstance(node, exp.Column):
            return self._named(node)
        self._refuse_by_name(node)
        if isinstance(node, exp.Star):
            raise self.wrong(node, f"{_shown(node)} is not supported.", WRITTEN[type(node)])
        if isinstance(node, exp.Null):
            raise self._of_constants(node, f"{_shown(node)} is not supported.", WRITTEN[type(node)])
        return self._scalar(node)

    def _of(self, op: str, node: Node, terms: Sequence[Any]) -> Any:
        """An operator of expressions; as SQL, where these are others than it can be of: IN of aggregates, a condition
        that is compared, a time and how much later."""
        if not any(isinstance(each, Operators) for each in terms):
            raise self._of_constants(node, f"{_shown(node)} is of constants alone.", WRITTEN.get(type(node), EXPECTED))
        conditions = any(isinstance(each, Expression) and each.is_condition and each.op != SQL for each in terms)
        listed = op == "in" and any(isinstance(each, Operators) for each in terms[1:])
        times = op in ARITHMETIC and any(word(each) not in (None, "DECIMAL") for each in terms)
        return self._scalar(node) if conditions or listed or times else Expression(op, tuple(terms))

    def _scalar(self, node: Node) -> Expression:
        """Any other SQL over answers. The aggregates in it become places."""
        holder = exp.Paren(this=node.copy())
        found = list(self._answers(holder.this))
        terms, written = list(map(self._term, found)), list(map(_shown, found))
        if not terms:
            hint = EXAMPLES.get(node.name.upper(), "an aggregate in it: ROUND(AVG(x), 1)")
            raise self._of_constants(node, f"{_shown(node)} is of constants alone.", hint)
        for number, each in enumerate(found, 1):
            each.replace(exp.column(exp.to_identifier(places.place(number))))
        try:
            text = self._of_events(holder.this, _sql(holder.this), "it", "SELECT")
        except BadSQL as why:
            error = BadSQL(places.told(why.message, written), places.told(why.hint, written))
            error.line, error.column = why.line, why.column
            raise error from None
        return Expression(SQL, (text, *terms))

    def _answers(self, node: Node) -> Iterator[Node]:
        """The aggregates in a tree, and the names of some: what does not lie in another."""
        if isinstance(node, exp.Column | Over | exp.WithinGroup) or _is_aggregate(node):
            yield node
        else:
            for each in list(node.iter_expressions()):
                yield from self._answers(each)

    def _named(self, node: Node) -> Any:
        if not node.table and node.name in self.named:
            return self.named[node.name]
        called = EXAMPLES.get(node.name.upper())
        if called and not node.this.args.get("quoted"):
            raise self.wrong(node, f"expected ( after {node.name}, found none.", called)
        text = f", or {node.name!r} in single quotes, which is text" * bool(node.this.args.get("quoted"))
        hint = f'LAST("{node.name}"){text}'
        raise self.wrong(node, f'the column "{node.name}" stands outside any aggregate.', hint)

    def _binary(self, op: str, node: Node) -> Any:
        """An operator of two terms; of two plain numbers, the number that they come to."""
        left, right = self._term(node.this), self._term(node.expression)
        if type(node.this) in _BINARY and op in COMPARISONS and _BINARY[type(node.this)] in COMPARISONS:
            return Expression(op, (left, right))  # SUM(x) > 1 > 0, which compares a condition
        if isinstance(left, Operators) or isinstance(right, Operators):
            return self._of(op, node, (left, right))
        if op not in _FOLD or not (_is_plain(left) and _is_plain(right)):
            raise self._of_constants(node, f"{_shown(node)} is of constants alone.", "compare an aggregate: SUM(x) > 2")
        if op == "/" and right == 0:
            raise self.wrong(node, f"{_shown(node)} divides by zero.", "a number other than 0")
        return self._folded(node, op, left, right)

    def _folded(self, node: Node, op: str, left: float, right: float) -> int | float:
        try:
            folded: int | float = _FOLD[op](left, right)
        except OverflowError:  # of an integer that is no float
            folded = math.nan
        if isinstance(folded, float) and math.isnan(folded):
            raise self.wrong(node, f"{_shown(node)} is not a number.", "smaller numbers")
        return folded

    def _negated(self, node: Node, inner: Any) -> Any:
        if not isinstance(inner, Operators) and not _is_plain(inner):
            raise self.wrong(node, f"{_shown(node)} is minus what is no number.", "-LAST(x), or -5")
        return -inner

    def _over(self, node: Node) -> Any:
        term = self._term(node.this)
        if not isinstance(term, Aggregate):
            raise self.wrong(node, "OVER and FILTER belong to an aggregate.", "SUM(volume) OVER [RANGE 5 MINUTES]")
        if node.args.get("where") is not None:
            term = term.filter(self.predicate(node.args["where"], self.start, node.args["text"]))
        return term if node.args.get("window") is None else term.over(node.args["window"])

    def predicate(self, node: Node, start: int, text: str) -> str:
        """A condition on the event, as text."""
        self.start = start
        return self._of_events(node, text, "the condition", "WHERE")

    def _of_events(self, node: Node, text: str, what: str, where: str) -> str:
        """SQL over the columns of single events, in its normal form."""
        try:
            for each in node.walk():
                self._check_about_events(each, where)
            return compiled(text).text
        except BadSQL:
            raise
        except NotSQL as why:
            blamed = self._to_blame(node)
            name, call, _ = _shown(blamed).partition("(")
            if why.arguments and call and name.isidentifier():
                raise self._other_arguments(blamed, name, why.arguments) from None
            said = f"{what} is not an SQL expression{f' {why.message}' * bool(why.message)}."
            raise self.wrong(node, said, "\"side = 'buy' AND price > 20\"") from None
        except (TooDeep, RecursionError):
            raise self.wrong(node, f"{what} is nested too deep.", SHALLOW) from None
        except BadQuery as why:
            hint = ELSEWHERE.get(why.message.split(" ")[0].upper()) or why.hint or "price > 20"
            raise self.wrong(self._to_blame(node), why.message, hint) from None

    def _other_arguments(self, node: Node, name: str, number: str) -> BadSQL:
        """The error for a function over events that is given more or fewer arguments than it takes."""
        takes = takes_of(name)
        hint = f"{name}({', '.join(takes)})" if takes else "docs/sql.md, which has an example of each"
        return self.wrong(node, f"{name} takes other arguments: {_shown(node)} has {number}.", hint)

    def _to_blame(self, node: Node) -> Node:
        """The smallest part that can not be compiled."""
        wrong: Node | None = node
        while wrong is not None:
            node = wrong
            parts = (each for each in node.iter_expressions() if isinstance(each, exp.Condition))
            wrong = next((each for each in parts if not _compiles(each)), None)
        return node

    def _check_about_events(self, node: Node, where: str) -> None:
        """A part of an expression about single events. where: it stands in WHERE, or in an aggregate of that name."""
        if isinstance(node, exp.Column):
            self.column(node, "a condition on the event", "price > 20")
        self._refuse_by_name(node)
        if isinstance(node, exp.Anonymous) and node.name.upper() in ELSEWHERE:
            name = node.name.upper()
            raise self.wrong(node, f"the function {name} is not supported.", ELSEWHERE[name])
        compares = _BINARY.get(type(node), "+") not in _FOLD
        if compares and any(isinstance(each, exp.Null) for each in (node.this, node.expression)):
            of = node.expression if isinstance(node.this, exp.Null) else node.this
            test = "IS NOT NULL" if isinstance(node, exp.NEQ) else "IS NULL"
            raise self.wrong(node, f"{_shown(node)} is null, whatever the row.", f"{_shown(of)} {test}")
        if isinstance(node, exp.In) and not node.expressions and node.args.get("field") is not None:
            raise self.wrong(node, "expected ( after IN, found a value without them.", "x IN (1, 2, 3)")
        if isinstance(node, exp.In) and not any(node.args.get(part) for part in ("expressions", "query", "unnest")):
            hint = f"{_shown(node.this)} IN (1, 2, 3)"
            raise self.wrong(node, f"{_shown(node)} is true of no row: there is nothing in it.", hint)
        if isinstance(node, Over) or _is_aggregate(node):
            hint = "HAVING" if where == "WHERE" else "FROM (SELECT SUM(x) AS s FROM t [ROWS 10]) [ROWS 5]"
            raise self.wrong(node, f"{_shown(node)} is an aggregate; {where} is about single events.", hint)

    # -- calls --------------------------------------------------------------------------------------------------------

    def _call(self, node: Node) -> Any:
        """A function by its name: an aggregate, ABS, COALESCE or PERCENTILE_CONT."""
        call, ordered = (node.this, node.expression) if isinstance(node, exp.WithinGroup) else (node, None)
        if not isinstance(call, exp.Anonymous):
            raise self.wrong(node, f"{_shown(node)} is not supported.", EXPECTED)
        name, given = call.name.upper(), call.expressions
        if ordered is not None or name == "PERCENTILE_CONT":
            return self._percentile(call, name, ordered)
        if name in ("ABS", "COALESCE"):
            return self._computed(node, name, given)
        if name not in AGGREGATES:
            if name in ELSEWHERE or not is_scalar(name):
                raise no_function(self.text, name, start_of(call, self.start))
            return self._scalar(node)
        if name == "COUNT" and (not given or isinstance(given[0], exp.Star) or _is_number(given[0])) and len(given) < 2:
            return kinds.count()
        return self._aggregate(node, name, given)

    def _aggregate(self, node: Node, name: str, given: list[Node]) -> Any:
        """An aggregate from its columns and constants, as many as it takes. COUNT(DISTINCT x) is one, too."""
        function = AGGREGATES[name]
        if (
            name == "COUNT"
            and len(given) == 1
            and isinstance(given[0], exp.Distinct)
            and len(given[0].expressions) == 1
        ):
            name, given = "COUNT_DISTINCT", given[0].expressions
            function = AGGREGATES[name]
        if any(isinstance(each, exp.Distinct) for each in given):
            every = f"{name}(x), which takes every value, equal ones too"
            every = "COUNT(DISTINCT x), of one column" if name == "COUNT" else every
            raise self.wrong(node, f"{name}(DISTINCT …) is not supported.", every)
        least, most = function.columns + function.least, function.columns + function.most
        if not least <= len(given) <= most:
            some = f"{len(given) or 'no'} argument{'s' * (len(given) != 1)}"
            raise self.wrong(node, f"{name} takes {function.takes}, found {some}.", function.example)
        names = [self.value(each, name, function.example) for each in given[: function.columns]]
        constants = [self._constant(each, name, function.example) for each in given[function.columns :]]
        try:
            return function.build(*names, *constants)
        except BadQuery as why:
            raise self.wrong(node, why.message, function.example) from None

    def _computed(self, node: Node, name: str, given: list[Node]) -> Any:
        """ABS or COALESCE."""
        if len(given) != 1 if name == "ABS" else len(given) < 2:
            takes = "1 value" if name == "ABS" else "at least 2 values"
            raise self.wrong(node, f"{name} takes {takes}, found {len(given) or 'none'}.", EXAMPLES[name])
        terms = tuple(self._term(each) for each in given)
        if not any(isinstance(term, Operators) for term in terms):
            raise self._of_constants(node, f"{_shown(node)} is of constants alone.", EXAMPLES[name])
        return self._of(name.lower(), node, terms)

    def _percentile(self, call: Node, name: str, ordered: Node) -> Any:
        """PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x), which is a quantile by the method "linear"."""
        if name != "PERCENTILE_CONT":
            raise self.wrong(
                call, f"{name} does not go WITHIN GROUP.", NOT_OURS.get(name) or EXAMPLES.get(name, PERCENTILE)
            )
        order = ordered.expressions[0] if ordered is not None and len(ordered.expressions) == 1 else None
        if order is None or len(call.expressions) != 1 or order.args.get("desc"):
            message = "PERCENTILE_CONT takes a fraction, and one column in ascending order."
            raise self.wrong(call, message, PERCENTILE)
        column = self.value(order.this, name, PERCENTILE)
        fraction = self._constant(call.expressions[0], name, PERCENTILE)
        try:
            return kinds.quantile(column, fraction, method="linear")
        except BadQuery as why:
            raise self.wrong(call, why.message, PERCENTILE) from None

    def _constant(self, node: Node, name: str, hint: str) -> Any:
        value = None if isinstance(node, exp.Column) else self._term(node)
        if value is None or isinstance(value, Operators):
            raise self.wrong(node, f"{name} takes a constant there, not {_shown(node)}.", hint)
        return value


def _is_aggregate(node: Node) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.upper() in AGGREGATES


def _compiles(node: Node) -> bool:
    """Not so where something in it is wrong; what is too deep to look into can not be blamed any further."""
    try:
        compiled(_sql(node))
    except (TooDeep, RecursionError):
        return True
    except BadQuery:
        return False
    return True


def _is_plain(constant: Any) -> bool:
    return isinstance(constant, int | float) and not isinstance(constant, bool)


def _is_number(node: Node) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string


def _shown(node: Node) -> str:
    text = _sql(node) if isinstance(node, exp.Expression) else str(node)
    text = text or type(node).__name__
    return text if len(text) <= 60 else f"{text[:57]}…"


def _sql(node: Node) -> str:
    """A tree as SQL again, to be shown in a message."""
    from sqlglot import ErrorLevel

    if isinstance(node, Over):
        return f"{_sql(node.this)} OVER …"
    try:
        return str(node.sql(dialect="duckdb", comments=False, unsupported_level=ErrorLevel.IGNORE))
    except (ValueError, AttributeError, TypeError):  # a part that sqlglot has no words for
        return type(node).__name__
