"""One lookup per interval and aggregate, from the structures that serve windows.

Events are laid out once, key after key, in order of ts: an interval of a key is then two positions, and all keys lie in
one ring of rings/timeline.py that never turns. Structures are built when an aggregate first needs one, and shared by
all that do; intervals may overlap at no extra cost.

    count, first, last        positions
    sum, mean, wmean          R-INT    O(1)            (integers exact, floats certified)
    min, max, var, cov, own   B-INT    O(log W)
    quantile                  B-INT-QNT
"""

from typing import Any

import numpy as np
import pyarrow as pa

from frames.finding.intake import chunks, in_parallel
from kernels.baselines import naive
from kernels.operators import monoids
from kernels.windows import dyadic, running, sorted_runs
from swag.errors import SumOverflow
from swag.query.aggregates import Aggregate
from swag.query.families import PRODUCT, Part, check_columns, interpolate, lower, operator, parts_of, ranks, result_type
from swag.query.user_calls import calling
from swag.tables.columns import Field, field, to_arrow, valid_rows

Edges = tuple[np.ndarray, np.ndarray]
ONE = np.zeros(1, np.int64)  # the only key of the only ring


class Intervals:
    """Answers aggregates over runs of laid out events.

    Owns the columns that were read, laid out, and the structures that were built over them; all that is asked later
    shares them. order: the rows by key, then ts (None: as they are).
    """

    def __init__(self, table: pa.Table, order: np.ndarray | None) -> None:
        self.table, self.order = table, order
        self._valid: dict[frozenset[str], tuple[np.ndarray, np.ndarray] | None] = {}
        self._raw: dict[Any, np.ndarray] = {}
        self._fields: dict[str, Field] = {}
        self._built: dict[Any, Any] = {}

    def answer(self, aggregate: Aggregate, lo: np.ndarray, hi: np.ndarray) -> pa.Array:
        """The aggregate of the positions [lo[i], hi[i]) of the layout."""
        kinds = {name: self.table.schema.field(name).type for name in aggregate.columns}
        kinds = {name: kind.value_type if pa.types.is_dictionary(kind) else kind for name, kind in kinds.items()}
        check_columns(aggregate, kinds)
        required = frozenset(aggregate.columns)
        lo, hi = self._ranks(required, aggregate, lo), self._ranks(required, aggregate, hi)
        n = hi - lo
        if aggregate.kind == "count":
            return to_arrow(n, None, pa.int64())
        kind = result_type(aggregate, {name: self._field(name).type for name in aggregate.columns})
        if aggregate.kind in ("first", "last"):
            values = self._column(aggregate.columns[0], required)
            at = np.where(n > 0, lo if aggregate.kind == "first" else hi - 1, 0)
            return to_arrow(values[at] if values.size else np.zeros(n.size, values.dtype), n > 0, kind)
        if aggregate.kind == "quantile":
            return to_arrow(*self._quantile(aggregate, required, lo, hi), kind)
        with calling(aggregate, f"{aggregate} of a frame: lift or combine"):
            partials = [self._partials(part, required, lo, hi) for part in parts_of(aggregate)]
        values, valid = lower(aggregate, n, partials)
        return to_arrow(np.asarray(values), valid, kind)

    def _field(self, name: str) -> Field:
        if name not in self._fields:
            self._fields[name] = field(self.table, name, "an aggregate reads")
        return self._fields[name]

    def _ranks(self, required: frozenset[str], aggregate: Aggregate, positions: np.ndarray) -> np.ndarray:
        """Positions among the rows that have no null in the columns of the aggregate."""
        if required not in self._valid:
            self._valid[required] = self._valid_rows(required, aggregate)
        valid = self._valid[required]
        return positions if valid is None else valid[1][positions]

    def _valid_rows(self, required: frozenset[str], aggregate: Aggregate) -> tuple[np.ndarray, np.ndarray] | None:
        masks = [valid_rows(self.table, name, f"{aggregate} reads") for name in required]
        there = [mask for mask in masks if mask is not None]
        if not there:
            return None
        valid = np.logical_and.reduce(there)
        valid = valid if self.order is None else valid[self.order]
        return valid, np.concatenate([[0], np.cumsum(valid)])

    def _column(self, name: str, required: frozenset[str]) -> np.ndarray:
        """A column, or a product of two, laid out; only the rows that count."""
        if (name, required) not in self._raw:
            x, _, w = name.partition(PRODUCT)
            values = self._field(x).values
            if w:
                values = values.astype(np.float64) * (1.0 if w == "1" else self._field(w).values)
            values = values if self.order is None else values[self.order]
            valid = self._valid[required]
            self._raw[name, required] = np.ascontiguousarray(values if valid is None else values[valid[0]])
        return self._raw[name, required]

    def _partials(self, part: Part, required: frozenset[str], lo: np.ndarray, hi: np.ndarray) -> Any:
        columns = [self._column(name, required) for name in part.columns]
        if part.family == "sum":
            if columns[0].dtype == np.float64:
                return self._float_sums(part, required, columns[0], lo, hi)
            sums = self._sums(part, required, columns[0], lo, hi)
            self._check_overflow(part, columns[0], lo, hi, sums)
            return sums
        if part.user is not None:
            return self._of_functions(part, required, lo, hi)
        data = columns[0] if len(columns) == 1 else tuple(column.astype(np.float64) for column in columns)
        return self._dyadic(operator(part), data, (part, required), lo, hi)

    def _of_functions(self, part: Part, required: frozenset[str], lo: np.ndarray, hi: np.ndarray) -> Any:
        """Base intervals hold rows together that no frame does: where a function raises of some, frames are folded."""
        op, data = operator(part), self._column(part.columns[0], required)
        try:
            return self._dyadic(op, data, (part, required), lo, hi)
        except Exception:
            out = monoids.empty_state(op, data.dtype, lo.size)
            naive.lookup(op, data, ring(data.size), ONE, (lo[None], hi[None]), out)
            return out

    def _dyadic(self, op: Any, data: Any, name: Any, lo: np.ndarray, hi: np.ndarray) -> Any:
        first = data[0] if isinstance(data, tuple) else data
        rings = ring(first.size)
        if name not in self._built:
            state = monoids.empty_state(op, first.dtype, first.size)
            dyadic.update(op, data, state, rings, ONE, np.array([first.size]))
            self._built[name] = state
        out = monoids.empty_state(op, first.dtype, lo.size)

        def look(s: slice) -> None:
            part = tuple(each[s] for each in out) if isinstance(out, tuple) else out[s]
            dyadic.lookup(op, data, self._built[name], rings, ONE, (lo[None, s], hi[None, s]), part)

        in_parallel(look, chunks(lo.size))
        return out

    def _sums(self, part: Part, required: Any, column: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
        op, rings = monoids.Sum(), ring(column.size)
        if (part, required) not in self._built:
            state, total = np.empty(column.size, np.int64), np.zeros(1, np.int64)
            running.update(op, column, state, total, rings, ONE, np.array([column.size]))
            self._built[part, required] = state, total
        out = np.zeros(lo.size, np.int64)
        running.lookup(op, *self._built[part, required], rings, ONE, (lo[None], hi[None]), out)
        return out

    def _float_sums(self, part: Part, required: Any, column: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
        rings = ring(column.size)
        if (part, required) not in self._built:
            coarse = (int(rings[0, 1]) >> running.STRIDE) + 1
            padded = np.concatenate([column, np.zeros(4)])  # lookups read whole groups of four
            run, total = np.empty(coarse, np.complex128), np.zeros(1, np.complex128)
            running.update_floats(padded, run, total, rings, ONE, np.array([column.size]))
            self._built[part, required] = padded, run, total
        out = np.empty(lo.size)
        running.lookup_floats(*self._built[part, required], rings, ONE, (lo[None], hi[None]), out)
        return out

    def _check_overflow(self, part: Part, column: np.ndarray, lo: np.ndarray, hi: np.ndarray, sums: np.ndarray) -> None:
        """Integers wrap, and come back; unless an interval's own sum is too large."""
        largest = max(abs(int(column.max())), abs(int(column.min()))) if column.size else 0
        if int((hi - lo).max(initial=0)) * largest < 2**63:
            return
        about = np.empty(lo.size)
        running.add_up_each(column, ring(column.size), ONE, (lo[None], hi[None]), about)
        wrapped = (np.abs(about - sums) > 2.0**62) & (hi > lo)
        if wrapped.any():
            raise SumOverflow(
                f'a frame\'s sum of "{part.columns[0]}" is about {about[wrapped][0]:.3g}, which does not fit int64.',
                "cast the column to float64",
            )

    def _quantile(self, aggregate: Aggregate, required: frozenset[str], lo: np.ndarray, hi: np.ndarray) -> Edges:
        column, n = self._column(aggregate.columns[0], required), hi - lo
        levels = max(int(n.max(initial=1)).bit_length(), 1)
        name, rings = ("quantile", aggregate.columns, required), ring(column.size)
        if name not in self._built or self._built[name].shape[0] < levels:
            self._built[name] = np.empty((levels, column.size), column.dtype)
            sorted_runs.update(column, self._built[name], rings, ONE, np.array([column.size]))
        rank, fraction = ranks(aggregate, n)
        low, high = np.zeros((1, n.size), column.dtype), np.zeros((1, n.size), column.dtype)
        sorted_runs.lookup(self._built[name], rings, ONE, (lo[None], hi[None]), rank[None], low, high)
        if aggregate.method == "floor":
            return low[0], n > 0
        return interpolate(low[0], high[0], fraction), n > 0


def ring(size: int) -> np.ndarray:
    """One ring that holds positions 0 .. size - 1 at the slots of the same number."""
    return np.array([[0, 1 << max(size, 1).bit_length(), 0, size]], np.int64)
