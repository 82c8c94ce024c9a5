"""Keys of several columns: frames are those of one column that has a value for every combination of theirs."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import frames as fr
import swag as sw
from tests.examples import share
from tests.frames.cases import SPECS, expected, same
from tests.frames.test_detector import assert_same_rows
from tests.frames.test_state import written

NAMES = ["threshold >", "partition, rows", "boundary, grid", "delta range <", "sum >=", "quantile"]
TYPES = {"ts": pa.int64(), "a": pa.string(), "b": pa.int64(), "c": pa.float64(), "x": pa.float64(), "i": pa.int64()}
BY = st.sampled_from([("a", "b"), ("b", "a"), ("c", "a"), ("a", "b", "c"), ("a",), ()])
ROWS = st.lists(
    st.fixed_dictionaries({
        "ts": st.integers(0, 9), "a": st.sampled_from(["", "q"]), "b": st.integers(0, 1),
        "c": st.sampled_from([0.0, -0.0, 1.5]), "x": st.none() | st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0]),
        "i": st.none() | st.integers(-1, 3),
    }),
    max_size=16,
)  # fmt: skip


def table(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=pa.schema(TYPES))


def with_one_key(rows: list[dict[str, Any]], by: tuple[str, ...]) -> pa.Table:
    """The events, with a column "k" that stands for all columns of the key."""
    return table(rows).append_column("k", pa.array([text(row, by) for row in rows], pa.string()))


def text(row: dict[str, Any], by: tuple[str, ...]) -> str:
    return repr([row[name] + 0 if name == "c" else row[name] for name in by])


def with_text(frames: pa.Table, by: tuple[str, ...]) -> pa.Table:
    """A table of frames with one key column "k" in the place of several."""
    at = frames.column_names.index("start") - len(by)
    keys = pa.array([text(row, by) for row in frames.select(list(by)).to_pylist()], pa.string())
    if not by:  # then there is nothing to count by
        keys = pa.array(["[]"] * frames.num_rows, pa.string())
    return frames.drop_columns(list(by)).add_column(at, "k", keys)


@pytest.mark.parametrize("name", NAMES)
@given(rows=ROWS, by=BY)
@settings(max_examples=share(40), deadline=None)
def test_frames_are_found_per_key(name, rows, by):
    found = fr.detect(SPECS[name], table(rows), key=by)
    assert found.column_names[: 1 + len(by)] == ["frame_id", *by]
    assert [found.schema.field(key).type for key in by] == [TYPES[key] for key in by]
    own = [{**row, "k": text(row, by)} for row in rows]
    frames = [tuple(row.values())[1:] for row in with_text(found, by).to_pylist()]
    frames = [frame for key in dict.fromkeys(frame[0] for frame in frames) for frame in frames if frame[0] == key]
    assert same(frames, expected(SPECS[name], own, "k"))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("fragments", [False, True])
@given(rows=ROWS, by=BY, cuts=st.lists(st.integers(0, 9), max_size=3).map(sorted), saved=st.booleans())
@settings(max_examples=share(20), deadline=None)
def test_detectors_find_them_however_the_stream_is_cut(name, fragments, rows, by, cuts, saved):
    def run(events: pa.Table, key: Any) -> pa.Table:
        detector, out = fr.Detector(SPECS[name], key=key, fragments=fragments), []
        when, before = np.asarray(events["ts"]), -1
        for t in [*cuts, 9]:
            detector.push(events.filter(pa.array((when > before) & (when <= t))))
            out.append(detector.punctuate(t))
            before = t
            if saved:
                again = fr.Detector(SPECS[name], key=key, fragments=fragments)
                again.restore(written(detector.state()))
                detector = again
        return pa.concat_tables([*out, detector.finish()])

    assert_same_rows(with_text(run(table(rows), by), by), run(with_one_key(rows, by), "k"))


@pytest.mark.parametrize("name", NAMES)
@given(rows=ROWS, others=ROWS, by=BY, margins=st.sampled_from([(0, 0), (2, 1)]))
@settings(max_examples=share(20), deadline=None)
def test_frames_are_filled_and_summarized_per_key(name, rows, others, by, margins):
    found, of_one = fr.detect(SPECS[name], table(rows), key=by), fr.detect(SPECS[name], with_one_key(rows, by), key="k")
    options = {"before": margins[0], "after": margins[1]}
    for events in (rows, others):
        filled = fr.fill(found, table(events), key=by, **options)
        assert filled.column_names == [*TYPES, "frame_id"]
        one_filled = fr.fill(of_one, with_one_key(events, by), key="k", **options)
        assert_same_rows(filled, one_filled.drop_columns(["k"]))
        summed = fr.summarize(found, table(events), [sw.count(), sw.sum("i")], key=by, **options)
        one_summed = fr.summarize(of_one, with_one_key(events, by), [sw.count(), sw.sum("i")], key="k", **options)
        assert_same_rows(with_text(summed, by), one_summed)


@given(rows=ROWS, others=ROWS, by=BY, first=st.booleans(), saved=st.booleans())
@settings(max_examples=share(40), deadline=None)
def test_fillers_fill_per_key(rows, others, by, first, saved):
    found = fr.detect(SPECS["threshold >"], table(rows), key=by)
    filler, out = fr.Filler(key=by, before=1), []
    steps = [lambda: filler.push_frames(found), lambda: filler.push_events(table(others))]
    for step in steps if first else steps[::-1]:
        out.append(step())
        if saved:
            state, filler = written(filler.state()), fr.Filler(key=by, before=1)
            filler.restore(state)
    filled = fr.fill(found, table(others), key=by, before=1)
    key = [("frame_id", "ascending"), ("ts", "ascending"), *((name, "ascending") for name in ("i", "x", *"abc"))]
    assert_same_rows(out[1].sort_by(key), filled.sort_by(key))


@given(rows=ROWS, by=BY)
@settings(max_examples=share(40), deadline=None)
def test_a_frame_of_several_keys_owns_its_events(rows, by):
    events = table(rows)
    for name in ("threshold >", "delta range <"):
        found = fr.detect(SPECS[name], events, key=list(by))
        owned = fr.fill(found, events, key=by, own=True)
        counted = owned.group_by("frame_id").aggregate([("ts", "count")])
        sizes = dict(zip(counted["frame_id"].to_pylist(), counted["ts_count"].to_pylist(), strict=True))
        assert sizes == dict(zip(found["frame_id"].to_pylist(), found["rows"].to_pylist(), strict=True))
        if len(by) == 2:
            with pytest.raises(sw.BadEvents, match="own=True, but these are not the"):
                fr.fill(found, events, key=by[::-1], own=True)


@given(rows=ROWS, by=BY)
@settings(max_examples=share(40), deadline=None)
def test_statements_over_frames_are_grouped_by_several_columns(rows, by):
    query = fr.FrameQuery(SPECS["threshold >"], {"n": sw.count(), "s": sw.sum("i")}, having=sw.count() > 1, by=by)
    said = sw.evaluate(str(query), table(rows))
    assert_same_rows(said, sw.evaluate(query, table(rows)))
    one = fr.FrameQuery(SPECS["threshold >"], {"n": sw.count(), "s": sw.sum("i")}, having=sw.count() > 1, by=("k",))
    assert_same_rows(with_text(said, by), sw.evaluate(one, with_one_key(rows, by)))
    assert said["n"].to_pylist() == said["rows"].to_pylist()


def test_many_events_of_several_keys():
    """Enough for threads, with keys that the first rows lack; in no order, and one key after the other."""
    rng, size = np.random.default_rng(7), 300_000
    a, b = rng.integers(0, 40, size), rng.integers(0, 40, size).astype(float)
    a[:70_000] %= 20
    for order in (np.arange(size), np.lexsort((b, a))):
        events = pa.table({"ts": np.arange(size), "a": a[order], "b": b[order], "x": rng.normal(size=size)})
        one = events.append_column("k", pa.array(events["a"].to_numpy() * 100 + events["b"].to_numpy().astype(int)))
        spec, by = fr.Threshold("x", ">", 0.1), ("a", "b")
        found, of_one = fr.detect(spec, events, key=by), fr.detect(spec, one, key="k")
        assert found.drop_columns(["a", "b"]).equals(of_one.drop_columns(["k"]))
        assert fr.fill(found, events, key=by).equals(fr.fill(of_one, one, key="k").drop_columns(["k"]))
        assert fr.fill(found, events, key=by, own=True).num_rows == sum(found["rows"].to_pylist())


@pytest.mark.parametrize("name", ["frame_id", "start", "rows", "value", "final"])
def test_a_key_column_named_as_ours_are_is_refused(name):
    spec, events = fr.Threshold("x", ">", 0), pa.table({"ts": [1], "x": [1.0], "a": [1], name: [1]})
    for call in (
        lambda: fr.detect(spec, events, key=("a", name)),
        lambda: fr.Detector(spec, key=("a", name)),
        lambda: fr.Filler(key=("a", name)),
        lambda: fr.fill({"frame_id": [0], "start": [1], "end": [1]}, {"ts": [1]}, key=("a", name)),
        lambda: sw.evaluate(fr.FrameQuery(spec, sw.count()), events, key=("a", name)),
    ):
        with pytest.raises(sw.BadQuery, match=f'the key column is named "{name}"'):
            call()


def test_a_plot_shows_one_substream_of_several_columns():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    events = pa.table({"ts": [1, 2, 3], "a": ["p", "p", "q"], "b": [1, 2, 1], "x": [1.0, 2.0, 3.0]})
    found = fr.detect(fr.Threshold("x", ">", 0), events, key=("a", "b"))
    axes = fr.plot(found, events, y="x", key=(("a", "b"), ("p", 2)))
    assert axes.get_title(loc="left") == "a p, b 2: 1 frame over 1 event"
    for key in [(("a", "b"), ("p",)), (("a", "b"), "p"), ("a",), (5, 5)]:
        with pytest.raises(sw.BadQuery, match="key="):
            fr.plot(found, events, y="x", key=key)
    assert [each.get_title(loc="left").split(":")[0] for each in fr.plot(found, events, y="x")] == [
        "a p, b 1", "a p, b 2", "a q, b 1",
    ]  # fmt: skip
