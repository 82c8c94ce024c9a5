"""count_distinct and mode of stored events: values of any type are numbered, rows linked to those of the same value.

A part is built and asked as those of swag/stored/aggregators.py are.
"""

import numpy as np
import pyarrow as pa

from kernels.stored import distinct
from kernels.stored.distinct import Linked
from swag.query.aggregates import Aggregate
from swag.stored.aggregators import Aggregator, Answer, Outputs
from swag.stored.blocks import Chunk, Output, RequestBlock
from swag.stored.ordered_rows import Requests, Selection
from swag.tables.columns import column, one_chunk
from swag.tables.keys import KeyTable


def numbered(selection: Selection, name: str) -> np.ndarray:
    """The number of the value in each row that counts, in order: equal ones have the same."""
    array = one_chunk(column(selection.stored.table, name, ""))
    if pa.types.is_null(array.type):
        return np.zeros(0, np.int32)
    valid = np.flatnonzero(np.asarray(array.is_valid())) if array.null_count else None
    ids = KeyTable(array.type).encode(array if valid is None else array.drop_null(), name)
    if valid is not None:
        known, ids = ids, np.zeros(len(array), ids.dtype)
        ids[valid] = known
    return ids.astype(np.int32) if selection.rows is None else ids.astype(np.int32)[selection.rows]


def linked(selection: Selection, name: str) -> Linked:
    """Every row with those of its value before and after it; made once for a column."""
    ids = selection.computed(f"{name} numbered", lambda: numbered(selection, name))
    both = selection.computed(f"{name} linked", lambda: _neighbours(ids))
    return Linked(ids, both[0], both[1])


def _neighbours(ids: np.ndarray) -> np.ndarray:
    size = np.int32 if ids.size < 2**31 else np.int64
    both = np.empty((2, ids.size), size)
    distinct.link(ids, np.full(int(ids.max(initial=-1)) + 1, -1), both[0], both[1])
    return both


class Distinct(Aggregator):
    """How many values are different: one entry and one exit per row, whatever the window."""

    def output(self, requests: Requests, aggregate: Aggregate) -> Output:
        return Output(requests, np.int64, least=0)

    def start(self, chunk: Chunk, outputs: Outputs) -> Answer:
        """Answers of one window, block after block: how many values are different, by a cursor over linked rows."""
        output, *others = outputs.values()  # whoever would put up with an approximation gets the same
        rows, cursor = linked(self.selection, self.columns[0]), np.zeros(3, np.int64)

        def answer(block: RequestBlock) -> None:
            distinct.slide(rows, cursor, block.lo, block.hi, output.slot(block))
            for other in others:
                other.slot(block)[:] = output.slot(block)

        return answer


class Mode(Aggregator):
    """The input row to take the most frequent value from, whatever its type."""

    def output(self, requests: Requests, aggregate: Aggregate) -> Output:
        return Output(requests, np.int64)

    def start(self, chunk: Chunk, outputs: Outputs) -> Answer:
        """Answers of one window, block after block: the input row of the mode, by a contest that counts each value."""
        (output,) = outputs.values()
        rows, input_rows = linked(self.selection, self.columns[0]), self.selection.rows
        contest = distinct.contest(int(rows.ids.max(initial=0)) + 1)

        def answer(block: RequestBlock) -> None:
            slot = output.slot(block)
            distinct.slide_mode(rows, contest, block.lo, block.hi, slot)
            output.settle(block, slot)
            if input_rows is not None and input_rows.size:
                np.take(input_rows, slot, out=slot, mode="clip")

        return answer

    def array(self, output: Output, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
        return self.rows_taken(output.values, output.bitmap)
