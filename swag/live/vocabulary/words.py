"""The words of a column: every value once, and the numbers by which rows hold them.

As long as values are only told apart and handed back, a number is the place of a value among those that came. Once they
are compared, numbers are labels: they compare as the values do, with gaps for values that are still to come, and the
structures that know whole numbers know words.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kernels.keys import ordering
from swag.durable.state import State
from swag.tables.decimals import big_endian
from swag.tables.keys import KeyTable


class Renumbering(NamedTuple):
    """What was called old[i], in order, is called new[i] from now on."""

    old: np.ndarray
    new: np.ndarray

    def apply(self, data: np.ndarray) -> None:
        """In place. What is no number of a word stays: places without a row may hold anything."""
        if self.old.size:
            at = np.minimum(np.searchsorted(self.old, data), self.old.size - 1)
            data[:] = np.where(self.old[at] == data, self.new[at], data)


class Words:
    """Values of a type whose bytes tell them apart, and their numbers.

    It owns both. Asked of it: numbers for values (`encode`), values for numbers (`values`), and, where any of this
    changes what words are called, a Renumbering for whoever holds numbers.
    """

    def __init__(self, kind: pa.DataType) -> None:
        self.table = KeyTable(kind)
        self.ordered = False
        self._in_order = np.zeros(0, np.int64)  # the places of values, in order of the values
        self._labels = np.zeros(0, np.int64)  # of the values in order
        self._label_of = np.zeros(0, np.int64)  # by their places
        self._comparable = np.zeros(0, np.uint8)  # of decimals, by their places: bytes that compare as these do

    @property
    def type(self) -> pa.DataType:
        return self.table.type

    @property
    def count(self) -> int:
        return self.table.count

    def encode(self, array: pa.Array, name: str) -> tuple[np.ndarray, Renumbering | None]:
        """The numbers of values, of which new ones get some; and what others are called now, if that has changed."""
        places = self.table.encode(array, name)
        if not self.ordered:
            return places, None
        renumbering = self._label_new() if self.count > self._in_order.size else None
        return self._label_of[places], renumbering

    def order(self) -> Renumbering:
        """From now on numbers compare as values do."""
        self.ordered = True
        self._label_new()
        return Renumbering(np.arange(self.count), self._label_of)

    def values(self, numbers: np.ndarray, valid: np.ndarray) -> pa.Array:
        """Back from numbers to values; null where a number is not valid."""
        if self.count == 0:
            return pa.nulls(numbers.size, self.type)
        return self.table.column().take(pa.array(self._places(numbers), mask=~valid))

    def hashes(self, numbers: np.ndarray) -> np.ndarray:
        return self.table.hashes(self._places(numbers))

    def keep(self, numbers: np.ndarray) -> Renumbering:
        """Forget all values but those with these numbers, which are in order."""
        known = np.isin(numbers, self._labels) if self.ordered else numbers < self.count
        old = numbers[known]
        places = self._places(old)
        self.table.keep(places)
        self._in_order = self._labels = np.zeros(0, np.int64)
        self._comparable = np.zeros(0, np.uint8)
        if not self.ordered:
            return Renumbering(old, np.arange(old.size))
        self._label_new()
        return Renumbering(old, self._label_of)

    def _places(self, numbers: np.ndarray) -> np.ndarray:
        if not self.ordered:
            return numbers
        at = np.minimum(np.searchsorted(self._labels, numbers), max(self._labels.size - 1, 0))
        return self._in_order[at]

    def _label_new(self) -> Renumbering | None:
        """Values that have none yet get labels between their neighbours'; where there is no room, all get new ones."""
        text, ends = self._spelled()
        new = np.arange(self._in_order.size, self.count)
        ordering.sort_words(text, ends, new, np.empty_like(new))
        place, labels = np.empty_like(new), np.empty_like(new)
        ordering.places(text, ends, self._in_order, new, place)
        before, fits = self._labels, self._labels.size > 0 and ordering.label_between(self._labels, place, labels)
        self._in_order = np.insert(self._in_order, place, new)
        self._labels = np.insert(self._labels, place, labels) if fits else ordering.fresh(self.count)
        self._label_of = np.empty_like(self._labels)
        self._label_of[self._in_order] = self._labels
        if fits or not before.size:
            return None
        kept = np.ones(self.count, bool)
        kept[place + np.arange(new.size)] = False
        return Renumbering(before, self._labels[kept])

    def _spelled(self) -> tuple[np.ndarray, np.ndarray]:
        """The bytes of all values, which compare as values do, and where each begins and ends."""
        text, ends = self.table.spelled()
        if not pa.types.is_decimal(self.type):
            return text, ends
        known, width = self._comparable, self.type.byte_width
        if known.size < self.count * width:
            self._comparable = np.append(known, big_endian(text[known.size : self.count * width], width))
        return self._comparable, ends

    @property
    def bytes(self) -> int:
        return (
            self._comparable.nbytes
            + self.table.bytes
            + self._in_order.nbytes
            + self._labels.nbytes
            + self._label_of.nbytes
        )

    def state(self) -> State:
        header, arrays = self.table.state()
        return header | {"ordered": self.ordered}, arrays | ({"labels": self._label_of} if self.ordered else {})

    def restore(self, state: State) -> None:
        header, arrays = state
        self.table.restore(state)
        self.ordered = header.get("ordered", False)
        if self.ordered:
            self._label_of = arrays["labels"]
            self._in_order = np.argsort(self._label_of)
            self._labels = self._label_of[self._in_order]
