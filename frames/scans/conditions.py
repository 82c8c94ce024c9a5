"""Frames that are cut by several aggregates at work: each a part with its operator and columns, and one expression."""

from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa

from frames.scans.aggregate import AggregateScan, operator
from frames.scans.scan import NONE, Kinds, Scan, any_fields, number
from frames.scans.threshold import interval
from frames.specs import Aggregate
from frames.specs.aggregate import value_type
from frames.specs.conditions import without_filters
from kernels.frames import aggregates as frame_aggregates
from kernels.frames import conditions, further
from kernels.frames.conditions import GrownPart
from kernels.frames.framing import SCAN_ROWS, ScannedEvents
from kernels.operators import monoids
from swag.errors import BadType, SumOverflow
from swag.query.aggregates import Aggregate as Aggregated
from swag.query.expression import COMPARISONS, Expression, Operators
from swag.query.families import check_columns, result_type
from swag.query.user_calls import calling, check_lift
from swag.tables.columns import Clock, Field, is_discrete, is_number

FURTHER: dict[str, Any] = {
    "count_if": further.Flags(further.COUNT_IF),
    "any": further.Flags(further.ANY),
    "all": further.Flags(further.ALL),
    "skew": further.GrowingSkew(),
    "kurtosis": further.GrowingKurtosis(),
    "product": further.GrowingProduct(),
    "slope": further.GrowingLine(further.SLOPE),
    "intercept": further.GrowingLine(further.INTERCEPT),
    "r2": further.GrowingLine(further.R2),
    "arg_max": further.GrowingArgMax(),
    "arg_min": further.GrowingArgMin(),
}


class ConditionScan(AggregateScan):
    """As of one aggregate; `partials` are those of all parts, in one tuple, and `values` what is compared."""

    def __init__(self, spec: Aggregate, schema: pa.Schema, clock: Clock) -> None:
        Scan.__init__(self, spec, schema, clock)
        self.parts = spec.aggregates
        self.reads = f"{spec.aggregate} reads"
        self.user = next((each for each in self.parts if each.user is not None), None)
        self.looks_ahead = self.user is not None  # whose function may refuse them
        grown = [part_of(each, self.kinds) for each in self.parts]
        self.type, tree = value_type(spec.term, self.kinds), ConditionTree(self.parts, self.kinds)
        value = tree.of(spec.term) if spec.reported else None
        holds = tree.of(without_filters(spec.condition))
        self.op = conditions.condition(grown, holds, value, tuple(tree.constants), spec.closes_before)
        self.needs, self.rule = 1, (np.int64(1), np.int64(1), 1, self.lengths)
        self.kernel = frame_aggregates.close_before if spec.closes_before else frame_aggregates.close_with
        self.partials, self.counts = conditions.state(grown), np.zeros(0, np.int64)
        self.may_fail = ("keyed", "found", "partials", "counts", "values", "sizes")
        self.per_key = {"partials": 0, "counts": 0}
        self.values = np.zeros(SCAN_ROWS, np.int64 if is_discrete(self.type) else np.float64)
        self.sizes = np.zeros(SCAN_ROWS, np.int64)
        if spec.closes_before:
            self.end_early()

    def fields(self, table: pa.Table) -> dict[str, Field]:
        """What is computed with must be numbers; of what is only counted, only where it is null."""
        computed = {name for each in self.parts if each.kind != "count" for name in each.columns}
        counted = any_fields(table, [name for name in self.kinds if name not in computed], self.reads)
        return {name: number(table, name, self.reads) if name in computed else counted[name] for name in self.kinds}

    def data(self, fields: dict[str, Field], size: int) -> tuple[Any, np.ndarray]:
        """Of every part what the kernel lifts of each event, and which count for it."""
        return tuple(self._part(each, [fields[name] for name in each.columns], size) for each in self.parts), NONE

    def _part(self, aggregate: Aggregated, read: list[Field], size: int) -> tuple[Any, np.ndarray]:
        valid = np.ones(size, bool) if any(f.valid is not None for f in read) else NONE
        for f in read:
            if f.valid is not None:
                valid &= f.valid
        if aggregate.kind == "count":
            return NONE, valid
        if aggregate.user is not None:
            rows = np.flatnonzero(valid) if valid.size else None
            values = read[0].values
            check_lift(aggregate, f"{aggregate}", values if rows is None else values[rows], rows)
        as_they_are = len(read) == 1 or aggregate.kind in ("arg_max", "arg_min")
        return tuple(f.values if as_they_are else f.values.astype(np.float64) for f in read), valid

    def step(self, events: ScannedEvents, data: Any, first: int) -> int:
        with calling(self.user, f"{self.user} of a frame: combine or lower"):
            at = int(self.kernel(self.op, data, self.rule, events, self._memory(), self._out(), first))
        if at == frame_aggregates.OVERFLOW:
            raise SumOverflow(f"{self.spec.condition} of a frame does not fit int64.", "compute with floats: 1.0 * …")
        return at

    def columns(self, beside: dict[str, np.ndarray]) -> dict[str, pa.Array]:
        return super().columns(beside) if self.spec.reported else {}


def aggregate_scan(spec: Aggregate, schema: pa.Schema, clock: Clock) -> AggregateScan:
    """The scan of one aggregate that is compared with a number, or that of several."""
    return AggregateScan(spec, schema, clock) if spec.is_simple else ConditionScan(spec, schema, clock)


def part_of(aggregate: Aggregated, kinds: Kinds) -> GrownPart:
    """An aggregate as kernels know it: its operator, its partials, and whether its answers are whole numbers."""
    check_columns(aggregate, kinds)
    kind = result_type(aggregate, kinds)
    if not is_number(kind):
        raise BadType(f"{aggregate} is {kind}, and is compared or computed with here.", "an aggregate that is a number")
    if aggregate.kind == "count":
        return GrownPart(None, (), True)
    op = FURTHER[aggregate.kind] if aggregate.kind in FURTHER else operator(aggregate, kinds)
    of_columns = tuple(np.int64 if is_discrete(kinds[name]) else np.float64 for name in aggregate.columns)
    return GrownPart(op, monoids.state_dtypes(op, of_columns), is_discrete(kind))


class ConditionTree:
    """A condition as kernels take it (kernels/frames/conditions.py). Owns its constants, in order."""

    def __init__(self, parts: tuple[Aggregated, ...], kinds: Kinds) -> None:
        self.parts, self.kinds = parts, kinds
        self.constants: list[Any] = []

    def of(self, term: Any) -> tuple[Any, ...]:
        """An aggregate, an expression of several, or a constant."""
        if isinstance(term, Aggregated):
            return "part", self.parts.index(term)
        if not isinstance(term, Expression):
            self.constants.append(np.int64(term) if self._is_whole(term) else np.float64(term))
            return "constant", len(self.constants) - 1
        op, operands = term.op, term.operands
        if op in ("and", "or"):
            return reduce(lambda a, b: (op, a, b), map(self.of, operands))
        if op == "between":
            value, low, high = operands
            return "and", self._compared(">=", value, low), self._compared("<=", value, high)
        if op in COMPARISONS:
            return self._compared(op, *operands)
        return op, self._is_whole(term), *map(self.of, operands)

    def _compared(self, op: str, left: Any, right: Any) -> tuple[Any, ...]:
        """With a number by the interval that it leaves, exactly; two that are computed as they are."""
        if isinstance(right, Operators):
            behind = op in (">", ">=")
            sides = self.of(right if behind else left), self.of(left if behind else right)
            return COMPARISONS[op] if behind else op, *sides
        node = self.of(left)
        same = op in ("=", "<>")
        self.constants += interval("==" if same else op, right, self._is_whole(left))
        return "outside" if op == "<>" else "inside", node, len(self.constants) - 2

    def _is_whole(self, term: Any) -> bool:
        return is_discrete(value_type(term, self.kinds))
