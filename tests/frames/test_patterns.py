"""Patterns: leftmost, greedy, in order of preference, as SQL's MATCH_RECOGNIZE; against regular expressions, too."""

import math
import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import frames as fr
import swag as sw
from frames.detection import search
from frames.patterns.reading import read, written
from frames.theory.patterns import matches
from swag.sql.functions import AGGREGATES
from tests.examples import share
from tests.frames.cases import SPECS, streams
from tests.frames.cases import table as stream_table

DIP = fr.Pattern("A B+ C", {"B": "price < PREV(price)", "C": "price > PREV(price)"}, {"low": "LAST(B.price)"})
LETTERS = {"A": "x = 'a'", "B": "x = 'b'", "C": "x = 'c'"}
TIMES = st.sampled_from(["", "", "", "?", "*", "+", "{2}", "{1,}", "{0,2}", "{2,3}"])
PATTERNS = st.recursive(
    st.builds(str.__add__, st.sampled_from("ABC"), TIMES),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(" ".join),
        st.builds("({}){}".format, st.lists(inner, min_size=1, max_size=2).map(" | ".join), TIMES),
    ),
    max_leaves=6,
)


def used(conditions, pattern):
    """Those of the symbols that a pattern has."""
    return {name: text for name, text in conditions.items() if name in pattern}


def spans(found):
    return list(zip(found["start"].to_pylist(), found["rows"].to_pylist(), strict=True))


def by_expression(pattern, text):
    """Of letters, one for each row: the same by Python's regular expressions."""
    expression, found, at = re.compile(pattern.replace(" ", "").lower()), [], 0
    while at < len(text):
        match = expression.match(text, at)
        size = 0 if match is None else match.end() - at
        found += [(at, size)] if size else []
        at += max(size, 1)
    return found


@given(pattern=PATTERNS, text=st.text("abc", max_size=12))
@example(pattern="A (B* | A)*", text="aba")  # a repetition that takes no row is preferred to one that takes an A
@settings(deadline=None)
def test_matches_of_letters_are_those_of_regular_expressions(pattern, text):
    events = {"ts": np.arange(len(text)), "x": pa.array(list(text), pa.string())}
    wanted = by_expression(pattern, text)
    define = used(LETTERS, pattern)
    assert spans(fr.detect(fr.Pattern(pattern, define), events)) == wanted
    last = max(define)
    again = fr.Pattern(pattern, define | {last: f"{define[last]} AND COUNT(*) >= 0"})  # which is found by going back
    assert spans(fr.detect(again, events)) == wanted


def table(rows):
    return pa.table({"ts": np.arange(len(rows)), "n": pa.array(rows, pa.int64())})


BITS = {"A": "n % 2 = 1", "B": "n % 4 > 1", "C": "n > 3"}  # a row may be of several symbols, or of none


@given(pattern=PATTERNS, rows=st.lists(st.integers(0, 7), max_size=8))
@settings(deadline=None)
def test_a_row_that_may_be_several_symbols_takes_the_preferred_one(pattern, rows):
    measures = {name: f"COUNT({name}.*)" for name in "ABC" if name in pattern}
    spec = fr.Pattern(pattern, {name: BITS[name] for name in measures}, measures)
    found = fr.detect(spec, table(rows))
    events = [{"ts": t, "n": n} for t, n in enumerate(rows)]
    wanted = matches(fr.Pattern(pattern, {name: NUMBERED[name] for name in measures}), with_bits(events))
    assert spans(found) == [(m.first, len(m.labels)) for m in wanted]
    for name in measures:
        assert found[name].to_pylist() == [m.labels.count(name) for m in wanted]


OF_NOW = ("AGE", "DECAYED_SUM", "DECAYED_MEAN", "DECAYED_COUNT")
OF_MATCHES = {
    name: function.example.split(", or ")[-1].replace("weight", "y")
    for name, function in AGGREGATES.items()
    if name not in (*OF_NOW, "FIRST", "LAST")  # of rows that are null FIRST says so, here
}
FLAGS = ("BOOL_AND", "BOOL_OR", "COUNT_IF", "COUNTIF")


@given(rows=st.lists(st.tuples(st.booleans(), st.none() | st.integers(-3, 3), st.integers(0, 2)), max_size=10))
@settings(max_examples=share(30), deadline=None)
def test_measures_are_aggregates_of_the_rows_of_their_symbol(rows):
    """Of every aggregate that statements know, and those of an expression."""
    calls = {name: call.replace("x", "x > 0") if name in FLAGS else call for name, call in OF_MATCHES.items()}
    calls |= {"of several": "SUM(x * y)", "of one row": "ARG_MAX(ts, x + y)",
              "between": "PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY x)"}  # fmt: skip
    asked = {f"{symbol} {name}": re.sub(r"\b(x|y|ts)\b", rf"{symbol}.\1", call) for symbol in "AB"
             for name, call in calls.items()}  # fmt: skip
    spec = fr.Pattern("(A | B)+ C", {"A": "a", "B": "NOT a", "C": "a"}, asked)
    a, x, y = zip(*rows, strict=True) if rows else ((), (), ())
    types = pa.schema([("ts", pa.int64()), ("a", pa.bool_()), ("x", pa.int64()), ("y", pa.int64())])
    columns = [np.arange(len(rows)), *map(list, (a, x, y))]
    events = pa.table([pa.array(each, field.type) for each, field in zip(columns, types, strict=True)], schema=types)
    found = fr.detect(spec, events).to_pylist()
    last = max((i for i, each in enumerate(a) if each), default=0)
    assert [(each["start"], each["rows"]) for each in found] == ([(0, last + 1)] if last else [])
    for symbol in "AB" if found else ():
        mine = events.slice(0, last).filter(pa.array([each == (symbol == "A") for each in a[:last]], pa.bool_()))
        for name, call in calls.items():
            some = sw.evaluate(f"SELECT {call} AS v FROM t [ROWS 99]", mine)["v"].to_pylist()
            none = 0 if "COUNT" in name or "DISTINCT" in name else None
            assert same(found[0][f"{symbol} {name}"], some[-1] if some else none), (symbol, call)


def same(one, other):
    return one == other or (one is not None and other is not None and one == pytest.approx(other, nan_ok=True))


NUMBERED = {"A": "a = 1", "B": "b = 1", "C": "c = 1"}


def with_bits(events):
    return [{**e, "a": e["n"] & 1, "b": e["n"] >> 1 & 1, "c": e["n"] >> 2} for e in events]


@given(pattern=PATTERNS)
def test_a_pattern_is_written_in_one_way_that_reads_back(pattern):
    tree = read(pattern)
    assert read(written(tree)) == tree
    spec = fr.Pattern(pattern, {name: BITS[name] for name in "ABC" if name in pattern})
    assert fr.Pattern.from_json(spec.to_json()) == spec
    assert eval(repr(spec), {"fr": fr}) == spec


@given(xs=st.lists(st.sampled_from([0.0, 0.2, 0.5, None, float("nan")]), max_size=12), keys=st.booleans())
@settings(max_examples=share(40), deadline=None)
def test_threshold_frames_with_a_duration_are_matches_of_a_pattern(xs, keys):
    ts = np.arange(len(xs)) // 2
    events = pa.table(
        {
            "ts": ts,
            "k": pa.array(["ab"[i % 3 == 0] for i in range(len(xs))], pa.string()),
            "x": pa.array(xs, pa.float64()),
        }
    )
    key = "k" if keys else None
    for least in ({}, {"min_rows": 2}, {"min_duration": 2}):
        wanted = fr.detect(fr.Threshold("x", ">", 0.3, **least), events, key=key).sort_by([("start", "ascending")])
        found = fr.detect(fr.Pattern("A+", {"A": "x > 0.3"}, **least), events, key=key)
        assert sorted(found.drop_columns("frame_id").to_pylist(), key=str) == sorted(
            wanted.drop_columns("frame_id").to_pylist(), key=str
        )
    rows = fr.detect(fr.Pattern("A{2,}", {"A": "x > 0.3"}), events, key=key)
    assert rows.num_rows == fr.detect(fr.Threshold("x", ">", 0.3, min_rows=2), events, key=key).num_rows


def test_a_dip():
    #  price 10 8 7 9 9 5 6
    #        A  B B C A B C
    ticks = {"ts": np.arange(7), "price": [10, 8, 7, 9, 9, 5, 6]}
    found = fr.detect(DIP, ticks)
    assert found.select(["start", "end", "rows", "low"]).to_pydict() == {
        "start": [0, 4], "end": [3, 6], "rows": [4, 3], "low": [7, 5],
    }  # fmt: skip


def test_a_match_comes_out_with_the_event_that_decides_it():
    detector = fr.Detector(fr.Pattern("A B C", LETTERS))
    detector.push({"ts": [1, 2, 3], "x": ["a", "b", "c"]})
    assert detector.punctuate(2).num_rows == 0
    assert detector.promised == 0
    assert spans(detector.punctuate(3)) == [(1, 3)]
    longer = fr.Detector(fr.Pattern("A B+", used(LETTERS, "A B+")))
    longer.push({"ts": [1, 2, 3, 4], "x": ["a", "b", "b", "c"]})
    assert longer.punctuate(3).num_rows == 0  # another b may come
    assert spans(longer.punctuate(4)) == [(1, 3)]
    assert longer.promised == 4


def test_what_a_match_waits_for_is_not_lost_if_it_does_not_come():
    #  a b b a        A (B* C)?: the c might still come; then each a is a match of its own
    detector = fr.Detector(fr.Pattern("A (B* C)?", used(LETTERS, "A (B* C)?")))
    detector.push({"ts": [1, 2, 3, 4], "x": ["a", "b", "b", "a"]})
    assert detector.punctuate(3).num_rows == 0
    assert spans(detector.punctuate(4)) == [(1, 1)]
    assert spans(detector.finish()) == [(4, 1)]


def test_an_empty_match_is_no_frame():
    events = {"ts": [1, 2, 3], "x": ["b", "a", "b"]}
    assert spans(fr.detect(fr.Pattern("A*", used(LETTERS, "A*")), events)) == [(2, 1)]
    assert spans(fr.detect(fr.Pattern("A? | B", used(LETTERS, "A? | B")), events)) == [
        (2, 1)
    ]  # an empty A? is preferred to B


def test_a_match_that_is_too_long_is_none_and_not_split():
    events = {"ts": np.arange(6), "x": list("aaabaa")}
    assert spans(fr.detect(fr.Pattern("A+", used(LETTERS, "A+"), max_rows=2), events)) == [(4, 2)]


def test_aggregates_of_the_match_so_far():
    #  price 10 12 11 20 1       B: above the mean of what was matched so far
    ticks = {"ts": np.arange(5), "price": [10.0, 12.0, 11.0, 20.0, 1.0]}
    spec = fr.Pattern(
        "A B+", {"B": "price > AVG(price) AND ts - FIRST(A.ts) <= 3"}, {"n": "COUNT(B.*)", "top": "B.price"}
    )
    assert fr.detect(spec, ticks).to_pylist() == [
        {"frame_id": 0, "start": 0, "end": 1, "rows": 2, "n": 1, "top": 12.0},
        {"frame_id": 1, "start": 2, "end": 3, "rows": 2, "n": 1, "top": 20.0},
    ]


def test_times_of_the_match_so_far_are_compared_with_intervals():
    ts = pa.array(np.array([0, 60, 200, 260, 700], "datetime64[s]")).cast(pa.timestamp("us", "UTC"))
    events = pa.table({"ts": ts, "x": ["a", "b", "b", "b", "b"]})
    spec = fr.Pattern("A B+", {"A": "x = 'a'", "B": "ts - FIRST(A.ts) < INTERVAL '5' MINUTES"}, {"t": "LAST(ts)"})
    found = fr.detect(spec, events)
    assert found["rows"].to_pylist() == [4]
    assert found["t"].to_pylist() == [ts[3].as_py()]


def test_many_symbols_and_repetitions_are_found_as_well():
    events = {"ts": np.arange(40), "x": list("ab" * 20)}
    assert spans(fr.detect(fr.Pattern("(A | B){30}", used(LETTERS, "(A | B){30}")), events)) == [(0, 30)]
    names = [f"S{i}" for i in range(12)]
    spec = fr.Pattern(" ".join(names), {name: f"x = '{'ab'[i % 2]}'" for i, name in enumerate(names)})
    assert spans(fr.detect(spec, events)) == [(0, 12), (12, 12), (24, 12)]


def test_a_state_taken_in_the_middle_of_a_match_goes_on():
    events = {"ts": np.arange(6), "k": list("aabaab"), "price": [9, 8, 3, 7, 8, 2]}
    for spec in (DIP, fr.Pattern("A B+", {"B": "price < MIN(A.price)"}, {"low": "LAST(B.price)"})):
        one, other = fr.Detector(spec, key="k"), fr.Detector(spec, key="k")
        one.push({name: values[:4] for name, values in events.items()})
        found = [one.punctuate(2)]
        other.restore(one.state())
        other.push({name: values[4:] for name, values in events.items()})
        found.append(other.finish())
        wanted = fr.detect(spec, events, key="k")
        assert pa.concat_tables(found).to_pylist() == wanted.to_pylist()


MISTAKES = {
    "A B+ C)": r"found \"\)\" at character 7",
    "(A B": r"expected \), found the end",
    "A | ": "expected a symbol, found the end",
    "A+?": "reluctant quantifier is not supported",
    "A{3,2}": "n <= m",
    "A{0}": "1 <= m",
    "^A": "anchor",
    "PERMUTE(A, B)": "PERMUTE is not supported",
    "{- A -} B": "exclusion",
    "": "expected a symbol, found the end",
    "A{2000}": "at most 1000",
}


@pytest.mark.parametrize("pattern", MISTAKES)
def test_a_mistake_in_a_pattern_is_named(pattern):
    with pytest.raises(sw.BadQuery, match=MISTAKES[pattern]):
        fr.Pattern(pattern)


CONDITIONS = {
    "no symbol": ({"D": "x > 1"}, {}, "no symbol of the pattern, which has: A, B"),
    "no SQL": ({"A": "x >"}, {}, "can not be read"),
    "other table": ({"A": "t.x > 1"}, {}, '"t" is no symbol'),
    "next": ({"A": "NEXT(x) > 1"}, {}, "NEXT is not supported"),
    "prev of another": ({"B": "PREV(A.x) > 1"}, {}, "is not supported: the row is B's"),
    "far back": ({"B": "PREV(x, 5000) > 1"}, {}, "number of rows up to 1000"),
    "two symbols": ({"B": "SUM(A.x * B.x) > 1"}, {}, "of several symbols"),
    "case": (
        {"B": "CASE WHEN AVG(A.x) > 1 THEN TRUE END"},
        {},
        r"AVG\(A.x\) > 1 THEN TRUE END: CASE with an aggregate",
    ),
    "classifier": ({}, {"c": "CLASSIFIER()"}, "CLASSIFIER is not supported"),
    "our name": ({}, {"start": "FIRST(A.x)"}, "as a column of every table of frames is"),
    "median": ({"B": "MEDIAN(A.x) > 1"}, {}, "does not grow with a match"),
    "distinct": ({"B": "COUNT(DISTINCT A.x) > 1"}, {}, "does not grow with a match"),
    "list": (
        {},
        {"all": "ARRAY_AGG(A.x)"},
        r"MEASURES ARRAY_AGG\(A.x\) AS all: .* ARRAY_AGG is not supported. Hint: LAST_N",
    ),
    "text": ({}, {"all": "STRING_AGG(A.x, ',')"}, "the function STRING_AGG is not supported. Hint: LAST_N"),
    "no function": ({}, {"all": "FOO(A.x)"}, r"MEASURES FOO\(A.x\) AS all: FOO\(.*A.x.*\) is not supported"),
    "filter": ({}, {"n": "SUM(A.x) FILTER (WHERE A.y > 1)"}, "FILTER is not supported. Hint: SUM.CASE WHEN"),
    "within": ({}, {"n": "PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY A.x)"}, "Hint: QUANTILE.A.x, 0.99, 'linear'"),
    "down": ({}, {"n": "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY A.x DESC)"}, "WITHIN GROUP is not supported so"),
    "now": ({}, {"n": "DECAYED_SUM(A.x, 5)"}, "depends on when it is asked for"),
    "arguments": ({}, {"n": "ARG_MAX(A.x)"}, "MEASURES ARG_MAX.* AS n: ARG_MAX takes 2 columns, found 1 argument"),
    "of two symbols": ({}, {"n": "CORR(A.x, B.x)"}, "of several symbols"),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_a_mistake_in_conditions_and_measures_is_named(name):
    define, measures, message = CONDITIONS[name]
    with pytest.raises(sw.BadQuery, match=message):
        fr.Pattern("A B", define, measures)


def test_a_measure_of_types_that_do_not_go_together_is_named():
    spec = fr.Pattern("A B", {}, {"n": "COUNT(*)", "m": "LAST(B.b) - FIRST(A.b)"})
    with pytest.raises(sw.BadType, match=r"LAST\(B.b\) is bool, FIRST\(A.b\) is bool"):
        fr.detect(spec, {"ts": [1, 2], "b": [True, False]})


def test_a_column_that_is_not_there_or_of_a_wrong_type_is_named():
    with pytest.raises(sw.UnknownColumn, match="price"):
        fr.detect(DIP, {"ts": [1], "prize": [1]})
    with pytest.raises(sw.BadType, match="DEFINE B AS"):
        fr.detect(fr.Pattern("A B", {"B": "x > 1"}), {"ts": [1], "x": ["a"]})
    with pytest.raises(sw.BadEvents, match="beyond 2"):
        fr.detect(fr.Pattern("A B", {"B": "x > FIRST(A.x)"}), {"ts": [1, 2], "x": [2**60, 2**60 + 1]})


OF_PATTERNS = [name for name, spec in SPECS.items() if isinstance(spec, fr.Pattern)]


@pytest.mark.parametrize("name", OF_PATTERNS)
@given(rows=streams(ordered=True), cuts=st.lists(st.integers(0, 9), max_size=3))
@settings(max_examples=share(30), deadline=None)
def test_a_match_owns_its_events_where_others_share_its_ts(name, rows, cuts):
    spec, events = SPECS[name], stream_table(rows)
    found = fr.detect(spec, events, key="k")
    assert fr.summarize(found, events, sw.count(), key="k", own=True)["count()"].equals(found["rows"])
    detector, skips = fr.Detector(spec, key="k").with_skips(), {}
    detector.push(events)
    for t in [*sorted(cuts), None]:
        out = detector.finish() if t is None else detector.punctuate(t)
        skips |= dict(zip(out["frame_id"].to_pylist(), detector.skips.tolist(), strict=True))
    assert [skips[i] for i in range(found.num_rows)] == search(spec, events, "ts", "k").skips().tolist()


def test_events_of_matches_are_summarised_by_a_frame_query():
    ticks = {"ts": np.arange(7), "price": [10, 8, 7, 9, 9, 5, 6]}
    query = fr.FrameQuery(DIP, {"mean": sw.mean("price")})
    assert sw.evaluate(query, ticks)["mean"].to_pylist() == [8.5, 20 / 3]
    with pytest.raises(sw.BadQuery, match="Pattern has no FRAME clause"):
        str(query)


def test_a_pattern_that_reads_no_column_counts_rows_in_any_order():
    pairs = fr.Pattern("A B", {}, {"n": "COUNT(*)"})
    for ts in ([1, 2, 3, 4, 5], [5, 3, 1, 4, 2]):
        found = fr.detect(pairs, {"ts": ts})
        assert found.select(["start", "end", "n"]).to_pylist() == [
            {"start": 1, "end": 2, "n": 2}, {"start": 3, "end": 4, "n": 2},
        ]  # fmt: skip
    always = fr.Pattern("A B", {"A": "TRUE", "B": "COUNT(*) > 1"}, {"n": "COUNT(*)"})  # nor does one of constants
    assert fr.detect(always, {"ts": [5, 3, 1, 4, 2]})["start"].to_pylist() == [1, 3]
    for never in ({"A": "TRUE", "B": "FALSE"}, {"A": "NULL"}, {"B": "1 = 2"}):
        assert fr.detect(fr.Pattern("A B", never), {"ts": [1, 2, 3]}).num_rows == 0
    detector = fr.Detector(pairs)
    for ts in (1, 2, 3):
        detector.push({"ts": [ts]})
        assert detector.punctuate(ts)["n"].to_pylist() == [2] * (ts == 2)


@pytest.mark.parametrize("condition", ["x < AVG(A.x)", "x <> SUM(A.x)", "x <= MAX(A.x)", "x >= MIN(A.x)"])
def test_a_nan_stays_in_what_the_match_has_so_far_and_a_null_is_left_out(condition):
    events = {"ts": [1, 2, 3], "x": pa.array([0.5, math.nan, 0.5 if ">" in condition else 0.0])}
    pattern = fr.Pattern("A A B", {"B": condition})
    assert fr.detect(pattern, events).num_rows == 0
    assert fr.detect(pattern, {**events, "x": pa.array([0.5, None, 0.0 if "<" in condition else 0.5])}).num_rows == 1
    assert fr.detect(fr.Pattern("A A B", {"B": "COUNT(A.x) = 2"}), events).num_rows == 1
