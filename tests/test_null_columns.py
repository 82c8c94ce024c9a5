"""A column of nulls alone has no type: it answers null wherever it is read, until a batch says what it is."""

import datetime as dt
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import frames as fr
import swag as sw
from swag.query.kind import KINDS, Reads
from swag.query.kinds.one_of_each import one_of_each
from tests.examples import share

NOTHING = {"ts": [1, 2], "k": ["a", "b"], "c": [None, None], "x": [1, 2]}
AGGREGATES = [
    sw.sum("c"), sw.mean("c"), sw.min("c"), sw.max("c"), sw.first("c"), sw.last("c"), sw.var("c"), sw.std("c"),
    sw.quantile("c", 0.5), sw.median("c"), sw.wmean("c", "x"), sw.wmean("x", "c"), sw.cov("c", "x"), sw.corr("x", "c"),
    sw.aggregate("c", lift=lambda x: x, combine=lambda a, b: a + b, lower=lambda a: a, identity=0.0),
    sw.max("c") + 1, -sw.max("c"), abs(sw.last("c")), sw.max("c") / sw.min("c"), sw.sum("c") * sw.last("c"),
    sw.max("c") > 1, sw.last("c").eq("a"), sw.min("c").between(1, 2), sw.last("c").isin([1, 2]), ~(sw.max("c") > 1),
    (sw.max("c") > 1) & (sw.last("c") < 5), sw.last("c").coalesce(sw.max("c")), 9223372036854775807 + sw.max("c"),
]  # fmt: skip


def names(aggregates: list[Any]) -> list[sw.Query]:
    return [sw.Query(each, sw.Rows(2), name=f"q{i}") for i, each in enumerate(aggregates)]


def test_every_aggregate_of_it_is_null() -> None:
    queries = names(AGGREGATES)
    assert {
        value for row in sw.evaluate(queries, NOTHING).drop_columns(["ts"]).to_pylist() for value in row.values()
    } == {None}
    engine = sw.Engine()
    engine.register(queries)
    before = engine.lookup_all().to_pylist()
    engine.append(NOTHING)
    assert engine.lookup_all().to_pylist() == before == [{query.label: None for query in queries}]


def test_it_answers_as_no_rows_do_whatever_the_kind() -> None:
    """Of every kind there is: 0 of what counts, null of all else."""
    kinds = one_of_each({reads: ["c"] for reads in get_args(Reads)})
    queries = names([each for each in kinds if each.columns])
    expected = {q.label: 0 if KINDS[q.aggregate.kind].counts else None for q in queries}
    assert sw.evaluate(queries, NOTHING).drop_columns(["ts"]).to_pylist() == [expected, expected]
    engine = sw.Engine()
    engine.register(queries)
    engine.append(NOTHING)
    assert engine.lookup_all().to_pylist() == [expected]


@pytest.mark.parametrize("key", [None, "k"])
def test_ticks_and_filters_of_it(key: str | None, tmp_path: Path) -> None:
    ticks = [sw.Query(q.aggregate, q.window, name=q.name, every=sw.Every(2)) for q in names(AGGREGATES[:-14])]
    filters = [sw.Query(each, sw.Range(9), name=f"h{i}", having=(">", 0)) for i, each in enumerate(AGGREGATES[:14])]
    assert {row["q0"] for row in sw.evaluate(ticks, NOTHING, key=key).to_pylist()} == {None}
    assert {row["h2"] for row in sw.evaluate(filters, NOTHING, key=key).to_pylist()} == {None}
    engine = sw.Engine(key=key)
    engine.register([*ticks, *filters])
    engine.append(NOTHING)
    assert engine.filters().num_rows == 0
    assert set(engine.emitted()["value"].to_pylist()) == {None}


def test_it_is_counted_and_coalesced() -> None:
    queries = names([sw.count("c"), sw.count(), sw.last("c").coalesce(7), sw.last("c").is_null()])
    assert [tuple(row.values()) for row in sw.evaluate(queries, NOTHING).to_pylist()] == [
        (1, 0, 1, 7, True),
        (2, 0, 2, 7, True),
    ]


@pytest.mark.parametrize(
    ("where", "counted"),
    [("c > 1", 0), ("c = 'a'", 0), ("c LIKE 'a%'", 0), ("c", 0), ("NOT c", 0), ("c OR x > 1", 1), ("c AND x > 1", 0),
     ("c + x > 0", 0), ("-c < 1", 0), ("ABS(c) = 1", 0), ("c / 2 > 1", 0), ("c IN (1, NULL)", 0), ("c = c", 0),
     ("c BETWEEN 1 AND 2", 0), ("c IS NULL", 2), ("NOT c IS NULL", 0), ("c IS NULL AND x = 2", 1), ("NULL", 0)],
)  # fmt: skip
def test_predicates_over_it_are_unknown(where: str, counted: int) -> None:
    query = sw.Query(sw.count(), sw.Rows(9), name="q", where=where)
    assert sw.evaluate([query], NOTHING)["q"].to_pylist()[-1] == counted
    engine = sw.Engine()
    engine.register(query)
    engine.append(NOTHING)
    assert engine.lookup("q") == counted


def test_frames_of_it_are_none_and_their_summaries_null() -> None:
    assert fr.detect(fr.Threshold("c", ">", 1), NOTHING).num_rows == 0
    frames = fr.detect(fr.Threshold("x", ">", 0), NOTHING)
    found = fr.summarize(frames, NOTHING, [sw.max("c"), sw.sum("c"), sw.last("c"), sw.median("c")])
    assert [value for name, value in found.to_pylist()[0].items() if "(c)" in name] == [None] * 4


TYPES: dict[pa.DataType, list[Any]] = {
    pa.int64(): [1, -5, 2**60],
    pa.float32(): [0.5, -1.5],
    pa.string(): ["a", "b"],
    pa.date32(): [dt.date(2020, 1, 1), dt.date(1960, 1, 1)],
    pa.bool_(): [True, False],
}


@settings(max_examples=share(50))
@given(data=st.data(), kind=st.sampled_from([*TYPES]), lateness=st.sampled_from([None, 2]))
def test_a_column_that_gets_its_type_later_answers_as_if_it_had_it(
    data: Any, kind: pa.DataType, lateness: int | None
) -> None:
    """The same batches twice: all-null columns without a type, and with the type that they turn out to have."""
    values = st.lists(st.sampled_from([None, *TYPES[kind]]), min_size=1, max_size=4)
    batches = data.draw(st.lists(st.one_of(st.just([None, None]), values), min_size=1, max_size=6))
    cuts = data.draw(st.sets(st.integers(0, len(batches))))
    what = [sw.count("c"), sw.first("c"), sw.last("c")] + ([] if kind == pa.string() else [sw.min("c"), sw.max("c")])
    what += [sw.sum("c"), sw.quantile("c", 0.5), sw.mean("c")] if kind in (pa.int64(), pa.float32()) else []
    queries = names(what) + [
        sw.Query(q.aggregate, sw.Rows(3), name=f"e{q.name}", every=sw.Every(2)) for q in names(what)
    ]
    found = []
    for typed in (False, True):
        engine, now = sw.Engine(lateness=lateness), 0
        for i, batch in enumerate(batches):
            if i in cuts or i == 0:
                fresh = [q for q in queries if q.label not in {known.label for known in engine.queries}]
                engine.register(fresh[: len(fresh) // 2 + 1])
            some = any(value is not None for value in batch)
            c = pa.array(batch, kind) if typed or some else pa.nulls(len(batch))
            engine.append(pa.table({"ts": range(now, now + len(batch)), "c": c}))
            now += len(batch)
            found.append(engine.lookup_all().to_pylist())
        for query in engine.queries:
            found.append(engine.emitted(query.label).to_pylist() if query.every else [])
    assert found[: len(found) // 2] == found[len(found) // 2 :]


@pytest.mark.parametrize("late", [None, 10])
@pytest.mark.parametrize("every", [None, sw.Every(2)])
@pytest.mark.parametrize("values", [[1, 2**60 + 1], ["a", "b"], [1.5, 2.5]], ids=["int64", "string", "double"])
@pytest.mark.parametrize("kind", [pa.null(), pa.float64(), pa.int64(), pa.string(), pa.bool_()], ids=str)
def test_a_batch_of_nulls_may_come_as_any_type(late: int | None, every: Any, values: list[Any], kind: Any) -> None:
    """It has none of its own: the column is what it has been, with answers to the last digit."""
    engine = sw.Engine(lateness=late)
    engine.register(sw.Query(sw.last("x"), sw.Range(1000), "q", every=every))
    for ts, x in ((1, pa.array(values)), (3, pa.nulls(2, kind)), (5, pa.array(values)), (7, pa.nulls(2, kind))):
        engine.append({"ts": [ts, ts + 1], "x": x})
    engine.advance(100)
    if every is None:
        assert engine.lookup("q") == values[1]
    else:
        assert engine.emitted("q")["value"].to_pylist() == [values[1]] * 4
