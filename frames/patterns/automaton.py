"""Which symbol of a pattern may follow which, in order of preference.

      A (B | C)* D         positions  0:A  1:B  2:C  3:D
      first                0
      behind A             1, 2, 3          rather B than C than D: as many rows as can be
      behind D             the end

A position is one symbol of the pattern, {n,m} written out. What comes first of a row's choices is preferred, and all
that lies behind the end is never looked at: a match that may end there is better. So the preferred match is what a
search finds that tries choices in this order, and goes back one when it is stuck.

A repetition that took no row ends the loop it is in, as in Perl: (A?)* is as good as A*.
"""

from typing import NamedTuple

from frames.patterns.reading import Either, Node, Repeat, Sequence, Symbol
from swag.errors import BadQuery

END = -1  # among the choices: the match may end here
MOST_POSITIONS = 1000  # positions


class Automaton(NamedTuple):
    """labels: the symbol at each position, by its number. first, behind: choices of the first row, and of the next."""

    labels: tuple[int, ...]
    first: tuple[int, ...]
    behind: tuple[tuple[int, ...], ...]


def automaton(tree: Node, symbols: list[str]) -> Automaton:
    """Of a pattern, whose symbols are numbered in this order."""
    builder = _Builder(symbols)
    start = builder.build(tree, builder.end)
    behind = tuple(builder.choices(after) for after in builder.after)
    return Automaton(tuple(builder.labels), builder.choices(start), behind)


class _Builder:
    """Places between rows, each with the places it leads to in order of preference, or with the position it takes.

    Owns them (`ways`, `takes`), where loops go on when they end (`exits`), and for every position its label and the
    place behind it (`labels`, `after`).
    """

    def __init__(self, symbols: list[str]) -> None:
        self.symbols = symbols
        self.ways: list[list[int]] = [[]]
        self.takes: list[int] = [END]
        self.exits: dict[int, int] = {}
        self.end = 0
        self.labels: list[int] = []
        self.after: list[int] = []

    def place(self, ways: list[int], takes: int | None = None) -> int:
        self.ways.append(ways)
        self.takes.append(END - 1 if takes is None else takes)
        return len(self.ways) - 1

    def build(self, node: Node, after: int) -> int:
        """The place where a part begins that goes on at `after`."""
        if isinstance(node, Symbol):
            return self._symbol(node, after)
        if isinstance(node, Sequence):
            for part in reversed(node.parts):
                after = self.build(part, after)
            return after
        if isinstance(node, Either):
            return self.place([self.build(part, after) for part in node.parts])
        return self._repeated(node, after)

    def _symbol(self, node: Symbol, after: int) -> int:
        if len(self.labels) == MOST_POSITIONS:
            raise BadQuery(
                f"a pattern of more than {MOST_POSITIONS:,} symbols, with {{n,m}} written out.", "min_rows, max_rows"
            )
        self.labels.append(self.symbols.index(node.name))
        self.after.append(after)
        return self.place([], len(self.labels) - 1)

    def _repeated(self, node: Repeat, after: int) -> int:
        least = node.least
        if node.most is None:
            loop = self.place([])
            body = self.build(node.part, loop)
            self.ways[loop], self.exits[loop] = [body, after], after
            after = body if least else self.place([body, after])
            least = max(least - 1, 0)
        else:
            end = after
            for _ in range(node.most - least):
                after = self.place([self.build(node.part, after), end])
        for _ in range(least):
            after = self.build(node.part, after)
        return after

    def choices(self, start: int) -> tuple[int, ...]:
        """The positions that a row may take from here, up to where the match may end. A loop that is come upon again on
        the same way took no row in between: it ends."""
        found: dict[int, None] = {}
        seen: set[tuple[int, frozenset[int]]] = set()
        waiting: list[tuple[int, frozenset[int]]] = [(start, frozenset())]  # places, and the loops on the way there
        while waiting and END not in found:
            here, loops = waiting.pop()
            if here in loops:
                here, loops = self.exits[here], loops - {here}
            if (here, loops) in seen:
                continue
            seen.add((here, loops))
            if self.takes[here] >= END:
                found[self.takes[here]] = None
            loops = loops | {here} if here in self.exits else loops
            waiting += [(way, loops) for way in reversed(self.ways[here])]
        return tuple(found)
