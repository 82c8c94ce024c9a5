"""A frame owns its events: summaries of the stream it was found in are over these, also where others share a ts."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import frames as fr
import swag as sw
from frames import theory
from frames.tables import NOTE
from tests.examples import share
from tests.frames.cases import FLOATS, INTEGERS, LATEST, SPECS, equal, table
from tests.frames.test_detector import _cut

NAMES = [
    "threshold >", "threshold >=, rows", "threshold <, duration", "partition, rows", "partition, duration",
    "boundary, grid", "delta first <", "delta range >=", "sum >=", "whole sum <=", "median", "user-defined, ordered",
    "predicate, partition", "session", "state of text", "between", "partition, open", "delta >=, open", "state, open",
    "between, split", "sum >=, split",
]  # fmt: skip
LEAST, LARGEST = -(2**63), 2**63 - 1
TIED = {"ts": [1, 2, 2, 3], "v": [5, 5, 5, 5]}
BY_SUM = fr.Aggregate(sw.sum("v"), ">=", 10)


@st.composite
def tied_streams(draw, most=14):
    """Events of a few keys, in any order, most of which share their ts with others; anywhere in time."""
    size, span = draw(st.integers(0, most)), draw(st.sampled_from([0, 1, 2, 5]))
    first = draw(st.sampled_from([0, -3, LEAST, LARGEST - span]))
    times, keys = st.integers(0, span), st.sampled_from("abc")
    return [{"ts": first + draw(times), "k": draw(keys), "x": draw(FLOATS), "i": draw(INTEGERS)} for _ in range(size)]


def definition(spec, rows, key):
    """The rows of every frame, by their numbers."""
    numbered, found = [{**row, "at": at} for at, row in enumerate(rows)], []
    for value in dict.fromkeys(row[key] if key else None for row in rows):
        owned = theory.owned(spec, [row for row in numbered if key is None or row[key] == value])
        found += [sorted(row["at"] for row in events) for _, events in owned]
    return sorted(found)


def filled(frames, rows, key, **options):
    """The rows in every frame, by frame_id."""
    numbered = table(rows).append_column("row", pa.array(range(len(rows)), pa.int64()))
    inside = fr.fill(frames, numbered, key=key, **options)
    assert inside["row"].to_pylist() == sorted(inside["row"].to_pylist())
    found = {}
    for row, number in zip(inside["row"].to_pylist(), inside["frame_id"].to_pylist(), strict=True):
        found.setdefault(number, []).append(row)
    return found


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data(), rows=tied_streams())
@settings(max_examples=share(25), deadline=None)
def test_frames_are_filled_with_their_own_events(name, data, rows):
    spec, events = SPECS[name], table(rows)
    for key in (None, "k"):
        frames, wanted = fr.detect(spec, events, key=key), definition(spec, rows, key)
        inside = filled(frames, rows, key)
        assert sorted(inside.values()) == wanted
        assert inside == filled(frames, rows, key, own=True)
        if isinstance(spec, fr.Boundary) or (isinstance(spec, fr.Threshold) and spec.partition):
            assert sorted(row for each in inside.values() for row in each) == list(
                range(len(rows))
            )  # a partition: each event once
        some = data.draw(st.permutations(range(frames.num_rows)))[: data.draw(st.integers(0, frames.num_rows))]
        part = frames.take(pa.array(some, pa.int64()))
        assert filled(part, rows, key) == {number: inside[number] for number in some}
        assert filled(part.select(["frame_id", *([key] if key else []), "start", "end"]), rows, key) == filled(
            part, rows, key
        )


@pytest.mark.parametrize("name", NAMES)
@given(rows=tied_streams())
@settings(max_examples=share(20), deadline=None)
def test_summaries_are_of_these_events(name, rows):
    spec, events = SPECS[name], table(rows)
    asked = [sw.count(), sw.first("x"), sw.last("i"), sw.min("x"), sw.sum("i"), LATEST.alias("latest")]
    values = {str(aggregate): aggregate for aggregate in asked} | {"positive": sw.count().filter("i > 0")}
    query = fr.FrameQuery(spec, values, "i <> 2")
    for key in (None, "k"):
        frames = fr.detect(spec, events, key=key)
        inside = filled(frames, rows, key)
        summary, said = fr.summarize(frames, events, asked, key=key), query.evaluate(events, key=key)
        assert summary["count()"].to_pylist() == summary["rows"].to_pylist() == said["rows"].to_pylist()
        for frame, answer in zip(summary.to_pylist(), said.to_pylist(), strict=True):
            own = theory.in_order([rows[at] for at in inside[frame["frame_id"]]])
            chosen = [row for row in own if row["i"] is not None and row["i"] != 2]
            for aggregate in asked:
                assert equal(frame[str(aggregate)], theory.aggregate(aggregate, own))
                assert equal(answer[str(aggregate)], theory.aggregate(aggregate, chosen))
            assert answer["positive"] == sum(row["i"] > 0 for row in chosen)
            if isinstance(spec, fr.Threshold) and spec.op and frame.get("kind", "frame") == "frame":
                assert all(theory.satisfies(row[spec.column], spec.op, spec.c) for row in own)


@pytest.mark.parametrize("fragments", [False, True])
@pytest.mark.parametrize("name", NAMES)
@given(data=st.data(), rows=tied_streams(most=16))
@settings(max_examples=share(12), deadline=None)
def test_frames_that_came_out_bit_by_bit_own_their_events(name, fragments, data, rows):
    spec = SPECS[name]
    at = [max(row["ts"] - early, LEAST) for row in rows for early in (0, 1)]  # at events, and before the first
    times = st.lists(st.sampled_from(at), max_size=3).map(sorted) if rows else st.none()
    for key in (None, "k"):
        detector = fr.Detector(spec, key=key, fragments=fragments)
        waiting, came, tables = list(rows), [], []
        for t in data.draw(times) if rows else []:
            early = [at for at, row in enumerate(waiting) if row["ts"] <= t or data.draw(st.booleans())]
            for part in _cut(data.draw, [waiting[at] for at in early]):
                detector.push(table(part))
                came += part
            waiting = [row for at, row in enumerate(waiting) if at not in early]
            if key and came and data.draw(st.booleans()):
                tables.append(detector.punctuate(t, key=data.draw(st.sampled_from("abc"))))
            tables.append(detector.punctuate(t))
        detector.push(table(waiting))
        frames = pa.concat_tables([*tables, detector.finish()], promote_options="default")
        came += waiting
        assert sorted(filled(frames, came, key).values()) == definition(spec, came, key)
        whole = fr.summarize(fr.united(frames), table(came), sw.count(), key=key, own=True)
        assert whole["count()"].to_pylist() == whole["rows"].to_pylist()


def test_a_statement_counts_each_event_once():
    rows = sw.evaluate("SELECT COUNT(*) AS n, SUM(v) AS v FROM t [FRAME UNTIL SUM(v) >= 10]", TIED).to_pylist()
    assert [(row["rows"], row["n"], row["v"]) for row in rows] == [(2, 2, 10), (2, 2, 10)]


def test_own_says_whether_events_that_share_a_ts_are_told_apart():
    frames = fr.detect(BY_SUM, TIED)
    for own, counts in ((None, [2, 2]), (True, [2, 2]), (False, [3, 3])):
        assert fr.summarize(frames, TIED, sw.count(), own=own)["count()"].to_pylist() == counts
        assert fr.fill(frames, TIED, own=own).num_rows == sum(counts)
    answered = fr.summarize(frames, TIED, sw.mean("v"))
    assert fr.fill(answered, TIED, own=True).num_rows == 4  # a table with more columns owns as well
    assert fr.fill(sw.evaluate("SELECT COUNT(*) FROM t [FRAME UNTIL SUM(v) >= 10]", TIED), TIED, own=True).num_rows == 4


@pytest.mark.parametrize(
    "other",
    [
        {"ts": [1, 2, 2, 3, 3], "v": [5, 5, 5, 5, 5]},
        {"ts": [1, 2, 2], "v": [5, 5, 5]},
        {"ts": [2, 1, 2, 3], "v": [5, 5, 5, 5]},
        {"ts": [1, 2, 2, 3], "v": [5, 5, 6, 5]},
        {"ts": [1, 2, 2, 3], "v": [5, 5, None, 5]},
        {"ts": [1, 2, 2, 3]},
        {"ts": [1, 2, 2, 3], "v": ["5", "5", "5", "5"]},
    ],
)
def test_another_stream_is_filled_by_time_and_refused_with_own(other):
    frames = fr.detect(BY_SUM, TIED)
    by_time = fr.summarize(frames, other, sw.count(), own=False)
    assert fr.summarize(frames, other, sw.count()).equals(by_time)
    for refused in (fr.fill, lambda *given, **options: fr.summarize(*given, sw.count(), **options)):
        with pytest.raises(sw.BadEvents, match="not the 4 events"):
            refused(frames, other, own=True)


def test_equal_events_are_the_same_stream_however_they_are_kept():
    keyed = {**TIED, "k": ["a", "a", "b", "a"]}
    frames = fr.detect(BY_SUM, keyed, key="k")
    text = pa.array(keyed["k"])
    for keys in (text.cast(pa.large_string()), text.dictionary_encode(), pa.chunked_array([text[:1], text[1:]])):
        events = pa.table({"more": [0, 0, 0, 0], "k": keys, "v": pa.array([5] * 4, pa.int32()), "ts": keyed["ts"]})
        assert fr.fill(frames, events, key="k", own=True)["ts"].to_pylist() == [1, 2]
    with pytest.raises(sw.BadEvents, match="not the 4 events"):
        fr.fill(frames, {**TIED, "k": ["a", "a", "c", "a"]}, key="k", own=True)
    with pytest.raises(sw.BadEvents, match="key='k'"):
        fr.fill(frames, keyed, key=(), own=True)
    assert fr.fill(frames, keyed, key=()).num_rows == 3


def test_where_no_key_is_said_frames_are_filled_by_what_they_were_found_per():
    events = {"ts": [1, 2, 3, 4, 5], "k": ["a", "b", "a", "b", "a"], "x": [9, 0, 9, 0, 1]}
    frames = fr.detect(fr.Threshold("x", ">", 5), events, key="k")
    assert fr.summarize(frames, events, sw.count())["count()"].to_pylist() == frames["rows"].to_pylist() == [2]
    assert fr.fill(frames, events)["ts"].to_pylist() == [1, 3]
    assert fr.fill(frames, events, after=1)["ts"].to_pylist() == [1, 3]  # the event at 4 is another key's
    assert fr.summarize(frames, events, sw.count(), key=())["count()"].to_pylist() == [3]
    others = {"ts": [2, 3], "text": ["hot", "hot"]}  # they have no key
    assert fr.fill(frames, others).num_rows == 2


def test_what_a_schema_says_survives_a_file_and_what_is_lost_is_missed(tmp_path):
    frames = fr.detect(BY_SUM, TIED)
    pq.write_table(frames.filter(pa.array([False, True])), tmp_path / "frames.parquet")
    kept = pq.read_table(tmp_path / "frames.parquet")
    assert fr.fill(kept, TIED)["ts"].to_pylist() == [2, 3]
    spoilt = frames.replace_schema_metadata({NOTE: b"[]"})
    for lost in (frames.replace_schema_metadata(None), frames.to_pydict(), spoilt):
        with pytest.raises(sw.BadEvents, match="do not say in which events"):
            fr.summarize(lost, TIED, sw.count(), own=True)
        assert fr.fill(lost, TIED).num_rows == 6


def test_frames_that_were_changed_are_not_guessed_at():
    frames = fr.detect(BY_SUM, TIED)
    changed = {
        "frame 1 is not": frames.set_column(1, "start", pa.array([1, 1])),
        "frame 7 is not": frames.set_column(0, "frame_id", pa.array([0, 7])),
        "frame 0 is not": frames.set_column(3, "rows", pa.array([1, 2])),
        "twice": pa.concat_tables([frames, frames]),
    }
    for says, table_ in changed.items():
        with pytest.raises(sw.BadEvents, match=says):
            fr.summarize(table_, TIED, sw.count())
        assert fr.summarize(table_, TIED, sw.count(), own=False).num_rows == table_.num_rows


def test_functions_of_another_process_are_missed_only_where_they_are_needed():
    squares = sw.aggregate("v", lift=lambda x: x * x, combine=lambda a, b: a + b, lower=lambda a: a, identity=0.0)
    spec = fr.Aggregate(squares, ">=", 50)
    frames = fr.detect(spec, TIED)
    assert fr.summarize(frames, TIED, sw.count(), own=True)["count()"].to_pylist() == [2, 2]
    note = json.loads(frames.schema.metadata[NOTE])
    note["spec"]["aggregate"]["known_as"][0] = "another process"
    elsewhere = frames.replace_schema_metadata({NOTE: json.dumps(note)})
    with pytest.raises(sw.BadEvents, match="where the functions are"):
        fr.summarize(elsewhere, TIED, sw.count())
    apart = {"ts": [1, 2, 3, 4], "v": [5, 5, 5, 5]}
    assert fr.summarize(elsewhere, apart, sw.count())["count()"].to_pylist() == [2, 2]


def test_margins_move_edges_and_leave_nothing_to_own():
    frames = fr.detect(BY_SUM, TIED)
    assert fr.summarize(frames, TIED, sw.count(), after=1)["count()"].to_pylist() == [4, 3]
    with pytest.raises(sw.BadQuery, match="move their edges"):
        fr.summarize(frames, TIED, sw.count(), before=1, own=True)
    with pytest.raises(sw.BadQuery, match="none of None, True, False"):
        fr.fill(frames, TIED, own="yes")


def test_pieces_of_a_frame_that_is_still_open_hold_what_has_come():
    events = {"ts": np.array([1, 1, 2, 2, 3]), "x": np.array([0, 9, 9, 9, 9])}
    detector = fr.Detector(fr.Threshold("x", ">", 5), fragments=True)
    detector.push(events)
    pieces = detector.punctuate(2)
    assert pieces["rows"].to_pylist() == [3]
    assert fr.fill(pieces, events)["x"].to_pylist() == [9, 9, 9]
    assert fr.summarize(pieces, events, sw.count())["count()"].to_pylist() == [3]


def test_frames_of_a_detector_that_was_punctuated_before_its_first_event_own_theirs():
    events = {"ts": [1, 1, 1], "k": ["a", "a", "b"], "x": [9, 0, 9]}
    detector = fr.Detector(fr.Threshold("x", ">", 5), key="k")
    tables = [detector.punctuate(0)]
    detector.push(events)
    frames = pa.concat_tables([*tables, detector.finish()], promote_options="default")
    assert fr.summarize(frames, events, sw.count(), key="k")["count()"].to_pylist() == [1, 1]
    messages = {"ts": [1, 1, 1], "k": ["a", "a", "a"]}  # another stream, by time: the note is from before any event
    assert fr.summarize(frames, messages, sw.count(), key="k")["count()"].to_pylist() == [3, 0]
    with pytest.raises(sw.SwagError):
        fr.summarize(frames, messages, sw.count(), key="k", own=True)


def test_punctuations_of_single_keys_number_frames_otherwise_and_they_own_their_events():
    events = pa.table({"ts": [1, 1, 1, 1, 2], "k": ["a", "a", "b", "a", "b"], "x": [9, 0, 9, 9, 0]})
    detector = fr.Detector(fr.Threshold("x", ">", 5), key="k")
    detector.push(events)
    frames = pa.concat_tables([detector.punctuate(2, key="b"), detector.finish()])
    assert frames["k"].to_pylist() == ["b", "a", "a"] != fr.detect(detector.spec, events, key="k")["k"].to_pylist()
    inside = fr.fill(frames, events.append_column("row", pa.array(range(5))), key="k", own=True)
    assert list(zip(inside["row"].to_pylist(), inside["frame_id"].to_pylist(), strict=True)) == [(0, 1), (2, 0), (3, 2)]
    with pytest.raises(sw.BadEvents, match="not as it was found"):  # which of the two at that instant?
        fr.fill(frames.filter(pa.array([True, False, True])), events, key="k", own=True)


def test_many_events_of_many_keys_own_theirs():
    rng = np.random.default_rng(8)
    size = 300_000
    events = pa.table(
        {"ts": np.sort(rng.integers(0, 3_000, size)), "k": rng.integers(0, 40, size), "x": rng.normal(size=size)}
    )
    frames = fr.detect(fr.Boundary("x", 0.5), events, key="k")
    inside = fr.fill(frames, events, key="k", own=True)
    assert inside.num_rows == size
    assert bool(
        (np.ceil(np.asarray(inside["x"]) / 0.5) == np.asarray(frames["cell_x"])[np.asarray(inside["frame_id"])]).all()
    )
    changed = np.asarray(events["x"]).copy()
    changed[1000] = 9.0
    with pytest.raises(sw.BadEvents):
        fr.fill(frames, events.set_column(2, "x", pa.array(changed)), key="k", own=True)


def test_distances_of_windows_count_a_frames_own_events():
    windows = {"frame_id": [0], "start": [9], "end": [9]}
    frames = fr.detect(fr.Threshold("v", ">", 5), {"ts": [1, 1, 2], "v": [9, 1, 1]})
    assert fr.metrics.duration_error(frames, windows, {"ts": [1, 1, 2], "v": [9, 1, 1]}) == 1
