"""Many predicates over one batch: each row is led to those that it satisfies, and the others are not tried.

    symbol = 'A' AND price > 20       of each predicate, comparisons of columns with constants are intervals among all
    symbol IN ('B', 'C')              constants that the column is compared with (kernels/keys/intervals.py). One of
    price < 5 AND note LIKE 'x%'      them, the narrowest, is looked up by the row's value, the others are checked.

What is left of a conjunction is tried on the rows that came so far, and what has no such comparison on all rows, each
text once. What is satisfied is what `swag.tables.predicate.holds` says, and so is what raises.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kernels.keys import intervals
from swag.errors import BadEvents, BadType
from swag.tables.columns import decoded_type, taken
from swag.tables.conjuncts import Comparison
from swag.tables.constant_ends import Ends, dispatched, exact
from swag.tables.predicate import columns_of, compile_predicate, holds

NOTHING = np.zeros(0, np.int64)


class Matches(NamedTuple):
    """Rows of a batch, each with a predicate that it satisfies, by its number. Those of a predicate are in order."""

    rows: np.ndarray
    which: np.ndarray


@dataclass
class FilterRule:
    """A box that satisfies a predicate, or part of it: the codes low to high per column; what is left to be tried."""

    which: int
    box: dict[str, tuple[int, int]]
    rest: str


class Dispatch:
    """An index over the constants of predicates, for columns of certain types. It owns nothing but that.

    Asked of it: which rows of a batch satisfy which predicate (`matches`), and how many are found how (`counts`).
    """

    def __init__(self, predicates: Sequence[str], table: pa.Table) -> None:
        """table: a batch, of which the types are read."""
        self.predicates = predicates
        self.types = types_of(predicates, table)
        self._ends: dict[str, Ends] = {}
        parts = [self._split(which, text, table) for which, text in enumerate(predicates)]
        for ends in self._ends.values():
            ends.settle()
        rules = [rule for which, part in enumerate(parts) for rule in self._rules(which, *part)]
        self._tried = [rule for rule in rules if not rule.box]
        self._boxes = [rule for rule in rules if rule.box]
        rests = dict.fromkeys(_all(rest) for found, rest in parts if found and rest)
        self._rests = {text: i for i, text in enumerate(rests)}
        self._which = np.array([rule.which for rule in self._boxes], np.int32)
        self._rest = np.array([self._rests.get(rule.rest, -1) for rule in self._boxes], np.int32)
        self._build()
        self._boxes = []
        for ends in self._ends.values():
            ends.asked, ends.places = [], {}
        self._room = 1024

    # -- made once ----------------------------------------------------------------------------------------------------

    def _split(self, which: int, text: str, table: pa.Table) -> tuple[list[Comparison], list[str]]:
        """The comparisons of a predicate that are dispatched, and what is left."""
        parts = compile_predicate(text).conjuncts
        found = [each for each in parts.comparisons if dispatched(each, self.types[each.column])]
        several = [each for each in found if len(each.constants) > 1]
        found = [each for each in found if each not in several[1:]]  # one list of options is many boxes; two, too many
        rest = [each.text for each in parts.comparisons if each not in found] + ([parts.rest] if parts.rest else [])
        if rest:
            holds(text, table.slice(0, 0))  # raises what is wrong with its types, also where no row is led here
        for each in found:
            ends = self._ends.setdefault(each.column, Ends(self.types[each.column]))
            ends.asked += [near for _, near in exact(each, ends.type)]
        return found, list(dict.fromkeys(rest))

    def _rules(self, which: int, comparisons: list[Comparison], rest: list[str]) -> Iterable[FilterRule]:
        """One, or one for each option of a list."""
        boxes: list[dict[str, tuple[int, int]]] = [{}]
        for each in comparisons:
            found = self._intervals(each)
            boxes = [met for box in boxes for interval in found if (met := _met(box, each.column, interval))]
        return [FilterRule(which, box, _all(rest)) for box in boxes]

    def _intervals(self, comparison: Comparison) -> list[tuple[int, int]]:
        """The codes that satisfy it."""
        ends = self._ends[comparison.column]
        own = exact(comparison, ends.type)
        places = [ends.places[near] for _, near in own]
        first, last = 0, ends.count - 1
        by_op = {
            "=": lambda p: (p, p), "<": lambda p: (first, p - 1), "<=": lambda p: (first, p),
            ">": lambda p: (p + 1, last), ">=": lambda p: (p, last),
        }  # fmt: skip
        return list(dict.fromkeys(by_op[op](p) for (op, _), p in zip(own, places, strict=True) if op in by_op))

    def _build(self) -> None:
        """The trees, and what each rule asks beyond its place there."""
        names = list(self._ends)
        number = {name: i for i, name in enumerate(names)}
        by = [min(rule.box, key=lambda n, of=rule: self._share(n, *of.box[n])) for rule in self._boxes]  # type: ignore[misc]
        others = [
            [(number[n], *codes) for n, codes in rule.box.items() if n != own]
            for rule, own in zip(self._boxes, by, strict=True)
        ]
        starts = np.cumsum([0, *map(len, others)]).astype(np.int32)
        flat = np.array([entry for each in others for entry in each], np.int32).reshape(-1, 3).T.copy()
        self._further = intervals.Further(starts, *flat)
        leaves = np.array([1 << (self._ends[n].count - 1).bit_length() if n in set(by) else 0 for n in names], np.int64)
        first = np.cumsum(2 * leaves) - 2 * leaves
        nodes, rules = self._covers(by, number, leaves, first)
        order = np.argsort(nodes, kind="stable")
        counts = np.bincount(nodes, minlength=int(2 * leaves.sum()) + 1)
        ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        self._tree = intervals.IntervalTree(leaves, first, ends, rules[order].astype(np.int32))

    def _covers(
        self, by: list[str], number: dict[str, int], leaves: np.ndarray, first: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Which nodes list which rule."""
        scratch, nodes, rules = np.empty(128, np.int64), [NOTHING], [NOTHING]
        for r, (rule, name) in enumerate(zip(self._boxes, by, strict=True)):
            c = number[name]
            n = intervals.cover(*rule.box[name], leaves[c], scratch)
            nodes.append(scratch[:n] + first[c])
            rules.append(np.full(n, r))
        return np.concatenate(nodes), np.concatenate(rules)

    def _share(self, name: str, low: int, high: int) -> float:
        """Of the codes of a column: the smaller, the fewer rows come this way, for all that is known."""
        return (high - low + 1) / self._ends[name].count

    # -- batches ------------------------------------------------------------------------------------------------------

    def fits(self, predicates: Sequence[str], table: pa.Table) -> bool:
        """Is it an index of these predicates, over columns of these types?"""
        same = self.predicates is predicates or self.predicates == predicates
        return same and all(decoded_type(table.schema.field(name).type) == kind for name, kind in self.types.items())

    def matches(self, table: pa.Table) -> Matches:
        """Which rows satisfy which predicate."""
        found = [self._led(table)]
        for rule in self._tried:
            rows = np.flatnonzero(holds(self.predicates[rule.which], table))
            found.append(Matches(rows, np.full(rows.size, rule.which)))
        return found[0] if len(found) == 1 else Matches(*map(np.concatenate, zip(*found, strict=True)))

    def _led(self, table: pa.Table) -> Matches:
        """The rows that the trees of constants lead to a predicate, and that satisfy what is left of it."""
        if not self._ends:
            return Matches(NOTHING, NOTHING)
        codes = np.empty((len(self._ends), table.num_rows), np.int64)
        for out, (name, ends) in zip(codes, self._ends.items(), strict=True):
            ends.codes(table.column(name), out)
        while True:
            rows, rules = np.empty(self._room, np.int64), np.empty(self._room, np.int64)
            count = intervals.stab(codes, self._tree, self._further, rows, rules)
            if count <= self._room:
                break
            self._room = 2 * count
        rows, rules = rows[:count], rules[:count]
        if self._rests:
            keep = self._satisfied(rows, self._rest[rules], table)
            rows, rules = rows[keep], rules[keep]
        return Matches(rows, self._which[rules].astype(np.int64))

    def _satisfied(self, rows: np.ndarray, rests: np.ndarray, table: pa.Table) -> np.ndarray:
        """Of rows that came so far: do they satisfy the rest?"""
        keep = np.ones(rows.size, bool)
        order = np.argsort(rests, kind="stable")
        bounds = np.searchsorted(rests[order], np.arange(len(self._rests) + 1))
        for text, i in self._rests.items():
            some = order[bounds[i] : bounds[i + 1]]
            if some.size:
                keep[some] = self._tried_on(text, table, rows[some])
        return keep

    def _read(self, text: str, table: pa.Table) -> pa.Table:
        """The columns that a predicate reads; of one that reads none, any."""
        names = columns_of(text)
        return table.select(sorted(names)) if names else table

    def _tried_on(self, text: str, table: pa.Table, rows: np.ndarray) -> np.ndarray:
        """What is left of a predicate, of rows that satisfy the rest of it: it need not be computed of the others."""
        try:
            return holds(text, taken(self._read(text, table), rows), rows)
        except (BadType, BadEvents):
            for whole in self.predicates:  # what raises is told of the predicate that was written
                holds(whole, table)
            raise

    # -- about itself -------------------------------------------------------------------------------------------------

    @property
    def counts(self) -> tuple[int, int, int]:
        """How many predicates are found by their constants alone, with a rest that is tried, and only tried."""
        tried = len(self._tried)
        rest = np.unique(self._which[self._rest >= 0]).size
        return len(self.predicates) - rest - tried, rest, tried

    @property
    def bytes(self) -> int:
        arrays = [self._which, self._rest, *self._tree, *self._further]
        return sum(each.nbytes for each in arrays) + sum(ends.bytes for ends in self._ends.values())


def types_of(predicates: Iterable[str], table: pa.Table) -> dict[str, pa.DataType]:
    """Of the columns that predicates read."""
    names = dict.fromkeys(name for text in predicates for name in columns_of(text))
    return {name: decoded_type(table.schema.field(name).type) for name in names}


def _all(parts: list[str]) -> str:
    return " AND ".join(parts)


def _met(box: dict[str, tuple[int, int]], column: str, interval: tuple[int, int]) -> dict[str, tuple[int, int]] | None:
    """A box cut to an interval of one column; None: nothing is left of it."""
    low, high = box.get(column, interval)
    low, high = max(low, interval[0]), min(high, interval[1])
    return {**box, column: (low, high)} if low <= high else None
