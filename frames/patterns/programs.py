"""Conditions over the match so far as programs of a few steps, which kernels/frames/backtracking.py runs for each row.

    price < 0.9 * AVG(A.price)        VALUE price, CONSTANT 0.9, GROWN avg, MUL, LT

What is about rows alone inside of them is a column, computed beforehand by whatever SQL has; only what puts it together
with aggregates of the match is a step: + - * /, comparisons, BETWEEN, AND, OR, NOT.
"""

from typing import Any, NamedTuple

import numpy as np

from frames.patterns.conditions import MEASURE, Grown, PatternTerms, grows, in_words
from kernels.frames import backtracking
from kernels.frames.backtracking import Growing
from swag.errors import BadQuery
from swag.tables.conjuncts import is_node, written

KINDS = {
    "count": backtracking.COUNT, "sum": backtracking.SUM, "mean": backtracking.MEAN, "min": backtracking.MIN,
    "max": backtracking.MAX, "first": backtracking.FIRST, "last": backtracking.LAST,
}  # fmt: skip
BINARY = {
    "Add": backtracking.ADD, "Sub": backtracking.SUB, "Mul": backtracking.MUL, "Div": backtracking.DIV,
    "EQ": backtracking.EQ, "NEQ": backtracking.NE, "LT": backtracking.LT, "LTE": backtracking.LE,
    "GT": backtracking.GT, "GTE": backtracking.GE, "And": backtracking.AND, "Or": backtracking.OR,
}  # fmt: skip
UNARY = {"Neg": backtracking.NEG, "Not": backtracking.NOT}
THERE_ARE = "+ - * /, comparisons, BETWEEN, AND, OR, NOT over columns and aggregates of the match"


class Programs(NamedTuple):
    """columns: SQL over rows that programs and aggregates read, in the order of `values` of Growing (None: a 1)."""

    columns: tuple[str | None, ...]
    growing: Growing


def programs(terms: PatternTerms, symbols: list[str], matches: list[tuple[Any, ...]]) -> Programs:
    """Of the conditions of all symbols; matches: of each, the parts about the match so far."""
    writer = _Writer(terms.grown)
    starts = [0]
    for parts in matches:
        for i, part in enumerate(parts):
            writer.write(part)
            writer.steps += [(backtracking.AND, 0)] if i else []
        starts.append(len(writer.steps))
        _check_depth(writer.steps[starts[-2] :])
    kinds = [KINDS[each.kind] for each in terms.grown]
    of = [-1 if each.symbol is None else symbols.index(each.symbol) for each in terms.grown]
    read = [writer.column(each.text) for each in terms.grown]
    steps = np.array(writer.steps or [(0, 0)], np.int64)
    return Programs(
        tuple(writer.columns),
        Growing(
            np.array(kinds, np.int64), np.array(of, np.int64), np.array(read, np.int64), steps,
            np.array(starts, np.int64), np.array(writer.constants or [0.0]), np.zeros((0, 0)),
            np.zeros((0, 0), bool),
        ),
    )  # fmt: skip


def _check_depth(steps: list[tuple[int, int]]) -> None:
    top = most = 0
    for what, _ in steps:
        top += 1 if what <= backtracking.GROWN else 0 if what in UNARY.values() else -1
        most = max(most, top)
    if most > backtracking.MOST_AT_HAND:
        raise BadQuery(
            f"a condition over the match so far is nested deeper than {backtracking.MOST_AT_HAND}.", THERE_ARE
        )


class _Writer:
    """Writes programs one after the other. Owns their steps, and the columns and constants that these refer to."""

    def __init__(self, grown: list[Grown]) -> None:
        self.grown = grown
        self.steps: list[tuple[int, int]] = []
        self.columns: list[str | None] = []
        self.constants: list[float] = []

    def column(self, text: str | None) -> int:
        if text not in self.columns:
            self.columns.append(text)
        return self.columns.index(text)

    def write(self, node: Any) -> None:
        """The steps that leave the value of a part on top."""
        node, kind = node.unnest(), type(node.unnest()).__name__
        if is_node(node, "Literal") and not node.is_string:
            self.constants.append(float(node.this))
            self.steps.append((backtracking.CONSTANT, len(self.constants) - 1))
        elif not grows(node):
            self.steps.append((backtracking.VALUE, self.column(written(node))))
        elif is_node(node, "Column"):
            self.steps.append((backtracking.GROWN, int(node.name.removeprefix(MEASURE))))
        elif kind in BINARY:
            self._apply(BINARY[kind], node.this, node.expression)
        elif kind in UNARY:
            self._apply(UNARY[kind], node.this)
        elif kind == "Between" and not node.args.get("symmetric"):
            self._apply(backtracking.GE, node.this, node.args["low"])
            self._apply(backtracking.LE, node.this, node.args["high"])
            self.steps.append((backtracking.AND, 0))
        else:
            found = in_words(written(node), self.grown)
            raise BadQuery(f"{found}: {kind.upper()} with an aggregate of the match in it.", THERE_ARE)

    def _apply(self, step: int, *operands: Any) -> None:
        for operand in operands:
            self.write(operand)
        self.steps.append((step, 0))
