"""Keys to ids, against a dict; refused batches, against a table that never saw them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.keys import hashing

INTEGERS = st.lists(st.one_of(st.integers(-4, 4), st.integers(-(2**63), 2**63 - 1)), max_size=60)
TEXTS = st.lists(st.one_of(st.sampled_from([b"", b"a", b"ab", b"\0", b"\0\0"]), st.binary(max_size=20)), max_size=60)


class Integers:
    """A table over integers, as swag.tables.keys drives it, without its growth."""

    def __init__(self, size: int = 256) -> None:
        self.table, self.known, self.count = np.zeros(size, np.int64), np.zeros(size, np.int64), 0

    def encode(self, values: list[int]) -> list[int]:
        ids = np.empty(len(values), np.int64)
        self.count = hashing.encode_integers(np.array(values, np.int64), self.table, self.known, self.count, ids)
        return ids.tolist()

    def find(self, values: list[int]) -> list[int]:
        ids = np.empty(len(values), np.int64)
        hashing.find_integers(np.array(values, np.int64), self.table, self.known, ids)
        return ids.tolist()

    def grow(self, size: int) -> None:
        self.table = np.zeros(size, np.int64)
        hashing.rehash_integers(self.table, self.known, 0, self.count)
        check(self.table, self.count)


class Texts:
    def __init__(self, size: int = 256) -> None:
        self.table, self.count = np.zeros(size, np.int64), 0
        self.known = np.zeros(size, np.uint64), np.zeros(size * 32, np.uint8), np.zeros(size + 1, np.int64)

    def encode(self, values: list[bytes]) -> list[int]:
        data, offsets, hashes = packed(values)
        ids = np.empty(len(values), np.int64)
        self.count = hashing.encode_bytes(data, offsets, hashes, self.table, self.known, self.count, ids)
        return ids.tolist()

    def find(self, values: list[bytes]) -> list[int]:
        data, offsets, hashes = packed(values)
        ids = np.empty(len(values), np.int64)
        hashing.find_bytes(data, offsets, hashes, self.table, self.known, ids)
        return ids.tolist()

    def grow(self, size: int) -> None:
        self.table = np.zeros(size, np.int64)
        hashing.rehash_bytes(self.table, self.known[0], 0, self.count)
        check(self.table, self.count)


def packed(values: list[bytes]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    data = np.frombuffer(b"".join(values) or b"\0", np.uint8)
    offsets = np.cumsum([0, *map(len, values)])
    hashes = np.empty(len(values), np.uint64)
    hashing.hash_bytes(data, offsets, hashes)
    return data, offsets, hashes


def check(table: np.ndarray, count: int) -> None:
    """Every id once, and nothing else."""
    assert sorted(table[table != 0].tolist()) == list(range(1, count + 1))


def ids_by_dict(batches: list[list]) -> list[list[int]]:
    known: dict = {}
    return [[known.setdefault(v, len(known)) for v in batch] for batch in batches]


@given(first=INTEGERS, second=INTEGERS)
def test_integers_get_the_ids_a_dict_would_give(first: list[int], second: list[int]) -> None:
    keys = Integers()
    assert [keys.encode(first), keys.encode(second)] == ids_by_dict([first, second])
    check(keys.table, keys.count)
    assert keys.find(first + second) == ids_by_dict([first + second])[0]
    keys.grow(512)
    assert keys.find(first + second) == ids_by_dict([first + second])[0]


@given(first=TEXTS, second=TEXTS)
def test_texts_get_the_ids_a_dict_would_give(first: list[bytes], second: list[bytes]) -> None:
    keys = Texts()
    assert [keys.encode(first), keys.encode(second)] == ids_by_dict([first, second])
    check(keys.table, keys.count)
    assert keys.find(first + second) == ids_by_dict([first + second])[0]
    keys.grow(512)
    assert keys.find(first + second) == ids_by_dict([first + second])[0]


@pytest.mark.parametrize(("kind", "values"), [(Integers, INTEGERS), (Texts, TEXTS)])
@given(data=st.data())
def test_forgetting_a_batch_leaves_the_table_as_it_was(
    kind: type, values: st.SearchStrategy, data: st.DataObject
) -> None:
    kept, refused, next_one = (data.draw(values) for _ in range(3))
    keys, other = kind(), kind()
    keys.encode(kept)
    before, count = keys.table.copy(), keys.count
    keys.encode(refused)
    hashing.forget(keys.table, count)
    keys.count = count
    assert np.array_equal(keys.table, before)
    new = [v for v in refused if v not in kept]
    assert keys.find(new) == [-1] * len(new)
    other.encode(kept)
    assert keys.encode(next_one) == other.encode(next_one)


def test_unknown_values_are_not_found_and_not_added() -> None:
    integers, texts = Integers(), Texts()
    integers.encode([1, 2])
    texts.encode([b"a"])
    assert integers.find([2, 3, -1]) == [1, -1, -1] and integers.count == 2
    assert texts.find([b"b", b"a", b""]) == [-1, 0, -1] and texts.count == 1


def test_a_nearly_full_table_of_collisions_still_tells_keys_apart() -> None:
    """A table of 64 for 63 keys: long probe sequences, through each other."""
    keys = Integers(64)
    values = [(i - 31) << 32 for i in range(63)]
    assert keys.encode(values) == list(range(63))
    assert keys.find(values[::-1]) == list(range(63))[::-1]


def test_texts_with_one_hash_are_told_apart_by_their_bytes() -> None:
    table, known = np.zeros(8, np.int64), (np.zeros(8, np.uint64), np.zeros(64, np.uint8), np.zeros(9, np.int64))
    data, offsets, _ = packed([b"x", b"y", b"x", b"xy"])
    same = np.full(4, 7, np.uint64)
    ids = np.empty(4, np.int64)
    count = hashing.encode_bytes(data, offsets, same, table, known, 0, ids)
    assert (count, ids.tolist()) == (3, [0, 1, 0, 2])
    hashing.find_bytes(data, offsets, same, table, known, ids)
    assert ids.tolist() == [0, 1, 0, 2]


def test_hashes_tell_lengths_and_positions_apart() -> None:
    texts = [b"\0" * n for n in range(40)] + [b"\0" * n + b"\1" for n in range(40)]
    hashes = packed(texts)[2]
    assert len(set(hashes.tolist())) == len(texts)


def test_hashes_of_consecutive_integers_spread() -> None:
    """Buckets by the low bits: no worse than chance would make them."""
    buckets = [int(hashing.mix(np.int64(i))) & 255 for i in range(4096)]
    assert max(np.bincount(buckets)) < 40
