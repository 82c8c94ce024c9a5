"""What was worked out once is worked out anew when it has to be; what is refused, or waits, changes no answer."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import swag as sw
from swag.cli.ticking import Ticking


def nested(name: str, column: str, inner: str) -> sw.Query:
    source = sw.Query(
        sw.sum(column), sw.Rows(2), name=inner, every=sw.Every(1), source=sw.Events("y > 2")
    )  # fmt: skip
    return sw.Query(sw.sum(inner), sw.Rows(3), name=name, source=source)


def test_a_query_may_reach_a_stream_inside_that_others_read_already(tmp_path: Path) -> None:
    engine = sw.Engine()
    engine.register(nested("a", "x", "v"))
    engine.append({"ts": [1], "x": [2], "y": [3]})
    engine.register(nested("b", "z", "u"))
    engine.append({"ts": [2, 3], "x": [2, 3], "y": [3, 3], "z": [9, 10]})
    assert (engine.lookup("a"), engine.lookup("b")) == (2 + 4 + 5, 9 + 19)
    engine.unregister("a")
    engine.append({"ts": [4], "y": [3], "z": [1]})
    engine.save(tmp_path / "it")
    assert sw.Engine.load(tmp_path / "it").lookup("b") == engine.lookup("b") == 9 + 19 + 11


@pytest.mark.parametrize("late", [None, 10])
def test_ticks_are_not_lost_to_another_type(late: int | None) -> None:
    """A batch that can not be answered from is refused when it comes, whatever waits."""
    engine = sw.Engine(lateness=late)
    engine.register(sw.Query(sw.sum("x"), sw.Rows(1), name="l", every=sw.Every(1)))
    engine.append({"ts": np.array([1]), "x": np.array([1], np.int64)})
    for instant in (2, 60, 120):
        with pytest.raises(sw.BadType, match="int32"):
            engine.append({"ts": np.array([instant]), "x": np.array([2], np.int32)})
        engine.append({"ts": np.array([instant]), "x": np.array([2], np.int64)})
        engine.advance(instant + 30)
    assert engine.emitted("l")["value"].to_pylist() == [1, 2, 2, 2]


ENCODED = {
    "views": pa.array(["a", None, "b", "a"], pa.string_view()),
    "a null in a dictionary": pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, 1], pa.int8()), pa.array(["a", None])),
    "runs": pa.RunEndEncodedArray.from_arrays(pa.array([1, 2, 4], pa.int32()), pa.array(["a", None, "b"])),
}


@pytest.mark.parametrize("column", ENCODED.values(), ids=ENCODED)
def test_ticks_of_a_file_are_those_of_a_table_however_it_is_written(column: Any) -> None:
    table = pa.table({"ts": [1, 2, 3, 4], "c": column})
    for of in (sw.count("c"), sw.last("c")):
        query = sw.Query(of, sw.Rows(4), name="n", every=sw.Every(1))
        parts = [table.slice(0, 3), table.slice(3)]
        found = pa.concat_tables(Ticking([query], "ts", ()).ticks(iter(parts)), promote_options="permissive")
        assert found["n"].to_pylist() == sw.evaluate(query, table)["n"].to_pylist()


def test_a_refused_batch_of_words_does_not_make_words_of_numbers() -> None:
    engine = sw.Engine()
    engine.register(sw.Query(sw.last("x"), sw.Rows(3), name="l"))
    engine.append({"ts": [1], "x": [0]})
    with pytest.raises(sw.BadType, match="has been int64"):
        engine.append({"ts": [2], "x": ["no"]})
    assert engine.lookup("l") == 0
    engine.append({"ts": [3], "x": [7]})
    assert engine.lookup("l") == 7


@pytest.mark.parametrize("late", [None, 10])
def test_more_words_than_a_batch_has_places_for(late: int | None) -> None:
    """Pandas counts few categories in bytes; those of several batches are too many for that."""
    keyed, ticking = sw.Engine(key="k", lateness=late), sw.Engine(lateness=late)
    keyed.register(sw.Query(sw.count(), sw.Rows(9), name="n"))
    ticking.register(sw.Query(sw.count("k"), sw.Rows(500), name="n", every=sw.Every(250)))
    for i in range(4):
        words = pd.Categorical([f"{i}_{j}" for j in range(100)])
        for engine in (keyed, ticking):
            engine.append(pd.DataFrame({"ts": range(100 * i, 100 * i + 100), "k": words}))
    for engine in (keyed, ticking):
        engine.advance(1000)
    assert keyed.lookup("n").num_rows == 400
    assert ticking.emitted("n")["value"].to_pylist() == [250]


def test_events_that_wait_keep_their_types() -> None:
    engine = sw.Engine(lateness=10)
    engine.register(sw.Query(sw.count(), sw.Rows(9), name="n", where="x > 0"))
    engine.append({"ts": [1], "x": [1.5]})
    engine.register(sw.Query(sw.max("x"), sw.Rows(9), name="m"))
    with pytest.raises(sw.BadType, match='"x" is int64, but is double in events that wait'):
        engine.append({"ts": [2], "x": [1]})
    engine.append({"ts": [2], "x": [1.0]})
    engine.advance(50)
    assert (engine.lookup("n"), engine.lookup("m")) == (2, 1.5)


def test_who_comes_later_knows_what_waiting_events_lacked(tmp_path: Path) -> None:
    engine = sw.Engine(lateness=100)
    engine.register(sw.Query(sw.count(), sw.Range(1000), name="n"))
    engine.append({"ts": [1, 2, 3], "x": [1, 1, 1]})
    engine.register(sw.Query(sw.sum("x"), sw.Range(1000), name="a"))
    engine.append({"ts": [4], "x": [1]})
    engine.save(tmp_path / "it")
    for each in (engine, sw.Engine.load(tmp_path / "it")):
        each.register(sw.Query(sw.sum("x"), sw.Range(1000), name="b"))
        each.advance(200)
        each.register(sw.Query(sw.sum("x"), sw.Range(1000), name="c"))
        assert [each.lookup(name) for name in "nabc"] == [4, 1, 1, 1]
        assert [each.stats()["complete_since"][name] for name in "nabc"] == [None, 1003, 1003, 1003]
