"""What an engine takes in: tables and types of any kind; a batch that is refused changes nothing."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import swag as sw
from tests.test_engine import SUM, engine_of

# -- events -----------------------------------------------------------------------------------------------------------


def test_every_kind_of_table_is_taken():
    columns = {"ts": [1, 2], "k": ["a", "b"], "x": [1.5, 2.5]}
    tables = [
        columns,
        pa.table(columns),
        pa.RecordBatch.from_pydict(columns),
        pd.DataFrame(columns),
        pl.DataFrame(columns),
    ]
    tables.append({name: np.array(values) for name, values in columns.items()})
    for table in tables:
        assert engine_of(SUM, rows=table, key="k").lookup("sum").to_pydict() == {"k": ["a", "b"], "value": [1.5, 2.5]}


@pytest.mark.parametrize(
    "keys",
    [
        pa.array([3, -7, 3], pa.int32()),
        pa.array([2**63 + 1, 5, 2**63 + 1], pa.uint64()),
        pa.array([True, False, True]),
        pa.array(["a", "", "a"]),
        pa.array(["a", "b", "a"]).dictionary_encode(),
        pa.array([b"\0", b"", b"\0"]),
        pa.array([dt.date(2020, 1, 1), dt.date(1960, 1, 1), dt.date(2020, 1, 1)]),
        pa.array(["ä", "b", "ä"], pa.large_string()),
        pa.array([1, 2, 1], pa.timestamp("us", "UTC")),
        pa.array([b"ab", b"cd", b"ab"], pa.binary(2)),
    ],
    ids=lambda keys: str(keys.type)[:12],
)
def test_keys_of_any_type_come_back_as_they_were(keys):
    table = engine_of(SUM, rows={"ts": [1, 2, 3], "k": keys, "x": [1, 2, 4]}, key="k").lookup("sum")
    plain = keys.dictionary_decode() if pa.types.is_dictionary(keys.type) else keys
    assert table.column("k").combine_chunks() == plain[:2]
    assert table.column("value").to_pylist() == [5, 2]


def test_timestamps_take_durations_and_datetimes():
    noon = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)
    ts = pa.array(
        [noon, noon + dt.timedelta(minutes=3), noon + dt.timedelta(minutes=6)], pa.timestamp("ms", "Europe/Berlin")
    )
    engine = engine_of(sw.Query(sw.count(), sw.Range("5m"), name="n"), rows={"ts": ts})
    assert engine.lookup("n") == 2
    assert engine.lookup("n", at=noon + dt.timedelta(minutes=4)) == 2
    engine.advance(noon + dt.timedelta(minutes=10))
    assert engine.lookup("n") == 1


def test_types_are_kept():
    rows = {
        "ts": [1, 2], "i": pa.array([1, 2], pa.int16()), "f": pa.array([0.5, 1.5], pa.float32()), "b": [True, True],
        "d": pa.array([dt.date(2020, 1, 1), dt.date(2021, 1, 1)]),
    }  # fmt: skip
    aggregates = [
        sw.max("i"),
        sw.first("f"),
        sw.sum("b"),
        sw.max("d"),
        sw.mean("i"),
        sw.sum("f"),
        sw.median("i"),
        sw.min("b"),
    ]
    engine = engine_of(*(sw.Query(a, sw.Rows(9), name=str(a)) for a in aggregates), rows=rows)
    table = engine.lookup_all()
    assert [str(field.type) for field in table.schema] == [
        "int16", "float", "int64", "date32[day]", "double", "double", "double", "bool",
    ]  # fmt: skip
    assert table.to_pylist()[0]["max(d)"] == dt.date(2021, 1, 1)


def test_a_column_of_nulls_has_no_type_until_it_has_values():
    engine = engine_of(SUM, rows={"ts": [1], "x": pa.nulls(1)})
    assert engine.lookup("sum") is None
    engine.append({"ts": [2, 3], "x": [4, None]})
    assert engine.lookup("sum") == 4


def test_memory_follows_the_longest_window_not_the_stream():
    engine = engine_of(sw.Query(sw.sum("x"), sw.Range(1000), name="s"), sw.Query(sw.max("x"), sw.Range(500), name="m"))
    sizes = []
    for start in range(0, 200_000, 10_000):
        engine.append({"ts": np.arange(start, start + 10_000), "x": np.ones(10_000)})
        sizes.append(engine.stats()["bytes"])
    assert max(sizes[5:]) == sizes[5]
    assert engine.lookup("s") == 1000.0


def test_silent_keys_give_their_memory_back():
    engine = engine_of(sw.Query(sw.sum("x"), sw.Range(100), name="s"), key="k")
    engine.append({"ts": np.zeros(100_000, int), "k": np.repeat(np.arange(1000), 100), "x": np.ones(100_000)})
    full = engine.stats()["kept"]
    for ts in range(1000, 1400):
        engine.append({"ts": [ts], "k": [0], "x": [1.0]})
    assert full == 100_000
    assert engine.stats()["kept"] <= 200


# -- a bad batch changes nothing --------------------------------------------------------------------------------------

BAD = {
    "a column is missing": (
        {"ts": [9], "k": ["a"], "volum": [1.0]},
        sw.UnknownColumn,
        r'"sum" reads "x", but the events have: ts, k, volum',
    ),
    "ts is missing": (
        {"time": [9], "k": ["a"], "x": [1.0]},
        sw.UnknownColumn,
        r'ts is "ts", but the events have: time, k, x',
    ),
    "null ts": ({"ts": [9, None], "k": ["a", "b"], "x": [1.0, 2.0]}, sw.BadEvents, "row 1 has no timestamp"),
    "null key": ({"ts": [9, 9], "k": ["new", None], "x": [1.0, 2.0]}, sw.BadEvents, "row 1 has no key"),
    "float ts": ({"ts": [9.5], "k": ["a"], "x": [1.0]}, sw.BadType, "is double; ts is an integer or a timestamp"),
    "wrong type": ({"ts": [9], "k": ["new"], "x": ["text"]}, sw.BadType, '"x" is string, but has been double so far'),
    "another type than before": ({"ts": [9], "k": ["new"], "x": [1]}, sw.BadType, '"x" is int64, but has been double'),
    "another key type": (
        {"ts": [9], "k": [7], "x": [1.0]},
        sw.BadType,
        'key column "k" is int64, but keys have been string',
    ),
    "another kind of ts": (
        {"ts": pa.array([9], pa.timestamp("s")), "k": ["a"], "x": [1.0]},
        sw.BadType,
        "has been int64 so far",
    ),
    "disorder": (
        {"ts": [9, 8, 7], "k": ["new", "a", "new"], "x": [1.0, 2.0, 3.0]},
        sw.OutOfOrder,
        r"event 2 has ts 7, after ts 9 was applied.*lateness=2",
    ),
    "older than before": (
        {"ts": [9, 3], "k": ["new", "a"], "x": [1.0, 2.0]},
        sw.OutOfOrder,
        r"event 1 has ts 3, after ts 5 .*lateness=6",  # behind 9, which is another key's, as the watermark is
    ),
    "unequal lengths": ({"ts": [9, 9], "k": ["a"], "x": [1.0]}, sw.BadEvents, "not equally long"),
    "no table": ([1, 2, 3], sw.BadType, "event 0 of the list is 1, which is no dict"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_batch_changes_nothing(name):
    events, error, message = BAD[name]
    engine = engine_of(SUM, rows={"ts": [4, 5], "k": ["b", "a"], "x": [1.0, 2.0]}, key="k")
    before = engine.stats(), engine.lookup_all()
    with pytest.raises(error, match=message) as raised:
        engine.append(events)
    assert isinstance(raised.value, sw.SwagError)
    assert (engine.stats() | {"bytes": 0, "lookups": 0}, engine.lookup_all()) == (
        before[0] | {"bytes": 0, "lookups": 0},
        before[1],
    )
    engine.append({"ts": [9], "k": ["new"], "x": [1.0]})
    assert engine.stats()["keys"] == 3


def test_a_bad_first_batch_leaves_the_engine_new():
    engine = engine_of(SUM)
    with pytest.raises(sw.BadType):
        engine.append({"ts": pa.array([1], pa.timestamp("s")), "x": ["text"]})
    engine.append({"ts": [1], "x": [2]})
    assert engine.lookup("sum") == 2


def test_events_older_than_what_was_promised_are_refused():
    engine = engine_of(SUM, rows={"ts": [1], "x": [1]})
    engine.advance(10)
    with pytest.raises(sw.OutOfOrder, match="event 0 has ts 9, after ts 10"):
        engine.append({"ts": [9], "x": [1]})
    assert engine.append({"ts": [10], "x": [1]}) == 1
