"""A few rows of plain numbers are taken without Arrow, as if they had come as a table."""

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

import swag as sw
from swag.tables.columns import as_table
from swag.tables.few_words import FEW_ROWS, few_words, table_of_words

SMALL = st.integers(0, 9)
OF_LISTS = [st.integers(-(2**63), 2**63 - 1), st.floats(), st.integers(-(2**70), 2**70), SMALL | st.booleans(),
            st.floats() | st.none(), SMALL | st.floats(), st.text(max_size=1)]  # fmt: skip
LISTS = st.one_of(*(st.lists(each, max_size=3) for each in OF_LISTS))
ARRAYS = LISTS.filter(bool).map(np.array)


@given(st.dictionaries(st.sampled_from("ab"), LISTS | ARRAYS, max_size=2))
def test_what_is_taken_as_words_is_what_arrow_makes_of_it(columns):
    words = few_words(columns)
    if words:
        expected, found = as_table(columns), table_of_words(words)
        assert expected.schema == found.schema
        assert repr(expected.to_pydict()) == repr(found.to_pydict())  # NaN, too
        assert not any(each.flags.writeable for each in words.values())


def test_what_is_not_few_plain_columns_is_left_to_arrow():
    few, much = np.arange(FEW_ROWS), np.arange(FEW_ROWS + 1)
    assert few_words({"a": few, "b": few.tolist()}).keys() == {"a", "b"}
    assert not few_words({"a": much}) and not few_words({"a": much.tolist()}) and not few_words({"a": few, "b": much})
    assert (
        not few_words({})
        and not few_words({"a": []})
        and not few_words({1: [1]})
        and not few_words(pa.table({"a": [1]}))
    )
    assert (
        not few_words({"a": few[::2]}) and not few_words({"a": few.astype(">i8")}) and not few_words({"a": [1, None]})
    )


QUERIES = [
    sw.Query(sw.sum("x"), sw.Range(9), name="sum"),
    sw.Query(sw.count("x"), sw.Range(9), name="count", by=("k", "f")),
    sw.Query(sw.mean("x"), sw.Rows(3), name="mean", by=()),
    sw.Query(sw.max("k"), sw.Rows(3), name="max", by="f"),
    sw.Query(sw.sum("x"), sw.Range(9), name="some", where="x > 1"),
]


@pytest.fixture(scope="module")
def twins():
    """Engines that get the same events, one row at a time, as lists and as tables."""
    few, tables = sw.Engine(key="k"), sw.Engine(key="k")
    for engine in (few, tables):
        engine.register(QUERIES)
    rng = np.random.default_rng(1)
    for ts in range(30):
        row = {
            "x": [float(rng.integers(0, 4))],
            "ts": [ts],
            "k": [int(rng.integers(0, 3))],
            "f": [rng.integers(0, 2) / 2],
            "y": [0],
        }
        few.append(row)
        tables.append(pa.table(row))
    return few, tables


def test_rows_that_come_as_lists_answer_as_rows_of_tables_do(twins):
    few, tables = twins
    for by in ("k", ("k", "f"), (), "f"):
        assert few.lookup_all(by=by) == tables.lookup_all(by=by)
    assert few.stats()["keys"] == tables.stats()["keys"]


@pytest.mark.parametrize("rows", [1, 64, 65, 200])
def test_features_of_entities_that_come_as_lists_are_those_of_a_table(twins, rows):
    entities = {"k": [n % 5 for n in range(rows)], "f": [n % 3 / 2 for n in range(rows)], "z": [0.5] * rows}
    found = twins[0].features(entities)
    assert found == twins[1].features(pa.table(entities))
    assert found == pa.concat_tables([twins[0].features(pa.table(entities).slice(i, 1)) for i in range(rows)])


@pytest.mark.parametrize(
    "row", [{"ts": [40], "k": [1.0], "f": [0.5], "x": [1.0]}, {"ts": [40], "k": [1], "f": [0.5], "x": [1]},
            {"ts": [40.0], "k": [1], "f": [0.5], "x": [1.0]}, {"ts": [4], "k": [1], "f": [0.5], "x": [1.0]},
            {"ts": [40], "k": [1], "x": [1.0]}, {"ts": [40, 41], "k": [1], "f": [0.5], "x": [1.0]}],
)  # fmt: skip
def test_rows_that_are_refused_as_a_table_are_refused_as_lists_with_the_same_words(twins, row):
    few, tables = twins
    with pytest.raises(sw.SwagError) as of_lists:
        few.append(row)
    if len(row["ts"]) == 1:
        with pytest.raises(type(of_lists.value)) as of_tables:
            tables.append(pa.table(row))
        assert str(of_lists.value) == str(of_tables.value)
    assert few.lookup_all() == tables.lookup_all()
