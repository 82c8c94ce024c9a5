"""A Filler gives the pairs of `fill`, each once, whatever comes first, and keeps no more than it must."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import frames as fr
import swag as sw
from tests.examples import share
from tests.frames.cases import SPECS, streams, table
from tests.frames.test_detector import _cut, arrived, cut_streams
from tests.frames.test_fill import framings

NAMES = ["threshold >=, rows", "partition, rows", "boundary, width", "delta first <", "sum >=", "sum <", "median"]


def numbered(rows):
    return table(rows).append_column("row", pa.array([row["row"] for row in rows], pa.int64()))


def pairs(tables):
    return sorted(
        pair
        for t in tables
        if "row" in t.column_names
        for pair in zip(t["row"].to_pylist(), t["frame_id"].to_pylist(), strict=True)
    )


@given(data=st.data(), frames=framings(), rows=streams(), before=st.integers(0, 2), after=st.integers(0, 2))
@settings(max_examples=share(80), deadline=None)
def test_frames_and_events_in_any_interleaving(data, frames, rows, before, after):
    for key in (None, "k"):
        filler = fr.Filler(key=key, before=before, after=after)
        events = [{**row, "row": at} for at, row in enumerate(rows)]
        everything = {"events": events, "frames": frames.to_pylist()}
        waiting = {side: list(rows) for side, rows in everything.items()}
        moment, upto = {"events": "ts", "frames": "start"}, {"events": -9, "frames": -9}
        out = []
        while waiting["events"] or waiting["frames"]:
            side = data.draw(st.sampled_from([s for s in waiting if waiting[s]]))
            taken, waiting[side] = _cut(data.draw, waiting[side])
            if side == "events":
                out.append(filler.push_events(numbered(taken)))
            else:
                out.append(filler.push_frames(pa.Table.from_pylist(taken, schema=frames.schema)))
            left = min([row[moment[side]] for row in waiting[side]], default=99)
            t = data.draw(st.integers(-2, left - 1))
            out.append(filler.punctuate_events(t) if side == "events" else filler.punctuate_frames(t))
            upto[side] = max(upto[side], t)
            came = {s: [row for row in rows if row not in waiting[s]] for s, rows in everything.items()}
            assert filler.buffered == sum(row["ts"] > upto["frames"] - before for row in came["events"])
            assert filler.waiting_frames == sum(row["end"] + after > upto["events"] for row in came["frames"])
        wanted = fr.fill(frames, numbered(events), key=key, before=before, after=after)
        assert pairs(out) == pairs([wanted])
        filler.punctuate_frames(100)
        filler.punctuate_events(100)
        assert (filler.buffered, filler.waiting_frames) == (0, 0)


@pytest.mark.parametrize("fragments", [False, True])
@pytest.mark.parametrize("name", NAMES)
@given(data=st.data(), steps=cut_streams(), rows=streams(), before=st.integers(0, 2), after=st.integers(0, 2))
@settings(max_examples=share(15), deadline=None)
def test_a_detector_feeds_a_filler(name, fragments, data, steps, rows, before, after):
    """Detection, promises and filling go on together: each stream in its own order, cut and punctuated as it likes."""
    rows = data.draw(st.sampled_from([rows, arrived(steps)]))  # another stream, or the very one the frames are of
    events = [{**row, "row": at} for at, row in enumerate(rows)]
    for key in (None, "k"):
        detector = fr.Detector(SPECS[name], key=key, fragments=fragments)
        filler, out = fr.Filler(key=key, before=before, after=after), []
        to_detect, to_fill = [*steps, ("finish", None)], list(events)
        while to_detect or to_fill:
            if to_fill and (not to_detect or data.draw(st.booleans())):
                taken, to_fill = _cut(data.draw, to_fill)
                out.append(filler.push_events(numbered(taken)))
                filler.punctuate_events(data.draw(st.integers(-2, min([row["ts"] for row in to_fill], default=99) - 1)))
                continue
            what, argument = to_detect.pop(0)
            if what == "push":
                detector.push(table(argument))
                continue
            out.append(filler.push_frames(detector.punctuate(argument) if what == "punctuate" else detector.finish()))
            if detector.promised is not None:
                filler.punctuate_frames(detector.promised)
        wanted = fr.fill(
            fr.detect(SPECS[name], table(arrived(steps)), key=key),
            numbered(events),
            key=key,
            before=before,
            after=after,
            own=False,
        )
        assert pairs(out) == pairs([wanted])
        filler.punctuate_events(100)
        assert (filler.buffered, filler.waiting_frames) == (0, 0)


@pytest.mark.parametrize("after", [0, 5])
def test_one_endless_frame_needs_no_more_than_two_punctuations_hold(after):
    detector, filler = fr.Detector(fr.Threshold("x", ">", 0), fragments=True), fr.Filler(after=after)
    most, filled = 0, 0
    for batch in range(200):
        events = {"ts": np.arange(100) + 100 * batch, "x": np.ones(100)}
        filled += filler.push_events(events).num_rows
        most = max(most, filler.buffered)
        detector.push(events)
        filled += filler.push_frames(detector.punctuate(100 * batch + 99)).num_rows
        filler.punctuate_frames(detector.promised)
        filler.punctuate_events(100 * batch + 99)
    assert filled == 20_000
    assert most <= 200
    whole = fr.Filler()
    for batch in range(200):
        whole.push_events({"ts": np.arange(100) + 100 * batch, "x": np.ones(100)})
    assert whole.buffered == 20_000  # without fragments it all waits for the frame


def test_promises_are_kept():
    filler = fr.Filler(key="k")
    filler.punctuate_events(5)
    with pytest.raises(sw.OutOfOrder, match="punctuate_events later"):
        filler.push_events({"ts": np.array([5]), "k": np.array(["a"])})
    filler.punctuate_frames(3)
    with pytest.raises(sw.OutOfOrder, match="punctuate_frames later"):
        filler.push_frames(
            {"frame_id": np.array([0]), "k": np.array(["a"]), "start": np.array([3]), "end": np.array([9])}
        )
    filler.push_events({"ts": np.array([6]), "k": np.array(["a"])})
    with pytest.raises(sw.BadType, match="one schema"):
        filler.push_events({"ts": np.array([6]), "k": np.array(["a"]), "y": np.array([1])})
    assert filler.buffered == 1


LEAST, LARGEST = -(2**63), 2**63 - 1
MARGINS = st.sampled_from([0, 1, 2, -1, -2, -4, 7, LARGEST, -LARGEST])


@given(data=st.data(), name=st.sampled_from(NAMES[:6]), fragments=st.booleans(), before=MARGINS, after=MARGINS)
@settings(max_examples=share(150), deadline=None)
def test_margins_that_shrink_frames_or_leave_all_time(data, name, fragments, before, after):
    """By the definition, in integers of any size: start - before <= ts <= end + after."""
    span = data.draw(st.sampled_from([0, 2, 9]))
    first = data.draw(st.sampled_from([0, -5, LEAST, LARGEST - span]))
    key = data.draw(st.sampled_from([None, "k"]))
    rows = [{**row, "ts": first + min(row["ts"], span)} for row in data.draw(streams(most=10))]
    events = [{**row, "row": at} for at, row in enumerate(rows)]
    cuts = sorted(data.draw(st.lists(st.integers(first, first + span), max_size=3)))
    rows = sorted(rows, key=lambda row: row["ts"])
    frames = fr.detect(SPECS[name], table(rows), key=key)
    wanted = sorted(
        (event["row"], frame["frame_id"])
        for event in events
        for frame in frames.to_pylist()
        if (key is None or frame[key] == event[key]) and frame["start"] - before <= event["ts"] <= frame["end"] + after
    )
    margins = {"before": before, "after": after}
    assert pairs([fr.fill(frames, numbered(events), key=key, own=False, **margins)]) == wanted
    detector, filler = fr.Detector(SPECS[name], key=key, fragments=fragments), fr.Filler(key=key, **margins)
    detector.push(table(rows))
    head, rest = _cut(data.draw, events)
    out = [filler.push_events(numbered(head))]
    for t in [*cuts, None]:
        out.append(filler.push_frames(detector.finish() if t is None else detector.punctuate(t)))
        if detector.promised is not None and not rest:
            filler.punctuate_frames(detector.promised)
        if rest and data.draw(st.booleans()):
            out.append(filler.push_events(numbered(rest)))
            rest = []
    out.append(filler.push_events(numbered(rest)))
    assert pairs(out) == wanted
    filler.punctuate_frames(LARGEST)
    filler.punctuate_events(LARGEST)
    assert (filler.buffered, filler.waiting_frames) == (0, 0)


def test_a_piece_that_may_not_be_the_last_keeps_back_what_a_negative_margin_takes_off():
    events = {"ts": [1, 2, 3, 4], "x": [1, 1, 1, 0]}
    detector, filler = fr.Detector(fr.Threshold("x", ">", 0), fragments=True), fr.Filler(after=-1)
    detector.push(events)
    out = [filler.push_events(events), *(filler.push_frames(detector.punctuate(t)) for t in (3, 4))]
    out.append(filler.push_frames(detector.finish()))
    assert [t for each in out for t in each["ts"].to_pylist()] == [1, 2]


def test_punctuations_before_events_count_by_the_latest():
    filler = fr.Filler()
    filler.punctuate_events(5)
    filler.punctuate_events(2)
    with pytest.raises(sw.OutOfOrder, match="promised none up to 5"):
        filler.push_events({"ts": np.array([4])})
    with pytest.raises(sw.BadType, match="no point in time"):
        fr.Filler().punctuate_frames(None)


def test_frames_of_a_detector_without_events_say_nothing_of_the_type_of_ts():
    filler = fr.Filler(key="k")
    assert filler.push_frames(fr.Detector(fr.Delta("x", 1), key="k").punctuate(3)).num_rows == 0
    filler.push_events({"ts": pa.array([1], pa.timestamp("s")), "k": np.array(["a"])})
    assert filler.buffered == 1
