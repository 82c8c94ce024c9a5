"""Frames that are cut by several aggregates at work: each a part with its operator and columns, and one expression."""

from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa

from frames.scans.aggregate import AggregateScan
from frames.scans.parts import COMPUTES_NOTHING, NOT_BEGUN, PartColumns, PreparedParts, grown_part
from frames.scans.scan import NONE, KeyedRows, Kinds, Parallel, Scan, Share, any_fields, number
from frames.scans.threshold import interval
from frames.specs import Aggregate
from frames.specs.aggregate import value_type
from frames.specs.conditions import without_filters
from kernels.frames import aggregates as frame_aggregates
from kernels.frames import conditions
from kernels.frames.framing import SCAN_ROWS, ScannedEvents
from swag.durable.state import State, nested
from swag.durable.state import part as part_of
from swag.errors import SumOverflow
from swag.query.aggregates import Aggregate as Aggregated
from swag.query.expression import COMPARISONS, Expression, Operators
from swag.query.user_calls import calling, check_lift
from swag.tables.columns import Clock, Field, is_discrete


class ConditionScan(AggregateScan):
    """As of one aggregate; `partials` are those of all parts, in one tuple, and `values` what is compared."""

    def __init__(self, spec: Aggregate, schema: pa.Schema, clock: Clock) -> None:
        Scan.__init__(self, spec, schema, clock)
        self.parts = spec.aggregates
        self.reads = f"{spec.aggregate} reads"
        self.user = next((each for each in self.parts if each.user is not None), None)
        self.looks_ahead = self.user is not None  # whose function may refuse them
        grown = [grown_part(each, self.kinds) for each in self.parts]
        self.type, tree = value_type(spec.term, self.kinds), ConditionTree(self.parts, self.kinds)
        value = tree.of(spec.term) if spec.reported else None
        holds = tree.of(without_filters(spec.condition))
        self.op = conditions.condition(grown, holds, value, tuple(tree.constants), spec.closes_before)
        self.needs, self.rule = 1, (np.int64(1), np.int64(1), 1, self.lengths)
        self.kernel = frame_aggregates.close_before if spec.closes_before else frame_aggregates.close_with
        self.partials, self.counts = conditions.state(grown), np.zeros(0, np.int64)
        self.may_fail = True
        self.per_key = {"partials": 0, "counts": 0}
        self.columns_read = PartColumns(self.parts, grown, self.kinds, clock)
        self.tokens = np.zeros(0, np.int64)
        if self.columns_read.told_apart:
            self.per_key["tokens"] = 0
        self.values = np.zeros(SCAN_ROWS, np.int64 if is_discrete(self.type) else np.float64)
        self.sizes = np.zeros(SCAN_ROWS, np.int64)
        if spec.closes_before:
            self.end_early()

    def fields(self, table: pa.Table) -> dict[str, Field]:
        """What is computed with must be numbers; of what is only counted, only where it is null; of what is only told
        apart, numbers for its values."""
        computed = {name for each in self.parts if each.kind not in COMPUTES_NOTHING for name in each.columns}
        apart = {name: each for name, each in self.columns_read.told_apart.items() if not each.number}
        counted = any_fields(table, [name for name in self.kinds if name not in (*computed, *apart)], self.reads)
        found = {name: number(table, name, self.reads) for name in self.kinds if name in computed}
        found |= {name: each.read(table, name, self.reads) for name, each in apart.items()} | counted
        return {name: found[name] for name in self.kinds}

    def data(self, fields: dict[str, Field], size: int) -> Any:
        """The columns, and of every part which events count for it."""
        found = []
        for each in self.parts:
            read = [fields[name] for name in each.columns]
            valid = np.ones(size, bool) if any(f.valid is not None for f in read) else NONE
            for f in read:
                if f.valid is not None:
                    valid &= f.valid
            if each.user is not None:
                rows = np.flatnonzero(valid) if valid.size else None
                values = read[0].values
                check_lift(each, f"{each}", values if rows is None else values[rows], rows)
            found.append(valid)
        return fields, found

    def ready(self, data: Any, rows: KeyedRows, parts: int, parallel: Parallel) -> PreparedParts:
        """Of stored events: keys have tokens of their own."""
        tokens = rows.ids.astype(np.int64) if rows.ids.size else np.zeros(rows.ts.size, np.int64)
        return self.columns_read.prepared(data, rows.ts, tokens)

    def run(self, ts: np.ndarray, ids: np.ndarray, data: Any, share: Share | None = None) -> bool:
        """A share of what is ready; or a batch by itself, behind which more is known of values."""
        if share is not None:
            return super().run(ts, ids, data, share)
        prepared = self.columns_read.prepared(data, ts, self._tokens(ids, ts.size))
        in_order = super().run(ts, ids, prepared)
        self.columns_read.go_on(prepared, ts.size)
        return in_order

    def _tokens(self, ids: np.ndarray, size: int) -> np.ndarray:
        """Of each event that of its key, which stays as it is when keys are numbered anew."""
        if not self.columns_read.told_apart:
            return self.tokens
        ids = ids if ids.size else np.zeros(size, np.int64)
        new = np.unique(ids[self.tokens[ids] == 0])
        self.tokens[new] = self.columns_read.new_tokens(new.size)
        return self.tokens[ids]

    def step(self, events: ScannedEvents, data: PreparedParts, first: int) -> int:
        op = self.op if not data.placed else self.op._replace(parts=data.operators(self.op.parts, self.parts))
        with calling(self.user, f"{self.user} of a frame: combine or lower"):
            at = int(self.kernel(op, (data.columns, NONE), self.rule, events, self._memory(), self._out(), first))
        if at == frame_aggregates.OVERFLOW:
            raise SumOverflow(f"{self.spec.condition} of a frame does not fit int64.", "compute with floats: 1.0 * …")
        return at

    @property
    def bytes(self) -> int:
        return super().bytes + self.columns_read.bytes

    def keep_open(self, gone: np.ndarray) -> np.ndarray:
        self.columns_read.forget(self._in_use)
        return super().keep_open(gone)

    def _in_use(self, column: str) -> tuple[np.ndarray, np.ndarray]:
        """Of the keys that tell values of a column apart just now: their tokens, and from which place on they do."""
        begins = self.columns_read.begins(column, self.partials, self.counts)
        keys = np.flatnonzero(begins < NOT_BEGUN)
        return self.tokens[keys], begins[keys]

    def rest(self) -> State:
        header, arrays = super().rest()
        if not self.columns_read.told_apart:
            return header, arrays
        inside = nested(header, {"apart": self.columns_read.state(self._in_use)})
        return inside[0], inside[1] | arrays

    def go_on(self, rest: State) -> None:
        super().go_on(rest)
        if self.columns_read.told_apart:
            self.columns_read.restore(part_of(rest, "apart"))

    def columns(self, beside: dict[str, np.ndarray]) -> dict[str, pa.Array]:
        return super().columns(beside) if self.spec.reported else {}


def aggregate_scan(spec: Aggregate, schema: pa.Schema, clock: Clock) -> AggregateScan:
    """The scan of one aggregate that is compared with a number, or that of several."""
    return AggregateScan(spec, schema, clock) if spec.is_simple else ConditionScan(spec, schema, clock)


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
