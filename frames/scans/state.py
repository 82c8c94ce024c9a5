"""State frames at work: values of any type as numbers, given out as values appear, for as long as any is in use."""

from typing import Any

import numpy as np
import pyarrow as pa

from frames.scans.scan import NONE, Scan
from frames.specs import State
from kernels.frames import cells as frame_cells
from kernels.frames import runs as frame_runs
from kernels.frames.framing import ROWS, SCAN_ROWS, ScannedEvents
from swag.durable.state import State as Saved
from swag.durable.state import own_arrays
from swag.tables.columns import Clock, Field, column, decoded, one_chunk, room
from swag.tables.keys import KeyTable

NO_VALUE = np.int64(-1)  # the number of a value that is not there
MANY_VALUES = 4096  # values are kept until there are so many, and twice as many as are in use


class StateScan(Scan):
    """Remembers of a key the number of its value (`within`); a frame has its own beside it (`marks`).

    Owns the values by number (`values`): equal values have equal numbers in all batches, as long as one is in use.
    """

    spec: State
    extras = reported = ("marks",)

    def __init__(self, spec: State, schema: pa.Schema, clock: Clock) -> None:
        super().__init__(spec, schema, clock)
        self.per_key = {"within": 0}
        self.within = np.zeros((0, 1), np.int64)
        self.marks = np.empty((SCAN_ROWS, 1), np.int64)
        self.type = self.kinds[spec.column]
        self.values = KeyTable(pa.bool_() if pa.types.is_null(self.type) else self.type)
        self.end_early()

    def fields(self, table: pa.Table) -> dict[str, Field]:
        """Numbers instead of values."""
        return {self.spec.column: value_numbers(table, self.spec.column, "State reads", self.values)}

    def data(self, fields: dict[str, Field], size: int) -> tuple[frame_cells.Dimension, ...]:
        numbers = fields[self.spec.column].values.view(np.float64)
        numbers.flags.writeable = False
        return (frame_cells.Dimension(frame_cells.NUMBERED, numbers, NONE, np.zeros(1)),)

    def step(self, events: ScannedEvents, data: Any, first: int) -> int:
        cells = frame_runs.Cells(self.within, self.marks)
        return int(frame_runs.boundary(events, data, (self.lengths, False), self.keyed, cells, self.found, first))

    def columns(self, beside: dict[str, np.ndarray]) -> dict[str, pa.Array]:
        numbers = beside["marks"][0]
        if pa.types.is_null(self.type):
            return {self.spec.column: pa.nulls(numbers.size)}
        return {self.spec.column: self.values.column().take(pa.array(numbers, mask=numbers == NO_VALUE))}

    def keep_open(self, gone: np.ndarray) -> np.ndarray:
        moves = super().keep_open(gone)
        if self.values.count > MANY_VALUES:
            self._forget_values()
        return moves

    def _forget_values(self) -> None:
        """Values that no key and no frame has any more, if they are most."""
        within, marks = np.where(self.keyed[:, [ROWS]] > 0, self.within, NO_VALUE), self.marks[: self.count]
        used = np.unique(np.concatenate([within, marks]))
        used = used[used != NO_VALUE]
        if used.size > self.values.count // 2:
            return
        place = np.full(self.values.count + 1, NO_VALUE)  # NULL itself is looked up at the end
        place[used] = np.arange(used.size)
        self.values.keep(used)
        self.within, self.marks[: self.count] = place[within], place[marks]

    def rest(self) -> Saved:
        header, arrays = super().rest()
        return header, arrays | {f"values/{name}": array.copy() for name, array in self.values.state()[1].items()}

    def go_on(self, rest: Saved) -> None:
        super().go_on(rest)
        self.values = KeyTable(self.values.type)
        self.values.restore(({}, own_arrays(rest[1], "values")))


def has_nulls(array: pa.DictionaryArray) -> bool:
    """Among the rows, or among the words of their dictionary?"""
    return bool(array.null_count or array.dictionary.null_count)


def value_numbers(table: pa.Table, name: str, asked_by: str, values: KeyTable) -> Field:
    """A column as the numbers of its values in a table, to which new ones are added; of a dictionary only the words are
    looked up."""
    array = one_chunk(column(table, name, asked_by))
    kind = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
    if pa.types.is_dictionary(array.type) and len(array.dictionary) < len(array) and not has_nulls(array):
        return Field(_of_words(array, values, name), None, kind, values)
    array = decoded(array)  # its dictionary may hold nulls
    if not array.null_count:
        return Field(values.encode(array, name), None, kind, values)
    valid = np.asarray(array.is_valid())
    numbers = np.full(len(array), NO_VALUE)
    if valid.any():
        numbers[valid] = values.encode(array.drop_null(), name)
    return Field(numbers, valid, kind, values)


def _of_words(array: pa.DictionaryArray, values: KeyTable, name: str) -> np.ndarray:
    """The numbers of words in a dictionary that is smaller than the column."""
    words, indices = values.encode(array.dictionary, name), array.indices.to_numpy()
    numbers = room(indices.size, np.int64)
    np.take(words, indices, out=numbers, mode="clip")  # which spares a look for those that are too large
    return numbers
