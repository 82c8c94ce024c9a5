"""Matches of a pattern by definition, slowly: what `detect` must find, in plain Python and without any automaton.

From the first row on that is in no match yet, all ways to read the pattern are gone through in order of preference: a
choice's parts in order, a repetition rather once more than not; the first way that leads to the end is the match. If it
takes no row, or there is none, the next row is tried. A condition is about the row that is tried, as if it were the
symbol's, the rows before it, and those of the match so far.
"""

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from frames.patterns.conditions import called, parsed
from frames.patterns.reading import Either, Node, Repeat, Symbol, read
from frames.patterns.reading import Sequence as InOrder
from frames.specs import Pattern
from swag.tables.times.durations import in_units

Event = dict[str, Any]
Labels = tuple[str, ...]
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.add, "Sub": operator.sub, "Mul": operator.mul, "Div": operator.truediv, "LT": operator.lt,
    "LTE": operator.le, "GT": operator.gt, "GTE": operator.ge, "EQ": operator.eq, "NEQ": operator.ne,
}  # fmt: skip
AGGREGATES: dict[str, Callable[[list[Any]], Any]] = {
    "Sum": sum, "Min": min, "Max": max, "Avg": lambda values: sum(values) / len(values),
}  # fmt: skip


class Match(NamedTuple):
    """Rows first … last, and the symbol of each."""

    first: int
    last: int
    labels: Labels


def matches(spec: Pattern, rows: Sequence[Event], ts: str = "ts") -> list[Match]:
    """All of them, of rows in order, but those that are too short or too long (here in the unit of ts)."""
    most = math.inf if spec.max_rows is None else spec.max_rows
    shortest = in_units(spec.min_duration, None)
    longest = math.inf if spec.max_duration is None else in_units(spec.max_duration, None)

    def is_allowed(match: Match) -> bool:
        span = rows[match.last][ts] - rows[match.first][ts]
        return bool(spec.min_rows <= len(match.labels) <= most and shortest <= span <= longest)

    return [match for match in _all_matches(spec, rows) if is_allowed(match)]


def _all_matches(spec: Pattern, rows: Sequence[Event]) -> list[Match]:
    found: list[Match] = []
    tree, first = read(spec.pattern), 0
    while first < len(rows):
        labels = next(_Reading(spec, rows, first).ways(tree, ()), ())
        if labels:
            found.append(Match(first, first + len(labels) - 1, labels))
        first += max(len(labels), 1)
    return found


def can_be_read(spec: Pattern, rows: Sequence[Event]) -> bool:
    """Is there any way to read the pattern that takes all of these rows?"""
    return any(len(labels) == len(rows) for labels in _Reading(spec, rows, 0).ways(read(spec.pattern), ()))


def measured(spec: Pattern, rows: Sequence[Event], match: Match) -> tuple[Any, ...]:
    """What the measures say of a match."""
    reading = _Reading(spec, rows, match.first)
    return tuple(
        reading.value(parsed(text, name), match.last, None, match.labels) for name, text in spec.measures.items()
    )


class _Reading:
    """The ways to read a pattern from one row on."""

    def __init__(self, spec: Pattern, rows: Sequence[Event], first: int) -> None:
        self.rows, self.first = rows, first
        self.define = {name: parsed(text, name) for name, text in spec.define.items()}

    def ways(self, node: Node, labels: Labels) -> Iterator[Labels]:
        """The symbols of all rows after this part, in order of preference. labels: those before it."""
        if isinstance(node, Symbol):
            if self.holds(node.name, labels):
                yield (*labels, node.name)
        elif isinstance(node, Either):
            for part in node.parts:
                yield from self.ways(part, labels)
        elif isinstance(node, InOrder):
            yield from self._in_order(node.parts, labels)
        else:
            yield from self._repeated(node, labels)

    def _in_order(self, parts: tuple[Node, ...], labels: Labels) -> Iterator[Labels]:
        if not parts:
            yield labels
            return
        for after in self.ways(parts[0], labels):
            yield from self._in_order(parts[1:], after)

    def _repeated(self, node: Repeat, labels: Labels) -> Iterator[Labels]:
        part, least, most = node
        fewer = Repeat(part, max(least - 1, 0), None if most is None else most - 1)
        if most != 0:
            for after in self.ways(part, labels):
                if least == 0 and most is None and after == labels:  # a repetition without a row ends the loop
                    yield after
                else:
                    yield from self._repeated(fewer, after)
        if least == 0:
            yield labels

    def holds(self, symbol: str, labels: Labels) -> bool:
        at = self.first + len(labels)
        if at >= len(self.rows):
            return False
        return symbol not in self.define or self.value(self.define[symbol], at, symbol, (*labels, symbol)) is True

    def value(self, node: Any, at: int, own: str | None, labels: Labels) -> Any:
        """What SQL gives of row `at`; None is null. own: the symbol that it is tried for; None: in MEASURES."""
        kind = type(node).__name__
        if kind == "Paren":
            return self.value(node.this, at, own, labels)
        if kind == "Column":
            return self._column(node, at, own, labels)
        if kind == "Literal":
            return node.this if node.is_string else float(node.this) if "." in node.this else int(node.this)
        if called(node) == "PREV":
            back = int(node.expressions[1].this) if len(node.expressions) > 1 else 1
            return self.value(node.expressions[0], at - back, own, labels) if at >= back else None
        if kind in ("First", "Last", "Count", *AGGREGATES):
            return self._aggregate(kind, node.this, labels)
        return self._computed(kind, node, lambda each: self.value(each, at, own, labels))

    def _column(self, node: Any, at: int, own: str | None, labels: Labels) -> Any:
        symbol = node.table or None
        if symbol == own or (symbol is None and own is not None):
            return self.rows[at][node.name]
        return self._aggregate("Last", node, labels)

    def _aggregate(self, kind: str, of: Any, labels: Labels) -> Any:
        named = {each.table for each in of.walk() if type(each).__name__ == "Column"}
        symbol = next(iter(named), "")
        mine = [self.first + i for i, label in enumerate(labels) if symbol in ("", label)]
        if kind == "Count" and (type(of).__name__ == "Star" or type(of.this).__name__ == "Star"):
            return len(mine)
        values = [self.value(of, row, symbol or "any", labels) for row in mine]
        if kind in ("First", "Last"):
            return values[0 if kind == "First" else -1] if values else None
        there = [value for value in values if value is not None]
        if kind == "Count":
            return len(there)
        return AGGREGATES[kind](there) if there else None

    def _computed(self, kind: str, node: Any, value: Callable[[Any], Any]) -> Any:
        """Operators, with NULL as unknown; a comparison with NaN does not hold."""
        if kind == "Neg":
            inner = value(node.this)
            return None if inner is None else -inner
        if kind == "Not":
            inner = value(node.this)
            return None if inner is None else not inner
        if kind in ("And", "Or"):
            both, settles = [value(node.this), value(node.expression)], kind == "Or"
            return settles if settles in both else None if None in both else not settles
        if kind == "Is":
            return value(node.this) is None
        one, other = value(node.this), value(node.expression)
        if one is None or other is None:
            return None
        if kind == "NEQ" and (one != one or other != other):
            return False
        return OPERATORS[kind](one, other)
