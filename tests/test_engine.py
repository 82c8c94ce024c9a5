"""What an engine does, one behaviour per test; the oracle's random walk is in test_engine_stateful.py."""

import numpy as np
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
    for wrong in (7, [SUM, "x"], fr.Delta("x", 1)):
        with pytest.raises(sw.BadQuery, match="is not a query"):
            sw.Engine().register(wrong)
    with pytest.raises(sw.BadQuery, match=r'Hint: fr.FrameQuery\(fr.Session\("30m"\), \[sw.count\(\)\]\)'):
        sw.Engine().register(fr.Session("30m"))


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
