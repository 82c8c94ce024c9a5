"""DEFINE and MEASURES: what is asked of rows, of the rows before them, and of the match so far.

    B AS price < PREV(price)              of a row and the one before it: columns, computed for all rows at once
    B AS price < AVG(A.price)             of the match so far: an aggregate of its rows that are A's
    B AS B.price < A.price                B is the row itself, and A.price the price of the last A
    LAST(B.price) / FIRST(A.price)        in MEASURES: of the whole match

PREV(price, 2) looks two rows back, whether these are part of the match or not. A condition is split at its ANDs: those
parts that are about rows alone are computed beforehand.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from frames.patterns.reading import EXAMPLE
from swag.errors import BadQuery
from swag.query.aggregates import Aggregate
from swag.query.kind import KINDS
from swag.sql import term
from swag.sql.functions import AGGREGATES as CALLS
from swag.sql.functions import NOT_OURS
from swag.sql.places import unplaced
from swag.tables.conjuncts import is_node, written
from swag.tables.expressions.derived import derived
from swag.tables.expressions.expression import compiled

MEASURE = "of the match "  # the name of a column that stands for an aggregate of it begins so
FAR = 1000  # rows that PREV looks back
AGGREGATES = {
    "Count": "count", "Sum": "sum", "Avg": "mean", "Min": "min", "Max": "max", "First": "first", "Last": "last",
}  # fmt: skip
GROWING = "COUNT, SUM, AVG, MIN, MAX, FIRST or LAST"
CALLED = {"mean": "AVG"}  # those that SQL calls otherwise
REFUSED = {
    "NEXT": "PREV: conditions look back. A symbol of its own, for the row behind, looks ahead",
    "CLASSIFIER": "COUNT(A.*) says how many rows are A's",
    "MATCH_NUMBER": "frame_id numbers the matches",
}


class Shifted(NamedTuple):
    """What a row so far back has: SQL over its columns."""

    text: str
    back: int

    @property
    def name(self) -> str:
        """What its column is called."""
        return f"PREV({self.text}, {self.back})"


class Grown(NamedTuple):
    """An aggregate of the rows of a match that are of a symbol (None: of all). text: of what; None: the rows. whole: it
    is of whole matches, none of those that grow with one; then text is how it was written."""

    kind: str
    symbol: str | None
    text: str | None
    distinct: bool = False
    whole: Aggregate | None = None

    @property
    def columns(self) -> frozenset[str]:
        """Those of events that it reads."""
        if self.whole is None:
            return frozenset() if self.text is None else columns_read(self.text)
        read = {name: derived(name) for name in self.whole.columns}
        return frozenset(each for name, of in read.items() for each in ([name] if of is None else of.columns))

    def __str__(self) -> str:
        if self.whole is not None:
            return self.text or ""
        return f"{CALLED.get(self.kind, self.kind.upper())}({'DISTINCT ' * self.distinct}{self.of})"

    @property
    def of(self) -> str:
        """What it is of, with the symbol before each column."""
        if self.text is None or self.symbol is None:
            return "*" if self.text is None else self.text
        return written(_changed(parsed(self.text, self.text), self._with_symbol))

    def _with_symbol(self, node: Any) -> Any:
        from sqlglot import exp

        return exp.column(node.this.copy(), self.symbol) if is_node(node, "Column") else None


class SymbolCondition(NamedTuple):
    """Of a symbol. rows: the parts about rows alone, as SQL (None: there are none); match: trees of the others."""

    rows: str | None
    match: tuple[Any, ...]


class PatternTerms:
    """Reads conditions and measures of one pattern. Owns what they refer to: `shifted` and `grown`, each once."""

    def __init__(self, symbols: list[str]) -> None:
        self.symbols = {name.upper(): name for name in symbols}
        self.shifted: list[Shifted] = []
        self.grown: list[Grown] = []

    def condition(self, symbol: str, text: str) -> SymbolCondition:
        """DEFINE symbol AS text."""
        what = f"DEFINE {symbol} AS {text}"
        tree = _changed(parsed(text, what), lambda node: self._in_define(node, symbol, what)).unnest()
        parts = [each.unnest() for each in tree.flatten()] if is_node(tree, "And") else [tree]
        rows = [written(part) if not is_node(part, "Or") else f"({written(part)})" for part in parts if not grows(part)]
        match = tuple(part for part in parts if grows(part))
        return SymbolCondition(" AND ".join(rows) or None, match)

    def measure(self, name: str, text: str) -> str:
        """MEASURES text AS name: the same over columns that stand for aggregates of the match."""
        what = f"MEASURES {text} AS {name}"
        said = written(_changed(parsed(text, what), lambda node: self._in_measures(node, what)))
        try:
            compiled(said)
        except BadQuery as why:
            raise BadQuery(f"{what}: {in_words(why.message, self.grown)}", why.hint) from None
        return said

    def _in_define(self, node: Any, own: str, what: str) -> Any:
        """What stands for a part of a condition; None: its own parts do."""
        if is_node(node, "Column"):
            symbol = self._symbol(node, what)
            if symbol is None or symbol == own:
                return plain(node)
            return self._of_match(Grown("last", symbol, written(plain(node))))
        if called(node) == "PREV":
            return self._previous(node, own, what)
        found = self._growing(node, what)
        if found is None:
            if is_aggregate(node):
                raise BadQuery(f"{what}: {written(node)} does not grow with a match.", GROWING)
            return None
        if found.distinct:
            raise BadQuery(f"{what}: {written(node)} does not grow with a match.", "COUNT(A.x)")
        if found.kind == "last" and found.symbol in (None, own):  # which is the row itself
            return _stripped(node.this)
        return self._of_match(found)

    def _in_measures(self, node: Any, what: str) -> Any:
        if is_node(node, "Column"):
            return self._of_match(Grown("last", self._symbol(node, what), written(plain(node))))
        if called(node) == "PREV":
            raise BadQuery(f"{what}: PREV is not supported in MEASURES.", "a symbol of its own for that row: LAST(A.x)")
        found = self._growing(node, what) or self._whole(node, what)
        return None if found is None else self._of_match(found)

    def _previous(self, node: Any, own: str, what: str) -> Any:
        """PREV(x), PREV(x, n): a column."""
        inner, *more = node.expressions or [None]
        back = int(more[0].this) if more and is_node(more[0], "Literal") and more[0].this.isdigit() else 1
        if inner is None or len(more) > 1 or (more and (not is_node(more[0], "Literal") or back > FAR)):
            raise BadQuery(f"{what}: {written(node)} takes a value and a number of rows up to {FAR}.", "PREV(price, 2)")
        for each in inner.walk():
            if called(each) or is_aggregate(each):
                raise BadQuery(f"{what}: {written(node)} is not supported: PREV is of columns.", "PREV(price)")
            if is_node(each, "Column") and self._symbol(each, what) not in (None, own):
                hint = f"PREV({each.name}), which is of the row before this one; or {written(each)}, of the last one"
                raise BadQuery(f"{what}: {written(node)} is not supported: the row is {own}'s.", hint)
        inner = _stripped(inner)
        return inner if back == 0 else quoted(_once(self.shifted, Shifted(written(inner), back)).name)

    def _growing(self, node: Any, what: str) -> Grown | None:
        """The aggregate that a part is, if it can grow with a match; or COUNT(DISTINCT …), which can not."""
        if called(node) in REFUSED:
            raise BadQuery(f"{what}: {called(node)} is not supported.", REFUSED[called(node)])
        if is_node(node, "Filter"):
            raise BadQuery(f"{what}: FILTER is not supported.", "SUM(CASE WHEN A.x > 1 THEN A.x END)")
        kind = AGGREGATES.get(type(node).__name__)
        if kind is None:
            return None
        of, distinct = node.this, is_node(node.this, "Distinct")
        of = of.expressions[0] if distinct and len(of.expressions) == 1 else of
        extra = [name for name, given in node.args.items() if given and name not in ("this", "big_int")]
        if extra or (distinct and kind != "count"):
            raise BadQuery(f"{what}: {written(node)} is not supported.", f"{written(node).partition('(')[0]}(A.x)")
        rows = is_node(of, "Star") or (is_node(of, "Column") and is_node(of.this, "Star"))
        symbol = self._one_symbol(node, what, is_of_rows=rows)
        return Grown(kind, symbol, None if rows else written(_stripped(of)), distinct)

    def _whole(self, node: Any, what: str) -> Grown | None:
        """The aggregate that a part is, if it is another that statements know."""
        if not is_aggregate(node):
            return None
        symbol = self._one_symbol(node, what)
        try:
            found = term(written(_stripped(node)))
        except BadQuery as why:
            raise BadQuery(f"{what}: {unplaced(why.message)}", why.hint) from None
        if not isinstance(found, Aggregate) or KINDS[found.kind].timed:
            hint = "fr.summarize(frames, events, …, own=True), where the end of a match is the time"
            raise BadQuery(f"{what}: {written(node)} depends on when it is asked for.", hint)
        return Grown(found.kind, symbol, written(node), whole=found)

    def _one_symbol(self, node: Any, what: str, is_of_rows: bool = False) -> str | None:
        """The symbol of whose rows an aggregate is; None: of those of all."""
        columns = list(node.find_all(*_column_types()))
        symbols = {self._symbol(each, what) for each in columns}
        if len(symbols) > 1:
            raise BadQuery(f"{what}: {written(node)} is of several symbols.", "AVG(A.price * A.volume)")
        if not columns and not is_of_rows:
            raise BadQuery(f"{what}: {written(node)} is of no column.", "COUNT(*), SUM(A.x)")
        return next(iter(symbols), None)

    def _symbol(self, column: Any, what: str) -> str | None:
        """The symbol that a column is of; None: it does not say."""
        said = column.args.get("table")
        if said is None:
            return None
        if said.name.upper() not in self.symbols:
            raise BadQuery(
                f'{what}: "{said.name}" is no symbol of the pattern, which has: {", ".join(self.symbols.values())}.',
                f"{next(iter(self.symbols.values()))}.{column.name}",
            )
        return self.symbols[said.name.upper()]

    def _of_match(self, grown: Grown) -> Any:
        _once(self.grown, grown)
        return quoted(f"{MEASURE}{self.grown.index(grown)}")


def parsed(text: Any, what: str) -> Any:
    """The tree of an expression; one that can not be read is refused."""
    import sqlglot

    from frames.patterns.dialect import MatchDialect

    if not isinstance(text, str) or not text.strip():
        raise BadQuery(f"{what}: expected SQL, found {text!r}.", EXAMPLE)
    try:
        tree = sqlglot.parse_one(text, into=sqlglot.exp.Condition, dialect=MatchDialect)
    except sqlglot.errors.SqlglotError as why:
        column = (getattr(why, "errors", None) or [{}])[0].get("col")
        place = "" if column is None else f" at column {column}"
        raise BadQuery(f"{what} can not be read{place}.", EXAMPLE) from None
    except RecursionError:
        raise BadQuery(f"{what[:60]}…: it is nested too deep.", "fewer parentheses") from None
    return tree.transform(lambda node: _percentile(node, what) if is_node(node, "WithinGroup") else node)


def _percentile(node: Any, what: str) -> Any:
    """PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x) as the quantile that it is."""
    from sqlglot import exp

    order, of = node.expression.expressions, node.this.expressions
    if called(node.this) != "PERCENTILE_CONT" or len(order) != 1 or len(of) != 1 or order[0].args.get("desc"):
        raise BadQuery(f"{what}: WITHIN GROUP is not supported so.", "QUANTILE(A.x, 0.99, 'linear')")
    return exp.Anonymous(this="QUANTILE", expressions=[order[0].this, of[0], exp.Literal.string("linear")])


def in_words(text: str, grown: Sequence[Grown]) -> str:
    """As it was written, about: with the aggregates that columns stand for."""
    for i, each in reversed(list(enumerate(grown))):
        text = text.replace(f'"{MEASURE}{i}"', str(each)).replace(f"{MEASURE}{i}", str(each))
    return text


def columns_read(text: str) -> frozenset[str]:
    """The columns of events that SQL over them reads; what stands for others is left out."""
    return frozenset(name for name in compiled(text).columns if not name.startswith((MEASURE, "PREV(")))


def grows(tree: Any) -> bool:
    """Is anything in it about the match so far?"""
    return any(is_node(each, "Column") and each.name.startswith(MEASURE) for each in tree.walk())


def called(node: Any) -> str:
    """The name of a function that sqlglot does not know, in capitals."""
    return str(node.name).upper() if is_node(node, "Anonymous") else ""


def plain(column: Any) -> Any:
    """The same column, without the symbol that it is of."""
    found = column.copy()
    found.set("table", None)
    return found


def quoted(name: str) -> Any:
    from sqlglot import exp

    return exp.Column(this=exp.Identifier(this=name, quoted=True))


def _stripped(tree: Any) -> Any:
    return _changed(tree, lambda node: plain(node) if is_node(node, "Column") else None)


def _changed(tree: Any, change: Callable[[Any], Any]) -> Any:
    """A copy of a tree, with those parts replaced for which `change` gives others; what is inside is not seen."""
    new = change(tree)
    if new is not None:
        return new
    found = tree.copy()
    for name, given in tree.args.items():
        if isinstance(given, list):
            found.set(name, [_changed(each, change) if hasattr(each, "walk") else each for each in given])
        elif hasattr(given, "walk"):
            found.set(name, _changed(given, change))
    return found


def is_aggregate(node: Any) -> bool:
    """Is it of several rows, whatever sqlglot knows of it?"""
    from sqlglot import exp

    return isinstance(node, exp.AggFunc) or called(node) in CALLS or called(node) in NOT_OURS


def _column_types() -> tuple[Any, ...]:
    from sqlglot import exp

    return (exp.Column,)


def _once(among: list[Any], one: Any) -> Any:
    if one not in among:
        among.append(one)
    return one
