"""A pattern with its conditions and measures, ready for events: made once for equal ones."""

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from frames.patterns.automaton import automaton
from frames.patterns.comparisons import Compared, comparisons
from frames.patterns.conditions import Grown, PatternTerms, Shifted, SymbolCondition, columns_read
from frames.patterns.programs import Programs, programs
from frames.patterns.reading import read, symbols_of, written
from frames.patterns.transitions import machine
from kernels.frames.backtracking import Choices
from kernels.frames.patterns import Machine
from swag.errors import BadQuery, nearest

ALWAYS = SymbolCondition(None, ())  # of a symbol that has no condition
Pairs = tuple[tuple[str, str], ...]  # names and SQL
MOST_SYMBOLS = 64  # a row's are the bits of a word


class Compiled(NamedTuple):
    """What a pattern is at work. conditions: of each symbol; compared: the same
    as comparisons, where they are no more; conditional: the numbers of those that rows must satisfy.

    shifted: columns of rows before. machine: the table that finds matches; None: they are found by going back. choices,
    programs: for that, and to tell which row of a match is which symbol. said: measures by name, as SQL over columns
    that stand for `measured`. columns: of events, that are read.
    """

    symbols: tuple[str, ...]
    conditions: tuple[SymbolCondition, ...]
    compared: tuple[tuple[Compared, ...] | None, ...]
    conditional: tuple[int, ...]
    shifted: tuple[Shifted, ...]
    machine: Machine | None
    choices: Choices
    programs: Programs
    said: Mapping[str, str]
    measured: tuple[Grown, ...]
    columns: tuple[str, ...]

    @property
    def back(self) -> int:
        """How many rows before a row its conditions look at."""
        return max((each.back for each in self.shifted), default=0)


def normal(pattern: str, define: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """The one way to write a pattern, and its conditions by the symbols as they are written there."""
    tree = read(pattern)
    known = {name.upper(): name for name in symbols_of(tree)}
    if len(known) > MOST_SYMBOLS:
        raise BadQuery(f"a pattern of {len(known)} symbols; there may be {MOST_SYMBOLS}.", "fewer of them")
    found: dict[str, str] = {}
    for symbol, text in define.items():
        if not isinstance(symbol, str) or symbol.upper() not in known:
            raise BadQuery(
                f"DEFINE {symbol} AS {text}: no symbol of the pattern, which has: {', '.join(known.values())}.",
                nearest(str(symbol), list(known.values())) or f"leave it out, or PATTERN (… {symbol} …)",
                name=str(symbol),
            )
        if known[symbol.upper()] in found:
            hint = "one condition for each symbol, with AND or OR in it"
            raise BadQuery(f"DEFINE has {symbol} twice.", hint, name=symbol)
        found[known[symbol.upper()]] = text
    return written(tree), {name: found[name] for name in known.values() if name in found}


@lru_cache(maxsize=256)
def compiled_pattern(pattern: str, define: Pairs, measures: Pairs) -> Compiled:
    """Of a normal pattern. Raises what is wrong with conditions and measures, as far as that shows without events."""
    tree = read(pattern)
    symbols = symbols_of(tree)
    terms, of_matches, given = PatternTerms(symbols), PatternTerms(symbols), dict(define)
    conditions = [terms.condition(name, given[name]) if name in given else ALWAYS for name in symbols]
    said = {name: of_matches.measure(name, text) for name, text in measures}
    order = automaton(tree, symbols)
    conditional = tuple(i for i, each in enumerate(conditions) if each.rows is not None)
    by_rows = all(not each.match for each in conditions)
    found = programs(terms, symbols, [each.match for each in conditions])
    texts = [each.rows for each in conditions] + [each.text for each in terms.shifted]
    texts += found.columns
    of_events = {name for text in texts if text is not None for name in columns_read(text)}
    read_columns = sorted(of_events.union(*(each.columns for each in of_matches.grown)))
    behind = [np.array(each, np.int64) for each in (*order.behind, order.first)]
    starts = np.cumsum([0, *(each.size for each in behind)])
    return Compiled(
        tuple(symbols), tuple(conditions), tuple(map(comparisons, conditions)), conditional, tuple(terms.shifted),
        machine(order, conditional) if by_rows else None,
        Choices(np.array(order.labels, np.int64), starts.astype(np.int64), np.concatenate(behind)),
        found, said, tuple(of_matches.grown), tuple(read_columns),
    )  # fmt: skip
