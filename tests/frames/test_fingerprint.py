"""Equal rows in equal order have one fingerprint, however they come; others have another."""

import itertools

import numpy as np
import pyarrow as pa
import pytest

from frames.finding.intake import key_ids
from frames.owning.origin import Fingerprint
from frames.scans.scan import any_fields
from kernels.frames.fingerprint import ONE_IN, PAGE, READ_WHOLE, mix
from swag.tables.columns import timed

SIZE = 1000


def events(seed=0, size=SIZE):
    rng = np.random.default_rng(seed)
    return pa.table({
        "ts": rng.integers(0, 50, size), "k": pa.array([f"k{i}" for i in rng.integers(0, 9, size)]),
        "x": pa.array(rng.normal(size=size), mask=rng.random(size) < 0.1),
    })  # fmt: skip


def digest(*batches):
    seen, keys = Fingerprint(), None
    for table in batches:
        keys, ids = key_ids(table, "k", keys)
        seen.add(any_fields(table, ["x"], "the test reads"), timed(table, "ts")[1], ids, keys)
    return seen.digest()


@pytest.mark.parametrize("cuts", [(0,), (1,), (999,), (3, 500), (500, 500, 501)])
def test_it_does_not_matter_how_rows_are_cut(cuts):
    whole, edges = events(), (0, *cuts, SIZE)
    assert digest(*(whole.slice(a, b - a) for a, b in itertools.pairwise(edges))) == digest(whole)


@pytest.mark.parametrize("row", [0, 1, 500, 999])
def test_every_value_and_its_place_matter(row):
    whole, seen = events(), {digest(events())}
    for name, value in (("ts", 77), ("k", "other"), ("x", 0.25), ("x", None)):
        changed = whole.column(name).to_pylist()
        changed[row] = value
        seen.add(digest(whole.set_column(whole.column_names.index(name), name, pa.array(changed, whole[name].type))))
    seen.add(digest(pa.concat_tables([whole.slice(0, row), whole.slice(row + 1)])))
    swapped = np.arange(SIZE)
    swapped[[row, (row + 7) % SIZE]] = swapped[[(row + 7) % SIZE, row]]
    seen.add(digest(whole.take(pa.array(swapped))))
    assert len(seen) == 7


def test_null_is_not_zero_and_keys_have_names():
    base = {"ts": [1, 2], "k": ["a", "b"], "x": pa.array([0.0, 1.0])}
    others = [{**base, "x": pa.array([None, 1.0])}, {**base, "x": pa.array([-0.0, 1.0])}, {**base, "k": ["a", "c"]}]
    assert len({digest(pa.table(each)) for each in (base, *others)}) == 4


def test_of_many_values_pages_are_read_wherever_batches_end():
    values = np.random.default_rng(1).integers(0, 2**62, READ_WHOLE + 3 * ONE_IN * PAGE).astype(np.uint64)
    whole = int(mix(values, 0))
    for cut in (
        1,
        READ_WHOLE - 1,
        READ_WHOLE,
        READ_WHOLE + 1,
        READ_WHOLE + ONE_IN * PAGE,
        READ_WHOLE + ONE_IN * PAGE + 5,
        READ_WHOLE + PAGE,
    ):
        assert (int(mix(values[:cut], 0)) + int(mix(values[cut:], cut))) % 2**64 == whole
    for place, read in (
        (0, True),
        (READ_WHOLE - 1, True),
        (READ_WHOLE, True),
        (READ_WHOLE + PAGE, False),
        (READ_WHOLE + ONE_IN * PAGE + 3, True),
    ):
        changed = values.copy()
        changed[place] ^= np.uint64(1)
        assert (int(mix(changed, 0)) != whole) == read
