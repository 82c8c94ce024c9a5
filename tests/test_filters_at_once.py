"""`engine.filters()` asks all rules of an aggregate in one lookup: it answers what each rule answers by itself."""

import math

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

import swag as sw

OPS = st.sampled_from([">", ">=", "<", "<="])
EVENTS = st.lists(
    st.tuples(
        st.sampled_from([0, 0, 1, 1, 5, 40]),
        st.integers(0, 6),
        st.sampled_from([None, 0, 1, 2, 5, 2**53 + 1]),
        st.sampled_from([None, 0.0, 0.5, 1.0, 7.25, 1e300, math.nan, math.inf]),
        st.sampled_from([-3, 0, 2, 9]),
    ),
    max_size=60,
)
THRESHOLDS = st.one_of(st.integers(-1, 8), st.sampled_from([0.5, 7.25, 2**53, math.inf, -math.inf, 2**63, 10**400]))
AGGREGATES = [sw.count(), sw.count("i"), sw.sum("i"), sw.sum("x"), sw.max("z"), sw.min("z"), sw.max("x"), sw.mean("z")]
WINDOWS = st.one_of(
    st.builds(sw.Range, st.sampled_from([1, 3, 10, 60]), closed=st.sampled_from(["right", "right", "left", "both"])),
    st.sampled_from([sw.Range(20, 5), sw.Rows(3)]),
)
SIMPLE = st.tuples(
    st.sampled_from(AGGREGATES), WINDOWS, st.sampled_from([None, None, "z > 0"]), OPS, THRESHOLDS, st.booleans()
)
INNER = sw.Query(sw.count(), sw.Range(10), name="m", by=("k", "z"), every=sw.Every(1))
COMPOSED = [
    sw.Query(sw.max("z") - sw.min("z"), sw.Range(30), name="spread", having=sw.count() > 1),
    sw.Query(sw.sum("z") / sw.count(), sw.Range(9), name="ratio", having=(">", 0)),
    sw.Query(sw.count(), sw.Range(30), name="both", having=(sw.max("z") > 0) & (sw.count() >= 2)),
    sw.Query(sw.count(), sw.Range(10), name="between", having=("between", 2, 3)),
    sw.Query(sw.count(), sw.Range(10), name="of events", having=(">", 1), source=sw.Events("z > 0")),
    sw.Query(sw.count(), sw.Range(10), name="per z", having=(">", 1), by="z"),
    sw.Query(sw.sum("z"), sw.Range(10), name="of all", having=(">", 3), by=()),
    sw.Query(sw.count(), sw.Range(9), name="per both", having=(">", 1), by=("z", "k")),
    sw.Query(sw.count(), sw.Range(10), name="of answers", having=(">", 2), by=(), source=INNER),
    sw.Query(sw.sum("m"), sw.Range(10), name="of answers, per k", having=(">", 5), by="k", source=INNER),
]
SCHEMA = pa.schema([(name, pa.int64()) for name in ("ts", "k", "i")] + [("x", pa.float64()), ("z", pa.int64())])


def rules(drawn):
    for number, (aggregate, window, where, op, v, index) in enumerate(drawn):
        yield sw.Query(aggregate, window, f"rule {number}", where, (op, v), index)


def one_by_one(engine, at=None):
    """Each rule by itself, through `lookup`, in the order of `filters`: grouping by grouping."""
    found = {}
    for query in engine.queries:
        answer = engine.lookup(query.label, at=at)
        by = ("k",) if query.by is None else query.by
        if not by:
            answer = pa.table({"value": [] if answer is None else [answer]})
        found.setdefault(by, [])
        for row in answer.to_pylist():
            found[by].append(
                {"query": query.label, **{name: row.get(name) for name in ("k", "z")}, "value": row["value"]}
            )
    return [row for rows in found.values() for row in rows]


@given(
    drawn=st.lists(SIMPLE, min_size=1, max_size=12),
    composed=st.lists(st.sampled_from(COMPOSED), max_size=4, unique_by=lambda query: query.name),
    events=EVENTS, cuts=st.lists(st.integers(0, 60), max_size=3), later=st.sampled_from([None, None, 0, 3, 50]),
)  # fmt: skip
def test_all_rules_at_once_answer_as_each_by_itself(drawn, composed, events, cuts, later):
    engine = sw.Engine(key="k")
    engine.register([*rules(drawn), *composed])
    ts, rows = 0, []
    for gap, k, i, x, z in events:
        ts += gap
        rows.append({"ts": ts, "k": k, "i": i, "x": x, "z": z})
    table = pa.Table.from_pylist(rows, SCHEMA)
    for begin, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(rows)], strict=True):
        engine.append(table.slice(begin, max(0, end - begin)))
        compare(engine, None)
    if rows and later is not None:
        compare(engine, ts + later)
        engine.advance(ts + later)
        compare(engine, None)


def compare(engine, at):
    try:
        expected = one_by_one(engine, at)
        found = engine.filters(at=at).to_pylist()
    except (sw.SumOverflow, sw.BadType):  # a whole number that floats can not hold, beside floats
        return
    columns = ("query", "k", "z", "value")
    assert [[repr(row.get(name)) for name in columns] for row in found] == [
        [repr(plain(row[name], row["value"], found, name)) for name in columns] for row in expected
    ]


def plain(value, _, found, name):
    """Integers beside floats are floats."""
    floats = any(isinstance(row["value"], float) for row in found)
    return float(value) if name == "value" and floats and isinstance(value, int) else value


@pytest.mark.parametrize("most", [1, 2, 99])
@pytest.mark.parametrize("by", [(), "z", "k", ("z", "k"), ("k", "z")])
def test_rules_over_answers_that_are_grouped_otherwise(by, most):
    rule = sw.Query(sw.count(), sw.Range(10), name="n", having=(">", most), by=by, source=INNER)
    engine = sw.Engine(key="k")
    engine.register(rule)
    assert engine.filters().num_rows == engine.changes().num_rows == 0
    engine.append({"ts": [1, 2, 3], "k": [1, 1, 2], "z": ["a", "a", "b"], "x": [3, 3, 4]})
    found, told, answer = engine.filters(), engine.changes(), engine.lookup("n")
    if not by:
        answer = pa.table({"value": [] if answer is None else [answer]})
    assert found.drop_columns("query").to_pylist() == answer.to_pylist()
    assert told.drop_columns(["query", "ts", "passing"]).to_pylist() == answer.to_pylist()
    assert found.schema.names == ["query", *answer.schema.names]
    engine.advance(20)
    assert engine.filters().num_rows == 0
    assert engine.changes()["passing"].to_pylist() == [False] * told.num_rows


def test_a_thousand_rules_are_a_few_calls(monkeypatch):
    """What is done in Python does not grow with the rules: an index is asked once, and so is a structure."""
    engine = sw.Engine(key="k")
    engine.register(
        [sw.Query(sw.count(), sw.Range(10 + i % 7), name=f"c{i}", having=(">", i % 5)) for i in range(500)]
        + [sw.Query(sw.sum("x"), sw.Range(10 + i % 9), name=f"s{i}", having=(">=", i)) for i in range(500)]
    )
    engine.append({"ts": list(range(100)), "k": [i % 8 for i in range(100)], "x": [i % 3 for i in range(100)]})
    expected = engine.filters()
    calls = []
    lookups = engine._stream.core.grouping.lookups
    asked = lookups.of_pairs
    monkeypatch.setattr(lookups, "of_pairs", lambda *given: calls.append(given) or asked(*given))
    assert engine.filters().equals(expected)
    assert len(calls) == 2
    assert expected.num_rows == sum(engine.lookup(query.label).num_rows for query in engine.queries)


@pytest.mark.parametrize("at", [3, 6])
def test_in_the_past_every_key_is_looked_at(at):
    engine = sw.Engine(key="k")
    engine.register([sw.Query(sw.count(), sw.Range(t), name=f"{t}", having=(">=", 2)) for t in (3, 5)])
    engine.register(sw.Query(sw.count(), sw.Range(99), name="long", having=(">=", 3)))
    engine.append({"ts": [1, 2, 3, 6, 7], "k": ["a", "a", "b", "b", "b"]})
    assert engine.filters(at=at).to_pylist() == [
        {"query": query.label, **row}
        for query in engine.queries
        for row in engine.lookup(query.label, at=at).to_pylist()
    ]
