"""min, max, arg_max and arg_min of text and bytes: as Python compares them, in every way to ask."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import swag as sw
from swag.live.vocabulary.words import Words
from tests import oracle
from tests.oracle_aggregates import Agg

FEWER = settings(max_examples=settings.default.max_examples // 3)  # each example is an engine or two

WINDOWS = [(sw.Rows(4), oracle.Rows(4)), (sw.Range(5), oracle.Range(5)), (sw.Unbounded(), oracle.Unbounded())]
ASKED = [
    (sw.min("c"), Agg("min", ("c",))), (sw.max("c"), Agg("max", ("c",))), (sw.last("c"), Agg("last", ("c",))),
    (sw.arg_max("x", "c"), Agg("arg_max", ("x", "c"))), (sw.arg_min("c", "c"), Agg("arg_min", ("c", "c"))),
    (sw.arg_max("c", "x"), Agg("arg_max", ("c", "x"))),
]  # fmt: skip
WORDS = st.one_of(
    st.integers(0, 60).map(lambda n: "a" * n), st.text(max_size=3), st.sampled_from(["b", "ü", "\U0001f600", "\0"])
)
EVENTS = st.lists(
    st.fixed_dictionaries(
        {"gap": st.integers(0, 3), "k": st.integers(0, 2), "c": st.none() | WORDS, "x": st.integers(-3, 3)}
    ),
    min_size=1, max_size=40,
)  # fmt: skip


def events_of(drawn: list[dict[str, Any]]) -> list[dict[str, Any]]:
    times = np.cumsum([each["gap"] for each in drawn])
    return [{"ts": int(ts)} | {n: each[n] for n in "kcx"} for ts, each in zip(times, drawn, strict=True)]


def queries() -> tuple[list[sw.Query], list[oracle.Q]]:
    pairs = [(w, a) for w in WINDOWS for a in ASKED]
    return (
        [sw.Query(a[0], w[0], name=f"q{i}") for i, (w, a) in enumerate(pairs)],
        [oracle.Q(a[1], w[1]) for w, a in pairs],
    )


def table_of(events: list[dict[str, Any]]) -> pa.Table:
    schema = pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("c", pa.string()), ("x", pa.int64())])
    return pa.Table.from_pylist(events, schema)


@FEWER
@given(drawn=EVENTS)
def test_stored_text_is_compared_as_python_does(drawn: list[dict[str, Any]]) -> None:
    events, (asked, wanted) = events_of(drawn), queries()
    found = sw.evaluate(asked, table_of(events), key="k")
    right = oracle.evaluate(wanted, events, key="k")
    for i, query in enumerate(asked):
        assert found[query.label].to_pylist() == [row[i] for row in right], query
        assert found[query.label].type in (pa.string(), pa.int64())


@FEWER
@given(drawn=EVENTS, late=st.integers(0, 40), saved=st.integers(0, 40))
def test_text_of_a_stream_is_compared_as_stored_text_is(
    drawn: list[dict[str, Any]], late: int, saved: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """`last` comes first: what was only told apart is compared from some batch on."""
    events, (asked, _) = events_of(drawn), queries()
    table = table_of(events)
    right = sw.evaluate(asked, table, key="k").to_pylist()
    keeping = [sw.Query(sw.last("c"), sw.Range(9), name="first"), sw.Query(sw.last("x"), sw.Range(9), name="second")]
    engine = sw.Engine(key="k")
    engine.register(keeping)
    for i in range(len(events)):
        if i == late:
            engine.register(asked)
        if i == saved:
            path = tmp_path_factory.mktemp("text") / "snapshot"
            engine.save(path)
            engine = sw.Engine.load(path)
        engine.append(table.slice(i, 1))
        answers = {row["k"]: row for row in engine.lookup_all().to_pylist()}[events[i]["k"]]
        assert answers["first"] == right[i]["q8"] or events[i]["ts"] > 5
        for query in asked if late == 0 else ():
            assert answers[query.label] == right[i][query.label], (i, query)
    if late < len(events) and events[late]["ts"] + 5 < events[-1]["ts"]:  # those by time are complete again
        for query in (q for q in asked if isinstance(q.window, sw.Range)):
            assert answers[query.label] == right[-1][query.label], query


def test_text_that_was_only_handed_back_is_compared_at_once() -> None:
    engine = sw.Engine()
    engine.register(sw.Query(sw.last("c"), sw.Rows(9), name="last"))
    engine.append({"ts": [1, 2], "c": ["b", "a"]})
    engine.register([sw.Query(sw.min("c"), sw.Rows(9), name="min"), sw.Query(sw.max("c"), sw.Rows(9), name="max")])
    assert engine.lookup_all().to_pylist() == [{"last": "a", "min": "a", "max": "b"}]


def test_a_full_gap_between_two_words_gives_all_of_them_new_labels() -> None:
    engine, words = sw.Engine(), ["b", "a", *("a" * n for n in range(2, 120))]
    engine.register([sw.Query(sw.max("c"), sw.Rows(2), name="max"), sw.Query(sw.min("c"), sw.Rows(200), name="min")])
    engine.register(sw.Query(sw.max("c"), sw.Unbounded(), name="ever"))
    for i, word in enumerate(words):
        engine.append({"ts": [i], "c": [word]})
        found = engine.lookup_all().to_pylist()[0]
        assert found == {"max": max(words[max(0, i - 1) : i + 1]), "min": min(words[: i + 1]), "ever": "b"}


def test_labels_compare_as_words_do_and_are_kept_unless_a_gap_is_full() -> None:
    words, rows, texts = Words(pa.string()), np.zeros(0, np.int64), []
    words.order()
    full = 0
    for n in range(200):
        new = [f"{'z' * (n % 7)}{'a' * n}", "a" * n + "!"]
        numbers, renumbering = words.encode(pa.array(new), "c")
        if renumbering is not None:
            renumbering.apply(rows)
            full += 1
        rows, texts = np.append(rows, numbers), texts + new
        assert [texts[i] for i in np.argsort(rows, kind="stable")] == sorted(texts)
        assert words.values(rows, np.ones(rows.size, bool)).to_pylist() == texts
    assert 0 < full < 20


def test_words_that_no_row_holds_are_forgotten_also_where_they_are_compared() -> None:
    engine = sw.Engine()
    engine.register([sw.Query(sw.max("c"), sw.Rows(3), name="q"), sw.Query(sw.last("c"), sw.Unbounded(), name="l")])
    for first in range(0, 40_000, 1000):
        words = [f"{(i * 7919) % 40_000:05}" for i in range(first, first + 1000)]
        engine.append({"ts": range(first, first + 1000), "c": words})
        assert engine.lookup_all().to_pylist() == [{"q": max(words[-3:]), "l": words[-1]}]
    assert engine.stats()["bytes"] < 2_000_000


def test_text_against_text_in_having_ticks_and_statements(tmp_path: Path) -> None:
    table = pa.table({"ts": range(6), "k": [1, 2] * 3, "c": ["m", "a", "z", "b", None, "q"]})
    having = sw.Query(sw.max("c"), sw.Range(9), name="q", having=(">", "n"))
    every = sw.Query(sw.min("c"), sw.Range(9), name="e", every=sw.Every(3))
    assert sw.evaluate(having, table, key="k")["q"].to_pylist() == [None, None, "z", None, "z", "q"]
    engine = sw.Engine(key="k")
    engine.register([having, every])
    engine.append(table)
    assert engine.filters().to_pylist() == [{"query": "q", "k": 1, "value": "z"}, {"query": "q", "k": 2, "value": "q"}]
    assert engine.emitted("e")["value"].to_pylist() == ["m", "a", "m", "a"]
    text = "SELECT k, MAX(c) AS q, MIN(UPPER(c)) AS u FROM s [RANGE 9] GROUP BY k"
    assert sw.evaluate(text, table, key="k")["u"].to_pylist() == ["M", "A", "M", "A", "M", "A"]


@pytest.mark.parametrize("what", [sw.sum("c"), sw.median("c"), sw.quantile("c", 0.5), sw.skew("c")], ids=str)
def test_text_is_not_computed_with(what: Any) -> None:
    engine, query = sw.Engine(), sw.Query(what, sw.Rows(2), name="q")
    engine.register([sw.Query(sw.max("c"), sw.Rows(2)), query])
    for call in (lambda: sw.evaluate(query, {"ts": [1], "c": ["a"]}), lambda: engine.append({"ts": [1], "c": ["a"]})):
        with pytest.raises(sw.BadType, match="column of type string"):
            call()
