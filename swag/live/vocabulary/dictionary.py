"""Columns that are no numbers, as an engine keeps them: every value once, in the words of its column.

Rows hold the numbers of words (swag/live/vocabulary/words.py). Values that no row holds any more are forgotten now and
then, so that a column of order numbers, each seen once, takes no more memory than the rows that are kept.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
import pyarrow as pa

from swag.durable.state import State, nested, parts, types_from_array, types_to_array, with_arrays
from swag.errors import BadSnapshot
from swag.live.space import Space
from swag.live.vocabulary.words import Renumbering, Words
from swag.query.reading import ColumnUse, Reading
from swag.tables import decimals
from swag.tables.columns import Field, column, decoded, decoded_type, is_discrete, is_number, one_chunk
from swag.tables.keys import is_groupable, is_spelled

MANY_VALUES = 4096  # values that are not worth looking through


class Dictionary:
    """The values of columns that are no numbers, each kept once, and the type that every column came in first.

    It owns both for a whole stream. Asked of it are the numbers of a column's values, and values for numbers.
    renumbered: told at once if words of a column are called otherwise than in the rows that are kept.
    """

    def __init__(self) -> None:
        self.types: dict[str, pa.DataType] = {}
        self.tables: dict[str, Words] = {}
        self.renumbered: list[Callable[[str, Renumbering], None]] = []

    def note_types(self, fields: dict[str, Field]) -> None:
        """The type a column came in first is the type it has (nulls alone have none)."""
        for name, found in fields.items():
            if not pa.types.is_null(found.type):
                self.types.setdefault(name, found.type)

    def note_columns(self, table: pa.Table, reading: Reading) -> bool:
        """The same of columns that aggregates will read; are all of them known now?"""
        for name in [use.name for use in reading.uses if use.name not in self.types]:
            kind = decoded_type(table.schema.field(name).type)
            if not pa.types.is_null(kind):
                self.types[name] = kind
        return all(use.name in self.types for use in reading.uses)

    def are_words(self, kind: pa.DataType, computed: bool) -> bool:
        """Are values of a column kept by numbers of theirs? They can be told apart, and kernels do not know them.
        computed: with, or compared."""
        kind = decoded_type(kind)
        if is_number(kind) or is_discrete(kind):
            return False
        if pa.types.is_decimal(kind):
            return decimals.is_wide(kind)
        return is_groupable(kind) and (not computed or is_spelled(kind))

    def may_be_words(self, name: str, kind: pa.DataType) -> bool:
        """May values of this type be those of a column that is known, as words?"""
        known = self.types[name]
        return name in self.tables or known == kind or (is_spelled(known) and is_spelled(kind))

    def decimals(self, table: pa.Table, use: ColumnUse) -> Field:
        """A column of many digits, as it is used: by numbers of its values, or to be computed with, or both."""
        array = decoded(one_chunk(column(table, use.name, use.asked_by)))
        exact = decimals.exact(array, use.name) if use.summed else None
        if use.told:
            return replace(self.field(table, use), exact=exact)
        valid = None if array.null_count == 0 else np.asarray(array.is_valid())
        return Field(np.zeros(0, np.int64), valid, array.type, exact=exact)

    def field(self, table: pa.Table, use: ColumnUse) -> Field:
        """The numbers of a column's values; new values get some. Where they are compared, numbers are as values are."""
        name, array = use.name, one_chunk(column(table, use.name, use.asked_by))
        words = self.tables.setdefault(name, Words(array.type))
        if use.compared:
            self.order([name])
        if array.null_count == 0:
            return Field(self._numbers(words, array, name), None, words.type, words)
        valid = np.asarray(array.is_valid())
        numbers = np.zeros(len(array), np.int64)
        numbers[valid] = self._numbers(words, array.drop_null(), name)
        return Field(numbers, valid, words.type, words)

    def order(self, names: Iterable[str]) -> None:
        """From now on the numbers of the values of columns compare as these do, also in rows that are kept."""
        for name in names:
            words = self.tables.get(name)
            if words is not None and not words.ordered:
                self._tell(name, words.order())

    def _numbers(self, words: Words, array: pa.Array, name: str) -> np.ndarray:
        numbers, renumbering = words.encode(array, name)
        self._tell(name, renumbering)
        return numbers

    def _tell(self, name: str, renumbering: Renumbering | None) -> None:
        if renumbering is not None:
            for told in self.renumbered:
                told(name, renumbering)

    def values(self, name: str, numbers: np.ndarray, valid: np.ndarray) -> pa.Array:
        """Back from numbers to values."""
        return self.tables[name].values(numbers, valid)

    def tidy(self, spaces: Iterable[Space]) -> set[str]:
        """Forget the values that no row holds, where they are most of them. Returns the columns whose values have other
        numbers now."""
        renumbered_columns = set()
        for name, words in self.tables.items():
            if words.count <= MANY_VALUES:
                continue
            columns = [space.raw[name].data for space in spaces if name in space.raw]
            if words.count > 2 * sum(data.size for data in columns):
                used = np.unique(np.concatenate(columns)) if columns else np.zeros(0, np.int64)
                renumbering = words.keep(used)
                for data in columns:
                    renumbering.apply(data)
                renumbered_columns.add(name)
        return renumbered_columns

    @property
    def bytes(self) -> int:
        return sum(table.bytes for table in self.tables.values())

    def state(self) -> State:
        known = [name for name in self.tables if name in self.types]
        tables = nested(
            {"words": known, "decimals": "in words"}, {"tables": [self.tables[name].state() for name in known]}
        )
        return with_arrays(tables, {"types": types_to_array(self.types)})

    def restore(self, state: State) -> None:
        header, arrays = state
        self.types = types_from_array(arrays["types"])
        if "decimals" not in header:
            self._refuse_counted(header["words"])
        for name, saved in zip(header["words"], parts(state, "tables"), strict=True):
            self.tables[name] = Words(self.types[name])
            self.tables[name].restore(saved)

    def _refuse_counted(self, words: list[str]) -> None:
        """Before there were words for them, decimals of many digits were kept as int64, if all of them fitted."""
        for name, kind in self.types.items():
            if decimals.is_wide(kind) and name not in words:
                raise BadSnapshot(
                    f'the decimals of "{name}" ({kind}) are kept in it as int64, of which nothing is known any more.',
                    "an engine that is given the events again",
                )
