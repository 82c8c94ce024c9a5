"""Statements of a known shape: made from a template, they are the very queries that reading them gives."""

import functools
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import swag as sw
from swag.sql.filling import differences
from swag.sql.shapes import shaped
from swag.sql.statements import queries_of
from swag.sql.templates import OFTEN, SHAPES, Templates
from tests.examples import share
from tests.sql.test_round_trip import queries

STATEMENTS = [
    "SELECT symbol, SUM(volume) AS v FROM trades [RANGE 300] GROUP BY symbol HAVING SUM(volume) > 1000",
    "SELECT SUM(x) AS v FROM t [ROWS 30 UNTIL 20] WHERE side = 'buy' AND price > 2.5 OR -7 < price",
    "SELECT AVG(n) FROM (SELECT COUNT(*) AS n FROM cpu [RANGE 1 HOUR, FREQUENCY 100 TUPLES] WHERE load < 30) "
    "[RANGE 2 HOURS, FREQUENCY 3 HOURS]",
    "SELECT symbol FROM t GROUP BY symbol HAVING LAST(price) OVER [RANGE 20 MINUTES] < 0.98 * FIRST(price) OVER "
    "[RANGE 20 MINUTES] AND SUM(volume) FILTER (WHERE side = 'ask') OVER [RANGE 2 MINUTES] >= 0.7 * 2 * SUM(volume) "
    "OVER [RANGE 2 MINUTES]",
    "SELECT router, AVG(total_pkts) FROM reports [FRAME WHERE drop_pct > 0.3 FOR 2 MINUTES] GROUP BY router",
    "SELECT COUNT(*) FROM t [FRAME GRID x 4 FOR AT MOST 9 ROWS]",
    "SELECT QUANTILE(x, 0.9), LAST_N(x, 5), DECAYED_SUM(x, '10m') FROM t [RANGE 5 MINUTES CLOSED BOTH PEERS]",
    "SELECT COUNT(1) AS n, SUM(x * 3) AS m FROM t [RANGE 2 WEEKS] WHERE d >= DATE '2024-03-01' HAVING n > 3",
    "SELECT MAX(x) - 5 AS q, LAST(s) = 'on' AS r FROM t [SINCE 1 DAY AT TIME ZONE 'Europe/Berlin']",
    "SELECT SUM(x) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN 5 PRECEDING AND CURRENT ROW) AS a FROM t",
]
OTHERS = {
    "int": st.integers(1, 40).map(str),
    "float": st.sampled_from(["0.5", "0.98", "1.5", "0.001", "12.25"]),
    "text": st.sampled_from(["buy", "10m", "a b", "2024-03-02", "Europe/Paris", "5", "off"]),
    "name": st.sampled_from(["v", "w", "price", "total", "select", "first", "X9"]),
}


def read(text: str, known: Templates) -> Any:
    """The queries of a text, or what is said to be wrong with it."""
    try:
        return queries_of(text, {}, "ts", templates=known)
    except sw.SwagError as error:
        return type(error), str(error)


def learnt(text: str) -> Templates:
    known = Templates()
    for _ in range(OFTEN):
        read(text, known)
    return known


def assert_same(text: str, known: Templates) -> None:
    expected, found = read(text, Templates()), read(text, known)
    assert not list(differences(expected, found)), text
    assert [repr(each) for each in expected] == [repr(each) for each in found]
    assert [getattr(each, "label", "") for each in expected] == [getattr(each, "label", "") for each in found]


learnt_once = functools.cache(learnt)


@settings(max_examples=share(100))
@given(data=st.data(), text=st.sampled_from(STATEMENTS))
def test_other_constants_and_names_give_what_reading_gives(data: st.DataObject, text: str) -> None:
    shape, constants = shaped(text) or pytest.fail(text)
    some = [
        data.draw(st.one_of(st.just(each), OTHERS[kind])) for each, kind in zip(constants, shape.kinds, strict=True)
    ]
    assert_same(shape.text(some), learnt_once(text))


@settings(max_examples=share(30))
@given(data=st.data(), query=queries())
def test_statements_of_any_query_are_learnt_rightly(data: st.DataObject, query: sw.Query) -> None:
    text = str(query)
    found = shaped(text)
    if found is None:
        return
    shape, constants = found
    known = learnt(text)
    for _ in range(2):
        some = [
            data.draw(
                st.one_of(
                    st.just(each), st.sampled_from(constants).filter(lambda c, e=each: is_like(c, e)), OTHERS[kind]
                )
            )
            for each, kind in zip(constants, shape.kinds, strict=True)
        ]
        assert_same(shape.text(some), known)


def is_like(one: str, other: str) -> bool:
    return [bool(re.fullmatch(form, one)) for form in (r"\d+", r"\d+\.\d+")] == [
        bool(re.fullmatch(form, other)) for form in (r"\d+", r"\d+\.\d+")
    ]


def test_a_known_shape_is_not_read_again() -> None:
    known, texts = Templates(), [f"SELECT SUM(x) AS q{i} FROM t [RANGE {i + 1}] WHERE y > {i + 2}" for i in range(40)]
    reads: list[str] = []
    for text in texts:
        known.queries(text, lambda text: reads.append(text) or queries_of(text), (), None)
    assert len(reads) < OFTEN  # to learn it, and never again
    [query] = known.queries(texts[-1], pytest.fail, (), None) or []
    assert query == sw.Query(sw.sum("x"), sw.Range(40), "q39", where="y > 41", by=())


def test_what_from_names_may_be_a_query_by_now() -> None:
    text = "SELECT MAX(n) AS m FROM counts [ROWS 5]"
    [counts] = sw.sql("SELECT COUNT(*) AS counts FROM t [RANGE 5, FREQUENCY 2 TUPLES]")
    [query] = queries_of(text, {"counts": counts}, "ts", templates=learnt(text))
    assert query.source == counts


def test_few_shapes_are_kept() -> None:
    known = Templates()
    for i in range(SHAPES + 10):
        known.queries(f"SELECT SUM(x{i}) FROM t [ROWS 5]", sw.sql, (), None)
    assert len(known) == SHAPES
