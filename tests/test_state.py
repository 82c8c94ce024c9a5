"""State: what is handed over and taken back is the same, whatever is nested in what; names may hold anything."""

import hashlib
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import swag as sw
from swag.durable.snapshot import SNAPSHOT
from swag.durable.state import (
    nested,
    own_arrays,
    part,
    parts,
    table_from_array,
    table_to_array,
    types_from_array,
    types_to_array,
    with_arrays,
)
from tests.snapshots import recipe
from tests.test_engine_stateful import assert_identical

names = st.text("ab/. 0", min_size=1, max_size=4)
leaves = st.tuples(
    st.dictionaries(names, st.integers()), st.dictionaries(names, st.integers().map(lambda i: np.array(i % 7)))
)


def same(one: Any, other: Any) -> bool:
    return one[0] == other[0] and {k: v.tolist() for k, v in one[1].items()} == {
        k: v.tolist() for k, v in other[1].items()
    }


@given(header=st.dictionaries(st.sampled_from("xyz"), st.integers()), one=leaves, several=st.lists(leaves, max_size=3))
def test_parts_come_out_of_a_whole_as_they_went_in(header: dict[str, int], one: Any, several: list[Any]) -> None:
    whole = with_arrays(nested(header, {"one": one, "several": several, "none": None}), {"own": np.array([1])})
    written = json.loads(json.dumps(whole[0])), whole[1]
    assert same(part(written, "one"), one)
    assert len(parts(written, "several")) == len(several)
    assert all(map(same, parts(written, "several"), several))
    assert written[0]["none"] is None
    assert whole[1]["own"].tolist() == [1]
    assert {name: written[0][name] for name in header} == header


def test_tables_and_types_are_plain_arrays():
    words = pa.chunked_array([pa.array(["a", None]).dictionary_encode(), pa.array(["b", "a"]).dictionary_encode()])
    table = pa.table({"x": [1, 2, None, 4], "words": words})
    again = table_from_array(table_to_array(table))
    assert again.to_pylist() == table.to_pylist()
    assert table_to_array(table).dtype == np.uint8
    types = {"a/b": pa.timestamp("us", "UTC"), "": pa.decimal128(5, 2)}
    assert types_from_array(types_to_array(types)) == types
    assert own_arrays({"a/b": np.array(1), "ab": np.array(2)}, "a").keys() == {"b"}


@given(
    written=st.sampled_from([table_to_array(pa.table({"x": [1]})), types_to_array({"x": pa.int64()})]),
    start=st.integers(0, 40), length=st.integers(0, 400),
)  # fmt: skip
def test_bytes_that_are_something_else_are_refused(written: np.ndarray, start: int, length: int) -> None:
    """Also those of the other kind: a snapshot may have lost an array, so that others stand in its place."""
    for read in (table_from_array, types_from_array):
        try:
            read(written[start : start + length])
        except ValueError:  # Arrow's own errors are such, too
            pass


@pytest.mark.parametrize("name", recipe.RECIPES)
def test_an_engine_goes_on_from_the_state_of_another(name: str) -> None:
    """By way of JSON and copies of the arrays, as any file would hold them; columns may be named like paths."""
    engine, other = recipe.make(name), sw.Engine(**recipe.RECIPES[name])
    other.register(engine.queries)
    header, arrays = engine.state()
    other.restore((json.loads(json.dumps(header)), {name: array.copy() for name, array in arrays.items()}))
    for first in (150, 200):
        assert other.append(recipe.batch(first)) == engine.append(recipe.batch(first))
        for query in engine.queries:
            if query.every is None:
                assert_identical(other.lookup(query.label), engine.lookup(query.label))
        assert other.emitted("ticks") == engine.emitted("ticks")
    assert other.stats() | {"bytes": 0} == engine.stats() | {"bytes": 0}


def test_columns_may_be_named_like_paths():
    engine, other = sw.Engine(key="a/k"), sw.Engine(key="a/k")
    query = sw.Query(sw.sum("raw/x"), sw.Rows(3), name="spaces/0/arena")
    engine.register([query, sw.Query(sw.last("keys/text"), sw.Rows(1), name="last")])
    engine.append({"ts": [1, 2], "a/k": ["p", "q"], "raw/x": [1.0, 2.0], "keys/text": ["u", "v"]})
    other.register(engine.queries)
    other.restore(engine.state())
    for each in engine.queries:
        assert_identical(other.lookup(each.label), engine.lookup(each.label))


@pytest.mark.parametrize("shape", [[10**30], [2**62], [2**32, 2**32], [-1], [2, -4], ["8"], [8.0], [None], 8, None])
def test_a_shape_that_no_array_can_have_is_damage(shape: Any) -> None:
    head, text, numbers, _ = SNAPSHOT.written(({}, {"a": np.arange(8)}))
    header = json.loads(text)
    header["arrays"][0]["shape"] = shape
    forged = json.dumps(header).encode().ljust(256)
    body = head[:12] + len(forged).to_bytes(8, "little") + forged + numbers
    with pytest.raises(sw.BadSnapshot, match="damaged"):
        SNAPSHOT.read(body + hashlib.sha256(body).digest(), "it")
