"""What an engine does, one behaviour per test; the oracle's random walk is in test_engine_stateful.py."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import frames as fr
import swag as sw


def engine_of(*queries, rows=None, **options):
    engine = sw.Engine(**options)
    engine.register(list(queries))
    if rows is not None:
        engine.append(rows)
    return engine


SUM = sw.Query(sw.sum("x"), sw.Rows(3), name="sum")


# -- windows ----------------------------------------------------------------------------------------------------------


def test_rows_are_the_last_ones_of_the_key():
    """a: 1 2 [3 4 5]    b: [10 20]"""
    rows = {"ts": [1, 2, 3, 4, 5, 6, 7], "k": list("aabaaba"), "x": [1, 2, 10, 3, 4, 20, 5]}
    table = engine_of(SUM, rows=rows, key="k").lookup("sum")
    assert table.to_pydict() == {"k": ["a", "b"], "value": [12, 30]}


@pytest.mark.parametrize(
    ("closed", "expected"), [("right", 0b0110), ("left", 0b1100), ("both", 0b1110), ("none", 0b0100)]
)
def test_closed_picks_the_edges(closed, expected):
    """ts   60 ... 70 ... 80 ... 100      now = 100, window from 100 - 40 = 60 to 100 - 20 = 80
    x     8       4      2      1"""
    rows = {"ts": [60, 70, 80, 100], "x": [8, 4, 2, 1]}
    engine = engine_of(sw.Query(sw.sum("x"), sw.Range(40, until=20, closed=closed), name="q"), rows=rows)
    assert engine.lookup("q") == expected


def test_until_cuts_the_newest_rows_off():
    engine = engine_of(
        sw.Query(sw.sum("x"), sw.Rows(4, until=1), name="q"), rows={"ts": [1, 2, 3, 4, 5], "x": [1, 2, 4, 8, 16]}
    )
    assert engine.lookup("q") == 2 + 4 + 8


def test_a_lookup_later_than_all_events_sees_time_pass():
    engine = engine_of(sw.Query(sw.count(), sw.Range(10), name="n"), rows={"ts": [1, 5, 9]})
    assert [engine.lookup("n", at=t) for t in (9, 11, 15, 19)] == [3, 2, 1, 0]


def test_a_lookup_in_the_past_sees_the_past():
    queries = sw.Query(sw.sum("x"), sw.Range(4), name="q"), sw.Query(sw.count(), sw.Range(100), name="keeps more")
    engine = engine_of(*queries, rows={"ts": [1, 2, 3, 4, 5, 6], "x": [1, 2, 4, 8, 16, 32]})
    assert engine.lookup("q", at=4) == 15
    assert engine.lookup("q", at=5) == 30


def test_a_lookup_further_back_than_is_kept_says_how_far_one_can_go():
    engine = engine_of(sw.Query(sw.sum("x"), sw.Range(4), name="q"))
    for ts in range(1, 1001):
        engine.append({"ts": [ts], "x": [1]})
    with pytest.raises(sw.TooFarBack, match=r'"q" at 500 needs events before 9\d\d, no longer kept.*now is 1000'):
        engine.lookup("q", at=500)


def test_keys_without_an_event_in_the_window_are_left_out():
    queries = sw.Query(sw.count("x"), sw.Range(5), name="n"), sw.Query(sw.sum("x"), sw.Range(50), name="s")
    engine = engine_of(*queries, rows={"ts": [1, 8, 9], "k": ["old", "null", "new"], "x": [1.0, None, 2.0]}, key="k")
    assert engine.lookup("n").to_pydict() == {"k": ["null", "new"], "value": [0, 1]}
    assert engine.lookup_all().to_pylist() == [
        {"k": "old", "n": 0, "s": 1.0},
        {"k": "null", "n": 0, "s": None},
        {"k": "new", "n": 1, "s": 2.0},
    ]


def test_where_is_applied_after_the_window():
    rows = {"ts": [1, 2, 3, 4], "side": ["buy", "buy", "sell", "buy"], "x": [1, 2, 4, 8]}
    engine = engine_of(sw.Query(sw.sum("x"), sw.Rows(3), name="q", where="side = 'buy'"), rows=rows)
    assert engine.lookup("q") == 2 + 8


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
    "wrong type": ({"ts": [9], "k": ["new"], "x": ["text"]}, sw.BadType, '"x", a column of type string'),
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
        r"event 1 has ts 3, after ts 5 .*lateness=2",
    ),
    "unequal lengths": ({"ts": [9, 9], "k": ["a"], "x": [1.0]}, sw.BadEvents, "not equally long"),
    "no table": ([1, 2, 3], sw.BadType, "events are a list, which is no table"),
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


# -- lateness ---------------------------------------------------------------------------------------------------------


def test_events_wait_until_time_has_passed_them():
    engine = engine_of(
        sw.Query(sw.last("x"), sw.Rows(2), name="q"), sw.Query(sw.count(), sw.Rows(99), name="n"), lateness=10
    )
    assert engine.append({"ts": [100, 95, 103], "x": [1, 2, 3]}) == 3
    assert engine.lookup("n") == 0
    engine.advance(110)
    assert (engine.lookup("n"), engine.lookup("q")) == (2, 1)
    assert engine.append({"ts": [99, 101], "x": [7, 8]}) == 1
    engine.advance(200)
    assert (engine.lookup("n"), engine.lookup("q"), engine.stats()["late"]) == (4, 3, 1)


def test_a_bad_batch_is_refused_while_others_wait():
    query = sw.Query(sw.sum("x"), sw.Rows(9), name="q", where="side = 1")
    engine = engine_of(query, rows={"ts": [1], "x": [1.0], "side": [1]}, lateness=5)
    for wrong in ({"x": ["text"], "side": [1]}, {"x": [1], "side": [1]}, {"x": [1.0], "side": ["text"]}):
        with pytest.raises(sw.BadType):
            engine.append({"ts": [2]} | wrong)
    engine.append({"ts": [2], "x": [2.0], "side": [1]})
    engine.advance(99)
    assert engine.lookup("q") == 3.0


def test_lateness_is_a_duration_of_the_stream():
    engine = sw.Engine(lateness="10s")
    engine.register(sw.Query(sw.count(), sw.Rows(9), name="n"))
    with pytest.raises(sw.BadQuery, match='"10s" is a duration, but ts is an integer'):
        engine.append({"ts": [1]})
    engine.append({"ts": pa.array([0, 11], pa.timestamp("s"))})
    assert engine.lookup("n") == 1


@pytest.mark.parametrize("lateness", [None, 0, 100, 1000])
def test_a_window_holds_what_it_is_long_whatever_the_lateness(lateness):
    engine = engine_of(sw.Query(sw.count(), sw.Range(900), name="n"), lateness=lateness)
    engine.append({"ts": list(range(0, 10_000, 10))})
    assert engine.lookup("n") == engine.lookup_all()["n"].to_pylist()[0] == 90
    assert engine.lookup("n", at=9990) == max(0, 90 - (lateness or 0) // 10)


def test_filters_and_queries_over_events_answer_as_of_the_watermark_too():
    busy = sw.Query(sw.count(), sw.Range(20), name="busy", having=(">", 1))
    chosen = sw.Query(sw.count(), sw.Range(20), name="chosen", source=sw.Events("x > 0"))
    engine = engine_of(busy, chosen, key="k", lateness=100)
    engine.append({"ts": [10, 11, 12, 30, 120], "k": ["a", "a", "b", "a", "b"], "x": [1, 0, 1, 1, 1]})
    assert engine.lookup("busy").to_pylist() == engine.filters("busy").select(["k", "value"]).to_pylist()
    assert engine.lookup("busy").to_pylist() == [{"k": "a", "value": 2}]
    assert engine.lookup("chosen").to_pylist() == [{"k": "a", "value": 1}, {"k": "b", "value": 1}]


@pytest.mark.parametrize("second", [dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, tzinfo=dt.UTC), 2.5, None, "soon"])
def test_times_before_the_first_event_are_of_one_kind(second):
    engine = engine_of(sw.Query(sw.count(), sw.Rows(9), name="n"))
    engine.advance(5)
    with pytest.raises(sw.BadType, match="advance"):
        engine.advance(second)
    engine.advance(4)
    with pytest.raises(sw.OutOfOrder):
        engine.append({"ts": [4]})
    assert engine.append({"ts": [5]}) == 1


# -- queries that come while events flow ------------------------------------------------------------------------------


def test_a_query_that_comes_while_events_wait_takes_none_away():
    engine = engine_of(sw.Query(sw.count(), sw.Range(100), name="n"), lateness=5)
    engine.append({"ts": [1, 2], "s": ["a", "b"]})
    engine.register(sw.Query(sw.count(), sw.Range(100), name="b", where="s LIKE 'b%'"))
    engine.advance(10)
    assert (engine.stats()["events"], engine.lookup("n"), engine.lookup("b")) == (2, 2, 0)
    assert engine.stats()["complete_since"] == {"n": None, "b": 102}


def test_a_query_that_can_not_read_the_events_that_wait_is_refused():
    engine = engine_of(sw.Query(sw.count("s"), sw.Range(100), name="n"), lateness=5)
    engine.append({"ts": [1, 2], "s": ["a", "b"]})
    for wrong in (
        sw.Query(sw.sum("s"), sw.Range(9)),
        sw.Query(sw.count(), sw.Range(9), where="s > 3"),
        sw.Query(sw.sum("s"), sw.Rows(2), every=sw.Every(1)),
    ):
        with pytest.raises(sw.BadType):
            engine.register([sw.Query(sw.count(), sw.Rows(3), name="other", every=sw.Every(1)), wrong])
        assert [query.label for query in engine.queries] == ["n"]
    engine.advance(10)
    assert engine.lookup("n") == 2 and engine.emitted().num_rows == 0


def test_events_that_wait_without_its_columns_are_not_claimed_for_a_query():
    engine = engine_of(sw.Query(sw.count(), sw.Range(100), name="n"), lateness=5)
    engine.append({"ts": [1, 2], "x": [10.0, 20.0]})
    engine.register([sw.Query(sw.sum("x"), sw.Range(100), name="s"), sw.Query(sw.count(), sw.Range(100), name="m")])
    engine.append({"ts": [20], "x": [30.0]})
    engine.advance(30)
    assert (engine.lookup("s"), engine.lookup("m")) == (30.0, 3)
    assert engine.stats()["complete_since"] == {"n": None, "s": 102, "m": None}


@pytest.mark.parametrize("where", [None, "x > 0"])
def test_a_count_of_a_column_knows_whose_nulls_nobody_saw(where):
    known = sw.Query(sw.max("c"), sw.Rows(50), name="c", where="x > 1" if where is None else None)
    engine = engine_of(sw.Query(sw.sum("y"), sw.Rows(50), name="w", where="x > 0"), known)
    engine.append({"ts": [1, 2, 3, 4], "x": [1, 1, 1, 1], "y": [1, 2, 3, 4], "c": [1, None, 3, 4]})
    engine.register(sw.Query(sw.count("c"), sw.Rows(2), name="n", where=where))
    assert engine.stats()["complete_since"]["n"] == 5
    engine.append({"ts": [5, 6], "x": [1, 1], "y": [1, 1], "c": [1, None]})
    assert (engine.lookup("n"), engine.stats()["complete_since"]["n"]) == (1, 6)


@pytest.mark.parametrize(("window", "since"), [(sw.Rows(1), 2), (sw.Range(1000), 1001)])
def test_events_chosen_before_a_query_came_are_not_claimed_for_it(window, since):
    engine = engine_of(sw.Query(sw.count(), sw.Rows(1), name="n"), rows={"ts": [1], "s": ["ask"]})
    engine.register(sw.Query(sw.count(), window, name="c", source=sw.Events("s = 'ask'")))
    assert (engine.lookup("c"), engine.stats()["complete_since"]["c"]) == (0, since)


def test_a_mean_does_not_overflow_where_the_sum_does():
    engine = engine_of(sw.Query(sw.mean("x"), sw.Rows(9), name="m"), rows={"ts": [1, 2, 3], "x": [2**62] * 3})
    assert engine.lookup("m") == 2.0**62


def test_a_window_by_rows_that_came_later_is_complete_when_it_is_full():
    engine = engine_of(sw.Query(sw.count(), sw.Rows(1), name="one"), key="k")
    engine.append({"ts": [1, 2, 3], "k": ["a", "a", "b"], "x": [1, 2, 3]})
    engine.register(sw.Query(sw.sum("x"), sw.Rows(2), name="two"))
    assert engine.stats()["complete_since"] == {"one": None, "two": 4}
    engine.append({"ts": [7, 8, 9], "k": ["a", "a", "c"], "x": [1, 2, 3]})
    assert engine.stats()["complete_since"]["two"] == 10
    engine.append({"ts": [10, 11], "k": ["b", "b"], "x": [1, 2]})
    assert engine.stats()["complete_since"]["two"] == 11


# -- queries ----------------------------------------------------------------------------------------------------------


def test_a_name_is_taken_once():
    engine = engine_of(SUM)
    with pytest.raises(sw.BadQuery, match='two queries are named "sum"'):
        engine.register([sw.Query(sw.count(), sw.Rows(1), name="other"), SUM])
    assert [query.label for query in engine.queries] == ["sum"]


def test_an_unknown_query_is_told_apart():
    with pytest.raises(sw.UnknownQuery, match=r'no query is named "smu"; registered: sum. Hint: "sum"'):
        engine_of(SUM).lookup("smu")


def test_a_duration_on_an_integer_ts_is_refused():
    engine = engine_of(sw.Query(sw.count(), sw.Range("5m"), name="n"))
    with pytest.raises(sw.BadQuery, match='"5m" is a duration, but ts is an integer'):
        engine.append({"ts": [1]})


def test_what_is_no_query_is_refused():
    for wrong in (7, [SUM, "x"], fr.FrameQuery(fr.Delta("x", 1), sw.count())):
        with pytest.raises(sw.BadQuery, match="is not a query"):
            sw.Engine().register(wrong)


def test_a_query_that_comes_later_answers_from_what_is_kept():
    engine = engine_of(sw.Query(sw.sum("x"), sw.Range(10), name="ten"))
    engine.append({"ts": np.arange(100), "x": np.ones(100), "y": np.ones(100)})
    engine.register(sw.Query(sw.max("x"), sw.Range(5), name="kept"))
    engine.register(sw.Query(sw.sum("y"), sw.Range(5), name="new column"))
    assert engine.lookup("kept") == 1.0
    assert engine.lookup("new column") is None
    engine.append({"ts": [100, 101], "x": [2.0, 3.0], "y": [2.0, 3.0]})
    assert (engine.lookup("ten"), engine.lookup("kept"), engine.lookup("new column")) == (13.0, 3.0, 5.0)
    since = engine.stats()["complete_since"]
    assert since["ten"] is None
    assert since["new column"] == 99 + 5


def test_unregistering_gives_structures_back():
    engine = engine_of(
        SUM, sw.Query(sw.max("x"), sw.Rows(1000), name="max"), rows={"ts": np.arange(2000), "x": np.ones(2000)}
    )
    before = engine.stats()["bytes"]
    engine.unregister("max")
    engine.append({"ts": np.arange(2000, 4000), "x": np.ones(2000)})
    assert engine.stats()["bytes"] < before
    assert "max" not in engine.explain()
    assert engine.lookup("sum") == 3.0


def test_an_engine_without_events_answers_nothing():
    queries = [sw.Query(sw.count(), sw.Rows(2), name="n"), SUM]
    assert [engine_of(*queries).lookup(name) for name in ("n", "sum")] == [0, None]
    assert engine_of(*queries).lookup_all().to_pylist() == [{"n": 0, "sum": None}]
    assert engine_of(*queries, key="k").lookup_all().num_rows == 0
    assert engine_of(*queries, rows={"ts": [], "x": []}).lookup("n") == 0


def test_a_key_that_was_never_seen_has_an_empty_window():
    engine = engine_of(SUM, sw.Query(sw.count(), sw.Rows(2), name="n"), rows={"ts": [1], "k": ["a"], "x": [1]}, key="k")
    assert (engine.lookup("sum", key="b"), engine.lookup("n", key="b"), engine.lookup("n", key=7)) == (None, 0, 0)
    with pytest.raises(sw.BadQuery, match="this engine has no key"):
        engine_of(SUM, rows={"ts": [1], "x": [1]}).lookup("sum", key="a")


def test_user_defined_aggregates_keep_stream_order():
    digits = sw.aggregate("x", lift=lambda x: (1, x), combine=lambda a, b: (a[0] + b[0], a[1] * 10.0 ** b[0] + b[1]),
                          lower=lambda a: a[1], identity=(0, 0.0))  # fmt: skip
    for algorithm in ("auto", "b-int", "l-int"):
        engine = engine_of(
            sw.Query(digits, sw.Rows(4), name="q"), rows={"ts": range(9), "x": range(1, 10)}, algorithm=algorithm
        )
        assert engine.lookup("q") == 6789.0


def test_a_user_defined_inverse_makes_running_intervals():
    xor = sw.aggregate(
        "x", lift=lambda x: x, combine=lambda a, b: a ^ b, lower=lambda a: a, identity=0, invert=lambda a, b: a ^ b
    )
    engine = engine_of(sw.Query(xor, sw.Rows(2), name="q"), rows={"ts": [1, 2, 3], "x": [5, 9, 12]})
    assert "R-INT" in engine.explain()
    assert engine.lookup("q") == 9 ^ 12


# -- the planner ------------------------------------------------------------------------------------------------------


def test_count_sum_mean_and_var_of_a_column_are_one_structure():
    aggregates = [sw.count("x"), sw.sum("x"), sw.mean("x"), sw.var("x"), sw.std("x", ddof=0)]
    queries = [sw.Query(a, sw.Rows(n)) for a in aggregates for n in (5, 50, 500)]
    engine = engine_of(*queries, rows={"ts": [1, 2], "x": [1.0, 3.0]})
    assert "15 answers from 1 structure" in engine.explain()
    assert [engine.lookup(f"{a}[ROWS 50]") for a in aggregates] == [2, 4.0, 2.0, 2.0, 1.0]


def test_the_plan_follows_what_is_asked():
    engine = engine_of(*(sw.Query(sw.max("x"), sw.Rows(n), name=str(n)) for n in range(900, 1000)))
    engine.append({"ts": np.arange(2000), "x": np.random.default_rng(0).random(2000)})
    assert "B-INT: update" in engine.explain()
    before = engine.lookup_all()
    for _ in range(400):
        assert engine.lookup_all() == before
    assert "L-INT: update" in engine.explain()
    for start in range(2000, 302_000, 10_000):
        engine.append({"ts": np.arange(start, start + 10_000), "x": np.zeros(10_000)})
        engine.lookup("999")
    assert "B-INT: update" in engine.explain()


def test_sums_that_running_sums_can_not_certify_go_to_base_intervals():
    engine = engine_of(*(sw.Query(sw.sum("x"), sw.Rows(n), name=str(n)) for n in range(1, 101)))
    engine.append({"ts": np.arange(1001), "x": np.concatenate([[1e300], np.full(1000, 1e-3)])})
    assert "R-INT" in engine.explain()
    for _ in range(200):
        assert engine.lookup("100") == pytest.approx(0.1, rel=1e-14)
        engine.lookup_all()
    assert "were not certain" in engine.explain()
    assert engine.lookup("100") == pytest.approx(0.1, rel=1e-14)


def test_r_int_is_refused_where_nothing_can_be_taken_off():
    with pytest.raises(sw.BadQuery, match="R-INT subtracts, and max"):
        engine_of(sw.Query(sw.max("x"), sw.Rows(9)), algorithm="r-int")


def test_options_that_mean_nothing_are_refused():
    with pytest.raises(sw.BadQuery, match=r'algorithm="bint" is none of auto, r-int.*Hint: algorithm="b-int"'):
        sw.Engine(algorithm="bint")
    with pytest.raises(sw.BadQuery, match="for comparison, on one stream"):
        sw.Engine(key="k", algorithm="psoup")
    with pytest.raises(sw.BadQuery, match="negative"):
        sw.Engine(lateness=-1)


def test_the_newest_text_of_a_window():
    engine = sw.Engine(key="k")
    engine.register(
        [sw.Query(sw.last("side"), sw.Range(10), name="new"), sw.Query(sw.first("side"), sw.Rows(2), name="old")]
    )
    engine.append({"ts": [1, 2, 3], "k": ["a", "b", "a"], "side": ["bid", "ask", None]})
    engine.append({"ts": [4], "k": ["b"], "side": ["mid"]})
    assert engine.lookup_all().to_pylist() == [
        {"k": "a", "new": "bid", "old": "bid"},
        {"k": "b", "new": "mid", "old": "ask"},
    ]
    with pytest.raises(sw.BadType, match="has been string"):
        engine.append({"ts": [5], "k": ["b"], "side": [7]})


def test_text_that_no_row_holds_any_more_is_forgotten():
    engine = sw.Engine()
    engine.register(sw.Query(sw.last("order"), sw.Rows(3), name="order"))
    for batch in range(40):
        ids = np.arange(1000) + 1000 * batch
        engine.append({"ts": ids, "order": [f"order {i}" for i in ids]})
        assert engine.lookup("order") == f"order {ids[-1]}"
    assert engine._stream.core.dictionary.tables["order"].count < 10_000


def test_a_window_by_rows_is_not_claimed_over_rows_that_nobody_read_when_they_came(tmp_path):
    """The event waits without its i: null is what is known of it, whatever it was."""
    engine = sw.Engine(lateness=3)
    engine.append({"ts": [0], "i": [-1]})
    engine.register(sw.Query(sw.max("i"), sw.Rows(1), name="m"))
    engine.advance(100)
    assert engine.lookup("m") is None
    assert engine.stats()["complete_since"]["m"] > 97
    engine.save(tmp_path / "snapshot")
    assert sw.Engine.load(tmp_path / "snapshot").stats()["complete_since"]["m"] > 97
    engine.append({"ts": [101], "i": [5]})
    engine.advance(110)
    assert engine.lookup("m") == 5
    assert engine.stats()["complete_since"]["m"] <= 107
