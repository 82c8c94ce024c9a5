"""Every type of column, key and ts goes through every way to ask: the answer is Python's, or it is refused."""

import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import frames as fr
import swag as sw
from tests.every_type import ALL, FLOATS, HANDED_BACK, NESTED, NOTHING, TIMES, WHOLE, column

REFUSED = "refused on purpose"
AGGREGATES = {
    "count": sw.count("c"), "first": sw.first("c"), "last": sw.last("c"), "min": sw.min("c"), "max": sw.max("c"),
    "floor": sw.quantile("c", 0.5), "sum": sw.sum("c"), "mean": sw.mean("c"), "median": sw.median("c"),
    "var": sw.var("c"), "corr": sw.corr("c", "c"),
}  # fmt: skip
SPELLED = [kind for kind, values in HANDED_BACK.items() if isinstance(values[0], str | bytes)]
DECIMALS = [kind for kind, values in HANDED_BACK.items() if isinstance(values[0], Decimal)]
ids = {"ids": str}


def expected(kind: pa.DataType, name: str) -> Any:
    """What Python says of the four values and a null."""
    values = ALL[kind]
    if kind in NOTHING:
        return 0 if name == "count" else None
    if name in ("count", "first", "last"):
        return {"count": 4, "first": values[0], "last": values[3]}[name]
    if kind in SPELLED and name in ("min", "max"):
        return {"min": min, "max": max}[name](values)
    if kind in DECIMALS and name in ("min", "max", "sum", "floor"):
        return {"min": min, "max": max, "sum": sum, "floor": lambda each: sorted(each)[1]}[name](values)
    if kind in TIMES and name == "median":
        return between(kind, *sorted(values)[1:3])
    if kind in SPELLED or kind in NESTED or (kind in TIMES and name not in ("min", "max", "floor")):
        return REFUSED
    numbers = [x + 0 for x in values] if kind in WHOLE or kind in FLOATS else []
    numbers = [float(x) for x in values] if kind in DECIMALS else numbers
    mean = sum(numbers) / 4 if numbers else 0
    return {
        "min": min, "max": max, "floor": lambda each: sorted(each)[1], "sum": lambda _: sum(numbers),
        "mean": lambda _: mean, "median": lambda _: sum(sorted(numbers)[1:3]) / 2,
        "var": lambda _: sum((x - mean) ** 2 for x in numbers) / 3, "corr": lambda _: 1.0,
    }[name](values)  # fmt: skip


def between(kind: pa.DataType, one: Any, other: Any) -> Any:
    """The time in the middle of two, in the unit of the column: the earlier one of two in the middle."""
    kind = getattr(kind, "value_type", kind)
    whole = pa.int32() if kind.bit_width == 32 else pa.int64()
    both = pa.array([one, other], kind).cast(whole).to_pylist()
    return pa.scalar(sum(both) // 2, whole).cast(kind).as_py()


def evaluated(what: Any, table: pa.Table, folder: Path) -> Any:
    return sw.evaluate([sw.Query(what, sw.Rows(9), name="q")], table)["q"].to_pylist()[-1]


def asked_later(what: Any, table: pa.Table, folder: Path) -> Any:
    return sw.evaluate([sw.Query(what, sw.Range(9), name="q")], table, at={"ts": [5]})["q"].to_pylist()[0]


def ticked(what: Any, table: pa.Table, folder: Path) -> Any:
    return sw.evaluate([sw.Query(what, sw.Rows(9), name="q", every=sw.Every(5))], table)["q"].to_pylist()[0]


def in_two_batches(engine: sw.Engine, query: sw.Query, table: pa.Table, folder: Path) -> sw.Engine:
    engine.register(query)
    engine.append(table.slice(0, 2))
    engine.save(folder / "snapshot")
    again = sw.Engine.load(folder / "snapshot")
    again.append(table.slice(2))
    again.advance(20)
    return again


def looked_up(what: Any, table: pa.Table, folder: Path) -> Any:
    return in_two_batches(sw.Engine(), sw.Query(what, sw.Rows(9), name="q"), table, folder).lookup("q")


def held(what: Any, table: pa.Table, folder: Path) -> Any:
    engine = in_two_batches(sw.Engine(lateness=3), sw.Query(what, sw.Rows(9), name="q"), table, folder)
    return engine.lookup_all()["q"].to_pylist()[0]


def emitted(what: Any, table: pa.Table, folder: Path) -> Any:
    query = sw.Query(what, sw.Rows(9), name="q", every=sw.Every(5))
    return in_two_batches(sw.Engine(), query, table, folder).emitted("q")["value"].to_pylist()[0]


def summarized(what: Any, table: pa.Table, folder: Path) -> Any:
    table = table.append_column("x", pa.array([1] * 5))
    frames = fr.detect(fr.Threshold("x", ">", 0), table)
    return fr.summarize(frames, table, what.alias("q"))["q"].to_pylist()[0]


WAYS: list[Callable[[Any, pa.Table, Path], Any]] = [
    evaluated, asked_later, ticked, looked_up, held, emitted, summarized
]  # fmt: skip


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except sw.SwagError:
        return REFUSED


def alike(one: Any, other: Any) -> bool:
    close = isinstance(one, float) and isinstance(other, float | int) and math.isclose(one, other, rel_tol=1e-9)
    return close or (one == other and isinstance(one, bool) == isinstance(other, bool))


@pytest.mark.parametrize("kind", ALL, **ids)
def test_answers_from_columns_of_every_type(kind: pa.DataType, tmp_path: Path) -> None:
    table = pa.table({"ts": range(5), "c": column(kind, [*ALL[kind], None])})
    for name, aggregate in AGGREGATES.items():
        wanted = expected(kind, name)
        for way in WAYS:
            found = outcome(lambda way=way, aggregate=aggregate: way(aggregate, table, tmp_path))
            if kind in NESTED and way in (looked_up, held, emitted) and name in ("first", "last"):
                assert found == REFUSED  # an engine keeps no lists
            else:
                assert alike(found, wanted), (name, way.__name__, found, wanted)


@pytest.mark.parametrize("name", ["min", "max", "first", "last", "floor"])
@pytest.mark.parametrize("kind", (WHOLE | FLOATS | TIMES).keys(), **ids)
def test_answers_keep_the_type_of_their_column(kind: pa.DataType, name: str) -> None:
    table = pa.table({"ts": range(5), "c": column(kind, [*ALL[kind], None])})
    engine, query = sw.Engine(), sw.Query(AGGREGATES[name], sw.Rows(9), name="q")
    engine.register([query, sw.Query(AGGREGATES[name], sw.Rows(9), name="e", every=sw.Every(5))])
    engine.append(table)
    plain = kind if not hasattr(kind, "value_type") else kind.value_type
    assert engine.lookup_all().schema.field("q").type == plain
    assert engine.emitted("e").schema.field("value").type == plain
    stored = sw.evaluate([query], table).schema.field("q").type
    assert stored in (plain, kind)  # rows are taken as they are: of a dictionary, with it


# -- ts ---------------------------------------------------------------------------------------------------------------


def is_time(kind: pa.DataType) -> bool:
    encoded = pa.types.is_run_end_encoded(kind) or pa.types.is_dictionary(kind)
    kind = kind.value_type if encoded else kind
    return pa.types.is_integer(kind) or pa.types.is_date(kind) or pa.types.is_timestamp(kind)


@pytest.mark.parametrize("kind", [kind for kind in ALL if is_time(kind)], **ids)
def test_ts_of_every_type(kind: pa.DataType, tmp_path: Path) -> None:
    times = column(kind, sorted(ALL[kind]))
    table = pa.table({"ts": times, "x": [1, 2, 4, 8]})
    last = times[3].as_py()
    query, ticks = (
        sw.Query(sw.sum("x"), sw.Rows(2), name="q"),
        sw.Query(sw.sum("x"), sw.Rows(9), name="e", every=sw.Every(4)),
    )
    assert sw.evaluate([query], table)["q"].to_pylist() == [1, 3, 6, 12]
    assert sw.evaluate([query], table, at=table.slice(3))["q"].to_pylist() == [12]
    assert sw.evaluate([ticks], table).drop_columns(["tick"]).to_pylist() == [{"ts": last, "e": 15}]
    engine = sw.Engine()
    engine.register([query, ticks])
    engine.append(table.slice(0, 2))
    engine.save(tmp_path / "snapshot")
    engine = sw.Engine.load(tmp_path / "snapshot")
    engine.append(table.slice(2))
    assert engine.lookup("q", at=last) == engine.lookup("q") == 12
    assert engine.emitted().drop_columns(["query", "tick"]).to_pylist() == [{"ts": last, "value": 15}]
    engine.register(sw.Query(sw.max("x"), sw.Range(1), name="late"))
    assert "late" in engine.stats()["complete_since"]
    with pytest.raises(sw.OutOfOrder, match="event 0 has ts"):
        engine.append(table.slice(0, 1))
    engine.advance(last)
    frames = fr.detect(fr.Threshold("x", ">", 1), table)
    assert [frames[name].to_pylist() for name in ("start", "end")] == [[times[1].as_py()], [last]]
    assert fr.summarize(frames, table, sw.sum("x"))["sum(x)"].to_pylist() == [14]


@pytest.mark.parametrize("kind", [kind for kind in ALL if not is_time(kind)], **ids)
def test_ts_of_other_types_is_refused(kind: pa.DataType) -> None:
    table, query, engine = pa.table({"ts": column(kind, ALL[kind])}), sw.Query(sw.count(), sw.Rows(2)), sw.Engine()
    engine.register(query)
    for call in (lambda: sw.evaluate([query], table), lambda: engine.append(table)):
        with pytest.raises(sw.BadType, match="ts is an integer or a timestamp"):
            call()


# -- nulls, and no rows -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [kind for kind in ALL if kind not in NESTED], **ids)
def test_what_has_no_answer_is_a_null_or_no_row_of_its_type(kind: pa.DataType) -> None:
    """Of whatever type answers would be: ticks that have not come, lists of nothing, values that do not pass."""
    values = ALL[kind]
    table = pa.table({"ts": [1, 2, 3, 4], "k": ["a", "b", "a", "b"], "c": column(kind, values)})
    ends = [sw.last_n("c", 2), sw.last("c"), sw.mode("c")]
    engine = sw.Engine(key="k")
    engine.register([sw.Query(each, sw.Rows(2), f"e{i}", every=sw.Every(9)) for i, each in enumerate(ends)])
    engine.register([sw.Query(each, sw.Range(2), f"q{i}", where="ts < 0") for i, each in enumerate(ends)])
    engine.append(table)
    assert [engine.emitted(f"e{i}").num_rows for i in range(3)] == [0, 0, 0]
    assert [engine.lookup(f"q{i}", key="a") for i in range(3)] == [None, None, None]
    assert engine.features({"k": ["a", "z"]})["q0"].to_pylist() == [None, None]
    if kind not in NOTHING and not isinstance(values[0], bytes | bool):
        passing = sw.Query(sw.last("c"), sw.Range(2), "h", having=(">=", values[0]))
        found = sw.evaluate([passing], table)["h"].to_pylist()
        assert found == [value if value >= values[0] else None for value in values]


# -- layouts ----------------------------------------------------------------------------------------------------------


def with_null_inside(values: list[str | None]) -> pa.Array:
    """A dictionary that holds a null itself; half of the null rows point at it."""
    places = [None if v is None and i % 2 else ["a", None, "b"].index(v) for i, v in enumerate(values)]
    return pa.DictionaryArray.from_arrays(pa.array(places, pa.int8()), pa.array(["a", None, "b"]))


LAYOUTS: dict[str, Callable[[list[Any]], Any]] = {
    "dictionary": lambda values: column(pa.dictionary(pa.int16(), pa.string()), values),
    "null inside": with_null_inside,
    "runs": lambda values: column(pa.run_end_encoded(pa.int32(), pa.string()), values),
    "views": lambda values: column(pa.string_view(), values),
    "sliced runs": lambda values: column(pa.run_end_encoded(pa.int32(), pa.string()), ["b", *values, "a"])[1:-1],
    "chunks": lambda values: pa.chunked_array([with_null_inside(values[:3]), with_null_inside(values[3:])]),
}


@given(values=st.lists(st.sampled_from(["a", "b", None]), min_size=1, max_size=12), layout=st.sampled_from([*LAYOUTS]))
def test_how_a_column_is_laid_out_changes_no_answer(values: list[str | None], layout: str) -> None:
    queries = [
        sw.Query(what, sw.Rows(3), name=f"q{i}") for i, what in enumerate([sw.count("c"), sw.first("c"), sw.last("c")])
    ]
    predicates = ["c = 'a'", "c IS NULL", "c LIKE 'b%'", "NOT c = 'a'", "c IN ('a')"]
    queries += [sw.Query(sw.count(), sw.Rows(4), name=f"w{i}", where=where) for i, where in enumerate(predicates)]
    answers = []
    for c in (pa.array(values, pa.string()), LAYOUTS[layout](values)):
        table, engine = pa.table({"ts": np.arange(len(values)), "c": c}), sw.Engine()
        engine.register(queries)
        live = []
        for i in range(len(values)):
            engine.append(table.slice(i, 1))
            live.append(tuple(engine.lookup_all().to_pylist()[0].values()))
        stored = [tuple(row.values())[1:] for row in sw.evaluate(queries, table).to_pylist()]
        assert live == stored
        answers.append(stored)
        keyed = outcome(lambda table=table: sw.evaluate(queries[:1], table, key="c")["q0"].to_pylist())
        assert (keyed == REFUSED) == (None in values)
        answers.append(keyed)
    assert answers[:2] == answers[2:]
