"""Aggregates of stored events that need to know which rows they are about, or when: arg_max, last_n, age, decayed_sum.

A part is built and asked as those of swag/stored/aggregators.py are.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from kernels.operators.decayed import Decayed
from kernels.operators.monoids import empty_state
from swag.query import families
from swag.query.aggregates import Aggregate
from swag.query.kind import Now
from swag.query.kinds.lists import span
from swag.stored.aggregators import Aggregator, Answer, Outputs
from swag.stored.blocks import Chunk, Output, RequestBlock
from swag.stored.ordered_rows import Requests
from swag.tables import decay
from swag.tables.columns import AS_THEY_ARE, column, fixed
from swag.tables.lists import lists, ranges
from swag.tables.times.durations import in_units


class ExtremeRow(Aggregator):
    """arg_max or arg_min: the values themselves where kernels know their type, else the input row to take them from."""

    @property
    def by_value(self) -> bool:
        return column(self.selection.stored.table, self.columns[0], "").type in AS_THEY_ARE

    def output(self, requests: Requests, aggregate: Aggregate) -> Output:
        if self.by_value:
            self.selection.stored.field(self.columns[0], "")
        return Output(requests, self.dtype() if self.by_value else np.int64)

    def start(self, chunk: Chunk, outputs: Outputs) -> Answer:
        """Answers of one window, block after block: a sweep for the extreme, with what its row carries."""
        ((aggregate, output),) = outputs.items()
        (part,) = families.parts_of(aggregate)
        by, (a, b) = self.column(chunk, 1), self.rows(chunk)
        carried = self.column(chunk) if self.by_value else self.selection.input_rows[a:b]
        sweep = self.sweep(chunk, families.operator(part), (carried, by))

        def answer(block: RequestBlock) -> None:
            slot = output.slot(block)
            sweep(block, (slot, np.empty(slot.size, by.dtype)))
            output.settle(block, slot)

        return answer

    def array(self, output: Output, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
        return super().array(output, kind) if self.by_value else self.rows_taken(output.values, output.bitmap)


class Spans(Output):
    """Where lists begin among the rows that count, and in `counts` how long they are."""

    def __init__(self, requests: Requests) -> None:
        super().__init__(requests, np.int64)
        self.counts = Output(requests, np.int64, least=0)

    def arrange(self, request_of: np.ndarray) -> None:
        super().arrange(request_of)
        self.counts.arrange(request_of)


class Lists(Aggregator):
    """first_n and last_n, of any length: rows one behind the other, whatever the column's type."""

    def output(self, requests: Requests, aggregate: Aggregate) -> Output:
        return Spans(requests)

    def start(self, chunk: Chunk, outputs: Outputs) -> Answer:
        def answer(block: RequestBlock) -> None:
            for aggregate, output in outputs.items():
                assert isinstance(output, Spans)
                output.slot(block)[:], output.counts.slot(block)[:] = span(aggregate, block.lo, block.hi)

        return answer

    def array(self, output: Output, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
        assert isinstance(output, Spans)
        at, rows = ranges(output.values, output.counts.values), self.selection.rows
        values = self.rows_taken(at if rows is None else rows[at])
        return lists(values, output.counts.values)


class Timed(Aggregator):
    """What depends on when it is asked for."""

    def now(self, chunk: Chunk, block: RequestBlock, half_life: Any = None) -> Now:
        """half_life: if there is one, what becomes of all times of the chunk is worked out once."""
        unit, own = self.selection.stored.clock.unit, slice(block.first, block.first + block.lo.size)
        if half_life is None:
            return Now(chunk.requests.now[own], unit)
        known = chunk.once(
            ("phases", half_life),
            lambda: decay.phases(chunk.requests.now[chunk.first : chunk.last], in_units(half_life, unit)),
        )
        inside = slice(own.start - chunk.first, own.stop - chunk.first)
        return Now(chunk.requests.now[own], unit, (known[0][inside], known[1][inside]))


class Age(Timed):
    """The time since the last row of each window."""

    def output(self, requests: Requests, aggregate: Aggregate) -> Output:
        return Output(requests, np.int64)

    def start(self, chunk: Chunk, outputs: Outputs) -> Answer:
        """Answers of one window, block after block: now minus the time of the last row between its edges."""
        ((aggregate, output),) = outputs.items()
        ts = self.selection.times

        def answer(block: RequestBlock) -> None:
            slot = output.slot(block)
            latest = ts.take(block.hi - 1, mode="clip") if ts.size else np.zeros(slot.size, np.int64)
            slot[:], _ = families.lower(aggregate, block.n, [latest, self.now(chunk, block)])
            output.settle(block, slot)

        return answer


class DecayedSums(Timed):
    """decayed_sum, decayed_mean or decayed_count of one half-life: swept relative to no time, then as of each."""

    def output(self, requests: Requests, aggregate: Aggregate) -> Output:
        families.check_unit(aggregate, self.selection.stored.clock.unit)
        return super().output(requests, aggregate)

    def start(self, chunk: Chunk, outputs: Outputs) -> Answer:
        """Answers of one window, block after block: a sweep per decayed sum, each as of the time of its request."""
        ((aggregate, output),) = outputs.items()
        parts = families.parts_of(aggregate)
        sweeps = [
            self.sweep(chunk, Decayed(), tuple(self._decaying(chunk, name) for name in each.columns), str(each))
            for each in parts
        ]

        def answer(block: RequestBlock) -> None:
            slot, own = output.slot(block), []
            for sweep in sweeps:
                own.append(empty_state(Decayed(), np.float64, slot.size))
                sweep(block, own[-1])
            slot[:], _ = families.lower(aggregate, block.n, [*own, self.now(chunk, block, aggregate.half_life)])
            output.settle(block, slot)

        return answer

    def _decaying(self, chunk: Chunk, name: str) -> np.ndarray:
        of: Any = decay.read(name)
        (a, b), unit = self.rows(chunk), self.selection.stored.clock.unit
        values = None if of.column is None else self.column(chunk, 0, np.float64)
        times = self.selection.times[a:b]
        return chunk.once((self, name), lambda: fixed(decay.computed(of, times, unit, values)))
