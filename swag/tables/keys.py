"""Keys in: values of any hashable Arrow type to dense ids, a batch per call; and back to a column.

A key of several columns is a column of structs (swag/tables/key_columns.py makes and takes apart those).
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kernels.keys import hashing
from swag.durable.state import State
from swag.errors import BadEvents, BadQuery, BadType
from swag.tables.columns import Clock, decoded, decoded_type, is_discrete, one_chunk
from swag.tables.comparing import same
from swag.tables.plain import are_other_decimals, as_known, where_known
from swag.tables.times.points import is_point

INT64 = pa.int64()
PLACE_BITS = 31  # of the place of a value among those of its column
PLACE = (1 << PLACE_BITS) - 1
SPARE_KEYS = 64  # keys that there is room for beyond those that are here
SPELLED = {
    kind.id
    for kind in (
        pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(1)
    )
}  # fmt: skip


def _grown(array: np.ndarray, size: int) -> np.ndarray:
    """The array with room for `size` entries and a few more (doubling), so that small batches just go in."""
    if size <= array.size:
        return array
    grown = np.zeros(max(size + SPARE_KEYS, 2 * array.size), array.dtype)
    grown[: array.size] = array
    return grown


class KeyTable:
    """The keys seen so far, in order of first appearance. Numbers and times by value, everything else by its bytes.

    It owns their values and numbers. Asked of it are numbers for keys (`encode` for new ones too, `find`), and keys for
    numbers (`column`). called: what their column is; a column of structs that is not called as one that stands for
    several (`joint_name`) is a user's own, and refused.
    """

    def __init__(self, kind: pa.DataType, called: str | None = None) -> None:
        self.type = decoded_type(kind)
        self._parts: list[KeyTable] = []  # of a key of several columns: the values of each, and of the pairs so far
        if pa.types.is_struct(kind):
            if called is not None and called != joint_name(each.name for each in kind):
                raise ungroupable(kind)
            self._parts = [KeyTable(each.type) for each in kind]
            self._parts += [KeyTable(pa.int64()) for _ in range(len(self._parts) - 2)]
            own = zip(kind, self._parts, strict=False)
            self.type = pa.struct([pa.field(each.name, part.type) for each, part in own])
        self._by_value = bool(self._parts) or is_discrete(self.type) or pa.types.is_floating(self.type)
        if not (self._by_value or is_groupable(self.type) or pa.types.is_null(self.type)):
            raise ungroupable(kind)
        self.count = 0
        self._table = np.zeros(64, np.int32)  # half the cache misses of int64
        self._values = np.zeros(0, np.int64)
        self._hashes = np.zeros(0, np.uint64)
        self._text = np.zeros(0, np.uint8)
        self._ends = np.zeros(1, np.int64)
        self._all: pa.Array | None = None

    def encode(self, keys: pa.ChunkedArray | pa.Array, name: str) -> np.ndarray:
        """The id of every key; new keys get the next ones."""
        array = keys if isinstance(keys, pa.Array) else one_chunk(keys)
        if array.type == self.type and len(array) and not array.null_count:  # as nearly all are
            return self._add(array)
        return self._through_dictionary(self._checked(array, name), self._add)

    def encode_columns(self, columns: list[pa.ChunkedArray]) -> np.ndarray:
        """The same for a key of several columns."""
        own = [part.encode(each, of.name) for part, each, of in zip(self._parts, columns, self.type, strict=False)]
        return self._add_numbers(self._pairs(own, KeyTable.encode))

    def encode_words(self, columns: list[np.ndarray], names: tuple[str, ...]) -> np.ndarray:
        """The same of columns that are arrays of words."""
        if self._parts:
            each = zip(self._parts, columns, names, strict=False)
            return self._add_numbers(
                self._pairs([part.encode_words([c], (n,)) for part, c, n in each], KeyTable.encode)
            )
        if self.type == INT64 and columns[0].dtype == np.int64:
            return self._add_numbers(columns[0])
        return self.encode(pa.array(columns[0]), names[0])

    def find(self, keys: pa.ChunkedArray | pa.Array, name: str) -> np.ndarray:
        """The id of every key, -1 for those never seen."""
        array = self._checked(keys, name, finding=True)
        if are_other_decimals(array.type, self.type):
            return self._find_any(array, name)
        return self._through_dictionary(array, self._find)

    def find_any(self, columns: list[Any], names: tuple[str, ...]) -> np.ndarray:
        """The id of every key, by its columns as users have them, of Arrow or arrays of words: -1 for those never seen,
        for nulls, and for values that no key can have."""
        if len(columns) == 1:
            return self._find_any(columns[0], names[0])
        own = [part._find_any(each, name) for part, each, name in zip(self._parts, columns, names, strict=False)]
        ids = np.empty(own[0].size, np.int64)
        hashing.find_integers(self._pairs(own, KeyTable.find), self._table, self._values, ids)
        return ids

    def _find_any(self, column: Any, name: str) -> np.ndarray:
        """The ids of keys in one column of any type, -1 for those that are null or were never seen."""
        if isinstance(column, np.ndarray) and column.dtype == np.int64 and self.type == INT64:
            ids = np.empty(column.size, np.int64)
            hashing.find_integers(column, self._table, self._values, ids)
            return ids
        array = pa.array(column) if isinstance(column, np.ndarray) else one_chunk(column)
        if not array.null_count and array.type == self.type and len(array):  # the usual one
            return self._find(array)
        if not array.null_count and self._finds(array.type):
            return self._through_dictionary(array, self._find)
        found = np.full(len(array), -1)
        there = np.flatnonzero(np.asarray(pc.is_valid(array)))
        values = decoded(array.take(pa.array(there)))
        if self._finds(values.type):
            found[there] = self._find(values) if there.size else there
            return found
        for row, value in zip(there, values, strict=True):  # of another type: one by one, as a lookup does
            one = self.one(value, name)
            found[row] = -1 if one is None else self._find(one)[0]
        return found

    def _is_own(self, kind: pa.DataType) -> bool:
        kind = decoded_type(kind)
        return bool(kind == self.type or (is_string(kind) and is_string(self.type)))

    def _finds(self, kind: pa.DataType) -> bool:
        """Are keys found by values of this type as they are? Whole numbers that int64 holds may be of any width."""
        types = decoded_type(kind), self.type
        own = pa.types.is_null(self.type) or self._is_own(kind)
        return own or all(pa.types.is_integer(each) and each != pa.uint64() for each in types)

    def forget_after(self, count: int) -> None:
        """Take back the newest keys, down to `count` of them."""
        if count < self.count:
            if self._parts:  # what its columns have not met before goes, too
                self.keep(np.arange(count))
                return
            hashing.forget(self._table, count)
            self.count, self._all = count, None

    def keep(self, ids: np.ndarray) -> None:
        """Forget all other keys. These are numbered anew, in the order given."""
        kept = KeyTable(self.type)
        if ids.size:
            kept._add(self.column(ids))
        self.__dict__.update(kept.__dict__)

    def hashes(self, ids: np.ndarray) -> np.ndarray:
        """Of keys with these ids, words of 64 bits: the same however keys are numbered."""
        words = self._values if self._by_value else self._hashes.view(np.int64)
        return words.take(ids, mode="clip") if self.count else np.zeros(ids.size, np.int64)

    def spelled(self) -> tuple[np.ndarray, np.ndarray]:
        """Of keys that are known by their bytes: those, one key after the other, and where each begins and ends."""
        return self._text, self._ends

    def column(self, ids: np.ndarray | None = None) -> pa.Array:
        """The keys with these ids (None: all), as a column of the type they came in."""
        if ids is not None and self.type == INT64:
            return pa.array(self._values[ids])
        if self._all is None or len(self._all) != self.count:  # made once for as long as no key is new
            if ids is not None and ids.size < self.count and self._by_value and not self._parts:
                return self._every_key(ids)
            self._all = self._every_key()
        return self._all if ids is None else self._all.take(pa.array(ids))

    def _every_key(self, ids: np.ndarray | None = None) -> pa.Array:
        """All keys seen so far, in order of their ids, as a column of the type they came in. ids: these of them, where
        they are known by value."""
        if self._parts:
            return self._structs()
        if self._by_value:
            numbers = self._values[: self.count].copy() if ids is None else self._values[ids]
            if pa.types.is_floating(self.type):
                return pa.array(numbers.view(np.float64)).cast(self.type)
            values = pa.array(numbers.view(np.uint64) if pa.types.is_uint64(self.type) else numbers)
            if pa.types.is_temporal(self.type) and self.type.bit_width == 32:
                values = values.cast(pa.int32())
            return values.cast(self.type)
        if pa.types.is_null(self.type):  # of which there is none
            return pa.nulls(0)
        ends = self._ends[: self.count + 1]
        buffers = [None, pa.py_buffer(ends.copy()), pa.py_buffer(self._text[: ends[-1]].copy())]
        every = pa.Array.from_buffers(pa.large_binary(), self.count, buffers)
        if is_string(self.type):
            return every.cast(pa.large_string()).cast(self.type)
        if pa.types.is_decimal(self.type):
            return every.cast(pa.binary(self.type.byte_width)).view(self.type)
        return every.cast(self.type)

    def _structs(self) -> pa.Array:
        """The columns of all keys, from the places of their values, pair by pair."""
        columns, pairs = [], self._values[: self.count]
        own = len(self.type)
        for i in range(own - 1, 0, -1):
            columns.append(self._parts[i].column(pairs & PLACE))
            pairs = pairs >> PLACE_BITS
            if i > 1:
                pairs = self._parts[own + i - 2].numbers[pairs]
        columns.append(self._parts[0].column(pairs))
        return pa.StructArray.from_arrays(columns[::-1], fields=list(self.type))

    def one(self, key: Any, name: str) -> pa.Array | None:
        """A key as a column of one row; None if no key can have this value."""
        if self._parts:
            return self._one_struct(key)
        if isinstance(key, list | tuple):
            if len(key) != 1:
                raise BadQuery(f'key={key!r} is no value of one column, "{name}".', f"key={key[0]!r}" if key else "")
            key = key[0]
        if not pa.types.is_timestamp(self.type):
            return same(key, self.type)
        if not is_point(key):
            return None
        return pa.array([Clock(self.type).instant(key, "key")]).cast(self.type)  # no zone is guessed, no hour cut off

    def _one_struct(self, key: Any) -> pa.Array | None:
        """A key of several columns, a tuple, as a column of one struct; None if no key can have such values."""
        names = [each.name for each in self.type]
        if not isinstance(key, list | tuple) or len(key) != len(names):
            raise BadQuery(
                f"key={key!r} is no tuple of ({', '.join(names)}).", f"key=({', '.join('…' for _ in names)})"
            )
        columns = [part.one(value, n) for part, value, n in zip(self._parts, key, names, strict=False)]
        if any(column is None for column in columns):
            return None
        return pa.StructArray.from_arrays(columns, fields=list(self.type))

    @property
    def types(self) -> list[pa.DataType]:
        """Of the columns of a key."""
        return [each.type for each in self.type] if self._parts else [self.type]

    @property
    def numbers(self) -> np.ndarray:
        """Of keys that are whole numbers: their values, in order of their ids."""
        return self._values[: self.count]

    @property
    def bytes(self) -> int:
        arrays: list[np.ndarray] = [self._table, self._values, self._hashes, self._text, self._ends]
        own = sum(int(array.nbytes) for array in arrays) + (0 if self._all is None else int(self._all.nbytes))
        return own + sum(part.bytes for part in self._parts)

    def state(self) -> State:
        """The values; of what type they are its owner knows."""
        ends = self._ends[: self.count + 1]
        arrays: dict[str, Any] = {"values": self._values[: self.count], "text": self._text[: ends[-1]], "ends": ends}
        for i, part in enumerate(self._parts):
            arrays |= {f"part {i}/{name}": array for name, array in part.state()[1].items()}
        return {}, arrays

    def restore(self, state: State) -> None:
        arrays = state[1]
        for i, part in enumerate(self._parts):
            part.restore(({}, {name: arrays[f"part {i}/{name}"] for name in ("values", "text", "ends")}))
        if self._by_value:
            self._add(pa.array(arrays["values"]).cast(pa.int64()), raw=True)
        else:
            self._add(_texts(arrays["ends"], arrays["text"]), raw=True)

    def _checked(self, keys: pa.ChunkedArray | pa.Array, name: str, finding: bool = False) -> pa.Array:
        """The key column in one chunk; refused if it has nulls, or is of another type than keys have had so far."""
        array = keys if isinstance(keys, pa.Array) else one_chunk(keys)
        if self._parts and pa.types.is_struct(array.type):
            return array  # its columns are checked one by one
        kind = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
        if are_other_decimals(kind, self.type):
            array = where_known(array, self.type) if finding else as_known(array, self.type, f'key column "{name}"')
        elif len(array) and not (self._finds(kind) if finding else self._is_own(kind)):
            raise BadType(
                f'key column "{name}" is {kind}, but keys have been {self.type} so far.', f"cast it to {self.type}"
            )
        if array.null_count:
            if pa.types.is_null(kind):
                raise ungroupable(kind)
            row = pc.index(pc.is_null(array), True).as_py()
            raise BadEvents(f'row {row} has no key: "{name}" is null.', "drop such rows, or fill in a key of their own")
        return array

    def _through_dictionary(self, array: pa.Array, ids_of: Any) -> np.ndarray:
        """The ids of a key column; of one with a dictionary, only the words that are used are looked up."""
        if len(array) == 0:
            return np.zeros(0, np.int64)
        if not pa.types.is_dictionary(array.type):
            return ids_of(array)
        used = pc.unique(array.indices)
        ids = np.zeros(len(array.dictionary), np.int64)
        ids[np.asarray(used)] = ids_of(array.dictionary.take(used))
        return ids[np.asarray(array.indices)]

    def _add(self, array: pa.Array, raw: bool = False) -> np.ndarray:
        """The ids of keys, new ones included. raw: as a snapshot has them, numbers or bytes."""
        if self._by_value:
            return self._add_numbers(np.asarray(array) if raw else self._numbers(array, KeyTable.encode))
        ids = np.full(len(array), -1)
        data, offsets, hashes = self._bytes(array, raw)
        if self.count:
            hashing.find_bytes(data, offsets, hashes, self._table, self._known(), ids)
        new_rows = ids < 0
        if new_rows.any():
            most = self.count + int(np.count_nonzero(new_rows))
            self._hashes, self._ends = _grown(self._hashes, most), _grown(self._ends, most + 1)
            self._text = _grown(self._text, int(self._ends[self.count] + np.diff(offsets)[new_rows].sum()))
            self._make_table(most)
            self.count = hashing.encode_bytes(data, offsets, hashes, self._table, self._known(), self.count, ids)
            if self._table.size > 64 * max(self.count, 16):
                self._trim()
        return ids

    def _add_numbers(self, values: np.ndarray) -> np.ndarray:
        """The ids of keys that are known by value, as int64; new ones get the next ids."""
        most = self.count + values.size
        if most <= self._values.size and 2 * most <= self._table.size:  # there is room, even if all of them are new
            ids = np.empty(values.size, np.int64)
            self.count = hashing.encode_integers(values, self._table, self._values, self.count, ids)
            return ids
        ids = np.full(values.size, -1)
        if self.count:  # most batches bring few new keys: grow for those, not for every row
            hashing.find_integers(values, self._table, self._values, ids)
        new = int(np.count_nonzero(ids < 0))
        if new:
            most = self.count + new
            self._values = _grown(self._values, most)
            self._make_table(most)
            self.count = hashing.encode_integers(values, self._table, self._values, self.count, ids)
            if self._table.size > 64 * max(self.count, 16):
                self._trim()
        return ids

    def _find(self, array: pa.Array) -> np.ndarray:
        if not self.count:
            return np.full(len(array), -1)
        ids = np.empty(len(array), np.int64)
        if self._by_value:
            hashing.find_integers(self._numbers(array, KeyTable.find), self._table, self._values, ids)
        else:
            data, offsets, hashes = self._bytes(array)
            hashing.find_bytes(data, offsets, hashes, self._table, self._known(), ids)
        return ids

    def _known(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self._hashes, self._text, self._ends

    def _make_table(self, most: int) -> None:
        """A hash table with room for so many keys, those that are here entered anew if it had to grow."""
        if 2 * most > self._table.size:
            self._table = np.zeros(1 << (3 * most - 1).bit_length(), np.int32)
            if self.count == 0:
                return
            if self._by_value:
                hashing.rehash_integers(self._table, self._values, 0, self.count)
            else:
                hashing.rehash_bytes(self._table, self._hashes, 0, self.count)

    def _trim(self) -> None:
        """Give back what was there for rows of new keys, where those were far more than the keys."""
        self._table = np.zeros(0, np.int32)
        self._make_table(max(self.count, 16))
        self._values, self._hashes = self._values[: self.count].copy(), self._hashes[: self.count].copy()
        self._ends = self._ends[: self.count + 1].copy()
        self._text = self._text[: self._ends[-1]].copy()

    def _numbers(self, array: pa.Array, ids_of: "Callable[[KeyTable, Any, str], np.ndarray]") -> np.ndarray:
        """Keys as whole numbers. ids_of: `encode` or `find`, of the columns of a key."""
        if self._parts:
            own = [ids_of(self._parts[i], array.field(i), each.name) for i, each in enumerate(self.type)]
            return self._pairs(own, ids_of)
        if array.type == INT64:  # the usual one; to ask for the others takes longer than the rest
            return array.to_numpy()
        if pa.types.is_uint64(array.type):
            return np.asarray(array).view(np.int64)
        if pa.types.is_floating(array.type):  # as SQL groups them: 0.0 is -0.0, and one NaN is another
            values = np.asarray(array.cast(pa.float64())) + 0.0
            return np.where(np.isnan(values), np.nan, values).view(np.int64)
        if pa.types.is_temporal(array.type):
            array = array.cast(pa.int32() if array.type.bit_width == 32 else pa.int64())
        return np.asarray(array.cast(pa.int64()))

    def _pairs(self, own: list[np.ndarray], ids_of: "Callable[[KeyTable, Any, str], np.ndarray]") -> np.ndarray:
        """The places of the columns' values, pair by pair, as one number; -1 where one is not known."""
        pairs = own[0]
        for i, ids in enumerate(own[1:], 1):
            if i > 1:
                pairs = ids_of(self._parts[len(own) + i - 2], pa.array(pairs), "")
            both = pairs << PLACE_BITS | ids
            pairs = both if ids_of is KeyTable.encode else np.where((pairs < 0) | (ids < 0), -1, both)
        return pairs

    def _bytes(self, array: pa.Array, raw: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Keys as bytes, one behind the other, where each begins and ends, and their hashes."""
        if not raw:
            if pa.types.is_decimal(array.type):
                array = array.view(pa.binary(array.type.byte_width))
            array = array.cast(pa.large_string()) if is_string(array.type) else array.cast(pa.large_binary())
        _, ends, text = array.buffers()
        offsets = np.frombuffer(ends, np.int64)[array.offset : array.offset + len(array) + 1]
        data = np.frombuffer(text, np.uint8) if text is not None and text.size else np.zeros(1, np.uint8)
        hashes = np.empty(len(array), np.uint64)
        hashing.hash_bytes(data, offsets, hashes)
        return data, offsets, hashes


def joint_name(columns: Iterable[str]) -> str:
    """What the one column is called that stands for several."""
    return f"({', '.join(columns)})"


def ungroupable(kind: pa.DataType) -> BadType:
    hint = "use a column of numbers, text, booleans, dates or times"
    return BadType(f"a key of type {kind} can not be grouped by.", hint)


def is_groupable(kind: pa.DataType) -> bool:
    """Can values of this type be told apart?"""
    by_bytes = is_spelled(kind) or pa.types.is_decimal(kind)
    return bool(is_discrete(kind) or by_bytes or pa.types.is_floating(kind))


def is_string(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_spelled(kind: pa.DataType) -> bool:
    """Are values compared by their bytes, as text is?"""
    return kind.id in SPELLED


def _texts(ends: np.ndarray, text: np.ndarray) -> pa.Array:
    """Values of a snapshot, which may have been damaged on purpose: what does not go together raises ValueError."""
    if ends.dtype != np.int64 or ends.ndim != 1 or ends.size == 0 or text.dtype != np.uint8:
        raise ValueError(f"keys end at {ends.dtype} {ends.shape} of {text.dtype}")
    buffers = [None, pa.py_buffer(ends.copy()), pa.py_buffer(text.copy())]
    found = pa.Array.from_buffers(pa.large_binary(), ends.size - 1, buffers)
    found.validate(full=True)
    return found
