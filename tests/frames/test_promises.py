"""Punctuations of one key, and those that a detector and a filler pass on: what was promised holds."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import frames as fr
import swag as sw
from tests.frames.cases import SPECS, actual, expected, same, streams, table

NAMES = ["threshold >", "threshold <, duration", "partition, rows", "boundary, grid", "delta range >=", "median",
         "session", "session, split, short", "threshold, split", "between, split"]  # fmt: skip


@pytest.mark.parametrize("fragments", [False, True])
@pytest.mark.parametrize("name", NAMES)
@given(data=st.data(), rows=streams(most=18))
@settings(max_examples=15, deadline=None)
def test_whatever_is_punctuated_no_frame_comes_that_was_promised_not_to(name, fragments, data, rows):
    detector, waiting, came, tables = fr.Detector(SPECS[name], key="k", fragments=fragments), list(rows), [], []

    def checked(found, start, end):
        for row in found.to_pylist():
            if row["start"] is not None:
                assert start is None or row["start"] > start
                assert end is None or row["end"] > end
        tables.append(found)

    for _ in range(data.draw(st.integers(0, 6))):
        early = [data.draw(st.booleans()) for _ in waiting]
        some = [row for row, now in zip(waiting, early, strict=True) if now]
        waiting = [row for row, now in zip(waiting, early, strict=True) if not now]
        detector.push(table(some))
        came += some
        key = data.draw(st.sampled_from([None, "a", "b"]))
        to_come = [row["ts"] - 1 for row in waiting if key in (None, row["k"])]
        t = min([data.draw(st.integers(0, 9)), *to_come])
        start, end = detector.promised, detector.promised_end
        checked(detector.punctuate(t, key=key), start, end)
    detector.push(table(waiting))
    start, end = detector.promised, detector.promised_end
    checked(detector.finish(), start, end)
    assert detector.promised == detector.promised_end == 2**63 - 1
    found = fr.united(pa.concat_tables(tables, promote_options="default"))
    assert same(actual(found, "k"), expected(SPECS[name], came + waiting, "k"))


def test_one_key_may_be_ahead_of_the_others():
    detector = fr.Detector(fr.Threshold("x", ">", 0), key="k")
    detector.push({"ts": [1, 5, 1], "k": ["a", "a", "b"], "x": [1, 0, 1]})
    assert detector.punctuate(5, key="a").select(["k", "start", "end"]).to_pylist() == [
        {"k": "a", "start": 1, "end": 1}
    ]
    assert detector.buffered == 1
    with pytest.raises(sw.OutOfOrder, match="a punctuation promised none up to 5"):
        detector.push({"ts": [5], "k": ["a"], "x": [1]})
    state = detector.state()
    detector = fr.Detector(fr.Threshold("x", ">", 0), key="k")
    detector.restore(state)
    with pytest.raises(sw.OutOfOrder, match="a punctuation promised none up to 5"):
        detector.push({"ts": [5], "k": ["a"], "x": [1]})
    detector.push({"ts": [5, 2], "k": ["b", "c"], "x": [0, 1]})
    assert detector.punctuate(6).num_rows == 1
    detector.push({"ts": [7], "k": ["a"], "x": [1]})
    assert detector.finish().num_rows == 2


@pytest.mark.parametrize("key", [3, ("a", "b"), {}])
def test_what_is_no_key_is_refused(key):
    detector = fr.Detector(fr.Threshold("x", ">", 0), key="k")
    with pytest.raises(sw.SwagError):
        detector.punctuate(1, key=key)
    detector.push({"ts": [1], "k": ["a"], "x": [1]})
    with pytest.raises(sw.SwagError):
        detector.punctuate(1, key=key)
    with pytest.raises(sw.BadQuery, match="has no key"):
        fr.Detector(fr.Threshold("x", ">", 0)).punctuate(1, key="a")


def test_what_only_comes_near_a_key_is_none():
    for by, near, own in (("k", 1.9, 1.0), (("k", "j"), (1.9, "a"), (1.0, "a"))):
        detector = fr.Detector(fr.Threshold("x", ">", 0), key=by)
        detector.push({"ts": [1, 2], "k": [1, 1], "j": ["a", "a"], "x": [1, 0]})
        with pytest.raises(sw.BadType, match="is no value of type"):
            detector.punctuate(5, key=near)
        assert detector.punctuate(5, key=own).num_rows == 1


@pytest.mark.parametrize("fragments", [False, True])
@given(data=st.data(), rows=streams(most=18), after=st.integers(-2, 3))
@settings(max_examples=30, deadline=None)
def test_nothing_more_comes_out_for_frames_that_a_filler_has_purged(fragments, data, rows, after):
    detector = fr.Detector(SPECS["threshold >"], key="k", fragments=fragments)
    filler = fr.Filler(key="k", after=after)
    cuts, purged, most, before = sorted(data.draw(st.sets(st.integers(0, 9), max_size=3))), -1, -1, -1
    for t in [*cuts, 100]:
        part = [row for row in rows if before < row["ts"] <= t]
        before = t
        detector.push(table(part))
        frames = detector.punctuate(t)
        most = max([most, *frames["frame_id"].to_pylist()])
        for step in (
            lambda part=part: filler.push_events(table(part)),
            lambda frames=frames: filler.push_frames(frames),
            lambda t=t: filler.punctuate_events(t),
            lambda: filler.punctuate_frames(detector.promised) if detector.promised is not None else None,
        ):
            came = step()
            if came is not None and came.num_rows:
                assert min(came["frame_id"].to_pylist()) > purged
            assert filler.purged >= purged
            purged = filler.purged
    assert purged <= most
    filler.push_frames(detector.finish())
    filler.punctuate_events(10**9)
    filler.punctuate_frames(2**63 - 1)
    assert filler.purged == max([most, filler.purged])
