"""Values that frames tell apart, of any type: each as a number, and where its key had it last.

of every key        a number for as long as it is remembered (`tokens`, of the scan): keys are numbered anew at times
of every value      a number (`values`), as State frames have it
of a (key, value)   a number (`pairs`), its last place (`last`), and what modes keep of it (`kept`)

Of pairs that no frame has any more nothing need be known: they are forgotten once they are most.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from frames.scans.scan import extended
from frames.scans.state import value_numbers
from kernels.frames import told_apart as frame_values
from swag.durable.state import State, own_arrays
from swag.tables.columns import Field, hashed
from swag.tables.keys import KeyTable

FEW_PAIRS = 4096  # pairs are kept until there are so many, and twice as many as are in use
NUMBER_BITS = 31  # of a value, in the word that stands for a pair: the token of its key is in front
NUMBER = (1 << NUMBER_BITS) - 1
NO_TOKENS = np.zeros(0, np.int64)


class PlacedValues(NamedTuple):
    """The events of a batch: their places, where their key had their value last, and which pair that is.

    last, kept: of pairs, once all of them were scanned.
    """

    places: np.ndarray
    before: np.ndarray
    pairs: np.ndarray
    last: np.ndarray
    kept: np.ndarray


class ToldApart:
    """Of a column. Owns the numbers of its values, and of pairs with keys: see above. Asked of it: where the values of
    a batch were `placed`, which counts once it `goes_on` from there; and to `forget`."""

    def __init__(self, kind: pa.DataType, number: bool) -> None:
        """number: are values numbers, and read as such?"""
        self.number = number
        self.type = pa.int64() if number else pa.bool_() if pa.types.is_null(kind) else kind
        self._begin(KeyTable(self.type))

    def _begin(self, values: KeyTable) -> None:
        self.values, self.pairs = values, KeyTable(pa.int64())
        self.last, self.kept = NO_TOKENS, np.zeros((0, 2), np.int64)
        self._most = FEW_PAIRS

    def read(self, table: pa.Table, name: str, asked_by: str) -> Field:
        """A column that is no number, as the numbers of its values."""
        return value_numbers(table, name, asked_by, self.values)

    def placed(self, column: Field, tokens: np.ndarray, first: int) -> PlacedValues:
        """The values of events, whose keys have these tokens; first: the place of the first of them."""
        numbers = self.values.encode(pa.array(hashed(column)), "") if self.number else column.values
        pairs = self.pairs.encode(pa.array(tokens << NUMBER_BITS | (numbers & NUMBER)), "")
        if column.valid is not None:
            pairs = np.where(column.valid, pairs, -1)
        count = self.pairs.count
        last = extended(self.last, count, frame_values.NEVER_BEFORE).copy()
        kept = extended(self.kept, count, 0).copy()
        before = np.empty(pairs.size, np.int64)
        frame_values.note_places(pairs, first, last, before)
        return PlacedValues(np.arange(first, first + pairs.size), before, pairs, last, kept)

    def go_on(self, placed: PlacedValues) -> None:
        """These events were scanned."""
        self.last, self.kept = placed.last, placed.kept

    @property
    def bytes(self) -> int:
        return self.values.bytes + self.pairs.bytes + int(self.last.nbytes + self.kept.nbytes)

    @property
    def is_large(self) -> bool:
        """Are there so many pairs that some may be forgotten?"""
        return self.pairs.count > self._most

    def forget(self, tokens: np.ndarray, begins: np.ndarray) -> None:
        """Pairs that no frame has, if they are most. tokens: of keys with a frame; begins: the places from where on
        these have their values."""
        used = self._used(tokens, begins)
        if 2 * used.size <= self.pairs.count:
            self._keep(used)
        self._most = max(FEW_PAIRS, 2 * used.size)

    def _used(self, tokens: np.ndarray, begins: np.ndarray) -> np.ndarray:
        """Which pairs: their key has a frame, and had their value within it."""
        if not tokens.size:
            return NO_TOKENS
        order = np.argsort(tokens)
        tokens, begins, own = tokens[order], begins[order], self.pairs.numbers[: self.last.size] >> NUMBER_BITS
        at = np.minimum(np.searchsorted(tokens, own), tokens.size - 1)
        return np.flatnonzero((tokens[at] == own) & (self.last >= begins[at]))

    def _keep(self, used: np.ndarray) -> None:
        """These pairs, and their values."""
        words, last, kept = self.pairs.numbers[used], self.last[used], self.kept[used]
        numbers, place = np.unique(words & NUMBER, return_inverse=True)
        values = self.values
        values.keep(numbers)
        self._begin(values)
        self.pairs.encode(pa.array((words & ~np.int64(NUMBER)) | place.reshape(-1)), "")
        self.last, self.kept = last, kept

    def state(self, tokens: np.ndarray, begins: np.ndarray) -> State:
        """Of the pairs in use."""
        used = self._used(tokens, begins)
        mine = ToldApart(self.type, self.number)
        mine.values.restore(self.values.state())
        mine.pairs.restore(self.pairs.state())
        mine.last, mine.kept = self.last, self.kept
        mine._keep(used)
        arrays = {"pairs": mine.pairs.numbers.copy(), "last": mine.last, "kept": mine.kept}
        return {}, arrays | {f"values/{name}": array.copy() for name, array in mine.values.state()[1].items()}

    def restore(self, state: State) -> None:
        _, arrays = state
        self._begin(KeyTable(self.type))
        self.values.restore(({}, own_arrays(arrays, "values")))
        self.pairs.encode(pa.array(arrays["pairs"]), "")
        self.last, self.kept = arrays["last"].copy(), arrays["kept"].copy()
